//! Source that is wrong in syntax or types, too deep, or fails when it runs.

use super::{accepted, file, refused, run};

const DEEP: usize = 100_000;

fn source(name: &str, text: impl AsRef<[u8]>) -> String {
    file("sources", &format!("{name}.py"), text)
}

#[test]
fn every_error_has_its_place() {
    for (name, text, parts) in [
        ("syntax", "def f(x):\n    return x +\n", &["F0001", "syntax.py:2:15"][..]),
        ("bracket", "def f(x):\n    return (x\n", &["F0001", "never closed", ":2:12"]),
        ("string", "def f(x):\n    return 'abc\n", &["F0001", ":2:12"]),
        ("indent", "def f(x):\n  if x:\n return x\n", &["F0001", ":3:2"]),
        ("byte", "def f(x):\n    return x\0\n", &["F0001", ":2:13"]),
        ("name", "def f(x):\n    return y\n", &["F0100", "undefined value y", "did you mean `x`", ":2:12"]),
        ("type", "def f(x: int) -> str:\n    return x\n", &["F0100", "str", "int", ":2:5"]),
        ("call", "def f(x: int):\n    return torch.relu(x)\n", &["F0100", ":2:12"]),
        ("arity", "def g(x: int):\n    return x\ndef f(x: int):\n    return g(x, x)\n", &["F0100", ":4:"]),
        ("annotation", "def f(x: Lost[int]):\n    return x\n", &["F01", ":1:10"]),
        ("recursion", "def f(x: int) -> int:\n    return f(x)\n", &["F0103"]),
        ("python", "def f(x: int):\n    return lambda: x\n", &["F0002", "lambda", ":2:12"]),
    ] {
        let path = source(name, text);
        for command in ["verify", "run"] {
            refused(&[command, &path], parts);
        }
    }
    refused(&["run", &source("empty", "")], &["no functions"]);
    refused(&["verify", &source("utf8", b"def f(x):\n    return '\xff'\n")], &["T0000", "byte 22"]);
}

/// A function whose result nests an expression.
fn nested(ty: &str, open: &str, inner: &str, close: &str) -> String {
    format!("def f(x: {ty}):\n    return {}{inner}{}\n", open.repeat(DEEP), close.repeat(DEEP))
}

#[test]
fn depth_is_no_danger() {
    for (name, text) in [
        ("parens", nested("int", "(", "x", ")")),
        ("lists", nested("int", "[", "x", "]")),
        ("signs", nested("int", "-", "x", "")),
        ("not", nested("bool", "not ", "x", "")),
        ("sums", nested("int", "x + ", "x", "")),
        ("powers", nested("int", "x ** ", "x", "")),
        ("indices", nested("Tensor", "", "x", "[0]")),
        ("attributes", nested("Tensor", "", "x", ".a")),
        ("calls", nested("Tensor", "f(", "x", ")")),
        ("open", nested("int", "(", "x", "")),
        ("types", format!("def f(x: {}int{}):\n    return x\n", "List[".repeat(DEEP), "]".repeat(DEEP))),
        ("lambdas", nested("int", "lambda: ", "x", "")),
    ] {
        // Accepted or refused, but answered.
        let ran = run(&["verify", &source(name, text)]);
        let shown: String = ran.err.chars().take(300).collect();
        assert!(matches!(ran.code, Some(0 | 1)), "{name}: {:?} {shown}", ran.code);
        assert_eq!(ran.code == Some(1), ran.out.is_empty(), "{name}: {shown}");
        assert_eq!(ran.code == Some(0), ran.err.is_empty(), "{name}: {shown}");
    }
}

#[test]
fn programs_that_fail() {
    let raises = source("raises", "def f():\n    print('said')\n    raise RuntimeError('no')\n");
    refused(&["run", &raises], &["X0002", "raises.py\", line 3", "RuntimeError: no"]);
    let big = source("big", "def f():\n    return torch.zeros([1000000, 1000000])\n");
    refused(&["run", &big], &["limit reached", "line 2"]);
    refused(&["run", &big, "--memory", "10"], &["limit reached", "line 2"]);
    let endless =
        source("endless", "def f():\n    i = 0\n    while i >= 0:\n        i += 1 - 1\n    return i\n");
    refused(&["run", &endless, "--fuel", "1000"], &["limit reached"]);
    let divides = source("divides", "def f(a: int):\n    return 1 // a, 1 % a\n");
    refused(&["run", &divides, "-a", "a=0"], &["X0002"]);
    assert_eq!(accepted(&["run", &divides, "-a", "a=1", "--text"]), "(1, 0)\n");
}

#[test]
fn pipelines_that_are_none() {
    let path = source("fine", "def f(x: int):\n    return x\n");
    refused(&["opt", &path, "-p", "cze"], &["R0101", "did you mean `cse`"]);
    refused(&["opt", &path, "-p", "fix("], &["R0101", "not closed"]);
    refused(&["opt", &path, "-p", &"fix(".repeat(10_000)], &["limit reached", "R0101"]);
    refused(&["opt", &path, "-p", "cse{x=1}"], &["no option `x`"]);
    let rules = file("sources", "bad.rules", "use aten\nrule a [exact]: nope(%x) => %x\n");
    refused(&["opt", &path, "--rules", &rules], &["R0003", "bad.rules:2", "aten::nope"]);
}
