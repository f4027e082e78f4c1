//! `test bytecode`: the bytecode of the virtual machine.

use flambeau_exec::Code;

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test bytecode`.
pub(super) struct Bytecode;

impl Command for Bytecode {
    fn name(&self) -> &'static str {
        "bytecode"
    }

    fn run(&self, file: &TestFile, program: &str, _args: &str) -> Result<String, Vec<Blame>> {
        let mut text = String::new();
        let whole = subject::program(file, subject::session()).map_err(|e| subject::blames(&e))?;
        for (_, graph) in subject::graphs(file, program)? {
            subject::verify(&graph)?;
            let code = Code::compile(&graph, &**whole.unit()).map_err(|e| Blame::nowhere(e.message()))?;
            text.push_str(&code.to_string());
        }
        Ok(text)
    }
}
