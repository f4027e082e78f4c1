//! Tests of `run` on exported programs.

use super::{accepted, data, file, refused};

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
