//! Starting other programs, and the clock around the steps of a run.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::workspace::root;

/// `cargo` with `args`, run at the root of the workspace.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Runs a command to its end, with our input and output.
///
/// # Errors
/// If it cannot be started or does not succeed.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    anyhow::ensure!(status.success(), "`{shown}` failed ({status})");
    Ok(())
}

/// Runs a command, passing its standard output on line by line, each also given to `see`.
///
/// # Errors
/// If it cannot be started or does not succeed.
pub(crate) fn run_watched(command: &mut Command, mut see: impl FnMut(&str)) -> anyhow::Result<()> {
    let shown = show(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{shown}`"))?;
    let output = child.stdout.take().context("the child has no standard output")?;
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        see(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let status = child.wait()?;
    anyhow::ensure!(status.success(), "`{shown}` failed ({status})");
    Ok(())
}

/// Whether a program answers to `--version`.
pub(crate) fn is_installed(command: &mut Command) -> bool {
    let quiet = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|s| s.success())
}

/// Runs the workspace's binary `bin` of `package`, built with `profile`, handing over `args`; ends as it ends.
///
/// # Errors
/// If it cannot be built or started. Where it runs and fails, this process ends with its exit code.
pub(crate) fn hand_over(package: &str, bin: &str, profile: &str, args: &[String]) -> anyhow::Result<()> {
    let manifest = root().join("Cargo.toml").to_string_lossy().into_owned();
    let mut command = cargo(&["run", "--quiet", "--manifest-path", &manifest]);
    command.args(["--package", package, "--bin", bin, "--profile", profile, "--"]);
    // Paths among the arguments are meant from where the user stands.
    command.args(args).current_dir(std::env::current_dir()?);
    let status = command.status().with_context(|| format!("cannot start `{}`", show(&command)))?;
    if !status.success() {
        std::process::exit(status.code().unwrap_or(1));
    }
    Ok(())
}

fn show(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    if let Some(name) = std::path::Path::new(&text).file_name() {
        text = name.to_string_lossy().into_owned();
    }
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// Steps run one after another, each with its time; the summary prints them all, failed ones too.
pub(crate) struct Steps {
    start: Instant,
    done: Vec<(String, Duration, Result<String, anyhow::Error>)>,
}

impl Steps {
    /// Starts the clock.
    pub(crate) fn new() -> Steps {
        Steps { start: Instant::now(), done: Vec::new() }
    }

    /// Runs one step and keeps what it says about itself. A failure does not stop the next step.
    pub(crate) fn step(&mut self, name: &str, body: impl FnOnce() -> anyhow::Result<String>) {
        println!("\n== {name}");
        let start = Instant::now();
        let result = body();
        if let Err(error) = &result {
            println!("{name}: {error:#}");
        }
        self.done.push((name.to_string(), start.elapsed(), result));
    }

    /// Prints the summary.
    ///
    /// # Errors
    /// If any step failed.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        println!("\n== summary");
        let mut failed = Vec::new();
        for (name, time, result) in &self.done {
            let (mark, text) = match result {
                Ok(text) => ("ok    ", text.clone()),
                Err(error) => ("FAILED", error.to_string()),
            };
            println!("{mark} {name:12} {:8.1} s  {text}", time.as_secs_f64());
            if result.is_err() {
                failed.push(name.as_str());
            }
        }
        println!("       {:12} {:8.1} s", "total", self.start.elapsed().as_secs_f64());
        anyhow::ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
        Ok(())
    }
}
