//! Everything that changes a graph: passes and their manager, plans, and rewriting by rules.
//!
//! A [`Pass`] sees a graph through its [`PassCx`]: analyses in step with it, an editor, plans, fuel, logs. A [`Pipeline`]
//! is a list of passes read from text against a [`PassLibrary`]; a [`Manager`] runs it under [`Checks`] and [`Control`]
//! and reports what each pass did. Rules over operators are text, checked against the registry ([`rules`]);
//! they are applied wherever they fit, or (feature `egraph`) the cheapest equal program is searched for with them.
//!
//! This crate knows no operator by name: passes ask facets and effects.

pub mod autodiff;
pub mod control;
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

pub use control::{Control, Planted, Verdict};
pub use facets::{Cost, Elements, OnRequest, Rules};
pub use log::{Level, Log};
pub use manager::{Checks, Manager, PipelineError, Report};
pub use pass::{Pass, PassCx, PassError};
pub use patch::{Patch, Plan, Planned};
pub use pipeline::{Configure, Options, PassEntry, PassLibrary, Pipeline};
pub use rules::{Exactness, RuleSet, Rulebook, Vocabulary};
pub use schedule::Schedule;
pub use trace::{RewriteTrace, TraceEvent};
