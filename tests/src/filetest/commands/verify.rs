//! `test verify`: the verifier accepts the program or reports the expected errors. Prints nothing.

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test verify`.
pub(super) struct Verify;

impl Command for Verify {
    fn name(&self) -> &'static str {
        "verify"
    }

    fn run(&self, file: &TestFile, program: &str, _args: &str) -> Result<String, Vec<Blame>> {
        for (_, graph) in subject::graphs(file, program)? {
            subject::verify(&graph)?;
        }
        Ok(String::new())
    }
}
