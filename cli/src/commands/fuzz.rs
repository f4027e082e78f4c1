//! `flambeau fuzz`: searches for programs whose meaning a pipeline changes, or on which evaluators disagree.
//!
//! Cases run in worker processes: this command again, with `--worker`. A case that ends or stalls its process is
//! reported like any other.

use crate::commands::ops::nearest_operator;
use crate::output::{self, command_line_error, unknown, usage};
use crate::program::pipeline;
use crate::setup::Setup;
use anyhow::{Result, anyhow, bail};
use flambeau::{Error, Fault, Session};
use flambeau_fuzz::isolated::{IsolatedCampaign, fresh_seed, serve};
use flambeau_fuzz::worker::current_program;
use flambeau_fuzz::{Campaign, Tally, selftest};
use indicatif::{ProgressBar, ProgressStyle};
use std::process::Command;
use std::time::Duration;

/// Arguments of `fuzz`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Oracles: `text`, `source`, `journal`, `machine`, `alias`, `facts`, `deopt` (specialized plans with
    /// failing guards), `grad` (gradients of differentiated graphs), `pass`, `sharing` (the pipeline with arguments and constants that share memory), `passes` (each
    /// pass separately), `planted` (an intentionally wrong pass); the default is all but the last two.
    #[arg(long, value_delimiter = ',')]
    oracle: Vec<String>,
    /// The pipeline for `pass` and `sharing`, `default` if none is given, or the name of a planted bug. Without
    /// `--oracle`, the oracles of a given pipeline run first.
    #[arg(long, short)]
    passes: Option<String>,
    /// Seconds per oracle.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Random seed; equal seeds give equal cases. The default is a new seed for every run.
    #[arg(long)]
    seed: Option<u64>,
    /// Operators that occur more often in programs, as `ns::name` or `ns::name.overload`.
    #[arg(long, value_delimiter = ',')]
    favour: Vec<String>,
    /// Number of worker processes.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Time limit of one case in seconds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Serve requests for cases of one oracle, given by its full name.
    #[arg(long, hide = true)]
    worker: bool,
}

impl Args {
    /// Returns the pipeline, or the name of a planted bug.
    fn passes(&self) -> &str {
        self.passes.as_deref().unwrap_or("default")
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let session = setup.session()?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let campaign = Campaign::new(session.registry(), seed);
    let campaign = campaign.favouring(&args.favour).map_err(|why| {
        let mut error = Error::new(Fault::Misuse, "X0003", why);
        error.help = args.favour.iter().find_map(|name| nearest_operator(session.registry(), name));
        usage(error)
    })?;
    if args.worker {
        let name = args.oracle.first().map_or("", String::as_str);
        let oracle =
            selftest::oracle(&session, &full_name(name, args.passes())).map_err(|why| anyhow!(why))?;
        return Ok(serve(&campaign, &*oracle)?);
    }
    // Reports a wrong name or pipeline once here, not in every worker.
    let known: Vec<&str> =
        selftest::NAMES.iter().chain(&["pass", "sharing", "passes", "planted"]).copied().collect();
    if let Some(wrong) = args.oracle.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(unknown("oracle", wrong, &known));
    }
    match args.oracle.iter().any(|name| name == "planted") {
        true => check_planted(args.passes.as_deref())?,
        false => drop(pipeline(&session, args.passes())?),
    }
    output::line(format_args!("{} operators to draw from, seed {seed}", campaign.operators().len()))?;
    let mut failed = Vec::new();
    for name in names(args, &session) {
        if !holds(args, &name, seed)? {
            failed.push(name);
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("{} not hold", enumerated(&failed)),
    }
}

/// Checks that a name is that of a planted bug.
fn check_planted(name: Option<&str>) -> Result<()> {
    let known = selftest::planted_names();
    let known: Vec<&str> = known.iter().filter_map(|full| full.strip_prefix("planted:")).collect();
    match name {
        Some(name) if known.contains(&name) => Ok(()),
        Some(name) => Err(unknown("planted bug", name, &known)),
        None => Err(command_line_error(format!(
            "`--oracle planted` needs the name of a planted bug in `--passes`: {}",
            known.join(", ")
        ))),
    }
}

/// Returns the failed oracles as the subject of a sentence.
fn enumerated(failed: &[String]) -> String {
    let verb = if failed.len() == 1 { "does" } else { "do" };
    format!("{} {verb}", failed.join(", "))
}

/// Returns the requested oracles.
fn names(args: &Args, session: &Session) -> Vec<String> {
    let of_passes = || selftest::all(session).into_iter().filter(|name| name.starts_with("pass:"));
    if args.oracle.is_empty() {
        let over_pipeline = ["pass", "sharing"].map(|name| full_name(name, args.passes()));
        let others = selftest::NAMES.iter().map(|&name| name.to_owned());
        return match args.passes {
            Some(_) => over_pipeline.into_iter().chain(others).collect(),
            None => others.chain(over_pipeline).collect(),
        };
    }
    let one = |name: &String| match name.as_str() {
        "passes" => of_passes().collect(),
        name => vec![full_name(name, args.passes())],
    };
    args.oracle.iter().flat_map(one).collect()
}

fn full_name(name: &str, pipeline: &str) -> String {
    if matches!(name, "pass" | "sharing" | "planted") {
        format!("{name}:{pipeline}")
    } else {
        name.to_owned()
    }
}

/// Searches for a case in which an oracle fails, and prints the smallest form found. Returns whether there is none.
fn holds(args: &Args, name: &str, seed: u64) -> Result<bool> {
    let (oracle, pipeline) = name.split_once(':').unwrap_or((name, ""));
    let worker = || -> std::io::Result<Command> {
        let mut command = current_program()?;
        command.args(["fuzz", "--worker", "--oracle", oracle, "--passes", pipeline]);
        command.args(["--seed", &seed.to_string()]);
        if !args.favour.is_empty() {
            command.args(["--favour", &args.favour.join(",")]);
        }
        Ok(command)
    };
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    let progress = |tally: &Tally| {
        if tally.cases().is_multiple_of(64) {
            bar.set_message(format!("{name}: {tally}"));
            bar.tick();
        }
    };
    let isolated = IsolatedCampaign {
        worker: &worker,
        jobs: usize::from(args.jobs),
        limit: Duration::from_secs(args.limit),
    };
    let (tally, found) = isolated.run(u64::MAX, Duration::from_secs(args.seconds), &progress)?;
    bar.finish_and_clear();
    output::line(format_args!("{name}: {tally}"))?;
    if let Some(found) = &found {
        output::line(format_args!(
            "case {} of seed {seed} (smallest form found):\n{}\n{}",
            found.number, found.text, found.why
        ))?;
    }
    Ok(found.is_none())
}
