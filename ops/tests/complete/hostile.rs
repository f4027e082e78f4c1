//! No argument makes an operator panic, hang or ask for memory without bound: samples with a few arguments made
//! hostile, and arguments that are hostile altogether, are answered with a result or an error. A result is as the rules
//! for shapes and dtypes predict, whatever they were told of the arguments.
//!
//! The call that is being tried stands in the file `hostile.txt` of the target folder's `tmp`, for those that end the
//! process. `FLAMBEAU_TRIALS` sets the rounds per operator, `FLAMBEAU_OPS` a part of the names of those to try, `FLAMBEAU_SEED`
//! where draws start.

use super::matrix::arguments;
use super::partial::Forecast;
use flambeau_exec::{Gen, Host, Kernel};
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::{Dict, IValue, List};
use flambeau_ir::{OpId, Registry, Type};
use flambeau_tensor::{Budget, Complex, DType, Device, Fault, Layout, Scalar, Tensor};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

/// Rounds per operator where nothing else is asked for.
const ROUNDS: u64 = 6;
/// What tensors of one call may hold.
const MEMORY: usize = 64 << 20;
/// How long one call may take, in a program that is not optimized and on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(120);

const INTS: &[i64] = &[
    0,
    1,
    -1,
    2,
    3,
    -2,
    4,
    7,
    -5,
    64,
    65,
    1 << 20,
    i32::MAX as i64,
    1 << 40,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
];
const FLOATS: &[f64] =
    &[0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e-320, 1e30, -1e308, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
const STRINGS: &[&str] =
    &["", "a", "mean", "none", "linear", "i,j->ij", "...", "{}{:d}", "\u{e9}\u{1f525}", "reflect"];
const DTYPES: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::F64,
    DType::I64,
    DType::I64,
    DType::Bool,
    DType::F16,
    DType::BF16,
    DType::I32,
    DType::U8,
    DType::I8,
    DType::C64,
    DType::C128,
];

/// A tensor of an odd shape: no dimension, none of some, many, unequal ones; contiguous, or a view that overlaps itself
/// or walks backwards through the order of dimensions.
fn tensor(g: &mut Gen<'_>) -> Tensor {
    let rank = *g.pick(&[0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6]);
    let sizes: Vec<i64> = (0..rank).map(|_| *g.pick(&[0, 1, 1, 2, 2, 3, 4, 5])).collect();
    let dtype = *g.pick(DTYPES);
    let mut whole = || -> flambeau_tensor::Result<Tensor> {
        let values: Vec<Scalar> = (0..sizes.iter().product::<i64>())
            .map(|_| match g.below(3) {
                0 => Scalar::Int(*g.pick(INTS)),
                1 => Scalar::Float(*g.pick(FLOATS)),
                _ => Scalar::Int(g.int(-1, 4)),
            })
            .collect();
        let made = Tensor::from_scalars(&values, &sizes, dtype)?;
        Ok(match g.below(6) {
            0 if rank > 1 => made.transpose(0, -1)?,
            1 => {
                let strides: Vec<i64> = sizes.iter().map(|_| 0).collect();
                match Layout::new(&sizes, &strides, 0) {
                    Ok(_) if made.numel() > 0 => made.as_strided(&sizes, &strides, None)?,
                    _ => made,
                }
            }
            2 if rank > 0 => made.select(0, 0).unwrap_or(made),
            _ => made,
        })
    };
    whole().expect("a small tensor")
}

/// A value of a type, of the kind nobody expects.
fn value(ty: Type, g: &mut Gen<'_>, known: &[IValue]) -> IValue {
    match ty.kind() {
        TypeKind::Tensor(_) | TypeKind::Any => {
            // The same tensor twice: what is written may be what is read.
            let other = known.iter().find(|v| v.is_tensor()).filter(|_| g.one_in(6));
            other.cloned().unwrap_or_else(|| IValue::Tensor(tensor(g)))
        }
        TypeKind::Int | TypeKind::SymInt => IValue::Int(*g.pick(INTS)),
        TypeKind::Float => IValue::Float(*g.pick(FLOATS)),
        TypeKind::Number => match g.below(4) {
            0 => IValue::Float(*g.pick(FLOATS)),
            1 => IValue::complex(Complex::new(*g.pick(FLOATS), *g.pick(FLOATS))),
            2 => IValue::Bool(g.flag()),
            _ => IValue::Int(*g.pick(INTS)),
        },
        TypeKind::Bool => IValue::Bool(g.flag()),
        TypeKind::Complex => IValue::complex(Complex::new(*g.pick(FLOATS), *g.pick(FLOATS))),
        TypeKind::Str => IValue::str(STRINGS[g.below(STRINGS.len())]),
        TypeKind::Device => IValue::Device(Device::CPU),
        TypeKind::Optional(_) if g.one_in(3) => IValue::None,
        TypeKind::Optional(inner) => value(*inner, g, known),
        TypeKind::List(elem) => {
            let n = *g.pick(&[0, 1, 1, 2, 2, 3, 4, 5, 9]);
            let items = (0..n).map(|_| value(*elem, g, known)).collect();
            IValue::List(List::from_values(*elem, items))
        }
        TypeKind::Tuple(t) => IValue::tuple(t.elems.iter().map(|&e| value(e, g, known)).collect()),
        TypeKind::Dict(k, v) => {
            let dict = Dict::new(*k, *v);
            for _ in 0..g.below(3) {
                let (key, item) = (value(*k, g, known), value(*v, g, known));
                // Keys of a kind that cannot be hashed leave the dictionary empty.
                let _ = dict.insert(key, item);
            }
            IValue::Dict(dict)
        }
        TypeKind::Var(_) => match g.below(3) {
            0 => IValue::str(STRINGS[g.below(STRINGS.len())]),
            1 => IValue::Tensor(tensor(g)),
            _ => IValue::Int(*g.pick(INTS)),
        },
        _ => IValue::None,
    }
}

/// A sample with one to three arguments replaced, or arguments that are all strange.
fn draw(registry: &Registry, id: OpId, g: &mut Gen<'_>) -> Vec<IValue> {
    let schema = registry.schema(id);
    let sample = if g.one_in(4) { None } else { arguments(registry, id, g) };
    let Some(mut args) = sample.filter(|args| args.len() == schema.args.len() && !args.is_empty()) else {
        let mut args: Vec<IValue> = Vec::new();
        for arg in &schema.args {
            let next = value(arg.ty, g, &args);
            args.push(next);
        }
        return args;
    };
    for _ in 0..=g.below(3) {
        let i = g.below(args.len());
        args[i] = value(schema.args[i].ty, g, &args);
    }
    args
}

/// What a call did that none may.
fn offence(registry: &Registry, id: OpId, args: &[IValue], g: &mut Gen<'_>) -> Option<String> {
    let schema: &FunctionSchema = registry.schema(id);
    let kernel = registry.facet::<Kernel>(id)?;
    let forecasts = || [Forecast::of_all(registry, id, args), Forecast::of(registry, id, args, g)];
    let Ok(forecasts) = catch_unwind(AssertUnwindSafe(forecasts)) else {
        return Some("its shape rule panics".to_owned());
    };
    let mut given = args.to_vec();
    let budget = Budget::new(MEMORY);
    let call = || budget.run(|| kernel.call_on(schema, &mut given, &mut Host::quiet()));
    match catch_unwind(AssertUnwindSafe(call)) {
        Err(_) => Some("panics".to_owned()),
        Ok(Err(e)) if matches!(e.fault(), Fault::Internal) => Some(format!("blames itself: {e}")),
        Ok(Err(_)) => None,
        Ok(Ok(rets)) => forecasts.iter().find_map(|forecast| forecast.wrong(&rets)),
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn no_arguments_break_an_operator() {
    let rounds = number("FLAMBEAU_TRIALS").unwrap_or(ROUNDS);
    let first = number("FLAMBEAU_SEED").unwrap_or(0);
    let wanted = std::env::var("FLAMBEAU_OPS").unwrap_or_default();
    let (at, now) = mpsc::channel::<Option<String>>();
    let worker = std::thread::spawn(move || {
        let registry = flambeau_ops::registry();
        let mut wrong = Vec::new();
        for (id, _) in registry.column::<Kernel>().iter() {
            let name = registry.schema(id).full_name();
            if !name.contains(&wanted) {
                continue;
            }
            let mut said = 0;
            for round in first..first + rounds {
                let g = &mut Gen::from_seed(round.wrapping_mul(0x1_0001) ^ id.index() as u64);
                let args = draw(&registry, id, g);
                let call = format!("{name} on {args:?}");
                std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/hostile.txt"), &call).unwrap();
                if at.send(Some(call)).is_err() {
                    break;
                }
                if let Some(what) = offence(&registry, id, &args, g) {
                    said += 1;
                    eprintln!("{name} {what}");
                    if said <= 2 {
                        wrong.push(format!("{name} {what} on {args:?}"));
                    }
                }
            }
        }
        // Whoever listens has what it needs.
        let _ = at.send(None);
        wrong
    });
    let mut doing = String::from("nothing yet");
    loop {
        match now.recv_timeout(PATIENCE) {
            Ok(Some(what)) => doing = what,
            Ok(None) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("{doing} takes more than {PATIENCE:?}"),
        }
    }
    let wrong = worker.join().expect("panics are caught");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
