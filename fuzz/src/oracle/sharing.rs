//! Checks that a pipeline preserves the meaning of a program whose arguments and constants share memory.

use super::{CheckOutcome, Oracle};
use crate::case::Case;
use crate::dead_errors::allowed_observations;
use crate::observe::{self, Observation, Precision};
use crate::sharing::Sharing;
use flambeau_analysis::Analyses;
use flambeau_exec::bytecode::Code;
use flambeau_exec::reference;
use flambeau_exec::vm::{CompiledProgram, Vm};
use flambeau_ir::Graph;
use flambeau_rewrite::control::Control;
use flambeau_rewrite::manager::Manager;
use flambeau_rewrite::pipeline::Pipeline;
use flambeau_rewrite::rules::Exactness;
use std::sync::Arc;

/// The tolerance for pipelines that round.
const ROUNDING: f64 = 1e-4;

/// Compares the program before a pipeline, on the reference evaluator, with the program after it, on both evaluators, in
/// every form of [`Sharing`].
pub struct AliasedInputsAgree {
    name: String,
    pipeline: Pipeline,
}

/// A run on the given arguments.
type Run = fn(&Arc<Graph>, &Case) -> Observation;

impl AliasedInputsAgree {
    /// Creates an oracle for a pipeline.
    pub fn new(name: &str, pipeline: Pipeline) -> Self {
        AliasedInputsAgree { name: name.to_owned(), pipeline }
    }

    fn check_aliasing(&self, case: &Case, sharing: Sharing) -> CheckOutcome {
        const TOO_FEW_TENSORS: CheckOutcome = CheckOutcome::Rejected("too few tensors");
        let Some(before) = sharing.apply(case) else { return TOO_FEW_TENSORS };
        let want = run_reference(&before.graph, &before);
        if want.end.is_err() {
            return CheckOutcome::Rejected("the program fails");
        }
        let precision = match self.pipeline.exactness() {
            Exactness::Exact => Precision::Bits,
            _ => Precision::Within(ROUNDING),
        };
        let mut changed = false;
        for (evaluator, run) in [("reference", run_reference as Run), ("machine", machine)] {
            // Runs write arguments and constants, so each run has its own.
            let Some(fresh) = sharing.apply(case) else { return TOO_FEW_TENSORS };
            let mut graph: Graph = (*fresh.graph).clone();
            let (mut analyses, mut control) = (Analyses::new(), Control::new());
            let mut manager = Manager::new().unit(&fresh.unit);
            match manager.run_with(&mut graph, &self.pipeline, &mut analyses, &mut control) {
                Ok(report) => changed |= report.changed(),
                Err(e) => return CheckOutcome::Failed(format!("the pipeline fails: {e}")),
            }
            let got = run(&Arc::new(graph.clone()), &fresh);
            if let Err(why) = observe::same(&want, &got, precision) {
                // A task that is never awaited may fail without failing the program, so its error is not observed.
                let Some(again) = sharing.apply(case) else { return TOO_FEW_TENSORS };
                let allowed = allowed_observations(&again);
                let agrees = |seen| observe::same(seen, &got, precision).is_ok();
                if allowed.has_unsupported || allowed.observations.iter().any(agrees) {
                    return CheckOutcome::Rejected("a task fails");
                }
                let before = &before.graph;
                return CheckOutcome::Failed(format!(
                    "{evaluator}: {why}\nbefore:\n{before}\nafter:\n{graph}"
                ));
            }
        }
        if changed { CheckOutcome::Changed } else { CheckOutcome::Checked }
    }
}

fn run_reference(graph: &Arc<Graph>, case: &Case) -> Observation {
    observe::run_on(case.inputs.clone(), |inputs, host| reference::run(graph, inputs, &*case.unit, host))
}

fn machine(graph: &Arc<Graph>, case: &Case) -> Observation {
    observe::run_on(case.inputs.clone(), |inputs, host| {
        let code = Code::compile(graph, &*case.unit).map_err(|e| flambeau_exec::ExecError::of(&e))?;
        Vm::new(CompiledProgram::new(case.unit.clone())).run(&Arc::new(code), inputs, host)
    })
}

impl Oracle for AliasedInputsAgree {
    fn name(&self) -> String {
        format!("sharing:{}", self.name)
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        let mut outcome = CheckOutcome::Rejected("too few tensors");
        for sharing in Sharing::ALL.into_iter().filter(|&way| way != Sharing::Disjoint) {
            match self.check_aliasing(case, sharing) {
                CheckOutcome::Failed(why) => return CheckOutcome::Failed(format!("{sharing:?}: {why}")),
                CheckOutcome::Changed => outcome = CheckOutcome::Changed,
                CheckOutcome::Checked if outcome != CheckOutcome::Changed => outcome = CheckOutcome::Checked,
                _ => {}
            }
        }
        outcome
    }
}
