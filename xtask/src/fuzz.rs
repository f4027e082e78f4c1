//! The subcommand `fuzz`: searches for wrong rewrites and for input that crashes a parser.
//!
//! With `--kernels`, runs the kernel fuzzer, built with assertions, so that it can run in guarded memory
//! (`FLAMBEAU_GUARD=end`). With `--guided`, runs one of the libFuzzer targets of `fuzz/targets`, which need
//! `cargo-fuzz` and a nightly compiler; their corpus starts with the inputs of the file tests and is kept in
//! `fuzz/targets/corpus`. Without either, runs the fuzzer of `fuzz/` on random programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::process::{can_fetch, cargo, is_installed, run as run_command, run_binary};
use crate::workspace::root;

/// A libFuzzer target: name, file extension of the initial corpus, and maximum input length in bytes.
struct Target {
    name: &'static str,
    seeds: &'static str,
    longest: u32,
}

const TARGETS: &[Target] = &[
    Target { name: "source", seeds: "py", longest: 4096 },
    Target { name: "emit", seeds: "py", longest: 4096 },
    Target { name: "ir", seeds: "ir", longest: 4096 },
    Target { name: "pickle", seeds: "pkl", longest: 4096 },
    Target { name: "archive", seeds: "pt", longest: 16_384 },
    Target { name: "pt2", seeds: "json", longest: 32_768 },
    Target { name: "oracles", seeds: "", longest: 1024 },
];

/// `cargo xtask fuzz`: passes all arguments through, except for `--guided TARGET [SECONDS] [FOLDER OF SEEDS]` and
/// `--kernels [SECONDS] [SEED] [--op PART] [--work N] [--case NUMBER]`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    match args {
        [flag, rest @ ..] if flag == "--guided" => guided(rest),
        [flag, rest @ ..] if flag == "--kernels" => run_binary("flambeau-fuzz", "kernels", "checked", rest),
        _ => run_binary("flambeau-fuzz", "fuzz", "release", args),
    }
}

/// The step of `cargo xtask test`: checks the targets, which are a workspace of their own, so `cargo test` does not compile
/// them. Needs neither the nightly compiler nor one for C++, because libFuzzer itself is not built.
///
/// # Errors
/// Returns an error if a target does not compile, not if the crates that it needs cannot be fetched.
pub(crate) fn check_targets() -> anyhow::Result<String> {
    let manifest = root().join("fuzz/targets/Cargo.toml").to_string_lossy().into_owned();
    if !can_fetch(&manifest) {
        return Ok("NOT RUN: the crates that the targets need cannot be fetched".into());
    }
    let mut command = cargo(&["check", "--locked", "--no-default-features", "--manifest-path", &manifest]);
    run_command(command.env("CARGO_TARGET_DIR", root().join("target")))?;
    Ok(format!("{} targets compile", TARGETS.len()))
}

fn guided(args: &[String]) -> anyhow::Result<()> {
    let names = || TARGETS.iter().map(|t| t.name).collect::<Vec<_>>().join(", ");
    let name = args.first().with_context(|| format!("--guided takes a target: {}", names()))?;
    let target = TARGETS.iter().find(|t| t.name == name);
    let target = target.with_context(|| format!("unknown target `{name}`, expected one of {}", names()))?;
    let seconds: u64 = match args.get(1) {
        Some(text) => text.parse().with_context(|| format!("`{text}` is not a number of seconds"))?,
        None => 600,
    };
    anyhow::ensure!(
        is_installed(Command::new("cargo").args(["+nightly", "fuzz"])),
        "this needs a nightly compiler and `cargo install cargo-fuzz`"
    );
    let folder = root().join("fuzz").join("targets");
    let corpus = folder.join("corpus").join(target.name);
    seed(&corpus, target.seeds)?;
    let mut command = Command::new("cargo");
    command.args(["+nightly", "fuzz", "run", "--sanitizer", "none", "--fuzz-dir"]).arg(&folder);
    command.arg(target.name).arg(&corpus);
    if let Some(seeds) = args.get(2) {
        command.arg(fs::canonicalize(seeds).with_context(|| format!("cannot find the folder {seeds}"))?);
    }
    command.args(["--", "-timeout=10", "-rss_limit_mb=2048"]);
    command.arg(format!("-max_len={}", target.longest)).arg(format!("-max_total_time={seconds}"));
    run_command(command.current_dir(&folder))
}

/// Copies the test files with an extension into a corpus.
fn seed(corpus: &Path, extension: &str) -> anyhow::Result<()> {
    fs::create_dir_all(corpus)?;
    let mut folders: Vec<PathBuf> =
        ["tests/cases", "tests/data", "export/tests/data"].map(|f| root().join(f)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension)
                && let Some(name) = path.file_name()
            {
                fs::copy(&path, corpus.join(name))?;
            }
        }
    }
    Ok(())
}
