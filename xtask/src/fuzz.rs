//! Searches for wrong rewrites: builds and starts the fuzzer of `fuzz/`.
//!
//! Plain Rust, no instrumentation; `fuzz/targets` holds the libFuzzer targets.

use crate::process::hand_over;

/// `cargo xtask fuzz`: all arguments are passed through.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    hand_over("flambeau-fuzz", "fuzz", "release", args)
}
