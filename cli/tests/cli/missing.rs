//! Archives with unregistered operators: reports of their names, their positions, and the remedy.

use super::{accepted, data, file, refused};

/// A module whose `body.0` and `tail` call `acme::blend`, saved by PyTorch (`tests/oracle/custom.py`).
const ARCHIVE: &str = "tests/data/custom.pt";

#[test]
fn info_lists_missing_operators() {
    let text = accepted(&["info", &data(ARCHIVE)]);
    for part in [
        "1 operator used; 1 not registered: acme::blend",
        "operator `acme::blend` is not registered",
        "it is used by body.0, tail",
        "return torch.ops.acme.blend(x, x * 2)",
        "OpDef::new(\"acme::blend(Tensor a0, Tensor a1) -> Tensor\").with(Kernel::new(|cx| …))",
    ] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn run_names_missing_operators_and_runs_other_methods() {
    let inputs =
        file("missing", "inputs.json", r#"[{"t": "tensor", "dtype": "float32", "shape": [1], "data": [1]}]"#);
    let parts = ["F0108", "`acme::blend`", "printed from here", "it is used by body.0, tail", "OpDef::new"];
    refused(&["run", &data(ARCHIVE), "--inputs", &inputs], &parts);
    assert!(accepted(&["run", &data(ARCHIVE), "--entry", "fine", "--inputs", &inputs]).contains("2.0"));
    let out = super::folder("missing").join("out.pt").to_string_lossy().into_owned();
    refused(&["convert", &data(ARCHIVE), &out], &["`acme::blend`"]);
    refused(&["freeze", &data(ARCHIVE), &out], &["`acme::blend`"]);
}
