//! Raw bytes at every reader: none may panic, hang, or take memory that the bytes do not justify.

use flambeau_ir::text::{ReadLimits, parse_graph_with};
use flambeau_ir::verify::verify;
use flambeau_ir::{Registry, Source};
use std::sync::Arc;

/// IR text.
pub fn ir(data: &[u8], registry: &Arc<Registry>) {
    let text = String::from_utf8_lossy(data);
    let source = Source::new("fuzz.ir", text);
    let limits = ReadLimits { text: 1 << 20, depth: 10_000, tensor_bytes: 1 << 16 };
    if let Ok(graph) = parse_graph_with(&source, registry, limits) {
        // A graph that reads either verifies or says why not; what verifies prints and reads again.
        if verify(&graph).is_ok() {
            let options = flambeau_ir::text::PrintOptions { exact: true, ..Default::default() };
            let again = Source::new("again.ir", graph.to_text(options));
            let read = parse_graph_with(&again, registry, ReadLimits::default());
            assert!(read.is_ok(), "a printed graph does not read back:\n{}", again.text);
        }
    }
}

/// TorchScript source.
pub fn source(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let limits = flambeau_frontend::Limits::default();
    let _ = flambeau_frontend::parse(&text, &limits);
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
