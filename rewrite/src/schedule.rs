//! The schedule of a pass: passes that run before it, passes that clean up after it, and repetition.
//!
//! A pass returns its [`Schedule`] and the manager runs the passes in it, each with its own fuel, checks, log and entry
//! in the report. Passes do not call each other.

use crate::pass::{DynPass, Pass};
use std::sync::Arc;

/// The passes that the manager runs together with a pass. See [`Pass::schedule`].
///
/// ```
/// use flambeau_rewrite::passes::{cse::Cse, dce::Dce};
/// use flambeau_rewrite::{Pass, PassCx, PassError, Schedule};
///
/// struct Tidy;
///
/// impl Pass for Tidy {
///     const NAME: &'static str = "tidy";
///
///     /// Merges equal nodes before this pass, and removes unused nodes after it.
///     fn schedule(&self) -> Schedule {
///         Schedule::alone().first(Cse).then(Dce::default())
///     }
///
///     fn run(&self, _: &mut PassCx<'_>) -> Result<(), PassError> {
///         Ok(())
///     }
/// }
/// ```
#[derive(Clone, Default)]
pub struct Schedule {
    pub(crate) before: Vec<Arc<dyn DynPass>>,
    pub(crate) after: Vec<Follower>,
    /// Maximum number of repetitions after the first run.
    pub(crate) repeats: u32,
}

/// A pass that runs after another one.
#[derive(Clone)]
pub(crate) struct Follower {
    pub(crate) pass: Arc<dyn DynPass>,
    /// Whether the pass runs only if the other one changed the graph.
    pub(crate) if_changed: bool,
}

impl Schedule {
    /// A schedule with only the pass itself, run once.
    pub fn alone() -> Schedule {
        Schedule::default()
    }

    /// Adds a pass that runs before the pass itself, after those added earlier.
    #[must_use]
    pub fn first<P: Pass>(mut self, pass: P) -> Schedule {
        self.before.push(Arc::new(pass));
        self
    }

    /// Adds a pass that runs after the pass itself and those added earlier.
    #[must_use]
    pub fn then<P: Pass>(mut self, pass: P) -> Schedule {
        self.after.push(Follower { pass: Arc::new(pass), if_changed: false });
        self
    }

    /// Adds a pass that runs after the pass itself, if that changed the graph.
    #[must_use]
    pub fn then_if_changed<P: Pass>(mut self, pass: P) -> Schedule {
        self.after.push(Follower { pass: Arc::new(pass), if_changed: true });
        self
    }

    /// Repeats the whole schedule until a round changes nothing, at most `rounds` times.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Schedule {
        self.repeats = rounds.saturating_sub(1);
        self
    }

    /// Returns the passes of the schedule except the pass itself.
    pub(crate) fn others(&self) -> impl Iterator<Item = &dyn DynPass> {
        self.before.iter().map(|pass| &**pass).chain(self.after.iter().map(|follower| &*follower.pass))
    }
}
