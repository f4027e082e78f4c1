//! Writes to memory that derivatives read, after which PyTorch refuses a backward pass: "one of the variables needed for
//! gradient computation has been modified by an inplace operation".
//!
//! The tape saves a tensor with its version and compares versions in the backward pass. Passes that make writes functional
//! would lose the error, so a function in which it may occur is left to the tape.

use crate::gradients::Library;
use flambeau_analysis::AliasDb;
use flambeau_analysis::alias::MemorySet;
use flambeau_exec::tape::{Derivative, Derivatives, FormulaInput};
use flambeau_ir::{FunctionSchema, Graph, NodeId, Prim, ValueId, ValueSet};
use flambeau_rewrite::autodiff::NotDifferentiable;

/// Number of writes within one branch or loop up to which a node's own write is told from those of other nodes.
const MAX_NESTED_WRITES: usize = 256;

/// Checks that no write follows an operator whose derivative reads the written memory. Within a branch or loop, each write
/// may follow each other node.
///
/// # Errors
/// Returns the operator whose derivative reads memory that may be written later.
pub(crate) fn check_versions(graph: &Graph, library: &Library) -> Result<(), NotDifferentiable> {
    let writes = |node: &NodeId| {
        schema(graph, *node).is_some_and(|schema| (0..schema.args.len()).any(|i| schema.is_write(i)))
    };
    if !graph.nodes_deep().any(|node| writes(&node)) {
        return Ok(());
    }
    let db = AliasDb::new(graph);
    let active = may_require_gradients(graph, library);
    let check = |node: NodeId, written: &MemorySet| {
        let mut saved = saved(graph, node, library, &active);
        match saved.any(|value| written.intersects_shallow(&db, value)) {
            true => {
                let what = "has a derivative that reads memory which is written later";
                Err(NotDifferentiable::at(graph, node, what))
            }
            false => Ok(()),
        }
    };
    let mut written = MemorySet::new(&db);
    for top in graph.nodes(graph.root()).rev() {
        let nested: Vec<NodeId> = graph.blocks(top).flat_map(|block| graph.nodes_deep_in(block)).collect();
        let writing: Vec<NodeId> = nested.iter().copied().filter(writes).collect();
        let after = written.clone();
        writing.iter().for_each(|node| written.add_writes_of(&db, *node));
        for node in nested {
            if writing.len() <= MAX_NESTED_WRITES && writing.contains(&node) {
                let mut others = after.clone();
                writing.iter().filter(|n| **n != node).for_each(|n| others.add_writes_of(&db, *n));
                check(node, &others)?;
            } else {
                check(node, &written)?;
            }
        }
        check(top, &written)?;
        if writes(&top) {
            written.add_writes_of(&db, top);
        }
    }
    Ok(())
}

fn schema(graph: &Graph, node: NodeId) -> Option<&FunctionSchema> {
    graph.op(node).row().map(|row| graph.registry().schema(row))
}

/// The tensors that a derivative of a node reads, if some operand may require a gradient: arguments as they were before the
/// call, and results.
fn saved<'a>(
    graph: &'a Graph,
    node: NodeId,
    library: &Library,
    active: &'a ValueSet,
) -> impl Iterator<Item = ValueId> + 'a {
    let is_active = |arg: &usize| graph.operands(node).nth(*arg).is_some_and(|value| active.contains(value));
    let derivative = graph.op(node).row().and_then(|row| library.of(row));
    let inputs: Vec<FormulaInput> = match derivative.as_deref() {
        Some(Derivative::Formulas(formulas)) => {
            let required = formulas.iter().filter(|formula| formula.args.iter().any(is_active));
            required.filter_map(|formula| formula.inputs.as_ref()).flatten().copied().collect()
        }
        Some(Derivative::Body { inputs, .. }) if graph.operands(node).any(|v| active.contains(v)) => {
            inputs.clone()
        }
        _ => Vec::new(),
    };
    let is_written = move |arg: usize| schema(graph, node).is_some_and(|schema| schema.is_write(arg));
    let value = move |input: FormulaInput| match input {
        FormulaInput::Arg(arg) if !is_written(arg) => graph.operands(node).nth(arg),
        FormulaInput::Result(result) => graph.results(node).nth(result),
        _ => None,
    };
    inputs.into_iter().filter_map(value).filter(|value| graph.ty(*value).is_mutable())
}

/// The values that are computed from tensors outside of the graph by operators with derivatives.
fn may_require_gradients(graph: &Graph, library: &Library) -> ValueSet {
    let mut active = ValueSet::new();
    let mut open: Vec<ValueId> = graph.inputs().filter(|v| graph.ty(*v).is_mutable()).collect();
    let attributes = graph.nodes_deep().filter(|node| graph.is_prim(*node, Prim::GetAttr));
    open.extend(attributes.flat_map(|node| graph.results(node)));
    while let Some(value) = open.pop() {
        if !graph.ty(value).is_mutable() || !active.insert(value) {
            continue;
        }
        for used in graph.uses(value) {
            let is_return = graph.is_prim(used.user, Prim::Return);
            let Some(user) = (if is_return { graph.enclosing(used.user) } else { Some(used.user) }) else {
                continue;
            };
            let derivative = graph.op(user).row().and_then(|row| library.of(row));
            if derivative.as_deref() != Some(&Derivative::Constant) {
                open.extend(graph.results(user));
                open.extend(graph.blocks(user).flat_map(|block| graph.block_inputs(block)));
            }
        }
    }
    active
}
