//! `test roundtrip`: the printed program parses to the same program. Prints nothing.

use flambeau_ir::text::PrintOptions;

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test roundtrip`.
pub(super) struct RoundTrip;

impl Command for RoundTrip {
    fn name(&self) -> &'static str {
        "roundtrip"
    }

    fn run(&self, file: &TestFile, program: &str, _args: &str) -> Result<String, Vec<Blame>> {
        let exact = PrintOptions { exact: true, ..PrintOptions::default() };
        for (name, graph) in subject::graphs(file, program)? {
            let printed = graph.to_text(exact);
            let again = subject::read(&printed)?.to_text(exact);
            if again != printed {
                return Err(Blame::nowhere(format!(
                    "`{name}` reads back as another program:\n{printed}\n{again}"
                )));
            }
        }
        Ok(String::new())
    }
}
