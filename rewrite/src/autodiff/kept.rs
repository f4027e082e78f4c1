//! The values that a composite operator keeps for its derivative: the operands and results that the derivatives of its parts read.
//!
//! PyTorch records a composite operator as its parts, and each part keeps the tensors that its own derivative reads. A write
//! to one of these refuses the backward pass. So an operand that a part keeps, as it is or as a view, must not be written
//! later, unlike an operand from which the parts only compute tensors that they keep. [`KeptTensors::of_inputs`] follows the
//! values that formulas read, in the body of the operator, back to the inputs. O(inputs * (nodes + uses)).

use super::Named;
use super::activity::{Activity, is_cast};
use super::reverse::{FormulaGraph, FormulaGraphs, OpDerivative, is_element};
use flambeau_ir::{Graph, NodeId, Prim, ValueId};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use std::collections::BTreeSet;

/// The tensors that a derivative with respect to one input reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptTensors {
    /// Inputs that a formula reads as they are, or as views.
    pub inputs: BTreeSet<usize>,
    /// Inputs from whose elements values are computed that a formula reads.
    pub computed_from: BTreeSet<usize>,
    /// Results that a formula reads as they are, or as views.
    pub results: BTreeSet<usize>,
}

impl KeptTensors {
    /// Returns what the derivative of a graph with respect to an input reads, given the values that depend on the input.
    pub(super) fn of_input(
        graph: &Graph,
        results: &[ValueId],
        activity: &Activity,
        formulas: &dyn FormulaGraphs,
    ) -> KeptTensors {
        let mut origins = Origins::new(graph, formulas);
        for node in graph.nodes_deep() {
            let Some(OpDerivative::Formulas(all)) = activity.derivative(node) else { continue };
            all.iter().for_each(|formula| origins.open_inputs_of(node, formula, activity));
            origins.open_conditions_of(node);
        }
        let tensors = origins.follow();
        let is_kept = |result: ValueId| {
            let mut own = Origins::new(graph, formulas);
            own.open.push((result, true));
            own.follow().iter().any(|tensor| tensors.contains(tensor))
        };
        let kept = (0..results.len()).filter(|i| is_kept(results[*i])).collect();
        KeptTensors { inputs: origins.inputs, computed_from: origins.computed_from, results: kept }
    }
}

/// A walk from values to the inputs they come from.
struct Origins<'a> {
    graph: &'a Graph,
    formulas: &'a dyn FormulaGraphs,
    /// Values to follow, and whether the value itself is kept.
    open: Vec<(ValueId, bool)>,
    seen: HashSet<(ValueId, bool), FxBuildHasher>,
    inputs: BTreeSet<usize>,
    computed_from: BTreeSet<usize>,
}

impl<'a> Origins<'a> {
    fn new(graph: &'a Graph, formulas: &'a dyn FormulaGraphs) -> Self {
        Origins {
            graph,
            formulas,
            open: Vec::new(),
            seen: HashSet::default(),
            inputs: BTreeSet::new(),
            computed_from: BTreeSet::new(),
        }
    }

    /// Opens the values that a formula of a node reads, if one of its gradients is requested.
    fn open_inputs_of(&mut self, node: NodeId, formula: &FormulaGraph, activity: &Activity) {
        let operand = |arg: usize| self.graph.operands(node).nth(arg);
        let is_requested =
            formula.args.iter().filter_map(|arg| operand(*arg)).any(|operand| activity.is_active(operand));
        if !is_requested {
            return;
        }
        let read = formula.params.iter().filter_map(|param| match *param {
            Named::Arg(arg) => Some((operand(arg)?, true)),
            Named::Copy(arg) => Some((operand(arg)?, false)),
            Named::Result(result) => Some((self.graph.results(node).nth(result)?, true)),
            Named::Like(_) | Named::Grad(_) => None,
        });
        let read: Vec<(ValueId, bool)> = read.collect();
        self.open.extend(read);
    }

    /// Opens the conditions under which a node runs.
    fn open_conditions_of(&mut self, node: NodeId) {
        let mut at = self.graph.enclosing(node);
        while let Some(owner) = at {
            let conditions = if self.graph.is_prim(owner, Prim::Loop) { 2 } else { 1 };
            self.open.extend(self.graph.operands(owner).take(conditions).map(|v| (v, false)));
            at = self.graph.enclosing(owner);
        }
    }

    /// Follows the open values; returns the kept ones that are no views.
    fn follow(&mut self) -> BTreeSet<ValueId> {
        let graph = self.graph;
        let mut tensors = BTreeSet::new();
        while let Some((value, is_kept)) = self.open.pop() {
            if !self.seen.insert((value, is_kept)) {
                continue;
            }
            let def = graph.def(value);
            let follow = |v: ValueId| (v, is_kept);
            match graph.prim(def) {
                Some(Prim::Param) => match graph.enclosing(def) {
                    None => {
                        if is_kept {
                            tensors.insert(value);
                        }
                        let index = graph.inputs().position(|input| input == value);
                        let found = if is_kept { &mut self.inputs } else { &mut self.computed_from };
                        found.extend(index);
                    }
                    Some(owner) => self.open_merged(owner, is_kept),
                },
                Some(Prim::If | Prim::Loop) => self.open_merged(def, is_kept),
                Some(prim) if is_cast(prim) || is_container(prim) => {
                    self.open.extend(graph.operands(def).map(follow));
                }
                Some(_) => self.open.extend(graph.operands(def).map(|v| (v, false))),
                None if is_kept && is_view(graph, def, value) => {
                    self.open.extend(graph.operands(def).next().map(follow));
                }
                None => {
                    if is_kept {
                        tensors.insert(value);
                    }
                    self.open_operands(def, value);
                }
            }
        }
        tensors
    }

    /// Opens the values that results of a branch or loop, or values carried by a loop, may be.
    fn open_merged(&mut self, owner: NodeId, is_kept: bool) {
        let graph = self.graph;
        let carried = if graph.is_prim(owner, Prim::Loop) { 2 } else { 1 };
        let operands = graph.operands(owner).enumerate();
        self.open.extend(operands.map(|(i, v)| (v, is_kept && i >= carried)));
        let outputs = graph.blocks(owner).flat_map(|block| graph.block_outputs(block));
        self.open
            .extend(outputs.filter(|v| graph.ty(*v).contains_tensor() || !is_kept).map(|v| (v, is_kept)));
    }

    /// Opens the operands from whose elements an operator computes a value. Operators that compute numbers from the elements of
    /// tensors have an entry in the table of derivatives, which states that the numbers are constants; those that return
    /// sizes and dtypes have none.
    fn open_operands(&mut self, def: NodeId, value: ValueId) {
        let graph = self.graph;
        let derivative = graph.op(def).row().map(|row| self.formulas.derivative(row));
        let is_metadata =
            !graph.ty(value).contains_tensor() && !matches!(derivative, Some(Ok(OpDerivative::Constant)));
        let operands = graph.operands(def).filter(|v| !(is_metadata && graph.ty(*v).contains_tensor()));
        self.open.extend(operands.map(|v| (v, false)));
    }
}

/// Whether a node hands on tensors in containers.
fn is_container(prim: Prim) -> bool {
    matches!(prim, Prim::ListConstruct | Prim::TupleConstruct | Prim::ListUnpack | Prim::TupleUnpack)
}

/// Whether a result of an operator is its first operand, a view of it, or an element.
fn is_view(graph: &Graph, node: NodeId, value: ValueId) -> bool {
    let schema = graph.op(node).row().map(|row| graph.registry().schema(row));
    let result = schema.and_then(|schema| schema.returns.get(graph.result_index(value)));
    is_element(graph, node) || result.is_some_and(|result| result.alias.is_some())
}
