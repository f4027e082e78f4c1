//! The program of a test file as graphs.

use std::sync::{Arc, OnceLock};

use flambeau::{Error, Graph, Program, Session};
use flambeau_ir::module::Function;
use flambeau_ir::text::parse_graph;
use flambeau_ir::{CompilationUnit, Diagnostic, Source, Symbol};
use flambeau_rewrite::{Checks, Manager, PassLibrary, Pipeline};

use super::command::Blame;
use super::file::{Language, TestFile};

/// Returns the session that test programs are loaded with.
pub(super) fn session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| Session::standard().expect("invariant: the standard operators fit together"))
}

/// Loads the program of a file.
///
/// # Errors
/// Returns the errors of the program.
pub(super) fn program(file: &TestFile, session: &Session) -> Result<Program, Error> {
    match file.language {
        Language::Ir if file.functions.is_empty() => session.parse_ir_named(&file.program, &file.name()),
        Language::Ir => {
            let graph = parse_graph(&Source::new(file.name(), &*file.program), session.registry())?;
            session.program_with(graph, Arc::new(unit(file, session)?))
        }
        Language::Source => session.compile_source(&file.program, &file.name()),
    }
}

/// Parses the functions that a program in IR text calls.
///
/// # Errors
/// Returns the error of the first function that does not parse.
pub(super) fn unit(file: &TestFile, session: &Session) -> Result<CompilationUnit, Error> {
    let mut unit = CompilationUnit::new();
    for (name, text) in &file.functions {
        let graph = parse_graph(&Source::new(file.name(), &**text), session.registry())?;
        unit.define_function(Function::of_graph(Symbol::new(name), Arc::new(graph)));
    }
    Ok(unit)
}

/// Returns the graphs of the program's functions with their names, in order. Graphs of IR text are not verified.
///
/// # Errors
/// Returns the errors of the program.
pub(super) fn graphs(file: &TestFile, program: &str) -> Result<Vec<(String, Arc<Graph>)>, Vec<Blame>> {
    match file.language {
        Language::Ir => Ok(vec![("main".to_string(), Arc::new(read(program)?))]),
        Language::Source => {
            let compiled = session().compile_source(program, &file.name()).map_err(|e| blames(&e))?;
            let mut graphs = Vec::new();
            for name in compiled.entries() {
                let entry = compiled.entry(&name).map_err(|e| blames(&e))?;
                graphs.push((name, entry.graph().clone()));
            }
            Ok(graphs)
        }
    }
}

/// Parses IR text.
///
/// # Errors
/// Returns the error of the text.
pub(super) fn read(program: &str) -> Result<Graph, Vec<Blame>> {
    parse_graph(&Source::new("test", program), session().registry())
        .map_err(|error| vec![blamed_line(&error)])
}

/// Returns the graph after a pipeline.
///
/// # Errors
/// Returns an error if the pipeline is invalid, a pass fails, or a check fails.
pub(super) fn optimized(graph: &Graph, pipeline: &str, checks: Checks) -> Result<Graph, Vec<Blame>> {
    let pipeline =
        Pipeline::parse(pipeline, &PassLibrary::standard()).map_err(|e| Blame::nowhere(e.message))?;
    let mut graph = graph.clone();
    Manager::new().checks(checks).run(&mut graph, &pipeline).map_err(Blame::nowhere)?;
    Ok(graph)
}

/// Verifies a graph.
///
/// # Errors
/// Returns every violation, with the line of its node.
pub(super) fn verify(graph: &Graph) -> Result<(), Vec<Blame>> {
    let Err(errors) = flambeau_ir::verify::verify(graph) else { return Ok(()) };
    let one = |e: &flambeau_ir::verify::VerifyError| {
        let range = graph.has_node(e.node).then(|| graph.locs().range(graph.loc(e.node))).flatten();
        let line = range.map(|r| r.source.line_column(r.range.start as usize).0 as usize);
        Blame { line, message: format!("{}: {}", e.code, e.message) }
    };
    Err(errors.errors().iter().map(one).collect())
}

/// Converts all diagnostics of an error.
pub(super) fn blames(error: &Error) -> Vec<Blame> {
    if error.diagnostics.is_empty() {
        return vec![Blame { line: None, message: format!("{}: {}", error.code, error.message) }];
    }
    error.diagnostics.iter().map(blamed_line).collect()
}

/// Converts a diagnostic.
pub(super) fn blamed_line(error: &Diagnostic) -> Blame {
    let line = error.primary.as_ref().map(|label| {
        let start = label.at.range.start as usize;
        label.at.source.line_column(start).0 as usize
    });
    Blame { line, message: format!("{}: {}", error.code, error.message) }
}
