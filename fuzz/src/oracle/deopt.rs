//! Checks that an executor never changes results: profiled runs, plans, and plans whose guards fail.
//!
//! One executor runs the case several times, also on longer tensors, so that sizes become symbols, and on other numbers
//! and elements, so that guards of computed values fail by themselves. Then guards of every plan are forced to fail at
//! every second check: each guard alone, then all of them together. Each run is compared with the reference evaluator bit
//! for bit. As under passes, an operator whose results are not needed may be removed with its error.
//!
//! Two executors do this ([`PlanMode`]): one as sessions have it, which drops guards that fail often, and one whose plans keep
//! a guard on every tensor and whose continuations are soon specialized. Most guards of the first follow from the
//! inputs and are eliminated, so the second forces many more failures, at every point of the program.
//!
//! Generated programs have few values whose sizes depend on numbers, so the same is done with a program that first
//! narrows a tensor to the length in a new argument, and also returns that length as the tensor has it.

use super::{CheckOutcome, Oracle, RAISED};
use crate::case::{Case, deep_copy};
use crate::dead_errors::{Allowed, allowed_observations};
use crate::observe::{self, Observation, Precision};
use crate::planted::PlanBug;
use flambeau_exec::vm::{CompiledProgram, Vm};
use flambeau_exec::{ExecError, Fault, Host};
use flambeau_executor::{
    CallOutcome, CompileStage, Executor, ExecutorSettings, PIPELINES, Pipelines, PlanCache, RunMode,
    StageRunner,
};
use flambeau_ir::{At, Graph, IValue, Type};
use flambeau_rewrite::{Checks, PassLibrary, PipelineError};
use flambeau_tensor::Tensor;
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How plans are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanMode {
    /// As in sessions.
    Sessions,
    /// With a guard of every tensor, which stays when it fails, and with specialized continuations.
    EveryGuard,
}

impl PlanMode {
    const ALL: [PlanMode; 2] = [PlanMode::Sessions, PlanMode::EveryGuard];

    fn settings(self) -> ExecutorSettings {
        match self {
            PlanMode::Sessions => ExecutorSettings::default(),
            PlanMode::EveryGuard => ExecutorSettings {
                max_failures: u32::MAX,
                hot_continuation: 2,
                max_compilations: u32::MAX,
                ..ExecutorSettings::default()
            },
        }
    }

    /// Returns the pipelines of the stages.
    fn pipelines(self) -> [String; 2] {
        let [profiled, specialized] = PIPELINES.map(|(_, text)| text);
        let specialized = match self {
            PlanMode::Sessions => specialized.to_owned(),
            PlanMode::EveryGuard => {
                let rest = specialized.strip_prefix("guards").unwrap_or(specialized);
                format!("{GUARDS}{}", rest.replace(",eliminate_guards", ""))
            }
        };
        [profiled.to_owned(), specialized]
    }
}

/// The pipeline `guards` without the elimination of guards.
const GUARDS: &str = "insert_guards,move_guards_to_definitions,coalesce_guards,insert_bailouts";

/// Compares executors with the reference evaluator.
pub struct PlansAgree {
    library: PassLibrary,
    planted: Option<PlanBug>,
    /// Number of failed guards so far.
    failures: AtomicU64,
    /// Number of specialized continuations so far.
    continuations: AtomicU64,
}

impl PlansAgree {
    /// Creates the oracle with the passes of a library.
    ///
    /// # Errors
    /// If the library lacks a pass of the executor's stages.
    pub fn new(library: &PassLibrary) -> Result<PlansAgree, String> {
        for text in PlanMode::ALL.iter().flat_map(|way| way.pipelines()) {
            flambeau_rewrite::Pipeline::parse(&text, library).map_err(|e| e.to_string())?;
        }
        Ok(PlansAgree {
            library: library.clone(),
            planted: None,
            failures: AtomicU64::new(0),
            continuations: AtomicU64::new(0),
        })
    }

    /// Plants a bug in plans, which the oracle must find.
    #[must_use]
    pub(crate) fn planted(self, bug: PlanBug) -> PlansAgree {
        PlansAgree { planted: Some(bug), ..self }
    }
}

impl Oracle for PlansAgree {
    fn name(&self) -> String {
        "deopt".into()
    }

    /// Forced or not.
    fn failed_guards(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        let outcome = self.check_one(case);
        match narrowed(case) {
            Some(narrowed) if !matches!(outcome, CheckOutcome::Failed(_)) => {
                match self.check_one(&narrowed) {
                    CheckOutcome::Failed(why) => CheckOutcome::Failed(format!(
                        "{why}\nof the program that narrows a tensor:\n{}",
                        narrowed.to_text()
                    )),
                    _ => outcome,
                }
            }
            _ => outcome,
        }
    }
}

impl PlansAgree {
    fn check_one(&self, case: &Case) -> CheckOutcome {
        let variant = |change: fn(&IValue) -> IValue| Case {
            inputs: case.inputs.iter().map(change).collect(),
            ..case.clone()
        };
        let (other, longer) = (variant(other), variant(longer));
        let subjects: Vec<DeoptCase<'_>> =
            [case, &other, &longer].into_iter().filter_map(DeoptCase::new).collect();
        if subjects.is_empty() {
            return CheckOutcome::Rejected("a limit ends the run");
        }
        let mut outcome = CheckOutcome::Checked;
        for way in PlanMode::ALL {
            match self.check_way(case, way, &subjects) {
                Ok(0) => {}
                Ok(_) => outcome = CheckOutcome::Changed,
                Err(why) => return CheckOutcome::Failed(why),
            }
        }
        outcome
    }

    /// Returns the number of runs of plans.
    fn check_way(&self, case: &Case, way: PlanMode, subjects: &[DeoptCase<'_>]) -> Result<u64, String> {
        let [profiled, specialized] = way.pipelines();
        let checks = if way == PlanMode::Sessions { Checks::EveryPass } else { Checks::Off };
        let unit = Arc::clone(&case.unit);
        let stages = Pipelines::of_texts([&profiled, &specialized], &self.library, unit, checks);
        let mut runs = Runs {
            executor: Arc::new(Executor::new(Arc::clone(&case.graph), way.settings())),
            cache: PlanCache::new(),
            machine: Vm::new(CompiledProgram::new(case.unit.clone())),
            optimizer: Stages { stages: stages.map_err(|e| e.to_string())?, planted: self.planted },
            plans: 0,
        };
        let found = runs.all(subjects);
        let plans = runs.executor.plans();
        let failures = plans.iter().map(|plan| u64::from(plan.code().failures())).sum();
        self.failures.fetch_add(failures, Ordering::Relaxed);
        let specialized = plans.iter().map(|plan| {
            let positions = 0..plan.code().bailouts().len();
            positions.filter(|&at| plan.specialized_continuation(at).is_some()).count() as u64
        });
        self.continuations.fetch_add(specialized.sum(), Ordering::Relaxed);
        found.map(|()| runs.plans)
    }
}

/// A case, and the results and effects of the reference evaluator.
struct DeoptCase<'c> {
    case: &'c Case,
    wanted: Observation,
    /// What else is accepted, computed when a run first differs: that takes many runs, and every guard may fail.
    allowed: OnceCell<Allowed>,
}

impl DeoptCase<'_> {
    /// Returns `None` if a limit ends the run.
    fn new(case: &Case) -> Option<DeoptCase<'_>> {
        let wanted = observe::by_reference(&case.graph, case);
        (!wanted.reached_limit()).then_some(DeoptCase { case, wanted, allowed: OnceCell::new() })
    }

    fn compare(&self, got: &Observation) -> Result<(), String> {
        let Err(why) = observe::same(&self.wanted, got, Precision::Bits) else { return Ok(()) };
        if got.end.as_ref().is_err_and(|e| e.fault == Fault::Unsupported) {
            return Ok(());
        }
        if self.wanted.end.as_ref().err().is_none_or(|e| !e.message.starts_with(RAISED)) {
            let allowed = self.allowed.get_or_init(|| allowed_observations(self.case));
            let seen = &allowed.observations;
            let agrees = |seen: &Observation| observe::same(seen, got, Precision::Bits).is_ok();
            if allowed.has_unsupported || seen.iter().any(|seen| seen.reached_limit() || agrees(seen)) {
                return Ok(());
            }
        }
        Err(why)
    }
}

/// The stages of the executor, with a planted bug.
struct Stages {
    stages: Pipelines,
    planted: Option<PlanBug>,
}

impl StageRunner for Stages {
    type Error = Box<PipelineError>;

    fn optimize(&self, graph: &Graph, stage: CompileStage) -> Result<Graph, Self::Error> {
        let mut graph = self.stages.optimize(graph, stage)?;
        if let Some(bug) = self.planted.filter(|_| stage == CompileStage::Specialized) {
            bug.apply_bug(&mut graph);
        }
        Ok(graph)
    }
}

struct Runs {
    executor: Arc<Executor>,
    cache: PlanCache,
    machine: Vm,
    optimizer: Stages,
    /// Number of runs of plans.
    plans: u64,
}

impl Runs {
    fn all(&mut self, subjects: &[DeoptCase<'_>]) -> Result<(), String> {
        // The first three runs of the first arguments make a plan and run it.
        let calls = [0, 0, 0, 1, 2, 2, 0, 1, 2].into_iter().filter_map(|i| subjects.get(i));
        for (number, subject) in calls.enumerate() {
            self.call(subject).map_err(|why| format!("in call {number}, {why}"))?;
        }
        for (number, plan) in self.executor.plans().into_iter().enumerate() {
            let code = plan.code();
            let guards = code.bailouts().len();
            for position in 0..guards {
                code.force_bailout(position, 1);
                let found = subjects.iter().try_for_each(|subject| self.call(subject));
                code.force_bailout(position, 0);
                found.map_err(|why| {
                    format!("with guard {position} of plan {number} failing, {why}\n{}", self.plans_text())
                })?;
            }
            (0..guards).for_each(|position| code.force_bailout(position, 2));
            let found = subjects.iter().chain(subjects).try_for_each(|subject| self.call(subject));
            (0..guards).for_each(|position| code.force_bailout(position, 0));
            found.map_err(|why| {
                format!("with all guards of plan {number} failing, {why}\n{}", self.plans_text())
            })?;
        }
        Ok(())
    }

    /// Returns the graphs of the current plans: the failed call may have run another one than that whose guards failed.
    fn plans_text(&self) -> String {
        self.executor.plans().iter().map(|plan| plan.graph().to_string()).collect::<Vec<_>>().join("\n")
    }

    /// Runs a call and compares it with the reference evaluator, unless the executor declines it.
    fn call(&mut self, subject: &DeoptCase<'_>) -> Result<(), String> {
        let (mut declined, mut failed) = (false, None);
        let count = subject.case.graph.outputs().len();
        let got = observe::run(subject.case, |mut inputs, host: &mut Host| {
            match self.executor.call(&mut inputs, &mut self.cache, &mut self.machine, host, &self.optimizer) {
                CallOutcome::Ran { result, how, failure } => {
                    self.plans += u64::from(how == RunMode::Specialized);
                    failed = failure;
                    result.map(|value| results(value, count))
                }
                CallOutcome::Declined { failure, .. } => {
                    (declined, failed) = (true, failure);
                    Ok::<_, ExecError>(Vec::new())
                }
            }
        });
        if let Some(failure) = failed {
            return Err(format!("a stage fails: {failure}"));
        }
        if declined { Ok(()) } else { subject.compare(&got) }
    }
}

/// Returns the results of a program with `count` outputs from the executor's one value.
fn results(value: IValue, count: usize) -> Vec<IValue> {
    match value {
        IValue::Tuple(values) if count != 1 => values.items().to_vec(),
        value => vec![value],
    }
}

/// Returns a case with one more argument, the length to which the program first narrows a tensor in dimension 0, and one
/// more result, the size of the narrowed tensor.
fn narrowed(case: &Case) -> Option<Case> {
    let is_long = |v: &IValue| v.as_tensor().is_some_and(|t| t.sizes().first().is_some_and(|&n| n > 1));
    let at = case.inputs.iter().position(is_long)?;
    let mut graph = (*case.graph).clone();
    let narrow = graph.registry().lookup("aten::narrow")?;
    let size = graph.registry().lookup("aten::size.int")?;
    let (root, tensor) = (graph.root(), graph.inputs().nth(at)?);
    if !graph.ty(tensor).is_tensor() {
        return None;
    }
    let mut editor = graph.edit();
    let length = editor.add_input(Type::INT);
    editor.at(At::start(root));
    let zero = editor.constant(IValue::Int(0));
    let part = editor.value(narrow, &[tensor, zero, zero, length], Type::TENSOR);
    let node = editor.graph().def(part);
    editor.replace_uses_after(node, tensor, part);
    editor.at(At::end(root));
    let size = editor.value(size, &[part, zero], Type::INT);
    editor.add_output(size);
    let mut inputs = case.inputs.clone();
    inputs.push(IValue::Int(*inputs[at].as_tensor()?.sizes().first()?));
    Some(Case { inputs, ..case.with_graph(graph) })
}

/// Returns a value of the same type and sizes with other numbers and elements in another order.
fn other(value: &IValue) -> IValue {
    let turned = |t: &Tensor| -> Option<Tensor> {
        let mut scalars = t.to_scalars().ok()?;
        scalars.reverse();
        let turned = Tensor::from_scalars(&scalars, t.sizes(), t.dtype()).ok()?;
        turned.set_requires_grad(t.requires_grad());
        Some(turned)
    };
    match value {
        IValue::Int(n) => IValue::Int(n.wrapping_sub(1)),
        IValue::Float(x) => IValue::Float(x + 1.0),
        IValue::Bool(b) => IValue::Bool(!b),
        IValue::Tensor(t) => turned(t).map_or_else(|| deep_copy(value), IValue::Tensor),
        other => deep_copy(other),
    }
}

/// Returns a value like `value` with tensors that are twice as long in the first dimension; other values unchanged.
fn longer(value: &IValue) -> IValue {
    let longer = |t: &Tensor| -> Option<Tensor> {
        let (&n, rest) = t.sizes().split_first()?;
        let mut sizes = vec![n.checked_mul(2)?];
        sizes.extend(rest);
        let mut scalars = t.to_scalars().ok()?;
        scalars.extend_from_within(..);
        let longer = Tensor::from_scalars(&scalars, &sizes, t.dtype()).ok()?;
        longer.set_requires_grad(t.requires_grad());
        Some(longer)
    };
    match value {
        IValue::Tensor(t) => longer(t).map_or_else(|| deep_copy(value), IValue::Tensor),
        other => deep_copy(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Campaign;

    #[test]
    fn guards_fail_in_most_programs() {
        let session = crate::selftest::session();
        let oracle = PlansAgree::new(session.passes()).unwrap();
        let campaign = Campaign::new(session.registry(), 5);
        let mut with_failures = 0;
        for number in 0..12 {
            let before = oracle.failed_guards();
            if let CheckOutcome::Failed(why) = oracle.check(&campaign.case(number)) {
                panic!("case {number}: {why}");
            }
            with_failures += u32::from(oracle.failed_guards() > before);
        }
        assert!(with_failures >= 6, "{with_failures}");
        let continuations = oracle.continuations.load(Ordering::Relaxed);
        assert!(continuations >= 20, "{continuations} continuations are specialized");
    }
}
