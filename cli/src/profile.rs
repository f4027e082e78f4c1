//! `run --profile`: where the time of calls goes, by operator and by source line, and what the executor made of them.
//!
//! The first calls are not measured: they are profiled, and compile the plan. The table has the nodes that the machine
//! executes as kernels or fused groups; the rest of the time belongs to its instructions on numbers and lists, to the
//! binding of arguments, and to the reading of the clock.

use crate::plans::{CALLS, source_position};
use flambeau::exec::{BailoutState, NodeTime, NodeTimes};
use flambeau::ir::Graph;
use flambeau::{Entry, Execution};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Number of calls before those that are measured, for a mode of execution.
pub(crate) fn warm_up(execution: Execution) -> usize {
    if execution == Execution::Profiling { CALLS } else { 1 }
}

/// The measured calls.
pub(crate) struct Profile {
    pub(crate) calls: u32,
    /// Time of all calls together.
    pub(crate) time: Duration,
    pub(crate) nodes: NodeTimes,
}

/// Executions of several nodes.
#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u64,
    time: Duration,
}

impl Sum {
    fn add(&mut self, node: &NodeTime) {
        self.calls += node.calls;
        self.time += node.time;
    }
}

impl Profile {
    /// Returns the report.
    pub(crate) fn text(&self, entry: &Entry) -> String {
        let (mut operators, mut lines) = (BTreeMap::<String, Sum>::new(), BTreeMap::<String, Sum>::new());
        let mut inside = Sum::default();
        for node in self.nodes.entries() {
            operators.entry(node.graph.op_name(node.node).to_string()).or_default().add(node);
            let line = source_position(&node.graph, node.node).unwrap_or_else(|| "(no source)".to_owned());
            lines.entry(line).or_default().add(node);
            inside.add(node);
        }
        let rest = Sum { calls: u64::from(self.calls), time: self.time.saturating_sub(inside.time) };
        let mut text = String::new();
        let per_call = micros(self.time) / f64::from(self.calls.max(1));
        let calls = if self.calls == 1 { "call" } else { "calls" };
        // Writing to a string does not fail, here and below.
        let _ = writeln!(text, "{} {calls}, {per_call:.2} us per call", self.calls);
        self.table(&mut text, "operator", operators, Some(("(interpreter)", rest)));
        self.table(&mut text, "source line", lines, None);
        text + &plans_text(entry)
    }

    fn table(&self, text: &mut String, title: &str, sums: BTreeMap<String, Sum>, rest: Option<(&str, Sum)>) {
        let mut rows: Vec<(String, Sum)> = sums.into_iter().collect();
        rows.extend(rest.map(|(name, sum)| (name.to_owned(), sum)));
        // Stable, so that rows of equal time are in order of their names.
        rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.time));
        let _ = writeln!(text, "{:>8} {:>10} {:>6}  {title}", "calls", "us", "%");
        for (name, sum) in rows {
            let share = 100.0 * micros(sum.time) / micros(self.time).max(f64::MIN_POSITIVE);
            let _ = writeln!(text, "{:>8} {:>10.2} {share:>6.1}  {name}", sum.calls, micros(sum.time));
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// Returns the plans of an entry: preconditions, guards and their failures.
fn plans_text(entry: &Entry) -> String {
    let mut text = String::new();
    for plan in entry.plans() {
        let graph = plan.graph();
        let inputs: Vec<String> =
            graph.inputs().map(|v| format!("%{} : {}", graph.name(v), graph.ty(v))).collect();
        let _ = writeln!(text, "plan {}: ({})", plan.number(), inputs.join(", "));
        for state in plan.code().bailouts() {
            let guarded = guard_text(graph, state);
            let _ = writeln!(text, "  guard {guarded}; failures: {}", state.failures);
        }
    }
    text + &deoptimizations_text(entry)
}

fn guard_text(graph: &Graph, state: BailoutState) -> String {
    let node = state.node;
    let (value, ty) = (graph.operand(node, 0), graph.ty(graph.result(node, 0)));
    let at = source_position(graph, node).map_or_else(String::new, |at| format!(" at {at}"));
    let length = length_text(state.length);
    format!("%{} is {ty}{length}{at}", graph.name(value))
}

fn length_text(length: Option<usize>) -> String {
    length.map_or_else(String::new, |n| format!(" of length {n}"))
}

/// Returns the guards that failed, one paragraph each; empty if there are none.
pub(crate) fn deoptimizations_text(entry: &Entry) -> String {
    let mut text = String::new();
    for failed in entry.deoptimizations() {
        let at = failed.location.as_deref().map_or_else(String::new, |at| format!(" at {at}"));
        let guard = failed.guard.map_or_else(String::new, |index| format!(" {index}"));
        let _ = writeln!(text, "guard{guard} of plan {} failed: %{}{at}", failed.plan, failed.value);
        let _ = writeln!(text, "  expected {}{}", failed.expected, length_text(failed.expected_length));
        let times = if failed.times == 1 { "once".to_owned() } else { format!("{} times", failed.times) };
        let forced = if failed.forced { ", forced by FLAMBEAU_DEOPT" } else { "" };
        let _ =
            writeln!(text, "  seen     {}{} ({times}{forced})", failed.seen, length_text(failed.seen_length));
        match failed.replaced_by {
            Some(plan) => {
                let _ = writeln!(text, "  replaced by plan {plan}, which omits the guard");
            }
            None if failed.specialized => {
                text.push_str("  the continuation was specialized to its captured values\n")
            }
            None => text.push_str("  calls continued in the unoptimized program\n"),
        }
    }
    text
}
