//! Elementwise operators, recognized by observation: results of a large call are compared with calls on single
//! elements.
//!
//! An operator counts as elementwise if, on small tensors of one shape from its sample, every element of its result is
//! bitwise equal to the result of the operator on the corresponding single elements. There is no list: a new
//! elementwise operator takes part by its sample. A single element takes the shortest path of a kernel (no vectors, no
//! division among threads), so it is a reference for the other paths.

use super::layouts::InputLayout;
use super::run::{self, KernelOutcome, Near, Way};
use flambeau_exec::{Gen, Sample};
use flambeau_ir::value::IValue;
use flambeau_ir::{OpId, Registry};
use flambeau_tensor::Tensor;
use flambeau_tensor::simd::{self, Isa};
use std::collections::BTreeMap;

/// Number of small calls that decide whether an operator is elementwise.
const TRIALS: u64 = 8;
/// Number of compared elements of a large call.
const PICKED: usize = 12;

/// Results for operators so far: for elementwise ones, the arguments other than tensors with which this was observed.
/// With other arguments (another diagonal, another dimension) they may not be elementwise.
#[derive(Default)]
pub(super) struct Elementwise {
    known: BTreeMap<OpId, Option<String>>,
}

impl Elementwise {
    /// Compares some elements of a call's result; `false` if the operator is not elementwise.
    pub(super) fn check(
        &mut self,
        registry: &Registry,
        op: OpId,
        args: &[IValue],
        results: &[IValue],
        g: &mut Gen<'_>,
    ) -> Result<bool, String> {
        if !self.is_elementwise(registry, op, args) {
            return Ok(false);
        }
        let Some(result) = shaped_like_arguments(args, results) else { return Ok(false) };
        let n = result.numel();
        let picks: Vec<usize> = match n {
            0 => Vec::new(),
            n if n <= PICKED => (0..n).collect(),
            n => [0, n - 1].into_iter().chain((2..PICKED).map(|_| g.below(n))).collect(),
        };
        for at in picks {
            if let Some(how) = alone(registry, op, args, result, at) {
                return Err(format!("element {at} of {:?} alone: {how}", result.sizes()));
            }
        }
        Ok(true)
    }

    /// Returns whether an operator is elementwise, as far as its samples show.
    pub(super) fn is_elementwise(&mut self, registry: &Registry, op: OpId, args: &[IValue]) -> bool {
        let known = self.known.entry(op).or_insert_with(|| observed(registry, op));
        known.as_ref().is_some_and(|with| *with == others(args))
    }
}

/// Returns the arguments other than tensors, as text.
fn others(args: &[IValue]) -> String {
    args.iter().filter(|arg| !arg.is_tensor()).map(|arg| format!("{arg} ")).collect()
}

fn observed(registry: &Registry, op: OpId) -> Option<String> {
    let (schema, sample) = (registry.schema(op), registry.facet::<Sample>(op)?);
    if schema.is_mutable() {
        return None;
    }
    let (mut agreed, mut with) = (0, String::new());
    for seed in 0..TRIALS {
        let mut g = Gen::from_seed(seed);
        // At most 6 elements: fewer than a vector plus a remainder, because kernels fail most often at that size.
        let mut sizes = |_: &mut Gen<'_>, rank: usize| {
            let mut all = vec![1; rank];
            all.iter_mut().take(1).for_each(|n| *n = 2 + (seed % 2) as i64);
            all.iter_mut().skip(1).next_back().into_iter().for_each(|n| *n = 3 - (seed % 2) as i64);
            all
        };
        let args = sample.make_sized(schema, &mut g, &mut sizes)?;
        let Some(results) = call(registry, op, &args) else { continue };
        let Some(result) = shaped_like_arguments(&args, &results) else { continue };
        if result.rank() == 0 {
            continue;
        }
        if (0..result.numel()).any(|at| alone(registry, op, &args, result, at).is_some()) {
            return None;
        }
        agreed += 1;
        with = others(&args);
    }
    (agreed * 3 >= TRIALS).then_some(with)
}

fn call(registry: &Registry, op: OpId, args: &[IValue]) -> Option<Vec<IValue>> {
    let way =
        Way { layout: InputLayout::RowMajor, isa: simd::limit_isa(Isa::Avx512), threads: 1, twice: false };
    match run::call(registry, op, args, way, &mut Gen::from_seed(0)) {
        KernelOutcome::Results(results) => Some(results),
        _ => None,
    }
}

/// Returns the only result, if it and all tensors among the arguments have the same sizes.
fn shaped_like_arguments<'a>(args: &[IValue], results: &'a [IValue]) -> Option<&'a Tensor> {
    let [IValue::Tensor(result)] = results else { return None };
    let mut tensors = args.iter().filter_map(IValue::as_tensor).peekable();
    tensors.peek()?;
    let lists = args
        .iter()
        .any(|arg| matches!(arg, IValue::List(list) if list.to_tensors().is_some_and(|t| !t.is_empty())));
    (!lists && tensors.all(|t| t.sizes() == result.sizes())).then_some(result)
}

/// Returns how the result of the operator on the single elements at one position differs from the result's element
/// there.
fn alone(registry: &Registry, op: OpId, args: &[IValue], result: &Tensor, at: usize) -> Option<String> {
    let element = |t: &Tensor| -> flambeau_tensor::Result<IValue> {
        let ones = vec![1; t.rank()];
        let made = t.reshape(&[-1])?.narrow(0, at as i64, 1)?.reshape(&ones)?;
        Ok(IValue::Tensor(made))
    };
    let single: Option<Vec<IValue>> = args
        .iter()
        .map(|arg| match arg {
            IValue::Tensor(t) => element(t).ok(),
            other => Some(other.clone()),
        })
        .collect();
    let results = call(registry, op, &single?)?;
    run::difference(&[element(result).ok()?], &results, Near::Exact)
}
