//! Functions to archives: what `convert` writes of source runs as the source does.

use super::{accepted, file, folder, refused};

const SOURCE: &str = "def twice(x: int) -> int:
    return x + x

def f(x: int, y: int = 1) -> int:
    return twice(x) + y
";

#[test]
fn functions_become_methods_of_an_archive() {
    let source = file("convert", "functions.py", SOURCE);
    let archive = folder("convert").join("functions.pt").to_string_lossy().into_owned();
    let inputs = file("convert", "inputs.json", r#"[{"t": "int", "v": 20}]"#);
    accepted(&["convert", &source, &archive]);
    for method in ["f", "twice"] {
        let want = accepted(&["run", &source, "--entry", method, "--inputs", &inputs]);
        assert_eq!(accepted(&["run", &archive, "--entry", method, "--inputs", &inputs]), want);
    }
}

#[test]
fn one_function_becomes_forward() {
    let source = file("convert", "one.py", SOURCE);
    let archive = folder("convert").join("one.pt").to_string_lossy().into_owned();
    let inputs = file("convert", "one.json", r#"[{"t": "int", "v": 20}]"#);
    accepted(&["convert", &source, &archive, "--entry", "f"]);
    assert!(accepted(&["run", &archive, "--inputs", &inputs]).contains("41"));
    assert!(accepted(&["run", &archive, "--inputs", &inputs, "--copy"]).contains("41"));
    assert!(accepted(&["info", &archive, "--copy"]).contains("forward"));
    refused(&["convert", &source, &archive, "--entry", "g"], &["no entry `g`"]);
}
