//! A plan, and the plans that a machine ran last.
//!
//! Repeated calls find their plan in a [`PlanCache`], which belongs to one machine and so to one thread at a time: the
//! search takes one atomic load and no lock. It compares the metadata of the arguments with those of recent calls, word
//! by word. Any change of an executor's plans changes its version, which empties the caches at their next use.

use crate::guard_failures::GuardFailures;
use crate::plans::HasPrecondition;
use crate::settings::RARE;
use crate::spec::{ArgumentSpec, CompleteArgumentSpec};
use flambeau_exec::{BailoutState, Code};
use flambeau_ir::Graph;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Code for calls that satisfy a precondition.
pub struct ExecutionPlan {
    pub(crate) number: u32,
    pub(crate) code: Arc<Code>,
    pub(crate) spec: ArgumentSpec,
    pub(crate) failures: Arc<GuardFailures>,
    /// The failures of bail-outs that [`crate::Executor`] has examined.
    pub(crate) examined: AtomicU32,
    /// Number of calls that ran the plan. Machines of several threads may lose some.
    runs: AtomicU32,
    /// The number of runs when a plan was last inserted.
    runs_at_insertion: AtomicU32,
}

impl ExecutionPlan {
    pub(crate) fn new(
        number: u32,
        code: Arc<Code>,
        spec: ArgumentSpec,
        failures: Arc<GuardFailures>,
    ) -> ExecutionPlan {
        ExecutionPlan {
            number,
            code,
            spec,
            failures,
            examined: AtomicU32::new(0),
            // A new plan counts as used.
            runs: AtomicU32::new(1),
            runs_at_insertion: AtomicU32::new(0),
        }
    }

    /// Returns the number of the plan among those that its executor has made.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the specialized graph. The types of its inputs are the precondition.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        self.code.graph()
    }

    /// Returns the code, which does not check its arguments against the precondition.
    #[must_use]
    pub fn code(&self) -> &Arc<Code> {
        &self.code
    }

    /// Returns the graph of the continuation of a bail-out, given its position in [`Code::bailouts`]: specialized to the
    /// values with which it was entered, if that happened often.
    #[must_use]
    pub fn specialized_continuation(&self, position: usize) -> Option<Arc<Graph>> {
        self.failures.specialized(position)
    }

    /// Whether a failure of a bail-out was not examined yet.
    #[inline]
    pub(crate) fn has_new_failures(&self) -> bool {
        self.code.failures() != self.examined.load(Ordering::Relaxed)
    }

    /// Counts a run. A load and a store cost less than an atomic addition, and nothing depends on the exact number.
    #[inline]
    pub(crate) fn count_run(&self) {
        self.runs.store(self.runs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns the guards that failed `limit` times, and in at least one of [`RARE`] runs.
    pub(crate) fn frequent_failures(&self, limit: u32) -> impl Iterator<Item = BailoutState> + '_ {
        let runs = self.runs.load(Ordering::Relaxed);
        self.code.bailouts().filter(move |b| b.failures >= limit && b.failures.saturating_mul(RARE) >= runs)
    }
}

impl HasPrecondition for ExecutionPlan {
    fn graph(&self) -> &Graph {
        self.code.graph()
    }

    fn grad_enabled(&self) -> bool {
        self.spec.grad_enabled()
    }

    fn take_used(&self) -> bool {
        let runs = self.runs.load(Ordering::Relaxed);
        runs != self.runs_at_insertion.swap(runs, Ordering::Relaxed)
    }
}

/// The plans that one machine ran last for calls of one executor.
#[derive(Default)]
pub struct PlanCache {
    /// The version of the executor's plans.
    version: u64,
    recent: Vec<(CompleteArgumentSpec, Arc<ExecutionPlan>)>,
    /// The entry that is replaced next.
    next: usize,
    /// The entry of the last call.
    last: usize,
    /// Whether the last two calls used the same entry; the next call then speculates on it.
    stable: bool,
}

/// Number of recent calls with different arguments.
const RECENT_CALLS: usize = 4;

impl PlanCache {
    /// Creates an empty cache.
    #[must_use]
    pub fn new() -> PlanCache {
        PlanCache::default()
    }

    /// Returns the spec and the plan that the next call is expected to have.
    #[inline]
    pub(crate) fn expected(&self, version: u64) -> Option<&(CompleteArgumentSpec, Arc<ExecutionPlan>)> {
        if self.stable && self.version == version { self.recent.get(self.last) } else { None }
    }

    /// Returns the plan of a recent call with equal metadata.
    #[inline]
    pub(crate) fn find(
        &mut self,
        version: u64,
        args: &[flambeau_ir::IValue],
        grad_enabled: bool,
    ) -> Option<&Arc<ExecutionPlan>> {
        if self.version != version {
            return None;
        }
        let at = self.recent.iter().position(|(spec, _)| spec.matches(args, grad_enabled))?;
        (self.stable, self.last) = (self.last == at, at);
        Some(&self.recent[at].1)
    }

    /// Adds the plan of a call.
    pub(crate) fn add_plan(&mut self, version: u64, spec: CompleteArgumentSpec, plan: Arc<ExecutionPlan>) {
        if self.version != version {
            self.recent.clear();
            (self.version, self.next) = (version, 0);
        }
        self.stable = false;
        if self.recent.len() < RECENT_CALLS {
            self.last = self.recent.len();
            self.recent.push((spec, plan));
        } else {
            self.last = self.next;
            self.recent[self.next] = (spec, plan);
            self.next = (self.next + 1) % RECENT_CALLS;
        }
    }
}
