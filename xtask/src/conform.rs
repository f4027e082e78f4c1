//! Replays recorded behaviour of PyTorch: builds and starts the conformance runner of `tests/`.
//!
//! It runs in release mode: the suites hold tens of thousands of cases.

use crate::process::hand_over;

/// `cargo xtask conform`: all arguments are passed through.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    hand_over("flambeau-tests", "conform", "release", args)
}
