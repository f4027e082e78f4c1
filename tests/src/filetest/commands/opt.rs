//! `test opt PIPELINE`: the graphs after a pipeline.
//!
//! The pipeline runs twice: normally, and with every analysis rebuilt and the graph verified after every edit. Both
//! runs must produce the same graph.

use flambeau_rewrite::Checks;

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test opt PIPELINE`.
pub(super) struct Opt;

impl Command for Opt {
    fn name(&self) -> &'static str {
        "opt"
    }

    fn run(&self, file: &TestFile, program: &str, args: &str) -> Result<String, Vec<Blame>> {
        let mut texts = Vec::new();
        for (name, graph) in subject::graphs(file, program)? {
            subject::verify(&graph)?;
            let plain = subject::optimized(&graph, args, Checks::EveryPass)?.to_string();
            let checked = subject::optimized(&graph, args, Checks::EveryEdit)?.to_string();
            if plain != checked {
                let why = format!(
                    "`{name}` changes to another graph when every edit is checked:\n{checked}\nand otherwise:\n{plain}"
                );
                return Err(Blame::nowhere(why));
            }
            texts.push(plain);
        }
        Ok(texts.join("\n"))
    }
}
