//! Queries of a tensor's properties (sizes, dtype, device), and its conversion to numbers and booleans.

use crate::support::{in_range, kernel};
use flambeau_analysis::ResultShapes;
use flambeau_analysis::shape::{Dim, Fact, Strides, TensorFact};
use flambeau_exec::{Kernel, KernelCx, KernelError, OfElement, Sample, tape};
use flambeau_ir::value::List;
use flambeau_ir::{Doc, Effects, IValue, ImplicitConversion, OpDef};
use flambeau_tensor::{DType, Device, MemoryFormat, Scalar, Tensor, wrap_dim};

type Query = fn(&Tensor) -> IValue;

fn result_of(f: Query) -> Kernel {
    kernel(move |cx| {
        let value = f(cx.tensor(0)?);
        cx.ret(value);
        Ok(())
    })
}

const QUERIES: &[(&str, &str, Query)] = &[
    ("aten::dim", "Number of dimensions.", |t| IValue::Int(t.rank() as i64)),
    ("aten::numel", "Number of elements.", |t| IValue::Int(t.numel() as i64)),
    ("aten::sym_numel", "Number of elements.", |t| IValue::Int(t.numel() as i64)),
    ("aten::storage_offset", "Position of the first element in the storage.", |t| IValue::Int(t.offset())),
    ("aten::sym_storage_offset", "Position of the first element in the storage.", |t| {
        IValue::Int(t.offset())
    }),
    ("aten::is_floating_point", "Whether elements are floats.", |t| IValue::Bool(t.dtype().is_floating())),
    ("aten::is_complex", "Whether elements are complex numbers.", |t| IValue::Bool(t.dtype().is_complex())),
    ("aten::is_signed", "Whether elements can be negative.", |t| IValue::Bool(t.dtype().is_signed())),
    ("aten::element_size", "Bytes of an element.", |t| IValue::Int(t.dtype().size() as i64)),
    ("aten::get_device", "Index of the device; -1 for the CPU.", |_| IValue::Int(-1)),
    ("aten::is_leaf", "Whether the tensor is a leaf of the gradient graph.", |t| {
        IValue::Bool(tape::is_leaf(t))
    }),
    ("aten::is_conj", "Whether conjugation is lazy: never.", |_| IValue::Bool(false)),
    ("aten::is_neg", "Whether negation is lazy: never.", |_| IValue::Bool(false)),
    ("aten::is_inference", "Whether made in inference mode: never.", |_| IValue::Bool(false)),
    ("aten::is_distributed", "Whether its elements are on several machines: never.", |_| IValue::Bool(false)),
    ("aten::retains_grad", "Whether a non-leaf tensor retains its gradient: never.", |_| IValue::Bool(false)),
    ("aten::dense_dim", "Number of dimensions that are not sparse: all.", |t| IValue::Int(t.rank() as i64)),
    ("aten::sparse_dim", "Number of dimensions that are sparse: none.", |_| IValue::Int(0)),
    ("prim::name", "The tensor's name: always `None`.", |_| IValue::None),
    ("prim::dtype", "The dtype, as a number.", |t| IValue::Int(t.dtype().scalar_type())),
    ("prim::device", "The device.", |_| IValue::Device(Device::CPU)),
    ("prim::layout", "The layout, as a number: strided.", |_| IValue::Int(0)),
    ("prim::itemsize", "Bytes of an element.", |t| IValue::Int(t.dtype().size() as i64)),
    ("prim::nbytes", "Bytes of all elements.", |t| IValue::Int((t.dtype().size() * t.numel()) as i64)),
    ("prim::requires_grad", "Whether the tensor requires a gradient.", |t| IValue::Bool(t.requires_grad())),
    ("prim::is_cpu", "Whether it is on the CPU.", |_| IValue::Bool(true)),
    ("prim::is_cuda", "Whether it is on a CUDA device: never.", |_| IValue::Bool(false)),
    ("prim::is_meta", "Whether it is on the meta device: never.", |_| IValue::Bool(false)),
    ("prim::is_mkldnn", "Whether its layout is oneDNN's: never.", |_| IValue::Bool(false)),
    ("prim::is_quantized", "Whether it is quantized: never.", |_| IValue::Bool(false)),
    ("prim::is_sparse", "Whether it is sparse: never.", |_| IValue::Bool(false)),
    ("prim::is_sparse_csr", "Whether it is sparse: never.", |_| IValue::Bool(false)),
    ("prim::is_nested", "Whether it is nested: never.", |_| IValue::Bool(false)),
    ("prim::is_vulkan", "Whether it is on a Vulkan device: never.", |_| IValue::Bool(false)),
    ("prim::is_xla", "Whether it is on an XLA device: never.", |_| IValue::Bool(false)),
    ("prim::is_xpu", "Whether it is on an XPU device: never.", |_| IValue::Bool(false)),
    ("prim::is_mps", "Whether it is on an MPS device: never.", |_| IValue::Bool(false)),
    ("prim::is_maia", "Whether it is on a MAIA device: never.", |_| IValue::Bool(false)),
    ("prim::is_mtia", "Whether it is on an MTIA device: never.", |_| IValue::Bool(false)),
    ("prim::is_ipu", "Whether it is on an IPU: never.", |_| IValue::Bool(false)),
];

/// Shape rules of queries whose results follow from the inferred facts about a tensor.
const ANALYZED: &[(&str, fn() -> ResultShapes)] = &[
    ("aten::dim", || ResultShapes::int(|cx| Some(Dim::Known(cx.rank(0)? as i64)))),
    ("aten::numel", || ResultShapes::numel_of(0)),
    ("aten::sym_numel", || ResultShapes::numel_of(0)),
    ("aten::is_floating_point", || ResultShapes::from(|cx| Some(Fact::Bool(cx.dtype(0)?.is_floating())))),
    ("aten::is_complex", || ResultShapes::from(|cx| Some(Fact::Bool(cx.dtype(0)?.is_complex())))),
    ("aten::element_size", || ResultShapes::int(|cx| Some(Dim::Known(cx.dtype(0)?.size() as i64)))),
    ("prim::dtype", || ResultShapes::int(|cx| Some(Dim::Known(cx.dtype(0)?.scalar_type())))),
    ("prim::itemsize", || ResultShapes::int(|cx| Some(Dim::Known(cx.dtype(0)?.size() as i64)))),
    ("prim::is_cpu", || tensor_query(|t| Some(t.device?.is_cpu()))),
    ("prim::is_cuda", || tensor_query(|t| t.device?.is_cpu().then_some(false))),
    ("prim::requires_grad", || tensor_query(|t| t.requires_grad)),
];

/// A rule for a question about the first operand.
fn tensor_query(answer: fn(&TensorFact) -> Option<bool>) -> ResultShapes {
    ResultShapes::from(move |cx| match cx.fact(0) {
        Fact::Tensor(t) => Some(Fact::Bool(answer(t)?)),
        _ => None,
    })
}

fn questions() -> Vec<OpDef> {
    let query = |&(name, doc, f): &(&str, _, _)| {
        let def = OpDef::named(name).if_declared().with(Doc(doc)).with(sample()).with(result_of(f));
        match ANALYZED.iter().find(|(analyzed, _)| *analyzed == name) {
            Some((_, shape)) => def.with(shape()),
            None => def,
        }
    };
    QUERIES.iter().map(query).collect()
}

fn sizes() -> Vec<OpDef> {
    let list = |name: &str, doc: &'static str, f: fn(&Tensor) -> Vec<i64>| {
        OpDef::named(name).with(Doc(doc)).with(sample()).with(kernel(move |cx| {
            let values = f(cx.tensor(0)?);
            cx.ret(IValue::ints(values));
            Ok(())
        }))
    };
    let at = |name: &str, doc: &'static str, f: fn(&Tensor, usize) -> i64| {
        let sample =
            Sample::tensors(1).floats().rank(1, 3).then([IValue::Int(0)]).exact().not_differentiable();
        OpDef::named(name).with(Doc(doc)).with(Effects::RAISES).with(sample).with(kernel(move |cx| {
            let t = cx.tensor(0)?;
            if t.rank() == 0 {
                return Err(KernelError::new(
                    flambeau_exec::Fault::Input,
                    "IndexError",
                    "Dimension specified as 0 but tensor has no dimensions",
                ));
            }
            let value = f(t, wrap_dim(cx.int(1)?, t.rank())?);
            cx.ret(value);
            Ok(())
        }))
    };
    vec![
        list("aten::size", "All sizes.", |t| t.sizes().to_vec()).with(ResultShapes::sizes_of(0)),
        list("aten::stride", "All strides.", |t| t.strides().to_vec()),
        list("aten::sym_size", "All sizes.", |t| t.sizes().to_vec()).with(ResultShapes::sizes_of(0)),
        list("aten::sym_stride", "All strides.", |t| t.strides().to_vec()),
        at("aten::size.int", "The size of a dimension.", |t, d| t.sizes()[d])
            .with(ResultShapes::size_of(0, 1)),
        at("aten::sym_size.int", "The size of a dimension.", |t, d| t.sizes()[d])
            .with(ResultShapes::size_of(0, 1)),
        at("aten::stride.int", "The stride of a dimension.", |t, d| t.strides()[d]),
        at("aten::sym_stride.int", "The stride of a dimension.", |t, d| t.strides()[d]),
        OpDef::named("aten::len.Tensor")
            .with(Doc("The size of the first dimension."))
            .with(Effects::RAISES)
            .with(Sample::tensors(1).floats().rank(1, 3).exact().not_differentiable())
            .with(kernel(|cx| {
                let Some(&n) = cx.tensor(0)?.sizes().first() else {
                    return Err(KernelError::input("len() of a 0-d tensor"));
                };
                cx.ret(n);
                Ok(())
            })),
        OpDef::named("aten::is_contiguous")
            .with(Doc("Whether the tensor is contiguous: row-major without gaps."))
            .with(sample())
            .with(tensor_query(|t| (t.strides == Strides::Contiguous).then_some(true)))
            .with(result_of(|t| IValue::Bool(t.is_contiguous()))),
        OpDef::overload("aten::is_contiguous", "memory_format")
            .with(Doc("Whether the tensor is contiguous in a memory format."))
            .with(sample().then([IValue::Int(MemoryFormat::Contiguous as i64)]))
            .with(kernel(|cx| {
                let (rank, layout) = (cx.tensor(0)?.rank(), cx.tensor(0)?.layout());
                let last = |space: usize| rank == space + 2 && layout.is_channels_last();
                let is_contiguous = match MemoryFormat::from_number(cx.int(1)?) {
                    Some(MemoryFormat::ChannelsLast) => last(2),
                    Some(MemoryFormat::ChannelsLast3d) => last(3),
                    _ => layout.is_contiguous(),
                };
                cx.ret(is_contiguous);
                Ok(())
            })),
        OpDef::named("aten::is_same_size")
            .with(Doc("Whether two tensors have the same sizes."))
            .with(Sample::tensors(2).floats().exact().not_differentiable())
            .with(kernel(|cx| {
                let same = cx.tensor(0)?.sizes() == cx.tensor(1)?.sizes();
                cx.ret(same);
                Ok(())
            })),
    ]
}

fn sample() -> Sample {
    Sample::tensors(1).floats().exact().not_differentiable()
}

fn one_element() -> Sample {
    Sample::tensors(1).floats().rank(0, 0).exact().not_differentiable()
}

fn single(cx: &KernelCx<'_>) -> Result<Scalar, KernelError> {
    Ok(cx.tensor(0)?.item()?)
}

/// Implicit conversion of an argument: only for tensors of rank 0 that do not require a gradient.
fn implicit(cx: &KernelCx<'_>) -> Result<Scalar, KernelError> {
    let t = cx.tensor(0)?;
    if t.requires_grad() {
        return Err(KernelError::input("Cannot input a tensor that requires grad as a scalar argument"));
    }
    if t.rank() != 0 {
        return Err(KernelError::input(format!(
            "Cannot input a tensor of dimension other than 0 as a scalar argument: {} dimensions",
            t.rank()
        )));
    }
    Ok(t.item()?)
}

fn numbers() -> Vec<OpDef> {
    // NaN and values out of range have no integer; a complex number must be real.
    let whole = |s: Scalar| in_range(s, DType::I64).map(Scalar::to_i64);
    let float = |s: Scalar| match s {
        Scalar::Complex(z) if z.im != 0.0 => in_range(s, DType::F64).map(Scalar::to_f64),
        s => Ok(s.to_f64()),
    };
    let complex = |s: Scalar| Ok(IValue::complex(s.to_complex()));
    let any = |s: Scalar| Ok(IValue::from(s));
    let strict_int = |s: Scalar| match s {
        Scalar::Int(_) | Scalar::Bool(_) => Ok(s.to_i64()),
        _ => Err(KernelError::input(
            "Cannot input a tensor of type other than integral as an integral argument",
        )),
    };
    let truth = |s: Scalar| Ok(s.to_bool());
    let integral = one_element().dtypes(&[DType::I64]);
    let of_selected = OfElement { selected_by: "aten::select" };
    vec![
        number("aten::item", "The only element.", single, any),
        number("aten::Int.Tensor", "The only element, truncated.", single, whole).with(of_selected),
        number("aten::Float.Tensor", "The only element as a float.", single, float).with(of_selected),
        number("aten::Bool.Tensor", "Whether the only element is nonzero.", truth_value, truth)
            .with(of_selected),
        number("aten::is_nonzero", "Whether the only element is nonzero.", truth_value, truth)
            .with(of_selected),
        number("aten::IntImplicit", "The element of an integral argument.", implicit, strict_int)
            .with(integral)
            .with(ImplicitConversion::TensorToInt),
        number("aten::FloatImplicit", "The element of a float argument.", implicit, float)
            .with(ImplicitConversion::TensorToFloat),
        number("aten::ComplexImplicit", "The element of a complex argument.", implicit, complex)
            .with(ImplicitConversion::TensorToComplex),
        number("aten::ScalarImplicit", "The element of a number argument.", implicit, any)
            .with(ImplicitConversion::TensorToNumber),
        number("aten::_local_scalar_dense", "The only element.", single, any),
    ]
}

/// Defines an operator that takes a number from its argument and converts it.
fn number<R: Into<IValue>>(
    name: &str,
    doc: &'static str,
    take: impl Fn(&KernelCx<'_>) -> Result<Scalar, KernelError> + Send + Sync + 'static,
    give: impl Fn(Scalar) -> Result<R, KernelError> + Send + Sync + 'static,
) -> OpDef {
    OpDef::named(name).with(Doc(doc)).with(Effects::RAISES).with(one_element()).with(kernel(move |cx| {
        let value = give(take(cx)?)?;
        cx.ret(value);
        Ok(())
    }))
}

/// A complex number from its parts, at least one of which is a one-element tensor.
fn complex_of_tensors() -> Vec<OpDef> {
    let part = |cx: &KernelCx<'_>, i: usize| match cx.arg(i)? {
        IValue::Tensor(t) => Ok::<f64, KernelError>(t.item()?.to_f64()),
        _ => Ok(cx.scalar(i)?.to_f64()),
    };
    let overload = move |name: &'static str| {
        let sample = Sample::by_schema().exact().not_differentiable();
        let base = OpDef::overload("aten::Complex", name).with(Doc("A complex number from its parts."));
        base.with(Effects::RAISES).with(sample).with(kernel(move |cx| {
            let (re, im) = (part(cx, 0)?, part(cx, 1)?);
            cx.ret(IValue::complex(flambeau_tensor::Complex::new(re, im)));
            Ok(())
        }))
    };
    let names = [
        "Tensor_Tensor",
        "Tensor_float",
        "float_Tensor",
        "Tensor_int",
        "int_Tensor",
        "Tensor_bool",
        "bool_Tensor",
    ];
    names.into_iter().map(overload).collect()
}

fn truth_value(cx: &KernelCx<'_>) -> Result<Scalar, KernelError> {
    let t = cx.tensor(0)?;
    match t.numel() {
        1 => Ok(t.item()?),
        0 => Err(KernelError::input("Boolean value of Tensor with no values is ambiguous")),
        _ => Err(KernelError::input("Boolean value of Tensor with more than one value is ambiguous")),
    }
}

fn infer_size() -> OpDef {
    OpDef::named("aten::_infer_size")
        .with(Doc("The broadcast size of two sizes."))
        .with(Effects::RAISES)
        .with(
            Sample::args(|_| vec![IValue::ints(vec![2, 1]), IValue::ints(vec![3])])
                .exact()
                .not_differentiable(),
        )
        .with(kernel(|cx| {
            let sizes = flambeau_tensor::broadcast_shapes(&cx.ints(0)?, &cx.ints(1)?)?;
            cx.ret(IValue::List(List::from_ints(sizes.to_vec())));
            Ok(())
        }))
}

pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = questions();
    defs.extend(sizes());
    defs.extend(numbers());
    defs.extend(complex_of_tensors());
    defs.push(infer_size());
    defs
}
