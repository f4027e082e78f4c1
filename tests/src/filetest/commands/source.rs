//! `test source`: the program printed as source, which must compile to the same graphs.

use std::sync::Arc;

use flambeau_frontend::{FrontendLimits, print};
use flambeau_ir::Symbol;
use flambeau_ir::module::Function;

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;
use crate::canonical::canonical;

/// `test source`.
pub(super) struct PrintedSource;

impl Command for PrintedSource {
    fn name(&self) -> &'static str {
        "source"
    }

    fn run(&self, file: &TestFile, program: &str, _args: &str) -> Result<String, Vec<Blame>> {
        let file = file.with_program(program);
        let loaded = subject::program(&file, subject::session()).map_err(|e| subject::blames(&e))?;
        let mut texts = Vec::new();
        for name in loaded.entries() {
            let entry = loaded.entry(&name).map_err(|e| subject::blames(&e))?;
            let (unit, graph) = (loaded.unit(), entry.graph().clone());
            let schema = Arc::new(entry.schema().clone());
            let function = Function { name: Symbol::new(&name), schema, graph };
            let printed = print::code(unit, &function, print::ReceiverForm::Typed);
            let printed = printed.map_err(|e| vec![subject::blamed_line(&e)])?;
            let again = printed.compile(unit, function.graph.registry(), &FrontendLimits::default());
            let again = again.map_err(|all| all.iter().map(subject::blamed_line).collect::<Vec<_>>())?;
            let (want, got) = (canonical(&function.graph), canonical(&again.graph));
            if want != got {
                let text = &printed.text;
                return Err(Blame::nowhere(format!(
                    "`{name}` compiles to another graph:\n{text}\n{want}\n{got}"
                )));
            }
            texts.push(printed.text);
        }
        Ok(texts.join("\n"))
    }
}
