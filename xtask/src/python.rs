//! The Python package: builds the extension into a virtual environment and runs its tests there.
//!
//! `cargo xtask python` makes the environment `target/python-venv` and installs the tools if they are not there, which needs
//! the network once. `cargo xtask test` installs nothing: it uses that environment, or the interpreter of
//! `FLAMBEAU_PYTHON` or `python3` if it has the tools, and otherwise reports that the tests did not run. The extension is a
//! workspace of its own with its own target folder, so neither command rebuilds anything of the other crates' tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::process::{can_fetch, run as run_command};
use crate::workspace::root;

/// Modules that building and testing need.
const TOOLS: [&str; 2] = ["maturin", "pytest"];

/// `cargo xtask python [--release] [ARGS FOR PYTEST]`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let (release, args) = match args.split_first() {
        Some((first, rest)) if first == "--release" => (true, rest),
        _ => (false, args),
    };
    let python = match complete(&own_environment()) {
        Some(python) => python,
        None => make_environment()?,
    };
    build(&python, release)?;
    test(&python, args)
}

/// The step of `cargo xtask test`.
///
/// # Errors
/// Returns an error if the extension does not build or a test fails, not if Python or its tools are absent.
pub(crate) fn step() -> anyhow::Result<String> {
    let Some(python) = find() else {
        return Ok(
            "NOT RUN: no Python 3.10 with maturin and pytest (`cargo xtask python` makes an environment)"
                .into(),
        );
    };
    let manifest = manifest();
    if !can_fetch(&manifest) {
        return Ok("NOT RUN: the crates that the extension needs cannot be fetched".into());
    }
    build(&python, false)?;
    test(&python, &[])?;
    Ok(format!("with {}", python.display()))
}

/// Builds the extension and installs the package.
fn build(python: &Path, release: bool) -> anyhow::Result<()> {
    let manifest = manifest();
    let mut command = Command::new(python);
    command.args(["-m", "maturin", "develop", "--quiet", "--locked", "--manifest-path", &manifest]);
    if release {
        command.arg("--release");
    }
    let environment =
        python.parent().and_then(Path::parent).context("the interpreter is in no environment")?;
    command.env("VIRTUAL_ENV", environment).env("CARGO_TARGET_DIR", root().join("target/python"));
    run_command(&mut command)
}

fn test(python: &Path, args: &[String]) -> anyhow::Result<()> {
    let mut command = Command::new(python);
    command.args(["-m", "pytest"]).args(args).current_dir(root().join("python"));
    run_command(&mut command)
}

fn manifest() -> String {
    root().join("python/Cargo.toml").to_string_lossy().into_owned()
}

fn own_environment() -> PathBuf {
    let folder = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    root().join("target/python-venv").join(folder)
}

/// Returns an interpreter of a virtual environment with the tools.
fn find() -> Option<PathBuf> {
    if let Some(python) = complete(&own_environment()) {
        return Some(python);
    }
    let given = std::env::var_os("FLAMBEAU_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let python = complete(&given)?;
    if succeeds(&python, "import sys; sys.exit(sys.prefix == sys.base_prefix)") {
        return absolute(&python);
    }
    // The extension is not installed into the system: an environment on top of it has the tools as well.
    let folder = root().join("target/python-venv");
    let mut venv = Command::new(&python);
    venv.args(["-m", "venv", "--system-site-packages"])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    venv.status().ok().filter(std::process::ExitStatus::success)?;
    complete(&own_environment())
}

/// Returns the interpreter if it runs, is recent enough and has the tools.
fn complete(python: &Path) -> Option<PathBuf> {
    let script = format!("import sys; assert sys.version_info >= (3, 10); import {}", TOOLS.join(", "));
    succeeds(python, &script).then(|| python.to_owned())
}

fn succeeds(python: &Path, script: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the path of a running interpreter.
fn absolute(python: &Path) -> Option<PathBuf> {
    let output = Command::new(python).args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(text.trim()))
}

fn make_environment() -> anyhow::Result<PathBuf> {
    let base = std::env::var_os("FLAMBEAU_PYTHON").unwrap_or_else(|| "python3".into());
    let folder = root().join("target/python-venv");
    run_command(Command::new(base).args(["-m", "venv"]).arg(&folder))?;
    let python = own_environment();
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "numpy", "mypy"]).args(TOOLS);
    run_command(&mut install)?;
    complete(&python).context("the environment has no Python 3.10 with maturin and pytest")
}
