//! The subcommand `sanitize`: runs the tests of code with pointers, in guarded memory and under AddressSanitizer.
//!
//! Guarded memory (`tensor/src/guard.rs`) detects accesses outside of a block by any code. AddressSanitizer also
//! detects accesses within a block's mapping and accesses to memory that the tensor allocator does not manage. A leg is
//! a combination of an edge of the block, an instruction set and a number of threads. Every leg runs every row of
//! [`TESTS`], and the recorded suites if their folder is given. The guarded legs share one build (profile `checked`:
//! assertions, some optimization).
//!
//! AddressSanitizer needs a nightly compiler. The build uses an explicit target, so that build scripts and macros are
//! not instrumented, and its own target folder (`target/sanitize`, two gigabytes).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;

use crate::binaries::{self, Binary, Ended};
use crate::process::{cargo, is_installed, run as run_command};
use crate::workspace::root;

/// Packages with the tests to run: pointer accesses on the samples of every operator; loops with several threads; the
/// registers of the virtual machine, by its own tests and by file tests of whole programs; kernels at size limits.
const TESTS: &[(&str, &[&str])] = &[
    (
        "flambeau-tensor",
        &["--lib", "--test", "loops", "--test", "threads", "--test", "in_place", "--test", "one_position"],
    ),
    ("flambeau-fuzz", &["--test", "kernels"]),
    ("flambeau-ops", &["--test", "complete"]),
    ("flambeau-exec", &["--lib", "--test", "machine", "--test", "combinations"]),
    ("flambeau", &["--test", "threads"]),
    ("flambeau-tests", &["--test", "filetests", "--test", "suites"]),
];

/// Test binaries that `cargo xtask test` runs in guarded memory.
const SHORT: &[&str] = &["flambeau_tensor", "kernels", "in_place", "one_position"];

const EDGES: [&str; 2] = ["end", "begin"];
const SETS: [&str; 3] = ["avx512", "avx2", "baseline"];
const THREADS: [&str; 2] = ["1", "2"];
/// Folders with recorded suites, relative to the corpus folder.
const SUITES: [&str; 3] = ["sizes", "models", "calls"];

/// The options of a run.
#[derive(Default)]
struct Options {
    /// The corpus folder with recorded suites.
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

/// A row of the final table.
struct Line {
    leg: String,
    what: String,
    seconds: f64,
    /// A summary, or an error text whose first line is shown in the table.
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

/// Runs a few test binaries of the workspace's build in guarded memory, with each edge.
///
/// # Errors
/// Returns an error if a test fails or aborts its process.
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

/// Runs all guarded legs.
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
                result: Ok("skipped: not supported by this processor".to_owned()),
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

/// Returns whether the processor has an instruction set: the tests of instruction set selection fail if not.
fn has(binaries: &[&Binary], set: &str) -> anyhow::Result<bool> {
    let tensor = binaries.iter().find(|b| b.target == "flambeau_tensor");
    let tensor = tensor.context("there is no test binary `flambeau_tensor`")?;
    let ended = tensor.run(&[("FLAMBEAU_ISA", set)], &["simd::".to_owned(), "threads::".to_owned()])?;
    Ok(matches!(ended, Ended::Passed(_)))
}

/// Runs a test binary and prints the outcome.
fn one(binary: &Binary, leg: &str, variables: &[(&str, &str)], args: &[String]) -> anyhow::Result<Line> {
    let start = Instant::now();
    let result = match binary.run(variables, args)? {
        Ended::Passed(count) => Ok(format!("{count} passed")),
        Ended::Failed(text) => Err(text),
    };
    Ok(report_line(leg, &binary.target, start, result))
}

/// Builds the conformance runner with assertions; returns its path.
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

/// Seconds for a case of a recorded suite: guarded memory is slow, and the machine may be busy.
const CASE_SECONDS: &str = "100";

/// Runs a recorded suite. Differences do not fail the leg; a case whose process panics, dies or does not answer does.
fn suite_line(conform: &Path, suite: &Path, leg: &str, variables: &[(&str, &str)]) -> anyhow::Result<Line> {
    let start = Instant::now();
    let output = Command::new(conform)
        .arg(suite)
        .args(["--limit", CASE_SECONDS])
        .envs(variables.iter().copied())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result = match output.status.success() {
        true => outcome_of_suite(&text),
        false => Err(format!("{}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr))),
    };
    let name = suite.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    Ok(report_line(leg, &name, start, result))
}

/// Column of the number of cases that panicked in the runner's summary of a suite.
const PANICKED: usize = 5;

/// Returns the summary of a suite, the last line of the runner's output; an error with the whole output if cases panicked.
fn outcome_of_suite(output: &str) -> Result<String, String> {
    let last = output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("").trim();
    match last.split_whitespace().nth(PANICKED).map(str::parse::<u64>) {
        Some(Ok(0)) => Ok(last.to_owned()),
        _ => Err(format!("{last}\n{output}")),
    }
}

fn report_line(leg: &str, what: &str, start: Instant, result: Result<String, String>) -> Line {
    let line =
        Line { leg: leg.to_owned(), what: what.to_owned(), seconds: start.elapsed().as_secs_f64(), result };
    println!("{}", line.render());
    if let Err(text) = &line.result {
        println!("{text}");
    }
    line
}

impl Line {
    fn render(&self) -> String {
        let (mark, text) = match &self.result {
            Ok(text) => ("ok    ", text.as_str()),
            Err(text) => ("FAILED", text.lines().next().unwrap_or("")),
        };
        format!("{mark} {:20} {:16} {:7.1} s  {text}", self.leg, self.what, self.seconds)
    }
}

/// Prints the table; returns an error if a run failed.
fn finish(lines: &[Line]) -> anyhow::Result<()> {
    println!("\n== legs");
    lines.iter().for_each(|line| println!("{}", line.render()));
    let failed = lines.iter().filter(|line| line.result.is_err()).count();
    anyhow::ensure!(failed == 0, "{failed} of {} runs failed", lines.len());
    Ok(())
}

/// Runs the tests under AddressSanitizer; skipped with a note if there is no nightly compiler.
fn address(args: &[String]) -> anyhow::Result<Line> {
    let start = Instant::now();
    if !is_installed(&mut nightly("cargo")) {
        let text = "skipped: needs a nightly compiler (`rustup toolchain install nightly`)";
        return Ok(report_line("address", "all", start, Ok(text.to_owned())));
    }
    let host = host()?;
    let mut wrong = Vec::new();
    for (package, tests) in TESTS {
        let mut command = nightly("cargo");
        command.args(["test", "--package", package]).args(*tests).args(["--target", &host]).args(args);
        command
            .env("RUSTFLAGS", "-Zsanitizer=address")
            // The shadow of the address space takes terabytes of it.
            .env("FLAMBEAU_WORKER_KIB", "unlimited")
            .env("CARGO_TARGET_DIR", root().join("target/sanitize"));
        if let Err(error) = run_command(&mut command) {
            wrong.push(format!("{error:#}"));
        }
    }
    let result = if wrong.is_empty() { Ok("no report".to_owned()) } else { Err(wrong.join("\n")) };
    Ok(report_line("address", "all", start, result))
}

/// Returns a command for a program of the nightly toolchain.
fn nightly(program: &str) -> Command {
    let mut command = Command::new("rustup");
    // The environment of this process selects another toolchain.
    command
        .args(["run", "nightly", program])
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env_remove("RUSTUP_TOOLCHAIN");
    command.current_dir(root());
    command
}

/// Returns the compiler's default target.
fn host() -> anyhow::Result<String> {
    let output = nightly("rustc").arg("-vV").output().context("cannot start `rustc`")?;
    let text = String::from_utf8(output.stdout).context("the output of `rustc -vV` is not text")?;
    let line = text.lines().find_map(|l| l.strip_prefix("host: "));
    line.map(str::to_owned).context("the output of `rustc -vV` has no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_that_panic_fail_a_suite() {
        let table = |panicked: &str| {
            format!(
                "suite cases passed failed unsupported panicked\nsizes 1558 1557 1 0 {panicked}   (a note)\n"
            )
        };
        assert_eq!(outcome_of_suite(&table("0")), Ok("sizes 1558 1557 1 0 0   (a note)".to_owned()));
        assert!(outcome_of_suite(&table("1")).is_err_and(|text| text.starts_with("sizes 1558 1557 1 0 1 ")));
        assert!(outcome_of_suite("").is_err());
    }
}
