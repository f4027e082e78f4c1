//! Types and example values of inputs for commands that analyse: passes use the stated types, and output shows them.

use super::{accepted, file, refused, wrong};

const SOURCE: &str = "def f(x: Tensor, w: Tensor, n: int, b: Optional[Tensor] = None):
    y = x.mm(w) * n
    if b is not None:
        y = y + b
    return y
";

fn source() -> String {
    file("input_types", "f.py", SOURCE)
}

#[test]
fn shapes_uses_stated_types() {
    let f = source();
    let shapes = |args: &[&str]| accepted(&[&["shapes", &f], args].concat());
    assert!(!shapes(&[]).contains("Float"), "nothing is known of the inputs");
    for x in ["f32[2,3]", "float32[2, 3]", "Float(2, 3)", "rand:f32[2,3]", "Float(2, 3, strides=[3, 1])"] {
        let shown = shapes(&["-a", &format!("x={x}"), "-a", "w=f32[3,*]", "-a", "n=int"]);
        assert!(
            shown.contains("%x.1 : Float(2, 3)") && shown.contains("%w.1 : Float(3, ?)"),
            "{x}:\n{shown}"
        );
        assert!(shown.contains("%y.1 : Float(2, s0)"), "{x}:\n{shown}");
    }
    for unknown in ["f32[?,3]", "f32[ * ,3]", "Float(?, 3)", "Float(*, 3)"] {
        let shown = shapes(&["-a", &format!("x={unknown}")]);
        assert!(shown.contains("%x.1 : Float(?, 3)"), "{unknown}:\n{shown}");
    }
    let known = shapes(&["-a", "x=f32[2,3]", "-a", "w=f32[3,5]", "-a", "n=2", "-a", "b=f64"]);
    assert!(known.contains("%y.1 : Float(2, 5)") && known.contains("%b.1 : Double(*)"), "{known}");
    let json = shapes(&["-a", "x=f32[2,3]", "-a", "w=f32[3,5]", "--json"]);
    assert!(json.contains("Float(2, 5"), "{json}");
}

#[test]
fn example_inputs_have_the_format_of_run() {
    let f = source();
    let tensor = |shape: &str, data: &str| {
        format!(r#"{{"t": "tensor", "dtype": "float32", "shape": {shape}, "data": {data}}}"#)
    };
    let n = r#"{"t": "int", "v": 2}"#;
    let list = format!("[{}, {}, {n}]", tensor("[1, 2]", "[1, 2]"), tensor("[2, 1]", "[1, 2]"));
    let inputs = file("input_types", "inputs.json", &list);
    accepted(&["run", &f, "--inputs", &inputs]);
    let shown = accepted(&["shapes", &f, "--inputs", &inputs]);
    assert!(shown.contains("%x.1 : Float(1, 2) contiguous cpu no_grad"), "{shown}");
    let many = file("input_types", "many.json", format!("[{n}, {n}, {n}, {n}, {n}]"));
    refused(&["shapes", &f, "--inputs", &many], &["5 inputs", "takes 4"]);
}

#[test]
fn passes_use_stated_types() {
    let f = file("input_types", "same.py", "def g(x: Tensor):\n    return x.to(torch.float32).relu()\n");
    let plain = accepted(&["opt", &f, "-p", "peephole,dce"]);
    assert!(plain.contains("aten::to"), "{plain}");
    let typed = accepted(&["opt", &f, "-p", "peephole,dce", "-a", "x=f32[4]"]);
    assert!(typed.contains("%x.1 : Float(4)") && !typed.contains("aten::to"), "{typed}");
    let out = accepted(&["explain", &f, "-p", "peephole", "--value", "%6", "-a", "x=f32[4]"]);
    assert!(!out.contains("no rewrite affects it"), "{out}");
}

#[test]
fn receivers_need_no_input_type() {
    let archive = super::data("archive/tests/data/nested.pt");
    assert!(accepted(&["opt", &archive, "-p", "cse", "-a", "x=f32[1,2]"]).contains("%x.1 : Float(1, 2)"));
}

#[test]
fn contradicting_types_are_refused() {
    let f = source();
    for (given, parts) in [
        ("z=f32[2]", &["no parameter `z`", "x, w, n, b"][..]),
        ("x=int", &["input `x`: expected Tensor, found int"]),
        ("n=f32[2]", &["input `n`: expected int, found Float(2)"]),
        ("x=f32[2", &["`f32[2`: expected DTYPE[SIZES], such as f32[2,3]"]),
        ("x=f32[-2]", &["has the size -2"]),
        ("x=Flaot(2)", &["did you mean"]),
        ("x=word", &["is neither a type nor a value"]),
        ("x", &["is not NAME=TYPE"]),
    ] {
        wrong(&["shapes", &f, "-a", given], parts);
    }
    let g = file("input_types", "g.ir", "graph(%x : Float(2, *)):\n  return (%x)\n");
    wrong(&["opt", &g, "-a", "x=f32[3,3]"], &["expected Float(2, *), found Float(3, 3)"]);
    assert!(accepted(&["opt", &g, "-a", "x=f32[*,3]"]).contains("%x : Float(2, 3)"));
    let h = file("input_types", "h.ir", "graph(%x.1 : Tensor):\n  return (%x.1)\n");
    assert!(accepted(&["opt", &h, "-a", "x=f32[3]"]).contains("%x.1 : Float(3)"));
    let i = file("input_types", "i.ir", "graph(%x.1 : int, %x.2 : int):\n  return (%x.1)\n");
    wrong(&["shapes", &i, "-a", "x=int"], &["no parameter `x`", "x.1, x.2"]);
    assert_eq!(accepted(&["run", &i, "-a", "x.2=5", "-a", "x.1=4", "--text"]), "4\n");
    // A call requires a value.
    wrong(&["run", &f, "-a", "x=f32[2,3]"], &["is not a value", "rand:f32[2,3]"]);
}
