//! `flambeau alias`: values that may share memory, and the nodes that write it.

use crate::output::{self, graph_text};
use crate::program::ProgramArgs;
use crate::setup::Setup;
use anyhow::Result;
use flambeau::analysis::{AliasDb, Analyses};
use serde_json::json;

/// Arguments of `alias`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// Write the memory graph in the DOT language of Graphviz.
    #[arg(long)]
    dot: bool,
    /// Write the alias facts of each value of a mutable type as JSON.
    #[arg(long, conflicts_with = "dot")]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let options = setup.print;
    let session = setup.session()?;
    let entry = args.program.entry(&session)?;
    let graph = entry.graph();
    let mut analyses = Analyses::new();
    let alias = analyses.get::<AliasDb>(graph);
    if args.dot {
        output::text(alias.to_dot(graph))?;
    } else if args.json {
        let values = graph.values_in_order().filter(|&v| graph.ty(v).is_mutable()).map(|v| {
            json!({
                "value": graph.name(v).to_string(),
                "type": graph.ty(v).to_string(),
                "written": alias.is_written(v),
                "has_writers": alias.has_writers(v),
                "may_be_wildcard": alias.may_be_wildcard(v),
            })
        });
        output::line(serde_json::Value::from_iter(values))?;
    } else {
        output::text(format_args!("{}\n{}", graph_text(graph, options)?, alias.dump(graph)))?;
    }
    Ok(())
}
