//! A small operator registry for tests and benchmarks of this crate.
#![allow(dead_code, reason = "each including module uses only a part")]

use flambeau_exec::{
    Fault, Intrinsic, Kernel, KernelCx, KernelError, KernelResult, OpDefExt, Pointwise, ScalarOp, TileOp,
};
use flambeau_ir::{AliasRule, Graph, IValue, OpDef, Registry, RegistryBuilder, Source, text};
use flambeau_tensor::{DType, Tensor, loops};
use std::sync::Arc;

fn scalars() -> Vec<OpDef> {
    use ScalarOp::*;
    let table = [
        ("aten::add.int(int a, int b) -> int", IAdd),
        ("aten::sub.int(int a, int b) -> int", ISub),
        ("aten::mul.int(int a, int b) -> int", IMul),
        ("aten::floordiv.int(int a, int b) -> int", IFloorDiv),
        ("aten::remainder.int(int a, int b) -> int", IMod),
        ("aten::neg.int(int a) -> int", INeg),
        ("prim::min.int(int a, int b) -> int", IMin),
        ("aten::eq.int(int a, int b) -> bool", IEq),
        ("aten::ne.int(int a, int b) -> bool", INe),
        ("aten::lt.int(int a, int b) -> bool", ILt),
        ("aten::le.int(int a, int b) -> bool", ILe),
        ("aten::gt.int(int a, int b) -> bool", IGt),
        ("aten::ge.int(int a, int b) -> bool", IGe),
        ("aten::add.float(float a, float b) -> float", FAdd),
        ("aten::add.float_int(float a, int b) -> float", FAdd),
        ("aten::sub.float(float a, float b) -> float", FSub),
        ("aten::mul.float(float a, float b) -> float", FMul),
        ("aten::div.float(float a, float b) -> float", FDiv),
        ("aten::div.int(int a, int b) -> float", FDiv),
        ("aten::lt.float(float a, float b) -> bool", FLt),
        ("aten::le.float(float a, float b) -> bool", FLe),
        ("aten::gt.float(float a, float b) -> bool", FGt),
        ("aten::ge.float(float a, float b) -> bool", FGe),
        ("aten::eq.float(float a, float b) -> bool", FEq),
        ("aten::ne.float(float a, float b) -> bool", FNe),
        ("aten::__not__(bool a) -> bool", BNot),
        ("aten::__and__.bool(bool a, bool b) -> bool", BAnd),
        ("aten::Float.int(int a) -> float", IToF),
        ("aten::Int.float(float a) -> int", FToI),
    ];
    let mut defs: Vec<OpDef> = table.into_iter().map(|(s, op)| OpDef::new(s).intrinsic(op)).collect();
    defs.extend([
        OpDef::new("aten::len.t(t[] a) -> int").intrinsic(Intrinsic::ListLen),
        OpDef::new("aten::__getitem__.t(t[](a) list, int idx) -> t(*)").intrinsic(Intrinsic::ListGet),
        OpDef::new("aten::__range_length(int lo, int hi, int step) -> int").intrinsic(Intrinsic::RangeLength),
        OpDef::new("aten::__derive_index(int index, int start, int step) -> int")
            .intrinsic(Intrinsic::RangeElement),
        OpDef::new("aten::len.str(str s) -> int").intrinsic(Intrinsic::StrLen),
        OpDef::new("aten::__getitem__.str(str s, int index) -> str").intrinsic(Intrinsic::StrGet),
        OpDef::new("aten::eq.str(str a, str b) -> bool").intrinsic(Intrinsic::StrEqual),
        OpDef::new("aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)")
            .intrinsic(Intrinsic::ListSet),
        OpDef::new("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)").intrinsic(Intrinsic::ListAppend),
        OpDef::new("aten::__is__(t1 self, t2 obj) -> bool").intrinsic(Intrinsic::Is),
        OpDef::new("aten::__isnot__(t1 self, t2 obj) -> bool").intrinsic(Intrinsic::IsNot),
        OpDef::new("aten::wait(Future(t) self) -> t").with(Kernel::new(wait)).with(AliasRule::Waits),
        OpDef::new("aten::unsupported(int a) -> int"),
    ]);
    defs
}

fn wait(cx: &mut KernelCx<'_>) -> KernelResult {
    let future = cx.arg(0)?.as_future().cloned().ok_or_else(|| KernelError::input("not a future"))?;
    match future.wait() {
        Ok(value) => cx.ret(value),
        Err(e) => return Err(KernelError::new(Fault::Input, "FutureError", e.to_string())),
    }
    Ok(())
}

/// Defines a unary pointwise operator by its tile operation.
fn unary(schema: &str, op: TileOp) -> OpDef {
    let kernel = Kernel::new(move |cx| {
        let x = cx.tensor(0)?;
        let y = match x.dtype() {
            DType::F64 => loops::unary::<f64, f64>(x, move |a| op.eval(a, a, a))?,
            _ => loops::unary::<f32, f32>(x, move |a| op.eval(a, a, a))?,
        };
        cx.ret(y);
        Ok(())
    });
    OpDef::new(schema).with(kernel).with(Pointwise::unary(op))
}

/// Defines a binary pointwise operator by its tile operation.
fn binary(schema: &str, op: TileOp) -> OpDef {
    let kernel = Kernel::new(move |cx| {
        let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
        let y = match a.dtype() {
            DType::F64 => loops::binary::<f64, f64, f64>(a, b, move |a, b| op.eval(a, b, a))?,
            _ => loops::binary::<f32, f32, f32>(a, b, move |a, b| op.eval(a, b, a))?,
        };
        cx.ret(y);
        Ok(())
    });
    OpDef::new(schema).with(kernel).with(Pointwise::binary(op))
}

fn add_scaled(cx: &mut KernelCx<'_>) -> KernelResult {
    let alpha = cx.scalar(2)?;
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let one = matches!(alpha, flambeau_tensor::Scalar::Int(1));
    let y = match a.dtype() {
        DType::F64 => {
            let k = alpha.to_f64();
            loops::binary::<f64, f64, f64>(a, b, move |a, b| a + if one { b } else { b * k })?
        }
        _ => {
            let k = alpha.to_f64() as f32;
            if one {
                loops::binary::<f32, f32, f32>(a, b, |a, b| a + b)?
            } else {
                loops::binary::<f32, f32, f32>(a, b, move |a, b| a + b * k)?
            }
        }
    };
    cx.ret(y);
    Ok(())
}

fn mul_scalar(cx: &mut KernelCx<'_>) -> KernelResult {
    let k = cx.scalar(1)?.to_f64();
    let a = cx.tensor(0)?;
    let y = match a.dtype() {
        DType::F64 => loops::unary::<f64, f64>(a, move |a| a * k)?,
        _ => loops::unary::<f32, f32>(a, move |a| a * k as f32)?,
    };
    cx.ret(y);
    Ok(())
}

fn tensors() -> Vec<OpDef> {
    vec![
        OpDef::new("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
            .with(Kernel::new(add_scaled))
            .with(Pointwise::scaled(TileOp::Add)),
        binary("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", TileOp::Mul),
        binary("aten::div.Tensor(Tensor self, Tensor other) -> Tensor", TileOp::Div),
        OpDef::new("aten::mul.Scalar(Tensor self, Scalar other) -> Tensor")
            .with(Kernel::new(mul_scalar))
            .with(Pointwise::binary(TileOp::Mul)),
        unary("aten::sigmoid(Tensor self) -> Tensor", TileOp::Sigmoid),
        unary("aten::tanh(Tensor self) -> Tensor", TileOp::Tanh),
        unary("aten::relu(Tensor self) -> Tensor", TileOp::Relu),
        unary("aten::exp(Tensor self) -> Tensor", TileOp::Exp),
        unary("aten::neg(Tensor self) -> Tensor", TileOp::Neg),
        unary("aten::floor(Tensor self) -> Tensor", TileOp::Floor),
        OpDef::new("aten::zeros(int[] size) -> Tensor").with(Kernel::new(|cx| {
            let t = Tensor::zeros(&cx.ints(0)?, DType::F32)?;
            cx.ret(t);
            Ok(())
        })),
        OpDef::new("aten::mm(Tensor self, Tensor mat2) -> Tensor").with(Kernel::new(mm)),
        OpDef::new("aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]").with(
            Kernel::new(|cx| {
                let pieces = cx.tensor(0)?.chunk(cx.int(1)?, cx.int(2)?)?;
                cx.ret(IValue::List(flambeau_ir::value::List::from_tensors(pieces)));
                Ok(())
            }),
        ),
    ]
}

/// A simple matrix product, row by row.
fn mm(cx: &mut KernelCx<'_>) -> KernelResult {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let (m, k, n) = (a.sizes()[0] as usize, a.sizes()[1] as usize, b.sizes()[1] as usize);
    let mut out = vec![0f32; m * n];
    flambeau_tensor::access::read2::<f32, f32, _>(a, b, |a, b| {
        for (row, out) in out.chunks_exact_mut(n).enumerate() {
            for (&x, other) in a.data()[row * k..][..k].iter().zip(b.data().chunks_exact(n)) {
                for (o, &y) in out.iter_mut().zip(other) {
                    *o += x * y;
                }
            }
        }
    })?;
    let y = Tensor::from_vec(out, &[m as i64, n as i64])?;
    cx.ret(y);
    Ok(())
}

/// Builds the registry.
pub(crate) fn registry() -> Arc<Registry> {
    let mut builder = RegistryBuilder::new();
    builder.add(scalars());
    builder.add(tensors());
    builder.build().unwrap_or_else(|e| panic!("{e:?}"))
}

/// Parses a graph.
pub(crate) fn graph(registry: &Arc<Registry>, text: &str) -> Arc<Graph> {
    let source = Source::new("test.ir", text);
    Arc::new(text::parse_graph(&source, registry).unwrap_or_else(|e| panic!("{e:?}")))
}
