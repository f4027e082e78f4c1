//! Tests of `run`, `print`, `info` and `verify` on exported programs.

use super::{accepted, data, file, folder, refused, wrong};

const INPUT: &str = r#"{"t": "tensor", "dtype": "float32", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6]}"#;

#[test]
fn an_exported_program_runs() {
    let program = data("export/tests/data/layers.pt2");
    let inputs = file("exported", "inputs.json", format!("[{INPUT}]"));
    let result = accepted(&["run", &program, "--inputs", &inputs]);
    assert_eq!(accepted(&["run", &program, "--inputs", &inputs, "--reference"]), result);
    assert_eq!(accepted(&["run", &program, "--arg", &format!("x={INPUT}")]), result);
    assert_eq!(accepted(&["run", &program, "--inputs", &inputs, "--copy"]), result);
}

#[test]
fn conditions_on_inputs_are_checked() {
    let program = data("export/tests/data/layers.pt2");
    let wide = file(
        "exported",
        "wide.json",
        r#"[{"t": "tensor", "dtype": "float32", "shape": [1, 1], "data": [1]}]"#,
    );
    refused(
        &["run", &program, "--inputs", &wide],
        &["E013", "Expected input at *args[0].shape[1] to be equal to 3, but got 1"],
    );
    refused(&["run", &program, "--arg", "y=1"], &["E013", "the argument *args[0] (`x`) is missing"]);
}

#[test]
fn programs_print_as_pytorch_prints_them() {
    let path = |extension: &str| data(&format!("export/tests/data/branches.{extension}"));
    let text = |extension: &str| std::fs::read_to_string(path(extension)).expect("a text");
    assert_eq!(accepted(&["print", &path("pt2")]), text("program.txt"));
    assert_eq!(accepted(&["print", &path("pt2"), "--as", "program"]), text("program.txt"));
    assert_eq!(accepted(&["print", &path("pt2"), "--as", "graph"]).trim_end(), text("graph.txt"));
    assert!(accepted(&["print", &path("pt2"), "--as", "ir"]).contains("= prim::If("));
    assert!(accepted(&["print", &path("pt2"), "--as", "dot"]).starts_with("digraph"));
    wrong(&["print", &path("pt2"), "--as", "bytecode"], &["`program`, `graph`, `ir` or `dot`"]);
    let source = file("exported", "f.py", "def f(x: int) -> int:\n    return x\n");
    wrong(&["print", &source, "--as", "program"], &["only exported programs"]);
}

#[test]
fn info_shows_signature_ranges_and_operators() {
    let path = data("export/tests/data/layers.pt2");
    let text = accepted(&["info", &path]);
    for line in [
        "exported program, schema 8.2, PyTorch 2.6.0",
        "  b_scale: BUFFER `scale`, f32[3]\n",
        "  x: USER_INPUT, f32[s0, 3]\n",
        "range of s0: 2 to 64\n",
        "5 operators used\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&accepted(&["info", &path, "--json"])).expect("JSON");
    assert_eq!(json["range_constraints"]["s0"], serde_json::json!([2, 64]));
    assert_eq!(json["inputs"].as_array().map(Vec::len), Some(8));
    assert_eq!(json["problem"], serde_json::Value::Null);
}

#[test]
fn verify_lists_the_broken_rules() {
    let path = data("export/tests/data/layers.pt2");
    assert!(accepted(&["verify", &path]).contains("exported program, 7 nodes, valid"));
    let bytes = std::fs::read(&path).expect("a file");
    let broken = file("exported", "broken.pt2", &bytes[..bytes.len() - 9]);
    refused(&["verify", &broken], &["A0001"]);
}

#[test]
fn an_exported_program_is_converted() {
    let program = data("export/tests/data/layers.pt2");
    let out = |name: &str| folder("exported").join(name).to_string_lossy().into_owned();
    let inputs = file("exported", "converted.json", format!("[{INPUT}]"));
    let result = accepted(&["run", &program, "--inputs", &inputs]);
    for (name, version) in [("old.pt2", "2.6"), ("new.pt2", "2.15")] {
        accepted(&["convert", &program, &out(name), "--for", version]);
        assert_eq!(accepted(&["run", &out(name), "--inputs", &inputs]), result);
    }
    accepted(&["convert", &program, &out("module.pt")]);
    assert_eq!(accepted(&["run", &out("module.pt"), "--inputs", &inputs]), result);
    accepted(&["convert", &program, &out("tensors.safetensors")]);
    wrong(&["convert", &program, &out("none.pt2"), "--for", "3.0"], &["`3.0` is not `2.6`"]);
}
