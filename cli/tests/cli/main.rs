//! Tests of the command as a process: output, streams and exit codes.

mod bad_files;
mod bad_inputs;
mod bad_source;
mod convert;
mod exit_codes;
mod explain;
mod exported;
mod graph_text;
mod input_types;
mod killed;
mod lstm_cell;
mod memory;
mod missing;
mod specialized;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Result of a run of the command.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Returns a folder for the files of one test.
fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).expect("a folder for files");
    folder
}

/// Writes a file of one test and returns its path.
///
/// The file appears whole: tests of one module run at the same time, and several may write the same file while the
/// command of another reads it.
fn file(test: &str, name: &str, bytes: impl AsRef<[u8]>) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let folder = folder(test);
    let part = folder.join(format!("{}.part", NUMBER.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(&part, bytes).expect("a file is written");
    let path = folder.join(name);
    std::fs::rename(&part, &path).expect("a file is renamed");
    path.to_string_lossy().into_owned()
}

/// Returns the path of a file of the repository.
fn data(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path).to_string_lossy().into_owned()
}

/// Runs the command. If the shell can limit memory, the process is ended above this many kilobytes.
fn run(args: &[&str]) -> Ran {
    run_in(&[], args)
}

/// Like [`run`], with environment variables.
fn run_in(variables: &[(&str, &str)], args: &[&str]) -> Ran {
    const MEMORY: &str = "2000000";
    let command = env!("CARGO_BIN_EXE_flambeau");
    let mut started = if cfg!(target_os = "linux") {
        let script = format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, command]);
        shell
    } else {
        Command::new(command)
    };
    started.args(args).envs(variables.iter().copied());
    let output: Output = started.output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs the command, which must succeed; returns its output.
fn accepted(args: &[&str]) -> String {
    let ran = run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
    ran.out
}

/// Runs the command with a wrong command line: checks exit code 2, empty standard output, and an error that contains
/// each of `parts`.
fn wrong(args: &[&str], parts: &[&str]) {
    let ran = run(args);
    let shown: String = ran.err.chars().take(600).collect();
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {shown}");
    for part in parts {
        assert!(ran.err.contains(part), "{args:?}: no `{part}` in: {shown}");
    }
}

/// Runs the command on an invalid input: checks exit code 1, empty standard output, and an error that contains each of
/// `parts`.
fn refused(args: &[&str], parts: &[&str]) -> String {
    let ran = run(args);
    let shown: String = ran.err.chars().take(600).collect();
    assert_eq!(ran.code, Some(1), "{args:?}: {shown}");
    assert_eq!(ran.out, "", "{args:?} printed, and then: {shown}");
    for part in parts {
        assert!(ran.err.contains(part), "{args:?}: no `{part}` in: {shown}");
    }
    ran.err
}
