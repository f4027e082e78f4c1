//! Failure statistics of the guards of one plan: the values that failed them, and the specialized continuations.
//!
//! A [`GuardFailures`] receives the failed checks of a plan's bail-outs. It keeps the kinds of values that each guard saw, for
//! reports, and merges the metadata of the values with which a continuation is entered. A continuation that was entered
//! often is compiled for these metadata, like a plan for the arguments of calls. Later failures enter this code if their
//! values fit it, and the unspecialized continuation otherwise.
//!
//! All lists are bounded, and a failure that repeats an earlier one does not allocate: it costs well below a microsecond.

use crate::record::{Observed, ProfilingRecord, RunProfile};
use flambeau_exec::{BailoutHandler, Code, FailedCheck, fits_inputs};
use flambeau_ir::attr::names;
use flambeau_ir::{Graph, NodeId, Type};
use parking_lot::Mutex;
use std::sync::Arc;

/// Maximum number of different values that are kept per guard.
const MAX_OBSERVED_KINDS: usize = 8;

/// Maximum number of versions of a specialized continuation.
const MAX_VERSIONS: u32 = 2;

/// A guard of a plan that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deoptimization {
    /// The number of the plan.
    pub plan: u32,
    /// The position of the guard among those of its plan, as [`Deopt::Guard`](crate::Deopt::Guard) names it.
    pub position: usize,
    /// Number of the guard, which names it across plans: that of the profiling node from which it was made.
    pub guard: Option<i64>,
    /// The guarded value.
    pub value: String,
    /// The guarded type.
    pub expected: Type,
    /// The guarded length of a list.
    pub expected_length: Option<usize>,
    /// The type of the value that failed; `None` for the failures of all kinds of values beyond the first eight.
    pub seen: Option<Type>,
    /// The length of the list that failed.
    pub seen_length: Option<usize>,
    /// The source line of the guard, `file:line`.
    pub location: Option<String>,
    /// Number of failures with this type.
    pub times: u32,
    /// Whether the value had the guarded type, and a test made the guard fail.
    pub forced: bool,
    /// The number of the plan that was made instead, without the guard.
    pub replaced_by: Option<u32>,
    /// Whether the continuation was compiled for the values with which it was entered.
    pub specialized: bool,
}

/// A kind of values that failed a guard.
struct ObservedKind {
    /// `None` for all kinds that are not kept.
    value: Option<Observed>,
    times: u32,
    forced: bool,
}

/// Code for a continuation.
#[derive(Default)]
enum Continuation {
    #[default]
    Unspecialized,
    Requested,
    Specialized(Arc<Code>),
}

/// The failures of one bail-out.
#[derive(Default)]
struct BailoutSite {
    seen: Vec<ObservedKind>,
    /// Entries of the unspecialized continuation since the last request of a specialized one.
    entered: u32,
    /// The captured values of those entries.
    record: ProfilingRecord,
    continuation: Continuation,
    /// Number of specialized versions so far.
    versions: u32,
}

/// The failures of one plan's guards. See the [module](self).
pub(crate) struct GuardFailures {
    sites: Box<[Mutex<BailoutSite>]>,
    /// Entries after which a continuation is specialized; 0 for never.
    hot: u32,
}

impl GuardFailures {
    pub(crate) fn new(bailouts: usize, hot: u32) -> GuardFailures {
        GuardFailures { sites: (0..bailouts).map(|_| Mutex::default()).collect(), hot }
    }

    /// Returns the position and graph of the first continuation that was entered often enough, and marks it as requested.
    /// Inputs of type `Tensor` have the observed types; other inputs keep their declared types.
    pub(crate) fn take_hot(&self, code: &Code) -> Option<(usize, Graph)> {
        self.sites.iter().enumerate().find_map(|(position, site)| {
            let mut site = site.lock();
            let is_hot = self.hot > 0 && site.entered >= self.hot && site.versions < MAX_VERSIONS;
            if !is_hot || matches!(site.continuation, Continuation::Requested) {
                return None;
            }
            let mut graph = (**code.continuation(position)?).clone();
            let inputs: Vec<_> = graph.inputs().collect();
            let mut editor = graph.edit();
            // The observed types have symbols of their own.
            editor.clear_size_ranges();
            for (index, input) in inputs.into_iter().enumerate() {
                let declared = editor.graph().ty(input);
                let ty = site.record.input_type(index, declared);
                // The presence of optionals is stated by other types, which uses of the input need not accept.
                if ty.is_tensor() && declared.is_tensor() {
                    editor.set_type(input, ty);
                }
            }
            (site.continuation, site.entered) = (Continuation::Requested, 0);
            site.versions += 1;
            Some((position, graph))
        })
    }

    /// Sets the code of a specialized continuation; `None` if it was not compiled.
    pub(crate) fn set_continuation(&self, position: usize, code: Option<Arc<Code>>) {
        if let Some(site) = self.sites.get(position) {
            site.lock().continuation = code.map_or(Continuation::Unspecialized, Continuation::Specialized);
        }
    }

    /// Returns the graph of a specialized continuation.
    pub(crate) fn specialized(&self, position: usize) -> Option<Arc<Graph>> {
        match &self.sites.get(position)?.lock().continuation {
            Continuation::Specialized(code) => Some(Arc::clone(code.graph())),
            _ => None,
        }
    }

    /// Returns the failures so far.
    pub(crate) fn report(&self, plan: u32, code: &Code, replaced_by: Option<u32>) -> Vec<Deoptimization> {
        let graph = code.graph();
        let mut all = Vec::new();
        for (position, (site, state)) in self.sites.iter().zip(code.bailouts()).enumerate() {
            let site = site.lock();
            let guarded = graph.operand(state.node, 0);
            let expected = graph.ty(graph.result(state.node, 0));
            all.extend(site.seen.iter().map(|seen| Deoptimization {
                plan,
                position,
                guard: graph.attr(state.node, names::index()).and_then(|a| a.as_int()),
                value: graph.name(guarded).to_string(),
                expected,
                expected_length: state.length,
                seen: seen.value.as_ref().map(Observed::own_type),
                seen_length: seen.value.as_ref().and_then(Observed::length),
                location: source_line(graph, state.node),
                times: seen.times,
                forced: seen.forced,
                replaced_by,
                specialized: matches!(site.continuation, Continuation::Specialized(_)),
            }));
        }
        all
    }
}

impl BailoutHandler for GuardFailures {
    fn failed(&self, check: FailedCheck<'_>) -> Option<Arc<Code>> {
        let mut site = self.sites.get(check.position)?.lock();
        site.note(&check);
        if let Continuation::Specialized(code) = &site.continuation
            && fits_inputs(code.graph(), check.captures)
        {
            return Some(Arc::clone(code));
        }
        if self.hot > 0 && site.entered < self.hot && site.versions < MAX_VERSIONS {
            site.entered += 1;
            site.record.add(&RunProfile::new(check.captures, 0));
        }
        None
    }
}

impl BailoutSite {
    fn note(&mut self, check: &FailedCheck<'_>) {
        let (value, forced) = (Some(Observed::of(check.value)), check.is_forced());
        let kept = self.seen.iter().filter(|seen| seen.value.is_some()).count();
        let is_kept = kept < MAX_OBSERVED_KINDS
            || self.seen.iter().any(|seen| seen.value == value && seen.forced == forced);
        let value = value.filter(|_| is_kept);
        match self.seen.iter_mut().find(|seen| seen.forced == forced && seen.value == value) {
            Some(seen) => seen.times = seen.times.saturating_add(1),
            None => self.seen.push(ObservedKind { value, times: 1, forced }),
        }
    }
}

/// Returns the source line of a node, `file:line`.
fn source_line(graph: &Graph, node: NodeId) -> Option<String> {
    let range = graph.locs().range(graph.loc(node))?;
    let (line, _) = range.source.line_column(range.range.start as usize);
    Some(format!("{}:{line}", range.source.name))
}
