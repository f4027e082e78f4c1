//! Inlines forked tasks whose futures are only waited for.
//!
//! Running a task at its fork is one of the legal schedules of the program, but an error of the task is raised at the wait.
//! So a task replaces its fork if running it is unobservable, or if the nodes between the fork and the first wait of the
//! same block are; otherwise it replaces this wait if neither the task nor these nodes have effects other than errors.
//! Futures with other uses (in lists, returned, carried around loops) stay, and so do tasks that check their arguments.

use super::inline::checks_arguments;
use super::run_effects::{MAX_NODES, effects, subgraph};
use crate::facets::OpRole;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{At, CompilationUnit, Effects, Fault, Graph, NodeId, Prim, ValueId};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineForkWait;

impl Pass for InlineForkWait {
    const NAME: &'static str = "inline_fork_wait";
    const DOC: &'static str = "Inlines forked tasks whose futures are only waited for.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let roles = registry.column::<OpRole>();
        let unit = cx.unit();
        loop {
            let graph = cx.graph();
            let waits = |n: NodeId| {
                roles.of(graph.op(n)) == Some(&OpRole::Wait) || graph.is_prim(n, Prim::AwaitableWait)
            };
            let forks: Vec<NodeId> = graph
                .nodes_deep()
                .filter(|&n| graph.is_prim(n, Prim::Fork))
                .filter(|&n| graph.uses(graph.result(n, 0)).all(|u| waits(u.user)))
                .filter(|&n| position(graph, unit, n).is_some() && !checks_operands(graph, n))
                .collect();
            if forks.is_empty() {
                return Ok(());
            }
            let (mut editor, mut fuel) = cx.edit_fuelled();
            for fork in forks {
                if !fuel.take("inline-fork", editor.graph(), fork) {
                    return Ok(());
                }
                let g = editor.graph();
                let attr = g.attr(fork, flambeau_ir::attr::names::subgraph()).and_then(|a| a.as_graph());
                let (Some(body), Some(position)) = (attr.cloned(), position(g, unit, fork)) else { continue };
                let future = g.result(fork, 0);
                let inputs: Vec<ValueId> = g.operands(fork).collect();
                let waiting: Vec<NodeId> = g.uses(future).map(|u| u.user).collect();
                let outputs = editor
                    .at(At::before(position))
                    .inline_graph(&body, &inputs, None)
                    .map_err(|e| PassError::new(Fault::Input, format!("the subgraph of a fork: {e}")))?;
                let [value] = outputs[..] else {
                    return Err(PassError::new(Fault::Input, "the subgraph of a fork must have one output"));
                };
                for wait in waiting {
                    editor.replace_node(wait, &[value]);
                }
                editor.erase(fork);
            }
        }
    }
}

/// Whether the task checks its arguments when it starts.
fn checks_operands(graph: &Graph, fork: NodeId) -> bool {
    let body = graph.attr(fork, flambeau_ir::attr::names::subgraph()).and_then(|a| a.as_graph());
    body.is_some_and(|body| checks_arguments(graph, graph.operands(fork), body))
}

/// Effects that no other node observes if a failing run ends at another place.
const QUIET: Effects =
    Effects::READS.union(Effects::READS_STATE).union(Effects::ALIASES).union(Effects::RAISES);

/// Returns the node before which the body of the task may be inlined: the fork, or the first wait, if the effects of the nodes
/// between them permit it. `None` if the fork must stay, as does a task that may raise and that only one branch waits for.
fn position(graph: &Graph, unit: Option<&CompilationUnit>, fork: NodeId) -> Option<NodeId> {
    let task = effects(unit, subgraph(graph, fork)?);
    if task.may_speculate() {
        return Some(fork);
    }
    let future = graph.result(fork, 0);
    let mut between = Vec::new();
    let mut after = std::iter::successors(graph.next(fork), |&n| graph.next(n)).take(MAX_NODES);
    let wait = after.find(|&node| {
        between.push((graph, node));
        graph.operands(node).next() == Some(future)
    })?;
    between.pop();
    let between = effects(unit, between);
    match between.may_speculate() {
        true => Some(fork),
        false => (QUIET.contains(task) && QUIET.contains(between)).then_some(wait),
    }
}
