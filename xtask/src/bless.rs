//! The subcommand `bless`: updates the expected output in the files of the file tests.
//!
//! It runs the file tests and writes the actual output into the files. Review the diff before committing it.

use crate::process::{cargo, run as run_command};

/// `cargo xtask bless [FILTER]`: only files whose path contains FILTER.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let mut command = cargo(&["test", "--package", "flambeau-tests", "--test", "filetests"]);
    command.env("FLAMBEAU_BLESS", "1");
    if let Some(filter) = args.first() {
        command.env("FLAMBEAU_FILTER", filter);
    }
    run_command(&mut command)
}
