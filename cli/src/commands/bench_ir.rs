//! `flambeau bench-ir`: time the compiler's own steps on a graph.

use crate::program::ProgramArgs;
use anstream::println;
use anyhow::{Context, Result};
use flambeau::analysis::AliasDb;
use flambeau::ir::text::{PrintOptions, parse_graph};
use flambeau::ir::{Graph, Source, verify::verify};
use flambeau::rewrite::manager::Manager;
use flambeau::{Error, Session};
use std::time::Instant;

/// Arguments of `bench-ir`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file of IR text; `-` for standard input.
    file: String,
    /// Passes to time, each on a fresh copy of the graph.
    #[arg(
        long,
        short,
        value_delimiter = ',',
        default_value = "dce,cse,constant_pooling,constant_propagation,canonicalize,inline,lower_simple_tuples"
    )]
    passes: Vec<String>,
    /// Repeat each step and take the fastest.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// The fastest of several runs, in nanoseconds, and the last result. Preparation is not timed.
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

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let session = Session::standard()?;
    let program = ProgramArgs { file: args.file.clone(), entry: None, copy: false };
    let text = String::from_utf8(program.bytes()?).context("the file is not UTF-8")?;
    let source = Source::new(&*args.file, text);
    let parse = || -> Result<Graph> { Ok(parse_graph(&source, session.registry()).map_err(Error::from)?) };
    let (parse_ns, graph) = fastest(args.repeat, || (), |()| parse())?;
    let (print_ns, _) = fastest(args.repeat, || (), |()| Ok(graph.to_text(PrintOptions::default())))?;
    let (verify_ns, ()) =
        fastest(args.repeat, || (), |()| Ok(verify(&graph).map(|_| ()).map_err(Error::from)?))?;
    let (alias_ns, _) = fastest(args.repeat, || (), |()| Ok(AliasDb::new(&graph)))?;
    let mut passes = serde_json::Map::new();
    for name in &args.passes {
        let pipeline = session.pipeline(name)?;
        let (ns, ()) = fastest(
            args.repeat,
            || graph.clone(),
            |mut copy| {
                Manager::new().run(&mut copy, &pipeline).map_err(|e| anyhow::anyhow!("{e}"))?;
                Ok(())
            },
        )?;
        passes.insert(name.clone(), ns.into());
    }
    let nodes = graph.node_count();
    if args.json {
        let json = serde_json::json!({
            "nodes": nodes,
            "parse_ns": parse_ns,
            "print_ns": print_ns,
            "verify_ns": verify_ns,
            "alias_ns": alias_ns,
            "passes": passes,
            "peak_rss_bytes": peak_rss(),
            "heap_bytes_per_node": graph.heap_bytes() as f64 / nodes.max(1) as f64,
        });
        println!("{json}");
        return Ok(());
    }
    let per = |ns: u64| ns as f64 / nodes.max(1) as f64;
    println!("{nodes} nodes, {:.0} bytes a node", graph.heap_bytes() as f64 / nodes.max(1) as f64);
    for (name, ns) in [("parse", parse_ns), ("print", print_ns), ("verify", verify_ns), ("alias", alias_ns)] {
        println!("{name:<24} {:>9.1} ns a node", per(ns));
    }
    for (name, ns) in &passes {
        println!("{name:<24} {:>9.1} ns a node", per(ns.as_u64().unwrap_or(0)));
    }
    Ok(())
}

/// The most memory this process has held, where the system tells.
pub(crate) fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}
