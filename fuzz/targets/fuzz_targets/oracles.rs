//! Programs generated from the bytes, checked by the oracle that the first byte selects.

#![no_main]

use flambeau_fuzz::selftest;
use flambeau_fuzz::{CheckOutcome, OperatorPool, Oracle};
use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static SETUP: OnceLock<(OperatorPool, Vec<Box<dyn Oracle>>)> = OnceLock::new();
    let (operators, oracles) = SETUP.get_or_init(|| {
        let session = selftest::session();
        let names = selftest::all(&session);
        let oracles = names.iter().filter_map(|name| selftest::oracle(&session, name).ok());
        (OperatorPool::new(session.registry()), oracles.collect())
    });
    // The bytes select the oracle as well: checking all of them on every input would slow the search down.
    let oracle = &oracles[data.first().map_or(0, |&b| usize::from(b)) % oracles.len()];
    let case = operators.case(data);
    if let CheckOutcome::Failed(why) = oracle.check(&case) {
        panic!("{}: {why}\n{}", oracle.name(), case.to_text());
    }
});
