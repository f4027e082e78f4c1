//! `flambeau bench`: time calls of a function in this process.

use crate::inputs::InputArgs;
use crate::program::{ProgramArgs, ThreadArgs};
use crate::setup::Setup;
use anstream::println;
use anyhow::Result;
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
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    min_time: f64,
    /// Write JSON.
    #[arg(long)]
    json: bool,
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

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let session = args.threads.of(&setup.session()?);
    let entry = args.program.entry(&session)?;
    let inputs = args.inputs.read(&entry)?;
    let kwargs = inputs.kwargs();
    let mut host = session.host();
    host.set_stdout(std::io::sink());
    let timing = time(args.min_time, || {
        let result = entry.call_on(&inputs.positional, &kwargs, &mut host);
        result.map(drop).map_err(|e| args.inputs.blame(e))
    })?;
    if args.json {
        let json = serde_json::json!({
            "ns_per_call_median": timing.median,
            "ns_per_call_min": timing.min,
            "calls": timing.calls,
            "warmup": timing.warmup,
        });
        println!("{json}");
    } else {
        let (median, min) = (timing.median / 1e3, timing.min / 1e3);
        println!("{median:.3} us per call (median), {min:.3} us (minimum), {} calls", timing.calls);
    }
    Ok(())
}
