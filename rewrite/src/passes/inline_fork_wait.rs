//! Inlines forked tasks whose futures are only waited for.
//!
//! Running a task at its fork is one of the legal schedules of the program. An error of the task is then raised at the
//! fork instead of the wait. So a task is inlined only if a wait is in the block of the fork, or if running the task is
//! unobservable. Futures with other uses (in lists, returned, carried around loops) stay, and so do tasks that check
//! their arguments.

use super::inline::checks_arguments;
use crate::facets::OpRole;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{At, Fault, Graph, NodeId, Prim, ValueId};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineForkWait;

impl Pass for InlineForkWait {
    const NAME: &'static str = "inline_fork_wait";
    const DOC: &'static str = "Inlines forked tasks whose futures are only waited for.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let roles = registry.column::<OpRole>();
        loop {
            let graph = cx.graph();
            let waits = |n: NodeId| {
                roles.of(graph.op(n)) == Some(&OpRole::Wait) || graph.is_prim(n, Prim::AwaitableWait)
            };
            let forks: Vec<NodeId> = graph
                .nodes_deep()
                .filter(|&n| graph.is_prim(n, Prim::Fork))
                .filter(|&n| graph.uses(graph.result(n, 0)).all(|u| waits(u.user)))
                .filter(|&n| is_waited_for(graph, n) && !checks_operands(graph, n))
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
                let Some(body) = attr.cloned() else { continue };
                let future = g.result(fork, 0);
                let inputs: Vec<ValueId> = g.operands(fork).collect();
                let waiting: Vec<NodeId> = g.uses(future).map(|u| u.user).collect();
                let outputs = editor
                    .at(At::before(fork))
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

/// Whether every execution of the fork also waits for the task, or the task may be speculated: a task that only one
/// branch waits for must not raise on the other.
fn is_waited_for(graph: &Graph, fork: NodeId) -> bool {
    let body = graph.attr(fork, flambeau_ir::attr::names::subgraph()).and_then(|a| a.as_graph());
    let block = graph.parent(fork);
    let waited = graph.uses(graph.result(fork, 0)).any(|u| graph.parent(u.user) == block);
    body.is_some_and(|body| waited || body.all_effects().may_speculate())
}
