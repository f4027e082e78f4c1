//! Rules that match a graph but were not applied because the pipeline does not accept their class. Rules of these
//! classes (`rounding`, `finite`, `shape-only`) do not guarantee bitwise equal results; by default passes apply only exact
//! rules, and their option `accept` adds classes.
//!
//! To find them, all rules of every class are applied once to a copy of the graph after the last pass with rules: later
//! passes may move nodes into subgraphs, where rules do not look.

use crate::setup::control;
use anyhow::Result;
use flambeau::analysis::Analyses;
use flambeau::ir::CompilationUnit;
use flambeau::rewrite::{Control, Exactness, Manager, Pipeline, PipelineReport, RewriteTrace, TraceEvent};
use flambeau::{Graph, Session};
use serde_json::{Value, json};
use std::fmt::Write;

/// The option of passes with rules that selects accepted classes.
const ACCEPT: &str = "accept";

/// A rule that matches a node and whose class the pipeline does not accept.
pub(crate) struct UnacceptedRule {
    pub(crate) rule: String,
    pub(crate) class: Exactness,
    /// The printed node.
    pub(crate) at: String,
}

/// A run of a pipeline.
pub(crate) struct Run<'a> {
    pub(crate) unit: &'a CompilationUnit,
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) before: &'a Graph,
    pub(crate) after: &'a Graph,
    pub(crate) report: &'a PipelineReport,
}

/// The rules that match a graph and whose class a pipeline does not accept, with that graph and the trace of the run that
/// found them.
pub(crate) struct UnacceptedRules {
    pub(crate) rules: Vec<UnacceptedRule>,
    pub(crate) graph: Graph,
    trace: RewriteTrace,
    classes: Vec<(String, Exactness)>,
}

impl UnacceptedRules {
    /// Finds the rules. There are none if the pipeline has no pass that applies rules, or accepts all classes.
    pub(crate) fn find(session: &Session, run: &Run<'_>) -> Result<UnacceptedRules> {
        let accepted = run.pipeline.exactness();
        let applies_rules = |name| session.passes().find(name).is_some_and(|p| p.options.contains(&ACCEPT));
        let mut found = UnacceptedRules {
            rules: Vec::new(),
            graph: run.after.clone(),
            trace: RewriteTrace::default(),
            classes: Vec::new(),
        };
        let last = run.report.passes.iter().rposition(|p| applies_rules(p.pass));
        let Some(last) = last.filter(|_| session.has_pass("rewrite")) else { return Ok(found) };
        let rules = session.rules()?;
        let is_unaccepted = |class| class > accepted;
        found.classes = rules
            .rules()
            .iter()
            .filter(|rule| is_unaccepted(rule.class))
            .map(|rule| (rule.name.clone(), rule.class))
            .collect();
        if found.classes.is_empty() {
            return Ok(found);
        }
        let all = session.pipeline(&format!("rewrite{{{ACCEPT}={},sweeps=1}}", Exactness::ShapeOnly))?;
        found.graph = run.graph_after(last)?;
        let (mut copy, mut control) = (found.graph.clone(), Control::new().with_trace());
        Manager::new().unit(run.unit).run_with(&mut copy, &all, &mut Analyses::new(), &mut control)?;
        found.trace = control.trace().cloned().unwrap_or_default();
        found.rules = found.trace.events().iter().filter_map(|event| found.skipped(event)).collect();
        Ok(found)
    }

    fn skipped(&self, event: &TraceEvent) -> Option<UnacceptedRule> {
        let TraceEvent::Rewrite { rewrite, at, .. } = event else { return None };
        let (_, class) = self.classes.iter().find(|(name, _)| name == rewrite)?;
        Some(UnacceptedRule { rule: rewrite.clone(), class: *class, at: at.clone() })
    }

    /// Returns one line with the number of rules by class; empty if there are none.
    pub(crate) fn note(&self) -> String {
        let Some(least) = self.rules.iter().map(|s| s.class).min() else { return String::new() };
        let count = |class: &Exactness| self.rules.iter().filter(|s| s.class == *class).count();
        let counts: Vec<String> = Exactness::ALL
            .iter()
            .filter(|class| count(class) > 0)
            .map(|class| format!("{} {class}", count(class)))
            .collect();
        format!(
            "note: rules that match were not applied because they are not exact: {}; --report names them, and \
             {ACCEPT}={least} in the options of `peephole` or `egraph` applies those of class {least}\n",
            counts.join(", ")
        )
    }

    /// Returns a line for each rule.
    pub(crate) fn text(&self) -> String {
        self.rules.iter().map(line).collect()
    }

    /// A line for each rule that concerns a value of [`UnacceptedRules::graph`].
    pub(crate) fn text_of(&self, value: flambeau::ir::ValueId) -> String {
        self.trace.of(value).into_iter().filter_map(|event| self.skipped(event)).map(|s| line(&s)).collect()
    }

    pub(crate) fn json(&self) -> Value {
        let one = |s: &UnacceptedRule| json!({"rule": s.rule, "class": s.class.name(), "at": s.at});
        self.rules.iter().map(one).collect()
    }
}

impl Run<'_> {
    /// The graph after the pass at this place of the report. If later passes changed it, the pipeline runs again.
    fn graph_after(&self, place: usize) -> Result<Graph> {
        let (upto, later) = self.report.passes.split_at(place + 1);
        if later.iter().all(|pass| !pass.changed) {
            return Ok(self.after.clone());
        }
        // The graph is shown before the first pass and after each that changed it.
        let wanted = upto.iter().filter(|pass| pass.changed).count();
        let (mut shown, mut kept) = (0, None);
        let mut copy = self.before.clone();
        let mut manager = Manager::new().unit(self.unit).on_change(|capture| {
            if shown == wanted {
                kept = Some(capture.graph.clone());
            }
            shown += 1;
        });
        manager.run_with(&mut copy, self.pipeline, &mut Analyses::new(), &mut control()?)?;
        drop(manager);
        Ok(kept.unwrap_or(copy))
    }
}

fn line(s: &UnacceptedRule) -> String {
    let mut line = String::new();
    let class = s.class;
    // Writing to a string cannot fail.
    let _ =
        writeln!(line, "not applied: {} [{class}] matches at {}; {ACCEPT}={class} applies it", s.rule, s.at);
    line
}
