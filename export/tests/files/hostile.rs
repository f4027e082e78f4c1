//! Damaged programs: each gives an error with the code of the rule that it breaks and the location, or is accepted; nothing
//! panics or takes long.

use std::time::{Duration, Instant};

use flambeau_export::ExportCode;
use flambeau_export::container::Limits;
use flambeau_export::fuzz::use_program;
use flambeau_export::read::{ReadOptions, read_program};

use super::{PROGRAM, RECORDED, container, edited, open, recorded, records, registry, replaced, text_of};

/// Time limit for each program.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// A generator of numbers with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

#[test]
fn changed_bytes_of_programs_are_no_danger() {
    const PIECES: [&str; 12] = [
        "null",
        "-1",
        "[]",
        "{}",
        "\"\"",
        "NaN",
        "1e999",
        "true",
        "}",
        "\"as_int\"",
        "9223372036854775807",
        "\\ud800",
    ];
    let registry = registry();
    let mut numbers = Numbers(7);
    let (mut accepted, mut refused) = (0, 0);
    for recorded in &RECORDED {
        let json = text_of(recorded.bytes, PROGRAM).into_bytes();
        for _ in 0..150 {
            let mut changed = json.clone();
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(changed.len());
                match numbers.below(4) {
                    0 => changed[at] = b" {}[]\",:019ase"[numbers.below(14)],
                    1 => drop(changed.drain(at..(at + numbers.below(40)).min(json.len() - 50).max(at))),
                    2 => drop(changed.splice(at..at, PIECES[numbers.below(12)].bytes())),
                    // One value takes the place of another.
                    _ => {
                        let from = numbers.below(json.len() - 30);
                        let piece = json[from..from + numbers.below(30)].to_vec();
                        let end = (at + piece.len()).min(changed.len());
                        changed.splice(at..end, piece);
                    }
                }
            }
            let Ok(text) = String::from_utf8(changed) else { continue };
            let start = Instant::now();
            match read_program(&text, &Limits::default()) {
                Ok(program) => {
                    accepted += 1;
                    use_program(&program, &registry);
                }
                Err(_) => refused += 1,
            }
            assert!(start.elapsed() < TIME_LIMIT);
        }
    }
    assert!(accepted > 20 && refused > 200, "{accepted} {refused}");
}

#[test]
fn changed_bytes_of_files_are_no_danger() {
    let registry = registry();
    let mut numbers = Numbers(11);
    for recorded in &RECORDED {
        for _ in 0..60 {
            let mut bytes = recorded.bytes.to_vec();
            match numbers.below(3) {
                0 => bytes.truncate(numbers.below(bytes.len())),
                _ => {
                    let at = numbers.below(bytes.len());
                    bytes[at] ^= 1 << numbers.below(8);
                }
            }
            if let Ok(program) = open(&bytes) {
                use_program(&program, &registry);
            }
        }
    }
}

/// Swaps of two fields' values keep the JSON intact, so they reach the rules about the program.
#[test]
fn swapped_values_are_no_danger() {
    let registry = registry();
    let mut numbers = Numbers(3);
    for name in ["values", "branches"] {
        let json = text_of(recorded(name).bytes, PROGRAM);
        let words: Vec<(usize, &str)> = json
            .match_indices('"')
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
            .chunks(2)
            .filter_map(|pair| Some((*pair.first()?, json.get(*pair.first()?..=*pair.get(1)?)?)))
            .filter(|(_, word)| !word.contains('\\'))
            .collect();
        for _ in 0..200 {
            let (at, old) = words[numbers.below(words.len())];
            let (_, new) = words[numbers.below(words.len())];
            let changed = format!("{}{new}{}", &json[..at], &json[at + old.len()..]);
            if let Ok(program) = read_program(&changed, &Limits::default()) {
                use_program(&program, &registry);
            }
        }
    }
}

#[test]
fn errors_name_record_node_and_field() {
    let error = |old: &str, new: &str| {
        let bytes = edited("values", |json| replaced(&json, old, new));
        open(&bytes).map(drop).expect_err("refused")
    };
    let e = error("\"as_string\": \"tanh\"}}]", "\"as_text\": \"tanh\"}}]");
    assert_eq!((e.code(), e.node(), e.record()), (ExportCode::Tag, Some("gelu"), Some(PROGRAM)));
    assert_eq!(e.field(), "graph_module.graph.nodes[0].inputs[1].arg.as_text");
    assert!(e.offset().is_some());
    let e = error("\"as_float\": -Infinity", "\"as_float\": \"inf\"");
    assert_eq!((e.code(), e.node()), (ExportCode::Field, Some("where")));
    let e = error("\"as_int\": 3", "\"as_int\": 3.5");
    assert_eq!(e.code(), ExportCode::Field);
    let e = error("\"target\": \"torch.ops.aten.gelu.default\", ", "");
    assert_eq!((e.code(), e.node()), (ExportCode::Field, Some("gelu")));
    assert!(e.message().contains("`target`"), "{e}");
    let e = error("\"dtype\": 7", "\"dtype\": 27");
    assert_eq!((e.code(), e.field()), (ExportCode::Number, "graph_module.graph.tensor_values.input.dtype"));
    let e = error("\"gelu\": {\"dtype\"", "\"input\": {\"dtype\"");
    assert_eq!(e.code(), ExportCode::DuplicateName);
}

/// Subgraphs within subgraphs: the reader bounds them, whatever the size of the file.
#[test]
fn nesting_is_limited() {
    let json = text_of(recorded("branches").bytes, PROGRAM);
    let (before, graph) = json.split_at(json.find("\"graph\": {").expect("a graph") + 9);
    let head = "{\"inputs\": [], \"outputs\": [], \"tensor_values\": {}, \"nodes\": [{\"target\": \"x\", \"outputs\": [], \
                \"inputs\": [{\"name\": \"\", \"arg\": {\"as_graph\": {\"name\": \"g\", \"graph\": ";
    let tail = "}}}]}]}";
    let nested = |depth: usize| {
        let empty = "{\"inputs\": [], \"outputs\": [], \"tensor_values\": {}, \"nodes\": []}";
        format!("{before}{}{empty}{}, \"rest\": {graph}", head.repeat(depth), tail.repeat(depth))
    };
    let registry = registry();
    let program = read_program(&nested(30), &Limits::default()).expect("thirty levels");
    use_program(&program, &registry);
    for depth in [40, 20_000] {
        let start = Instant::now();
        let error = read_program(&nested(depth), &Limits::default()).map(drop).expect_err("too deep");
        assert_eq!(error.code(), ExportCode::Limit, "{depth}");
        assert!(start.elapsed() < TIME_LIMIT);
    }
}

#[test]
fn a_pickle_that_calls_a_function_is_refused() {
    // `os.system("true")` in place of the state dict.
    let pickle = b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.";
    let inner =
        container("archive", [("data.pkl", &pickle[..]), ("version", b"3\n"), ("byteorder", b"little")]);
    let mut all = records(recorded("layers").bytes);
    for (name, bytes) in &mut all {
        if name == "serialized_state_dict.pt" {
            bytes.clone_from(&inner);
        }
    }
    let bytes = container("", all.iter().map(|(n, b)| (n.as_str(), b.as_slice())));
    let error = open(&bytes).map(drop).expect_err("refused");
    assert_eq!(error.code(), ExportCode::Archive(flambeau_archive::ArchiveCode::Global));
    assert_eq!(error.record(), Some("serialized_state_dict.pt:data.pkl"));
    // Example inputs are never read, so the same pickle does no harm there.
    let mut all = records(recorded("layers").bytes);
    for (name, bytes) in &mut all {
        if name == "serialized_example_inputs.pt" {
            bytes.clone_from(&inner);
        }
    }
    open(&container("", all.iter().map(|(n, b)| (n.as_str(), b.as_slice())))).expect("examples are not read");
}

#[test]
fn limits_bound_json_and_additional_files() {
    let mut all = records(recorded("layers").bytes);
    all.push(("extra_files/notes".to_owned(), vec![b'x'; 5000]));
    let bytes = container("", all.iter().map(|(n, b)| (n.as_str(), b.as_slice())));
    assert_eq!(open(&bytes).expect("a program").extra_files["notes"].len(), 5000);
    let with = |change: fn(&mut Limits)| {
        let mut options = ReadOptions::default();
        change(&mut options.limits);
        flambeau_export::read::read(&bytes, &options).map(|_| ()).map_err(|e| e.code())
    };
    assert_eq!(with(|l| l.extra_bytes = 4999), Err(ExportCode::Limit));
    assert_eq!(with(|l| l.json_bytes = 1000), Err(ExportCode::Limit));
    assert_eq!(with(|l| l.depth = 6), Err(ExportCode::Limit));
    assert_eq!(with(|_| {}), Ok(()));
}
