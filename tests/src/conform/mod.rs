//! The conformance runner: replays recorded behaviour of PyTorch and counts the matches.
//!
//! [`corpus`] reads the suites, [`pool`] distributes cases to worker processes, a worker replays one case at a time
//! ([`worker`], [`replay`]), and [`tally`] counts and prints. A worker that dies or exceeds the time limit loses only
//! its current case and is replaced.
//!
//! A case has one of four outcomes. *Passed*: the recorded result, or an error where one was recorded. *Unsupported*:
//! an error of kind `Unsupported`, which names the missing feature. *Panicked*: a panic, the death of the process, or a
//! timeout. *Failed*: anything else, in particular a wrong result.

pub mod call;
pub mod case;
pub mod corpus;
pub mod instructions;
pub mod options;
pub mod pool;
pub mod replay;
pub mod tally;
pub mod worker;

use anyhow::Context;

/// Replays the suites in the folders given as arguments; see [`options::USAGE`].
///
/// # Errors
/// Returns an error if a suite cannot be read or a report cannot be written. Cases that fail are not errors.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    if args.first().is_some_and(|a| a == "--worker") {
        return worker::serve(&args[1..]);
    }
    let options = options::parse(args)?;
    let mut tally = tally::Tally::default();
    for suite in corpus::suites(&options.folders, options.variants.compare_text)? {
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
