//! The protocol of the pool of threads under a model checker, which tries every order of its steps.
//!
//! `cfg(loom)` changes every crate that knows it, so all is built in a folder of its own (`target/loom`).

use crate::process::{cargo, run as run_command};
use crate::workspace::root;

/// `cargo xtask loom`: the models of `tensor/tests/loom.rs`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let mut command = cargo(&["test", "--package", "flambeau-tensor", "--test", "loom"]);
    command.args(args);
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", root().join("target/loom"));
    run_command(&mut command)
}
