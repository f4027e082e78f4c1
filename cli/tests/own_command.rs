//! Tests of the command as a library. The test program is also a command: started with [`ROLE`] set, it is the example
//! `own_command`, with two additional broken passes if the role is [`BROKEN`]. Otherwise it starts itself in that role
//! and checks the output. The workers of `fuzz` are this program too, since they inherit the role.

#[expect(dead_code, reason = "the example's own `main` is not called")]
#[path = "../examples/own_command.rs"]
mod own_command;

use flambeau::ir::{At, Prim};
use flambeau::rewrite::{Pass, PassCx, PassEntry, PassError};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The environment variable that selects the role.
const ROLE: &str = "FLAMBEAU_TEST_OWN_COMMAND";

/// The role of the command with broken passes.
const BROKEN: &str = "broken";

/// A pass that panics.
#[derive(Clone, Copy, Debug, Default)]
struct Panics;

impl Pass for Panics {
    const NAME: &'static str = "panics";
    const DOC: &'static str = "panics";

    fn run(&self, _: &mut PassCx<'_>) -> Result<(), PassError> {
        panic!("a defect that is planted")
    }
}

/// A pass that inserts a malformed node.
#[derive(Clone, Copy, Debug, Default)]
struct Breaks;

impl Pass for Breaks {
    const NAME: &'static str = "breaks";
    const DOC: &'static str = "leaves a branch without a condition";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let root = cx.graph().root();
        cx.edit().at(At::start(root)).node(Prim::If, &[], &[]);
        Ok(())
    }
}

fn main() -> ExitCode {
    if let Some(role) = std::env::var_os(ROLE) {
        let session = own_command::session();
        return flambeau_cli::run(match role == BROKEN {
            true => session.pass(PassEntry::of::<Panics>()).pass(PassEntry::of::<Breaks>()),
            false => session,
        });
    }
    // As the standard harness: arguments that are not options select tests, and a last line is counted by tools.
    let filters: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_selected = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    let (selected, left): (Vec<_>, Vec<_>) = TESTS.into_iter().partition(|(name, _)| is_selected(name));
    for (name, test) in &selected {
        test();
        println!("test {name} ... ok");
    }
    let (passed, left) = (selected.len(), left.len());
    println!("test result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; {left} filtered out");
    ExitCode::SUCCESS
}

/// The tests, by name.
const TESTS: [(&str, fn()); 5] = [
    ("every_command_knows_what_is_added", every_command_knows_what_is_added),
    ("rules_and_passes_are_applied", rules_and_passes_are_applied),
    ("workers_of_fuzz_are_the_own_program", workers_of_fuzz_are_the_own_program),
    ("defects_exit_with_3", defects_exit_with_3),
    ("wrong_names_exit_with_2", wrong_names_exit_with_2),
];

/// Runs the command; returns exit code, standard output and standard error.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    run_as("own", args)
}

fn run_as(role: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).env(ROLE, role).args(args).output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn accepted(args: &[&str]) -> String {
    let (code, out, err) = run(args);
    assert_eq!(code, Some(0), "{args:?}: {err}");
    out
}

/// A program that adds a tensor to itself and prints.
fn program() -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("own_command.py");
    std::fs::write(&path, "def f(x: Tensor):\n    print(1)\n    return torch.relu(x + x)\n").expect("a file");
    path.to_string_lossy().into_owned()
}

fn every_command_knows_what_is_added() {
    assert!(accepted(&["ops", "mine::"]).contains("mine::twice(Tensor self) -> Tensor"));
    let passes = accepted(&["opt", "--list"]);
    assert!(passes.contains("drop_prints") && passes.contains("= drop_prints,default"), "{passes}");
    let own = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("own.ir");
    std::fs::write(&own, "graph(%x : Tensor):\n  %y : Tensor = mine::twice(%x)\n  return (%y)\n")
        .expect("a file");
    let own = own.to_string_lossy();
    assert!(accepted(&["run", &own, "-a", "x=rand:f32[2]", "--json"]).contains("\"shape\":[2]"));
    for command in ["print", "verify", "alias", "bench-ir"] {
        accepted(&[command, &own]);
    }
    assert!(accepted(&["shapes", &own, "-a", "x=f32[2,3]"]).contains("Float(2, 3)"));
}

fn rules_and_passes_are_applied() {
    let file = program();
    let out = accepted(&["opt", &file, "-p", "mine", "-a", "x=f32[4]"]);
    assert!(out.contains("mine::twice") && !out.contains("prim::Print"), "{out}");
    let out = accepted(&["opt", &file, "-p", "peephole", "-a", "x=f32[4]"]);
    assert!(out.contains("mine::twice") && out.contains("prim::Print"), "{out}");
    let out = accepted(&["explain", &file, "--value", "%5", "-p", "peephole", "-a", "x=f32[4]"]);
    assert!(out.contains("mine/double"), "{out}");
}

fn workers_of_fuzz_are_the_own_program() {
    let fuzz = ["fuzz", "--oracle", "machine", "--seconds", "1", "--seed", "3", "--favour", "mine::twice"];
    let out = accepted(&fuzz);
    assert!(out.contains("machine: "), "{out}");
}

fn defects_exit_with_3() {
    let file = program();
    let (code, out, err) = run_as(BROKEN, &["opt", &file, "-p", "breaks"]);
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
    assert!(err.contains("P0001") && err.contains("the graph is broken"), "{err}");
    let (code, out, err) = run_as(BROKEN, &["opt", &file, "-p", "panics"]);
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
    assert!(err.contains("a defect that is planted"), "{err}");
}

fn wrong_names_exit_with_2() {
    let (code, _, err) = run(&["opt", &program(), "-p", "drop_print"]);
    assert!(code == Some(2) && err.contains("did you mean `drop_prints`?"), "{code:?}: {err}");
    let (code, _, err) = run(&["ops", "mine::twise"]);
    assert!(code == Some(2) && err.contains("did you mean `mine::twice`?"), "{code:?}: {err}");
}
