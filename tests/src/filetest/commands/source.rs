//! `test source`: the program as source, which compiles to the same graphs again.

use std::sync::Arc;

use flambeau_frontend::print;
use flambeau_frontend::{Limits, Session as Compilation, SourceFile};
use flambeau_ir::module::Function;
use flambeau_ir::{Source, Symbol};

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
            let function = Function {
                // Under a name of its own, so that it is compiled and not found.
                name: Symbol::new(&format!("{name}_again")),
                schema: Arc::new(entry.schema().clone()),
                graph: entry.graph().clone(),
            };
            let printed = print::code(loaded.unit(), &function, print::Receiver::Typed);
            let printed = printed.map_err(|e| vec![subject::blame(&e)])?;
            let again = compile_again(&printed, loaded.unit())?;
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

/// Compiles a printed function in the unit it came from.
fn compile_again(
    printed: &print::Code,
    unit: &flambeau_ir::CompilationUnit,
) -> Result<Arc<Function>, Vec<Blame>> {
    let source = Source::new("again.py", printed.text.clone());
    let file = SourceFile::new(source, &Limits::default());
    let registry = subject::session().registry().clone();
    let session = Compilation::new(registry, printed, Limits::default());
    session.with_unit(|u| *u = unit.clone());
    let names =
        session.declare_source(&file).map_err(|all| all.iter().map(subject::blame).collect::<Vec<_>>())?;
    let name = names.first().copied().ok_or_else(|| Blame::nowhere("nothing was printed"))?;
    session.compile(name).map_err(|e| vec![subject::blame(&e)])
}
