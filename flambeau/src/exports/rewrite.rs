//! Changing graphs: passes, pipelines, plans, rules.
//!
//! A [`Pass`] is given to a session by its [`PassEntry`]; a [`Manager`] runs a [`Pipeline`] under [`Checks`] and reports what
//! each pass did. A [`Patch`] is a plan of edits that is applied whole.

pub use flambeau_rewrite::{
    Checks, Configure, Control, Cost, Elements, Exactness, Level, Log, Manager, OnRequest, Options, Pass,
    PassCx, PassEntry, PassError, PassLibrary, Patch, Pipeline, PipelineError, Plan, Planned, Report,
    RewriteTrace, RuleSet, Rulebook, Rules, Schedule, TraceEvent, Verdict, Vocabulary,
};

/// Derivatives that operators state.
pub mod autodiff {
    pub use flambeau_rewrite::autodiff::{GradientEntry, GradientTable, Gradients, GradientsError};
}

/// How far a pipeline runs, and which of its rewrites is at fault.
pub mod control {
    pub use flambeau_rewrite::control::{Control, Fuel, LimitError, Spent, Verdict, bisect};
}

/// What passes report while they work.
pub mod log {
    pub use flambeau_rewrite::log::{Level, Log, Sink, Stderr};
}

/// Running pipelines.
pub mod manager {
    pub use flambeau_rewrite::manager::{Capture, Checks, Edits, Manager, PassReport, PipelineError, Report};
}

/// Rules by text, and trying them.
pub mod rules {
    pub use flambeau_rewrite::rules::{Exactness, Rule, RuleSet, Rulebook, Vocabulary};

    /// Both sides of rules run on drawn inputs by the reference evaluator.
    pub mod trial {
        pub use flambeau_rewrite::rules::trial::{Effort, Trial, try_rules};
    }
}
