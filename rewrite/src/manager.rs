//! The pass manager: runs pipelines with fuel, a deadline, checks, logs, reports and captures, and builds a reproducer
//! for a failure.

use crate::control::{BisectResult, Control, bisect};
use crate::log::{Log, LogLevel};
use crate::pass::{DynPass, PassCx, PassError};
use crate::pipeline::{PassOptions, Pipeline, PipelineStep};
use crate::trace::ValueNames;
use flambeau_analysis::Analyses;
use flambeau_ir::text::PrintOptions;
use flambeau_ir::verify::verify_with;
use flambeau_ir::{Change, CompilationUnit, Fault, Graph, Revision};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::fmt;
use std::time::{Duration, Instant};

/// How often a run verifies the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Checks {
    /// Never.
    #[default]
    Off,
    /// Before and after the pipeline.
    Boundaries,
    /// Also after every pass.
    EveryPass,
    /// Also within passes: whenever a pass reads the graph after an edit, the graph is verified, and every analysis
    /// that was updated incrementally is compared with a newly built one.
    EveryEdit,
}

/// Number of edits by kind, counted from the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// Nodes inserted.
    pub inserted: u64,
    /// Nodes erased.
    pub erased: u64,
    /// Nodes moved.
    pub moved: u64,
    /// Operands and uses replaced.
    pub operands: u64,
    /// Types set.
    pub types: u64,
    /// Anything else: results, blocks, signatures, operators, attributes.
    pub other: u64,
}

impl Edits {
    /// Returns whether nothing but types changed.
    fn are_types(self) -> bool {
        self == Edits { types: self.types, ..Edits::default() }
    }

    fn read(graph: &Graph, since: Revision) -> Option<Self> {
        let mut e = Edits::default();
        for change in graph.journal().since(since)? {
            match change {
                Change::Inserted(_) => e.inserted += 1,
                Change::Erased(_) => e.erased += 1,
                Change::Moved(_) => e.moved += 1,
                Change::OperandSet { .. } | Change::OperandsChanged(_) | Change::UsesReplaced { .. } => {
                    e.operands += 1
                }
                Change::TypeSet { .. } => e.types += 1,
                Change::ResultsChanged(_)
                | Change::BlocksChanged(_)
                | Change::SignatureChanged(_)
                | Change::OpSet(_) => e.other += 1,
                Change::Metadata => {}
            }
        }
        Some(e)
    }
}

/// Report on one pass.
#[derive(Clone, Debug)]
pub struct PassReport {
    /// The pass.
    pub pass: &'static str,
    /// Its options, as text.
    pub options: String,
    /// Number of nodes before and after.
    pub nodes: (usize, usize),
    /// Revisions before and after.
    pub revisions: (Revision, Revision),
    /// Whether anything but names and locations changed.
    pub changed: bool,
    /// Edits by kind; `None` if the journal no longer holds them all (the difference of the revisions is their number).
    pub edits: Option<Edits>,
    /// Number of applications by rule.
    pub counts: IndexMap<String, u64, FxBuildHasher>,
    /// Wall time.
    pub time: Duration,
    /// How many analyses were kept, and how many were built or rebuilt.
    pub analyses: (u64, u64),
}

/// Report on a pipeline.
#[derive(Clone, Debug, Default)]
pub struct PipelineReport {
    /// The passes in execution order.
    pub passes: Vec<PassReport>,
}

impl PipelineReport {
    /// Whether any pass changed the graph.
    pub fn changed(&self) -> bool {
        self.passes.iter().any(|p| p.changed)
    }

    /// Returns the total time spent in passes.
    pub fn time(&self) -> Duration {
        self.passes.iter().map(|p| p.time).sum()
    }
}

impl fmt::Display for PipelineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for p in &self.passes {
            let edits = p.revisions.1.edits() - p.revisions.0.edits();
            let micros = p.time.as_secs_f64() * 1e6;
            let name = format!("{}{}", p.pass, p.options);
            write!(f, "{name:<28} {:>7} -> {:<7} {edits:>7} edits {micros:>10.1} us", p.nodes.0, p.nodes.1)?;
            let rules: Vec<String> = p.counts.iter().map(|(r, n)| format!("{r} {n}")).collect();
            writeln!(f, "{}{}", if rules.is_empty() { "" } else { "  " }, rules.join(", "))?;
        }
        Ok(())
    }
}

/// The failure of a pipeline, with a reproducer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("pass `{pass}`: {error}")]
pub struct PipelineError {
    /// The pass that failed or whose result is invalid. `<input>` if the graph was invalid before the first pass.
    pub pass: String,
    /// The error.
    pub error: PassError,
    /// The graph before the pass, preceded by the command that runs the pass on it. `None` below
    /// [`Checks::EveryPass`], because the graph before the pass is then not kept, and if the deadline has passed.
    pub reproducer: Option<String>,
    /// The report on the passes that ran before the failure.
    pub report: PipelineReport,
}

/// The state passed to the hook of [`Manager::on_change`].
pub struct Capture<'a> {
    /// The pass; empty for the graph before the first pass.
    pub pass: &'static str,
    /// Its options.
    pub options: &'a PassOptions,
    /// The graph after the pass.
    pub graph: &'a Graph,
}

type Hook<'a> = Box<dyn FnMut(&Capture<'_>) + 'a>;

/// Runs pipelines over graphs.
#[derive(Default)]
pub struct Manager<'a> {
    checks: Checks,
    log: Log,
    unit: Option<&'a CompilationUnit>,
    hook: Option<Hook<'a>>,
}

impl<'a> Manager<'a> {
    /// A manager without checks and logs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how often runs verify the graph.
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Sets the log.
    pub fn log(mut self, log: Log) -> Self {
        self.log = log;
        self
    }

    /// Sets the unit that holds the functions and classes that calls refer to.
    pub fn unit(mut self, unit: &'a CompilationUnit) -> Self {
        self.unit = Some(unit);
        self
    }

    /// Calls `hook` with the graph before the first pass and after each pass that changed it.
    pub fn on_change(mut self, hook: impl FnMut(&Capture<'_>) + 'a) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Runs a pipeline without limits.
    ///
    /// # Errors
    /// Returns an error if a pass fails or a check finds the graph invalid.
    pub fn run(
        &mut self,
        graph: &mut Graph,
        pipeline: &Pipeline,
    ) -> Result<PipelineReport, Box<PipelineError>> {
        self.run_with(graph, pipeline, &mut Analyses::new(), &mut Control::new())
    }

    /// Runs a pipeline with existing analyses and with limits.
    ///
    /// # Errors
    /// As [`Manager::run`]; also if `analyses` belong to another graph.
    #[expect(clippy::missing_panics_doc, reason = "brackets of a pipeline match by construction")]
    pub fn run_with(
        &mut self,
        graph: &mut Graph,
        pipeline: &Pipeline,
        analyses: &mut Analyses,
        control: &mut Control,
    ) -> Result<PipelineReport, Box<PipelineError>> {
        let mut report = PipelineReport::default();
        if let Err(stale) = analyses.bind(graph) {
            let error = PassError::new(Fault::Misuse, format!("the analyses were {stale}"));
            return Err(failure("<input>", error, None, &mut report));
        }
        if self.checks >= Checks::Boundaries {
            self.verify(graph, "<input>", None, &mut report)?;
        }
        if let Some(hook) = &mut self.hook {
            hook(&Capture { pass: "", options: &PassOptions::default(), graph });
        }
        let mut at = 0;
        let mut loops: Vec<(u64, Revision)> = Vec::new();
        while let Some(step) = pipeline.steps.get(at) {
            at += 1;
            match step {
                PipelineStep::Run { pass, options } => {
                    let run = Run { graph, analyses, control, report: &mut report };
                    self.run_scheduled(&**pass, options, run, MAX_DEPTH)?;
                }
                PipelineStep::Repeat { end, bound } => {
                    if *bound == 0 {
                        at = end + 1;
                    } else {
                        loops.push((*bound, graph.journal().meaning()));
                    }
                }
                PipelineStep::Until { begin } => {
                    let (left, before) = loops.pop().expect("invariant: brackets of a pipeline match");
                    let now = graph.journal().meaning();
                    if left > 1 && now != before {
                        loops.push((left - 1, now));
                        at = begin + 1;
                    }
                }
            }
        }
        if self.checks == Checks::Boundaries {
            self.verify(graph, "<end>", None, &mut report)?;
        }
        Ok(report)
    }

    /// Runs a pass with the other passes of its schedule.
    fn run_scheduled(
        &mut self,
        pass: &dyn DynPass,
        options: &PassOptions,
        mut run: Run<'_>,
        depth: u32,
    ) -> Result<(), Box<PipelineError>> {
        let schedule = pass.schedule();
        let Some(depth) = depth.checked_sub(1) else {
            let text = format!("the schedule of pass `{}` is nested too deeply", pass.name());
            return Err(failure(pass.name(), PassError::new(Fault::Misuse, text), None, run.report));
        };
        for _ in 0..=schedule.repeats {
            let before = run.graph.journal().meaning();
            for first in &schedule.before {
                self.run_scheduled(&**first, &PassOptions::default(), run.again(), depth)?;
            }
            let own = run.graph.journal().meaning();
            self.run_pass(pass, options, run.again())?;
            let changed = run.graph.journal().meaning() != own;
            for follower in schedule.after.iter().filter(|f| changed || !f.if_changed) {
                self.run_scheduled(&*follower.pass, &PassOptions::default(), run.again(), depth)?;
            }
            if run.graph.journal().meaning() == before {
                break;
            }
        }
        Ok(())
    }

    fn run_pass(
        &mut self,
        pass: &dyn DynPass,
        options: &PassOptions,
        run: Run<'_>,
    ) -> Result<(), Box<PipelineError>> {
        let Run { graph, analyses, control, report } = run;
        let command = format!("{}{options}", pass.name());
        let deadline = control.deadline();
        deadline.check().map_err(|error| failure(&command, error, None, report))?;
        if !control.start(pass.name()) {
            return Ok(());
        }
        let before = (self.checks >= Checks::EveryPass).then(|| graph.clone());
        let (revision, meaning, nodes) =
            (graph.journal().revision(), graph.journal().meaning(), graph.node_count());
        let made = totals(analyses);
        let names = control.trace().is_some().then(|| ValueNames::of(graph));
        let start = Instant::now();
        let mut cx = PassCx {
            graph,
            analyses,
            control,
            log: &self.log,
            unit: self.unit,
            pass: pass.name(),
            aliases: pass.aliases(),
            counts: IndexMap::default(),
            paranoid: self.checks == Checks::EveryEdit,
            checked: revision,
            broken: None,
        };
        cx.log(LogLevel::Dump, |g| format!("before:\n{g}"));
        let result = pass.run(&mut cx);
        let time = start.elapsed();
        cx.check_step();
        let (counts, broken) = (std::mem::take(&mut cx.counts), cx.broken.take());
        let changed = cx.graph().journal().meaning() != meaning;
        if changed {
            cx.log(LogLevel::Dump, |g| format!("after:\n{g}"));
        }
        if let (Some(trace), Some(names)) = (control.trace_mut(), names) {
            trace.replaced(pass.name(), graph, revision, &names);
        }
        let edits = Edits::read(graph, revision);
        if edits.is_none_or(|edits| !edits.are_types()) {
            control.set_rewritten();
        }
        let now = totals(analyses);
        report.passes.push(PassReport {
            pass: pass.name(),
            options: options.to_string(),
            nodes: (nodes, graph.node_count()),
            revisions: (revision, graph.journal().revision()),
            changed,
            edits,
            counts,
            time,
            analyses: (now.0 - made.0, now.1 - made.1),
        });
        let broken =
            broken.map(|text| PassError::new(Fault::Internal, format!("left a broken graph:\n{text}")));
        if let Some(error) = result.err().or(broken) {
            let shown = before.as_ref().map(|g| reproducer(&command, &error.message, g));
            return Err(failure(&command, error, shown, report));
        }
        // A pass gets no fuel after the deadline, so its result may be incomplete.
        deadline.check().map_err(|error| failure(&command, error, None, report))?;
        if self.checks >= Checks::EveryPass {
            self.verify(graph, &command, before.as_ref(), report)?;
        }
        if let Some(hook) = self.hook.as_mut().filter(|_| changed) {
            hook(&Capture { pass: pass.name(), options, graph });
        }
        Ok(())
    }

    fn verify(
        &self,
        graph: &Graph,
        command: &str,
        before: Option<&Graph>,
        report: &mut PipelineReport,
    ) -> Result<(), Box<PipelineError>> {
        let verdict = match self.unit {
            Some(unit) => verify_with(graph, unit),
            None => verify_with(graph, &flambeau_ir::types::NoClasses),
        };
        let Err(errors) = verdict else { return Ok(()) };
        let fault = if command == "<input>" { Fault::Input } else { Fault::Internal };
        let error = PassError::new(fault, format!("the graph is broken:\n{}", errors.rendered()));
        let shown = before.map(|g| reproducer(command, &error.message, g));
        Err(failure(command, error, shown, report))
    }

    /// Finds the first rewrite of a pipeline after which `is_bad` returns `true` for the graph.
    ///
    /// # Errors
    /// As [`Manager::run`].
    pub fn bisect(
        &mut self,
        graph: &Graph,
        pipeline: &Pipeline,
        base: &Control,
        mut is_bad: impl FnMut(&Graph) -> bool,
    ) -> Result<BisectResult, Box<PipelineError>> {
        bisect(base, |control| {
            let mut copy = graph.clone();
            self.run_with(&mut copy, pipeline, &mut Analyses::new(), control)?;
            Ok(is_bad(&copy))
        })
    }
}

/// Maximum depth of nested schedules.
const MAX_DEPTH: u32 = 16;

/// State shared by the passes of a pipeline.
struct Run<'r> {
    graph: &'r mut Graph,
    analyses: &'r mut Analyses,
    control: &'r mut Control,
    report: &'r mut PipelineReport,
}

impl Run<'_> {
    fn again(&mut self) -> Run<'_> {
        Run { graph: self.graph, analyses: self.analyses, control: self.control, report: self.report }
    }
}

/// The total numbers of analyses kept, and of analyses built.
fn totals(analyses: &Analyses) -> (u64, u64) {
    analyses.stats().fold((0, 0), |(kept, made), s| (kept + s.kept, made + s.built + s.rebuilt))
}

fn failure(
    pass: &str,
    error: PassError,
    reproducer: Option<String>,
    report: &mut PipelineReport,
) -> Box<PipelineError> {
    Box::new(PipelineError { pass: pass.to_owned(), error, reproducer, report: std::mem::take(report) })
}

/// Returns the text that reproduces a failure: the command that runs `pipeline` on this text, the first line of the
/// error's message, and the graph before the pipeline with all elements of its constants.
pub fn reproducer(pipeline: &str, message: &str, before: &Graph) -> String {
    let first = message.lines().next().unwrap_or_default();
    let graph = before.to_text(PrintOptions { exact: true, ..PrintOptions::default() });
    format!("# flambeau opt -p '{pipeline}' --checks every-edit THIS_FILE\n# {first}\n{graph}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::Pass;
    use crate::passes::{cse::Cse, dce::Dce};
    use crate::schedule::Schedule;
    use crate::testing::{read, toy};

    /// Erases one node per run, from the end.
    struct Shrink;
    impl Pass for Shrink {
        const NAME: &'static str = "shrink";
        fn schedule(&self) -> Schedule {
            Schedule::alone().first(Cse).then(Dce::default()).then_if_changed(Cse).rounds(3)
        }
        fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
            let last = cx.graph().nodes(cx.graph().root()).last();
            let unused = last.filter(|&n| cx.graph().results(n).all(|v| cx.graph().use_count(v) == 0));
            unused.into_iter().for_each(|n| cx.edit().erase(n));
            Ok(())
        }
    }

    /// A pass that is scheduled before itself.
    struct Endless;
    impl Pass for Endless {
        const NAME: &'static str = "endless";
        fn schedule(&self) -> Schedule {
            Schedule::alone().first(Endless)
        }
        fn run(&self, _: &mut PassCx<'_>) -> Result<(), PassError> {
            Ok(())
        }
    }

    #[test]
    fn schedules_are_run_under_their_own_names() {
        let text = "graph(%x : Tensor, %s : str):
  %a : Tensor = toy::relu(%x)
  %b : Tensor = toy::relu(%x)
   = toy::warn(%s)
   = toy::warn(%s)
  return (%a)
";
        let mut graph = read(&toy(), text);
        let report = Manager::new().run(&mut graph, &Pipeline::new().then(Shrink)).unwrap();
        let names: Vec<&str> = report.passes.iter().map(|p| p.pass).collect();
        let round = ["cse", "shrink", "dce", "cse"];
        assert_eq!(names, [&round[..], &round, &["cse", "shrink", "dce"]].concat());
        assert_eq!(graph.nodes_deep().count(), 1, "{graph}");
        let mut limited = read(&toy(), text);
        let mut control = Control::parse("cse=0,dce=0").unwrap();
        let pipeline = Pipeline::new().then(Shrink);
        Manager::new().run_with(&mut limited, &pipeline, &mut Analyses::new(), &mut control).unwrap();
        assert_eq!(limited.nodes_deep().count(), 1, "three rounds erase three nodes: {limited}");
    }

    /// A pass that fails.
    struct Fails;
    impl Pass for Fails {
        const NAME: &'static str = "fails";
        fn run(&self, _: &mut PassCx<'_>) -> Result<(), PassError> {
            Err(PassError::new(Fault::Internal, "planted\nwith details"))
        }
    }

    #[test]
    fn reproducers_read_back_exactly() {
        let registry = toy();
        let mut graph = read(&registry, "graph():\n  return ()\n");
        let elements: Vec<f64> = (0..1000).map(|i| f64::from(i) / 7.0).collect();
        let tensor = flambeau_tensor::Tensor::from_slice(&elements, &[1000]).unwrap();
        let value = graph.edit().constant(flambeau_ir::IValue::Tensor(tensor.clone()));
        graph.edit().add_output(value);
        let mut manager = Manager::new().checks(Checks::EveryPass);
        let error = manager.run(&mut graph, &Pipeline::new().then(Fails)).unwrap_err();
        let text = error.reproducer.expect("a reproducer");
        assert!(text.starts_with("# flambeau opt -p 'fails' --checks every-edit THIS_FILE\n# planted\n"));
        let again = read(&registry, &text);
        let constant = again.outputs().next().and_then(|v| again.constant(v));
        let again = constant.and_then(|v| v.as_tensor().cloned()).expect("a tensor");
        assert_eq!((again.dtype(), again.to_bytes().unwrap()), (tensor.dtype(), tensor.to_bytes().unwrap()));
    }

    #[test]
    fn cyclic_schedules_are_an_error() {
        let mut graph = read(&toy(), "graph(%x : Tensor):\n  return (%x)\n");
        let error = Manager::new().run(&mut graph, &Pipeline::new().then(Endless)).unwrap_err();
        assert_eq!(error.error.fault, Fault::Misuse, "{error}");
    }
}
