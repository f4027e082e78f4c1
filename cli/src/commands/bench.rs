//! `flambeau bench`: time calls of a function in this process.
//!
//! Calls are not recorded for gradients, whatever parameters require. With `--grad` a call is recorded and followed by
//! the backward walk of the sum of all floating-point results; inputs with floating-point elements require gradients. The
//! gradients of a call are dropped before the next one, as in a step of training.

use crate::inputs::InputArgs;
use crate::output;
use crate::program::{ProgramArgs, ThreadArgs};
use crate::setup::Setup;
use anyhow::Result;
use flambeau::exec::Host;
use flambeau::exec::tape::{self, BackwardOptions};
use flambeau::{Compilation, Execution, IValue, Session, Tensor};
use std::time::{Duration, Instant};

/// Arguments of `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Measure for at least this many seconds.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    min_time: f64,
    /// Specialize the program to the types, sizes and branches of the first calls, which are not measured.
    #[arg(long, conflicts_with = "grad")]
    specialize: bool,
    /// Write JSON.
    #[arg(long)]
    json: bool,
    /// Time the call and the gradients of the sum of all floating-point results: those of the floating-point inputs
    /// and of the parameters.
    #[arg(long)]
    grad: bool,
}

/// Times of calls, in nanoseconds.
pub(crate) struct Timing {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) calls: u64,
    pub(crate) warmup: u64,
}

/// Calls `f` for at least `seconds`, in batches long enough for the resolution of the clock.
pub(crate) fn time(seconds: f64, mut f: impl FnMut() -> Result<()>) -> Result<Timing> {
    let seconds = if seconds.is_finite() { seconds.clamp(0.001, 3600.0) } else { 1.0 };
    let limit = Duration::from_secs_f64(seconds);
    // Warms up for a tenth of the time, at least three calls: this compiles plans and fills caches.
    let start = Instant::now();
    let mut warmup = 0u64;
    while warmup < 3 || start.elapsed() < limit / 10 {
        f()?;
        warmup += 1;
    }
    let per_call = start.elapsed().as_secs_f64() / warmup as f64;
    let batch = ((50e-6 / per_call) as u64).clamp(1, 100_000);
    let mut batches: Vec<f64> = Vec::new();
    let start = Instant::now();
    while batches.len() < 5 || start.elapsed() < limit {
        let t = Instant::now();
        for _ in 0..batch {
            f()?;
        }
        batches.push(t.elapsed().as_nanos() as f64 / batch as f64);
    }
    batches.sort_by(f64::total_cmp);
    Ok(Timing {
        median: batches[batches.len() / 2],
        min: batches[0],
        calls: batch * batches.len() as u64,
        warmup,
    })
}

/// Parses a time in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=MAX_SECONDS).contains(&seconds) => Ok(seconds),
        _ => Err(format!("expected a number of seconds from 0 to {MAX_SECONDS}")),
    }
}

/// Longest time of a measurement: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let mut session = args.threads.of(&setup.session()?);
    if args.specialize {
        session = session.with_execution(Execution::Profiling).with_compilation(Compilation::Synchronous);
    }
    let program = args.program.load(&session)?;
    let entry = args.program.pick(&program)?;
    let inputs = args.inputs.read(&entry)?;
    let kwargs = inputs.kwargs();
    let mut host = session.host();
    host.set_stdout(std::io::sink());
    host.set_grad_enabled(args.grad);
    let mut leaves: Vec<Tensor> = Vec::new();
    if args.grad {
        let values = inputs.positional.iter().chain(kwargs.iter().map(|(_, value)| value));
        let mut floating = |t: &Tensor| {
            if t.dtype().is_floating() {
                t.set_requires_grad(true);
                leaves.push(t.clone());
            }
        };
        values.for_each(|value| value.visit_tensors(&mut floating));
        let parameters = program.module().map(|module| module.named_parameters());
        leaves.extend(parameters.into_iter().flatten().map(|(_, parameter)| parameter));
    }
    let timing = time(args.min_time, || {
        let result = entry.call_on(&inputs.positional, &kwargs, &mut host);
        let result = result.map_err(|e| args.inputs.with_command_line_code(e))?;
        // As a step of training does: gradients of the call before are not added.
        leaves.iter().for_each(tape::clear_accumulated_grad);
        if args.grad { backward(&session, &result, &mut host) } else { Ok(()) }
    })?;
    if args.json {
        let json = serde_json::json!({
            "ns_per_call_median": timing.median,
            "ns_per_call_min": timing.min,
            "calls": timing.calls,
            "warmup": timing.warmup,
            "recorded_operator_by_operator": entry.gradient_refusals(),
        });
        output::line(&json)?;
    } else {
        let (median, min) = (timing.median / 1e3, timing.min / 1e3);
        output::line(format_args!(
            "{median:.3} us per call (median), {min:.3} us (minimum), {} calls",
            timing.calls
        ))?;
        for reason in entry.gradient_refusals() {
            output::line(format_args!("recorded operator by operator: {reason}"))?;
        }
    }
    Ok(())
}

/// Computes the gradients of the sum of all floating-point results, each of which gets ones.
fn backward(session: &Session, result: &IValue, host: &mut Host) -> Result<()> {
    let mut outputs: Vec<(Tensor, Tensor)> = Vec::new();
    let mut failure = None;
    result.visit_tensors(|t| {
        if t.requires_grad() {
            match Tensor::full(t.sizes(), 1.0.into(), t.dtype()) {
                Ok(ones) => outputs.push((t.clone(), ones)),
                Err(error) => failure = Some(error),
            }
        }
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    anyhow::ensure!(!outputs.is_empty(), "no result requires a gradient");
    Ok(session.backward(&outputs, BackwardOptions::default(), host)?)
}
