//! Benchmarks: each measured value with its limit and PyTorch's value. Usage: `bench [FILTER] [ARCHIVE]`.
//!
//! `cargo xtask bench` runs it with the profile `dist`. Peak memory and start-up time are measured in a child process.

mod archive;
mod executor;
mod ir;
mod source;
mod start;
mod tensor;
mod vm;

use anyhow::{Context, Result};
use flambeau::{IValue, Session};
use std::time::{Duration, Instant};

/// A group of benchmarks.
type Figures = fn(&Session) -> Result<()>;

fn main() -> Result<()> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    match filter.as_str() {
        start::CHILD => return start::child(),
        archive::CHILD => return archive::child(),
        _ => {}
    }
    let session = Session::standard()?;
    println!("{:<48} {:>12} {:>12}  PyTorch 2.6", "figure", "measured", "limit");
    let groups: [(&str, Figures); 7] = [
        ("start", start::figures),
        ("archive", archive::figures),
        ("source", source::figures),
        ("ir", ir::figures),
        ("vm", vm::figures),
        ("executor", executor::figures),
        ("tensor", tensor::figures),
    ];
    for (name, figures) in groups {
        if name.contains(filter.as_str()) {
            figures(&session)?;
        }
    }
    Ok(())
}

/// Prints a measurement; `!` marks one above its limit.
fn row(name: &str, measured: f64, unit: &str, limit: f64, torch: &str) {
    let mark = if measured <= limit { ' ' } else { '!' };
    println!("{name:<48} {measured:>9.2} {unit:<3}{mark}{limit:>8.2} {unit:<3}  {torch}");
}

/// Returns the minimum time of several runs, in nanoseconds.
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

/// Returns the time of a call in nanoseconds: the lower quartile over short batches, because noise of the machine only
/// adds time. A batch has enough calls to make the time of reading the clock negligible.
fn per_call(mut f: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut spell = |calls: u32| -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..calls {
            f()?;
        }
        Ok(start.elapsed())
    };
    spell(3)?;
    let mut calls = 1;
    while calls < 10_000 && spell(calls)? < Duration::from_micros(100) {
        calls *= 2;
    }
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 7 || start.elapsed() < Duration::from_millis(400) {
        times.push(spell(calls)?.as_nanos() as f64 / f64::from(calls));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 4])
}

/// Returns the inputs of the LSTM cell.
fn lstm_inputs() -> Result<Vec<IValue>> {
    let record: serde_json::Value =
        serde_json::from_str(include_str!("../../../../cli/data/lstm_cell.json"))?;
    let inputs = record["inputs"].as_array().context("inputs")?;
    inputs.iter().map(|v| Ok(flambeau::json::read(v)?)).collect()
}
