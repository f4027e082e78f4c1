//! Composite operators: replaces each node whose operator's derivative is that of a body by the body.
//!
//! A body computes the same results, up to rounding. It may contain composite operators itself, so callers repeat the
//! expansion and simplify between, which resolves the branches of bodies on constants.

use super::reverse::{FormulaGraphs, OpDerivative, argument};
use super::{Named, NotDifferentiable};
use flambeau_ir::{At, Graph, NodeId};
use std::sync::Arc;

/// Expands the composite operators; returns their number.
///
/// # Errors
/// If a number that a body reads is not a constant.
pub fn expand_bodies(graph: &mut Graph, formulas: &dyn FormulaGraphs) -> Result<usize, NotDifferentiable> {
    let registry = Arc::clone(graph.registry());
    let nodes: Vec<NodeId> = graph.nodes_deep().collect();
    let mut count = 0;
    for node in nodes {
        let Some(row) = graph.op(node).row() else { continue };
        let OpDerivative::Body(body) = formulas.derivative(row)? else { continue };
        let Some(source) = &body.graph else { continue };
        let schema = registry.schema(row);
        let operands: Vec<_> = graph.operands(node).collect();
        let results = graph.result_count(node);
        let mut editor = graph.edit();
        editor.at(At::before(node));
        let mut inputs = Vec::with_capacity(body.params.len());
        for param in &body.params {
            let (Named::Arg(i) | Named::Like(i) | Named::Result(i) | Named::Grad(i)) = *param;
            inputs.push(argument(&mut editor, node, schema, i, &operands)?);
        }
        let found = editor.inline_graph(source, &inputs, None).ok();
        let found = found.and_then(|values| values.first().copied());
        let Some(found) = found else {
            return Err(NotDifferentiable::at(editor.graph(), node, "its body cannot be inlined"));
        };
        let values = if results == 1 { vec![found] } else { editor.unpack_tuple(found).to_vec() };
        if values.len() != results {
            return Err(NotDifferentiable::at(editor.graph(), node, "its body has other results"));
        }
        editor.replace_node(node, &values);
        count += 1;
    }
    Ok(count)
}
