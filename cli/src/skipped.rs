//! Rules that fit a graph and were not applied because the pipeline does not accept their class: they promise less than
//! equal bits (`rounding`, `finite`, `shape-only`), and passes apply exact rules unless their option `accept` says more.
//!
//! Found by applying all rules, of whatever class, to a copy of the graph after the pipeline, once.

use anyhow::Result;
use flambeau::analysis::Analyses;
use flambeau::ir::CompilationUnit;
use flambeau::rewrite::{Control, Exactness, Manager, Pipeline, RewriteTrace, TraceEvent};
use flambeau::{Graph, Session};
use serde_json::{Value, json};
use std::fmt::Write;

/// The option of passes that apply rules.
const ACCEPT: &str = "accept";

/// A rule that fits a node.
pub(crate) struct Skipped {
    pub(crate) rule: String,
    pub(crate) class: Exactness,
    /// The node, as printed.
    pub(crate) at: String,
}

/// What a pipeline left out, and the trace of the run that found it.
pub(crate) struct LeftOut {
    pub(crate) rules: Vec<Skipped>,
    trace: RewriteTrace,
    classes: Vec<(String, Exactness)>,
}

impl LeftOut {
    /// Rules that fit `graph`, which the pipeline made, and that the pipeline did not accept. None if the pipeline has no
    /// pass that applies rules.
    pub(crate) fn find(
        session: &Session,
        unit: &CompilationUnit,
        graph: &Graph,
        pipeline: &Pipeline,
    ) -> Result<LeftOut> {
        let accepted = pipeline.exactness();
        let applies_rules = |name| session.passes().find(name).is_some_and(|p| p.options.contains(&ACCEPT));
        let mut found = LeftOut { rules: Vec::new(), trace: RewriteTrace::default(), classes: Vec::new() };
        if !pipeline.pass_names().any(applies_rules) || !session.has_pass("rewrite") {
            return Ok(found);
        }
        let rules = session.rules()?;
        let is_left_out = |class| class > accepted;
        found.classes = rules
            .rules()
            .iter()
            .filter(|rule| is_left_out(rule.class))
            .map(|rule| (rule.name.clone(), rule.class))
            .collect();
        if found.classes.is_empty() {
            return Ok(found);
        }
        let all = session.pipeline(&format!("rewrite{{{ACCEPT}={},sweeps=1}}", Exactness::ShapeOnly))?;
        let (mut copy, mut control) = (graph.clone(), Control::new().with_trace());
        Manager::new().unit(unit).run_with(&mut copy, &all, &mut Analyses::new(), &mut control)?;
        found.trace = control.trace().cloned().unwrap_or_default();
        found.rules = found.trace.events().iter().filter_map(|event| found.skipped(event)).collect();
        Ok(found)
    }

    fn skipped(&self, event: &TraceEvent) -> Option<Skipped> {
        let TraceEvent::Rewrite { what, at, .. } = event else { return None };
        let (_, class) = self.classes.iter().find(|(name, _)| name == what)?;
        Some(Skipped { rule: what.clone(), class: *class, at: at.clone() })
    }

    /// One line with the number of rules by class; empty if none was left out.
    pub(crate) fn note(&self) -> String {
        let Some(least) = self.rules.iter().map(|s| s.class).min() else { return String::new() };
        let count = |class: &Exactness| self.rules.iter().filter(|s| s.class == *class).count();
        let counts: Vec<String> = Exactness::ALL
            .iter()
            .filter(|class| count(class) > 0)
            .map(|class| format!("{} {class}", count(class)))
            .collect();
        format!(
            "note: rules that fit were not applied because of their class: {}; --report names them, and \
             {ACCEPT}={least} in the options of `peephole` or `egraph` applies those of class {least}\n",
            counts.join(", ")
        )
    }

    /// A line for each rule.
    pub(crate) fn text(&self) -> String {
        self.rules.iter().map(line).collect()
    }

    /// A line for each rule that concerns a value.
    pub(crate) fn text_of(&self, value: flambeau::ir::ValueId) -> String {
        self.trace.of(value).into_iter().filter_map(|event| self.skipped(event)).map(|s| line(&s)).collect()
    }

    pub(crate) fn json(&self) -> Value {
        let one = |s: &Skipped| json!({"rule": s.rule, "class": s.class.name(), "at": s.at});
        self.rules.iter().map(one).collect()
    }
}

fn line(s: &Skipped) -> String {
    let mut line = String::new();
    let class = s.class;
    // Writing to a string cannot fail.
    let _ = writeln!(line, "not applied: {} [{class}] fits at {}; {ACCEPT}={class} applies it", s.rule, s.at);
    line
}
