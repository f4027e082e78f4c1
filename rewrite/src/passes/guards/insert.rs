//! Replaces profiles by guards.
//!
//! A guard of a tensor states dtype, device and sizes. It does not state properties that no shape rule derives, since such a guard could
//! never be eliminated: strides and whether gradients are required. Symbols of sizes become unknown sizes, because a check of
//! one value cannot compare sizes of several. A guard of another value states its type, a guard of a list its length
//! (attribute `length`).

use crate::pass::{Pass, PassCx, PassError};
use flambeau_analysis::guards::{MAX_GUARDED_LENGTH, guarded_length};
use flambeau_ir::attr::names;
use flambeau_ir::types::{Dim, TensorType};
use flambeau_ir::{Attr, Graph, NodeId, Prim, Symbol, Type};

/// Replaces `prim::profile` nodes with an observed type by `prim::Guard` nodes. A node that observed nothing a guard
/// can state is removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertGuards;

impl Pass for InsertGuards {
    const NAME: &'static str = "insert_guards";
    const DOC: &'static str = "Replaces prim::profile nodes by guards of the observed types.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let found: Vec<(NodeId, Option<Type>)> = graph
            .nodes_deep()
            .filter_map(|n| observed(graph, n).map(|ty| (n, guarded(graph, n, ty))))
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (node, ty) in found {
            if !fuel.take(if ty.is_some() { "guard" } else { "remove" }, editor.graph(), node) {
                break;
            }
            let g = editor.graph();
            let (value, result) = (g.operand(node, 0), g.result(node, 0));
            match ty {
                Some(ty) => {
                    let length = length_of(g, node).map(|n| (names::length(), Attr::int(n as i64)));
                    let index = g.attr(node, names::index()).map(|index| (names::index(), index.clone()));
                    let kept: Vec<(Symbol, Attr)> = index.into_iter().chain(length).collect();
                    let attrs = editor.attrs(kept);
                    editor.set_op(node, Prim::Guard);
                    editor.set_attrs(node, attrs);
                    editor.set_type(result, ty);
                }
                None => editor.replace_node(node, &[value]),
            }
        }
        Ok(())
    }
}

/// Returns the observed type of a profile of one value.
fn observed(graph: &Graph, node: NodeId) -> Option<Type> {
    let one = graph.operand_count(node) == 1 && graph.result_count(node) == 1;
    if !one || !graph.is_prim(node, Prim::Profile) {
        return None;
    }
    match graph.attr(node, names::profiled_type())? {
        Attr::Type(ty) => Some(*ty),
        _ => None,
    }
}

/// Returns the length that a guard of a list states. Code does not profit from the lengths of long lists.
fn length_of(graph: &Graph, node: NodeId) -> Option<usize> {
    guarded_length(graph, node).filter(|&n| n <= MAX_GUARDED_LENGTH)
}

/// Returns the type that a guard states; `None` if it would state nothing. Undefined tensors have no guard.
fn guarded(graph: &Graph, node: NodeId, observed: Type) -> Option<Type> {
    let declared = graph.ty(graph.result(node, 0));
    let Some(facts) = observed.as_tensor() else {
        return (observed != declared || length_of(graph, node).is_some()).then_some(observed);
    };
    let known = |d: &Dim| d.known().map_or(Dim::Unknown, Dim::Known);
    let ty = Type::tensor(TensorType {
        dtype: facts.dtype,
        device: facts.device,
        sizes: facts.sizes.as_ref().map(|sizes| sizes.iter().map(known).collect()),
        ..TensorType::default()
    });
    (!facts.undefined && ty != Type::TENSOR).then_some(ty)
}
