//! Forces guards of plans to fail until a number of failures is reached, and stops at the first run that differs from the
//! reference evaluator. Usage: `deopt [FAILURES] [SEED] [FIRST CASE]`.

use flambeau_fuzz::oracle::PlansAgree;
use flambeau_fuzz::{Campaign, CheckOutcome, Oracle, selftest};
use std::time::Instant;

/// Number of cases between two lines of progress.
const PROGRESS: u64 = 2_000;

fn main() -> Result<(), String> {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let wanted = numbers.next().transpose().map_err(|e| e.to_string())?.unwrap_or(1_000_000);
    let seed = numbers.next().transpose().map_err(|e| e.to_string())?.unwrap_or(1);
    let first = numbers.next().transpose().map_err(|e| e.to_string())?.unwrap_or(0);
    let session = selftest::session();
    let oracle = PlansAgree::new(session.passes())?;
    let campaign = Campaign::new(session.registry(), seed);
    let (start, mut cases) = (Instant::now(), first);
    while oracle.failures() < wanted {
        let case = campaign.case(cases);
        if let CheckOutcome::Failed(why) = oracle.check(&case) {
            return Err(format!("case {cases} of seed {seed}: {why}\n{}", case.to_text()));
        }
        cases += 1;
        if (cases - first).is_multiple_of(PROGRESS) {
            eprintln!("{} failed guards in {} cases", oracle.failures(), cases - first);
        }
    }
    let (failures, seconds) = (oracle.failures(), start.elapsed().as_secs_f64());
    let cases = cases - first;
    println!("{failures} failed guards in {cases} cases, none different, {seconds:.0} s");
    Ok(())
}
