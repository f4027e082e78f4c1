//! Bail-outs of compiled code: the guard of a `prim::BailOut`, its continuation, and how often it failed.
//!
//! A bail-out compares its first operand with the type of its result, and a list with its attribute `length`. If the operand fits, it is the result, and the
//! other operands are not used. If it does not fit, the frame is replaced by a frame of the continuation, a graph that
//! computes the rest of the function from the other operands.
//!
//! Failures are counted here, per bail-out and per code ([`Code::failures`]): a run without failures pays one relaxed load
//! per bail-out, and its caller one load to see that there was none. A [`BailoutHandler`] is called at each failure, and may
//! supply better code for the continuation. A caller can also force failures ([`Code::force_bailout`]): every guard may
//! fail at any time without a change of the results, which tests rely on.

use crate::bytecode::{Code, SiteOp};
use crate::structural::GuardCheck;
use flambeau_ir::attr::names;
use flambeau_ir::value::IValue;
use flambeau_ir::{Graph, NodeId, Type};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// The guard and the continuation of one `prim::BailOut`.
pub(crate) struct Bailout {
    pub(crate) body: Arc<Graph>,
    /// The code of the continuation, compiled at the first failure.
    pub(crate) code: OnceLock<Arc<Code>>,
    check: GuardCheck,
    /// Every `period`th check fails; 0 if none is forced to.
    period: AtomicU32,
    /// Number of checks since `period` was set; not counted while `period` is 0.
    checks: AtomicU32,
    failures: AtomicU32,
}

/// A failed check of a bail-out.
#[derive(Clone, Copy, Debug)]
pub struct FailedCheck<'a> {
    /// Position in [`Code::bailouts`].
    pub position: usize,
    /// The value that was checked.
    pub value: &'a IValue,
    /// The type that it was checked against. The value has it if the failure was forced.
    pub expected: Type,
    /// The length that the guard states of a list.
    pub expected_length: Option<usize>,
    /// The arguments of the continuation.
    pub captures: &'a [IValue],
}

impl FailedCheck<'_> {
    /// Returns whether the check failed only because a caller forced it.
    #[must_use]
    pub fn is_forced(&self) -> bool {
        GuardCheck { ty: self.expected, length: self.expected_length }.holds(self.value)
    }
}

/// Receiver of the failed checks of a [`Code`].
pub trait BailoutHandler: Send + Sync {
    /// Called at each failed check, on the thread of the run. Returns code to continue with instead of the continuation
    /// as it is in the graph; it must compute the same for these captures.
    fn failed(&self, check: FailedCheck<'_>) -> Option<Arc<Code>>;
}

/// Failures of all bail-outs of a code, and their receiver.
#[derive(Default)]
pub(crate) struct BailoutFailures {
    count: AtomicU32,
    handler: OnceLock<Arc<dyn BailoutHandler>>,
}

/// State of one bail-out of a [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BailoutState {
    /// The `prim::BailOut`.
    pub node: NodeId,
    /// Attribute `index` of the node, which names the guard across versions of a graph.
    pub index: Option<i64>,
    /// The length that the guard states of a list.
    pub length: Option<usize>,
    /// Number of failed checks.
    pub failures: u32,
}

impl Bailout {
    pub(crate) fn new(body: Arc<Graph>, check: GuardCheck) -> Bailout {
        Bailout {
            body,
            code: OnceLock::new(),
            check,
            period: AtomicU32::new(0),
            checks: AtomicU32::new(0),
            failures: AtomicU32::new(0),
        }
    }

    /// Whether execution continues after the bail-out with this value as its result.
    #[inline]
    pub(crate) fn passes(&self, value: &IValue) -> bool {
        self.check.holds(value) && (self.period.load(Ordering::Relaxed) == 0 || !self.is_forced())
    }

    #[cold]
    fn is_forced(&self) -> bool {
        let check = self.checks.fetch_add(1, Ordering::Relaxed);
        // Another thread may have set the period to 0 since.
        check.wrapping_add(1).checked_rem(self.period.load(Ordering::Relaxed)) == Some(0)
    }
}

impl Code {
    /// Returns the states of the bail-outs, in program order.
    pub fn bailouts(&self) -> impl ExactSizeIterator<Item = BailoutState> + '_ {
        self.bailouts.iter().map(|&at| {
            let site = &self.sites[at as usize];
            let index = self.graph.attr(site.node, names::index()).and_then(|a| a.as_int());
            let bailout = self.bailout(at);
            let failures = bailout.map_or(0, |b| b.failures.load(Ordering::Relaxed));
            BailoutState { node: site.node, index, length: bailout.and_then(|b| b.check.length), failures }
        })
    }

    /// Returns the number of failed checks of all bail-outs together.
    #[inline]
    pub fn failures(&self) -> u32 {
        self.failed.count.load(Ordering::Relaxed)
    }

    /// Sets the receiver of failed checks, unless there is one already.
    pub fn set_bailout_handler(&self, handler: Arc<dyn BailoutHandler>) {
        // The first handler stays.
        let _ = self.failed.handler.set(handler);
    }

    /// Returns the graph of the continuation of a bail-out, given its position in [`Code::bailouts`].
    pub fn continuation(&self, position: usize) -> Option<&Arc<Graph>> {
        self.bailout(*self.bailouts.get(position)?).map(|bailout| &bailout.body)
    }

    /// Counts a failed check of the bail-out of a site and informs the handler; returns the code that it supplies.
    pub(crate) fn check_failed(&self, site: u32, value: &IValue, captures: &[IValue]) -> Option<Arc<Code>> {
        let bailout = self.bailout(site)?;
        bailout.failures.fetch_add(1, Ordering::Relaxed);
        self.failed.count.fetch_add(1, Ordering::Relaxed);
        let handler = self.failed.handler.get()?;
        let position = self.bailouts.binary_search(&site).ok()?;
        handler.failed(FailedCheck {
            position,
            value,
            expected: bailout.check.ty,
            expected_length: bailout.check.length,
            captures,
        })
    }

    /// Returns the code without the checks of arguments against the refined types of the graph's inputs. Every caller
    /// must check them itself, with [`crate::fits_inputs`]: else results may be wrong.
    #[must_use]
    pub fn without_input_checks(self) -> Code {
        Code { declared: Box::default(), ..self }
    }

    /// Makes every `period`th check of a bail-out fail, given its position in [`Code::bailouts`]; 0 ends this.
    ///
    /// # Panics
    /// If there is no such bail-out.
    pub fn force_bailout(&self, position: usize, period: u32) {
        if let Some(bailout) = self.bailout(self.bailouts[position]) {
            bailout.checks.store(0, Ordering::Relaxed);
            bailout.period.store(period, Ordering::Relaxed);
        }
    }

    /// Returns the bail-out of a site.
    pub(crate) fn bailout(&self, site: u32) -> Option<&Bailout> {
        match &self.sites[site as usize].work {
            SiteOp::BailOut(bailout) => Some(bailout),
            _ => None,
        }
    }
}
