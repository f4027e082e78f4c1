//! `test alias`: the points-to sets of the alias analysis of each function.
//!
//! `test alias dot` prints the memory graph in the DOT language. `test alias why A B` explains why two values may or
//! cannot share memory.

use flambeau_analysis::AliasDb;
use flambeau_ir::{Graph, ValueId};

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test alias`.
pub(super) struct Alias;

impl Command for Alias {
    fn name(&self) -> &'static str {
        "alias"
    }

    fn run(&self, file: &TestFile, program: &str, args: &str) -> Result<String, Vec<Blame>> {
        let mut text = String::new();
        for (_, graph) in subject::graphs(file, program)? {
            subject::verify(&graph)?;
            let alias = AliasDb::new(&graph);
            let words: Vec<&str> = args.split_whitespace().collect();
            text.push_str(&match words.as_slice() {
                [] => alias.dump(&graph),
                ["dot"] => alias.to_dot(&graph),
                ["why", a, b] => alias.why(&graph, named(&graph, a)?, named(&graph, b)?),
                _ => return Err(Blame::nowhere("`test alias` takes nothing, `dot`, or `why A B`")),
            });
        }
        Ok(text)
    }
}

fn named(graph: &Graph, name: &str) -> Result<ValueId, Vec<Blame>> {
    let bare = name.trim_start_matches('%');
    let found = graph.values_in_order().find(|&v| graph.name(v).to_string() == bare);
    found.ok_or_else(|| Blame::nowhere(format!("no value is named `{name}`")))
}
