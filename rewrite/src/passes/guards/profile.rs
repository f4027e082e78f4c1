//! Insertion and removal of `prim::profile` nodes.
//!
//! The nodes have consecutive numbers in the attribute `index`, in program order. The number names the observation in
//! later versions of the graph: the guard and the bail-out that are made from a node keep it.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_analysis::AliasDb;
use flambeau_ir::attr::names;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{At, Attr, Graph, NodeId, Prim, Type, ValueId};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// Inserts a `prim::profile` node before every use of a tensor, of a value whose type admits several kinds (optionals,
/// unions, `Any`, `number`), and of a list that no node writes to. Uses by `prim::Return` are not profiled: the value
/// that they define in the enclosing block is profiled at its own uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertProfileNodes;

impl Pass for InsertProfileNodes {
    const NAME: &'static str = "insert_profile_nodes";
    const DOC: &'static str = "Inserts a prim::profile node before every use of a tensor, of a value whose type admits several kinds, and of a list that no node writes to.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let has_lists = graph.values_in_order().any(|v| is_list(graph.ty(v)));
        let written: HashSet<ValueId, FxBuildHasher> = if has_lists {
            let (graph, aliases) = cx.with::<AliasDb>();
            graph.values_in_order().filter(|&v| is_list(graph.ty(v)) && aliases.is_written(v)).collect()
        } else {
            HashSet::default()
        };
        let graph = cx.graph();
        let is_observed = |graph: &Graph, v: ValueId| {
            let ty = graph.ty(v);
            let is_known = !ty.is_tensor() && graph.is_prim(graph.def(v), Prim::Constant);
            is_specializable(ty) && !is_known && !written.contains(&v)
        };
        let users: Vec<NodeId> = graph
            .nodes_deep()
            .filter(|&n| !graph.is_prim(n, Prim::Profile) && graph.operands(n).any(|v| is_observed(graph, v)))
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
                if !is_observed(editor.graph(), value) {
                    continue;
                }
                let ty = editor.graph().ty(value);
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

/// Whether code can profit from what is known about a value beyond its type.
fn is_specializable(ty: Type) -> bool {
    let several = matches!(ty.kind(), TypeKind::Any | TypeKind::Union(_) | TypeKind::Number);
    ty.is_tensor() || several || ty.optional_elem().is_some() || is_list(ty)
}

fn is_list(ty: Type) -> bool {
    matches!(ty.kind(), TypeKind::List(_))
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
