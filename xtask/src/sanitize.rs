//! The tests that reach memory by pointers, in guarded memory and under AddressSanitizer.
//!
//! Guarded memory (`tensor/src/guard.rs`) finds accesses that leave a block, whatever made them; AddressSanitizer also
//! those within a block's mapping and those of memory that does not come from the allocator of tensors. A leg is one edge,
//! one instruction set and one number of threads; every leg runs every row of [`TESTS`], and the recorded suites where a
//! folder of them is given. The guarded legs share one build (profile `checked`: assertions, some optimization).
//!
//! AddressSanitizer needs a nightly compiler. Everything is built for the host as if for another target, so that build
//! scripts and macros stay as they are, in a folder of its own (`target/sanitize`, two gigabytes).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;

use crate::binaries::{self, Binary, Ended};
use crate::process::{cargo, is_installed, run as run_command};
use crate::workspace::root;

/// Packages and which of their tests: what reaches memory by pointers, driven by every operator's samples; loops of
/// several threads; the machine's slots, by tests of its own and by file tests of whole programs, each of which it runs;
/// kernels at the borders of sizes.
const TESTS: &[(&str, &[&str])] = &[
    (
        "flambeau-tensor",
        &["--lib", "--test", "loops", "--test", "threads", "--test", "in_place", "--test", "one_position"],
    ),
    ("flambeau-fuzz", &["--test", "kernels"]),
    ("flambeau-ops", &["--test", "complete"]),
    ("flambeau-exec", &["--lib", "--test", "machine"]),
    ("flambeau", &["--test", "threads"]),
    ("flambeau-tests", &["--test", "filetests", "--test", "suites"]),
];

/// Targets of the short form that `cargo xtask test` runs.
const SHORT: &[&str] = &["flambeau_tensor", "kernels", "in_place", "one_position"];

const EDGES: [&str; 2] = ["end", "begin"];
const SETS: [&str; 3] = ["avx512", "avx2", "baseline"];
const THREADS: [&str; 2] = ["1", "2"];
/// Recorded suites, in a folder of them.
const SUITES: [&str; 3] = ["sizes", "models", "calls"];

/// What a run asks for.
#[derive(Default)]
struct Options {
    /// A folder of recorded suites.
    corpus: Option<PathBuf>,
    guarded: bool,
    address: bool,
    rest: Vec<String>,
}

impl Options {
    fn parse(args: &[String]) -> anyhow::Result<Options> {
        let mut options = Options { guarded: true, address: true, ..Options::default() };
        options.corpus = std::env::var_os("FLAMBEAU_CORPUS").map(PathBuf::from);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--corpus" => {
                    options.corpus = Some(args.next().context("--corpus takes a folder")?.into());
                }
                "--guarded" => options.address = false,
                "--address" => options.guarded = false,
                other => options.rest.push(other.to_owned()),
            }
        }
        if let Some(folder) = &options.corpus {
            anyhow::ensure!(folder.is_dir(), "there is no folder {}", folder.display());
        }
        Ok(options)
    }
}

/// A line of the table at the end.
struct Line {
    leg: String,
    what: String,
    seconds: f64,
    /// What is wrong, in the first line; nothing where all is well.
    result: Result<String, String>,
}

/// `cargo xtask sanitize [--corpus FOLDER] [--guarded | --address] [ARGS FOR THE TESTS]`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let options = Options::parse(args)?;
    let mut lines = Vec::new();
    if options.guarded {
        guarded(&options, &mut lines)?;
    }
    if options.address {
        lines.push(address(&options.rest)?);
    }
    finish(&lines)
}

/// The short form: a few binaries of the workspace's build, in guarded memory, with either edge.
///
/// # Errors
/// If a test fails or ends its process.
pub(crate) fn short() -> anyhow::Result<String> {
    let binaries = binaries::build(&["--workspace"])?;
    let mut lines = Vec::new();
    for edge in EDGES {
        for binary in binaries.iter().filter(|b| SHORT.contains(&b.target.as_str())) {
            lines.push(one(binary, edge, &[("FLAMBEAU_GUARD", edge)], &[])?);
        }
    }
    finish(&lines)?;
    Ok(format!("{} runs in guarded memory", lines.len()))
}

/// All guarded legs.
fn guarded(options: &Options, lines: &mut Vec<Line>) -> anyhow::Result<()> {
    let mut args = vec!["--profile", "checked"];
    let mut targets: Vec<String> = Vec::new();
    for (package, tests) in TESTS {
        args.extend(["--package", package]);
        let named = tests.iter().filter(|t| !t.starts_with("--")).map(|t| (*t).to_owned());
        targets.extend(named);
        if tests.contains(&"--lib") {
            targets.push(package.replace('-', "_"));
        }
    }
    let binaries = binaries::build(&args)?;
    let binaries: Vec<&Binary> = binaries.iter().filter(|b| targets.contains(&b.target)).collect();
    let conform = options.corpus.as_deref().map(|_| build_conform()).transpose()?;
    for set in SETS {
        if !has(&binaries, set)? {
            lines.push(Line {
                leg: set.to_owned(),
                what: "all".to_owned(),
                seconds: 0.0,
                result: Ok("left out: not on this processor".to_owned()),
            });
            continue;
        }
        for (edge, threads) in EDGES.into_iter().flat_map(|e| THREADS.map(|t| (e, t))) {
            let variables = [("FLAMBEAU_GUARD", edge), ("FLAMBEAU_ISA", set), ("FLAMBEAU_THREADS", threads)];
            let leg = format!("{set} {edge} {threads}");
            for binary in &binaries {
                lines.push(one(binary, &leg, &variables, &options.rest)?);
            }
            if let (Some(conform), Some(corpus)) = (&conform, &options.corpus) {
                for suite in SUITES.iter().map(|s| corpus.join(s)).filter(|s| s.is_dir()) {
                    lines.push(suite_line(conform, &suite, &leg, &variables)?);
                }
            }
        }
    }
    Ok(())
}

/// Whether the processor has an instruction set, which the tests of the switch itself find out.
fn has(binaries: &[&Binary], set: &str) -> anyhow::Result<bool> {
    let tensor = binaries.iter().find(|b| b.target == "flambeau_tensor");
    let tensor = tensor.context("there are no tests of the tensors")?;
    let ended = tensor.run(&[("FLAMBEAU_ISA", set)], &["simd::".to_owned(), "threads::".to_owned()])?;
    Ok(matches!(ended, Ended::Passed(_)))
}

/// Runs one binary and says at once how it ended.
fn one(binary: &Binary, leg: &str, variables: &[(&str, &str)], args: &[String]) -> anyhow::Result<Line> {
    let start = Instant::now();
    let result = match binary.run(variables, args)? {
        Ended::Passed(count) => Ok(format!("{count} passed")),
        Ended::Failed(text) => Err(text),
    };
    Ok(said(leg, &binary.target, start, result))
}

/// The conformance runner, built with assertions.
fn build_conform() -> anyhow::Result<PathBuf> {
    run_command(&mut cargo(&[
        "build",
        "--profile",
        "checked",
        "--package",
        "flambeau-tests",
        "--bin",
        "conform",
    ]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("checked").join("conform"))
}

/// Runs a recorded suite; what disagrees is counted by its last line, a process that dies fails the leg.
fn suite_line(conform: &Path, suite: &Path, leg: &str, variables: &[(&str, &str)]) -> anyhow::Result<Line> {
    let start = Instant::now();
    let output = Command::new(conform).arg(suite).envs(variables.iter().copied()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("").trim().to_owned();
    let result = match output.status.code() {
        Some(0 | 1) => Ok(last),
        _ => Err(format!("{last} ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr))),
    };
    let name = suite.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    Ok(said(leg, &name, start, result))
}

fn said(leg: &str, what: &str, start: Instant, result: Result<String, String>) -> Line {
    let line =
        Line { leg: leg.to_owned(), what: what.to_owned(), seconds: start.elapsed().as_secs_f64(), result };
    println!("{}", line.shown());
    if let Err(text) = &line.result {
        println!("{text}");
    }
    line
}

impl Line {
    fn shown(&self) -> String {
        let (mark, text) = match &self.result {
            Ok(text) => ("ok    ", text.as_str()),
            Err(text) => ("FAILED", text.lines().next().unwrap_or("")),
        };
        format!("{mark} {:20} {:16} {:7.1} s  {text}", self.leg, self.what, self.seconds)
    }
}

/// Prints the table.
fn finish(lines: &[Line]) -> anyhow::Result<()> {
    println!("\n== legs");
    lines.iter().for_each(|line| println!("{}", line.shown()));
    let failed = lines.iter().filter(|line| line.result.is_err()).count();
    anyhow::ensure!(failed == 0, "{failed} of {} runs failed", lines.len());
    Ok(())
}

/// The tests under AddressSanitizer; left out, and said so, where there is no nightly compiler.
fn address(args: &[String]) -> anyhow::Result<Line> {
    let start = Instant::now();
    if !is_installed(&mut nightly("cargo")) {
        let text = "left out: needs a nightly compiler (`rustup toolchain install nightly`)";
        return Ok(said("address", "all", start, Ok(text.to_owned())));
    }
    let host = host()?;
    let mut wrong = Vec::new();
    for (package, tests) in TESTS {
        let mut command = nightly("cargo");
        command.args(["test", "--package", package]).args(*tests).args(["--target", &host]).args(args);
        command
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("CARGO_TARGET_DIR", root().join("target/sanitize"));
        if let Err(error) = run_command(&mut command) {
            wrong.push(format!("{error:#}"));
        }
    }
    let result = if wrong.is_empty() { Ok("no report".to_owned()) } else { Err(wrong.join("\n")) };
    Ok(said("address", "all", start, result))
}

/// A program of the nightly toolchain.
fn nightly(program: &str) -> Command {
    let mut command = Command::new("rustup");
    // What this process was started with names another toolchain.
    command
        .args(["run", "nightly", program])
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env_remove("RUSTUP_TOOLCHAIN");
    command.current_dir(root());
    command
}

/// The target that the compiler builds for when not told.
fn host() -> anyhow::Result<String> {
    let output = nightly("rustc").arg("-vV").output().context("cannot start `rustc`")?;
    let text = String::from_utf8(output.stdout).context("`rustc -vV` answers in text")?;
    let line = text.lines().find_map(|l| l.strip_prefix("host: "));
    line.map(str::to_owned).context("`rustc -vV` names no host")
}
