//! Errors that passes may remove: an operator that fails may be removed together with its error, if its results and
//! writes are not needed.
//!
//! PyTorch's dead code elimination removes operators that may raise, and other passes (tuple lowering, unrolling,
//! inlining) make more operators dead. The set of correct results of a failing program is therefore a property of its
//! run, not of its graph. This module computes the set by runs that continue after failing operators, the first, the
//! first two, …. The results and writes of such an operator are *poison* (LLVM's term), as are all values computed from them. The
//! errors may be removed only if no poison value is needed: printed, raised, a condition, a result, or memory visible
//! to the caller. A query of a poison value that types or shape analysis answer does not need it ([`poison`]).

mod continued;
mod poison;
#[cfg(test)]
mod tests;
mod usage;

use crate::case::Case;
use crate::observe::{self, Observation};
use continued::{ContinuedRun, ErrorId, GraphAddress, Removed};
use flambeau_exec::reference::run_with_policy;
use flambeau_ir::attr::{Attr, names};
use flambeau_ir::{CompilationUnit, Graph, IValue, NodeId, Prim};
use flambeau_rewrite::passes::inline::Inline;
use flambeau_rewrite::{Manager, Pipeline};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Maximum number of runs of one program that try the choices in order of their length.
const RUNS: usize = 24;

/// Maximum number of graphs (tasks, functions) with failing operators for which both choices are tried: removing their
/// unneeded errors, and keeping all of their errors.
const GRAPHS: usize = 4;

/// Maximum number of runs that search the choice that removes most errors. Each finds one that is needed.
const SEARCH_RUNS: usize = 256;

/// The observations of a failing program that are accepted in place of its own.
pub(crate) struct Allowed {
    pub(crate) observations: Vec<Observation>,
    /// Whether an operator reported that it does not support its operands, perhaps in a task. A pass may remove an unneeded
    /// view, and the operator may support its operands then.
    pub(crate) has_unsupported: bool,
}

/// Returns the observations of a failing program that are accepted in place of its own, because passes may remove
/// operators with unneeded results. Each item belongs to one choice of removed errors.
///
/// Usually the first remaining error ends the run, so a choice is the number of errors before it that are removed. A failing
/// task does not end the run, so further errors may follow a remaining one, and the choices are too many to try all. For such
/// programs, only those choices are tried that remove every error with an unneeded result, as dead code elimination does, in
/// all graphs or in some of them ([`without_unneeded_errors`]), or only the first errors ([`without_first_errors`]).
///
/// A pass removes a node, and with it the errors of every iteration, or some of the copies of a node that it unrolled. So the
/// choices are tried for nodes, and for single errors.
pub(crate) fn allowed_observations(case: &Case) -> Allowed {
    let mut allowed = Allowed { observations: Vec::new(), has_unsupported: false };
    let own = &case.with_graph(with_own_bodies(&case.graph, &case.unit));
    let calls =
        |n: NodeId| case.graph.is_prim(n, Prim::CallFunction) || case.graph.is_prim(n, Prim::CallMethod);
    let mut are_all = true;
    // A call that is not inlined may write its operands.
    for case in [case, own].into_iter().take(1 + usize::from(case.graph.nodes_deep().any(calls))) {
        are_all &= allowed.try_choices(case, Removed::OfNodes);
        are_all &= allowed.try_choices(case, Removed::These);
    }
    if !are_all {
        let case = own;
        let failing = run_past_errors(case, Removed::AllBut(BTreeSet::new(), BTreeSet::new())).graphs;
        for choice in 0..1_usize << failing.len().min(GRAPHS) {
            let kept = failing.iter().enumerate().filter(|(i, _)| choice >> i & 1 == 1).map(|(_, g)| *g);
            let kept = kept.collect();
            allowed.observations.extend(without_unneeded_errors(case, &kept));
            allowed.observations.extend(without_first_errors(case, &kept));
        }
    }
    allowed
}

/// Returns the graph with a copy of its own of the body of each task and of each function that it calls: these have the errors of
/// their own graphs, also if a function or another task has an equal one. A pass may inline a call in the program, and not in a task.
fn with_own_bodies(graph: &Graph, unit: &Arc<CompilationUnit>) -> Graph {
    let mut made = graph.clone();
    // A call that cannot be inlined keeps the errors of the shared function.
    _ = Manager::new().unit(unit).run(&mut made, &Pipeline::new().then(Inline::default()));
    let forks: Vec<NodeId> = made.nodes_deep().filter(|&n| made.is_prim(n, Prim::Fork)).collect();
    for fork in forks {
        if let Some(body) = made.attr(fork, names::subgraph()).and_then(|attr| attr.as_graph()) {
            let body = Attr::Graph(Arc::new(with_own_bodies(&body.clone(), unit)));
            made.edit().set_attr(fork, names::subgraph(), body);
        }
    }
    made
}

impl Allowed {
    /// Tries choices, the smaller ones first. Returns whether these were all.
    fn try_choices(&mut self, case: &Case, removed: fn(Vec<bool>) -> Removed) -> bool {
        let mut choices = VecDeque::from([Vec::new()]);
        for _ in 0..RUNS {
            let Some(choice) = choices.pop_front() else { return true };
            let end = run_past_errors(case, removed(choice.clone()));
            self.has_unsupported |= end.has_unsupported;
            if !end.needed.is_empty() {
                continue;
            }
            if !choice.is_empty() {
                self.observations.push(end.observation);
            }
            // Each choice is generated once: from the shorter choice without its last removal.
            choices.extend((choice.len()..end.choices).map(|last| {
                let mut more = choice.clone();
                more.resize(last, false);
                more.push(true);
                more
            }));
        }
        choices.is_empty()
    }
}

/// Returns the observation of the run without all errors whose operators have unneeded results, except those of nodes of
/// some graphs: the errors that turn
/// out to be needed remain in the next run.
fn without_unneeded_errors(case: &Case, graphs: &BTreeSet<GraphAddress>) -> Option<Observation> {
    let mut kept = BTreeSet::new();
    for _ in 0..SEARCH_RUNS {
        let end = run_past_errors(case, Removed::AllBut(kept.clone(), graphs.clone()));
        if end.needed.is_empty() {
            return Some(end.observation);
        }
        kept.extend(end.needed);
    }
    None
}

/// Returns the observations of the runs without the first error, the first two, …, except those of nodes of some graphs. A pass
/// removes the errors of copies of a node that it unrolled, and those of the loop behind them remain.
fn without_first_errors(case: &Case, graphs: &BTreeSet<GraphAddress>) -> Vec<Observation> {
    let mut found = Vec::new();
    for count in 1..RUNS {
        let end = run_past_errors(case, Removed::First(count, graphs.clone()));
        let is_last = end.choices < count;
        found.extend(end.needed.is_empty().then_some(end.observation));
        if is_last {
            break;
        }
    }
    found
}

/// The end of a run that continued after errors.
struct ContinuedEnd {
    observation: Observation,
    /// Number of errors or, if they are chosen by node, of nodes with errors.
    choices: usize,
    /// The removed errors of operators with needed results. The observation is accepted if there are none.
    needed: BTreeSet<ErrorId>,
    has_unsupported: bool,
    /// The graphs whose nodes had errors, in the order of their first errors.
    graphs: Vec<GraphAddress>,
}

fn run_past_errors(case: &Case, removed: Removed) -> ContinuedEnd {
    let mut run = ContinuedRun::new(removed, Arc::clone(&case.unit));
    let observation = observe::run(case, |inputs, host| {
        let handles = inputs.clone();
        let end = run_with_policy(&case.graph, inputs, &*case.unit, host, &mut run);
        let visible: Vec<IValue> = end.iter().flatten().chain(&handles).cloned().collect();
        run.needed.extend(run.causes(&visible));
        end
    });
    let mut graphs: Vec<GraphAddress> = Vec::new();
    for ((graph, _), _) in &run.errors {
        if !graphs.contains(graph) {
            graphs.push(*graph);
        }
    }
    ContinuedEnd {
        observation,
        graphs,
        choices: match run.removed {
            Removed::OfNodes(_) => run.errors.len(),
            Removed::These(_) | Removed::AllBut(..) | Removed::First(..) => {
                run.errors.iter().map(|of_node| of_node.1).sum()
            }
        },
        needed: run.needed,
        has_unsupported: run.has_unsupported,
    }
}
