//! Tasks that are only waited for are computed where they are forked.
//!
//! That is one of the orders in which a program's tasks may run. An error of the task is raised by the fork then, and not
//! by who waits. Futures that go anywhere else (into lists, out of the graph, around loops) stay futures.

use crate::facets::Role;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{At, Fault, NodeId, Prim, ValueId};

/// See the module's head.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineForkWait;

impl Pass for InlineForkWait {
    const NAME: &'static str = "inline_fork_wait";
    const DOC: &'static str = "computes tasks that are only waited for where they are forked";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let roles = registry.column::<Role>();
        loop {
            let graph = cx.graph();
            let waits = |n: NodeId| {
                roles.of(graph.op(n)) == Some(&Role::Wait) || graph.is_prim(n, Prim::AwaitableWait)
            };
            let forks: Vec<NodeId> = graph
                .nodes_deep()
                .filter(|&n| graph.is_prim(n, Prim::Fork))
                .filter(|&n| graph.uses(graph.result(n, 0)).all(|u| waits(u.user)))
                .filter(|&n| graph.attr(n, flambeau_ir::attr::names::subgraph()).is_some())
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
                    .map_err(|e| PassError::new(Fault::Input, format!("the graph of a fork: {e}")))?;
                let [value] = outputs[..] else {
                    return Err(PassError::new(Fault::Input, "the graph of a fork gives one value"));
                };
                for wait in waiting {
                    editor.replace_node(wait, &[value]);
                }
                editor.erase(fork);
            }
        }
    }
}
