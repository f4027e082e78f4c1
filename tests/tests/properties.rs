//! What must hold of every program, tried for seconds: the oracles on generated programs, the planted bugs they have to
//! find, and raw bytes at every reader.

use flambeau_fuzz::selftest::{Budget, oracles, planted};
use proptest::prelude::*;
use std::time::Duration;

/// Share of cases that must bear on the question: a fuzzer that rejects what it makes tests nothing.
const LEAST_CHECKED: f64 = 0.6;

#[test]
fn every_oracle_holds_on_generated_programs() {
    let budget = Budget { time: Duration::from_secs(4), cases: 400, seed: 1 };
    for line in oracles(&budget) {
        assert!(line.finding.is_none(), "{line}");
        let all = line.tally.checked + line.tally.rejected + line.tally.timeout;
        assert!(line.tally.checked as f64 >= LEAST_CHECKED * all as f64, "too few cases bear on it: {line}");
        assert!(line.tally.checked > 0, "nothing was checked: {line}");
    }
}

#[test]
fn planted_bugs_are_found() {
    // A limit in cases alone: how many fit into seconds depends on what else the machine does.
    let budget = Budget { time: Duration::MAX, cases: 3_000, seed: 2 };
    for line in planted(&budget) {
        assert!(line.finding.is_some(), "nobody sees {line}");
    }
}

fn registry() -> std::sync::Arc<flambeau::ir::Registry> {
    flambeau::ops::registry()
}

/// Pieces that programs are made of, so that random text gets past the first token.
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
