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
    assert_eq!(accepted(&["run", &program, "--arg", "x=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"]), result);
}

#[test]
fn options_for_exported_programs_are_checked() {
    let program = data("export/tests/data/layers.pt2");
    let x = format!("x={INPUT}");
    wrong(&["run", &program, "--arg", &x, "--arg", &x], &["X0003", "argument `x` is given twice"]);
    wrong(&["run", &program, "--arg", &x, "--profile"], &["X0003", "`--profile` and `--plans`"]);
    wrong(&["run", &program, "--arg", &x, "--entry", "f"], &["X0003", "`--entry`"]);
    for (name, content) in [("empty.pt2", &b""[..]), ("text.pt2", b"not an archive")] {
        refused(&["verify", &file("exported", name, content)], &["A0001"]);
    }
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
    refused(&["run", &program], &["E013", "the argument *args[0] (`x`) is missing"]);
    wrong(&["run", &program, "--arg", "y=1"], &["X0003", "the program has no argument `y`"]);
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
    assert_eq!(accepted(&["info", &path, "--state-dict"]).lines().count(), 5);
}

#[test]
fn verify_lists_the_broken_rules() {
    let path = data("export/tests/data/layers.pt2");
    assert!(accepted(&["verify", &path]).contains("exported program, 7 nodes, valid"));
    let bytes = std::fs::read(&path).expect("a file");
    let broken = file("exported", "broken.pt2", &bytes[..bytes.len() - 9]);
    refused(&["verify", &broken], &["A0001"]);
}

/// Operators that are not registered break a rule of the IR; guards in another form than those of sizes are not checked.
#[test]
fn unknown_operators_and_guards_are_reported() {
    let session = flambeau::Session::standard().expect("a session");
    let program = session.load_exported(data("export/tests/data/layers.pt2")).expect("a program");
    let mut model = program.model().clone();
    model.guards_code = vec!["len(L['x'].shape) == 2".to_owned()];
    let guarded = folder("exported").join("guarded.pt2").to_string_lossy().into_owned();
    let write = |model: &_, path: &str| {
        let version = flambeau::export::FileVersion::Torch29;
        flambeau::export::write_file(model, version, session.registry(), path.as_ref()).expect("a file");
    };
    write(&model, &guarded);
    let line = "guard that calls do not check: len(L['x'].shape) == 2\n";
    assert!(accepted(&["info", &guarded]).contains(line));
    let json: serde_json::Value =
        serde_json::from_str(&accepted(&["info", &guarded, "--json"])).expect("JSON");
    assert_eq!(json["unread_guards"], serde_json::json!(["len(L['x'].shape) == 2"]));
    let node = model.module.graph.nodes.last_mut().expect("a node");
    node.target = "torch.ops.mine.custom.default".to_owned();
    let unknown = folder("exported").join("unknown.pt2").to_string_lossy().into_owned();
    write(&model, &unknown);
    refused(
        &["verify", &unknown],
        &[
            "E011",
            "the operator `torch.ops.mine.custom.default` is not registered",
            "field `graph_module.graph.nodes[",
        ],
    );
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
    let requires = ["`--for` and `--decompose` require an exported program as output"];
    wrong(&["convert", &program, &out("none.pt"), "--for", "2.9"], &requires);
    wrong(&["convert", &program, &out("none.safetensors"), "--decompose", "core-aten"], &requires);
    wrong(&["convert", &program, &out("none.pt2"), "--dynamic", "x:0=n"], &["`--dynamic` apply to modules"]);
}

/// A module of an archive and a function become exported programs, by a run on example arguments.
#[test]
fn modules_and_functions_become_exported_programs() {
    let out = |name: &str| folder("exporting").join(name).to_string_lossy().into_owned();
    let (module, program) = (data("archive/tests/data/nested.pt"), out("nested.pt2"));
    let args = ["--arg", r#"x={"t": "tensor", "dtype": "float32", "shape": [1, 2], "data": [0.5, -1]}"#];
    accepted(&[&["convert", &module, &program], &args[..]].concat());
    assert_eq!(
        accepted(&[&["run", &program], &args[..]].concat()),
        accepted(&[&["run", &module], &args[..]].concat())
    );
    assert!(accepted(&["print", &program]).contains("p_a_lin_weight: PARAMETER target='a.lin.weight'"));
    // A loop on data becomes `while_loop`.
    let counted =
        "def f(x: Tensor) -> Tensor:\n    for i in range(int(x.sum())):\n        x = x + i\n    return x\n";
    let source = file("exporting", "f.py", counted);
    accepted(&["convert", &source, &out("counted.pt2"), "--arg", "x=[1, 2]"]);
    assert!(accepted(&["print", &out("counted.pt2")]).contains("while_loop"));
    for data in ["[1, 2]", "[0, 0]", "[2, 3]"] {
        let x = format!(r#"x={{"t": "tensor", "dtype": "int64", "shape": [2], "data": {data}}}"#);
        let run = |file: &str| accepted(&["run", file, "--arg", &x]);
        assert_eq!(run(&out("counted.pt2")), run(&source));
    }
    // A container that such a loop changes has no counterpart.
    let source = file(
        "exporting",
        "grown.py",
        "def f(x: Tensor):\n    ys = [x]\n    for i in range(int(x.sum())):\n        ys.append(x + i)\n    return ys[-1]\n",
    );
    let wanted = ["E016", "line 4", "grown.py"];
    refused(&["convert", &source, &out("grown.pt2"), "--arg", "x=rand:i64[3]"], &wanted);
    let parts = ["X0003", "argument `x` is missing", "state them by --inputs FILE or -a NAME=VALUE"];
    wrong(&["convert", &source, &out("f.pt2")], &parts);
    // An error of the exporter has no class of Python.
    let source = file(
        "exporting",
        "attribute.py",
        "class A:\n    def __init__(self):\n        self.n = 0\n\ndef f(x: Tensor):\n    a = A()\n    a.n = int(x.sum())\n    return x + a.n\n",
    );
    let parts = ["\nan attribute is set to a number that is only known at run time"];
    refused(&["export", &source, "--entry", "f", "--arg", "x=rand:i64[3]"], &parts);
    let requires = ["require an exported program as output"];
    wrong(&["convert", &source, &out("f.pt"), "--arg", "x=rand:f32[3]"], &requires);
    let damaged = file("exporting", "damaged.pt2", "PK damaged");
    refused(&["convert", &damaged, &out("again.pt2"), "--for", "2.9"], &["A0001"]);
}
