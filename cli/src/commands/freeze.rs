//! `flambeau freeze`: folds a module's weights and settings into its code.

use crate::output::usage;
use crate::output_file::FileFormat;
use crate::program::with_files;
use crate::setup::Setup;
use anyhow::Result;
use flambeau::Fault;
use std::path::PathBuf;

/// Arguments of `freeze`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A `.pt` archive.
    input: PathBuf,
    /// The archive to write (`.pt`, `.pth`, `.bin` or `.zip`); replaced atomically.
    output: PathBuf,
    /// Methods and attributes to keep in addition to `forward`.
    #[arg(long, value_delimiter = ',')]
    preserve: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    FileFormat::of(&args.output, &[FileFormat::Archive])?;
    let session = with_files(&setup.session()?, false);
    let program = session.load_archive(&args.input)?;
    if let Some(module) = program.module() {
        module.eval();
    }
    let preserve: Vec<&str> = args.preserve.iter().map(String::as_str).collect();
    let frozen = program.freeze(&preserve).map_err(|error| match error.fault {
        // A name that the module does not have.
        Fault::Misuse => usage(error),
        _ => error.into(),
    })?;
    frozen.save(&args.output)?;
    Ok(())
}
