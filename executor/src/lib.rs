//! Runs functions under assumptions about their arguments and about the values that they compute.
//!
//! An [`Executor`] runs the first calls of a function with profiling nodes, merges what they observed in a
//! [`ProfilingRecord`], and has the passes of `rewrite` make a graph that is valid under guards. Guards of arguments are
//! checked when a plan is selected by [`ArgumentSpec`]; the other guards are bail-outs, which continue in the
//! program as it was before passes relied on guards. No code of this crate names an operator.

mod executor;
mod optimizer;
mod plans;
mod record;
mod spec;
mod specialize;

pub use executor::{CallOutcome, Executor, Plan, RunMode, Settings, StageFailure};
pub use optimizer::{Optimizer, PIPELINES, Pipelines, Stage};
pub use record::{ProfilingRecord, RunProfile};
pub use spec::{ArgumentKinds, ArgumentSpec};
