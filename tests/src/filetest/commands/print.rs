//! `test print`: the graphs as text.

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test print`.
pub(super) struct Print;

impl Command for Print {
    fn name(&self) -> &'static str {
        "print"
    }

    fn run(&self, file: &TestFile, program: &str, _args: &str) -> Result<String, Vec<Blame>> {
        let texts = subject::graphs(file, program)?.into_iter().map(|(_, graph)| graph.to_string());
        Ok(texts.collect::<Vec<_>>().join("\n"))
    }
}
