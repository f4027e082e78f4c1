//! The figures: each measured value beside its limit. `bench [FILTER]`.
//!
//! Taken with the `bench` profile by `cargo xtask bench`. Peak memory and start-up are those of child processes.

use anyhow::{Context, Result};
use flambeau::analysis::AliasDb;
use flambeau::ir::text::{PrintOptions, parse_graph};
use flambeau::ir::verify::verify;
use flambeau::ir::{Graph, Registry, Source};
use flambeau::rewrite::Manager;
use flambeau::tensor::{Scalar, Tensor};
use flambeau::{IValue, Session, Type};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<()> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let session = Session::standard()?;
    println!("{:<44} {:>12} {:>12}  PyTorch 2.6", "figure", "measured", "limit");
    for (name, run) in [("ir", ir as fn(&Session) -> Result<()>), ("vm", vm), ("tensor", tensor)] {
        if name.contains(filter.as_str()) || filter.is_empty() {
            run(&session)?;
        }
    }
    Ok(())
}

fn row(name: &str, measured: f64, unit: &str, limit: f64, torch: &str) {
    let mark = if measured <= limit { ' ' } else { '!' };
    println!("{name:<44} {measured:>9.2} {unit:<3}{mark}{limit:>8.2} {unit:<3}  {torch}");
}

/// The fastest of several runs, in nanoseconds.
fn fastest<P, R>(
    repeat: usize,
    mut prepare: impl FnMut() -> P,
    mut run: impl FnMut(P) -> Result<R>,
) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..repeat {
        let input = prepare();
        let start = Instant::now();
        let result = run(input)?;
        best = best.min(start.elapsed().as_nanos() as f64);
        drop(result);
    }
    Ok(best)
}

/// The median time of a call, in nanoseconds.
fn per_call(mut f: impl FnMut() -> Result<()>) -> Result<f64> {
    for _ in 0..3 {
        f()?;
    }
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 7 || start.elapsed() < Duration::from_millis(400) {
        let t = Instant::now();
        let mut calls = 0u32;
        while calls < 1 || (t.elapsed() < Duration::from_micros(200) && calls < 10_000) {
            f()?;
            calls += 1;
        }
        times.push(t.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Pointwise nodes over the latest values, every third with a pooled constant.
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

fn ir(session: &Session) -> Result<()> {
    let registry = session.registry();
    let mut at_small: Vec<f64> = Vec::new();
    for n in [10_000usize, 100_000, 1_000_000] {
        println!("-- {n} nodes, per node");
        let us = |ns: f64| ns / n as f64 / 1e3;
        let mut total = Vec::new();
        let mut figure = |name: &str, ns: f64, limit: f64, torch: &str| {
            row(name, us(ns), "us", limit, torch);
            total.push(ns);
        };
        figure("build by API", fastest(3, || (), |()| build(registry, n))?, 0.15, "");
        let g = build(registry, n)?;
        let text = g.to_text(PrintOptions::default());
        let source = Source::new("bench.ir", text);
        figure("print", fastest(3, || (), |()| Ok(g.to_text(PrintOptions::default())))?, 0.2, "0.7-1.6");
        let parse = || parse_graph(&source, registry).map_err(|e| anyhow::anyhow!("{e}"));
        figure("parse", fastest(3, || (), |()| parse())?, 0.5, "3.4-8");
        figure("verify", fastest(3, || (), |()| Ok(verify(&g).map(|_| ())?))?, 0.15, "1-20");
        figure("alias", fastest(3, || (), |()| Ok(AliasDb::new(&g)))?, 0.2, "0.4-1.9");
        for (pass, limit, torch) in [("dce", 0.06, "0.3-2.8"), ("cse", 0.25, "1.2-2.7")] {
            let pipeline = session.pipeline(pass)?;
            let run = |mut copy: Graph| {
                Manager::new().run(&mut copy, &pipeline).map_err(|e| anyhow::anyhow!("{e}"))?;
                Ok(copy)
            };
            figure(pass, fastest(3, || g.clone(), run)?, limit, torch);
        }
        row("bytes", g.heap_bytes() as f64 / n as f64, "B", 160.0, "480-750");
        if n == 100_000 {
            for (i, ns) in total.iter().enumerate() {
                let growth = ns / at_small[i].max(1.0);
                if growth > 12.6 {
                    println!("   step {i} grew {growth:.1} times from 10,000 to 100,000 nodes (limit 12.6)");
                }
            }
        }
        at_small = total;
    }
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

fn vm(session: &Session) -> Result<()> {
    println!("-- machine");
    let source = "
def loop(n: int) -> int:
    s = 0
    for i in range(n):
        s = s + (i * 3) % 7
    return s

def collatz(n: int) -> int:
    total = 0
    for i in range(1, n):
        x = i
        while x != 1:
            if x % 2 == 0:
                x = x // 2
            else:
                x = 3 * x + 1
            total += 1
    return total

def lists(n: int) -> int:
    l: List[int] = []
    for i in range(n):
        l.append(i)
    s = 0
    for v in l:
        s += v
    return s
";
    let program = session.compile_source(source, "bench.py")?;
    let mut call = |name: &str, n: i64| -> Result<f64> {
        let entry = program.entry(name)?;
        per_call(|| {
            entry.call(&[IValue::Int(n)], &[])?;
            Ok(())
        })
    };
    row("int loop, per iteration", call("loop", 100_000)? / 1e5, "ns", 8.0, "81 ns");
    row("collatz(3000)", call("collatz", 3000)? / 1e6, "ms", 5.0, "45 ms");
    row("list append then sum, per element", call("lists", 100_000)? / 1e5, "ns", 20.0, "172 ns");
    Ok(())
}

fn filled(n: i64) -> Result<IValue> {
    let t = Tensor::arange(
        Scalar::Float(0.0),
        Scalar::Float(1.0),
        Scalar::Float(1.0 / n as f64),
        flambeau::tensor::DType::F32,
    )?;
    Ok(IValue::Tensor(t.narrow(0, 0, n)?.clone_data()?))
}

fn tensor(session: &Session) -> Result<()> {
    println!("-- tensors");
    let source = "
def one(x):
    return x + x

def chain(x, y):
    a = x * y + x
    b = torch.sigmoid(a) * torch.tanh(y)
    return torch.relu(b - x)
";
    let program = session.compile_source(source, "bench.py")?;
    let one = program.entry("one")?;
    let x = [filled(16)?];
    let ns = per_call(|| {
        one.call(&x, &[])?;
        Ok(())
    })?;
    row("one operation on 16 floats", ns, "ns", 150.0, "600-1300 ns");
    let chain = program.entry("chain")?;
    for (n, limit, torch) in [(1_000_000i64, 0.9, "2.7 ns"), (16_000_000, 1.8, "12 ns")] {
        let args = [filled(n)?, filled(n)?];
        let ns = per_call(|| {
            chain.call(&args, &[])?;
            Ok(())
        })?;
        row(&format!("chain of 6 operations, {n} floats, each"), ns / n as f64, "ns", limit, torch);
    }
    let lstm = include_str!("../../../cli/data/lstm_cell.py");
    let record: serde_json::Value = serde_json::from_str(include_str!("../../../cli/data/lstm_cell.json"))?;
    let inputs: Vec<IValue> = record["inputs"]
        .as_array()
        .context("inputs")?
        .iter()
        .map(|v| Ok(flambeau::json::read(v)?))
        .collect::<Result<_>>()?;
    let program = session.compile_source(lstm, "lstm_cell.py")?;
    let cell = program.entry("lstm_cell")?;
    let ns = per_call(|| {
        cell.call(&inputs, &[])?;
        Ok(())
    })?;
    row("LSTM cell, batch 1, hidden 8", ns / 1e3, "us", 3.0, "21 us");
    Ok(())
}
