//! Forces guards of plans to fail until a number of failures is reached, and stops at the first run that differs from the
//! reference evaluator. Usage: `deopt [FAILURES] [SEED]`.

use flambeau_fuzz::oracle::PlansAgree;
use flambeau_fuzz::{Campaign, CheckOutcome, Oracle, selftest};
use std::time::Instant;

fn main() -> Result<(), String> {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let wanted = numbers.next().transpose().map_err(|e| e.to_string())?.unwrap_or(1_000_000);
    let seed = numbers.next().transpose().map_err(|e| e.to_string())?.unwrap_or(1);
    let session = selftest::session();
    let oracle = PlansAgree::new(session.passes())?;
    let campaign = Campaign::new(session.registry(), seed);
    let (start, mut cases) = (Instant::now(), 0);
    while oracle.failures() < wanted {
        let case = campaign.case(cases);
        if let CheckOutcome::Failed(why) = oracle.check(&case) {
            return Err(format!("case {cases} of seed {seed}: {why}\n{}", case.to_text()));
        }
        cases += 1;
    }
    let (failures, seconds) = (oracle.failures(), start.elapsed().as_secs_f64());
    println!("{failures} failed guards in {cases} cases, none different, {seconds:.0} s");
    Ok(())
}
