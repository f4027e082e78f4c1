//! `test plan`: the plans that an executor makes for the `run:` lines, called one after the other on one program instance.
//!
//! The output has a line per call with the number of plans and the guards that have failed so far, then the graphs of the
//! final plans. Every call must agree with the reference evaluator.

use super::super::calls::{self, Instance};
use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use flambeau::{Compilation, Entry, Execution};
use std::fmt::Write;

/// `test plan`.
pub(super) struct Plan;

impl Command for Plan {
    fn name(&self) -> &'static str {
        "plan"
    }

    fn run(&self, file: &TestFile, _program: &str, _args: &str) -> Result<String, Vec<Blame>> {
        let Some(first) = file.runs.first() else {
            return Err(Blame::nowhere("the file has no `run:` line"));
        };
        let instance = |execution| Instance::new(file, &first.call, execution, Compilation::Synchronous);
        let reference = instance(Execution::Reference).map_err(Blame::nowhere)?;
        let profiling = instance(Execution::Profiling).map_err(Blame::nowhere)?;
        let mut text = String::new();
        for (number, run) in file.runs.iter().enumerate() {
            calls::same(&reference, &profiling, &run.call)
                .map_err(|message| vec![Blame { line: Some(run.line), message }])?;
            let _ = writeln!(text, "after call {}: {}", number + 1, state(profiling.entry()));
        }
        for plan in profiling.entry().plans() {
            text.push_str(&plan.graph().to_string());
        }
        Ok(text)
    }

    fn survives_round_trip(&self) -> bool {
        false // calls have their own treatments
    }
}

/// Describes the plans of an entry and their failed guards.
fn state(entry: &Entry) -> String {
    let plans = entry.plans();
    let mut text = format!("{} plans", plans.len());
    for plan in &plans {
        let graph = plan.graph();
        for guard in plan.code().bailouts().filter(|guard| guard.failures > 0) {
            let (value, result) = (graph.operand(guard.node, 0), graph.result(guard.node, 0));
            let (name, ty) = (graph.name(value), graph.ty(result));
            let length = guard.length.map_or_else(String::new, |n| format!(" of length {n}"));
            let _ = write!(text, ", guard of %{name}: {ty}{length} failed {} times", guard.failures);
        }
    }
    text
}
