//! `flambeau info`: shows the contents of a file, the operators that it uses, and which of them are missing.

use crate::output;
use crate::program::with_files;
use crate::report::{ExportedReport, report};
use crate::setup::Setup;
use anyhow::Result;
use flambeau::Error;
use flambeau::export::is_exported_file;
use std::path::PathBuf;

/// Arguments of `info`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A `.pt` archive, an exported program (`.pt2`), a state dict of `torch.save`, or a `.safetensors` file.
    file: PathBuf,
    /// Write JSON.
    #[arg(long)]
    json: bool,
    /// Show all modules, attributes, methods and operators.
    #[arg(long)]
    all: bool,
    /// Show only the state dict: names, types and sizes of parameters and buffers.
    #[arg(long)]
    state_dict: bool,
    /// Read all tensors and verify all checksums, not only those of the first 16 MB.
    #[arg(long)]
    copy: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let session = with_files(&setup.session()?, args.copy);
    let options = session.read_options();
    let is_exported = is_exported_file(&args.file, &options.archive).map_err(Error::from)?;
    if args.state_dict {
        let weights = match is_exported {
            true => session.load_exported(&args.file)?.state_dict(),
            false => session.load_weights(&args.file)?,
        };
        for (name, tensor) in weights {
            output::line(format_args!("{name}: {}{:?}", tensor.dtype().name(), tensor.sizes()))?;
        }
        return Ok(());
    }
    if is_exported {
        let report = ExportedReport::gather(&session, &args.file, &options)?;
        if args.json {
            output::line(report.json())?;
        } else {
            output::text(report.text(args.all))?;
        }
        return Ok(());
    }
    let report = report(&session, &args.file)?;
    if args.json {
        output::line(report.json())?;
        return Ok(());
    }
    output::text(report.text(args.all))?;
    if report.has_missing() {
        output::line("register the missing operators: `Session::builder().standard().ops([OpDef::…])`")?;
    }
    Ok(())
}
