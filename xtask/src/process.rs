//! Child processes, and steps with a summary of results and times.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::workspace::root;

/// Returns a command for `cargo` with `args`, to run at the workspace root.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Runs a command to completion with inherited input and output.
///
/// # Errors
/// Returns an error if the command cannot be started or fails.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    anyhow::ensure!(status.success(), "`{shown}` failed ({status})");
    Ok(())
}

/// Runs a command, copies its standard output line by line, and passes each line to `see`.
///
/// # Errors
/// Returns an error if the command cannot be started or fails.
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

/// Returns whether all crates that the lock file beside a manifest names are here or can be downloaded.
pub(crate) fn can_fetch(manifest: &str) -> bool {
    let mut command = cargo(&["fetch", "--quiet", "--locked", "--manifest-path", manifest]);
    command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns whether a program can be run with `--version`.
pub(crate) fn is_installed(command: &mut Command) -> bool {
    let quiet = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|s| s.success())
}

/// Runs the workspace's binary `bin` of `package`, built with `profile`, with `args`. If the binary fails, this process
/// exits with its exit code.
///
/// # Errors
/// Returns an error if cargo cannot be started.
pub(crate) fn run_binary(package: &str, bin: &str, profile: &str, args: &[String]) -> anyhow::Result<()> {
    let manifest = root().join("Cargo.toml").to_string_lossy().into_owned();
    let mut command = cargo(&["run", "--quiet", "--manifest-path", &manifest]);
    command.args(["--package", package, "--bin", bin, "--profile", profile, "--"]);
    // Relative paths among the arguments refer to the user's current folder.
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

/// A sequence of steps with times and results.
pub(crate) struct Steps {
    start: Instant,
    done: Vec<(String, Duration, Result<String, anyhow::Error>)>,
}

impl Steps {
    /// Creates an empty sequence and starts the clock.
    pub(crate) fn new() -> Steps {
        Steps { start: Instant::now(), done: Vec::new() }
    }

    /// Runs a step and stores its result. A failure does not stop the following steps.
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
    /// Returns an error if any step failed.
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
