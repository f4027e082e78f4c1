//! The checks that run for seconds in tests and for longer in the commands: every oracle, one oracle for every
//! registered pass, and every planted bug, which an oracle must find.

use crate::campaign::{Campaign, Finding, Tally};
use crate::oracle::{
    AliasTruth, AliasedInputsAgree, FactsHold, GradientsAgree, JournalReplay, MachineAgrees, Oracle,
    PassEquivalence, PlansAgree, SourceRoundTrip, TextRoundTrip,
};
use crate::planted::{self, Bug, GradBug, PlanBug};
use crate::seeded::seeded_random;
use flambeau::Session;
use flambeau_rewrite::{InjectedBug, PassLibrary, Pipeline};
use std::fmt;
use std::time::Duration;

/// Budget of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckBudget {
    /// Time for all oracles together.
    pub time: Duration,
    /// Cases for each oracle.
    pub cases: u64,
    /// Seed of the first case.
    pub seed: u64,
}

/// Result of an oracle.
pub struct OracleResult {
    /// The oracle, or the planted bug.
    pub name: String,
    /// Cases by outcome.
    pub tally: Tally,
    /// The first failure, reduced.
    pub finding: Option<Finding>,
}

impl fmt::Display for OracleResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<40} {}", self.name, self.tally)?;
        match &self.finding {
            Some(found) => write!(f, "\n{}\n{}", found.case.to_text(), found.why),
            None => Ok(()),
        }
    }
}

/// Passes and named pipelines that are not tested on generated programs, with reasons.
pub const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "dce_with_side_effects",
        "drops writes and prints without an effect on results: it is for exporters, which need only values",
    ),
    ("insert_guards", PROFILED),
    ("move_guards_to_definitions", PROFILED),
    ("coalesce_guards", PROFILED),
    ("eliminate_guards", PROFILED),
    ("insert_bailouts", PROFILED),
    ("guards", PROFILED),
    ("specialized", PROFILED),
];

/// Reason for the exception of passes between profiles and bail-outs.
const PROFILED: &str = "changes only programs with types that runs observed: the oracle `deopt` profiles programs and \
                        compares what these passes make of them";

/// Passes that are tested in another pipeline than their name: they undo or continue the work of another pass, or have
/// a threshold below which they change nothing.
const PREPARED: &[(&str, &str)] = &[
    ("inline_functional_graphs", "create_functional_graphs,inline_functional_graphs"),
    ("create_autodiff_subgraphs", "create_autodiff_subgraphs{threshold=1}"),
    (
        "inline_autodiff_subgraphs",
        "create_autodiff_subgraphs{threshold=1},inline_autodiff_subgraphs{threshold=9}",
    ),
    ("inline_fork_wait", "inline,inline_fork_wait"),
    ("insert_forks", "insert_forks{cost=1}"),
    ("remove_profile_nodes", "insert_profile_nodes,remove_profile_nodes"),
    ("erase_shape_information", "propagate_shapes,erase_shape_information"),
];

/// Pipelines that are tested on arguments and constants that share memory: all whose decisions depend on aliasing.
const SHARING_PIPELINES: &[&str] = &[
    "default",
    "dce",
    "cse",
    "constant_propagation",
    "egraph",
    "fuse",
    "remove_mutation",
    "batch_mm",
    "functional_to_inplace_activation",
    "insert_forks{cost=1}",
];

/// Pipelines that are tested in addition to each single pass.
const PIPELINES: &[&str] = &["default", "inline,default", "egraph{accept=rounding},dce"];

/// Returns the pipelines that are tested on generated programs: one for every pass of a library except the
/// [`EXCEPTIONS`], and one for every named pipeline.
pub fn pipelines(library: &PassLibrary) -> Vec<String> {
    let is_tried = |name: &&str| !EXCEPTIONS.iter().any(|(exception, _)| exception == name);
    let prepared =
        |name: &str| PREPARED.iter().find(|(pass, _)| *pass == name).map_or(name, |(_, p)| *p).to_owned();
    let passes = library.passes().map(|entry| entry.name).filter(is_tried).map(prepared);
    let named = library.pipelines().map(|(name, _)| name).filter(is_tried).map(str::to_owned);
    let mut all: Vec<String> = passes.chain(named).collect();
    for text in PIPELINES {
        let known = Pipeline::parse(text, library).is_ok() && !all.iter().any(|p| p == text);
        all.extend(known.then(|| (*text).to_owned()));
    }
    all
}

/// Returns an oracle by name: `text`, `source`, `journal`, `machine`, `alias`, `facts`, `deopt`, `grad`,
/// `pass:PIPELINE`, `sharing:PIPELINE`, or `planted:BUG`.
///
/// # Errors
/// If there is no such oracle, or the pipeline does not parse.
pub fn oracle(session: &Session, name: &str) -> Result<Box<dyn Oracle>, String> {
    Ok(match name {
        "text" => Box::new(TextRoundTrip),
        "source" => Box::new(SourceRoundTrip),
        "journal" => Box::new(JournalReplay),
        "machine" => Box::new(MachineAgrees),
        "alias" => Box::new(AliasTruth),
        "facts" => Box::new(FactsHold),
        "grad" => Box::new(GradientsAgree::new(session)),
        "deopt" => Box::new(PlansAgree::new(session.passes())?),
        _ => {
            let pipeline = |text: &str| session.pipeline(text).map_err(|e| e.to_string());
            match name.split_once(':') {
                Some(("pass", text)) => Box::new(PassEquivalence::new(text, pipeline(text)?)),
                Some(("sharing", text)) => Box::new(AliasedInputsAgree::new(text, pipeline(text)?)),
                Some(("planted", bug)) => wrong(session, bug).ok_or_else(|| unknown(name))?,
                _ => return Err(unknown(name)),
            }
        }
    })
}

fn unknown(name: &str) -> String {
    format!("unknown oracle `{name}`; known are {}", NAMES.join(", "))
}

/// Returns the oracle over a pass or over plans with a planted bug.
fn wrong(session: &Session, bug: &str) -> Option<Box<dyn Oracle>> {
    if let Some(bug) = Bug::ALL.into_iter().find(|b| b.name() == bug) {
        return Some(Box::new(planted::oracle(bug)));
    }
    if let Some(bug) = PlanBug::ALL.into_iter().find(|b| b.name() == bug) {
        return Some(Box::new(PlansAgree::new(session.passes()).ok()?.planted(bug)));
    }
    if let Some(bug) = GradBug::ALL.into_iter().find(|b| b.name() == bug) {
        return Some(Box::new(GradientsAgree::new(session).planted(bug)));
    }
    let bug = InjectedBug::ALL.into_iter().find(|b| b.name() == bug)?;
    let pipeline = session.pipeline(bug.pass()).ok()?;
    Some(Box::new(PassEquivalence::new(bug.pass(), pipeline).planted(bug)))
}

/// Returns the names of the oracles over passes and plans with planted bugs.
pub fn planted_names() -> Vec<String> {
    let switches = InjectedBug::ALL.into_iter().map(InjectedBug::name);
    let passes = switches.chain(Bug::ALL.into_iter().map(Bug::name));
    let plans = PlanBug::ALL.into_iter().map(PlanBug::name);
    let grads = GradBug::ALL.into_iter().map(GradBug::name);
    passes.chain(plans).chain(grads).map(|name| format!("planted:{name}")).collect()
}

/// The names of the oracles, except those of passes.
pub const NAMES: [&str; 8] = ["text", "source", "journal", "machine", "alias", "facts", "deopt", "grad"];

/// Returns the names of all oracles over a session.
pub fn all(session: &Session) -> Vec<String> {
    let passes = pipelines(session.passes()).into_iter().map(|text| format!("pass:{text}"));
    let shared = SHARING_PIPELINES.iter().map(|text| format!("sharing:{text}"));
    NAMES.iter().map(|&name| name.to_owned()).chain(passes).chain(shared).collect()
}

/// Returns a session with the standard operators, and one whose result depends on the run's seed.
///
/// # Panics
/// Never in a build whose tests pass.
pub fn session() -> Session {
    let session = Session::builder().standard().ops([seeded_random()]).build();
    session.expect("invariant: the operators fit together (tested)")
}

/// Runs every oracle.
pub fn oracles(budget: &CheckBudget) -> Vec<OracleResult> {
    let session = session();
    lines(&session, budget, all(&session))
}

/// Plants each bug and searches for it; a line without a finding is a bug that no oracle detects.
pub fn planted(budget: &CheckBudget) -> Vec<OracleResult> {
    lines(&session(), budget, planted_names())
}

fn lines(session: &Session, budget: &CheckBudget, names: Vec<String>) -> Vec<OracleResult> {
    let campaign = Campaign::new(session.registry(), budget.seed).favouring_random();
    let made =
        names.iter().map(|name| oracle(session, name).expect("invariant: these names are oracles (tested)"));
    let found = campaign.run_all(&made.collect::<Vec<_>>(), budget.cases, budget.time);
    names
        .into_iter()
        .zip(found)
        .map(|(name, (tally, finding))| OracleResult { name, tally, finding })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_programs_verify() {
        let session = session();
        let campaign = Campaign::new(session.registry(), 5);
        for case in (0..200).map(|i| campaign.case(i)) {
            if let Err(e) = flambeau_ir::verify::verify_with(&case.graph, &*case.unit) {
                panic!("{e}\n{}", case.to_text());
            }
        }
    }

    #[test]
    fn every_pass_is_tested_or_excepted() {
        let session = session();
        let tried = pipelines(session.passes());
        for entry in session.passes().passes() {
            let is_tried = tried.iter().any(|text| {
                session.pipeline(text).is_ok_and(|p| p.pass_names().any(|name| name == entry.name))
            });
            let is_excepted = EXCEPTIONS.iter().any(|(name, _)| *name == entry.name);
            assert!(is_tried != is_excepted, "{}: tried {is_tried}, excepted {is_excepted}", entry.name);
        }
        let names = EXCEPTIONS.iter().chain(PREPARED).map(|(name, _)| name);
        names.for_each(|name| assert!(session.has_pass(name), "there is no pass {name}"));
        assert!(EXCEPTIONS.iter().all(|(_, reason)| !reason.is_empty()));
        all(&session)
            .iter()
            .chain(&planted_names())
            .for_each(|name| assert!(oracle(&session, name).is_ok(), "{name}"));
    }
}
