//! Insertion and removal of `prim::profile` nodes.
//!
//! The nodes have consecutive numbers in the attribute `index`, in program order. The number names the observation in
//! later versions of the graph: the guard and the bail-out that are made from a node keep it.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::attr::names;
use flambeau_ir::{At, Attr, Graph, NodeId, Prim, ValueId};
use smallvec::SmallVec;

/// Inserts a `prim::profile` node before every use of a tensor. Uses by `prim::Return` are not profiled: the value that
/// they define in the enclosing block is profiled at its own uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertProfileNodes;

impl Pass for InsertProfileNodes {
    const NAME: &'static str = "insert_profile_nodes";
    const DOC: &'static str = "Inserts a prim::profile node before every use of a tensor.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let users: Vec<NodeId> = graph
            .nodes_deep()
            .filter(|&n| !graph.is_prim(n, Prim::Profile) && has_tensors(graph, n))
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        let mut index = 0;
        for user in users {
            if !fuel.take("profile", editor.graph(), user) {
                break;
            }
            let operands: SmallVec<[ValueId; 8]> = editor.graph().operands(user).collect();
            let mut profiled: SmallVec<[(ValueId, ValueId); 4]> = SmallVec::new();
            for (position, value) in operands.into_iter().enumerate() {
                let ty = editor.graph().ty(value);
                if !ty.is_tensor() {
                    continue;
                }
                let known = profiled.iter().find(|(of, _)| *of == value).map(|&(_, by)| by);
                let result = known.unwrap_or_else(|| {
                    let loc = editor.graph().loc(user);
                    let attrs = editor.attrs([(names::index(), Attr::int(index))]);
                    let node =
                        editor.at(At::before(user)).loc(loc).insert(Prim::Profile, &[value], attrs, &[ty]);
                    index += 1;
                    let result = editor.graph().result(node, 0);
                    profiled.push((value, result));
                    result
                });
                editor.set_operand(user, position, result);
            }
        }
        Ok(())
    }
}

fn has_tensors(graph: &Graph, node: NodeId) -> bool {
    graph.operands(node).any(|v| graph.ty(v).is_tensor())
}

/// Removes `prim::profile` nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveProfileNodes;

impl Pass for RemoveProfileNodes {
    const NAME: &'static str = "remove_profile_nodes";
    const ALIASES: &'static [&'static str] = &["remove_profiling_nodes"];
    const DOC: &'static str = "Removes prim::profile nodes.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let is_copy = |n: NodeId| graph.result_count(n) <= graph.operand_count(n);
        let nodes: Vec<NodeId> =
            graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::Profile) && is_copy(n)).collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for node in nodes {
            if !fuel.take("remove", editor.graph(), node) {
                break;
            }
            let count = editor.graph().result_count(node);
            let values: SmallVec<[ValueId; 2]> = editor.graph().operands(node).take(count).collect();
            editor.replace_node(node, &values);
        }
        Ok(())
    }
}
