//! Summary of a program: its inputs, outputs and operators, for reports. Nothing is lowered or run.

use std::collections::BTreeSet;

use flambeau_ir::{OpId, Registry};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use crate::expr::{ExprId, Exprs};
use crate::fx::{Target, shown_name};
use crate::model::{Argument, GraphModel, Map, ProgramModel, SymBool, SymFloat, SymInt};
use crate::print::{annotation_of, signature_rows};

/// An input or output of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The name of the value; empty for an output that is a constant.
    pub name: String,
    /// The kind in the terms of PyTorch, such as `PARAMETER` or `USER_OUTPUT`.
    pub kind: &'static str,
    /// Name of the tensor or input that the port stands for.
    pub target: Option<String>,
    /// Type and sizes as in printed programs, such as `f32[s77, 3]`; `None` for constants.
    pub annotation: Option<String>,
}

/// An operator or function that nodes call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorUse {
    /// The target, such as `torch.ops.aten.add.Tensor`.
    pub target: String,
    /// The operator if it is registered.
    pub id: Option<OpId>,
    /// Whether the target is an operator with a schema, and not a higher-order operator or a function of Python.
    pub has_schema: bool,
    /// Number of nodes that call it.
    pub uses: usize,
    /// Name of the first node that calls it.
    pub first: String,
}

/// Returns the inputs and the outputs of a program.
pub fn ports(program: &ProgramModel) -> (Vec<Port>, Vec<Port>) {
    let (inputs, outputs) = signature_rows(&program.module.signature);
    let port = |row: crate::print::SignatureRow<'_>| Port {
        name: row.name.to_owned(),
        kind: row.kind,
        target: row.target.map(str::to_owned),
        annotation: annotation_of(program, row.name),
    };
    (inputs.into_iter().map(port).collect(), outputs.into_iter().map(port).collect())
}

/// Returns the operators and functions of a program in order of first use, those of subgraphs included.
pub fn operators(program: &ProgramModel, registry: &Registry) -> Vec<OperatorUse> {
    let mut found: Map<OperatorUse> = Map::default();
    for_each_graph(&program.module.graph, &mut |graph| {
        for node in &graph.nodes {
            if let Some(known) = found.get_mut(&node.target) {
                known.uses += 1;
                continue;
            }
            let parsed = Target::parse(&node.target);
            let (id, has_schema) = (parsed.operator(registry), matches!(parsed, Target::Operator { .. }));
            let (target, first) = (node.target.clone(), shown_name(node).to_owned());
            found.insert(node.target.clone(), OperatorUse { target, id, has_schema, uses: 1, first });
        }
    });
    found.into_values().collect()
}

/// Returns the number of nodes of a program, those of subgraphs included.
pub fn node_count(program: &ProgramModel) -> usize {
    let mut count = 0;
    for_each_graph(&program.module.graph, &mut |graph| count += graph.nodes.len());
    count
}

/// Returns the symbols in the metadata of a graph and its subgraphs, without those that occur only in storage offsets, which
/// PyTorch does not read.
pub(crate) fn symbols_of_metadata(graph: &GraphModel, exprs: &Exprs) -> BTreeSet<String> {
    let int = |int: &SymInt| match int {
        SymInt::Expr { expr, .. } => Some(*expr),
        SymInt::Int(_) => None,
    };
    let mut found: HashSet<ExprId, FxBuildHasher> = HashSet::default();
    for_each_graph(graph, &mut |graph| {
        for meta in graph.tensor_values.values() {
            found.extend(meta.sizes.iter().chain(&meta.strides).filter_map(int));
        }
        found.extend(graph.sym_int_values.values().filter_map(int));
        found.extend(graph.sym_float_values.values().filter_map(|float| match float {
            SymFloat::Expr { expr, .. } => Some(*expr),
            SymFloat::Float(_) => None,
        }));
        found.extend(graph.sym_bool_values.values().filter_map(|truth| match truth {
            SymBool::Expr { expr, .. } => Some(*expr),
            SymBool::Bool(_) => None,
        }));
    });
    found.into_iter().flat_map(|expr| exprs.symbols_of(expr)).map(|symbol| symbol.to_string()).collect()
}

/// Calls `visit` for a graph and its subgraphs. The nesting is bounded by the reader.
pub(crate) fn for_each_graph<'m>(graph: &'m GraphModel, visit: &mut impl FnMut(&'m GraphModel)) {
    visit(graph);
    for input in graph.nodes.iter().flat_map(|node| &node.inputs) {
        if let Argument::Graph { graph, .. } = &input.arg {
            for_each_graph(graph, visit);
        }
    }
}
