//! Benchmarks of graphs: time per node of each step, growth with the size, and constants with many uses.

use crate::{fastest, row};
use anyhow::{Context, Result};
use flambeau::analysis::AliasDb;
use flambeau::ir::text::{PrintOptions, parse_graph};
use flambeau::ir::verify::verify;
use flambeau::ir::{Graph, Registry, Source};
use flambeau::rewrite::Manager;
use flambeau::{IValue, Session, Type};
use std::sync::Arc;
use std::time::Instant;

/// Numbers of nodes of the measured graphs.
const SIZES: [usize; 5] = [10, 1_000, 10_000, 100_000, 1_000_000];
/// Limit on the growth of time for ten times the size, up to 100,000 nodes.
const GROWTH: f64 = 12.6;

/// Builds a graph of pointwise nodes over the latest two values, every third with a shared constant.
fn build(registry: &Arc<Registry>, n: usize) -> Result<Graph> {
    let ops = ["aten::mul.Tensor", "aten::add.Tensor", "aten::tanh"];
    let ops = ops.map(|o| registry.lookup(o)).into_iter().collect::<Option<Vec<_>>>().context("operators")?;
    let mut g = Graph::new(Arc::clone(registry));
    let mut e = g.edit();
    let (x, one) = (e.add_input(Type::TENSOR), e.constant(IValue::Int(1)));
    let (mut a, mut b) = (x, x);
    for i in 0..n {
        let v = match i % 3 {
            0 => e.value(ops[0], &[a, b], Type::TENSOR),
            1 => e.value(ops[1], &[a, b, one], Type::TENSOR),
            _ => e.value(ops[2], &[a], Type::TENSOR),
        };
        (a, b) = (v, a);
    }
    e.add_output(a);
    Ok(g)
}

/// Measures the time of each step for one size, in nanoseconds.
fn steps(session: &Session, n: usize) -> Result<Vec<(&'static str, f64)>> {
    let registry = session.registry();
    // Growth compares the minimum times of two sizes; a minimum of three runs would still contain noise of other
    // processes.
    let repeat = (100_000 / n).clamp(10, 300);
    let mut total = Vec::new();
    let mut figure = |name: &'static str, ns: f64, limit: f64, torch: &str| {
        row(name, ns / n as f64 / 1e3, "us", limit, torch);
        total.push((name, ns));
    };
    figure("build by API", fastest(repeat, || (), |()| build(registry, n))?, 0.15, "");
    let g = build(registry, n)?;
    let text = g.to_text(PrintOptions::default());
    let source = Source::new("bench.ir", text);
    figure("print", fastest(repeat, || (), |()| Ok(g.to_text(PrintOptions::default())))?, 0.2, "0.7-1.6");
    let parse = || parse_graph(&source, registry).map_err(|e| anyhow::anyhow!("{e}"));
    figure("parse", fastest(repeat, || (), |()| parse())?, 0.5, "3.4-8");
    figure("verify", fastest(repeat, || (), |()| Ok(verify(&g).map(|_| ())?))?, 0.15, "1-20");
    figure("alias", fastest(repeat, || (), |()| Ok(AliasDb::new(&g)))?, 0.2, "0.4-1.9");
    for (pass, limit, torch) in [("dce", 0.06, "0.3-2.8"), ("cse", 0.25, "1.2-2.7")] {
        let pipeline = session.pipeline(pass)?;
        let run = |mut copy: Graph| {
            Manager::new().run(&mut copy, &pipeline).map_err(|e| anyhow::anyhow!("{e}"))?;
            Ok(copy)
        };
        figure(pass, fastest(repeat, || g.clone(), run)?, limit, torch);
    }
    row("bytes", g.heap_bytes() as f64 / n as f64, "B", 160.0, "480-750");
    row("bytes, read from text (all values named)", parse()?.heap_bytes() as f64 / n as f64, "B", 160.0, "");
    Ok(total)
}

/// Measures graphs.
pub(crate) fn figures(session: &Session) -> Result<()> {
    let mut before: Option<(usize, Vec<(&'static str, f64)>)> = None;
    for n in SIZES {
        println!("-- {n} nodes, per node (at {} a call's own cost shows)", SIZES[0]);
        let total = steps(session, n)?;
        if let Some((smaller, times)) = before.filter(|_| n <= 100_000) {
            let decades = ((n / smaller) as f64).log10();
            for ((name, ns), (_, small)) in total.iter().zip(&times) {
                row(
                    &format!("{name}: growth for ten times the size"),
                    (ns / small).powf(1.0 / decades),
                    "x",
                    GROWTH,
                    "12-60",
                );
            }
        }
        before = Some((n, total));
    }
    constants(session)
}

/// Measures the replacement and erasure of a constant with very many uses.
fn constants(session: &Session) -> Result<()> {
    let registry = session.registry();
    for n in [100_000usize, 1_000_000] {
        let mut g = Graph::new(Arc::clone(registry));
        let op = registry.lookup("aten::neg").context("aten::neg")?;
        let mut e = g.edit();
        let (old, new) = (e.constant(IValue::Int(1)), e.constant(IValue::Int(2)));
        for _ in 0..n {
            e.node(op, &[old], &[Type::TENSOR]);
        }
        let start = Instant::now();
        g.edit().replace_all_uses(old, new);
        let node = g.def(old);
        g.edit().erase(node);
        row(
            &format!("replace a constant with {n} uses"),
            start.elapsed().as_nanos() as f64 / n as f64,
            "ns",
            50.0,
            "",
        );
    }
    Ok(())
}
