//! Property tests, limited to seconds.
//!
//! They run oracles on generated programs, check that the oracles detect planted bugs, and run every parser on random
//! bytes.

use flambeau_fuzz::Campaign;
use flambeau_fuzz::observe::{self, Precision};
use flambeau_fuzz::selftest::{CheckBudget, oracles, planted, session};
use flambeau_tests::filetest::read_case;
use proptest::prelude::*;
use std::time::Duration;

/// Minimum share of cases that an oracle must check; a fuzzer whose cases are mostly rejected tests nothing.
const LEAST_CHECKED: f64 = 0.6;

/// That of the oracle `grad`: most generated programs raise an error, write an argument, or return no float, and have no
/// gradients that could be compared.
const LEAST_DIFFERENTIATED: f64 = 0.25;

/// Number of cases for each oracle, and the minimum number of cases that each pass must change. A pass that changes
/// hardly any generated program is not tested; fragments in `fuzz/src/generate/snippets.rs` are patterns for such
/// passes.
const CASES: u64 = 200;
const LEAST_CHANGED: u64 = 1;

/// Passes that change no generated program: generated programs have no classes, so there are no objects to replace. The
/// pass's own tests, and the recorded programs with classes, run it.
const WITHOUT_FRAGMENT: &[&str] = &["pass:scalar_replacement"];

#[test]
fn every_oracle_holds_on_generated_programs() {
    // Limited by the number of cases only, so that results do not depend on the machine's load. `cargo xtask fuzz` uses
    // new seeds in every run.
    let budget = CheckBudget { time: Duration::MAX, cases: CASES, seed: 1 };
    let lines = oracles(&budget);
    let findings: Vec<String> =
        lines.iter().filter(|l| l.finding.is_some()).map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
    let mut idle = Vec::new();
    for line in &lines {
        let share = line.tally.checked as f64 / line.tally.cases() as f64;
        let least = if line.name == "grad" { LEAST_DIFFERENTIATED } else { LEAST_CHECKED };
        assert!(share >= least, "too few cases bear on it: {line}");
        let is_excepted = WITHOUT_FRAGMENT.contains(&line.name.as_str());
        if line.name.starts_with("pass:") && line.tally.changed < LEAST_CHANGED && !is_excepted {
            idle.push(line.to_string());
        }
    }
    assert!(idle.is_empty(), "passes that change hardly any generated program:\n{}", idle.join("\n"));
}

#[test]
fn planted_bugs_are_detected() {
    // The rarest take about 1,000 cases on average.
    let budget = CheckBudget { time: Duration::MAX, cases: 10_000, seed: 2 };
    for line in planted(&budget) {
        assert!(line.finding.is_some(), "no oracle sees {line}");
    }
}

#[test]
fn reproducers_read_back() {
    let session = session();
    let campaign = Campaign::new(session.registry(), 3);
    for case in (0..150).map(|i| campaign.case(i)) {
        let text = case.to_text();
        let again = read_case(&text, session.registry()).unwrap_or_else(|why| panic!("{why}\n{text}"));
        assert_eq!(again.to_text(), text, "the text reads back as another case");
        let (want, got) =
            (observe::by_reference(&case.graph, &case), observe::by_reference(&again.graph, &again));
        if let Err(why) = observe::same(&want, &got, Precision::Bits) {
            panic!("{why}\n{text}");
        }
    }
}

fn registry() -> std::sync::Arc<flambeau::ir::Registry> {
    flambeau_ops::registry()
}

/// Fragments of programs, so that random text gets past the first token.
const PIECES: &[&str] = &[
    "graph(",
    "%x",
    " : Tensor",
    "):\n",
    "  ",
    " = ",
    "aten::add(",
    "%1",
    ", ",
    ")",
    "prim::Constant[value=",
    "1",
    "]()",
    "block0(",
    "-> (",
    "return (",
    "prim::If(",
    "prim::Loop(",
    "\n",
    "int[]",
    "\"",
    "{",
    "with prim::FusionGroup_0 = ",
    "def f(x: int):\n",
    "  return x\n",
    "if x:\n",
    "while ",
    "for i in range(",
    "[",
    "]",
    "(",
    "-",
    "lambda",
    "'''",
    "\\",
    "class A:\n",
    "\t",
    "é",
    "\0",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_breaks_the_readers(picks in prop::collection::vec(0usize..PIECES.len(), 0..80)) {
        let text: String = picks.iter().map(|&i| PIECES[i]).collect();
        flambeau_fuzz::raw::ir(text.as_bytes(), &registry());
        flambeau_fuzz::raw::source(text.as_bytes());
    }

    #[test]
    fn no_bytes_break_the_readers(data in prop::collection::vec(any::<u8>(), 0..400)) {
        flambeau_fuzz::raw::ir(&data, &registry());
        flambeau_fuzz::raw::source(&data);
        flambeau_fuzz::raw::pickle(&data);
        flambeau_fuzz::raw::archive(&data, &registry());
    }
}
