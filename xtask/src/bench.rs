//! The subcommand `bench`: builds and runs the benchmark program of `tests/`.
//!
//! The program is built with the profile `dist`, so the figures are those of the released binaries.

use crate::process::{cargo, run as run_command, run_binary};

/// `cargo xtask bench`: passes all arguments through. Builds the command line program too, since the benchmark reports
/// its size.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    run_command(&mut cargo(&["build", "--quiet", "--profile", "dist", "--package", "flambeau-cli"]))?;
    run_binary("flambeau-tests", "bench", "dist", args)
}
