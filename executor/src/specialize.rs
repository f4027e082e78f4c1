//! From a profiled graph and a record to the graph of a plan.
//!
//! The record's types become the types of the inputs, which are the plan's precondition, and the attribute
//! `profiled_type` of the profiling nodes, from which passes make guards. Nodes that observed nothing are removed, and
//! so are those of tensors whose guard failed too often before.

use crate::record::ProfilingRecord;
use flambeau_ir::attr::names;
use flambeau_ir::{At, Attr, Graph, IValue, NodeId, Prim, Type, ValueId};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

/// Numbers of profiling nodes.
pub(crate) type ProfileIndices = HashSet<usize, FxBuildHasher>;

/// Whether a graph has nodes of profiles and guards of its own. Such a graph is not specialized: its guards raise where
/// those of the executor continue.
pub(crate) fn has_assumptions(graph: &Graph) -> bool {
    graph.nodes_deep().any(|node| {
        matches!(
            graph.prim(node),
            Some(
                Prim::Profile
                    | Prim::ProfileIvalue
                    | Prim::Guard
                    | Prim::BailOut
                    | Prim::BailoutTemplate
                    | Prim::TypeCheck
            )
        )
    })
}

/// Returns the profiling nodes of a graph, by number.
pub(crate) fn profile_nodes(graph: &Graph) -> Vec<NodeId> {
    graph.nodes_deep().filter(|&n| profile_index(graph, n).is_some()).collect()
}

/// Returns the number of a profiling node.
pub(crate) fn profile_index(graph: &Graph, node: NodeId) -> Option<usize> {
    let index = graph.attr(node, names::index()).filter(|_| graph.is_prim(node, Prim::Profile))?;
    usize::try_from(index.as_int()?).ok()
}

/// Writes what a record observed into a copy of the profiled graph.
pub(crate) fn annotate(profiled: &Graph, record: &ProfilingRecord, disabled: &ProfileIndices) -> Graph {
    let mut graph = profiled.clone();
    let nodes = profile_nodes(profiled);
    // A tensor is profiled at each use, and one guard is made of all its profiles.
    let is_disabled = |node| profile_index(profiled, node).is_some_and(|index| disabled.contains(&index));
    let unguarded: HashSet<ValueId, FxBuildHasher> =
        nodes.iter().filter(|&&n| is_disabled(n)).map(|&n| profiled.operand(n, 0)).collect();
    let mut editor = graph.edit();
    for node in nodes {
        let is_guarded = !unguarded.contains(&profiled.operand(node, 0));
        let index = profile_index(profiled, node).filter(|_| is_guarded);
        match index.and_then(|index| record.observed_type(index)) {
            Some(ty) => editor.set_attr(node, names::profiled_type(), Attr::Type(ty)),
            None => {
                let value = editor.graph().operand(node, 0);
                editor.replace_node(node, &[value]);
            }
        }
    }
    for (index, input) in profiled.inputs().enumerate() {
        let ty = record.input_type(index, profiled.ty(input));
        editor.set_type(input, ty);
        if ty == Type::NONE {
            let root = editor.graph().root();
            let none = editor.at(At::start(root)).constant_of(IValue::None, Type::NONE);
            editor.replace_all_uses(input, none);
        }
    }
    graph
}
