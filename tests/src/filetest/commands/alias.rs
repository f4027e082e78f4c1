//! `test alias`: what may be what, by the alias analysis of each function.

use flambeau_analysis::AliasDb;

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test alias`.
pub(super) struct Alias;

impl Command for Alias {
    fn name(&self) -> &'static str {
        "alias"
    }

    fn run(&self, file: &TestFile, program: &str, _args: &str) -> Result<String, Vec<Blame>> {
        let mut text = String::new();
        for (_, graph) in subject::graphs(file, program)? {
            subject::verify(&graph)?;
            text.push_str(&AliasDb::new(&graph).dump(&graph));
        }
        Ok(text)
    }
}
