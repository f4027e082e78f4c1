//! Replaces profiles by guards.
//!
//! A guard states dtype, device and sizes. It does not state what no shape rule derives, since such a guard could never
//! be eliminated: strides and whether gradients are required. Symbols of sizes become unknown sizes, because a check of
//! one value cannot compare sizes of several.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::attr::names;
use flambeau_ir::types::{Dim, TensorType};
use flambeau_ir::{Attr, AttrsId, Graph, NodeId, Prim, Type};

/// Replaces `prim::profile` nodes with an observed type by `prim::Guard` nodes. A node that observed nothing a guard
/// can state is removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertGuards;

impl Pass for InsertGuards {
    const NAME: &'static str = "insert_guards";
    const DOC: &'static str = "Replaces prim::profile nodes by guards of the observed types.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let found: Vec<(NodeId, Option<Type>)> =
            graph.nodes_deep().filter_map(|n| observed(graph, n).map(|ty| (n, guarded(ty)))).collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (node, ty) in found {
            if !fuel.take(if ty.is_some() { "guard" } else { "remove" }, editor.graph(), node) {
                break;
            }
            let g = editor.graph();
            let (value, result) = (g.operand(node, 0), g.result(node, 0));
            match ty {
                Some(ty) => {
                    let index = g.attr(node, names::index()).cloned();
                    let attrs = match index {
                        Some(index) => editor.attrs([(names::index(), index)]),
                        None => AttrsId::EMPTY,
                    };
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

/// Returns the observed type of a profile of one tensor.
fn observed(graph: &Graph, node: NodeId) -> Option<&TensorType> {
    let one = graph.operand_count(node) == 1 && graph.result_count(node) == 1;
    if !one || !graph.is_prim(node, Prim::Profile) || !graph.ty(graph.result(node, 0)).is_tensor() {
        return None;
    }
    match graph.attr(node, names::profiled_type())? {
        Attr::Type(ty) => ty.as_tensor(),
        _ => None,
    }
}

/// Returns the type that a guard states; `None` if it would state nothing. Undefined tensors have no guard.
fn guarded(observed: &TensorType) -> Option<Type> {
    let known = |d: &Dim| d.known().map_or(Dim::Unknown, Dim::Known);
    let ty = Type::tensor(TensorType {
        dtype: observed.dtype,
        device: observed.device,
        sizes: observed.sizes.as_ref().map(|sizes| sizes.iter().map(known).collect()),
        ..TensorType::default()
    });
    (!observed.undefined && ty != Type::TENSOR).then_some(ty)
}
