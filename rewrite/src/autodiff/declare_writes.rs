//! Writes that schemas do not declare (running statistics of normalization) become writes by operators that declare them:
//! the functional form of the operator returns the new elements, which are copied to where the operator would write them.

use super::NotDifferentiable;
use super::activity::only_stores;
use super::reverse::{FormulaGraphs, Helper};
use crate::facets::FunctionalForm;
use flambeau_ir::{AliasRule, At, FunctionSchema, Graph, NodeId, OpId, Type, ValueId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Replaces operators with a [`FunctionalForm`] where they write; returns whether there were any. Linear in the size of the
/// graph.
///
/// # Errors
/// If a helper does not compile.
pub fn declare_writes(graph: &mut Graph, formulas: &dyn FormulaGraphs) -> Result<bool, NotDifferentiable> {
    let found: Vec<(NodeId, Form)> =
        graph.nodes_deep().filter_map(|node| Some((node, Form::of(graph, node)?))).collect();
    if found.is_empty() {
        return Ok(false);
    }
    let copy = formulas.helper(Helper::CopyInto)?;
    for (node, form) in &found {
        let (operands, loc): (Vec<ValueId>, _) = (graph.operands(*node).collect(), graph.loc(*node));
        let kept: Vec<ValueId> = graph.results(*node).collect();
        let mut editor = graph.edit();
        editor.at(At::before(*node)).loc(loc);
        let given: Vec<ValueId> = form.args.iter().map(|i| operands[*i]).collect();
        let made = editor.node(form.op, &given, &form.types);
        let made: Vec<ValueId> = editor.graph().results(made).collect();
        for (arg, result) in &form.writes {
            if editor.inline_graph(&copy, &[operands[*arg], made[*result]], None).is_err() {
                return Err(NotDifferentiable::at(editor.graph(), *node, "its writes cannot be declared"));
            }
        }
        editor.replace_node(*node, &made[..kept.len()]);
    }
    Ok(true)
}

/// The replacement of a node by the functional form of its operator and writes.
struct Form {
    op: OpId,
    /// Per argument of the functional form, the operand.
    args: Vec<usize>,
    types: Vec<Type>,
    /// Operands that are written, with the results that have their new elements.
    writes: Vec<(usize, usize)>,
}

impl Form {
    fn of(graph: &Graph, node: NodeId) -> Option<Form> {
        let (registry, row) = (Arc::clone(graph.registry()), graph.op(node).row()?);
        let form = registry.facet::<FunctionalForm>(row)?;
        if !graph.effects(node).may_write() || only_stores(graph, node) {
            return None;
        }
        let op = registry.lookup(form.0)?;
        let (old, new) = (registry.schema(row), registry.schema(op));
        let args =
            new.args.iter().map(|arg| old.arg_index(arg.name.as_str())).collect::<Option<Vec<usize>>>()?;
        let value = |arg: usize| graph.constant(graph.operand(node, arg)).and_then(|v| v.as_bool());
        let undeclared: Vec<usize> = match registry.facet::<AliasRule>(row) {
            Some(rule) => rule.written_arguments(old, &value).collect(),
            None => Vec::new(),
        };
        let declared = (0..old.args.len()).filter(|i| old.is_write(*i));
        let written: BTreeSet<usize> = undeclared.into_iter().chain(declared).collect();
        let writes =
            written.into_iter().map(|arg| result_for(old, new, arg).filter(|_| is_tensor(graph, node, arg)));
        let types = new.returns.iter().map(|result| result.ty).collect();
        Some(Form { op, args, types, writes: writes.collect::<Option<_>>()? })
    }
}

fn is_tensor(graph: &Graph, node: NodeId, arg: usize) -> bool {
    graph.ty(graph.operand(node, arg)).is_tensor()
}

/// Returns the argument and the result of the functional form that has its new elements: `running_mean_out` for
/// `running_mean`.
fn result_for(old: &FunctionSchema, new: &FunctionSchema, arg: usize) -> Option<(usize, usize)> {
    let name = old.args.get(arg)?.name.as_str();
    let is_new = |text: &str| text.strip_suffix("_out") == Some(name);
    let result = new.returns.iter().position(|result| is_new(result.name.as_str()))?;
    Some((arg, result))
}
