//! Writes to memory that derivatives read, after which PyTorch refuses a backward pass: "one of the variables needed for
//! gradient computation has been modified by an inplace operation".
//!
//! The tape saves a tensor with its version and compares versions in the backward pass. Passes that make writes functional
//! would lose the error, so a call in which it may occur is left to the tape. Whether the derivative is computed depends on
//! which arguments and attributes require gradients.

use super::library::FormulaLibrary;
use super::memory::path_of;
use super::preparation::may_hold_tensor;
use flambeau_analysis::AliasDb;
use flambeau_analysis::alias::MemorySet;
use flambeau_exec::tape::{Derivative, Derivatives, FormulaInput, Keeping, RecordingQuery};
use flambeau_ir::{FunctionSchema, Graph, NodeId, Prim, Symbol, ValueId, ValueSet};
use flambeau_rewrite::autodiff::NotDifferentiable;

/// Number of writes within one branch or loop up to which a node's own write is told from those of other nodes.
const MAX_NESTED_WRITES: usize = 256;

/// Number of operators up to which the sources of each are found separately.
const MAX_OPERATORS: usize = 64;

/// A tensor from outside of a graph.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// An input, or a tensor in it.
    Input(usize),
    /// The attribute of the first input at a path.
    Attribute(Vec<Symbol>),
    /// Not known.
    Unknown,
}

/// An operator whose derivative reads memory that may be written later.
pub(crate) struct ModifiedOperand {
    /// Names the operator.
    pub(crate) reason: String,
    /// The derivative is computed only if one of these requires a gradient.
    pub(crate) sources: Vec<Source>,
}

/// Finds the operators whose derivatives read memory that may be written later. Within a branch or loop, each write may follow
/// each other node.
pub(crate) fn modified_operands(graph: &Graph, library: &FormulaLibrary) -> Vec<ModifiedOperand> {
    let writes = |node: &NodeId| {
        schema(graph, *node).is_some_and(|schema| (0..schema.args.len()).any(|i| schema.is_write(i)))
    };
    if !graph.nodes_deep().any(|node| writes(&node)) {
        return Vec::new();
    }
    let db = AliasDb::new(graph);
    let mut found = Vec::new();
    // The alias analysis takes all tensors from outside for one memory. A call in which two of them share memory is recorded.
    let from_outside: Vec<Source> = graph
        .nodes_deep()
        .filter(|node| writes(node))
        .filter_map(|node| outside(graph, graph.operands(node).next()?))
        .collect();
    let mut check = |node: NodeId, written: &MemorySet| {
        let is_written = |value: ValueId| {
            written.intersects_shallow(&db, value)
                && outside(graph, value).is_none_or(|source| from_outside.contains(&source))
        };
        let args = args_with_saved(graph, node, library, &is_written);
        if !args.is_empty() {
            let reason = "has a derivative that reads memory which is written later";
            let sources = match found.len() {
                0..MAX_OPERATORS => sources(graph, args),
                _ => vec![Source::Unknown],
            };
            let reason = NotDifferentiable::at(graph, node, reason).to_string();
            found.push(ModifiedOperand { reason, sources });
        }
    };
    let mut written = MemorySet::new(&db);
    for top in graph.nodes(graph.root()).rev() {
        let nested: Vec<NodeId> = graph.blocks(top).flat_map(|block| graph.nodes_deep_in(block)).collect();
        let writing: Vec<NodeId> = nested.iter().copied().filter(writes).collect();
        let after = if writing.is_empty() { None } else { Some(written.clone()) };
        writing.iter().for_each(|node| written.add_writes_of(&db, *node));
        for node in nested {
            match &after {
                Some(after) if writing.len() <= MAX_NESTED_WRITES && writing.contains(&node) => {
                    let mut others = after.clone();
                    writing.iter().filter(|n| **n != node).for_each(|n| others.add_writes_of(&db, *n));
                    check(node, &others);
                }
                _ => check(node, &written),
            }
        }
        check(top, &written);
        if writes(&top) {
            written.add_writes_of(&db, top);
        }
    }
    found
}

fn schema(graph: &Graph, node: NodeId) -> Option<&FunctionSchema> {
    graph.op(node).row().map(|row| graph.registry().schema(row))
}

/// Returns the tensor from outside that a value is, or is a view of.
fn outside(graph: &Graph, value: ValueId) -> Option<Source> {
    let mut value = value;
    loop {
        let def = graph.def(value);
        match graph.prim(def) {
            Some(Prim::GetAttr) => return path_of(graph, value).map(Source::Attribute),
            Some(Prim::Param) => {
                return graph.inputs().position(|input| input == value).map(Source::Input);
            }
            Some(_) => return None,
            None => {
                let returns = &schema(graph, def)?.returns;
                let is_view = returns.first().is_some_and(|result| result.alias.is_some());
                value = graph.operands(def).next().filter(|_| is_view)?;
            }
        }
    }
}

/// Returns the operands whose gradients are computed from tensors for which `is_written` holds: arguments as they were before
/// the call, or results.
fn args_with_saved(
    graph: &Graph,
    node: NodeId,
    library: &FormulaLibrary,
    is_written: &dyn Fn(ValueId) -> bool,
) -> Vec<ValueId> {
    let Some(schema) = schema(graph, node) else { return Vec::new() };
    let saves = |input: &FormulaInput| {
        let value = match *input {
            FormulaInput::Arg(arg) if !schema.is_write(arg) => graph.operands(node).nth(arg),
            FormulaInput::Result(result) => graph.results(node).nth(result),
            _ => None,
        };
        value.is_some_and(|value| may_hold_tensor(graph.ty(value)) && is_written(value))
    };
    let derivative = graph.op(node).row().and_then(|row| library.of(row));
    match derivative.as_deref() {
        Some(Derivative::Formulas(formulas)) => {
            let saving = formulas.iter().filter(|f| f.inputs.iter().flatten().any(saves));
            saving.flat_map(|f| &f.args).filter_map(|arg| graph.operands(node).nth(*arg)).collect()
        }
        Some(Derivative::Body { .. }) => match graph.op(node).row() {
            Some(row) => {
                let dependence = library.dependence_of_body(row);
                let saves = |arg: &usize| {
                    let mut operands = graph.operands(node).enumerate();
                    let mut results = graph.results(node).enumerate();
                    let requires = |other: usize| other == *arg;
                    let is_saved = |i: usize| {
                        matches!(dependence.keeping(i, &requires), Keeping::Saved | Keeping::Unknown)
                    };
                    let is_written = |v: ValueId| may_hold_tensor(graph.ty(v)) && is_written(v);
                    operands.any(|(i, v)| is_written(v) && is_saved(i) && !schema.is_write(i))
                        || results.any(|(i, v)| is_written(v) && dependence.saves_result(i, &requires))
                };
                let args = (0..graph.operand_count(node)).filter(saves);
                args.filter_map(|arg| graph.operands(node).nth(arg)).collect()
            }
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns the tensors from outside from which values are computed, except through operators that end gradients.
fn sources(graph: &Graph, values: Vec<ValueId>) -> Vec<Source> {
    let queries = graph.registry().column::<RecordingQuery>();
    let inputs: Vec<ValueId> = graph.inputs().collect();
    let (mut open, mut seen, mut found) = (values, ValueSet::new(), Vec::new());
    while let Some(value) = open.pop() {
        if !may_hold_tensor(graph.ty(value)) || !seen.insert(value) {
            continue;
        }
        let def = graph.def(value);
        let source = match graph.prim(def) {
            Some(Prim::GetAttr) => path_of(graph, value).map_or(Source::Unknown, Source::Attribute),
            Some(Prim::Param) => {
                match (graph.enclosing(def), inputs.iter().position(|input| *input == value)) {
                    (None, Some(input)) => Source::Input(input),
                    (Some(owner), _) => {
                        open.extend(graph.operands(owner));
                        open.extend(graph.blocks(owner).flat_map(|block| graph.block_outputs(block)));
                        continue;
                    }
                    (None, None) => Source::Unknown,
                }
            }
            _ if queries.of(graph.op(def)) == Some(&RecordingQuery::Detach) => continue,
            _ => {
                open.extend(graph.operands(def));
                open.extend(graph.blocks(def).flat_map(|block| graph.block_outputs(block)));
                continue;
            }
        };
        if !found.contains(&source) {
            found.push(source);
        }
    }
    found
}
