//! Transformation of graphs: passes, pipelines, patches, rules.
//!
//! A [`PassEntry`] registers a [`Pass`] with a session. A [`Manager`] runs a [`Pipeline`] under [`Checks`] and reports
//! the changes of each pass. A [`Patch`] is a list of edits that is applied as a whole.

pub use flambeau_rewrite::{
    AlwaysView, BisectResult, Checks, Configure, ContainerOp, Control, Cost, EditPlan, Exactness, Log,
    LogLevel, Manager, OptInRules, Pass, PassCx, PassEntry, PassError, PassLibrary, PassOptions, Patch,
    Pipeline, PipelineError, PipelineReport, Planned, RewriteTrace, RuleLibrary, RuleSet, Rules, Schedule,
    TraceEvent, Vocabulary,
};

/// Derivatives stated by operators.
pub mod autodiff {
    pub use flambeau_rewrite::autodiff::{Gradient, GradientEntry, GradientTable, Gradients, GradientsError};
}

/// Control of pipelines: fuel, time limit, bisection of faulty rewrites.
pub mod control {
    pub use flambeau_rewrite::Deadline;
    pub use flambeau_rewrite::control::{BisectResult, Control, Fuel, FueledRewrite, LimitError, bisect};
}

/// Log output of passes.
pub mod log {
    pub use flambeau_rewrite::log::{Log, LogLevel, LogSink, Stderr};
}

/// Running pipelines.
pub mod manager {
    pub use flambeau_rewrite::manager::{
        Capture, Checks, Edits, Manager, PassReport, PipelineError, PipelineReport, reproducer,
    };
}

/// The rule language, and tests of rules.
pub mod rules {
    pub use flambeau_rewrite::rules::{Exactness, Rule, RuleLibrary, RuleSet, Vocabulary};

    /// Tests of rules: the reference evaluator runs both sides on random inputs.
    pub mod trial {
        pub use flambeau_rewrite::rules::trial::{Trial, TrialLimits, try_rules};
    }
}
