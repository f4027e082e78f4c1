//! `flambeau fuzz`: search for programs that a pipeline changes the meaning of, or on which evaluators disagree.

use anstream::println;
use anyhow::{Result, bail};
use flambeau::Session;
use flambeau_fuzz::oracle::{
    AliasTruth, JournalReplay, MachineAgrees, PassKeeps, SourceRoundTrip, TextRoundTrip,
};
use flambeau_fuzz::{Campaign, Oracle};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Arguments of `fuzz`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What must hold: `pass`, `machine`, `text`, `alias`, `journal`; all if left out.
    #[arg(long, value_delimiter = ',')]
    oracle: Vec<String>,
    /// The pipeline that `pass` looks at.
    #[arg(long, short, default_value = "default")]
    passes: String,
    /// Seconds per oracle.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Where the cases start; equal seeds make equal cases.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

const ORACLES: [&str; 6] = ["text", "source", "journal", "machine", "alias", "pass"];

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let session = Session::standard()?;
    let campaign = Campaign::new(session.registry(), args.seed);
    let names: Vec<&str> = match args.oracle.is_empty() {
        true => ORACLES.to_vec(),
        false => args.oracle.iter().map(String::as_str).collect(),
    };
    println!("{} operators to draw from", campaign.menu().len());
    for name in names {
        let oracle: Box<dyn Oracle> = match name {
            "text" => Box::new(TextRoundTrip),
            "source" => Box::new(SourceRoundTrip),
            "journal" => Box::new(JournalReplay),
            "machine" => Box::new(MachineAgrees),
            "alias" => Box::new(AliasTruth),
            "pass" => Box::new(PassKeeps::new(&args.passes, session.pipeline(&args.passes)?)),
            other => bail!("there is no oracle `{other}`; there are {}", ORACLES.join(", ")),
        };
        let bar = ProgressBar::new_spinner();
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        let (tally, finding) = campaign.run(&*oracle, u64::MAX, Duration::from_secs(args.seconds), |t| {
            if (t.checked + t.rejected) % 64 == 0 {
                bar.set_message(format!("{name}: {} checked, {} rejected", t.checked, t.rejected));
                bar.tick();
            }
        });
        bar.finish_and_clear();
        println!("{name}: {} checked, {} rejected, {} failed", tally.checked, tally.rejected, tally.failed);
        if let Some(finding) = finding {
            println!(
                "case {} (smallest form found):\n{}\n{}",
                finding.seed,
                finding.case.to_text(),
                finding.why
            );
            bail!("{name} does not hold");
        }
    }
    Ok(())
}
