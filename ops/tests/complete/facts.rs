//! Soundness and totality of `ResultShapes` and `Dtype` rules of every operator, on sampled and boundary arguments, with
//! complete or partial facts.
//!
//! `FLAMBEAU_TRIALS` multiplies the calls per operator, `FLAMBEAU_OPS` selects operators by a substring of the name,
//! `FLAMBEAU_SEED` is the seed.

use flambeau_analysis::ResultShapes;
use flambeau_analysis::shape::{Dim, TensorFact};
use flambeau_exec::soundness::{TrialCount, try_operator};
use flambeau_exec::{Kernel, KernelError, Sample};
use flambeau_ir::{OpDef, RegistryBuilder};
use flambeau_tensor::reduce;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn claims_of_rules_hold() {
    let registry = flambeau_ops::registry();
    let times = number("FLAMBEAU_TRIALS").unwrap_or(1);
    let wanted = std::env::var("FLAMBEAU_OPS").unwrap_or_default();
    let base = TrialCount { seed: number("FLAMBEAU_SEED").unwrap_or(1), ..TrialCount::default() };
    let effort = TrialCount {
        samples: base.samples * times,
        borders: base.borders * times,
        arbitrary: base.arbitrary * times,
        ..base
    };
    let (mut wrong, mut operators, mut checked, mut raised) = (Vec::new(), 0, 0, 0);
    for id in registry.ids().filter(|&id| registry.schema(id).full_name().contains(&wanted)) {
        let trial = try_operator(&registry, id, effort);
        (operators, checked, raised) = (operators + 1, checked + trial.checked, raised + trial.raised);
        for failure in &trial.failures {
            eprintln!("FAIL {}: {failure}", trial.operator);
            wrong.push(format!("{}: {failure}", trial.operator));
        }
    }
    eprintln!("{operators} operators, {checked} calls checked, {raised} raised");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 10_000 || !wanted.is_empty(), "only {checked} calls were checked");
}

/// Tests an operator that sums all elements (or returns them, with `keep`) with a given shape rule.
fn planted(shape: ResultShapes) -> Vec<String> {
    let op = OpDef::new("planted::total(Tensor self, bool keep) -> Tensor")
        .with(shape)
        .with(Kernel::new(|cx| {
            let x = cx.tensor(0)?.clone();
            let result = if cx.boolean(1)? { x } else { reduce::sum(&x, None, false, None)? };
            cx.ret(result);
            Ok::<(), KernelError>(())
        }))
        .with(Sample::tensors(1).floats());
    let mut builder = RegistryBuilder::new();
    builder.add([op]);
    let registry = builder.build().expect("one operator");
    let id = registry.lookup("planted::total").expect("it was added");
    try_operator(&registry, id, TrialCount::default()).failures
}

#[test]
fn a_wrong_rank_is_detected() {
    let right = || ResultShapes::either(1, ResultShapes::like(0), ResultShapes::scalar());
    assert_eq!(planted(right()), Vec::<String>::new());
    let off = ResultShapes::from(move |cx| {
        let mut fact = right().result(0, cx)?.as_tensor()?.clone();
        let dims = fact.dims.as_mut()?;
        dims.insert(0, Dim::Known(1));
        Some(fact)
    });
    assert!(planted(off).iter().any(|f| f.contains("rank is 0, inferred 1")));
}

#[test]
fn a_panicking_rule_is_detected() {
    let indexing = ResultShapes::from(|cx| cx.dims(0).map(|dims| TensorFact::of_dims([dims[0]])));
    assert!(planted(indexing).iter().any(|f| f.contains("a rule panics")));
}
