//! Decomposes the exported programs that PyTorch recorded (`tests/oracle/exported.py`), and compares the operators that remain
//! with those that PyTorch replaces (`tests/oracle/core_aten.txt`).

use base64::Engine;
use flambeau::{DecompositionTable, ExportedProgram, Session};
use flambeau_export::info::operators;
use flate2::read::GzDecoder;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Operators that PyTorch replaces and that remain here in some recorded program: `item` is how files state a symbolic number.
const REMAINING: &[&str] = &["item.default"];

fn targets(program: &ExportedProgram, session: &Session) -> BTreeSet<String> {
    let used = operators(program.model(), session.registry());
    let names = used.into_iter().filter_map(|used| {
        let path = used.target.strip_prefix("torch.ops.aten.")?;
        Some(path.to_owned())
    });
    names.collect()
}

#[test]
fn only_operators_remain_that_pytorch_keeps() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let replaced = fs::read_to_string(root.join("oracle/core_aten.txt")).unwrap();
    let replaced: BTreeSet<&str> = replaced.lines().collect();
    let mut text = String::new();
    let file = fs::File::open(root.join("data/suites/exported/cases.jsonl.gz")).unwrap();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let session = Session::standard().unwrap();
    let table = DecompositionTable::core_aten(&session).unwrap();
    let (mut kept, mut found, mut programs) = (BTreeSet::new(), BTreeSet::new(), 0);
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        let bytes = base64::engine::general_purpose::STANDARD.decode(case["archive_bytes"].as_str().unwrap());
        let program = session.load_exported_bytes(&bytes.unwrap()).unwrap();
        if id.ends_with("/core") {
            kept.extend(targets(&program, &session));
            continue;
        }
        programs += 1;
        let decomposed = program.run_decompositions(&table).unwrap_or_else(|e| panic!("{id}: {e}"));
        for name in targets(&decomposed, &session) {
            if replaced.contains(name.as_str()) {
                found.insert(name);
            }
        }
    }
    assert!(programs > 50, "{programs}");
    let wrong: Vec<&String> =
        found.iter().filter(|name| !kept.contains(*name) && !REMAINING.contains(&name.as_str())).collect();
    assert!(wrong.is_empty(), "PyTorch replaces {wrong:?}");
}
