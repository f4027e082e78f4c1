//! Records of failed optimizations.
//!
//! A pass that fails is a defect, of this library or of an embedder's pass, but the program can run without the pass. A
//! failure is never dropped silently: a session that checks its passes returns an error; any other session runs the
//! program unoptimized, records the failure and calls the embedder's hook. Each record has a reproducer.

use crate::error::Error;
use flambeau_ir::Symbol;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A failed optimization.
#[derive(Clone, Debug)]
pub struct OptimizationFailure {
    /// The function that was optimized; `None` for a graph that the embedder called.
    pub function: Option<Symbol>,
    /// The pipeline, with all options.
    pub pipeline: String,
    /// The error.
    pub error: Error,
    /// The command that runs the pipeline, followed by the IR text of the graph before the pipeline.
    pub reproducer: String,
}

impl fmt::Display for OptimizationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.function.map(|name| format!("`{name}`")).unwrap_or_else(|| "a graph".into());
        let message = self.error.message.lines().next().unwrap_or_default();
        write!(f, "optimizing {function} failed, so it runs unoptimized: {message}")
    }
}

type Hook = dyn Fn(&OptimizationFailure) + Send + Sync;

/// The failures of a session, newest last.
#[derive(Clone, Default)]
pub(crate) struct Failures {
    hook: Option<Arc<Hook>>,
    recorded: Arc<Mutex<VecDeque<Arc<OptimizationFailure>>>>,
}

/// Number of recorded failures; older ones are dropped.
const MAX_FAILURES: usize = 64;

impl Failures {
    /// Sets the hook that is called for each later failure.
    pub(crate) fn set_hook(&mut self, hook: Arc<Hook>) {
        self.hook = Some(hook);
    }

    /// Records a failure and calls the hook.
    pub(crate) fn report(&self, failure: OptimizationFailure) {
        let failure = Arc::new(failure);
        {
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            if recorded.len() == MAX_FAILURES {
                recorded.pop_front();
            }
            recorded.push_back(Arc::clone(&failure));
        }
        // The lock is released first, because the hook may read the recorded failures.
        if let Some(hook) = &self.hook {
            hook(&failure);
        }
    }

    /// Returns the recorded failures, oldest first.
    pub(crate) fn recorded(&self) -> Vec<Arc<OptimizationFailure>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
