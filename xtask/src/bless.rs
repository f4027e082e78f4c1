//! Writes what the file tests got into the files as what they expect. Read the difference before committing it.

use crate::process::{cargo, run as run_command};

/// `cargo xtask bless [FILTER]`: only files whose path holds FILTER.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let mut command = cargo(&["test", "--package", "flambeau-tests", "--test", "filetests"]);
    command.env("FLAMBEAU_BLESS", "1");
    if let Some(filter) = args.first() {
        command.env("FLAMBEAU_FILTER", filter);
    }
    run_command(&mut command)
}
