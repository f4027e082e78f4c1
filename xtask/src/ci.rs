//! The subcommand `ci`: all steps of `test`, then `cargo check` of the libFuzzer targets, where their dependencies can be
//! fetched, and clippy and rustdoc with warnings as errors.

use crate::process::{Steps, cargo, run as run_command};

/// `cargo xtask ci`.
pub(crate) fn run(_args: &[String]) -> anyhow::Result<()> {
    let mut steps = Steps::new();
    crate::test::steps(&mut steps, &[]);
    steps.step("fuzz targets", crate::fuzz::check_targets);
    steps.step("clippy", || {
        run_command(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
        Ok("no warning".to_string())
    });
    steps.step("doc", || {
        let mut command = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"]);
        run_command(command.env("RUSTDOCFLAGS", "-D warnings"))?;
        Ok("no warning".to_string())
    });
    steps.finish()
}
