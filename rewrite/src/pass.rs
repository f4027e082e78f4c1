//! What a pass is, and what it is given.
//!
//! A pass asks and edits through its [`PassCx`] alone. Analyses come in step with the graph or not at all: while one is
//! borrowed the graph cannot be edited, and asking again after an edit brings it up to date. Passes do not say whether
//! they changed anything; the graph's journal knows.

use crate::control::{Control, Fuel, Planted, describe};
use crate::log::{Level, Log};
use crate::patch::Plan;
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
    /// Other names it is called by, such as PyTorch's.
    const ALIASES: &'static [&'static str] = &[];
    /// What it does, in one sentence without a final stop.
    const DOC: &'static str = "";

    /// What results may differ in after the pass. A pass that says nothing keeps every bit.
    fn exactness(&self) -> Exactness {
        Exactness::Exact
    }

    /// Errors that a program may raise before the pass and not after it, because PyTorch's pass of this name removes them
    /// as well: texts that their messages start with. A program may end in any way after the pass where it ended in
    /// such an error; all other errors are kept.
    fn removed_errors(&self) -> &'static [&'static str] {
        &[]
    }

    /// The passes that run before and behind this one. A pass does not call another: it states here what it needs.
    fn schedule(&self) -> Schedule {
        Schedule::alone()
    }

    /// Transforms the graph of `cx`.
    ///
    /// # Errors
    /// When the pass cannot do what it is for. The graph stays valid.
    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError>;
}

/// [`Pass`] behind a pointer.
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

/// Why a pass gave up.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}{}", place(.at))]
pub struct PassError {
    /// Whose fault it is.
    pub fault: Fault,
    /// What went wrong, one sentence without a final stop.
    pub message: String,
    /// The node it is about, as printed: `%3 = ns::op`.
    pub at: Option<String>,
}

fn place(at: &Option<String>) -> String {
    at.as_ref().map_or_else(String::new, |at| format!(" (at `{at}`)"))
}

impl PassError {
    /// An error about no node in particular.
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        PassError { fault, message: message.into(), at: None }
    }

    /// An error about a node.
    pub fn at(graph: &Graph, node: NodeId, fault: Fault, message: impl Into<String>) -> Self {
        PassError { fault, message: message.into(), at: Some(describe(graph, node)) }
    }
}

/// A pass that inserts a call which no operator takes is at fault, not its input.
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

/// What passes share in one run of a pipeline.
pub struct PassCx<'a> {
    pub(crate) graph: &'a mut Graph,
    pub(crate) analyses: &'a mut Analyses,
    pub(crate) control: &'a mut Control,
    pub(crate) log: &'a Log,
    pub(crate) unit: Option<&'a CompilationUnit>,
    pub(crate) pass: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) counts: IndexMap<String, u64, FxBuildHasher>,
    /// Verify and compare analyses whenever the pass looks at the graph again.
    pub(crate) paranoid: bool,
    pub(crate) checked: Revision,
    /// What the paranoid checks found first.
    pub(crate) broken: Option<String>,
}

impl<'a> PassCx<'a> {
    /// A context for running one pass by hand, without a manager: no log, no limits.
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

    /// The operators.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(self.graph.registry())
    }

    /// The functions and classes calls refer to, if the program has them.
    pub fn unit(&self) -> Option<&'a CompilationUnit> {
        self.unit
    }

    /// The graph with analyses in step with it: `cx.with::<AliasDb>()`, `cx.with::<(AliasDb, Shapes)>()`.
    pub fn with<S: AnalysisSet>(&mut self) -> (&Graph, S::Refs<'_>) {
        self.check_step();
        self.analyses.with::<S>(self.graph)
    }

    /// The door to change. Prefer a [`crate::patch::Patch`] where the decision needs analyses.
    pub fn edit(&mut self) -> Editor<'_> {
        self.check_step();
        self.graph.edit()
    }

    /// An editor together with the pass's fuel, for loops that decide and edit in one go.
    pub fn edit_fuelled(&mut self) -> (Editor<'_>, Fuel<'_>) {
        self.check_step();
        (self.graph.edit(), self.control.meter(self.pass, self.aliases))
    }

    /// Applies a plan made at this very revision.
    ///
    /// # Errors
    /// [`Stale`] if the graph was edited since; nothing is changed then.
    pub fn apply<P: Plan>(&mut self, plan: P) -> Result<P::Done, Stale> {
        self.check_step();
        plan.apply(&mut self.graph.edit())
    }

    /// Takes fuel for doing `what` at `node`. Without it, the rewrite must be left out.
    pub fn fuel(&mut self, what: &str, node: NodeId) -> bool {
        let took = self.control.meter(self.pass, self.aliases).take(what, self.graph, node);
        if took {
            self.log(Level::Update, |g| format!("{what} at {}", describe(g, node)));
        }
        took
    }

    /// Whether the run writes down what it does, so that proofs are wanted.
    pub fn is_tracing(&self) -> bool {
        self.control.trace().is_some()
    }

    /// Gives the rewrite that took fuel last its proof, where the run writes down what it does.
    pub fn prove(&mut self, proof: String) {
        if let Some(trace) = self.control.trace_mut() {
            trace.prove(proof);
        }
    }

    /// Counts an application of a rule for the report.
    pub fn count(&mut self, rule: &str, times: u64) {
        match self.counts.get_mut(rule) {
            Some(n) => *n += times,
            None => {
                self.counts.insert(rule.to_owned(), times);
            }
        }
    }

    /// Logs a message, made only if somebody wants it.
    pub fn log(&self, level: Level, text: impl FnOnce(&Graph) -> String) {
        let names: smallvec::SmallVec<[&str; 4]> =
            std::iter::once(self.pass).chain(self.aliases.iter().copied()).collect();
        if self.log.wants(&names, level) {
            self.log.write(self.pass, level, &text(self.graph));
        }
    }

    /// The bug planted, for the fuzzer's test of itself.
    pub(crate) fn planted(&self) -> Planted {
        self.control.planted()
    }

    /// With paranoid checks, verifies the graph if it was edited since the last look.
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
