//! `run --profile`: where the time of calls goes, by operator and by source line, how often each instruction of the bytecode
//! runs, and the plans that the executor made for the calls.
//!
//! The first calls are not measured: with the profiling executor they are profiled, and compile the plan. The table has the nodes
//! that the machine executes as kernels or fused groups; the rest of the time belongs to its instructions on numbers and lists, to the
//! binding of arguments, and to the reading of the clock. While nodes are timed, operators on strings and dictionaries are kernels, also
//! where instructions perform them otherwise. Instructions are counted in one call more, which is not timed.

use crate::plans::{CALLS, source_position};
use flambeau::exec::{BailoutState, CodeCounts, InstructionCounts, NodeTime, NodeTimes};
use flambeau::ir::Graph;
use flambeau::{Entry, Execution};
use serde_json::{Value, json};
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
    /// Executions of instructions in one call.
    pub(crate) instructions: InstructionCounts,
}

/// Times by operator and by source line, and of all nodes.
#[derive(Default)]
struct Sums {
    operators: BTreeMap<String, Sum>,
    lines: BTreeMap<String, Sum>,
    inside: Sum,
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
    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for node in self.nodes.entries() {
            sums.operators.entry(node.graph.op_name(node.node).to_string()).or_default().add(node);
            let line = source_position(&node.graph, node.node).unwrap_or_else(|| "(no source)".to_owned());
            sums.lines.entry(line).or_default().add(node);
            sums.inside.add(node);
        }
        sums
    }

    /// Returns the report.
    pub(crate) fn text(&self, entry: &Entry) -> String {
        let Sums { operators, lines, inside } = self.sums();
        let rest = Sum { calls: u64::from(self.calls), time: self.time.saturating_sub(inside.time) };
        let mut text = String::new();
        let per_call = micros(self.time) / f64::from(self.calls.max(1));
        let calls = if self.calls == 1 { "call" } else { "calls" };
        // Writing to a string does not fail, here and below.
        let _ = writeln!(text, "{} {calls}, {per_call:.2} us per call", self.calls);
        self.table(&mut text, "operator", operators, Some(("(interpreter)", rest)));
        self.table(&mut text, "source line", lines, None);
        self.codes(entry).for_each(|(name, counts)| instructions_text(&mut text, &name, counts));
        text + &plans_text(entry) + &deoptimizations_text(entry)
    }

    /// Returns the report as JSON.
    pub(crate) fn json(&self, entry: &Entry) -> Value {
        let Sums { operators, lines, inside } = self.sums();
        let rows = |sums: BTreeMap<String, Sum>| -> Vec<Value> {
            let row = |(name, sum): (String, Sum)| json!({"name": name, "calls": sum.calls, "us": micros(sum.time)});
            sums.into_iter().map(row).collect()
        };
        json!({
            "calls": self.calls,
            "us": micros(self.time),
            "machine_us": micros(self.time.saturating_sub(inside.time)),
            "operators": rows(operators),
            "lines": rows(lines),
            "codes": self.codes(entry).map(|(name, counts)| instructions_json(&name, counts)).collect::<Vec<_>>(),
            "plans": plans_text(entry) + &deoptimizations_text(entry),
        })
    }

    /// Returns the counts of each code with the name of its function. The code that runs first is that of the entry; other code
    /// without a function is that of a subgraph.
    fn codes<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = (String, &'a CodeCounts)> {
        self.instructions.entries().iter().enumerate().map(|(at, counts)| {
            let name = match (at, counts.code.function()) {
                (0, _) => entry.name().to_owned(),
                (_, name) if name.is_empty() => "(subgraph)".to_owned(),
                (_, name) => name.to_string(),
            };
            (name, counts)
        })
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

/// Appends the listing of a code with the number of executions of each instruction.
fn instructions_text(text: &mut String, name: &str, entry: &CodeCounts) {
    let all: u64 = entry.counts.iter().sum();
    let _ = writeln!(text, "{all:>10}   at  instruction of {name}");
    for (at, (line, count)) in entry.code.listing().iter().zip(&entry.counts).enumerate() {
        let _ = writeln!(text, "{count:>10} {at:4}  {line}");
    }
}

fn instructions_json(name: &str, entry: &CodeCounts) -> Value {
    let lines = entry.code.listing();
    let instructions = entry.code.instrs().iter().zip(lines).zip(&entry.counts);
    let rows = instructions.map(
        |((instr, line), count)| json!({"opcode": format!("{:?}", instr.op), "text": line, "count": count}),
    );
    json!({"function": name, "instructions": rows.collect::<Vec<_>>()})
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// Returns the plans of an entry: preconditions, guards and their failures.
pub(crate) fn plans_text(entry: &Entry) -> String {
    let mut text = String::new();
    for plan in entry.plans() {
        let graph = plan.graph();
        let inputs: Vec<String> =
            graph.inputs().map(|v| format!("%{} : {}", graph.name(v), graph.ty(v))).collect();
        let _ = writeln!(text, "plan {}: ({})", plan.number(), inputs.join(", "));
        for (position, state) in plan.code().bailouts().enumerate() {
            let guarded = guard_text(graph, position, &state);
            let _ = writeln!(text, "  {guarded}; failures: {}", state.failures);
        }
    }
    text
}

/// Returns a guard with its position in its plan, as `FLAMBEAU_DEOPT=guard:K` names it.
pub(crate) fn guard_text(graph: &Graph, position: usize, state: &BailoutState) -> String {
    let node = state.node;
    let (value, ty) = (graph.operand(node, 0), graph.ty(graph.result(node, 0)));
    let at = source_position(graph, node).map_or_else(String::new, |at| format!(" at {at}"));
    let length = length_text(state.length);
    format!("guard {position}: %{} is {ty}{length}{at}", graph.name(value))
}

fn length_text(length: Option<usize>) -> String {
    length.map_or_else(String::new, |n| format!(" of length {n}"))
}

/// Returns the guards that failed, one paragraph each; empty if there are none.
pub(crate) fn deoptimizations_text(entry: &Entry) -> String {
    let mut text = String::new();
    for failed in entry.deoptimizations() {
        let at = failed.location.as_deref().map_or_else(String::new, |at| format!(" at {at}"));
        let _ =
            writeln!(text, "guard {} of plan {} failed: %{}{at}", failed.position, failed.plan, failed.value);
        let _ = writeln!(text, "  expected {}{}", failed.expected, length_text(failed.expected_length));
        let times = if failed.times == 1 { "once".to_owned() } else { format!("{} times", failed.times) };
        let forced = if failed.forced { ", forced by FLAMBEAU_DEOPT" } else { "" };
        let seen = failed.seen.map_or_else(|| "other values".to_owned(), |ty| ty.to_string());
        let _ = writeln!(text, "  seen     {seen}{} ({times}{forced})", length_text(failed.seen_length));
        match failed.replaced_by {
            Some(plan) => {
                let _ = writeln!(text, "  replaced by plan {plan}, which omits the guard");
            }
            None if failed.specialized => {
                text.push_str("  the continuation was specialized to the types of its captured values\n")
            }
            None => text.push_str("  calls continued in the unoptimized program\n"),
        }
    }
    text
}
