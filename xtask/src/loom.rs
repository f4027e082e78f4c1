//! The subcommand `loom`: runs the model checker on the protocol of the thread pool, which explores every interleaving.
//!
//! `cfg(loom)` changes every crate that uses it, so the build has its own target folder (`target/loom`).

use crate::process::{cargo, run as run_command};
use crate::workspace::root;

/// `cargo xtask loom`: runs the models in `tensor/tests/loom.rs`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let mut command = cargo(&["test", "--package", "flambeau-tensor", "--test", "loom"]);
    command.args(args);
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", root().join("target/loom"));
    run_command(&mut command)
}
