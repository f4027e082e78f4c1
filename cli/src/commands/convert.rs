//! `flambeau convert`: a module or its tensors from one file to another, in the form the other's name asks for.

use crate::program::ProgramArgs;
use anyhow::Result;
use flambeau::archive::{LoadOptions, replace_file, save_safetensors, save_state_dict};
use flambeau::{Error, Session};
use std::path::PathBuf;

/// Arguments of `convert`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A `.pt` archive, a state dict of `torch.save`, or a `.safetensors` file; functions of `.py` source or `.ir` text
    /// become methods of a module that holds nothing, a single one its `forward`.
    input: PathBuf,
    /// What to write: `.safetensors` for tensors, anything else for an archive; replaced in one step.
    output: PathBuf,
    /// Write the tensors alone, as the state dict that `torch.load` reads.
    #[arg(long)]
    state_dict: bool,
    /// Of source with several functions, the one that becomes `forward`; otherwise all keep their names.
    #[arg(long, short)]
    entry: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut options = LoadOptions::default();
    options.extra_files = true;
    options.map = true;
    let session = Session::builder().standard().load_options(options).build()?;
    let limits = flambeau::archive::Limits::default();
    if args.output.extension().is_some_and(|e| e == "safetensors") {
        let weights = session.load_weights(&args.input)?;
        return Ok(replace_file(&args.output, |out| save_safetensors(&weights, out)).map_err(Error::from)?);
    }
    if args.input.extension().is_some_and(|e| e == "py" || e == "ir") {
        return convert_functions(&session, args);
    }
    let has_code = flambeau::archive::has_code_file(&args.input, &limits).map_err(Error::from)?;
    if has_code && !args.state_dict {
        session.load_archive(&args.input)?.save(&args.output)?;
        return Ok(());
    }
    let weights = session.load_weights(&args.input)?;
    Ok(replace_file(&args.output, |out| save_state_dict(&weights, out)).map_err(Error::from)?)
}

/// Functions to a module's archive.
fn convert_functions(session: &Session, args: &Args) -> Result<()> {
    let file = args.input.to_string_lossy().into_owned();
    let program = ProgramArgs { file, entry: args.entry.clone(), copy: false }.load(session)?;
    let entries = program.entries();
    let methods: Vec<(&str, &str)> = match (&args.entry, entries.as_slice()) {
        (Some(only), _) | (None, [only]) => vec![(only, "forward")],
        _ => entries.iter().map(|name| (name.as_str(), name.as_str())).collect(),
    };
    Ok(program.to_module(&methods)?.save(&args.output)?)
}
