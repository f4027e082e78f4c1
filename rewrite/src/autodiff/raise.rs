//! Branches that cannot be differentiated.
//!
//! Such a branch is replaced by an error, so that the function can be differentiated as graphs; a call that takes the branch
//! is recorded on the tape.

use flambeau_ir::{At, BlockId, Editor, Graph, IValue, NodeId, Prim, Type, ValueId};

/// Replaces the nodes of the innermost branch that contains a node by an error with this message. Returns whether the node
/// is in a branch. O(nodes of the branch).
pub fn raise_in_branch(graph: &mut Graph, node: NodeId, message: &str) -> bool {
    if !graph.has_node(node) {
        return false;
    }
    let mut block = graph.parent(node);
    while let Some(owner) = graph.owner(block) {
        if graph.is_prim(owner, Prim::If) {
            raise_in(graph, block, message);
            return true;
        }
        block = graph.parent(owner);
    }
    false
}

fn raise_in(graph: &mut Graph, block: BlockId, message: &str) {
    let nodes: Vec<NodeId> = graph.nodes(block).collect();
    let outputs: Vec<ValueId> = graph.block_outputs(block).collect();
    let (ret, loc) = (graph.ret(block), nodes.first().map(|first| graph.loc(*first)));
    let mut editor = graph.edit();
    editor.at(At::start(block));
    if let Some(loc) = loc {
        editor.loc(loc);
    }
    let message = editor.constant(IValue::str(message));
    let class = editor.constant_of(IValue::None, Type::optional(Type::STR));
    editor.node(Prim::RaiseException, &[message, class], &[]);
    for (i, output) in outputs.into_iter().enumerate() {
        let ty = editor.graph().ty(output);
        let never = uninitialized(&mut editor, ty);
        editor.set_operand(ret, i, never);
    }
    for node in nodes.into_iter().rev() {
        editor.erase(node);
    }
}

/// Inserts a value that no run computes: a tuple consists of such values, so that it can be replaced by them.
pub(super) fn uninitialized(editor: &mut Editor<'_>, ty: Type) -> ValueId {
    let Some(tuple) = ty.as_tuple() else { return editor.value(Prim::Uninitialized, &[], ty) };
    let elements: Vec<ValueId> = tuple.elems.iter().map(|ty| uninitialized(editor, *ty)).collect();
    editor.value(Prim::TupleConstruct, &elements, ty)
}
