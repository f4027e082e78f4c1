//! Benchmark of a process from start to the result of an archived program.
//!
//! It also measures the peak memory of the process and the size of the command line program.

use crate::{lstm_inputs, row};
use anyhow::{Context, Result};
use flambeau::Session;
use std::process::Command;
use std::time::Instant;

/// The argument with which this program runs as the measured child process.
pub(crate) const CHILD: &str = "--start";

/// Loads the archive and runs it. Prints the peak memory of the process in kilobytes if the system provides it.
pub(crate) fn child() -> Result<()> {
    let session = Session::standard()?;
    let archive = include_bytes!("../../../data/lstm_cell_function.pt");
    let program = session.load_archive_bytes(archive)?;
    let name = program.entries().into_iter().next().context("the archive has no entry")?;
    program.entry(&name)?.call(&lstm_inputs()?, &[])?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    println!("{}", peak.unwrap_or("").trim().trim_end_matches(" kB"));
    Ok(())
}

/// Measures start-up.
pub(crate) fn figures(_: &Session) -> Result<()> {
    println!("-- start");
    let own = std::env::current_exe()?;
    let (mut best, mut peak) = (f64::INFINITY, None);
    for _ in 0..30 {
        let start = Instant::now();
        let output = Command::new(&own).arg(CHILD).output()?;
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        peak = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().ok().or(peak);
    }
    row("process start to the LSTM cell's result", best, "ms", 10.0, "1600 ms Python, 400 ms C++");
    if let Some(kilobytes) = peak {
        row("peak memory of that process", kilobytes / 1e3, "MB", 20.0, "426 MB Python, 115 MB C++");
    }
    // `cargo xtask bench` builds the command line program in the same folder.
    if let Ok(command) = std::fs::metadata(own.with_file_name("flambeau")) {
        row("the command's size", command.len() as f64 / 1e6, "MB", 15.0, "");
    }
    Ok(())
}
