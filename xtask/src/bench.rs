//! Prints the figures: builds and starts the measuring program of `tests/`.
//!
//! It is built with the profile `bench`, so that figures are always taken alike.

use crate::process::hand_over;

/// `cargo xtask bench`: all arguments are passed through.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    hand_over("flambeau-tests", "bench", "bench", args)
}
