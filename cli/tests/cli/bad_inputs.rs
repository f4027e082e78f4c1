//! Invalid arguments of calls: values that do not parse, or do not match the function.

use super::{accepted, file, refused, wrong};

const SOURCE: &str = "def f(x, w, *, n: int = 1):\n    return x.mm(w) * n\n";

const ONE: &str = r#"{"t": "tensor", "dtype": "float32", "shape": [1, 1], "data": [2.0]}"#;

#[test]
fn wrong_arguments() {
    let f = file("inputs", "f.py", SOURCE);
    let tensor = |shape: &str, rest: &str| {
        format!(r#"{{"t": "tensor", "dtype": "float32", "shape": {shape}, {rest}}}"#)
    };
    let row = tensor("[1, 2]", r#""data": [1, 2]"#);
    for (name, text, parts) in [
        ("few", format!("[{ONE}]"), &["X0003", "`w` is missing"][..]),
        ("many", format!("[{ONE}, {ONE}, {ONE}, {ONE}]"), &["X0003", "takes 2 arguments, but 4"]),
        (
            "unnamed",
            format!(r#"[{ONE}, {ONE}, {{"t": "int", "v": 2}}]"#),
            &["X0003", "takes 2 arguments, but 3"],
        ),
        ("type", format!(r#"[{ONE}, {{"t": "int", "v": 1}}]"#), &["X0003", "`w` must be of type Tensor"]),
        ("shape", format!("[{row}, {row}]"), &["X0002", "f.py\", line 2", "cannot be multiplied"]),
        (
            "short",
            format!("[{}, {ONE}]", tensor("[2, 2]", r#""data": [1]"#)),
            &["X0004", "input 0", "1 elements"],
        ),
        (
            "negative",
            format!("[{ONE}, {}]", tensor("[-1]", r#""data": [1]"#)),
            &["X0004", "input 1", "`shape`"],
        ),
        (
            "huge",
            format!("[{}]", tensor("[1000000000000, 1000000000]", r#""data": []"#)),
            &["X0004", "overflow"],
        ),
        (
            "far",
            format!("[{}]", tensor("[2]", r#""strides": [1125899906842624], "data": [1, 2]"#)),
            &["X0004", "strides"],
        ),
        ("bytes", format!("[{}]", tensor("[1]", r#""b64": "!!""#)), &["X0004", "b64"]),
        (
            "dtype",
            r#"[{"t": "tensor", "dtype": "float33", "shape": [1], "data": [1]}]"#.to_owned(),
            &["X0004", "float33"],
        ),
        ("tag", r#"[{"t": "lost"}]"#.to_owned(), &["X0004", "`lost`"]),
        ("bare", "[{\"q\": 5}]".to_owned(), &["X0004", "input 0", "expected a value such as"]),
        ("kind", "[5]".to_owned(), &["X0003", "must be of type Tensor but is of type int"]),
        ("key", "{\"input\": []}".to_owned(), &["X0004", "did you mean `inputs`?"]),
        (
            "inside",
            r#"[{"t": "list", "v": [{"t": "int", "v": 1}, {"t": "lost"}]}]"#.to_owned(),
            &["X0004", "input 0", "[1]"],
        ),
        (
            "named",
            format!(r#"{{"inputs": [{ONE}, {ONE}], "kwargs": {{"z": {{"t": "int", "v": 1}}}}}}"#),
            &["X0003", "`z`"],
        ),
        (
            "twice",
            format!(r#"{{"inputs": [{ONE}, {ONE}], "kwargs": {{"w": {ONE}}}}}"#),
            &["X0003", "`w` is given twice"],
        ),
        ("string", r#""abc""#.to_owned(), &["X0004", "expected a list"]),
        ("number", r#"{"inputs": 5}"#.to_owned(), &["X0004", "expected a list"]),
        ("kwargs", format!(r#"{{"inputs": [{ONE}, {ONE}], "kwargs": 5}}"#), &["X0004", "expected a list"]),
        ("cut", r#"{"inputs": ["#.to_owned(), &["X0004", "not valid JSON", "line 1 column"]),
        ("empty", String::new(), &["X0004", "not valid JSON"]),
        ("deep", "[".repeat(100_000), &["X0004", "recursion limit"]),
        ("deeper", r#"{"inputs": "#.repeat(100_000), &["X0004", "recursion limit"]),
        ("infinite", "[1e999]".to_owned(), &["X0004", "out of range"]),
    ] {
        let inputs = file("inputs", &format!("{name}.json"), text);
        refused(&["run", &f, "--inputs", &inputs], parts);
    }
    let good = file("inputs", "good.json", format!("[{ONE}, {ONE}]"));
    assert!(accepted(&["run", &f, "--inputs", &good, "--json"]).contains("4.0"));
    wrong(&["run", &f, "--entry", "g"], &["X0003", "no entry `g`", "f"]);
    refused(&["bench", &f, "--inputs", &file("inputs", "one.json", format!("[{ONE}]"))], &["X0003"]);
}

#[test]
fn wrong_arguments_on_the_command_line() {
    let f = file("inline", "f.py", SOURCE);
    for (text, part) in [
        ("x", "NAME=VALUE"),
        ("x=rand:f32[30000,30000]", "elements"),
        ("x=rand:f32[99999999999,99999999999]", "argument `x`"),
        ("x=rand:f33[1]", "`f33`"),
        ("x=rand:f32[a]", "f32[2,3]"),
        ("x=rand:f32", "f32[2,3]"),
        ("x={", "not a value"),
    ] {
        wrong(&["run", &f, "-a", text, "-a", "w=rand:f32[1,1]"], &["X0004", part]);
    }
    let out = accepted(&["run", &f, "-a", "x=rand:f32[2,3]", "-a", "w=rand:f32[3,1]", "-a", "n=2", "--json"]);
    assert!(out.contains("[2,1]"), "{out}");
    // Named arguments may be given in any order, each once.
    let turned =
        accepted(&["run", &f, "-a", "n=2", "-a", "w=rand:f32[3,1]", "-a", "x=rand:f32[2,3]", "--json"]);
    assert_eq!(turned, out);
    wrong(
        &["run", &f, "-a", "x=rand:f32[1,1]", "-a", "w=rand:f32[1,1]", "-a", "x=rand:f32[1,1]"],
        &["X0003", "`x` is given twice"],
    );
}
