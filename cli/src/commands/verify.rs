//! `flambeau verify`: checks a program, or one of its entries, and shows its errors.

use crate::exported;
use crate::output;
use crate::program::ProgramArgs;
use crate::report::counted;
use crate::setup::Setup;
use anyhow::Result;
use flambeau::ir::verify::verify_with;

/// Arguments of `verify`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// Write the result, and errors, as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let session = setup.session()?;
    if let Some(model) = exported::model(&args.program, &session, true)? {
        let nodes = exported::verify(&model, &session)?;
        if args.json {
            output::line(serde_json::json!({"entries": ["forward"], "nodes": nodes, "errors": []}))?;
        } else {
            output::line(format_args!(
                "{}: exported program, {}, valid",
                args.program.file,
                counted(nodes, "node")
            ))?;
        }
        return Ok(());
    }
    let program = args.program.load(&session)?;
    let unit = program.unit();
    let mut nodes = 0;
    let names = match &args.program.entry {
        Some(name) => vec![name.clone()],
        None => program.entries(),
    };
    for name in &names {
        let entry = match args.program.entry {
            Some(_) => args.program.pick(&program)?,
            None => program.entry(name)?,
        };
        verify_with(entry.graph(), &**unit).map_err(flambeau::Error::from)?;
        nodes += entry.graph().node_count();
    }
    if args.json {
        output::line(serde_json::json!({"entries": names, "nodes": nodes, "errors": []}))?;
        return Ok(());
    }
    let entries = if names.len() == 1 { "entry" } else { "entries" };
    let (file, nodes) = (&args.program.file, counted(nodes, "node"));
    output::line(format_args!("{file}: {} {entries}, {nodes}, valid", names.len()))?;
    Ok(())
}
