//! `test run`: the program can be run, and the `run:` lines say with what result. Prints nothing itself; the lines are
//! checked for every file that has some.

use super::super::command::{Blame, Command};
use super::super::file::TestFile;

/// `test run`.
pub(super) struct Run;

impl Command for Run {
    fn name(&self) -> &'static str {
        "run"
    }

    fn run(&self, file: &TestFile, _program: &str, _args: &str) -> Result<String, Vec<Blame>> {
        if file.runs.is_empty() {
            Err(Blame::nowhere("no `run:` line says what to run"))
        } else {
            Ok(String::new())
        }
    }

    fn survives_round_trip(&self) -> bool {
        false // nothing printed to compare; the calls have treatments of their own
    }
}
