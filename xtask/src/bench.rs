//! Prints the figures: builds and starts the measuring program of `tests/`.
//!
//! It is built with the profile `dist`, so that figures are those of what is shipped.

use crate::process::{cargo, hand_over, run as run_command};

/// `cargo xtask bench`: all arguments are passed through. The command is built too, for its size.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    run_command(&mut cargo(&["build", "--quiet", "--profile", "dist", "--package", "flambeau-cli"]))?;
    hand_over("flambeau-tests", "bench", "dist", args)
}
