//! Graph rewriting: passes and their manager, patches, and rewriting by rules.
//!
//! A [`Pass`] accesses a graph through its [`PassCx`]: up-to-date analyses, an editor, patches, fuel, logs. A
//! [`Pipeline`] is a list of passes, parsed from text with a [`PassLibrary`]. A [`Manager`] runs it under [`Checks`]
//! and [`Control`] and reports the changes of each pass. Rules over operators are text, checked against the registry
//! ([`rules`]). They are applied greedily or (feature `egraph`) by equality saturation, which searches for the cheapest
//! equal program.
//!
//! No code of this crate names an operator: passes query facets and effects.

pub mod autodiff;
pub mod control;
mod deadline;
#[cfg(feature = "egraph")]
pub mod egraph;
pub mod facets;
mod inplace;
pub mod log;
pub mod manager;
mod memory;
mod numbers;
mod outline;
pub mod pass;
pub mod passes;
pub mod patch;
pub mod pipeline;
mod roles;
pub mod rules;
mod schedule;
#[cfg(test)]
mod testing;
pub mod trace;

pub use control::{BisectResult, Control, InjectedBug};
pub use deadline::Deadline;
pub use facets::{AlwaysView, ContainerOp, Cost, FunctionalForm, OptInRules, ReadsStrides, Rules};
pub use log::{Log, LogLevel};
pub use manager::{Checks, Manager, PipelineError, PipelineReport};
pub use pass::{Pass, PassCx, PassError};
pub use patch::{EditPlan, Patch, Planned};
pub use pipeline::{Configure, PassEntry, PassLibrary, PassOptions, Pipeline};
pub use rules::{Exactness, RuleLibrary, RuleSet, Vocabulary};
pub use schedule::Schedule;
pub use trace::{RewriteTrace, TraceEvent};
