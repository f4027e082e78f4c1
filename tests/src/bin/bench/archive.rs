//! Loading the archive that the command line names: `bench archive FILE`. The limits are those of resnet18 as PyTorch
//! writes it, 45 MB; without a file there is nothing to measure.

use crate::row;
use anyhow::{Context, Result};
use flambeau::Session;
use flambeau::archive::LoadOptions;
use std::process::Command;
use std::time::Instant;

/// The argument that makes this program the child that is measured.
pub(crate) const CHILD: &str = "--load";

/// Loads the archive as the command does, and prints how long that took, in milliseconds, and the memory of the process
/// that no file is behind, in kilobytes, where the system tells it.
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

/// Archives.
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
