//! Source with errors in syntax or types, with excessive nesting, or with run-time errors.

use super::{accepted, file, refused, run, wrong};

const DEEP: usize = 100_000;

fn source(name: &str, text: impl AsRef<[u8]>) -> String {
    file("sources", &format!("{name}.py"), text)
}

#[test]
fn every_error_has_a_position() {
    for (name, text, parts) in [
        ("syntax", "def f(x):\n    return x +\n", &["F0001", "syntax.py:2:15"][..]),
        ("bracket", "def f(x):\n    return (x\n", &["F0001", "never closed", ":2:12"]),
        ("string", "def f(x):\n    return 'abc\n", &["F0001", ":2:12"]),
        ("indent", "def f(x):\n  if x:\n return x\n", &["F0001", ":3:2"]),
        ("byte", "def f(x):\n    return x\0\n", &["F0001", ":2:13"]),
        (
            "name",
            "def f(value):\n    return valu\n",
            &["F0100", "undefined value valu", "did you mean `value`", ":2:12"],
        ),
        ("letter", "def f(x):\n    return y\n", &["F0100", "undefined value y", ":2:12"]),
        (
            "default",
            "def f(x: int = 'a'):\n    return x\n",
            &["F0110", "default value of type int", "str", ":1:16"],
        ),
        (
            "type-name",
            "def f(x: Tensr):\n    return x\n",
            &["F0110", "Tensr", "did you mean `Tensor`", ":1:10"],
        ),
        (
            "type-argument",
            "def f(x: List):\n    return x\n",
            &["F0110", "add a contained type, e.g. List[int]", ":1:10"],
        ),
        ("none", "def f(x: Optional[int]):\n    return x + 1\n", &["F0100", "may be None", ":2:12"]),
        ("method", "def f(x: List[int]):\n    x.apend(1)\n", &["F0100", "did you mean `append`", ":2:5"]),
        ("member", "def f(x):\n    return torch.foo.bar(x)\n", &["F0100", "aten::foo", ":2:12"]),
        ("number", "def f(x: int):\n    return x[0]\n", &["'int' object is not subscriptable", ":2:12"]),
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

/// Errors with the same code and message are shown ten times and then counted.
#[test]
fn repeated_errors_are_counted() {
    let ran = run(&["verify", &source("repeated", "§\n".repeat(25))]);
    let message = "this character has no meaning here";
    assert_eq!((ran.code, ran.err.matches(message).count()), (Some(1), 11), "{}", ran.err);
    assert!(ran.err.ends_with(&format!("15 more with [F0001] {message}\n")), "{}", ran.err);
}

/// Every error of a file is an object with the same fields, in every command.
#[test]
fn errors_as_json() {
    let path = source("machine", "def f(x: int):\n    a = valu\n    b = x + 'q'\n    return x.uper()\n");
    for command in ["run", "verify", "print"] {
        let ran = run(&[command, &path, "--json"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{command}");
        let out: serde_json::Value = serde_json::from_str(&ran.err).expect("one line of JSON");
        let errors = out["errors"].as_array().expect("a list");
        assert_eq!(errors.len(), 3, "{command}: {}", ran.err);
        for (error, (line, column, end)) in errors.iter().zip([(2, 9, 13), (3, 9, 16), (4, 12, 18)]) {
            assert_eq!((&error["code"], &error["fault"]), (&"F0100".into(), &"error".into()));
            assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()));
            let place = &error["place"];
            assert_eq!(place["file"], path.as_str());
            assert_eq!((&place["line"], &place["column"]), (&line.into(), &column.into()), "{error}");
            assert_eq!((&place["end_line"], &place["end_column"]), (&line.into(), &end.into()), "{error}");
        }
        let notes = errors[1]["notes"].as_array().expect("a list");
        assert!(notes[0].as_str().is_some_and(|n| n.starts_with("aten::add.int(int a, int b)")), "{notes:?}");
    }
}

/// Returns a function whose result is a nested expression.
fn nested(ty: &str, open: &str, inner: &str, close: &str) -> String {
    format!("def f(x: {ty}):\n    return {}{inner}{}\n", open.repeat(DEEP), close.repeat(DEEP))
}

#[test]
fn deep_nesting_is_safe() {
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
        // The program may be accepted or refused, but the command must terminate regularly.
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
    refused(&["run", &endless, "--fuel", "1000"], &["limit reached", "line 3"]);
    let divides = source("divides", "def f(a: int):\n    return 1 // a, 1 % a\n");
    refused(&["run", &divides, "-a", "a=0"], &["X0002"]);
    assert_eq!(accepted(&["run", &divides, "-a", "a=1", "--text"]), "(1, 0)\n");
}

#[test]
fn malformed_pipelines() {
    let path = source("fine", "def f(x: int):\n    return x\n");
    wrong(&["opt", &path, "-p", "cze"], &["R0101", "did you mean `cse`"]);
    wrong(&["opt", &path, "-p", "fix("], &["R0101", "not closed"]);
    wrong(&["opt", &path, "-p", &"fix(".repeat(10_000)], &["limit reached", "R0101"]);
    wrong(&["opt", &path, "-p", "cse{x=1}"], &["no option `x`"]);
    let rules = file("sources", "bad.rules", "use aten\nrule a [exact]: nope(%x) => %x\n");
    refused(&["opt", &path, "--rules", &rules], &["R0003", "bad.rules:2", "aten::nope"]);
}

#[test]
fn options_with_unknown_names() {
    let path = source("named", "def first(x: int):\n    return x\ndef second(x: int):\n    return x\n");
    for command in ["run", "print", "opt", "shapes", "alias"] {
        wrong(&[command, &path, "-e", "frist"], &["has no entry `frist`", "did you mean `first`"]);
    }
    wrong(&["fuzz", "--oracle", "machin", "--seconds", "1"], &["machin", "did you mean `machine`"]);
    let ir = file("sources", "one.ir", "graph(%x : int):\n  return (%x)\n");
    wrong(&["run", &ir, "-e", "main", "-a", "x=1"], &["has no entry `main`", "forward"]);
    wrong(&["explain", &path, "-e", "first", "--value", "%x", "-p", "dec"], &["R0101", "did you mean `dce`"]);
}

#[test]
fn passes_are_listed_without_a_program() {
    assert!(accepted(&["opt", "--list"]).contains("constant_propagation"));
    wrong(&["opt"], &["FILE"]);
}
