//! `flambeau shapes`: what is known about the type of every value.

use crate::program::ProgramArgs;
use anstream::print;
use anyhow::Result;
use flambeau::Session;
use flambeau::analysis::Analyses;
use flambeau::analysis::shape::Shapes;

/// Arguments of `shapes`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let session = Session::standard()?;
    let entry = args.program.entry(&session)?;
    let graph = entry.graph();
    let mut analyses = Analyses::new();
    print!("{}", analyses.get::<Shapes>(graph).report(graph));
    Ok(())
}
