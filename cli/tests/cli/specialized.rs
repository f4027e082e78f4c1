//! Forms of programs that are specialized to inputs.

use super::{accepted, file, run};

const SOURCE: &str = "def f(x: Tensor, y: Tensor):
    m = x[x > 0]
    return torch.relu(m * 2) + y.size(0)
";

#[test]
fn print_shows_profiles_plans_and_bailouts() {
    let f = file("specialized", "f.py", SOURCE);
    let print =
        |form: &str| accepted(&["print", &f, "--as", form, "-a", "x=rand:f32[4]", "-a", "y=rand:f32[2,3]"]);
    let profiled = print("profiled");
    assert!(profiled.contains("prim::profile[index=0, profiled_type=Float(4"), "{profiled}");
    let optimized = print("optimized");
    assert!(optimized.contains("prim::BailOut_0[index=4](%m.1, %m.1, %y.1)"), "{optimized}");
    assert_eq!(
        optimized.matches("aten::size").count(),
        1,
        "only the continuation asks for the size:\n{optimized}"
    );
    let bailouts = print("bailouts");
    assert!(
        bailouts.contains("f.py:2; failures: 0") || bailouts.contains("f.py:3; failures: 0"),
        "{bailouts}"
    );
}

const NARROWS: &str = "def f(x: Tensor, n: int):
    y = torch.narrow(x, 0, 0, n)
    for i in range(3):
        y = y.sin().cumsum(0)
    return y * 2
";

/// Writes inputs of [`NARROWS`] that narrow to this length.
fn inputs(n: u32) -> String {
    let values: Vec<String> = (0..8).map(|i| i.to_string()).collect();
    let tensor =
        format!(r#"{{"t": "tensor", "dtype": "float32", "shape": [4, 2], "data": [{}]}}"#, values.join(","));
    file("narrows", &format!("n{n}.json"), format!(r#"[{tensor}, {{"t": "int", "v": {n}}}]"#))
}

#[test]
fn explain_shows_failed_guards() {
    let f = file("narrows", "f.py", NARROWS);
    let [two, three] = [2, 3].map(inputs);
    let explain = |more: &[&str]| {
        let base = ["explain", &f, "--deopt", "--inputs", &two];
        accepted(&[&base[..], more].concat())
    };
    let none = explain(&[]);
    assert!(none.starts_with("plan 1: (%x") && none.ends_with("no guard failed\n"), "{none}");
    assert!(none.contains("guard 0: %y"), "{none}");
    let once = explain(&["--then", &three]);
    assert!(once.contains("failed: %y"), "{once}");
    assert!(once.contains("f.py:"), "{once}");
    assert!(once.contains("expected Float(2, 2") && once.contains("seen     Float(3, 2"), "{once}");
    assert!(once.contains("calls continued in the unoptimized program"), "{once}");
    let often = explain(&["--then", &three, "--then", &three, "--then", &three]);
    assert!(often.contains("(3 times)") && often.contains("replaced by plan 2"), "{often}");
}

#[test]
fn run_shows_a_profile() {
    let f = file("narrows", "f.py", NARROWS);
    let ran = run(&["run", &f, "--inputs", &inputs(2), "--profile", "--calls", "5"]);
    assert!(ran.out.contains("\"tensor\"") || ran.out.contains("tensor"), "{}", ran.out);
    for part in ["5 calls, ", "aten::cumsum", "(interpreter)", "f.py:4", "plan 1: (%x", "guard 0: %"] {
        assert!(ran.err.contains(part), "{part}:\n{}", ran.err);
    }
    // Three iterations in each of five calls.
    assert!(
        ran.err.lines().any(|l| l.trim_start().starts_with("15 ") && l.ends_with("aten::cumsum")),
        "{}",
        ran.err
    );
}

const COUNTED: &str = "
def f(n: int):
    l = [0]
    for i in range(n):
        l.append(i * 2)
    return l
";

#[test]
fn a_profile_counts_instructions() {
    let f = file("counted", "f.py", COUNTED);
    let seven = file("counted", "seven.json", "[7]");
    let ran = run(&["run", &f, "--inputs", &seven, "--unoptimized", "--profile", "--calls", "2"]);
    let line = |text: &str| {
        ran.err.lines().find(|l| l.contains(text)).unwrap_or_else(|| panic!("{}", ran.err)).to_owned()
    };
    assert!(line("AppendI").trim_start().starts_with("7 "), "{}", ran.err);
    assert!(line(" Ret ").trim_start().starts_with("1 "), "{}", ran.err);
    let json = run(&["run", &f, "--inputs", &seven, "--unoptimized", "--profile", "--calls", "2", "--json"]);
    let profile: serde_json::Value = serde_json::from_str(&json.err).expect("JSON");
    let code = &profile["codes"][0]["instructions"];
    let append = code.as_array().into_iter().flatten().find(|row| row["opcode"] == "AppendI").expect("there");
    assert_eq!(append["count"], 7, "{profile}");
    assert_eq!(profile["calls"], 2);
}

#[test]
fn plans_are_saved_and_used() {
    let f = file("narrows", "f.py", NARROWS);
    let plans = file("narrows", "plans.json", "");
    std::fs::remove_file(&plans).expect("written above");
    let first = accepted(&["run", &f, "--inputs", &inputs(2), "--plans", &plans]);
    let saved = std::fs::read_to_string(&plans).expect("written by the command");
    assert!(saved.contains("flambeau-plans-2"), "{saved}");
    assert_eq!(accepted(&["run", &f, "--inputs", &inputs(2), "--plans", &plans]), first);
    assert_eq!(std::fs::read_to_string(&plans).expect("written again"), saved);
    let other = file("narrows", "g.py", NARROWS.replace("* 2", "* 3"));
    let ran = run(&["run", &other, "--inputs", &inputs(2), "--plans", &plans]);
    assert!(ran.err.contains("are not used: `program`"), "{}", ran.err);
    let broken = file("narrows", "broken.json", "{");
    let ran = run(&["run", &f, "--inputs", &inputs(2), "--plans", &broken]);
    assert!(ran.err.contains("S0010"), "{}", ran.err);
}

#[test]
fn print_shows_the_differentiated_graph() {
    let f = file(
        "gradient",
        "f.py",
        "def g(x: Tensor):\n    return x.tanh()\n\ndef f(x: Tensor, n: int):\n    return g(x) * n\n",
    );
    let text = accepted(&["print", &f, "-e", "f", "--as", "gradient"]);
    assert_eq!(text.matches("graph(").count(), 2, "{text}");
    assert!(text.contains("aten::tanh(%x") && text.contains("aten::neg("), "{text}");
    let integers = file("gradient", "g.py", "def f(n: int):\n    return n + 1\n");
    let refused = run(&["print", &integers, "--as", "gradient"]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
}
