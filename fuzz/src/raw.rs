//! Raw bytes as input of every reader: no reader may panic, hang, or use memory out of proportion to the bytes.

use flambeau_frontend::print::{self, ReceiverForm};
use flambeau_frontend::{FrontendLimits, compile};
use flambeau_ir::module::Function;
use flambeau_ir::text::{ReadLimits, parse_graph_with};
use flambeau_ir::verify::{verify, verify_with};
use flambeau_ir::{CompilationUnit, Registry, Source};
use std::sync::Arc;

/// Parses IR text, and verifies and prints the graph.
///
/// # Panics
/// Panics if a graph that verifies is printed as text that does not read back, which is a finding.
pub fn ir(data: &[u8], registry: &Arc<Registry>) {
    let text = String::from_utf8_lossy(data);
    let source = Source::new("fuzz.ir", text);
    let limits = ReadLimits { text: 1 << 20, depth: 10_000, tensor_bytes: 1 << 16 };
    if let Ok(graph) = parse_graph_with(&source, registry, limits) {
        // A graph that parses either verifies or gives errors; a graph that verifies prints and parses again.
        if verify(&graph).is_ok() {
            let options = flambeau_ir::text::PrintOptions { exact: true, ..Default::default() };
            let again = Source::new("again.ir", graph.to_text(options));
            let read = parse_graph_with(&again, registry, ReadLimits::default());
            assert!(read.is_ok(), "a printed graph does not read back:\n{}", again.text);
        }
    }
}

/// Parses TorchScript source.
pub fn source(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = flambeau_frontend::parse(&text, &FrontendLimits::default());
}

/// Compiles TorchScript source: a program that compiles verifies, and its printed source compiles again.
pub fn emit(data: &[u8], registry: &Arc<Registry>) {
    let source = Source::new("fuzz.py", String::from_utf8_lossy(data));
    let limits = FrontendLimits { nodes: 100_000, ..FrontendLimits::default() };
    if let Ok(unit) = compile(&source, registry, &limits) {
        unit.functions().for_each(|function| check_round_trip(&unit, function, registry));
    }
}

fn check_round_trip(unit: &CompilationUnit, function: &Function, registry: &Arc<Registry>) {
    let problems = verify_with(&function.graph, unit).err();
    assert!(problems.is_none(), "a compiled graph does not verify: {problems:?}\n{}", function.graph);
    let Ok(code) = print::code(unit, function, ReceiverForm::Typed) else { return };
    let again = code.compile(unit, registry, &FrontendLimits::default());
    assert!(again.is_ok(), "printed source does not compile: {:?}\n{}", again.err(), code.text);
}

/// A pickle.
pub fn pickle(data: &[u8]) {
    flambeau_archive::fuzz::fuzz_pickle(data);
}

/// An archive.
pub fn archive(data: &[u8], registry: &Arc<Registry>) {
    flambeau_archive::fuzz::fuzz_zip(data);
    flambeau_archive::fuzz::fuzz_load(data, registry, true);
}

/// An exported program: a file, or the JSON text of a program.
pub fn exported(data: &[u8], registry: &Arc<Registry>) {
    if data.starts_with(b"PK") {
        flambeau_export::fuzz::fuzz_file(data, registry);
    } else {
        flambeau_export::fuzz::fuzz_program(data, registry);
    }
}
