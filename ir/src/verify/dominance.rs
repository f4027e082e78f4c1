//! Phase 3: the definition of every operand dominates its use.
//!
//! The definition comes earlier in the same block or in an enclosing block.

use super::{Findings, VerifyError};
use crate::graph::{Graph, ValueSet, WalkStep};
use crate::id::{BlockId, Entity, NodeId, ValueId};

/// Walks the graph in program order with the set of values in scope. At the end of a block, the values defined in the
/// block are removed from the set.
pub(super) fn check(g: &Graph, findings: &mut Findings) {
    let mut scope = ValueSet::new();
    let mut defined: Vec<ValueId> = Vec::new();
    let mut marks: Vec<usize> = Vec::new();
    for step in g.walk(g.root()) {
        match step {
            WalkStep::Enter(block) => {
                marks.push(defined.len());
                define(g, g.param(block), &mut scope, &mut defined);
            }
            WalkStep::Node(node) => {
                uses(g, node, &scope, findings);
                // Results of a node with blocks are not in scope inside its blocks; they are added after the node.
                if g.block_count(node) == 0 {
                    define(g, node, &mut scope, &mut defined);
                }
            }
            WalkStep::Leave(block) => {
                uses(g, g.ret(block), &scope, findings);
                leave(&mut scope, &mut defined, &mut marks, block);
            }
            WalkStep::Done(node) => define(g, node, &mut scope, &mut defined),
        }
    }
}

fn leave(scope: &mut ValueSet, defined: &mut Vec<ValueId>, marks: &mut Vec<usize>, _block: BlockId) {
    let mark = marks.pop().expect("invariant: every block that is left was entered");
    for v in defined.drain(mark..) {
        scope.remove(v);
    }
}

fn define(g: &Graph, node: NodeId, scope: &mut ValueSet, defined: &mut Vec<ValueId>) {
    for v in g.results(node) {
        scope.insert(v);
        defined.push(v);
    }
}

fn uses(g: &Graph, node: NodeId, scope: &ValueSet, findings: &mut Findings) {
    for (i, v) in g.operands(node).enumerate() {
        if !scope.contains(v) {
            let message = format!("operand {i}, %{}, is not defined where it is used", g.name(v));
            findings.push(
                VerifyError::new("V020", node, message).with_entity(Entity::Value(v)).related(g.def(v)),
            );
        }
    }
}
