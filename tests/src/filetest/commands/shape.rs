//! `test shape`: the result of shape analysis for each value of each function.

use flambeau_analysis::{Analyses, Shapes};

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test shape`.
pub(super) struct Shape;

impl Command for Shape {
    fn name(&self) -> &'static str {
        "shape"
    }

    fn run(&self, file: &TestFile, program: &str, _args: &str) -> Result<String, Vec<Blame>> {
        let mut texts = Vec::new();
        for (_, graph) in subject::graphs(file, program)? {
            subject::verify(&graph)?;
            texts.push(Analyses::new().get::<Shapes>(&graph).report(&graph));
        }
        Ok(texts.join("\n"))
    }
}
