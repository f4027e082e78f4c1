//! Insertion and removal of `prim::profile` nodes.
//!
//! The nodes have consecutive numbers in the attribute `index`, in program order. The number names the observation in
//! later versions of the graph: the guard and the bail-out that are made from a node keep it.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_analysis::AliasDb;
use flambeau_ir::attr::names;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{At, Attr, AttrsId, Editor, Graph, NodeId, NodeSet, Prim, Type, ValueId};
use smallvec::SmallVec;

/// Inserts `prim::profile` nodes: before every use of a tensor, which in-place operators may change between its uses, and after
/// the definition of other values that code can be specialized to. These are values whose type admits several kinds
/// (optionals, unions, `Any`, `number`), and lists that no node writes to. Uses of tensors by `prim::Return` are not
/// profiled: the value that they define in the enclosing block is profiled at its own uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertProfileNodes;

impl Pass for InsertProfileNodes {
    const NAME: &'static str = "insert_profile_nodes";
    const DOC: &'static str = "Inserts a prim::profile node before every use of a tensor and after definitions of optionals, unions and lists.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let has_tensors = |&n: &NodeId| {
            !graph.is_prim(n, Prim::Profile) && graph.operands(n).any(|v| graph.ty(v).is_tensor())
        };
        let users: Vec<NodeId> = graph.nodes_deep().filter(has_tensors).collect();
        let values = profiled_values(cx);
        let (mut editor, mut fuel) = cx.edit_fuelled();
        let mut inserted = NodeSet::new();
        for user in users {
            if !fuel.take("profile", editor.graph(), user) {
                break;
            }
            profile_operands(&mut editor, user, &mut inserted);
        }
        for value in values {
            let g = editor.graph();
            let def = g.def(value);
            if !fuel.take("profile", g, def) {
                break;
            }
            let (ty, loc) = (g.ty(value), g.loc(def));
            let at = if g.is_prim(def, Prim::Param) { At::start(g.parent(def)) } else { At::after(def) };
            let node = editor.at(at).loc(loc).insert(Prim::Profile, &[value], AttrsId::EMPTY, &[ty]);
            let result = editor.graph().result(node, 0);
            editor.replace_all_uses(value, result);
            editor.set_operand(node, 0, value);
            inserted.insert(node);
        }
        let nodes: Vec<NodeId> = editor.graph().nodes_deep().filter(|&n| inserted.contains(n)).collect();
        for (node, index) in nodes.into_iter().zip(0..) {
            editor.set_attr(node, names::index(), Attr::int(index));
        }
        Ok(())
    }
}

/// Profiles the tensors among the operands of a node.
fn profile_operands(editor: &mut Editor<'_>, user: NodeId, inserted: &mut NodeSet) {
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
            let node =
                editor.at(At::before(user)).loc(loc).insert(Prim::Profile, &[value], AttrsId::EMPTY, &[ty]);
            inserted.insert(node);
            let result = editor.graph().result(node, 0);
            profiled.push((value, result));
            result
        });
        editor.set_operand(user, position, result);
    }
}

/// Returns the values that are profiled after their definition, with uses.
fn profiled_values(cx: &mut PassCx<'_>) -> Vec<ValueId> {
    let is_candidate = |graph: &Graph, v: ValueId| {
        let def = graph.def(v);
        is_specializable(graph.ty(v))
            && graph.use_count(v) > 0
            && !matches!(graph.prim(def), Some(Prim::Constant | Prim::Profile))
    };
    let graph = cx.graph();
    let values: Vec<ValueId> = graph.values_in_order().filter(|&v| is_candidate(graph, v)).collect();
    if !values.iter().any(|&v| is_list(graph.ty(v))) {
        return values;
    }
    let (graph, aliases) = cx.with::<AliasDb>();
    values.into_iter().filter(|&v| !is_list(graph.ty(v)) || !aliases.is_written(v)).collect()
}

/// Whether passes can use more facts about a value that is not a tensor than its type states.
fn is_specializable(ty: Type) -> bool {
    let several = matches!(ty.kind(), TypeKind::Any | TypeKind::Union(_) | TypeKind::Number);
    several || ty.optional_elem().is_some() || is_list(ty)
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
