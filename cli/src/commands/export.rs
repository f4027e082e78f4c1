//! `flambeau export`: makes an exported program of a function or module, by a run on example arguments.

use crate::commands::convert::{decomposed, exported, version_named};
use crate::exported::{ExportedForm, print};
use crate::inputs::InputArgs;
use crate::output_file::FileFormat;
use crate::program::{ProgramArgs, with_files};
use crate::setup::Setup;
use anyhow::Result;
use flambeau::ir::text::PrintOptions;
use std::path::PathBuf;

/// Arguments of `export`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// The `.pt2` file to write, replaced atomically; by default the program is printed as PyTorch prints it.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Example arguments.
    #[command(flatten)]
    examples: InputArgs,
    /// A size that may vary, as INPUT:DIM=NAME:MIN..MAX, such as `x:0=batch:1..64`. Sizes of one name are equal; either
    /// bound may be left out. An element of a container is named by its path: `d_k`, `t_0`.
    #[arg(long, value_name = "SIZE")]
    dynamic: Vec<String>,
    /// Keep operators that write, as `torch.export.export` does, instead of outputs for new contents.
    #[arg(long, conflicts_with = "decompose")]
    in_place: bool,
    /// Decompose operators, to those of `core-aten`.
    #[arg(long, value_name = "TABLE")]
    decompose: Option<String>,
    /// The version of PyTorch that reads the file, `2.6`, `2.8`, `2.9` or `2.15` [default: 2.15]. Older versions do not read
    /// files of newer ones.
    #[arg(long = "for", value_name = "VERSION", requires = "output")]
    version: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let version = args.version.as_deref().map(version_named).transpose()?.unwrap_or_default();
    if let Some(path) = &args.output {
        FileFormat::of(path, &[FileFormat::Exported])?;
    }
    let session = with_files(&setup.session()?, args.program.copy);
    let program = args.program.load(&session)?;
    let entry = args.program.pick(&program)?;
    let exported = exported(&entry, &args.examples, &args.dynamic, args.in_place)?;
    let exported = decomposed(&session, exported, args.decompose.as_deref())?;
    match &args.output {
        Some(path) => Ok(exported.save(path, version)?),
        None => print(exported.model().clone(), ExportedForm::Program, &session, PrintOptions::default()),
    }
}
