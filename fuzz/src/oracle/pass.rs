//! Checks that a pipeline preserves the meaning of a program.
//!
//! The oracle compares results, arguments after the run, shared storages, prints and the random generator's state bit
//! for bit. Only a pipeline that declares rounding ([`Pipeline::exactness`]) gets a tolerance, and only on arguments
//! for which small changes of the arguments cause small changes of the results.
//!
//! A program that fails must fail in the same way: with the same class of error and first line of the message, after
//! the same writes and prints. Passes have one freedom, as in PyTorch: they may remove an operator, together with its
//! error, if its results are not needed and its only effects are writes of memory that is not read (`dead_errors.rs`
//! computes the accepted observations). No pass may remove, add or reorder errors that the program raises itself
//! ([`RAISED`] starts their messages in generated programs).
//!
//! A pass may also declare classes of errors that it removes as PyTorch's pass does ([`Pipeline::removed_errors`]). A
//! program that ends in such an error continues after the pass, so that only its prints up to the error are compared.

use super::{CheckOutcome, Oracle};
use crate::case::Case;
use crate::dead_errors::allowed_observations;
use crate::observe::{self, Observation, Precision};
use flambeau_analysis::Analyses;
use flambeau_exec::Fault;
use flambeau_ir::types::TypeKind;
use flambeau_ir::verify::verify_with;
use flambeau_ir::{Graph, IValue};
use flambeau_rewrite::control::{Control, InjectedBug};
use flambeau_rewrite::manager::{Checks, Manager};
use flambeau_rewrite::pipeline::Pipeline;
use flambeau_rewrite::rules::Exactness;
use flambeau_tensor::{DType, Scalar, Tensor};
use std::sync::Arc;

/// The tolerance for pipelines that round.
const ROUNDING: f64 = 1e-4;

/// Prefix of the messages of errors that generated programs raise themselves.
pub(crate) const RAISED: &str = "raised ";

/// A function that changes a graph, with the reason if it fails.
pub type GraphFunction = Box<dyn Fn(&mut Graph) -> Result<(), String> + Send + Sync>;

/// Compares the program before and after a pipeline, both on the reference evaluator.
pub struct PassEquivalence {
    name: String,
    pipeline: Pipeline,
    /// Runs instead of the pipeline, which then only states the precision.
    function: Option<GraphFunction>,
    checks: Checks,
    planted: Option<InjectedBug>,
}

impl PassEquivalence {
    /// Creates an oracle for a pipeline.
    pub fn new(name: &str, pipeline: Pipeline) -> Self {
        PassEquivalence {
            name: name.to_owned(),
            pipeline,
            function: None,
            checks: Checks::EveryPass,
            planted: None,
        }
    }

    /// Creates an oracle for a function that must preserve every bit, such as a pass of an embedder in another language. The
    /// graph is verified after it.
    pub fn of_function(name: &str, function: GraphFunction) -> Self {
        PassEquivalence { function: Some(function), ..PassEquivalence::new(name, Pipeline::default()) }
    }

    /// Sets the checks on runs of the pipeline.
    #[must_use]
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Plants a known bug, which the oracle must find.
    #[must_use]
    pub fn planted(mut self, bug: InjectedBug) -> Self {
        self.planted = Some(bug);
        self
    }

    /// Returns the graph after the pipeline, and whether the pipeline changed it.
    fn apply(&self, case: &Case) -> Result<(Arc<Graph>, bool), String> {
        let mut graph: Graph = (*case.graph).clone();
        if let Some(function) = &self.function {
            function(&mut graph).map_err(|why| format!("the pass fails: {why}"))?;
            let verified = verify_with(&graph, &*case.unit).map(|_| ());
            verified.map_err(|errors| format!("the graph after the pass is invalid: {errors}\n{graph}"))?;
            let changed = graph.to_string() != case.graph.to_string();
            return Ok((Arc::new(graph), changed));
        }
        let mut control = Control::new();
        if let Some(bug) = self.planted {
            control = control.with_injected_bug(bug);
        }
        let mut manager = Manager::new().checks(self.checks).unit(&case.unit);
        let report = manager.run_with(&mut graph, &self.pipeline, &mut Analyses::new(), &mut control);
        match report {
            Ok(report) => Ok((Arc::new(graph), report.changed())),
            Err(e) => Err(format!("the pipeline fails: {e}")),
        }
    }

    fn compare(&self, want: &Observation, got: &Observation) -> Result<(), String> {
        let precision = match self.pipeline.exactness() {
            Exactness::Exact => Precision::Bits,
            _ => Precision::Within(ROUNDING),
        };
        observe::same(want, got, precision)
    }
}

impl Oracle for PassEquivalence {
    fn name(&self) -> String {
        format!("pass:{}", self.name)
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        let want = observe::by_reference(&case.graph, case);
        if want.reached_limit() {
            return CheckOutcome::Rejected("a limit ends the run");
        }
        let (graph, changed) = match self.apply(case) {
            Ok(applied) => applied,
            Err(why) => return CheckOutcome::Failed(why),
        };
        // Passes that lower tuples at the interface of the program change its signature.
        let flat = tuples_in_signature(&graph) != tuples_in_signature(&case.graph);
        let got = match flat {
            true => flattened(observe::by_reference(&graph, &flat_inputs(case))),
            false => observe::by_reference(&graph, case),
        };
        let want = if flat { flattened(want) } else { want };
        let Err(why) = self.compare(&want, &got) else {
            return if changed { CheckOutcome::Changed } else { CheckOutcome::Checked };
        };
        if want
            .end
            .as_ref()
            .is_err_and(|e| self.pipeline.removed_errors().any(|start| e.message.starts_with(start)))
            && got.printed.starts_with(&want.printed)
        {
            return CheckOutcome::Rejected("the pass removes the error, as PyTorch's does");
        }
        // Either program may end in `Unsupported` where the other does not: lowering refuses operations that the kernels do
        // not support, and a pass may remove the view that a kernel does not support.
        if [&want, &got].iter().any(|seen| seen.end.as_ref().is_err_and(|e| e.fault == Fault::Unsupported)) {
            return CheckOutcome::Rejected("an operator is not supported");
        }
        // A run can succeed although a forked task failed, so runs without an error are compared with the allowed
        // observations too.
        if want.end.as_ref().err().is_none_or(|e| !e.message.starts_with(RAISED)) {
            let as_seen = |seen| if flat { flattened(seen) } else { seen };
            let allowed = allowed_observations(case);
            if allowed.has_unsupported {
                return CheckOutcome::Rejected("an operator is not supported");
            }
            let seen = allowed.observations;
            // Without the removed error the program may not terminate within the limits.
            let reaches_limit = seen.iter().any(Observation::reached_limit);
            if seen.into_iter().any(|seen| self.compare(&as_seen(seen), &got).is_ok()) {
                return CheckOutcome::Changed;
            }
            if reaches_limit {
                return CheckOutcome::Rejected("a limit ends the run");
            }
        }
        if self.pipeline.exactness() > Exactness::Exact && is_ill_conditioned(case, &want) {
            return CheckOutcome::Rejected("small changes of the arguments change the results");
        }
        CheckOutcome::Failed(format!("{why}\nafter the pipeline:\n{graph}"))
    }
}

/// Returns, for each input and result of a program, whether it is a tuple. A lowered tuple of one element is visible
/// here, although the number of inputs does not change.
fn tuples_in_signature(graph: &Graph) -> (Vec<bool>, Vec<bool>) {
    let is_tuple = |v| matches!(graph.ty(v).kind(), TypeKind::Tuple(_));
    (graph.inputs().map(is_tuple).collect(), graph.outputs().map(is_tuple).collect())
}

/// Returns the case with every tuple among its arguments replaced by its elements.
fn flat_inputs(case: &Case) -> Case {
    Case { inputs: flat(&case.inputs), ..case.clone() }
}

/// Returns the observation without tuples in results and arguments. A lowered tuple prints as its elements, so prints
/// are dropped.
fn flattened(mut seen: Observation) -> Observation {
    seen.printed.clear();
    seen.end = seen.end.map(|results| flat(&results));
    seen.inputs = flat(&seen.inputs);
    seen
}

fn flat(values: &[IValue]) -> Vec<IValue> {
    let mut open: Vec<IValue> = values.iter().rev().cloned().collect();
    let mut all = Vec::new();
    while let Some(value) = open.pop() {
        match &value {
            IValue::Tuple(tuple) => open.extend(tuple.items().iter().rev().cloned()),
            _ => all.push(value),
        }
    }
    all
}

/// The relative change of an argument that shows whether a program is ill-conditioned.
const ILL_CONDITIONED_CHANGE: f64 = 3e-6;

/// Returns whether arguments that differ by rounding lead to results that differ by much more. A pipeline that rounds
/// may then differ by as much. An infinity may become NaN, because sums in another order meet other infinities.
fn is_ill_conditioned(case: &Case, want: &Observation) -> bool {
    if want.end.iter().flatten().chain(&want.inputs).any(has_infinity_or_nan) {
        return true;
    }
    [1.0, -1.0].into_iter().any(|sign| {
        let inputs = case.inputs.iter().map(|v| scaled(v, sign)).collect();
        let moved = observe::by_reference(&case.graph, &Case { inputs, ..case.clone() });
        match (&want.end, &moved.end) {
            (Ok(want), Ok(moved)) => want.iter().zip(moved).any(|(want, moved)| {
                observe::same_value(want, moved, Precision::Within(ROUNDING / 4.0)).is_err()
            }),
            _ => true,
        }
    })
}

fn has_infinity_or_nan(value: &IValue) -> bool {
    let mut found = false;
    value.visit_tensors(|tensor| {
        found |= tensor.to_scalars().is_ok_and(|scalars| {
            scalars.into_iter().any(|x| match x {
                Scalar::Float(x) => !x.is_finite(),
                Scalar::Complex(z) => !(z.re.is_finite() && z.im.is_finite()),
                Scalar::Int(_) | Scalar::Bool(_) => false,
            })
        });
    });
    found
}

/// Returns a value with its floating-point elements scaled up or down by a relative change: the resolution of f16 and bf16, else
/// [`ILL_CONDITIONED_CHANGE`].
fn scaled(value: &IValue, sign: f64) -> IValue {
    let by = |least: f64| 1.0 + sign * least;
    let scale = |tensor: &Tensor| -> Option<Tensor> {
        let factor = by(match tensor.dtype() {
            DType::BF16 => 1.0 / 128.0,
            DType::F16 => 1.0 / 1024.0,
            _ => ILL_CONDITIONED_CHANGE,
        });
        let scalars = tensor.to_scalars().ok()?.into_iter().map(|x| match x {
            Scalar::Float(x) => Scalar::Float(x * factor),
            x => x,
        });
        Tensor::from_scalars(&scalars.collect::<Vec<_>>(), tensor.sizes(), tensor.dtype()).ok()
    };
    match value {
        IValue::Tensor(tensor) => IValue::Tensor(scale(tensor).unwrap_or_else(|| tensor.clone())),
        IValue::Float(x) => IValue::Float(x * by(ILL_CONDITIONED_CHANGE)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::session;
    use flambeau_ir::Source;
    use flambeau_ir::text::parse_graph;

    fn outcome(pass: &str, text: &str, inputs: Vec<IValue>) -> CheckOutcome {
        let session = session();
        let graph = parse_graph(&Source::new("case.ir", text), session.registry()).unwrap();
        PassEquivalence::new(pass, session.pipeline(pass).unwrap()).check(&Case::new(graph, inputs))
    }

    fn numbers() -> IValue {
        IValue::Tensor(Tensor::from_slice(&[1_i32, 2], &[2]).unwrap())
    }

    #[test]
    fn a_tuple_of_one_element_is_unpacked() {
        let text = "graph(%t : (Tensor)):\n  %x : Tensor = prim::TupleUnpack(%t)\n  return (%x)\n";
        assert_eq!(
            outcome("lower_all_tuples", text, vec![IValue::tuple(vec![numbers()])]),
            CheckOutcome::Changed
        );
    }

    #[test]
    fn only_stated_errors_may_vanish() {
        let text = "graph(%x : Tensor):
  %p : Tensor = aten::mul(%x, %x)
  %t : Tensor = aten::tanh_(%p)
  return (%t)
";
        let stated = outcome("remove_mutation", text, vec![numbers()]);
        assert!(
            matches!(stated, CheckOutcome::Rejected(why) if why.contains("removes the error")),
            "{stated:?}"
        );
        let pipeline = |name: &str| session().pipeline(name).unwrap();
        assert_eq!(pipeline("default").removed_errors().count(), 0);
        assert_ne!(pipeline("dce,remove_mutation").removed_errors().count(), 0);
    }
}
