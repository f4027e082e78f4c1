//! The checks that a change must pass:
//!
//! - the format (with a warning where rustfmt is not installed), tidy and layers;
//! - all tests and examples of the workspace;
//! - the tests of the library without features, and `cargo check` of it with each feature alone;
//! - the tests of tensors and kernels in guarded memory;
//! - the tests of the Python package, where Python and its tools are installed.
//!
//! All tests are built and run by one `cargo test`, which shares every dependency between them: on two cores and
//! a fresh clone the time goes into compiling.

use std::process::Command;

use crate::process::{Steps, cargo, is_installed, run as run_command, run_watched};

/// `cargo xtask test [ARGS]`: further arguments go to `cargo test`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let mut all = Steps::new();
    steps(&mut all, args);
    all.finish()
}

/// The steps, for `ci` to build on.
pub(crate) fn steps(steps: &mut Steps, args: &[String]) {
    steps.step("format", || {
        if !is_installed(&mut cargo(&["fmt"])) {
            eprintln!("warning: rustfmt is not installed: the format is NOT CHECKED (`rustup component add rustfmt`)");
            return Ok("NOT CHECKED: rustfmt is not installed".to_string());
        }
        run_command(&mut cargo(&["fmt", "--all", "--check"]))?;
        run_command(&mut cargo(&["fmt", "--manifest-path", "python/Cargo.toml", "--check"]))?;
        Ok(String::new())
    });
    steps.step("tidy", || crate::tidy::run(&[]).map(|()| String::new()));
    steps.step("layers", || crate::layers::run(&[]).map(|()| String::new()));
    steps.step("tests", || {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
        command.args(args);
        let mut count = Count::default();
        let result = run_watched(&mut command, |line| count.see(line));
        result.map(|()| count.to_string()).map_err(|e| anyhow::anyhow!("{e}; {count}"))
    });
    steps.step("examples", examples);
    steps.step("features", features);
    steps.step("guarded", crate::sanitize::short);
    steps.step("python", crate::python::step);
}

/// The examples of README that end quickly. Each has to succeed and to print.
const EXAMPLES: [&str; 7] =
    ["embed", "own_pass", "own_rule", "gradients", "exported", "train_exported", "fuzz_my_pass"];

/// Runs the examples, which `cargo test` has built.
fn examples() -> anyhow::Result<String> {
    let built = crate::binaries::examples()?;
    for name in EXAMPLES {
        let path = built.iter().find(|(built, _)| built == name).map(|(_, path)| path);
        let path = path.ok_or_else(|| anyhow::anyhow!("there is no example `{name}`"))?;
        let output = Command::new(path).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "example `{name}` failed ({}):\n{errors}", output.status);
        anyhow::ensure!(!output.stdout.is_empty(), "example `{name}` prints nothing");
    }
    Ok(format!("{} ran", EXAMPLES.join(", ")))
}

/// The optional features of the library.
const FEATURES: [&str; 4] = ["archive", "egraph", "export", "kernels"];

/// The library without features passes the tests that need none, and compiles with each of them alone.
fn features() -> anyhow::Result<String> {
    let mut count = Count::default();
    let reduced =
        ["test", "-p", "flambeau", "--no-default-features", "--test", "reduced", "--example", "own_pass"];
    run_watched(&mut cargo(&reduced), |line| count.see(line))?;
    for feature in FEATURES {
        run_command(&mut cargo(&[
            "check",
            "-p",
            "flambeau",
            "--no-default-features",
            "--features",
            feature,
        ]))?;
    }
    Ok(format!("{count} without features; compiles with each of {}", FEATURES.join(", ")))
}

/// Sums of the lines `test result: …` that the test harness prints.
#[derive(Default)]
struct Count {
    binaries: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Count {
    fn see(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        self.binaries += 1;
        for part in result.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} ignored in {} binaries",
            self.passed, self.failed, self.ignored, self.binaries
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_summed() {
        let mut count = Count::default();
        count.see(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.52s\n",
        );
        count.see("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n");
        count.see("running 3 tests\n");
        assert_eq!(count.to_string(), "5 passed, 1 failed, 1 ignored in 2 binaries");
    }
}
