//! Runs all oracles for a time each, then the planted bugs: `fuzz [SECONDS] [SEED] [ORACLE]`. Without a seed, cases are
//! new in every run; the program prints the seed, which generates the same cases again. With an oracle, only that one
//! runs.
//!
//! Cases run in worker processes: this program again, as `fuzz --worker ORACLE SEED`.

use flambeau_fuzz::isolated::{IsolatedCampaign, fresh_seed, serve};
use flambeau_fuzz::worker::current_program;
use flambeau_fuzz::{Campaign, selftest};
use std::process::ExitCode;
use std::time::Duration;

/// Time limit of one case.
const LIMIT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ended = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--worker", oracle, seed] => work(oracle, seed).map(|()| true),
        _ => search(&args),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

fn work(oracle: &str, seed: &str) -> Result<(), String> {
    let session = selftest::session();
    let seed: u64 = seed.parse().map_err(|_| format!("`{seed}` is not a seed"))?;
    let campaign = Campaign::new(session.registry(), seed);
    let campaign =
        if oracle == "machine" { campaign.favouring_containers() } else { campaign.favouring_random() };
    let oracle = selftest::oracle(&session, oracle)?;
    serve(&campaign, &*oracle).map_err(|e| e.to_string())
}

/// Runs the search. Returns whether every oracle holds and every planted bug is found.
fn search(args: &[String]) -> Result<bool, String> {
    let number = |i: usize| -> Result<Option<u64>, String> {
        let text: Option<&String> = args.get(i);
        text.map(|t| t.parse().map_err(|_| format!("`{t}` is not a number: fuzz [SECONDS] [SEED] [ORACLE]")))
            .transpose()
    };
    let seconds = Duration::from_secs(number(0)?.unwrap_or(30));
    let seed = number(1)?.unwrap_or_else(fresh_seed);
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    println!("seed {seed}");
    let session = selftest::session();
    let planted = selftest::planted_names();
    let mut good = true;
    let selected = |name: &String| args.get(2).is_none_or(|only| only == name);
    for name in selftest::all(&session).into_iter().chain(planted).filter(selected) {
        let worker = || {
            let mut command = current_program()?;
            command.args(["--worker", &name, &seed.to_string()]);
            Ok(command)
        };
        let isolated = IsolatedCampaign { worker: &worker, jobs, limit: LIMIT };
        let (tally, found) = isolated.run(u64::MAX, seconds, &|_| {}).map_err(|e| e.to_string())?;
        println!("{name:<40} {tally}");
        let is_planted = name.starts_with("planted:");
        match found {
            Some(found) if !is_planted => println!("case {}:\n{}\n{}", found.number, found.text, found.why),
            Some(_) => {}
            None if is_planted => println!("no oracle finds it"),
            None => continue,
        }
        good &= is_planted && tally.failed > 0;
    }
    Ok(good)
}
