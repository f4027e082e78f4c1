//! Fuzzes a pipeline: generated programs run before and after it, and the first difference is reduced.
//!
//! Run: `cargo run --release -p flambeau-fuzz --example fuzz_my_pass`

use flambeau::Session;
use flambeau_fuzz::Campaign;
use flambeau_fuzz::oracle::PassEquivalence;
use std::time::Duration;

fn main() -> Result<(), flambeau::Error> {
    let session = Session::standard()?;
    let campaign = Campaign::new(session.registry(), 1);
    let oracle = PassEquivalence::new("mine", session.pipeline("cse,constant_propagation,dce")?);
    let (tally, finding) = campaign.run(&oracle, 500, Duration::from_secs(20), |_| {});
    println!("{tally}");
    if let Some(finding) = finding {
        println!("{}\n{}", finding.why, finding.case.to_text());
    }
    Ok(())
}
