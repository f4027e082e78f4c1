//! Tests of `convert`: functions to archives, modules with other tensors and extra files. A converted source behaves as
//! the source does.

use super::{accepted, data, file, folder, refused, wrong};

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
    wrong(&["convert", &source, &archive, "--entry", "g"], &["no entry `g`"]);
}

/// Tensors are converted from an archive to every format and back; the error of a mismatch lists all names.
#[test]
fn weights_are_converted_and_replaced() {
    let out = |name: &str| folder("weights").join(name).to_string_lossy().into_owned();
    let nested = data("archive/tests/data/nested.pt");
    let (state, flat, again) = (out("state.pt"), out("flat.safetensors"), out("again.pt"));
    accepted(&["convert", &nested, &state, "--state-dict"]);
    accepted(&["convert", &state, &flat]);
    let note = file("weights", "note.txt", "beside");
    let extra = format!("notes/one.txt={note}");
    accepted(&["convert", &nested, &again, "--weights", &flat, "--extra", &extra]);
    assert!(accepted(&["info", &again]).contains("extra file notes/one.txt: 6 bytes"));
    let names = |file: &str| accepted(&["info", "--state-dict", file]).lines().count();
    assert_eq!((names(&state), names(&flat), names(&again)), (4, 4, 4));
    let other = data("archive/tests/data/half.pt");
    let parts = ["X0005", "missing: count, a.lin.weight", "unexpected: conv.weight", "norm.running_mean"];
    refused(&["convert", &nested, &again, "--weights", &other], &parts);
    accepted(&["convert", &nested, &again, "--weights", &other, "--partial"]);
    let no_module = ["`--weights` and `--extra` require archives as input and output"];
    let source = file("weights", "source.py", SOURCE);
    for (from, to) in [(&state, &again), (&nested, &flat), (&source, &again)] {
        wrong(&["convert", from, to, "--weights", &state], &no_module);
        wrong(&["convert", from, to, "--extra", &extra], &no_module);
    }
    wrong(&["convert", &nested, &again, "--extra", "alone"], &["is not NAME=FILE"]);
}

/// An option that does not apply to the input or output is an error of the command line, and nothing is written.
#[test]
fn options_that_do_not_apply_are_errors() {
    let out = |name: &str| folder("convert").join(name).to_string_lossy().into_owned();
    let module = data("archive/tests/data/nested.pt");
    let source = file("convert", "unused.py", SOURCE);
    wrong(&["convert", &module, &out("unused.safetensors"), "--state-dict"], &["`--state-dict`"]);
    wrong(&["convert", &module, &out("unused.pt2"), "--state-dict"], &["`--state-dict`"]);
    wrong(&["convert", &module, &out("unused.pt"), "--entry", "forward"], &["`--entry` requires source"]);
    wrong(&["convert", &source, &out("unused.pt"), "--state-dict"], &["no tensors"]);
    wrong(&["convert", &source, &out("unused.safetensors")], &["no tensors"]);
    assert!(!folder("convert").join("unused.pt").exists());
}

/// The extension of an output selects its format. Any other name is an error that lists the formats, and nothing is
/// written.
#[test]
fn extensions_select_formats() {
    let out = |name: &str| folder("formats").join(name).to_string_lossy().into_owned();
    let module = data("archive/tests/data/nested.pt");
    let source = file("formats", "f.py", SOURCE);
    let formats = ["`.pt`", "`.pt2` (an exported program)", "`.safetensors` (tensors)"];
    for name in ["out.ir", "out.py", "out.onnx", "out"] {
        wrong(&["convert", &source, &out(name)], &formats);
        wrong(&["convert", &module, &out(name), "--state-dict"], &formats);
        wrong(&["freeze", &module, &out(name)], &["one of `.pt`"]);
        wrong(&["export", &source, "-e", "f", "-a", "x=1", "-o", &out(name)], &["one of `.pt2`"]);
        assert!(!folder("formats").join(name).exists(), "{name}");
    }
    wrong(&["convert", &source, &out("out.ir")], &["`flambeau print` writes graphs"]);
    wrong(&["freeze", &module, &out("out.pt2")], &["one of `.pt`"]);
    for name in ["out.pth", "out.zip"] {
        accepted(&["convert", &source, &out(name), "-e", "f"]);
        assert!(accepted(&["info", &out(name)]).contains("forward"), "{name}");
    }
}
