//! The worker process: reads cases, replays them, and writes verdicts.
//!
//! Cases run on a thread with the default stack size, as in embedding programs.

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::case::{Case, Verdict};
use super::options::Variants;
use super::replay::Replay;
use flambeau_fuzz::worker::READY;

/// Replays cases from standard input until its end.
///
/// # Errors
/// Returns an error if the arguments are not `FOLDER` followed by those of [`Variants`], or if the session cannot be
/// created.
pub fn serve(args: &[String]) -> anyhow::Result<()> {
    let folder = args.first().map(PathBuf::from);
    let Some(folder) = folder else { anyhow::bail!("--worker needs a folder") };
    let variants = Variants::from_args(args);
    let thread = std::thread::Builder::new().spawn(move || work(folder, variants))?;
    thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the worker panicked")))
}

fn work(folder: PathBuf, variants: Variants) -> anyhow::Result<()> {
    let replay = Replay::new(folder, variants)?;
    println!("{READY}");
    let message = Arc::new(Mutex::new(String::new()));
    let kept = message.clone();
    std::panic::set_hook(Box::new(move |info| {
        if let Ok(mut kept) = kept.lock() {
            *kept = info.to_string();
        }
    }));
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let verdict = match Case::parse(&line) {
            Err(why) => Verdict::failed(why),
            Ok(case) => catch_unwind(AssertUnwindSafe(|| replay.case(&case))).unwrap_or_else(|_| {
                Verdict::panicked(message.lock().map_or_else(|_| String::new(), |m| m.replace('\n', " ")))
            }),
        };
        // The program under test may have printed an incomplete line.
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{}", verdict.to_line())?;
        out.flush()?;
    }
    Ok(())
}
