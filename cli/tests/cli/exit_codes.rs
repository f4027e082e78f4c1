//! Every documented exit code, and suggestions for unknown names. `own_command` tests code 3, because it has defects.

use super::{accepted, data, file, refused, run_in, wrong};

const SOURCE: &str = "def first(x: Tensor, scale: float = 1.0):
    return torch.relu(x) * scale

def second(x: Tensor):
    return x
";

#[test]
fn command_line_errors_exit_with_2_and_suggest_names() {
    let f = file("exit_codes", "f.py", SOURCE);
    let module = data("archive/tests/data/lstm.pt");
    let g = file("exit_codes", "value.ir", "graph(%value : int):\n  return (%value)\n");
    for (args, near) in [
        (&["prnt", &f][..], "'print'"),
        (&["print", &f, "--lcations"], "'--locations'"),
        (&["print", &f, "--as", "cod"], "'code'"),
        (&["print", &f, "-e", "frist"], "did you mean `first`?"),
        (&["print", &f, "--stage", "emitt"], "did you mean `emitted`?"),
        (&["opt", &f, "-e", "first", "-p", "inlin,dce"], "did you mean `inline`?"),
        (&["opt", &f, "-e", "first", "-p", "peephole{acept=exact}"], "did you mean `accept`?"),
        (&["opt", &f, "-e", "first", "--checks", "every-pas"], "'every-pass'"),
        (&["bench-ir", &f, "-e", "first", "-p", "dec"], "did you mean `dce`?"),
        (&["ops", "aten::rleu"], "did you mean `aten::relu`?"),
        (&["ops", "sigmiod"], "did you mean `sigmoid`?"),
        (&["fuzz", "--oracle", "machin"], "did you mean `machine`?"),
        (&["fuzz", "--favour", "aten::rleu"], "did you mean `aten::relu`?"),
        (&["fuzz", "-p", "dcee"], "did you mean `dce`?"),
        (&["explain", "V02"], "did you mean `V0"),
        (&["explain", &g, "--value", "%vlaue"], "did you mean `%value`?"),
        (&["explain", &g, "--alias", "%value,%vaule"], "did you mean `%value`?"),
        (&["convert", &f, "out.pt", "-e", "secnd"], "did you mean `second`?"),
        (&["verify", &f, "-e", "secnd"], "did you mean `second`?"),
        (&["freeze", &module, "out.pt", "--preserve", "nope"], "no attribute `nope`"),
    ] {
        wrong(args, &[near]);
    }
    wrong(&["print", &f], &["several functions", "--entry", "first, second"]);
    wrong(&["explain", &g, "--alias", "%value"], &["takes two values"]);
    wrong(&["explain", "--value", "%1"], &["FILE is missing"]);
    wrong(&["print", "--nope", "x.py"], &["--nope"]);
    for program in [&f, "lost.ir"] {
        wrong(&["explain", program], &["is a program, not an error code", "--value %NAME", "--alias %A,%B"]);
    }
}

#[test]
fn wrong_arguments_in_options_exit_with_2() {
    let f = file("exit_codes", "a.py", "def f(value: int):\n    return value\n");
    for (args, parts) in [
        (&["run", &f][..], &["X0003", "argument `value` is missing"][..]),
        (&["run", &f, "-a", "value"], &["X0004", "`value` is not NAME=VALUE"]),
        (&["run", &f, "-a", "value=1", "-a", "value=2"], &["X0003", "`value` is given twice"]),
        (&["run", &f, "-a", "valeu=1"], &["X0003", "no parameter `valeu`", "did you mean `value`?"]),
        (&["run", &f, "-a", "value=2.5"], &["X0003", "`value` must be of type int"]),
        (&["run", &f, "-a", "value=rand:f23[2]"], &["X0004", "`f23` is not a dtype", "did you mean `f32`?"]),
        (&["bench", &f], &["X0003", "argument `value` is missing"]),
        (&["print", &f, "--as", "optimized"], &["X0003", "argument `value` is missing"]),
        (&["shapes", &f, "-a", "value"], &["X0004", "`value` is not NAME=TYPE"]),
        (&["shapes", &f, "-a", "value=int", "-a", "value=int"], &["X0003", "`value` is given twice"]),
        (&["shapes", &f, "-a", "valeu=int"], &["X0003", "no parameter `valeu`", "did you mean `value`?"]),
    ] {
        wrong(args, parts);
    }
    // A file with arguments is not an option.
    let none = file("exit_codes", "none.json", "[]");
    refused(&["run", &f, "--inputs", &none], &["X0003", "argument `value` is missing"]);
}

#[test]
fn wrong_environment_variables_exit_with_2() {
    let f = file("exit_codes", "e.py", "def f(x: int):\n    return x\n");
    for (name, value) in [
        ("PYTORCH_JIT_TYPE_VERBOSITY", "five"),
        ("PYTORCH_JIT_TYPE_VERBOSITY", "5"),
        ("FLAMBEAU_ISA", "mmx"),
        ("FLAMBEAU_OPT_LIMIT", "cse"),
        ("FLAMBEAU_DEOPT", "every:0"),
    ] {
        let ran = run_in(&[(name, value)], &["opt", &f]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{name}={value}: {}", ran.err);
        assert!(ran.err.contains(value) && ran.err.contains("S0009"), "{name}={value}: {}", ran.err);
    }
}

#[test]
fn errors_of_programs_files_and_calls_exit_with_1() {
    let f = file("exit_codes", "c.py", "def f(value: int):\n    assert value > 2\n    return value\n");
    refused(&["run", &f, "-a", "value=1"], &["X0002"]);
    refused(&["print", "no/such/file.py"], &["no/such/file.py"]);
    accepted(&["run", &f, "-a", "value=3"]);
    let g =
        file("exit_codes", "neg.ir", "graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n");
    for dtype in ["u8", "i8", "i16", "f16", "c64", "c128", "uint8"] {
        accepted(&["run", &g, "-a", &format!("x=rand:{dtype}[3]")]);
    }
    assert!(accepted(&["verify", &g]).ends_with(": 1 entry, 1 node, valid\n"));
}
