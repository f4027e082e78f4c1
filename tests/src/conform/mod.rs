//! Replays recorded behaviour of PyTorch and counts what agrees.
//!
//! The corpus is read by [`corpus`], the cases are handed to worker processes by [`pool`], a worker replays one at a
//! time ([`worker`], [`replay`]), and [`tally`] counts and prints. A worker that dies or takes longer than the limit
//! costs its case and is replaced: no case can stop the others.
//!
//! A case ends in one of four ways. *Passed*: the recorded result, or an error where one was recorded. *Unsupported*:
//! an error of the kind `Unsupported`, which names what is missing. *Panicked*: a panic, the death of the process, or
//! no answer in time. *Failed*: everything else, above all a wrong answer.

pub mod call;
pub mod case;
pub mod corpus;
pub mod options;
pub mod pool;
pub mod replay;
pub mod tally;
pub mod worker;

use anyhow::Context;

/// Replays the folders the arguments name; see [`options::USAGE`].
///
/// # Errors
/// If the corpus cannot be read or a report cannot be written. Cases that fail are no error.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    if args.first().is_some_and(|a| a == "--worker") {
        return worker::serve(&args[1..]);
    }
    let options = options::parse(args)?;
    let mut tally = tally::Tally::default();
    for suite in corpus::suites(&options.folders, options.ways.compare_text)? {
        pool::replay(&suite, &options, &mut tally)?;
    }
    print!("{}", tally.text(options.reasons));
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&tally.json())?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &options.failures {
        std::fs::write(path, tally.failures()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
