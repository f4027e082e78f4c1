//! `flambeau alias`: what may share memory with what, and who writes where.

use crate::program::ProgramArgs;
use anstream::print;
use anyhow::Result;
use flambeau::Session;
use flambeau::analysis::{AliasDb, Analyses};

/// Arguments of `alias`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// Write the memory graph in Graphviz's language.
    #[arg(long)]
    dot: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let session = Session::standard()?;
    let entry = args.program.entry(&session)?;
    let graph = entry.graph();
    let mut analyses = Analyses::new();
    let alias = analyses.get::<AliasDb>(graph);
    if args.dot {
        print!("{}", alias.to_dot(graph));
    } else {
        print!("{graph}\n{}", alias.dump(graph));
    }
    Ok(())
}
