//! All oracles for a while each, then the planted bugs: `fuzz [SECONDS] [SEED]`.

use flambeau_fuzz::selftest::{Budget, oracles, planted};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u64>().ok());
    let seconds = args.next().flatten().unwrap_or(30);
    let seed = args.next().flatten().unwrap_or(0);
    let budget = Budget { time: Duration::from_secs(seconds), cases: u64::MAX, seed };
    let mut failed = false;
    for line in oracles(&budget) {
        println!("{line}");
        failed |= line.finding.is_some();
    }
    for line in planted(&budget) {
        println!("{line}");
        failed |= line.finding.is_none();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
