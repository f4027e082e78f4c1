//! The stages of compilation that the executor requests, and a plain implementation of them.

use crate::job::CompileJob;
use flambeau_ir::{CompilationUnit, Graph};
use flambeau_rewrite::{Checks, Manager, PassLibrary, Pipeline, PipelineError};
use std::sync::Arc;

/// A stage of the compilation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileStage {
    /// Inlines calls, simplifies, and inserts profiling nodes.
    Profiled,
    /// Turns profiles into guards and bail-outs and optimizes under the guarded types.
    Specialized,
}

impl CompileStage {
    /// Returns the name of the stage's pipeline.
    #[must_use]
    pub fn name(self) -> &'static str {
        PIPELINES[self as usize].0
    }
}

/// The pipelines of the stages: name and text, in the order of [`CompileStage`]. The first one starts with
/// the passes that begin a session's default pipeline (inlining, simplification), then inserts profiling nodes. The second one begins with the pipeline `guards`
/// of the library; then it
///
/// 1. folds queries of sizes, dtypes and optionals of guarded values, then the branches and checks on them, and removes
///    guards that are now implied,
/// 2. unrolls loops whose trip count is known, replaces in-place writes to tensors allocated in the graph by functional
///    operators, and simplifies the result,
/// 3. saturates with exact rules, fuses, and writes numbers without tensors of them.
pub const PIPELINES: [(&str, &str); 2] = [
    (
        "profiled",
        "inline,scalar_replacement,optional_replacement,lower_simple_tuples,constant_propagation,constant_pooling,cse,dce,\
         insert_profile_nodes,insert_branch_counters",
    ),
    (
        "specialized",
        "guards,fix{4}(peephole,constant_propagation,eliminate_guards),loop_unrolling{constant,profiled},\
         lower_simple_tuples,remove_mutation{exact},fix{2}(peephole,constant_propagation,eliminate_guards),\
         saturate,cse,dce,fuse,write_numbers,dce",
    ),
];

/// Runs the stages of compilation.
pub trait StageRunner {
    /// The error of a failed stage.
    type Error;

    /// Returns a copy of `graph` after a stage.
    ///
    /// # Errors
    /// Returns an error if a pass fails. The executor then stops specializing the function.
    fn optimize(&self, graph: &Graph, stage: CompileStage) -> Result<Graph, Self::Error>;

    /// Takes over a compilation, to run it on another thread. Returns a job that the caller must run at once, which is
    /// what this implementation does.
    fn defer(&self, job: CompileJob) -> Option<CompileJob> {
        Some(job)
    }
}

/// The stages with the passes of a library, for the functions of a unit.
pub struct Pipelines {
    stages: [Pipeline; 2],
    unit: Arc<CompilationUnit>,
    checks: Checks,
}

impl Pipelines {
    /// Creates the stages from the passes of a library.
    ///
    /// # Errors
    /// Returns the error of a pipeline that the library cannot parse.
    pub fn new(
        library: &PassLibrary,
        unit: Arc<CompilationUnit>,
        checks: Checks,
    ) -> Result<Pipelines, Box<flambeau_ir::Diagnostic>> {
        Pipelines::of_texts(PIPELINES.map(|(_, text)| text), library, unit, checks)
    }

    /// Creates the stages from the texts of other pipelines, in the order of [`CompileStage`].
    ///
    /// # Errors
    /// As [`Pipelines::new`].
    pub fn of_texts(
        texts: [&str; 2],
        library: &PassLibrary,
        unit: Arc<CompilationUnit>,
        checks: Checks,
    ) -> Result<Pipelines, Box<flambeau_ir::Diagnostic>> {
        let [profiled, specialized] = texts.map(|text| Pipeline::parse(text, library));
        Ok(Pipelines { stages: [profiled?, specialized?], unit, checks })
    }
}

impl StageRunner for Pipelines {
    type Error = Box<PipelineError>;

    fn optimize(&self, graph: &Graph, stage: CompileStage) -> Result<Graph, Self::Error> {
        let mut copy = graph.clone();
        Manager::new().unit(&self.unit).checks(self.checks).run(&mut copy, &self.stages[stage as usize])?;
        Ok(copy)
    }
}
