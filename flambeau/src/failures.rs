//! Optimizations that failed.
//!
//! A pass that fails is a defect, of this library or of an embedder's pass, but the program can run without it. It is
//! never passed over silently: a session that checks its passes reports an error; one that does not runs the program
//! unoptimized, records the failure and tells the embedder's hook. A failure says how to reproduce it.

use crate::error::Error;
use flambeau_ir::Symbol;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// An optimization that failed.
#[derive(Clone, Debug)]
pub struct OptimizationFailure {
    /// The function that was to be optimized; `None` for a graph that was called from outside.
    pub function: Option<Symbol>,
    /// The pipeline, spelled out.
    pub pipeline: String,
    /// What went wrong.
    pub error: Error,
    /// IR text of the graph before the pipeline, behind the command that runs the pipeline on it.
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

/// Failures that are kept; older ones are dropped.
const KEPT: usize = 64;

impl Failures {
    /// Calls `hook` for each failure from now on.
    pub(crate) fn set_hook(&mut self, hook: Arc<Hook>) {
        self.hook = Some(hook);
    }

    /// Records a failure and tells the hook.
    pub(crate) fn report(&self, failure: OptimizationFailure) {
        let failure = Arc::new(failure);
        {
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            if recorded.len() == KEPT {
                recorded.pop_front();
            }
            recorded.push_back(Arc::clone(&failure));
        }
        // Outside of the lock: the hook may ask for what is recorded.
        if let Some(hook) = &self.hook {
            hook(&failure);
        }
    }

    /// The newest failures, oldest first.
    pub(crate) fn recorded(&self) -> Vec<Arc<OptimizationFailure>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
