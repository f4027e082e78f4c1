//! Replaces guards by bail-outs.
//!
//! A `prim::BailOut` has the guarded value as its first operand, then the values that its subgraph needs: exactly those
//! that are live after the guard. If the guard fails, the subgraph computes the results of the whole function.
//!
//! The copies are bounded, so that the pass takes linear time: guards are dropped when the subgraphs together reach
//! [`GROWTH`] times the size of the graph. Guards of early values come first, because more of the program relies on
//! them. A guard in a block of another operator than `prim::If` and `prim::Loop` is dropped.

use super::continuation::{Continuation, Steps};
use super::guards;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::attr::names;
use flambeau_ir::{Attr, NodeId, Prim};
use std::sync::Arc;

/// Maximum size of all subgraphs together, in sizes of the graph.
const GROWTH: usize = 8;

/// Minimum number of nodes that all subgraphs together may have, for small graphs.
const MIN_SUBGRAPH_NODES: usize = 256;

/// Replaces guards by bail-outs, each with the rest of the program as its subgraph.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertBailouts;

impl Pass for InsertBailouts {
    const NAME: &'static str = "insert_bailouts";
    const ALIASES: &'static [&'static str] = &["insert_bailout_nodes"];
    const DOC: &'static str = "Replaces guards by bail-outs into copies of the rest of the program.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let steps = Steps::find(graph.registry());
        let mut budget = graph.node_count().saturating_mul(GROWTH).max(MIN_SUBGRAPH_NODES);
        let mut plans: Vec<(NodeId, Option<Continuation>)> = Vec::new();
        for guard in guards(graph) {
            let found = if budget == 0 { None } else { Continuation::after(graph, guard, steps.as_ref())? };
            budget = budget.saturating_sub(found.as_ref().map_or(0, |c| c.graph.node_count()));
            plans.push((guard, found));
        }
        for (guard, continuation) in plans {
            if !cx.fuel(if continuation.is_some() { "bailout" } else { "drop" }, guard) {
                break;
            }
            let mut editor = cx.edit();
            let Some(Continuation { graph, captures }) = continuation else {
                let value = editor.graph().operand(guard, 0);
                editor.replace_node(guard, &[value]);
                continue;
            };
            editor.set_op(guard, Prim::BailOut);
            editor.set_attr(guard, names::subgraph(), Attr::Graph(Arc::new(graph)));
            for value in captures {
                editor.push_operand(guard, value);
            }
        }
        Ok(())
    }
}
