//! Calls of one operator in several ways, and how results are compared.

use super::layouts::{InputLayout, copied};
use flambeau_exec::{Gen, Host, Kernel};
use flambeau_ir::value::IValue;
use flambeau_ir::{AliasRule, OpId, Registry};
use flambeau_tensor::simd::{self, Isa};
use flambeau_tensor::{DType, Fault, MemoryBudget, Tensor, threads};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Limit on the bytes of the tensors of one call.
const MEMORY: usize = 512 << 20;

/// Outcome of a call.
pub(super) enum KernelOutcome {
    /// Results, followed by the arguments that the call may have written.
    Results(Vec<IValue>),
    /// The operator refuses the arguments.
    Refused(String),
    /// A panic, or an error of the kind of internal defects.
    Defect(String),
}

/// Conditions of a call.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) layout: InputLayout,
    pub(super) isa: Isa,
    pub(super) threads: usize,
    /// Whether the call is repeated with the same arguments; the results are those of the second call.
    pub(super) twice: bool,
}

/// Returns the instruction sets that may be used, the best first.
pub(super) fn instruction_sets() -> Vec<Isa> {
    let mut sets: Vec<Isa> =
        [Isa::Avx512, Isa::Avx2, Isa::Baseline].into_iter().map(simd::limit_isa).collect();
    sets.dedup();
    if let Some(best) = sets.first() {
        simd::limit_isa(*best);
    }
    sets
}

/// Calls an operator on copies of the arguments.
pub(super) fn call(
    registry: &Registry,
    op: OpId,
    args: &[IValue],
    way: Way,
    g: &mut Gen<'_>,
) -> KernelOutcome {
    let schema = registry.schema(op);
    let Some(kernel) = registry.facet::<Kernel>(op) else {
        return KernelOutcome::Refused("no kernel".into());
    };
    let written = written(registry, op, args);
    let given: Vec<IValue> = args
        .iter()
        .enumerate()
        .map(|(i, arg)| {
            // Elements that share memory cannot be written.
            let layout = match way.layout {
                InputLayout::Drawn { .. } if written.contains(&i) => InputLayout::Drawn { repeated: false },
                other => other,
            };
            copied(arg, layout, g)
        })
        .collect();
    simd::limit_isa(way.isa);
    let budget = MemoryBudget::new(MEMORY);
    let once = || {
        let mut args = given.clone();
        threads::with(way.threads, || budget.run(|| kernel.call_on(schema, &mut args, &mut Host::quiet())))
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        if way.twice {
            once()?;
        }
        once()
    }));
    match result {
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            KernelOutcome::Defect(format!("panics: {}", text.unwrap_or_default()))
        }
        Ok(Err(error)) if matches!(error.fault(), Fault::Internal) => {
            KernelOutcome::Defect(format!("reports an internal error: {error}"))
        }
        Ok(Err(error)) => KernelOutcome::Refused(error.to_string()),
        Ok(Ok(mut results)) => {
            results.extend(written.iter().map(|&i| given[i].clone()));
            KernelOutcome::Results(results)
        }
    }
}

/// Returns the indices of the arguments that a call writes, ascending: those that the schema marks, and those that the
/// operator's alias rule names (running statistics in training).
pub(super) fn written(registry: &Registry, op: OpId, args: &[IValue]) -> Vec<usize> {
    let schema = registry.schema(op);
    let rule = registry.facet::<AliasRule>(op).copied();
    let unmarked: Vec<usize> = rule
        .map_or_else(Vec::new, |rule| rule.written_arguments(schema, &|i| args.get(i)?.as_bool()).collect());
    (0..args.len()).filter(|i| schema.is_write(*i) || unmarked.contains(i)).collect()
}

/// Permitted difference of two results, relative to the largest magnitude of their tensor.
#[derive(Clone, Copy)]
pub(super) enum Near {
    /// No difference of bits; all NaN count as equal.
    Exact,
    /// The difference of sums in another order.
    Sums,
}

/// Returns the first difference of two lists of results.
pub(super) fn difference(got: &[IValue], want: &[IValue], near: Near) -> Option<String> {
    if got.len() != want.len() {
        return Some(format!("{} results instead of {}", got.len(), want.len()));
    }
    got.iter().zip(want).enumerate().find_map(|(i, (got, want))| {
        let what = match (got, want) {
            (IValue::Tensor(a), IValue::Tensor(b)) => tensors(a, b, near),
            (IValue::List(a), IValue::List(b)) => {
                let (a, b) = (a.to_vec(), b.to_vec());
                difference(&a, &b, near)
            }
            (IValue::Tuple(a), IValue::Tuple(b)) => difference(a.items(), b.items(), near),
            (IValue::Float(a), IValue::Float(b)) => {
                let close =
                    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-4 * a.abs().max(b.abs());
                (!close).then(|| format!("{a} instead of {b}"))
            }
            (a, b) => {
                let (a, b) = (format!("{a:?}"), format!("{b:?}"));
                (a != b && !a.contains("0x")).then(|| format!("{a} instead of {b}"))
            }
        };
        what.map(|what| format!("result {i}: {what}"))
    })
}

fn tensors(got: &Tensor, want: &Tensor, near: Near) -> Option<String> {
    if got.sizes() != want.sizes() || got.dtype() != want.dtype() {
        let shown = |t: &Tensor| format!("{}{:?}", t.dtype().ir_name(), t.sizes());
        return Some(format!("{} instead of {}", shown(got), shown(want)));
    }
    let (Ok(a), Ok(b)) = (got.to_bytes(), want.to_bytes()) else {
        return Some("a result cannot be read".to_owned());
    };
    let dtype = got.dtype();
    if a == b {
        return None;
    }
    let (Ok(a), Ok(b)) = (got.to_scalars(), want.to_scalars()) else {
        return Some("a result cannot be read".to_owned());
    };
    let relative = match (near, dtype) {
        (Near::Exact, _) => 0.0,
        (Near::Sums, DType::F64 | DType::C128) => 1e-9,
        (Near::Sums, DType::F32 | DType::C64) => 3e-4,
        (Near::Sums, DType::F16) => 2e-2,
        (Near::Sums, DType::BF16) => 1e-1,
        _ => 0.0,
    };
    let parts = |s: &flambeau_tensor::Scalar| {
        let z = s.to_complex();
        [z.re, z.im]
    };
    // Differences of nearly equal numbers are compared relative to these numbers, which are about 1.
    let scale = b.iter().flat_map(parts).map(f64::abs).filter(|v| v.is_finite()).fold(1e-2, f64::max);
    let same = |x: f64, y: f64| {
        x.to_bits() == y.to_bits()
            || x.is_nan() && y.is_nan()
            || matches!(near, Near::Sums) && (x == y || (x - y).abs() <= relative * (y.abs() + scale))
    };
    let at = a.iter().zip(&b).position(|(x, y)| {
        x != y && dtype.is_integral(true) || {
            let ([xr, xi], [yr, yi]) = (parts(x), parts(y));
            !same(xr, yr) || !same(xi, yi)
        }
    })?;
    Some(format!("element {at} of {:?} is {:?} instead of {:?}", got.sizes(), a[at], b[at]))
}
