//! The subcommand `conform`: replays recorded behaviour of PyTorch.
//!
//! It builds and runs the conformance runner of `tests/`.
//!
//! It runs in release mode, since the suites have tens of thousands of cases.

use crate::process::run_binary;

/// `cargo xtask conform`: passes all arguments through.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    run_binary("flambeau-tests", "conform", "release", args)
}
