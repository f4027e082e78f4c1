//! The trait [`Pass`] and the context [`PassCx`] of a running pass.
//!
//! A pass reads and edits the graph only through its [`PassCx`]. Analyses always match the current graph: the borrow of
//! an analysis prevents edits, and a request after an edit updates the analysis. Passes do not report whether they
//! changed the graph; the graph's journal records edits.

use crate::control::{Control, Fuel, InjectedBug, describe};
use crate::deadline::Deadline;
use crate::log::{Log, LogLevel};
use crate::patch::EditPlan;
use crate::rules::Exactness;
use crate::schedule::Schedule;
use flambeau_analysis::{Analyses, AnalysisSet};
use flambeau_ir::verify::verify;
use flambeau_ir::{CompilationUnit, Editor, Fault, Graph, InsertError, NodeId, Registry, Revision, Stale};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// A transformation of a graph.
pub trait Pass: Send + Sync + 'static {
    /// The name in pipelines, logs, limits and reports.
    const NAME: &'static str;
    /// Other names of the pass, such as PyTorch's.
    const ALIASES: &'static [&'static str] = &[];
    /// A one-sentence description.
    const DOC: &'static str = "";

    /// Returns how results may differ after the pass. The default is bit-exact.
    fn exactness(&self) -> Exactness {
        Exactness::Exact
    }

    /// Returns prefixes of the messages of errors that a program may raise before the pass and not after it, because
    /// PyTorch's pass of this name removes them as well. A program that ended in such an error may have any outcome
    /// after the pass. All other errors are preserved.
    fn removed_errors(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the passes that run before and after this one. A pass does not call other passes; it states here which
    /// ones it needs.
    fn schedule(&self) -> Schedule {
        Schedule::alone()
    }

    /// Transforms the graph of `cx`.
    ///
    /// # Errors
    /// Returns an error if the pass cannot do its work. The graph remains valid.
    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError>;
}

/// Object-safe version of [`Pass`].
pub trait DynPass: Send + Sync {
    /// [`Pass::NAME`].
    fn name(&self) -> &'static str;
    /// [`Pass::ALIASES`].
    fn aliases(&self) -> &'static [&'static str];
    /// [`Pass::exactness`].
    fn exactness(&self) -> Exactness;
    /// [`Pass::removed_errors`].
    fn removed_errors(&self) -> &'static [&'static str];
    /// [`Pass::schedule`].
    fn schedule(&self) -> Schedule;
    /// [`Pass::run`].
    ///
    /// # Errors
    /// Returns an error if the pass cannot transform the graph.
    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError>;
}

impl<P: Pass> DynPass for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        P::ALIASES
    }

    fn exactness(&self) -> Exactness {
        Pass::exactness(self)
    }

    fn removed_errors(&self) -> &'static [&'static str] {
        Pass::removed_errors(self)
    }

    fn schedule(&self) -> Schedule {
        Pass::schedule(self)
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        Pass::run(self, cx)
    }
}

/// The error of a pass.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}{}", location_suffix(.at))]
pub struct PassError {
    /// The kind of fault: the input's, an unsupported feature, or an internal bug.
    pub fault: Fault,
    /// The message: one sentence without a final period.
    pub message: String,
    /// The node concerned, as printed: `%3 = ns::op`.
    pub at: Option<String>,
}

fn location_suffix(at: &Option<String>) -> String {
    at.as_ref().map_or_else(String::new, |at| format!(" (at `{at}`)"))
}

impl PassError {
    /// An error without a node.
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        PassError { fault, message: message.into(), at: None }
    }

    /// An error about a node.
    pub fn at(graph: &Graph, node: NodeId, fault: Fault, message: impl Into<String>) -> Self {
        PassError { fault, message: message.into(), at: Some(describe(graph, node)) }
    }
}

/// A call that no overload accepts is a bug of the pass, not of its input.
impl From<InsertError> for PassError {
    fn from(error: InsertError) -> Self {
        PassError::new(Fault::Internal, error.to_string())
    }
}

impl From<Stale> for PassError {
    fn from(stale: Stale) -> Self {
        PassError::new(Fault::Misuse, format!("the plan was {stale}"))
    }
}

/// The context of a pass: the graph and the state that the passes of one run share.
pub struct PassCx<'a> {
    pub(crate) graph: &'a mut Graph,
    pub(crate) analyses: &'a mut Analyses,
    pub(crate) control: &'a mut Control,
    pub(crate) log: &'a Log,
    pub(crate) unit: Option<&'a CompilationUnit>,
    pub(crate) pass: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) counts: IndexMap<String, u64, FxBuildHasher>,
    /// Whether to verify the graph and compare analyses whenever the pass reads the graph after an edit.
    pub(crate) paranoid: bool,
    pub(crate) checked: Revision,
    /// The first problem that the paranoid checks found.
    pub(crate) broken: Option<String>,
}

impl<'a> PassCx<'a> {
    /// A context for running one pass without a manager: no log, no limits.
    pub fn bare(
        graph: &'a mut Graph,
        analyses: &'a mut Analyses,
        control: &'a mut Control,
        unit: Option<&'a CompilationUnit>,
    ) -> Self {
        static OFF: std::sync::LazyLock<Log> = std::sync::LazyLock::new(Log::off);
        let checked = graph.journal().revision();
        PassCx {
            graph,
            analyses,
            control,
            log: &OFF,
            unit,
            pass: "",
            aliases: &[],
            counts: IndexMap::default(),
            paranoid: false,
            checked,
            broken: None,
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// Returns the registry of operators.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(self.graph.registry())
    }

    /// Returns the unit with the functions and classes that calls refer to, if there is one.
    pub fn unit(&self) -> Option<&'a CompilationUnit> {
        self.unit
    }

    /// Returns the graph with up-to-date analyses: `cx.with::<AliasDb>()`, `cx.with::<(AliasDb, Shapes)>()`.
    pub fn with<S: AnalysisSet>(&mut self) -> (&Graph, S::Refs<'_>) {
        self.check_step();
        self.analyses.with::<S>(self.graph)
    }

    /// Returns an editor of the graph. Prefer a [`crate::patch::Patch`] if the decision needs analyses.
    pub fn edit(&mut self) -> Editor<'_> {
        self.check_step();
        self.graph.edit()
    }

    /// Returns an editor and the pass's fuel, for loops that interleave decisions and edits.
    pub fn edit_fuelled(&mut self) -> (Editor<'_>, Fuel<'_>) {
        self.check_step();
        (self.graph.edit(), self.control.meter(self.pass, self.aliases))
    }

    /// Applies a plan made at the current revision.
    ///
    /// # Errors
    /// Returns [`Stale`] if the graph was edited since the plan was made; the graph is then unchanged.
    pub fn apply<P: EditPlan>(&mut self, plan: P) -> Result<P::Done, Stale> {
        self.check_step();
        plan.apply(&mut self.graph.edit())
    }

    /// Takes fuel for rewrite `rewrite` at `node`. If this returns `false`, the pass must not do the rewrite.
    pub fn fuel(&mut self, rewrite: &str, node: NodeId) -> bool {
        let took = self.control.meter(self.pass, self.aliases).take(rewrite, self.graph, node);
        if took {
            self.log(LogLevel::Update, |g| format!("{rewrite} at {}", describe(g, node)));
        }
        took
    }

    /// Returns whether an earlier pass of the run changed more than types and names.
    pub fn is_rewritten(&self) -> bool {
        self.control.is_rewritten()
    }

    /// Returns the time at which the run must have ended. A pass checks it in searches that take longer than the
    /// rewrites that follow.
    pub fn deadline(&self) -> Deadline {
        self.control.deadline()
    }

    /// Whether the run records a rewrite trace, so that passes should supply proofs.
    pub fn is_tracing(&self) -> bool {
        self.control.trace().is_some()
    }

    /// Attaches a proof to the rewrite that took fuel last, if the run records a trace.
    pub fn prove(&mut self, proof: String) {
        if let Some(trace) = self.control.trace_mut() {
            trace.prove(proof);
        }
    }

    /// Adds `times` applications of a rule to the report.
    pub fn count(&mut self, rule: &str, times: u64) {
        match self.counts.get_mut(rule) {
            Some(n) => *n += times,
            None => {
                self.counts.insert(rule.to_owned(), times);
            }
        }
    }

    /// Logs a message. `text` runs only if the level is enabled.
    pub fn log(&self, level: LogLevel, text: impl FnOnce(&Graph) -> String) {
        if self.is_logging(level) {
            self.log.write(self.pass, level, &text(self.graph));
        }
    }

    /// Returns whether the log keeps messages of this level for the running pass.
    pub fn is_logging(&self, level: LogLevel) -> bool {
        let names: smallvec::SmallVec<[&str; 4]> =
            std::iter::once(self.pass).chain(self.aliases.iter().copied()).collect();
        self.log.is_enabled(&names, level)
    }

    /// The injected bug, for testing the fuzzer.
    pub(crate) fn injected_bug(&self) -> InjectedBug {
        self.control.injected_bug()
    }

    /// With paranoid checks, verifies the graph if it was edited since the last check.
    pub(crate) fn check_step(&mut self) {
        let now = self.graph.journal().revision();
        if !self.paranoid || self.broken.is_some() || now == self.checked {
            return;
        }
        self.checked = now;
        self.broken = match verify(self.graph) {
            Err(errors) => Some(errors.rendered().to_owned()),
            Ok(_) => self.analyses.check(self.graph).err().map(|e| e.join("\n")),
        };
    }
}
