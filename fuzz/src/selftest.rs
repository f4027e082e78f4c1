//! What is run for seconds under test and for longer from the command: every oracle, and every planted bug, which an
//! oracle has to find.

use crate::campaign::{Campaign, Finding, Tally};
use crate::chance::chance;
use crate::oracle::{
    AliasTruth, JournalReplay, MachineAgrees, Oracle, PassKeeps, SourceRoundTrip, TextRoundTrip,
};
use flambeau::Session;
use flambeau_rewrite::Planted;
use std::fmt;
use std::time::Duration;

/// How much is spent on each oracle.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Time.
    pub time: Duration,
    /// Cases.
    pub cases: u64,
    /// Where the cases start.
    pub seed: u64,
}

/// How an oracle fared.
pub struct Line {
    /// The oracle, or the planted bug.
    pub name: String,
    /// Cases by outcome.
    pub tally: Tally,
    /// The first failure, reduced.
    pub finding: Option<Finding>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = &self.tally;
        write!(
            f,
            "{:<40} {:>7} checked {:>6} rejected {:>3} failed",
            self.name, t.checked, t.rejected, t.failed
        )?;
        match &self.finding {
            Some(found) => write!(f, "\n{}\n{}", found.case.to_text(), found.why),
            None => Ok(()),
        }
    }
}

/// Pipelines whose meaning must be kept, besides each pass alone.
const PIPELINES: &[&str] = &["default"];

/// Passes that are looked at one by one.
const PASSES: &[&str] = &[
    "dce",
    "cse",
    "constant_propagation",
    "constant_pooling",
    "lower_simple_tuples",
    "canonicalize",
    "peephole",
    "rewrite",
    "idioms",
    "fuse",
    "remove_mutation",
    "functional_to_inplace_activation",
    "loop_unrolling",
    "propagate_shapes",
    "erase_number_types",
    "create_functional_graphs",
    "create_functional_graphs,inline_functional_graphs",
    "create_autodiff_subgraphs{threshold=1}",
    "decompose_ops",
    "fuse_linear",
];

/// The standard operators, and one of chance.
fn session() -> Session {
    let session = Session::builder().standard().ops([chance()]).build();
    session.expect("invariant: the operators fit together (tested)")
}

fn pass(session: &Session, text: &str) -> PassKeeps {
    let pipeline = session.pipeline(text).expect("invariant: standard passes are known by name");
    PassKeeps::new(text, pipeline)
}

/// Runs every oracle.
pub fn oracles(budget: &Budget) -> Vec<Line> {
    let session = session();
    let mut all: Vec<Box<dyn Oracle>> =
        vec![Box::new(TextRoundTrip), Box::new(JournalReplay), Box::new(MachineAgrees), Box::new(AliasTruth)];
    all.push(Box::new(SourceRoundTrip));
    for text in PASSES.iter().chain(PIPELINES) {
        all.push(Box::new(pass(&session, text)));
    }
    let campaign = Campaign::new(session.registry(), budget.seed);
    all.iter()
        .map(|oracle| {
            let (tally, finding) = campaign.run(&**oracle, budget.cases, budget.time, |_| {});
            Line { name: oracle.name(), tally, finding }
        })
        .collect()
}

/// Plants each bug and looks for it; a line without a finding is a bug that nobody sees.
pub fn planted(budget: &Budget) -> Vec<Line> {
    let session = session();
    let campaign = Campaign::new(session.registry(), budget.seed).favouring_chance();
    Planted::ALL
        .into_iter()
        .map(|bug| {
            let oracle = pass(&session, bug.pass()).planted(bug);
            let (tally, finding) = campaign.run(&oracle, budget.cases, budget.time, |_| {});
            Line { name: format!("planted {}", bug.name()), tally, finding }
        })
        .collect()
}
