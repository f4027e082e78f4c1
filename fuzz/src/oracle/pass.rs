//! A pipeline keeps what a program means.

use super::{Oracle, Outcome, run_reference, same};
use crate::generate::Case;
use flambeau_analysis::Analyses;
use flambeau_ir::Graph;
use flambeau_rewrite::control::Control;
use flambeau_rewrite::control::Planted;
use flambeau_rewrite::manager::{Checks, Manager};
use flambeau_rewrite::pipeline::Pipeline;
use std::sync::Arc;

/// The program before and after a pipeline, both on the reference evaluator.
pub struct PassKeeps {
    name: String,
    pipeline: Pipeline,
    checks: Checks,
    planted: Option<Planted>,
    tolerance: f64,
}

impl PassKeeps {
    /// An oracle for a pipeline whose rewrites are exact.
    pub fn new(name: &str, pipeline: Pipeline) -> Self {
        PassKeeps {
            name: name.to_owned(),
            pipeline,
            checks: Checks::EveryPass,
            planted: None,
            tolerance: 1e-5,
        }
    }

    /// Watches runs this closely.
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Plants a known bug, which the oracle is expected to find.
    pub fn planted(mut self, bug: Planted) -> Self {
        self.planted = Some(bug);
        self
    }
}

impl Oracle for PassKeeps {
    fn name(&self) -> String {
        format!("pass:{}", self.name)
    }

    fn check(&self, case: &Case) -> Outcome {
        let Ok(want) = run_reference(&case.graph, case) else {
            return Outcome::Rejected("the program fails");
        };
        let mut graph: Graph = (*case.graph).clone();
        let mut control = Control::new();
        if let Some(bug) = self.planted {
            control = control.with_planted(bug);
        }
        let mut manager = Manager::new().checks(self.checks);
        if let Err(e) = manager.run_with(&mut graph, &self.pipeline, &mut Analyses::new(), &mut control) {
            return Outcome::Failed(format!("the pipeline fails: {e}"));
        }
        match run_reference(&Arc::new(graph.clone()), case) {
            Err(e) => Outcome::Failed(format!("fails after the pipeline: {e}\n{graph}")),
            Ok(got) => match same(&want, &got, self.tolerance) {
                Ok(()) => Outcome::Checked,
                Err(why) => Outcome::Failed(format!("{why}\nafter the pipeline:\n{graph}")),
            },
        }
    }
}
