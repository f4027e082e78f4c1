//! Runs functions under assumptions about their arguments and about the values that they compute.
//!
//! An [`Executor`] runs the first calls of a function with profiling nodes, merges what they observed in a
//! [`ProfilingRecord`], and has the passes of `rewrite` make a graph that is valid under guards. Guards of arguments are
//! checked when a plan is selected (its precondition) and remembered by [`CompleteArgumentSpec`]; the other guards are bail-outs, which continue in the
//! program as it was before passes relied on guards. No code of this crate names an operator.

mod attributes;
mod deopt;
mod executor;
mod guard_failures;
mod inline_cache;
mod job;
mod optimizer;
mod plan;
mod plans;
mod record;
mod saved;
mod settings;
mod spec;
mod specialize;

pub use deopt::{Deopt, DeoptError};
pub use executor::{CallOutcome, Executor, RunMode};
pub use guard_failures::Deoptimization;
pub use job::{CompileJob, StageFailure};
pub use optimizer::{CompileStage, PIPELINES, Pipelines, StageRunner};
pub use plan::{ExecutionPlan, PlanCache};
pub use record::{BlockRuns, ProfilingRecord, RunProfile};
pub use saved::{SavedProfile, SavedSize, SavedValue};
pub use settings::ExecutorSettings;
pub use spec::{ArgumentSpec, CompleteArgumentSpec};
