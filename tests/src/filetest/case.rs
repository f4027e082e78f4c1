//! Conversion of file tests with one call to cases of the fuzzer, for reproducers written by `Case::to_text`.

use std::path::Path;
use std::sync::Arc;

use flambeau::json::Reader;
use flambeau_fuzz::Case;
use flambeau_ir::module::Function;
use flambeau_ir::text::parse_graph;
use flambeau_ir::{CompilationUnit, Graph, Registry, Source, Symbol};

use super::file::TestFile;
use crate::value::literal::parse_call;

/// Parses a file test in IR text as a case. The first `run:` line is used.
///
/// # Errors
/// Returns the message of the first part that does not parse.
pub fn read_case(text: &str, registry: &Arc<Registry>) -> Result<Case, String> {
    let file = TestFile::parse(Path::new("case.ir"), text)?;
    let graph = |text: &str| -> Result<Arc<Graph>, String> {
        parse_graph(&Source::new("case.ir", text), registry).map(Arc::new).map_err(|e| e.render())
    };
    let mut unit = CompilationUnit::new();
    for (name, text) in &file.functions {
        unit.define_function(Function::of_graph(Symbol::new(name), graph(text)?));
    }
    let graph = graph(&file.program)?;
    let run = file.runs.first().ok_or("no `run:` line")?;
    let (call, _) = parse_call(&run.call)?;
    let mut reader = Reader::default();
    let types: Vec<_> = graph.inputs().map(|v| graph.ty(v)).collect();
    let inputs = call.args.iter().zip(types).map(|(arg, ty)| reader.read_as(arg, ty));
    let inputs: Result<Vec<_>, _> = inputs.collect();
    Ok(Case { graph, unit: Arc::new(unit), inputs: inputs.map_err(|e| e.to_string())? })
}
