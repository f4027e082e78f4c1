//! `flambeau bench-ir`: times the steps of the compiler on a program: reading, printing, verifying, copying and
//! differentiating the graph, every analysis, every registered pass.

use crate::commands::print::tensor_inputs;
use crate::output;
use crate::program::{ProgramArgs, pipeline};
use crate::setup::Setup;
use anyhow::{Context, Result};
use flambeau::analysis::{AliasDb, STANDARD};
use flambeau::ir::text::PrintOptions;
use flambeau::ir::{CompilationUnit, Graph, verify::verify};
use flambeau::rewrite::manager::Manager;
use flambeau::{Error, Session};
use std::time::Instant;

/// Arguments of `bench-ir`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// Passes to time, each on a fresh copy of the graph; the default is all registered passes.
    #[arg(long, short, value_delimiter = ',')]
    passes: Vec<String>,
    /// Number of repetitions of each step, of which the fastest counts.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// Durations of steps in nanoseconds, by name, in order of execution.
type StepTimes = Vec<(String, u64)>;

/// Returns the fastest of several runs, in nanoseconds, and the last result. Preparation is not timed.
fn fastest<P, R>(
    repeat: usize,
    mut prepare: impl FnMut() -> P,
    mut run: impl FnMut(P) -> Result<R>,
) -> Result<(u64, R)> {
    let mut best: Option<(u64, R)> = None;
    for _ in 0..repeat.max(1) {
        let input = prepare();
        let start = Instant::now();
        let result = run(input)?;
        let ns = start.elapsed().as_nanos() as u64;
        best = Some((best.map_or(ns, |(b, _)| b.min(ns)), result));
    }
    best.context("nothing was run")
}

/// Times the steps that every program goes through; returns the times and the graph of the entry.
fn steps(
    args: &Args,
    session: &Session,
) -> Result<(StepTimes, std::sync::Arc<Graph>, std::sync::Arc<CompilationUnit>)> {
    let n = args.repeat;
    let (read, program) = fastest(n, || (), |()| args.program.load(session))?;
    let graph = args.program.pick(&program)?.graph().clone();
    let (print, _) = fastest(n, || (), |()| Ok(graph.to_text(PrintOptions::default())))?;
    let (check, ()) = fastest(n, || (), |()| Ok(verify(&graph).map(|_| ()).map_err(Error::from)?))?;
    let (copy, _) = fastest(n, || (), |()| Ok(Graph::clone(&graph)))?;
    let (alias, _) = fastest(n, || (), |()| Ok(AliasDb::new(&graph)))?;
    let times = [("parse", read), ("print", print), ("verify", check), ("clone", copy), ("alias", alias)];
    let mut times = times.map(|(name, ns)| (name.to_owned(), ns)).to_vec();
    let tensors = tensor_inputs(&graph);
    // Some programs cannot be differentiated as a whole.
    if !tensors.is_empty() && session.differentiate(&graph, &tensors).is_ok() {
        let (ns, _) = fastest(n, || (), |()| Ok(session.differentiate(&graph, &tensors)?))?;
        times.push(("differentiate".to_owned(), ns));
    }
    Ok((times, graph, program.unit().clone()))
}

fn analyses(args: &Args, graph: &Graph) -> Result<StepTimes> {
    let time = |analysis: &flambeau::analysis::StandardAnalysis| {
        let (ns, ()) = fastest(
            args.repeat,
            || (),
            |()| {
                analysis.build(graph);
                Ok(())
            },
        )?;
        Ok((analysis.name.to_owned(), ns))
    };
    STANDARD.iter().map(time).collect()
}

fn passes(args: &Args, session: &Session, graph: &Graph, unit: &CompilationUnit) -> Result<StepTimes> {
    let all = || session.passes().passes().map(|entry| entry.name.to_owned()).collect();
    let names = if args.passes.is_empty() { all() } else { args.passes.clone() };
    let time = |name: String| {
        let pipeline = pipeline(session, &name)?;
        let run = |mut copy: Graph| {
            Manager::new().unit(unit).run(&mut copy, &pipeline).map_err(|e| anyhow::anyhow!("{e}"))?;
            Ok(())
        };
        let (ns, ()) = fastest(args.repeat, || graph.clone(), run)?;
        Ok((name, ns))
    };
    names.into_iter().map(time).collect()
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let session = setup.session()?;
    let (steps, graph, unit) = steps(args, &session)?;
    let analyses = analyses(args, &graph)?;
    let passes = passes(args, &session, &graph, &unit)?;
    let nodes = graph.node_count();
    let bytes_per_node = graph.heap_bytes() as f64 / nodes.max(1) as f64;
    if args.json {
        let table = |times: &StepTimes| -> serde_json::Value {
            times.iter().map(|(name, ns)| (name.clone(), serde_json::Value::from(*ns))).collect()
        };
        let mut json = serde_json::json!({
            "nodes": nodes,
            "analyses": table(&analyses),
            "passes": table(&passes),
            "peak_rss_bytes": peak_rss(),
            "heap_bytes_per_node": bytes_per_node,
        });
        for (name, ns) in &steps {
            json[format!("{name}_ns")] = (*ns).into();
        }
        output::line(&json)?;
        return Ok(());
    }
    output::line(format_args!("{nodes} nodes, {bytes_per_node:.0} bytes per node"))?;
    for (title, times) in [("steps", &steps), ("analyses", &analyses), ("passes", &passes)] {
        output::line(format_args!("\n{title:<36} {:>12} {:>16}", "microseconds", "ns a node"))?;
        for (name, ns) in times {
            output::line(format_args!(
                "{name:<36} {:>12.1} {:>16.1}",
                *ns as f64 / 1e3,
                *ns as f64 / nodes.max(1) as f64
            ))?;
        }
    }
    Ok(())
}

/// Returns the peak memory of this process, if the system reports it.
pub(crate) fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}
