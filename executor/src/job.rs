//! Compilations: the work that an executor requests, for the calling thread or another one.
//!
//! A [`CompileJob`] owns what it needs except the executor, to which it refers weakly: a queued job neither keeps a
//! dropped program alive nor has to be cancelled. An executor has at most one job at a time. A job that is dropped
//! without having run, or whose stage panics, disables specialization of its function.

use crate::attributes::lift;
use crate::executor::Executor;
use crate::optimizer::{CompileStage, StageRunner};
use crate::plan::ExecutionPlan;
use crate::spec::ArgumentSpec;
use flambeau_exec::{Callees, Code, ExecError};
use flambeau_ir::Graph;
use std::sync::{Arc, Weak};

/// The reason for the failure of a stage.
#[derive(Debug)]
pub enum StageFailure<E> {
    /// A pass failed.
    Pass(E),
    /// The graph that the passes returned does not compile.
    Compile {
        /// The stage.
        stage: CompileStage,
        /// The error.
        error: ExecError,
    },
}

impl<E: std::fmt::Display> std::fmt::Display for StageFailure<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StageFailure::Pass(e) => e.fmt(f),
            StageFailure::Compile { error, .. } => error.fmt(f),
        }
    }
}

/// The subject of a job.
pub(crate) enum JobKind {
    /// The function with profiling nodes, then the plans of saved profiles.
    Profiled,
    /// A plan: the profiled graph with the observed types.
    Plan { graph: Graph, spec: ArgumentSpec },
    /// A continuation of a plan, with the types of the values with which it was entered.
    Continuation { plan: Arc<ExecutionPlan>, position: usize, graph: Graph },
}

/// A compilation that an executor requests. See the [module](self).
pub struct CompileJob {
    executor: Weak<Executor>,
    callees: Arc<dyn Callees>,
    /// `None` once the job has run.
    work: Option<JobKind>,
}

impl CompileJob {
    pub(crate) fn new(executor: &Arc<Executor>, callees: &Arc<dyn Callees>, work: JobKind) -> CompileJob {
        CompileJob { executor: Arc::downgrade(executor), callees: Arc::clone(callees), work: Some(work) }
    }

    /// Returns the stage that the job runs.
    #[must_use]
    pub fn stage(&self) -> CompileStage {
        match self.work {
            Some(JobKind::Profiled) => CompileStage::Profiled,
            _ => CompileStage::Specialized,
        }
    }

    /// Returns the function of the executor, as it was loaded; `None` if the executor was dropped.
    #[must_use]
    pub fn function(&self) -> Option<Arc<Graph>> {
        self.executor.upgrade().map(|executor| Arc::clone(executor.function()))
    }

    /// Compiles, and gives the code to the executor. Does nothing if the executor was dropped.
    ///
    /// # Errors
    /// Returns the error of a pass, or of the graph that the passes returned. The function is then not specialized any
    /// further.
    pub fn run<O: StageRunner>(mut self, optimizer: &O) -> Result<(), StageFailure<O::Error>> {
        let Some(executor) = self.executor.upgrade() else { return Ok(()) };
        let callees = &*self.callees;
        let compile = |graph: &Graph, stage| {
            let graph = optimizer.optimize(graph, stage).map_err(StageFailure::Pass)?;
            emit(graph, stage, callees)
        };
        match self.work.as_ref() {
            None => {}
            Some(JobKind::Profiled) => {
                let function = executor.function();
                let mut graph =
                    optimizer.optimize(function, CompileStage::Profiled).map_err(StageFailure::Pass)?;
                let attributes = lift(&mut graph, callees);
                executor.set_profiled(emit(graph, CompileStage::Profiled, callees)?, attributes);
                while let Some((graph, spec)) = executor.next_saved() {
                    executor.add_plan(compile(&graph, CompileStage::Specialized)?, &spec);
                }
            }
            Some(JobKind::Plan { graph, spec }) => {
                executor.add_plan(compile(graph, CompileStage::Specialized)?, spec);
            }
            Some(JobKind::Continuation { plan, position, graph }) => {
                let code = compile(graph, CompileStage::Specialized)?;
                plan.failures.set_continuation(*position, Some(Arc::new(code.without_input_checks())));
            }
        }
        self.work = None;
        executor.end_job(true);
        Ok(())
    }
}

impl Drop for CompileJob {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if let JobKind::Continuation { plan, position, .. } = &work {
            plan.failures.set_continuation(*position, None);
        }
        if let Some(executor) = self.executor.upgrade() {
            executor.end_job(false);
        }
    }
}

/// Compiles the graph that a stage returned.
fn emit<E>(graph: Graph, stage: CompileStage, callees: &dyn Callees) -> Result<Code, StageFailure<E>> {
    let compiled = Code::compile(&Arc::new(graph), callees);
    compiled.map_err(|e| StageFailure::Compile { stage, error: ExecError::of(&e) })
}
