//! Comparison of composite operators with the bodies by which graphs are differentiated: a differentiated graph runs the body
//! instead of the operator, so both must have the same results, also for infinite numbers and NaN.

use super::derivatives::{call_of, mapped, run};
use flambeau::exec::{Gen, Sample};
use flambeau::ir::OpId;
use flambeau::ir::schema::Argument;
use flambeau::rewrite::autodiff::{GradientEntry, GradientTable};
use flambeau::tensor::DType;
use flambeau::{Fault, IValue, Session, Tensor};

/// Samples per operator; every second one has special numbers.
const TRIALS: u64 = 8;

/// Operators whose body is compared on finite samples only: its products are others than those of the algorithm, so that infinite
/// numbers and NaN spread to other elements.
const FINITE: &[&str] = &[
    "aten::linalg_cond",
    "aten::linalg_householder_product",
    "aten::linalg_lu_solve",
    "aten::lu_solve",
    "aten::orgqr",
];

/// Replaces some elements by numbers for which arithmetic is not continuous.
fn with_specials(t: &Tensor, g: &mut Gen<'_>) -> Tensor {
    const SPECIAL: [f64; 5] = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, -0.0];
    let mut values = t.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    for value in &mut values {
        if g.float(0.0, 1.0) < 0.2 {
            *value = SPECIAL[(g.float(0.0, SPECIAL.len() as f64) as usize).min(SPECIAL.len() - 1)];
        }
    }
    Tensor::from_slice(&values, t.sizes()).unwrap().to_dtype(t.dtype()).unwrap()
}

/// Returns the difference between the results of the operator and those of its body; `None` if the sample cannot be compared.
/// Floating-point arguments have the dtype, if one is given.
fn difference(session: &Session, op: OpId, dtype: Option<DType>, seed: u64) -> Option<Result<(), String>> {
    let registry = session.registry();
    let schema = registry.schema(op);
    let mut g = Gen::from_seed(seed * 7919 + 11);
    let args = registry.facet::<Sample>(op).unwrap().make(schema, &mut g);
    let converted = |t: &Tensor| match dtype {
        Some(dtype) if t.dtype().is_floating() => t.to_dtype(dtype).unwrap(),
        _ => t.clone(),
    };
    let args: Vec<IValue> = args.iter().map(|arg| mapped(arg, &mut |t| converted(t))).collect();
    let is_special = seed % 2 == 1 && !FINITE.contains(&schema.name.as_str());
    let prepare = |t: &Tensor, g: &mut Gen<'_>| match is_special && t.dtype().is_floating() {
        true => with_specials(t, g),
        false => t.clone_data().unwrap(),
    };
    let args: Vec<IValue> = args.iter().map(|arg| mapped(arg, &mut |t| prepare(t, &mut g))).collect();
    let (first, again) = (run(registry, op, &args)?, run(registry, op, &args)?);
    same(&first, &again).ok()?;
    let leaf = |t: &Tensor| {
        let own = t.clone_data().unwrap();
        // Many operators refuse complex numbers that require gradients, as in PyTorch.
        own.set_requires_grad(own.dtype().is_floating());
        own
    };
    let args: Vec<IValue> = args.iter().map(|arg| mapped(arg, &mut |t| leaf(t))).collect();
    let entry = session.program_of(call_of(registry, op, &args)).ok()?.entry("forward").ok()?;
    let found = match entry.call_on(&args, &[], &mut session.host()) {
        Ok(IValue::Tuple(tuple)) if schema.returns.len() != 1 => tuple.into_items(),
        Ok(one) => vec![one],
        Err(error) if matches!(error.fault, Fault::Unsupported | Fault::Misuse) => return None,
        Err(error) => return Some(Err(error.message.to_string())),
    };
    Some(same(&first, &found))
}

/// Compares the tensors of results, up to rounding.
fn same(want: &[IValue], got: &[IValue]) -> Result<(), String> {
    let tensors = |values: &[IValue]| {
        let mut found = Vec::new();
        values.iter().for_each(|value| value.visit_tensors(|t| found.push(t.clone())));
        found
    };
    let (want, got) = (tensors(want), tensors(got));
    if want.len() != got.len() {
        return Err(format!("{} tensors instead of {}", got.len(), want.len()));
    }
    for (i, (want, got)) in want.iter().zip(&got).enumerate() {
        if (want.sizes(), want.dtype()) != (got.sizes(), got.dtype()) {
            let of = |t: &Tensor| format!("{} {:?}", t.dtype(), t.sizes());
            return Err(format!("result {i} is {} instead of {}", of(got), of(want)));
        }
        let tolerance = match want.dtype() {
            DType::F64 => 1e-9,
            // Bodies round after each of their operators.
            DType::F16 => 1e-2,
            DType::BF16 => 5e-2,
            _ => 1e-3,
        };
        let values = |t: &Tensor| {
            let real = if t.dtype().is_complex() { t.view_as_real().ok()? } else { t.clone() };
            real.to_dtype(DType::F64).ok()?.to_vec::<f64>().ok()
        };
        let (Some(want), Some(got)) = (values(want), values(got)) else { continue };
        let scale = want.iter().filter(|x| x.is_finite()).fold(1.0_f64, |scale, x| scale.max(x.abs()));
        let agrees = |(a, b): &(&f64, &f64)| {
            a == b || a.is_nan() && b.is_nan() || (**a - **b).abs() <= tolerance * scale
        };
        if let Some((want, got)) = want.iter().zip(&got).find(|pair| !agrees(pair)) {
            return Err(format!("result {i} has {got} instead of {want}"));
        }
    }
    Ok(())
}

#[test]
fn bodies_compute_what_their_operators_compute() {
    let session = Session::builder().standard().differentiated_after(0).build().unwrap();
    let registry = session.registry();
    let table = GradientTable::from_registry(registry).unwrap();
    let (mut untried, mut wrong) = (Vec::new(), Vec::new());
    for op in registry.ids() {
        let schema = registry.schema(op);
        let is_body = matches!(table.of(registry, op), Some(GradientEntry::Body(_)));
        if !is_body || schema.args.iter().any(Argument::is_write) || registry.facet::<Sample>(op).is_none() {
            continue;
        }
        let own = (0..TRIALS).map(|seed| (None, seed));
        let others = [DType::F16, DType::BF16, DType::C64].map(|dtype| (Some(dtype), 0));
        let trials = own.chain(others);
        let found: Vec<_> = trials
            .filter_map(|(dtype, seed)| Some(((dtype, seed), difference(&session, op, dtype, seed)?)))
            .collect();
        untried.extend(found.is_empty().then(|| schema.full_name()));
        if let Some(((dtype, seed), Err(why))) = found.into_iter().find(|(_, found)| found.is_err()) {
            let dtype = dtype.map_or(String::new(), |dtype| format!(" in {dtype}"));
            wrong.push(format!("{} (sample {seed}{dtype}): {why}", schema.full_name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(untried.is_empty(), "never compared: {untried:?}");
}
