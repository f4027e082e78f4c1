//! `test frontend`: the graphs compiled from source, or the errors.

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test frontend`.
pub(super) struct Frontend;

impl Command for Frontend {
    fn name(&self) -> &'static str {
        "frontend"
    }

    fn run(&self, file: &TestFile, program: &str, _args: &str) -> Result<String, Vec<Blame>> {
        let mut texts = Vec::new();
        for (name, graph) in subject::graphs(file, program)? {
            subject::verify(&graph)?;
            texts.push(format!("def {name}\n{graph}"));
        }
        Ok(texts.join("\n"))
    }
}
