//! Differentiation of a graph: a forward graph, which also returns the values that derivatives read, and a backward
//! graph, which computes gradients from these.
//!
//! Both are parts of one graph in which the backward nodes follow the forward nodes. The border between them is moved
//! so that little is kept: backward nodes that compute no tensor and depend on forward values only (sizes, ranks,
//! dtypes) move to the forward part, so that numbers are kept instead of tensors; forward nodes that map elements
//! cheaply are recomputed in the backward part (rematerialized) if their operands are kept for another use.
//!
//! Values of branches and loops that the backward part reads become results of these (`exports.rs`). Linear in the size of
//! the graph and of the formulas, for a bounded depth of nesting.

use super::NotDifferentiable;
use super::activity::Activity;
use super::certainty::Certainty;
use super::exports::{self, Border, Exports, ListOps};
use super::input_facts::{KnownTypes, input_type};
use super::reverse::{FormulaGraphs, Helper, Reverse};
use crate::facets::Cost;
use flambeau_exec::Pointwise;
use flambeau_ir::{At, Editor, Graph, IValue, NodeId, Prim, Type, ValueId, WalkStep};
use flambeau_tensor::Tensor;
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

/// A graph and its derivative.
#[derive(Debug)]
pub struct Gradient {
    /// The graph; its outputs are followed by whether those that are conditional have gradients, by the values `wrt` and
    /// by the captures.
    pub forward: Graph,
    /// Inputs: the gradient of each tensor in `outputs`, then the captures. Outputs: the gradient of each value in
    /// `wrt`, or `None` where no output depends on it.
    pub backward: Graph,
    /// For each of `outputs`, whether it depends on a value in `wrt` in some runs only. For each such output the forward graph
    /// has a bool among its results, after the others, and its gradient is an optional input of the backward graph, which
    /// is `None` if that bool is false.
    pub conditional: Vec<bool>,
    /// The tensors of the results that depend on a value in `wrt`: the position of an output, then positions in nested
    /// tuples, lists and dictionaries (the position of an entry).
    pub outputs: Vec<Vec<usize>>,
    /// The number of outputs of the differentiated graph.
    pub results: usize,
    /// The number of captures.
    pub captures: usize,
}

impl Gradient {
    /// Returns the tensor of results at a path, as [`Gradient::outputs`] has them.
    pub fn tensor_at(values: &[IValue], path: &[usize]) -> Option<Tensor> {
        let (first, rest) = path.split_first()?;
        let mut value = values.get(*first)?.clone();
        for i in rest {
            value = match &value {
                IValue::Tuple(tuple) => tuple.items().get(*i)?.clone(),
                IValue::List(list) => list.read().iter().nth(*i)?,
                IValue::Dict(dict) => dict.read().iter().nth(*i)?.1.clone(),
                _ => return None,
            };
        }
        value.as_tensor().cloned()
    }
}

/// Cost up to which an elementwise operator is computed again.
const CHEAP: Cost = Cost::POINTWISE;

/// Differentiates a graph with respect to values of its root block. Results at the positions `without` count as
/// constants. Bodies of composite operators must have been expanded.
///
/// # Errors
/// Returns the node that prevents it: an operator without a formula, or an effect.
pub fn differentiate(
    graph: &Graph,
    wrt: &[ValueId],
    without: &[Vec<usize>],
    formulas: &dyn FormulaGraphs,
) -> Result<Gradient, NotDifferentiable> {
    let types = KnownTypes::of(graph);
    let activity = Activity::of(graph, wrt, formulas, &types)?;
    let root = graph.root();
    let results: Vec<ValueId> = graph.outputs().collect();
    let mut outputs = active_tensors(graph, &activity, &results)?;
    outputs.retain(|(path, _)| !without.contains(path));
    let seed_types: Vec<Type> = outputs.iter().map(|(_, value)| types.type_of(graph, *value)).collect();
    let mut joint = graph.clone();
    let mut border = Border::of(&joint);
    let forward: Vec<NodeId> = graph.nodes(root).collect();
    let mut editor = joint.edit();
    let conditions = conditions(&mut editor, &mut border, &activity, &outputs, formulas)?;
    let seeds: Vec<ValueId> = conditions
        .iter()
        .zip(seed_types)
        .map(|(c, ty)| editor.add_input(if c.is_some() { Type::optional(Type::TENSOR) } else { ty }))
        .collect();
    editor.at(At::end(root));
    let mut reverse = Reverse::new(editor, &activity, formulas, &types);
    for ((_, value), seed) in outputs.iter().zip(&seeds) {
        reverse.seed(*value, *seed)?;
    }
    reverse.block(&forward)?;
    let gradients: Vec<Option<ValueId>> = wrt.iter().map(|v| reverse.gradient(*v)).collect();
    let ops =
        ListOps { push: reverse.operator_of(Helper::Push)?, element: reverse.operator_of(Helper::Element)? };
    let counterparts = std::mem::take(&mut reverse.counterparts);
    drop(reverse);
    let mut editor = joint.edit();
    // Gradients have uses, so that their producers stay live.
    gradients.iter().flatten().for_each(|v| editor.add_output(*v));
    exports::erase_unused_backward(&mut editor, border, &counterparts);
    exports::lift_numbers(&mut editor, &mut border, &counterparts, &seeds);
    Exports::new(&mut editor, border, &counterparts, ops).run()?;
    editor.retain_block_outputs(root, |i| i < results.len());
    let flags: Vec<ValueId> = conditions.iter().flatten().copied().collect();
    let split = Split::of(&joint, border, &seeds, &gradients);
    Ok(Gradient {
        forward: split.forward(&joint, &flags, wrt),
        backward: split.backward(&joint, &gradients),
        conditional: conditions.iter().map(Option::is_some).collect(),
        outputs: outputs.into_iter().map(|(path, _)| path).collect(),
        results: results.len(),
        captures: split.captures.len(),
    })
}

/// Returns, for each output, a value that states whether it depends on a given value in this run; `None` if it always
/// does.
fn conditions(
    editor: &mut Editor<'_>,
    border: &mut Border,
    activity: &Activity,
    outputs: &[(Vec<usize>, ValueId)],
    formulas: &dyn FormulaGraphs,
) -> Result<Vec<Option<ValueId>>, NotDifferentiable> {
    let mut certainty = Certainty::new(editor, activity, formulas);
    let found: Result<Vec<Option<ValueId>>, _> =
        outputs.iter().map(|(_, v)| certainty.condition(*v)).collect();
    *border = Border::of(editor.graph());
    found
}

/// Returns the active tensors among results, also in tuples and lists that the graph makes, with their positions.
fn active_tensors(
    graph: &Graph,
    activity: &Activity,
    results: &[ValueId],
) -> Result<Vec<(Vec<usize>, ValueId)>, NotDifferentiable> {
    let mut found = Vec::new();
    let mut open: Vec<(Vec<usize>, ValueId)> =
        results.iter().enumerate().rev().map(|(i, v)| (vec![i], *v)).collect();
    while let Some((path, value)) = open.pop() {
        if !activity.is_active(value) {
            continue;
        }
        if graph.ty(value).unwrap_optional().is_tensor() {
            found.push((path, value));
            continue;
        }
        let def = graph.def(value);
        if graph.is_prim(def, Prim::DictConstruct) {
            let entries: Vec<ValueId> = entries(graph, def)?;
            open.extend(entries.into_iter().enumerate().rev().map(|(i, v)| ([&path[..], &[i]].concat(), v)));
            continue;
        }
        if !graph.is_prim(def, Prim::TupleConstruct) && !graph.is_prim(def, Prim::ListConstruct) {
            return Err(NotDifferentiable::at(graph, def, "a result is a list that the graph does not make"));
        }
        let elements: Vec<ValueId> = graph.operands(def).collect();
        open.extend(elements.into_iter().enumerate().rev().map(|(i, v)| ([&path[..], &[i]].concat(), v)));
    }
    Ok(found)
}

/// Returns the values of a dictionary that is made of distinct constant keys.
fn entries(graph: &Graph, dict: NodeId) -> Result<Vec<ValueId>, NotDifferentiable> {
    let operands: Vec<ValueId> = graph.operands(dict).collect();
    let mut keys = HashSet::<String, FxBuildHasher>::default();
    let mut values = Vec::with_capacity(operands.len() / 2);
    for pair in operands.chunks_exact(2) {
        let is_new = graph.constant(pair[0]).is_some_and(|key| keys.insert(format!("{key:?}")));
        if !is_new {
            let reason = "a result is a dictionary whose keys are not distinct constants";
            return Err(NotDifferentiable::at(graph, dict, reason));
        }
        values.push(pair[1]);
    }
    Ok(values)
}

/// The two parts of a joint graph.
struct Split {
    border: Border,
    /// Forward nodes that the backward part computes again.
    rematerialized: HashSet<NodeId, FxBuildHasher>,
    /// Forward values that the backward part reads.
    captures: Vec<ValueId>,
    seeds: Vec<ValueId>,
}

impl Split {
    fn of(joint: &Graph, border: Border, seeds: &[ValueId], gradients: &[Option<ValueId>]) -> Split {
        let mut split =
            Split { border, rematerialized: HashSet::default(), captures: Vec::new(), seeds: seeds.to_vec() };
        split.capture(joint, gradients);
        split
    }

    /// Finds the values that the backward part reads, in order of their first use, and those that it computes again.
    fn capture(&mut self, joint: &Graph, gradients: &[Option<ValueId>]) {
        let root = joint.root();
        let backward = self.border.backward(joint);
        let inside: HashSet<NodeId, FxBuildHasher> = backward.iter().copied().collect();
        let given: HashSet<ValueId, FxBuildHasher> = self.seeds.iter().copied().collect();
        let mut seen: HashSet<ValueId, FxBuildHasher> = HashSet::default();
        let mut read: Vec<ValueId> = Vec::new();
        let mut see = |value: ValueId, read: &mut Vec<ValueId>| {
            let def = joint.def(value);
            let is_outside = joint.parent(def) == root && !inside.contains(&def) && !given.contains(&value);
            if is_outside && !joint.is_prim(def, Prim::Constant) && seen.insert(value) {
                read.push(value);
            }
        };
        for &node in &backward {
            operands_deep(joint, node).into_iter().for_each(|v| see(v, &mut read));
        }
        gradients.iter().flatten().for_each(|v| see(*v, &mut read));
        let kept: HashSet<ValueId, FxBuildHasher> = read.iter().copied().collect();
        let is_kept = |v: ValueId| {
            let def = joint.def(v);
            kept.contains(&v) || joint.is_prim(def, Prim::Constant) || joint.is_prim(def, Prim::Param)
        };
        // A chain of such nodes is not followed: each is computed from values that are kept.
        let mut needed = Vec::new();
        for &value in &read {
            let def = joint.def(value);
            let direct =
                joint.operands(def).all(|v| is_kept(v) && !self.rematerialized.contains(&joint.def(v)));
            if direct && is_cheap(joint, def) {
                self.rematerialized.insert(def);
                needed.extend(joint.operands(def).filter(|v| !joint.is_prim(joint.def(*v), Prim::Constant)));
            }
        }
        self.captures = read.into_iter().filter(|v| !self.rematerialized.contains(&joint.def(*v))).collect();
        let mut kept: HashSet<ValueId, FxBuildHasher> = self.captures.iter().copied().collect();
        self.captures.extend(needed.into_iter().filter(|v| kept.insert(*v)));
    }

    /// The joint graph without its backward part.
    fn forward(&self, joint: &Graph, flags: &[ValueId], wrt: &[ValueId]) -> Graph {
        let mut graph = joint.clone();
        let root = graph.root();
        let mut editor = graph.edit();
        flags.iter().chain(wrt).chain(&self.captures).for_each(|v| editor.add_output(*v));
        self.border.backward(joint).into_iter().rev().for_each(|node| erase_if_unused(&mut editor, node));
        // The seeds are the last inputs.
        let own = joint.inputs().len() - self.seeds.len();
        editor.retain_block_inputs(root, |i| i < own);
        graph
    }

    /// The joint graph with captures as inputs instead of its forward part.
    fn backward(&self, joint: &Graph, gradients: &[Option<ValueId>]) -> Graph {
        let mut graph = joint.clone();
        let root = graph.root();
        let backward: HashSet<NodeId, FxBuildHasher> = self.border.backward(joint).into_iter().collect();
        let mut editor = graph.edit();
        editor.retain_block_outputs(root, |_| false);
        editor.at(At::end(root));
        for gradient in gradients {
            let output = gradient.unwrap_or_else(|| editor.constant(IValue::None));
            editor.add_output(output);
        }
        for &value in &self.captures {
            let input = editor.add_input(input_type(editor.graph().ty(value)));
            editor.replace_all_uses(value, input);
        }
        let nodes: Vec<NodeId> = joint.nodes(root).collect();
        for node in nodes.into_iter().rev().filter(|n| !backward.contains(n)) {
            erase_if_unused(&mut editor, node);
        }
        let own = joint.inputs().len() - self.seeds.len();
        editor.retain_block_inputs(root, |i| i >= own);
        graph
    }
}

/// The operands of a node and of all nodes nested in it.
fn operands_deep(joint: &Graph, node: NodeId) -> Vec<ValueId> {
    let mut found: Vec<ValueId> = joint.operands(node).collect();
    for step in joint.blocks(node).flat_map(|block| joint.walk(block)) {
        match step {
            WalkStep::Node(inner) => found.extend(joint.operands(inner)),
            WalkStep::Leave(block) => found.extend(joint.block_outputs(block)),
            WalkStep::Enter(_) | WalkStep::Done(_) => {}
        }
    }
    found
}

/// Erases a node whose results have no uses.
fn erase_if_unused(editor: &mut Editor<'_>, node: NodeId) {
    let g = editor.graph();
    if g.results(node).all(|v| g.use_count(v) == 0) {
        editor.erase(node);
    }
}

/// Whether a node maps elements at a low cost.
fn is_cheap(g: &Graph, node: NodeId) -> bool {
    let Some(row) = g.op(node).row() else { return false };
    let registry = g.registry();
    let cost = registry.facet::<Cost>(row).copied().unwrap_or(Cost::POINTWISE);
    registry.facet::<Pointwise>(row).is_some() && cost <= CHEAP && g.result_count(node) == 1
}
