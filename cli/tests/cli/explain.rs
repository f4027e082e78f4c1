//! Explanations of rewrites, aliasing and error codes, and reports as JSON.

use super::{accepted, data, file, run, wrong};
use serde_json::Value;

const GRAPH: &str = "graph(%x : Float(2, 3), %y : Float(2, 3)):
  %one : int = prim::Constant[value=1]()
  %a : Float(3, 2) = aten::t(%x)
  %b : Float(2, 3) = aten::t(%a)
  %c : Float(2, 3) = aten::mul(%b, %y)
  %d : Float(2, 3) = aten::relu(%c)
  %e : Float(2, 3) = aten::relu(%d)
  %w : Float(2, 3) = aten::add_(%e, %y, %one)
  return (%w, %y)
";

#[test]
fn rewrites_are_explained() {
    let path = file(
        "explain",
        "g.ir",
        "graph(%x : Float(2, 3), %y : Float(2, 3)):
  %a : Float(3, 2) = aten::t(%x)
  %b : Float(2, 3) = aten::t(%a)
  %c : Float(2, 3) = aten::mul(%b, %y)
  %d : Float(2, 3) = aten::mul(%b, %y)
  %e : Float(2, 3) = aten::relu(%c)
  %f : Float(2, 3) = aten::relu(%e)
  return (%f, %d)
",
    );
    for pipeline in ["peephole", "egraph"] {
        let out = accepted(&["explain", &path, "--value", "%f", "-p", pipeline]);
        assert!(out.contains("relu-relu") && out.contains("replaces %f"), "{pipeline}:\n{out}");
    }
    let out = accepted(&["explain", &path, "--value", "d", "-p", "cse"]);
    assert!(out.contains("cse: %c replaces %d"), "{out}");
    assert!(accepted(&["explain", &path, "--value", "%y", "-p", "cse"]).contains("no rewrite affects it"));
    wrong(&["explain", &path, "--value", "%lost"], &["`%lost`"]);
    let out = accepted(&["explain", &path, "--value", "%e", "-p", "fuse"]);
    assert!(out.starts_with("%e was moved into a subgraph"), "{out}");
    assert!(
        out.contains("fuse: %e moves into the subgraph of") && out.contains("prim::FusionGroup"),
        "{out}"
    );
    let unused = file("explain", "u.ir", "graph(%x : int):\n  %y : int = aten::neg(%x)\n  return (%x)\n");
    let out = accepted(&["explain", &unused, "--value", "%y", "-p", "dce"]);
    assert_eq!(out, "%y is not in the resulting graph\n  dce: erase at %y = aten::neg\n");
}

#[test]
fn alias_answers_are_explained() {
    let path = file("explain", "a.ir", GRAPH);
    let out = accepted(&["explain", &path, "--alias", "%w,%e"]);
    assert!(out.starts_with("%w may alias %e"), "{out}");
    let out = accepted(&["explain", &path, "--alias", "%w,%y"]);
    assert!(out.starts_with("%w cannot alias %y: they have no memory in common"), "{out}");
}

#[test]
fn every_code_has_a_section() {
    let all = accepted(&["explain"]);
    for code in ["V020", "T005", "F0100", "R0003", "A0026", "X0002"] {
        assert!(all.lines().any(|l| l.starts_with(code)), "no `{code}` in:\n{all}");
        assert!(accepted(&["explain", code]).starts_with(code));
    }
    wrong(&["explain", "Z999"], &["Z999"]);
}

#[test]
fn reports_as_json() {
    let cell = data("cli/data/lstm_cell.py");
    let json = |args: &[&str]| -> Value { serde_json::from_str(&accepted(args)).expect("JSON") };
    let report = json(&["opt", &cell, "--report", "json"]);
    let passes = report["passes"].as_array().expect("passes");
    assert!(passes.iter().any(|p| p["pass"] == "fuse" && p["changed"] == true), "{report}");
    assert!(passes.iter().all(|p| p["nodes"]["before"].is_u64() && p["edits"]["inserted"].is_u64()));
    assert!(report["graph"].as_str().is_some_and(|g| g.starts_with("graph(")));
    let path = file("explain", "j.ir", GRAPH);
    let values = json(&["alias", &path, "--json"]);
    let e = values.as_array().and_then(|a| a.iter().find(|v| v["value"] == "e")).expect("%e");
    assert_eq!((&e["written"], &e["may_be_wildcard"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(json(&["shapes", &path, "--json"])["d"], "Float(2, 3)");
    assert!(json(&["ops", "aten::relu", "--json"]).as_array().is_some_and(|a| !a.is_empty()));
}

#[test]
fn rules_come_from_files() {
    let path = file(
        "explain",
        "r.ir",
        "graph(%x : int):
  %one : int = prim::Constant[value=1]()
  %y : int = aten::floordiv(%x, %one)
  return (%y)
",
    );
    let rules = file(
        "explain",
        "my.rules",
        "ruleset mine\nuse aten\nrule by-one [exact]: floordiv.int(%n, 1) => %n\n",
    );
    let out = accepted(&["opt", &path, "-p", "peephole{only=mine},dce", "--rules", &rules]);
    assert!(!out.contains("floordiv") && out.contains("return (%x)"), "{out}");
}

#[test]
fn rules_that_are_skipped_for_their_class_are_named() {
    let path = file(
        "explain",
        "s.ir",
        "graph(%x : Float(2)):
  %y : Float(2) = aten::sigmoid(%x)
  %z : Float(2) = aten::relu(%y)
  return (%z)
",
    );
    let text = "ruleset mine\nuse aten\nrule drop [rounding]: relu(sigmoid(%x)) => sigmoid(%x)\n";
    let rules = file("explain", "skipped.rules", text);
    let opt = |args: &[&str]| run(&[&["opt", &path, "--rules", &rules], args].concat());
    let ran = opt(&["-p", "peephole"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let note =
        ["not applied because they are not exact", "rounding", "--report names them", "accept=rounding"];
    note.iter().for_each(|part| assert!(ran.err.contains(part), "no `{part}` in {}", ran.err));
    let line = "not applied: mine/drop [rounding] matches at %z = aten::relu; accept=rounding applies it";
    let ran = opt(&["-p", "peephole", "--report"]);
    assert!(ran.err.contains(line), "{}", ran.err);
    let report: Value =
        serde_json::from_str(&opt(&["-p", "peephole", "--report", "json"]).out).expect("JSON");
    let skipped = report["skipped"].as_array().expect("a list");
    assert!(skipped.iter().any(|s| s["rule"] == "mine/drop" && s["class"] == "rounding"), "{report}");
    // Rules are matched before later passes move nodes into fusion groups.
    let ran = opt(&["-p", "peephole,fuse,dce", "--report"]);
    assert!(ran.out.contains("FusionGroup") && ran.err.contains(line), "{}{}", ran.out, ran.err);
    // Applied where the class is accepted; nothing to say of pipelines without rules.
    let ran = opt(&["-p", "peephole{accept=rounding},dce"]);
    assert!(!ran.out.contains("relu") && !ran.err.contains("mine"), "{}{}", ran.out, ran.err);
    assert_eq!(opt(&["-p", "cse,dce"]).err, "");
}
