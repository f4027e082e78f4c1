//! Returned lists of tensors that operators make: where shape analysis knows the number of their elements, the graph makes a
//! list of the elements instead, so that each element has a gradient of its own.

use flambeau_analysis::shape::Fact;
use flambeau_analysis::{Analyses, Shapes};
use flambeau_ir::{At, Graph, NodeId, Prim, Type, ValueId};

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
