//! The LSTM cell in three forms: source, text printed by PyTorch, archive saved by PyTorch. Recorded by
//! `tests/oracle/lstm_cell.py`.

use super::{accepted, data, file};
use flambeau::tensor::compare::max_abs_diff;
use flambeau::{IValue, json};
use serde_json::Value;

fn record() -> Value {
    let text = std::fs::read_to_string(data("cli/data/lstm_cell.json")).expect("the record is there");
    serde_json::from_str(&text).expect("the record is JSON")
}

fn tensors(value: &Value) -> Vec<flambeau::Tensor> {
    let IValue::Tuple(pair) = json::read(value).expect("a value") else { panic!("no tuple: {value}") };
    pair.items().iter().map(|v| v.as_tensor().cloned().expect("a tensor")).collect()
}

#[test]
fn each_form_gives_pytorchs_outputs() {
    let record = record();
    let inputs = file("lstm_cell", "inputs.json", record["inputs"].to_string());
    let want = tensors(&record["expected"]);
    for form in ["cli/data/lstm_cell.py", "tests/data/lstm_cell.ir", "tests/data/lstm_cell_function.pt"] {
        for way in [&[][..], &["--unoptimized"], &["--reference"]] {
            let path = data(form);
            let out = accepted(&[&["run", &path, "--inputs", &inputs, "--json"], way].concat());
            let got = tensors(&serde_json::from_str(&out).expect("the result is JSON"));
            assert_eq!(got.len(), want.len());
            for (g, w) in got.iter().zip(&want) {
                let difference = max_abs_diff(g, w).expect("tensors of one shape");
                assert!(difference <= 1e-6, "{form} {way:?}: {difference}");
            }
        }
    }
}

#[test]
fn the_graph_is_printed_as_pytorch_prints_it() {
    let want = std::fs::read_to_string(data("tests/data/lstm_cell.ir")).expect("the record is there");
    let got = accepted(&["print", &data("cli/data/lstm_cell.py"), "--as", "graph"]);
    assert_eq!(got, want);
    // PyTorch's text reads as the same program and prints as the same text.
    assert_eq!(accepted(&["print", &data("tests/data/lstm_cell.ir"), "--as", "graph"]), want);
}

#[test]
fn the_command_without_arguments_shows_every_step() {
    let out = accepted(&[]);
    for part in [
        "== source ==",
        "== graph ==",
        "== aliasing",
        "== shapes",
        "== passes",
        "prim::FusionGroup",
        "== bytecode ==",
        "== run ==",
        "us per call",
        "greatest difference from PyTorch's recorded outputs",
    ] {
        assert!(out.contains(part), "no `{part}` in:\n{out}");
    }
}
