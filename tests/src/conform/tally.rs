//! Counts of outcomes by suite and group, and their reports.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::case::{Outcome, Verdict};
use super::instructions::{Executions, Shares};

/// The counts of all suites.
#[derive(Default)]
pub struct Tally {
    suites: Vec<SuiteTally>,
}

/// The counts of a suite.
#[derive(Default)]
struct SuiteTally {
    name: String,
    all: Counts,
    groups: std::collections::BTreeMap<String, Counts>,
    extended: usize,
    /// Cases whose gradients were computed by graphs.
    graphs: usize,
    /// The other cases with gradients, and why the tape computed these.
    taped: Vec<(String, String)>,
    /// The instructions that cases executed, if they were counted.
    instructions: Shares,
    /// Cases that did not pass: index, id, verdict.
    wrong: Vec<(usize, String, Verdict)>,
}

#[derive(Default, Clone, Copy)]
struct Counts {
    cases: usize,
    passed: usize,
    failed: usize,
    unsupported: usize,
    panicked: usize,
}

impl Counts {
    fn add(&mut self, outcome: Outcome) {
        self.cases += 1;
        *match outcome {
            Outcome::Passed => &mut self.passed,
            Outcome::Failed => &mut self.failed,
            Outcome::Unsupported => &mut self.unsupported,
            Outcome::Panicked => &mut self.panicked,
        } += 1;
    }
}

/// The remark of a case that PyTorch rejects and that runs here.
pub const EXTENDED: &str = "extended";

/// The remark of a case whose calls ran differentiated graphs.
pub const GRAPH: &str = "differentiated as a graph";

/// The beginning of the remark of a case whose calls were recorded operator by operator; the reason follows.
pub const TAPE: &str = "recorded: ";

/// The beginning of the remark of a case whose instructions were counted; the counts follow.
pub const EXECUTED: &str = "executed: ";

impl Tally {
    /// Starts a suite; the following cases belong to it.
    pub fn start(&mut self, name: &str) {
        self.suites.push(SuiteTally { name: name.to_string(), ..SuiteTally::default() });
    }

    /// Counts a case of the current suite.
    pub fn add(&mut self, index: usize, id: &str, group: &str, verdict: Verdict) {
        let Some(suite) = self.suites.last_mut() else { return };
        suite.all.add(verdict.outcome);
        suite.groups.entry(group.to_string()).or_default().add(verdict.outcome);
        if verdict.outcome != Outcome::Passed {
            suite.wrong.push((index, id.to_string(), verdict));
        } else {
            match verdict.why.as_str() {
                EXTENDED => suite.extended += 1,
                GRAPH => suite.graphs += 1,
                why => {
                    suite.taped.extend(why.strip_prefix(TAPE).map(|why| (id.to_string(), why.to_string())));
                    if let Some(executed) = why.strip_prefix(EXECUTED) {
                        suite.instructions.add(&Executions::parse(executed));
                    }
                }
            }
        }
    }

    /// Ends a suite. Verdicts arrive in any order and are sorted by case here.
    pub fn end(&mut self) {
        if let Some(suite) = self.suites.last_mut() {
            suite.wrong.sort_by_key(|(index, _, _)| *index);
        }
    }

    /// Returns the counts as JSON.
    pub fn json(&self) -> Value {
        let suite = |s: &SuiteTally| {
            let groups: Map<String, Value> = s
                .groups
                .iter()
                .map(|(name, c)| {
                    let counts = json!({"cases": c.cases, "passed": c.passed, "failed": c.failed + c.panicked,
                        "unsupported": c.unsupported});
                    (name.clone(), counts)
                })
                .collect();
            json!({"suite": s.name, "cases": s.all.cases, "passed": s.all.passed, "failed": s.all.failed,
                "unsupported": s.all.unsupported, "panicked": s.all.panicked, "groups": groups})
        };
        json!({"suites": self.suites.iter().map(suite).collect::<Vec<_>>()})
    }

    /// Returns one line per case that did not pass, or whose calls were recorded on the tape: outcome, id, reason.
    pub fn failures(&self) -> String {
        let mut text = String::new();
        for (id, why) in self.suites.iter().flat_map(|s| &s.taped) {
            let _ = writeln!(text, "recorded\t{id}\t{}", why.replace('\n', " ⏎ "));
        }
        for (_, id, verdict) in self.suites.iter().flat_map(|s| &s.wrong) {
            let _ = writeln!(text, "{}\t{id}\t{}", verdict.outcome.word(), verdict.why.replace('\n', " ⏎ "));
        }
        text
    }

    /// Returns a report of the counts and the most frequent reasons.
    pub fn text(&self, reasons: usize) -> String {
        let mut text = String::new();
        for suite in &self.suites {
            suite.write(reasons, &mut text);
        }
        let _ = writeln!(
            text,
            "\n{:10} {:>7} {:>7} {:>7} {:>12} {:>9}",
            "suite", "cases", "passed", "failed", "unsupported", "panicked"
        );
        for suite in &self.suites {
            let c = suite.all;
            let (name, extended) = (&suite.name, suite.extended);
            let _ = write!(
                text,
                "{name:10} {:7} {:7} {:7} {:12} {:9}",
                c.cases, c.passed, c.failed, c.unsupported, c.panicked
            );
            let differentiated = suite.graphs + suite.taped.len();
            let more = if differentiated > 0 {
                format!("   ({} of {differentiated} differentiated as graphs)", suite.graphs)
            } else if extended > 0 {
                format!("   ({extended} run here that PyTorch refuses)")
            } else {
                String::new()
            };
            let _ = writeln!(text, "{more}");
        }
        text
    }
}

impl SuiteTally {
    fn write(&self, reasons: usize, text: &mut String) {
        let _ = writeln!(text, "\n{}", self.name);
        for (name, c) in self.groups.iter().filter(|(name, _)| !name.is_empty()) {
            let bad = c.failed + c.panicked;
            let _ = writeln!(
                text,
                "  {name:40} {:5} of {:5} passed, {bad} failed, {} unsupported",
                c.passed, c.cases, c.unsupported
            );
        }
        self.instructions.write(reasons, text);
        let mut taped = std::collections::BTreeMap::<&str, (usize, &str)>::new();
        self.taped.iter().for_each(|(id, reason)| taped.entry(reason).or_insert((0, id)).0 += 1);
        let mut taped: Vec<_> = taped.into_iter().collect();
        taped.sort_by_key(|(reason, (n, _))| (std::cmp::Reverse(*n), *reason));
        for (reason, (n, id)) in taped.iter().take(reasons) {
            let _ = writeln!(text, "  recorded    {n:5} × {reason}   (first: {id})");
        }
        for outcome in [Outcome::Panicked, Outcome::Failed, Outcome::Unsupported] {
            let mut counts = std::collections::BTreeMap::<&str, (usize, &str)>::new();
            for (_, id, v) in self.wrong.iter().filter(|(_, _, v)| v.outcome == outcome) {
                let line = v.why.lines().next().unwrap_or("");
                counts.entry(line).or_insert((0, id)).0 += 1;
            }
            let mut counts: Vec<_> = counts.into_iter().collect();
            counts.sort_by_key(|(why, (n, _))| (std::cmp::Reverse(*n), *why));
            for (why, (n, id)) in counts.iter().take(reasons) {
                let _ = writeln!(text, "  {:11} {n:5} × {why}   (first: {id})", outcome.word());
            }
            if counts.len() > reasons {
                let _ = writeln!(
                    text,
                    "  {:11}       and {} other reasons",
                    outcome.word(),
                    counts.len() - reasons
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_listed_by_suite_and_group() {
        let mut tally = Tally::default();
        tally.start("ops");
        tally.add(1, "ops/b", "mul", Verdict::failed("wrong"));
        tally.add(0, "ops/a", "add", Verdict::panicked("boom"));
        tally.add(2, "ops/c", "mul", Verdict::passed());
        tally.add(3, "ops/d", "mul", Verdict { why: format!("{TAPE}a write"), ..Verdict::passed() });
        tally.end();
        let json = tally.json();
        assert_eq!(json["suites"][0]["failed"], 1);
        assert_eq!(json["suites"][0]["panicked"], 1);
        assert_eq!(json["suites"][0]["groups"]["mul"]["passed"], 2);
        assert_eq!(
            tally.failures(),
            "recorded\tops/d\ta write\npanicked\tops/a\tboom\nfailed\tops/b\twrong\n"
        );
        assert!(tally.text(3).contains("1 × wrong   (first: ops/b)"));
    }
}
