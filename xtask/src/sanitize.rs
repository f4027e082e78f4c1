//! The operator samples, the loops and the machine under AddressSanitizer, which only nightly compilers have.
//!
//! Everything is built for the host as if for another target, so that build scripts and macros stay as they are, in a
//! folder of its own (`target/sanitize`, two gigabytes).

use crate::process::{is_installed, run as run_command};
use crate::workspace::root;
use anyhow::Context;
use std::process::Command;

/// Packages and which of their tests: what reaches memory by pointers, driven by every operator's samples; loops of
/// several threads; the machine's slots, by tests of its own and by file tests of whole programs, each of which it runs.
const TESTS: &[(&str, &[&str])] = &[
    ("flambeau-ops", &["--test", "complete"]),
    ("flambeau-tensor", &["--lib", "--test", "loops", "--test", "threads", "--test", "in_place"]),
    ("flambeau-exec", &["--lib", "--test", "machine"]),
    ("flambeau", &["--test", "threads"]),
    ("flambeau-tests", &["--test", "filetests"]),
];

/// `cargo xtask sanitize`: does nothing, and says so, where there is no nightly compiler.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    if !is_installed(&mut nightly("cargo")) {
        println!("skipped: AddressSanitizer needs a nightly compiler (`rustup toolchain install nightly`)");
        return Ok(());
    }
    let host = host()?;
    for (package, tests) in TESTS {
        let mut command = nightly("cargo");
        command.args(["test", "--package", package]).args(*tests).args(["--target", &host]).args(args);
        command
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("CARGO_TARGET_DIR", root().join("target/sanitize"));
        run_command(&mut command)?;
    }
    Ok(())
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
