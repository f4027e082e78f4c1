//! Fuel: limits on the number of rewrites in a run and on its time, and a record of the last rewrite.
//!
//! A pass takes one unit of fuel before each rewrite. A limit by pass name (`cse=12`) stops that pass after its twelfth
//! rewrite. A limit on the total stops the whole run; bisection varies this limit. A pass that gets no fuel continues
//! without rewriting. Invariant: every prefix of the rewrites yields a valid program, so binary search finds the first
//! wrong rewrite. If the deadline ([`Deadline`]) expires, the manager returns an error after the
//! pass.
//!
//! [`InjectedBug`] is off by default. It makes one pass wrong on purpose, to test that the fuzzer detects the
//! miscompilation.

use crate::deadline::Deadline;
use crate::trace::RewriteTrace;
use flambeau_ir::{Graph, NodeId, ValueId};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

/// A deliberate miscompilation, for testing the tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InjectedBug {
    /// None: all passes are correct.
    #[default]
    None,
    /// Common subexpressions are merged although their memory is written.
    CseIgnoresWriters,
    /// Dead code elimination drops nodes that write to live memory.
    DceDropsWrites,
    /// Constant propagation folds random operators, so the value no longer changes between runs.
    FoldsRandom,
    /// A tuple access uses the index plus one.
    TupleOffByOne,
    /// Rewrite rules are applied without checking their conditions.
    RulesWithoutConditions,
}

impl InjectedBug {
    /// All injected bugs.
    pub const ALL: [InjectedBug; 5] = [
        InjectedBug::CseIgnoresWriters,
        InjectedBug::DceDropsWrites,
        InjectedBug::FoldsRandom,
        InjectedBug::TupleOffByOne,
        InjectedBug::RulesWithoutConditions,
    ];

    /// The bug's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            InjectedBug::None => "none",
            InjectedBug::CseIgnoresWriters => "cse-ignores-writers",
            InjectedBug::DceDropsWrites => "dce-drops-writes",
            InjectedBug::FoldsRandom => "folds-random",
            InjectedBug::TupleOffByOne => "tuple-off-by-one",
            InjectedBug::RulesWithoutConditions => "rules-without-conditions",
        }
    }

    /// The pass that is made wrong.
    pub fn pass(self) -> &'static str {
        match self {
            InjectedBug::None => "",
            InjectedBug::CseIgnoresWriters => "cse",
            InjectedBug::DceDropsWrites => "dce",
            InjectedBug::FoldsRandom => "constant_propagation",
            InjectedBug::TupleOffByOne => "lower_simple_tuples",
            InjectedBug::RulesWithoutConditions => "peephole",
        }
    }
}

/// An entry of a limit text that is not of the form `pass=N`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("opt limit `{entry}`: expected `pass=N`, entries separated by `,` or `:`")]
pub struct LimitError {
    /// The entry that is wrong.
    pub entry: String,
}

/// A rewrite that took fuel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FueledRewrite {
    /// The pass.
    pub pass: &'static str,
    /// The rule or kind of rewrite.
    pub rewrite: String,
    /// The operator and results of the rewritten node, as printed before the rewrite.
    pub at: String,
    /// The number of the rewrite within the run, from 1.
    pub number: u64,
}

/// Fuel of one run of a pipeline.
#[derive(Clone, Debug, Default)]
pub struct Control {
    limits: Vec<(String, u64)>,
    used: IndexMap<&'static str, u64, FxBuildHasher>,
    total: u64,
    total_limit: Option<u64>,
    last: Option<FueledRewrite>,
    deadline: Deadline,
    injected_bug: InjectedBug,
    trace: Option<RewriteTrace>,
    is_rewritten: bool,
}

impl Control {
    /// No limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits by pass: `cse=12,dce=0`. Commas or colons separate entries.
    ///
    /// # Errors
    /// Returns [`LimitError`] for the first entry that is not of the form `pass=N`.
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        let mut limits = Vec::new();
        for entry in text.split([',', ':']).map(str::trim).filter(|e| !e.is_empty()) {
            let wrong = || LimitError { entry: entry.to_owned() };
            let (name, n) = entry.split_once('=').ok_or_else(wrong)?;
            limits.push((name.trim().to_owned(), n.trim().parse().map_err(|_| wrong())?));
        }
        Ok(Control { limits, ..Self::default() })
    }

    /// Limits from `FLAMBEAU_OPT_LIMIT`, or from `PYTORCH_JIT_OPT_LIMIT` if the former is not set.
    ///
    /// # Errors
    /// As [`Control::parse`].
    pub fn from_env() -> Result<Self, LimitError> {
        let text = ["FLAMBEAU_OPT_LIMIT", "PYTORCH_JIT_OPT_LIMIT"].iter().find_map(|n| std::env::var(n).ok());
        text.map_or_else(|| Ok(Self::new()), |t| Self::parse(&t))
    }

    /// Stops the whole run after this many rewrites (starting a pass counts as one).
    pub fn with_total_limit(mut self, limit: u64) -> Self {
        self.total_limit = Some(limit);
        self
    }

    /// Sets the time at which the run must have ended.
    pub fn with_deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = deadline;
        self
    }

    /// Returns the time at which the run must have ended.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Records a [`RewriteTrace`] of the run.
    pub fn with_trace(mut self) -> Self {
        self.trace = Some(RewriteTrace::default());
        self
    }

    /// Returns the recorded trace, if [`Control::with_trace`] was set.
    pub fn trace(&self) -> Option<&RewriteTrace> {
        self.trace.as_ref()
    }

    pub(crate) fn trace_mut(&mut self) -> Option<&mut RewriteTrace> {
        self.trace.as_mut()
    }

    /// Returns whether a pass that has ended changed more than types and names.
    pub fn is_rewritten(&self) -> bool {
        self.is_rewritten
    }

    pub(crate) fn set_rewritten(&mut self) {
        self.is_rewritten = true;
    }

    /// Plants a bug: makes one pass wrong on purpose.
    #[doc(hidden)]
    pub fn with_injected_bug(mut self, injected_bug: InjectedBug) -> Self {
        self.injected_bug = injected_bug;
        self
    }

    /// Returns the injected bug.
    pub fn injected_bug(&self) -> InjectedBug {
        self.injected_bug
    }

    /// Returns the number of units taken so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the last rewrite before the total limit was reached.
    pub fn last(&self) -> Option<&FueledRewrite> {
        self.last.as_ref()
    }

    /// Returns a control with the same limits, deadline and injected bug and with counters at zero.
    pub fn restarted(&self) -> Self {
        Control {
            limits: self.limits.clone(),
            deadline: self.deadline,
            injected_bug: self.injected_bug,
            total_limit: self.total_limit,
            ..Self::default()
        }
    }

    fn limit_of(&self, pass: &str, aliases: &[&str]) -> Option<u64> {
        self.limits.iter().find(|(n, _)| n == pass || aliases.contains(&n.as_str())).map(|(_, n)| *n)
    }

    /// Takes the unit for starting a pass. Returns `false` only if the total limit is reached.
    pub(crate) fn start(&mut self, pass: &'static str) -> bool {
        if self.total_limit.is_some_and(|limit| self.total >= limit) {
            return false;
        }
        self.total += 1;
        if self.total_limit == Some(self.total) {
            self.last = Some(FueledRewrite {
                pass,
                rewrite: "start".to_owned(),
                at: String::new(),
                number: self.total,
            });
        }
        true
    }

    pub(crate) fn meter(&mut self, pass: &'static str, aliases: &'static [&'static str]) -> Fuel<'_> {
        let limit = self.limit_of(pass, aliases).unwrap_or(u64::MAX);
        let used = self.used.get(pass).copied().unwrap_or(0);
        let total_limit = self.total_limit.unwrap_or(u64::MAX);
        Fuel { control: self, pass, used, limit, total_limit }
    }
}

/// The fuel of one pass, while it runs.
pub struct Fuel<'c> {
    control: &'c mut Control,
    pass: &'static str,
    used: u64,
    limit: u64,
    total_limit: u64,
}

impl Fuel<'_> {
    /// Takes one unit for rewrite `rewrite` at `node`. If this returns `false`, the pass must not do the rewrite.
    pub fn take(&mut self, rewrite: &str, graph: &Graph, node: NodeId) -> bool {
        if self.used >= self.limit || self.control.total >= self.total_limit {
            return false;
        }
        if self.control.deadline.has_passed() {
            return false;
        }
        self.used += 1;
        self.control.total += 1;
        if self.control.total == self.total_limit {
            let at = describe(graph, node);
            let number = self.control.total;
            self.control.last =
                Some(FueledRewrite { pass: self.pass, rewrite: rewrite.to_owned(), at, number });
        }
        if let Some(trace) = &mut self.control.trace {
            trace.rewrite(self.pass, rewrite, graph, node);
        }
        true
    }

    /// Whether the run records a rewrite trace.
    pub(crate) fn is_traced(&self) -> bool {
        self.control.trace.is_some()
    }

    /// Attaches a proof to the rewrite that took fuel last, if the run records a trace.
    pub(crate) fn prove(&mut self, proof: String) {
        if let Some(trace) = &mut self.control.trace {
            trace.prove(proof);
        }
    }

    /// Records in the trace the values, with their former names, whose nodes moved into the subgraph of `group`.
    pub(crate) fn outlined(&mut self, graph: &Graph, values: Vec<(ValueId, String)>, group: NodeId) {
        if let Some(trace) = &mut self.control.trace {
            trace.outlined(self.pass, graph, values, group);
        }
    }
}

impl Drop for Fuel<'_> {
    fn drop(&mut self) {
        self.control.used.insert(self.pass, self.used);
    }
}

/// A node as `%a, %b = ns::op`.
pub(crate) fn describe(graph: &Graph, node: NodeId) -> String {
    let results: Vec<String> = graph.results(node).map(|v| format!("%{}", graph.name(v))).collect();
    let name = graph.op_name(node);
    if results.is_empty() {
        name.as_str().to_owned()
    } else {
        format!("{} = {}", results.join(", "), name.as_str())
    }
}

/// The result of [`bisect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BisectResult {
    /// The full run is good.
    Good,
    /// The run is bad even when nothing is rewritten.
    BadBefore,
    /// The run is good up to this rewrite and bad with it.
    Guilty(FueledRewrite),
}

/// Finds the first rewrite that makes a run bad. `run` performs the whole run under the given control and returns
/// whether the outcome is bad. [`bisect`] calls `run` about log2(rewrites) + 3 times.
///
/// # Errors
/// Returns the first error of `run`.
pub fn bisect<E>(
    base: &Control,
    mut run: impl FnMut(&mut Control) -> Result<bool, E>,
) -> Result<BisectResult, E> {
    let mut control = base.restarted();
    if !run(&mut control)? {
        return Ok(BisectResult::Good);
    }
    let (mut good, mut bad) = (0, control.total());
    if run(&mut base.restarted().with_total_limit(0))? {
        return Ok(BisectResult::BadBefore);
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if run(&mut base.restarted().with_total_limit(middle))? {
            bad = middle;
        } else {
            good = middle;
        }
    }
    let mut control = base.restarted().with_total_limit(bad);
    run(&mut control)?;
    let unknown = FueledRewrite { pass: "", rewrite: String::new(), at: String::new(), number: bad };
    Ok(BisectResult::Guilty(control.last.unwrap_or(unknown)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_ir::Prim;
    use flambeau_ir::Registry;

    #[test]
    fn fuel_limits_are_parsed() {
        let c = Control::parse("cse=12, dce=0:fuse=3").unwrap();
        assert_eq!(c.limit_of("cse", &[]), Some(12));
        assert_eq!(c.limit_of("x", &["dce"]), Some(0));
        assert_eq!(c.limit_of("y", &[]), None);
        assert_eq!(Control::parse("cse").unwrap_err().entry, "cse");
        assert!(Control::parse("cse=-1").is_err());
    }

    #[test]
    fn bisection_names_the_rewrite() {
        let mut graph = Graph::new(Registry::empty());
        let node = graph.edit().node(Prim::Print, &[], &[]);
        let verdict = bisect::<()>(&Control::new(), |control| {
            let mut done = 0;
            if control.start("p") {
                let mut fuel = control.meter("p", &[]);
                for i in 0..100 {
                    if !fuel.take(&format!("step {i}"), &graph, node) {
                        break;
                    }
                    done += 1;
                }
            }
            Ok(done >= 38)
        });
        let Ok(BisectResult::Guilty(spent)) = verdict else { panic!("{verdict:?}") };
        assert_eq!((spent.pass, spent.rewrite.as_str(), spent.at.as_str()), ("p", "step 37", "prim::Print"));
    }
}
