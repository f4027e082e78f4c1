//! Returned lists of tensors that operators make: where shape analysis knows the number of their elements, the graph makes a
//! list of the elements instead, so that each element has a gradient of its own. Tuples are unpacked where they are indexed.

use super::raise::uninitialized;
use flambeau_analysis::shape::Fact;
use flambeau_analysis::{Analyses, Shapes};
use flambeau_ir::{At, Graph, NodeId, Operands, Prim, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Replaces constant indices of tuples by unpacking of the tuples, and tuples that no run computes by their elements, so that
/// tuples can be replaced by values. Linear in the number of nodes.
pub fn unpack_tuples(graph: &mut Graph) {
    let is_tuple = |graph: &Graph, n: NodeId| match graph.op(n).prim() {
        Some(Prim::TupleIndex) => true,
        Some(Prim::Uninitialized) => graph.ty(graph.result(n, 0)).as_tuple().is_some(),
        _ => false,
    };
    let found: Vec<NodeId> = graph.nodes_deep().filter(|n| is_tuple(graph, *n)).collect();
    let mut unpacked: HashMap<ValueId, Operands, FxBuildHasher> = HashMap::default();
    let mut editor = graph.edit();
    for node in found {
        let g = editor.graph();
        let loc = g.loc(node);
        if g.is_prim(node, Prim::Uninitialized) {
            let ty = g.ty(g.result(node, 0));
            editor.at(At::before(node)).loc(loc);
            let tuple = uninitialized(&mut editor, ty);
            editor.replace_node(node, &[tuple]);
            continue;
        }
        let (tuple, index) = (g.operand(node, 0), g.constant(g.operand(node, 1)).and_then(|i| i.as_int()));
        let count = g.ty(tuple).as_tuple().map_or(0, |tuple| tuple.elems.len()) as i64;
        let index = index.map(|i| if i < 0 { i + count } else { i }).filter(|i| (0..count).contains(i));
        let Some(index) = index else { continue };
        // Behind the definition of the tuple, the elements can be used wherever the tuple can.
        let def = g.def(tuple);
        let behind = if g.is_prim(def, Prim::Param) { At::start(g.parent(def)) } else { At::after(def) };
        let elements = unpacked.entry(tuple).or_insert_with(|| {
            editor.at(behind).loc(loc);
            editor.unpack_tuple(tuple)
        });
        let element = elements[index as usize];
        editor.replace_node(node, &[element]);
    }
}

/// Rewrites the lists of tensors that the graph returns, also those in tuples. Linear in the number of their elements.
pub fn unpack_results(graph: &mut Graph) {
    let mut found: Vec<(NodeId, usize, ValueId)> = Vec::new();
    let mut open = vec![graph.ret(graph.root())];
    while let Some(user) = open.pop() {
        for (index, value) in graph.operands(user).enumerate() {
            let def = graph.def(value);
            if graph.is_prim(def, Prim::TupleConstruct) {
                open.push(def);
            } else if graph.op(def).row().is_some()
                && graph.ty(value).list_elem().is_some_and(Type::is_tensor)
            {
                found.push((user, index, value));
            }
        }
    }
    if found.is_empty() {
        return;
    }
    let mut analyses = Analyses::new();
    let shapes = analyses.get::<Shapes>(graph);
    let known = found.into_iter().filter_map(|(user, index, value)| match shapes.fact(value) {
        Fact::List(elements) => Some((user, index, value, elements.len())),
        _ => None,
    });
    let known: Vec<(NodeId, usize, ValueId, usize)> = known.collect();
    let mut editor = graph.edit();
    for (user, index, list, count) in known {
        let g = editor.graph();
        let (ty, loc) = (g.ty(list), g.loc(g.def(list)));
        let element = ty.list_elem().unwrap_or(Type::TENSOR);
        editor.at(At::before(user)).loc(loc);
        let unpack = editor.node(Prim::ListUnpack, &[list], &vec![element; count]);
        let elements: Vec<ValueId> = editor.graph().results(unpack).collect();
        let made = editor.value(Prim::ListConstruct, &elements, ty);
        editor.set_operand(user, index, made);
    }
}
