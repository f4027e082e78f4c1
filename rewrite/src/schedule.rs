//! What a pass needs around it: passes that run before it, passes that clean up behind it, and repetition.
//!
//! A pass states its [`Schedule`] and the manager runs the passes in it, each with its own fuel, checks, log and line in the
//! report. No pass calls another one.

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
///     /// Equal nodes are one before this pass, and what it leaves unused is removed behind it.
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
    /// Most repetitions beyond the first run.
    pub(crate) repeats: u32,
}

/// A pass that runs behind another one.
#[derive(Clone)]
pub(crate) struct Follower {
    pub(crate) pass: Arc<dyn DynPass>,
    /// Whether it runs only if the other one changed the graph.
    pub(crate) if_changed: bool,
}

impl Schedule {
    /// The pass and nothing else, once.
    pub fn alone() -> Schedule {
        Schedule::default()
    }

    /// A pass that runs before, after those named already.
    #[must_use]
    pub fn first<P: Pass>(mut self, pass: P) -> Schedule {
        self.before.push(Arc::new(pass));
        self
    }

    /// A pass that runs behind, after those named already.
    #[must_use]
    pub fn then<P: Pass>(mut self, pass: P) -> Schedule {
        self.after.push(Follower { pass: Arc::new(pass), if_changed: false });
        self
    }

    /// A pass that runs behind if the pass itself changed the graph.
    #[must_use]
    pub fn then_if_changed<P: Pass>(mut self, pass: P) -> Schedule {
        self.after.push(Follower { pass: Arc::new(pass), if_changed: true });
        self
    }

    /// All of it again until it changes nothing, `rounds` times at most.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Schedule {
        self.repeats = rounds.saturating_sub(1);
        self
    }

    /// The passes beside the pass itself.
    pub(crate) fn others(&self) -> impl Iterator<Item = &dyn DynPass> {
        self.before.iter().map(|pass| &**pass).chain(self.after.iter().map(|follower| &*follower.pass))
    }
}
