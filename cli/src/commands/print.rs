//! `flambeau print`: a program in one of its forms.

use crate::program::ProgramArgs;
use anstream::print;
use anyhow::Result;
use flambeau::Session;
use flambeau::ir::text::PrintOptions;

/// Arguments of `print`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// The form.
    #[arg(long = "as", value_enum, default_value_t = Form::Graph)]
    form: Form,
    /// Append source locations to nodes.
    #[arg(long)]
    locations: bool,
    /// Write tensors out instead of abbreviating them, so that the text reads back as the same program.
    #[arg(long)]
    exact: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Form {
    /// The graph, as TorchScript prints it.
    Graph,
    /// TorchScript source.
    Code,
    /// Instructions of the machine.
    Bytecode,
    /// Graphviz.
    Dot,
    /// Counts of nodes by operator.
    Stats,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let session = Session::standard()?;
    let entry = args.program.entry(&session)?;
    let graph = entry.graph();
    match args.form {
        Form::Graph => {
            let options = PrintOptions { locations: args.locations, exact: args.exact };
            print!("{}", graph.to_text(options));
        }
        Form::Code => print!("{}", entry.code()?),
        Form::Bytecode => print!("{}", entry.bytecode()?),
        Form::Dot => print!("{}", graph.to_dot()),
        Form::Stats => {
            let stats = graph.statistics();
            anstream::println!(
                "{} nodes, {} values, {} blocks, depth {}",
                stats.nodes,
                stats.values,
                stats.blocks,
                stats.depth
            );
            for (name, count) in &stats.operators {
                anstream::println!("{count:>8} {name}");
            }
        }
    }
    Ok(())
}
