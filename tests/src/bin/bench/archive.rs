//! Benchmark of archive loading: `bench archive FILE`.
//!
//! The limits are for resnet18 as written by PyTorch, 45 MB. Without a file there is no measurement.

use crate::row;
use anyhow::{Context, Result};
use flambeau::Session;
use flambeau::archive::LoadOptions;
use std::process::Command;
use std::time::Instant;

/// The argument with which this program runs as the measured child process.
pub(crate) const CHILD: &str = "--load";

/// Loads the archive as the command line program does. Prints the load time in milliseconds and, if the system provides
/// it, the anonymous memory of the process in kilobytes.
pub(crate) fn child() -> Result<()> {
    let path = std::env::args().nth(2).context("an archive")?;
    let mut options = LoadOptions::default();
    options.map = true;
    let session = Session::builder().standard().load_options(options).build()?;
    let start = Instant::now();
    let program = session.load_archive(path)?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("");
    println!("{took} {}", own.trim().trim_end_matches(" kB"));
    drop(program);
    Ok(())
}

/// Measures archive loading.
pub(crate) fn figures(_: &Session) -> Result<()> {
    let Some(path) = std::env::args().nth(2) else { return Ok(()) };
    println!("-- archive {path}");
    let own = std::env::current_exe()?;
    let (mut load, mut memory, mut whole) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    for _ in 0..20 {
        let start = Instant::now();
        let output = Command::new(&own).args([CHILD, &path]).output()?;
        whole = whole.min(start.elapsed().as_secs_f64() * 1e3);
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut figures = text.split_whitespace().map_while(|word| word.parse::<f64>().ok());
        load = load.min(figures.next().context("the time it took")?);
        memory = figures.next().map_or(memory, |kilobytes| memory.min(kilobytes / 1e3));
    }
    row("load", load, "ms", 15.0, "187 ms");
    row("process start to the loaded module", whole, "ms", 60.0, "");
    if memory.is_finite() {
        row("memory beyond the file's", memory, "MB", 60.0, "605 MB");
    }
    Ok(())
}
