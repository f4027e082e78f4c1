//! `flambeau print`: prints a program in one of its forms.

use crate::exported;
use crate::inputs::InputArgs;
use crate::output::{self, command_line_error, graph_text, unknown};
use crate::plans::{self, Specialized};
use crate::program::ProgramArgs;
use crate::setup::Setup;
use anyhow::{Context, Result};
use flambeau::frontend::ssa::SsaStage;
use flambeau::ir::text::PrintOptions;
use flambeau::{Graph, Session};

/// Arguments of `print`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    inputs: InputArgs,
    /// The form to print; the default is `graph`, and `program` for exported programs.
    #[arg(long = "as", value_enum)]
    form: Option<PrintForm>,
    /// For source: print the graphs after a stage of compilation.
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    /// Append source locations to nodes.
    #[arg(long)]
    locations: bool,
    /// Write tensors in full, so that the text reads back as the same program.
    #[arg(long)]
    exact: bool,
    /// Write errors as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PrintForm {
    /// The graph, in PyTorch's format.
    Graph,
    /// For exported programs: the graph as Python source, with signature and ranges.
    Program,
    /// The graph that runs: for exported programs, after lowering.
    Ir,
    /// TorchScript source.
    Code,
    /// Bytecode of the machine.
    Bytecode,
    /// The DOT language of Graphviz.
    Dot,
    /// Numbers of nodes by operator.
    Stats,
    /// The graph with profiling nodes, after calls on the given inputs.
    Profiled,
    /// The graph that is specialized to the given inputs.
    Optimized,
    /// The guards of the specialized graph, each with the rest of the program that runs if it fails.
    Bailouts,
    /// The differentiated graph with respect to all tensor inputs: forward with what it keeps, and backward.
    Gradient,
}

impl PrintForm {
    /// Returns the form of a specialized program, if it is one.
    fn specialized(self) -> Option<Specialized> {
        match self {
            PrintForm::Profiled => Some(Specialized::Profiled),
            PrintForm::Optimized => Some(Specialized::Optimized),
            PrintForm::Bailouts => Some(Specialized::Bailouts),
            _ => None,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let options = PrintOptions { locations: args.locations, exact: args.exact, ..setup.print };
    let session = setup.session()?;
    if let Some(model) = exported::model(&args.program, &session, args.form == Some(PrintForm::Ir))? {
        let form = match args.form {
            None | Some(PrintForm::Program) => exported::ExportedForm::Program,
            Some(PrintForm::Graph) => exported::ExportedForm::Graph,
            Some(PrintForm::Ir) => exported::ExportedForm::Ir,
            Some(PrintForm::Dot) => exported::ExportedForm::Dot,
            Some(_) => {
                return Err(command_line_error(
                    "an exported program is printed as `program`, `graph`, `ir` or `dot`",
                ));
            }
        };
        return exported::print(model, form, &session, options);
    }
    let form = args.form.unwrap_or(PrintForm::Graph);
    if let Some(form) = form.specialized() {
        output::text(plans::text(form, &args.program, &args.inputs, &session, options)?)?;
        return Ok(());
    }
    if let Some(stage) = &args.stage {
        return stages(args, &session, stage);
    }
    let entry = args.program.entry(&session)?;
    let graph = entry.graph();
    match form {
        PrintForm::Program => {
            return Err(command_line_error("only exported programs are printed as `program`"));
        }
        PrintForm::Graph | PrintForm::Ir => output::text(graph_text(graph, options)?)?,
        PrintForm::Code => output::text(entry.code()?)?,
        PrintForm::Bytecode => output::text(entry.bytecode()?)?,
        PrintForm::Dot => output::text(graph.to_dot())?,
        PrintForm::Gradient => {
            let inlined = entry.optimized("inline")?;
            let tensors = tensor_inputs(&inlined);
            anyhow::ensure!(!tensors.is_empty(), "no input is a tensor that could have a gradient");
            let gradient = session.differentiate(&inlined, &tensors)?;
            for part in [&gradient.forward, &gradient.backward] {
                output::text(graph_text(part, options)?)?;
            }
        }
        PrintForm::Profiled | PrintForm::Optimized | PrintForm::Bailouts => {}
        PrintForm::Stats => {
            let stats = graph.statistics();
            output::line(format_args!(
                "{} nodes, {} values, {} blocks, depth {}",
                stats.nodes, stats.values, stats.blocks, stats.depth
            ))?;
            for (name, count) in &stats.operators {
                output::line(format_args!("{count:>8} {name}"))?;
            }
        }
    }
    Ok(())
}

/// Returns the indices of the inputs whose types are those of tensors.
pub(crate) fn tensor_inputs(graph: &Graph) -> Vec<usize> {
    let tensors = graph.inputs().enumerate().filter(|(_, v)| graph.ty(*v).is_tensor());
    tensors.map(|(index, _)| index).collect()
}

/// Prints the graphs of a source after one stage of compilation.
fn stages(args: &Args, session: &Session, name: &str) -> Result<()> {
    let Some(stage) = SsaStage::ALL.into_iter().find(|s| s.name() == name) else {
        let names: Vec<&str> = SsaStage::ALL.iter().map(|s| s.name()).collect();
        return Err(unknown("stage", name, &names));
    };
    let text = String::from_utf8(args.program.bytes()?)
        .context("`--stage` requires TorchScript source, but the file is not UTF-8 text")?;
    for done in session.compile_stages(&text, &args.program.file)? {
        let is_wanted = args.program.entry.as_deref().is_none_or(|entry| done.function == *entry);
        if done.stage == stage && is_wanted {
            output::text(format_args!("def {}\n{}", done.function, done.text))?;
        }
    }
    Ok(())
}
