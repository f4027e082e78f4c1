//! `test run`: the program has `run:` lines. Prints nothing; the lines of a file are checked whatever its commands.

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
            Err(Blame::nowhere("the file has no `run:` line"))
        } else {
            Ok(String::new())
        }
    }

    fn survives_round_trip(&self) -> bool {
        false // prints nothing to compare; calls have their own treatments
    }
}
