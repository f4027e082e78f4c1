//! `flambeau shapes`: shows the inferred type of every value.

use crate::input_types::InputTypeArgs;
use crate::output;
use crate::program::ProgramArgs;
use crate::setup::Setup;
use anyhow::Result;
use flambeau::analysis::Analyses;
use flambeau::analysis::shape::Shapes;

/// Arguments of `shapes`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    inputs: InputTypeArgs,
    /// Write the type of every value as JSON, with all inferred properties.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let session = setup.session()?;
    let entry = args.program.entry(&session)?;
    let mut graph = (**entry.graph()).clone();
    args.inputs.apply(&entry, &mut graph)?;
    let graph = &graph;
    let mut analyses = Analyses::new();
    let shapes = analyses.get::<Shapes>(graph);
    if args.json {
        let one = |v| (graph.name(v).to_string(), shapes.refined_type(graph, v).to_string().into());
        let types: serde_json::Map<_, _> = graph.values_in_order().map(one).collect();
        output::line(serde_json::Value::Object(types))?;
    } else {
        output::text(shapes.report(graph))?;
    }
    Ok(())
}
