//! Composite operators: replaces each node whose operator's derivative is that of a body by the body.
//!
//! A body computes the same results, up to rounding. It may contain composite operators itself, so callers repeat the
//! expansion and simplify between, which resolves the branches of bodies on constants.

use super::activity::Activity;
use super::input_facts::KnownTypes;
use super::reverse::{FormulaGraph, FormulaGraphs, OpDerivative, argument, inlined};
use super::{Dependence, KeptTensors, Named, NotDifferentiable};
use flambeau_exec::tape::{Keeping, Refusals};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{At, FunctionSchema, Graph, IValue, NodeId, Prim, ValueId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How the results of a composite operator depend on its arguments, by its body.
#[derive(Debug, Default)]
pub struct BodyDependence {
    /// For each argument that the body reads, the results that may depend on it differentiably.
    of_arg: BTreeMap<usize, Vec<bool>>,
    /// For each argument that the body reads, what the derivative with respect to it reads: arguments and results. `None` if that
    /// is not known.
    kept: Option<BTreeMap<usize, KeptTensors>>,
}

impl BodyDependence {
    /// Creates the dependence of `results` results by a body; `None` if the dependence of the body is not known, so that
    /// each result may depend on each argument.
    pub fn new(body: &FormulaGraph, results: usize, known: Option<&Dependence>) -> BodyDependence {
        let of_input = |i: usize| match known.and_then(|known| known.of_input.get(i)) {
            // The results of the body must be those of the operator, one by one.
            Some(of_input) if of_input.len() == results => of_input.clone(),
            Some(of_input) => vec![of_input.contains(&true); results],
            None => vec![true; results],
        };
        let read = body.params.iter().enumerate().filter_map(|(i, param)| match param {
            Named::Arg(arg) | Named::Copy(arg) => Some((*arg, of_input(i))),
            _ => None,
        });
        let kept = known.map(|known| {
            let as_args = |inputs: &BTreeSet<usize>| {
                let params = inputs.iter().filter_map(|input| body.params.get(*input));
                params.filter_map(|param| param.arg()).collect()
            };
            let params = body.params.iter().zip(&known.kept);
            let of_args = params.filter_map(|(param, kept)| {
                let kept = KeptTensors {
                    inputs: as_args(&kept.inputs),
                    computed_from: as_args(&kept.computed_from),
                    results: kept.results.clone(),
                };
                Some((param.arg()?, kept))
            });
            of_args.collect()
        });
        BodyDependence { of_arg: read.collect(), kept }
    }

    /// Whether it is known what derivatives read.
    pub fn is_known(&self) -> bool {
        self.kept.is_some()
    }

    /// Returns how a call keeps an argument that the body reads, if the arguments for which `requires` holds require gradients.
    pub fn keeping(&self, arg: usize, requires: &dyn Fn(usize) -> bool) -> Keeping {
        let Some(kept) = &self.kept else { return Keeping::Unknown };
        let of_required = || kept.iter().filter(|(arg, _)| requires(**arg)).map(|(_, kept)| kept);
        if of_required().any(|kept| kept.inputs.contains(&arg)) {
            Keeping::Saved
        } else if of_required().any(|kept| kept.computed_from.contains(&arg)) {
            Keeping::Copied
        } else {
            Keeping::Unread
        }
    }

    /// Whether derivatives read a result, if the arguments for which `requires` holds require gradients.
    pub fn saves_result(&self, result: usize, requires: &dyn Fn(usize) -> bool) -> bool {
        let mut kept = self.kept.iter().flatten();
        kept.any(|(arg, kept)| requires(*arg) && kept.results.contains(&result))
    }

    /// Whether the body reads an argument, and no result depends on it differentiably.
    pub fn is_constant_arg(&self, arg: usize) -> bool {
        self.of_arg.get(&arg).is_some_and(|results| !results.contains(&true))
    }

    /// Whether a result depends on no argument differentiably.
    pub fn is_constant_result(&self, result: usize) -> bool {
        !self.of_arg.is_empty() && !self.of_arg.keys().any(|arg| self.depends(result, *arg))
    }

    /// Whether a result may depend on an argument differentiably.
    fn depends(&self, result: usize, arg: usize) -> bool {
        self.of_arg.get(&arg).and_then(|results| results.get(result)).is_some_and(|depends| *depends)
    }
}

/// Checks that recorded calls of operators are not refused because operands or results require gradients.
///
/// # Errors
/// Returns an operator whose call may be refused.
fn check_refusals(
    graph: &Graph,
    activity: &Activity,
    refusing: &[(NodeId, Arc<Refusals>)],
) -> Result<(), NotDifferentiable> {
    if refusing.is_empty() {
        return Ok(());
    }
    let types = KnownTypes::of(graph);
    for (node, refusals) in refusing {
        let Some(row) = graph.op(*node).row() else { continue };
        let requires = |arg: usize| graph.operands(*node).nth(arg).is_some_and(|v| activity.is_active(v));
        let mut results = graph.results(*node).filter(|v| activity.is_active(*v));
        let dtype_of = |v: ValueId| match types.type_of(graph, v).kind() {
            TypeKind::Tensor(tensor) => tensor.dtype,
            _ => None,
        };
        let is_integral = |arg: usize| {
            let dtype = graph.operands(*node).nth(arg).and_then(dtype_of);
            dtype.is_none_or(|dtype| dtype.is_integral(true))
        };
        let checked = refusals.check_args(graph.registry().schema(row), &requires, &is_integral);
        checked
            .and_then(|()| {
                results.try_for_each(|v| {
                    refusals.check_result(dtype_of(v).is_some_and(|dtype| dtype.is_complex()))
                })
            })
            .map_err(|error| NotDifferentiable::at(graph, *node, error.message()))?;
    }
    Ok(())
}

/// Checks that the results of composite operators depend on `wrt` in the same runs as in a recorded call, where a result
/// has a history if any argument has one. A result of the body has none if the body does not compute it from that argument.
///
/// # Errors
/// Returns a composite operator with a result that has a history only in recorded calls.
pub fn check_dependence(
    graph: &Graph,
    wrt: &[ValueId],
    formulas: &dyn FormulaGraphs,
) -> Result<(), NotDifferentiable> {
    let is_composite = |node: &NodeId| {
        let row = graph.op(*node).row();
        row.is_some_and(|row| matches!(formulas.derivative(row), Ok(OpDerivative::Body(_))))
    };
    let composites: Vec<NodeId> = graph.nodes_deep().filter(is_composite).collect();
    let refusing = |node| Some((node, formulas.refusals(graph.op(node).row()?)?));
    let refusing: Vec<(NodeId, Arc<Refusals>)> = graph.nodes_deep().filter_map(refusing).collect();
    if composites.is_empty() && refusing.is_empty() || wrt.is_empty() {
        return Ok(());
    }
    let activity = Activity::of_composites(graph, wrt, formulas);
    check_refusals(graph, &activity, &refusing)?;
    for node in composites {
        let Some(row) = graph.op(node).row() else { continue };
        let dependence = formulas.body_dependence(row);
        let operands: Vec<(usize, ValueId)> = graph
            .operands(node)
            .enumerate()
            .filter(|(arg, v)| activity.is_active(*v) && !dependence.is_constant_arg(*arg))
            .collect();
        let is_read = |(arg, _): &(usize, ValueId)| dependence.of_arg.contains_key(arg);
        if operands.is_empty() || graph.result_count(node) == 1 && operands.iter().all(is_read) {
            continue;
        }
        let call = formulas.call_dependence(graph, node);
        for (i, result) in graph.results(node).enumerate() {
            if !activity.is_active(result) || graph.use_count(result) == 0 {
                continue;
            }
            let depends = |(arg, _): &(usize, ValueId)| call.depends(i, *arg);
            let is_certain = operands.iter().any(|o| depends(o) && activity.is_certain(o.1));
            if !is_certain && !operands.iter().all(depends) {
                let reason = format!("result {i} does not depend on each operand that requires a gradient");
                return Err(NotDifferentiable::at(graph, node, reason));
            }
        }
    }
    Ok(())
}

/// Expands the composite operators that read values which depend on `wrt`; returns their number. The others have no gradient.
/// If `wrt` is empty, expands all of them.
///
/// # Errors
/// If a number that a body reads is not a constant.
pub fn expand_bodies(
    graph: &mut Graph,
    wrt: &[ValueId],
    formulas: &dyn FormulaGraphs,
) -> Result<usize, NotDifferentiable> {
    let registry = Arc::clone(graph.registry());
    let mut composites: Vec<(NodeId, Arc<FormulaGraph>)> = Vec::new();
    for node in graph.nodes_deep() {
        let Some(row) = graph.op(node).row() else { continue };
        if let OpDerivative::Body(body) = formulas.derivative(row)? {
            composites.push((node, body));
        }
    }
    if !composites.is_empty() && !wrt.is_empty() {
        let activity = Activity::of_composites(graph, wrt, formulas);
        composites.retain(|(node, _)| graph.operands(*node).any(|v| activity.is_active(v)));
    }
    let mut count = 0;
    for (node, body) in composites {
        let (Some(row), Some(source)) = (graph.op(node).row(), &body.graph) else { continue };
        let schema = registry.schema(row);
        if let Some(result) = masked_result(graph, node, schema) {
            let reason = format!("its mask may leave out result {result}, which its body computes");
            return Err(NotDifferentiable::at(graph, node, reason));
        }
        let operands: Vec<_> = graph.operands(node).collect();
        let results = graph.result_count(node);
        let mut editor = graph.edit();
        editor.at(At::before(node));
        let mut inputs = Vec::with_capacity(body.params.len());
        for param in &body.params {
            let (Named::Arg(i) | Named::Copy(i) | Named::Like(i) | Named::Result(i) | Named::Grad(i)) =
                *param;
            inputs.push(argument(&mut editor, node, schema, i, &operands)?);
        }
        let found = inlined(&mut editor, node, source, &inputs)?;
        let values = if results == 1 { vec![found] } else { editor.unpack_tuple(found).to_vec() };
        if values.len() != results {
            return Err(NotDifferentiable::at(editor.graph(), node, "its body has other results"));
        }
        editor.replace_node(node, &values);
        count += 1;
    }
    Ok(count)
}

/// Returns a result of a backward operator that is used and that the argument `output_mask` may leave out: the operator
/// then has no tensor there.
fn masked_result(graph: &Graph, node: NodeId, schema: &FunctionSchema) -> Option<usize> {
    let arg = schema.args.iter().position(|arg| arg.name.as_str() == "output_mask")?;
    let mask = graph.operands(node).nth(arg)?;
    let is_set = |value: Option<IValue>| value.and_then(|v| v.as_bool()).is_some_and(|set| set);
    let is_computed = |result: usize| match graph.constant(mask).as_ref().and_then(IValue::as_list) {
        Some(list) => is_set(list.read().get(result)),
        None => {
            let list = graph.def(mask);
            graph.is_prim(list, Prim::ListConstruct)
                && is_set(graph.operands(list).nth(result).and_then(|v| graph.constant(v)))
        }
    };
    let used = graph.results(node).enumerate().filter(|(_, v)| graph.use_count(*v) > 0);
    used.map(|(i, _)| i).find(|i| !is_computed(*i))
}
