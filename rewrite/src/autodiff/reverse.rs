//! The reverse part of a derivative: formulas of all active nodes, from the last to the first, appended to the graph.
//!
//! Every formula is inlined. Gradients of a value that several nodes use are summed, and each gradient is brought to
//! sizes and dtype of its value ([`Helper::Fit`]), unless the operator maps elements of a single tensor. A value that no
//! result depends on has no gradient, so formulas whose gradients are all absent are left out.
//!
//! Whether a result depends on a value may be known only at run time: a branch may not be taken, a loop may have no
//! iteration. Such a gradient is optional. A node whose results have only optional gradients is differentiated in a branch
//! that is taken if one of them exists, as the backward walk of a recorded program skips it: zeros would not do, since a
//! formula may turn them into NaN. `blocks.rs` differentiates branches and loops themselves.
//!
//! Gradients belong to a scope, which is a block of the backward part: those that a nested block computes for values
//! outside of it become results of the node of that block.

use super::activity::{Activity, is_cast};
use super::input_facts::{InputFact, KnownTypes};
use super::{BodyDependence, Named, NotDifferentiable, concrete_value};
use crate::facets::ContainerOp;
use flambeau_exec::Pointwise;
use flambeau_exec::tape::Refusals;
use flambeau_ir::{BlockId, Editor, FunctionSchema, Graph, IValue, NodeId, OpId, Prim, Type, ValueId};
use hashbrown::HashMap;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The graph of a gradient formula, without calls.
#[derive(Clone, Debug)]
pub struct FormulaGraph {
    /// Positions of the arguments whose gradients it computes; several are returned as a tuple.
    pub args: Vec<usize>,
    /// The meaning of its inputs.
    pub params: Vec<Named>,
    /// The graph; its only output is the gradient, or the tuple of gradients. `None`: the arguments have no gradient.
    pub graph: Option<Arc<Graph>>,
}

/// The derivative of an operator as graphs.
#[derive(Clone, Debug)]
pub enum OpDerivative {
    /// None is known.
    Unknown,
    /// The results are constants.
    Constant,
    /// Formulas of its arguments.
    Formulas(Arc<[FormulaGraph]>),
    /// A graph that computes the same results from the arguments.
    Body(Arc<FormulaGraph>),
}

/// Graphs of operations that differentiation needs beside formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Helper {
    /// `(a, b)`: the sum of two gradients.
    Sum,
    /// `(grad, like)`: the gradient, summed over broadcast dimensions, in the dtype of `like`.
    Fit,
    /// `(like)`: zeros of the same sizes and dtype.
    ZerosLike,
    /// `(grad, like)`: the gradient, or zeros if it is `None`.
    Defined,
    /// `(a, b)`: the sum of a gradient and one that may be `None`.
    SumDefined,
    /// `(a, b)`: the sum of two gradients that may be `None`.
    SumOptional,
    /// `(grad, like)`: as `Fit`, of a gradient that may be `None`.
    FitOptional,
    /// `(grad)`: whether the gradient is not `None`.
    Present,
    /// `(a, b)`: whether one of two conditions holds.
    Either,
    /// `(count, grad)`: the gradient if the count is positive, else `None`.
    IfAny,
    /// `(i)`: the next integer.
    Next,
    /// `(count, i)`: the index that is as far from the end as `i` is from the start.
    Mirror,
    /// `(i)`: an integer as a float.
    Float,
    /// `(list, element)`: appends.
    Push,
    /// `(list, i)`: an element.
    Element,
    /// `(tensor)`: the tensor, as a constant.
    Detach,
    /// `(list, i, grad)`: the gradients of the elements of a list, `None` except that of element `i`.
    ElementGrad,
    /// `(a, b)`: the sums of the elements of two lists of gradients that may be `None`.
    SumElements,
    /// `(grads, like)`: a list of gradients with zeros in place of `None`.
    DefinedElements,
    /// `(value, before)`: a value that is written to a tensor, in its sizes and dtype.
    Written,
    /// `(tensor)`: a copy.
    Copy,
    /// `(like)`: ones of the same sizes and dtype, as a constant.
    OnesLike,
    /// `(placed, mask, base)`: `placed` where the mask is not zero, else `base`.
    Replace,
    /// `(to, value)`: copies elements in place.
    CopyInto,
}

/// The source of formulas.
pub trait FormulaGraphs {
    /// Returns the derivative of an operator.
    ///
    /// # Errors
    /// If a formula does not compile.
    fn derivative(&self, op: OpId) -> Result<OpDerivative, NotDifferentiable>;

    /// Returns the adjoint of a view operator whose elements are distinct memory of its first argument; `None` for other
    /// operators.
    ///
    /// # Errors
    /// If a formula does not compile.
    fn view(&self, op: OpId) -> Result<Option<FormulaGraph>, NotDifferentiable>;

    /// Returns which recorded calls of an operator are refused because gradients are required.
    fn refusals(&self, op: OpId) -> Option<Arc<Refusals>>;

    /// Returns how the results of a composite operator depend on its arguments.
    fn body_dependence(&self, op: OpId) -> Arc<BodyDependence>;

    /// Returns how the results of a call of a composite operator depend on its operands, whose types and constants determine
    /// which parts of the body run.
    fn call_dependence(&self, graph: &Graph, node: NodeId) -> BodyDependence;

    /// Returns a helper.
    ///
    /// # Errors
    /// If the helper does not compile.
    fn helper(&self, helper: Helper) -> Result<Arc<Graph>, NotDifferentiable>;

    /// Returns a formula or helper simplified for what is known of its inputs. It has the same inputs and results.
    fn simplified(&self, graph: &Arc<Graph>, facts: Vec<InputFact>) -> Arc<Graph>;
}

/// The gradient of a value: tensors, or optional tensors.
#[derive(Clone, Debug)]
pub(super) enum Grad {
    Tensor(ValueId),
    /// Of a list or tuple, per element.
    Elements(Vec<Option<ValueId>>),
}

/// The gradients of values that a block of the backward part has computed so far, in the order in which they arose.
pub(super) type Scope = IndexMap<ValueId, Grad, FxBuildHasher>;

/// Appends the gradients of active values.
pub(super) struct Reverse<'a> {
    pub(super) editor: Editor<'a>,
    pub(super) activity: &'a Activity,
    formulas: &'a dyn FormulaGraphs,
    types: &'a KnownTypes,
    /// The scopes of the open blocks of the backward part.
    pub(super) scopes: Vec<(BlockId, Scope)>,
    /// For blocks of the backward part, the block of the forward part that they differentiate.
    pub(super) counterparts: Counterparts,
    /// The numbers of iterations of loops of the forward part.
    pub(super) counts: HashMap<NodeId, ValueId, FxBuildHasher>,
}

/// The blocks of the forward part, by the blocks of the backward part that differentiate them, and what their values are
/// recomputed from.
#[derive(Default)]
pub(super) struct Counterparts {
    /// The forward block of a backward block.
    pub(super) forward: HashMap<BlockId, BlockId, FxBuildHasher>,
    /// The backward block of a forward block; for the body of a loop, with the index of the differentiated iteration.
    pub(super) backward: HashMap<BlockId, (BlockId, Option<ValueId>), FxBuildHasher>,
}

impl<'a> Reverse<'a> {
    /// `editor`: at the end of the graph.
    pub(super) fn new(
        editor: Editor<'a>,
        activity: &'a Activity,
        formulas: &'a dyn FormulaGraphs,
        types: &'a KnownTypes,
    ) -> Self {
        let root = editor.graph().root();
        let scopes = vec![(root, Scope::default())];
        let mut counterparts = Counterparts::default();
        counterparts.forward.insert(root, root);
        Reverse { editor, activity, formulas, types, scopes, counterparts, counts: HashMap::default() }
    }

    /// Seeds the gradient of an output.
    pub(super) fn seed(&mut self, value: ValueId, grad: ValueId) -> Result<(), NotDifferentiable> {
        self.add(value, grad, None)
    }

    /// The gradients of the innermost open block.
    pub(super) fn scope(&mut self) -> &mut Scope {
        let open = self.scopes.len() - 1;
        &mut self.scopes[open].1
    }

    fn grad(&self, value: ValueId) -> Option<&Grad> {
        self.scopes.last().and_then(|(_, scope)| scope.get(&value))
    }

    /// Returns the gradient of a value, if there is one.
    pub(super) fn gradient(&self, value: ValueId) -> Option<ValueId> {
        match self.grad(value) {
            Some(Grad::Tensor(grad)) => Some(*grad),
            _ => None,
        }
    }

    /// Whether a gradient may be `None`.
    pub(super) fn is_optional(&self, grad: ValueId) -> bool {
        let ty = self.editor.graph().ty(grad);
        ty != ty.unwrap_optional() || ty == Type::NONE
    }

    /// Appends the gradients of the nodes of a block of the forward part, from the last to the first.
    pub(super) fn block(&mut self, nodes: &[NodeId]) -> Result<(), NotDifferentiable> {
        nodes.iter().rev().try_for_each(|node| self.node(*node))
    }

    /// Appends the gradients that a node sends to its operands.
    fn node(&mut self, node: NodeId) -> Result<(), NotDifferentiable> {
        let g = self.editor.graph();
        let results: Vec<ValueId> = g.results(node).collect();
        if !results.iter().any(|v| self.grad(*v).is_some()) {
            return Ok(());
        }
        if g.block_count(node) == 0 && !g.operands(node).any(|v| self.activity.is_active(v)) {
            return Ok(());
        }
        let loc = g.loc(node);
        let is_plain = g.prim(node).is_some_and(|prim| is_cast(prim) || is_container(prim))
            && !self.unpacks_operator(node);
        self.editor.loc(loc);
        // The elements of a list from an operator have gradients together: see `unpack`.
        let first = |grad: &Grad| match grad {
            Grad::Tensor(grad) => Some(*grad),
            Grad::Elements(grads) => grads.iter().copied().flatten().next(),
        };
        let grads: Vec<ValueId> = results.iter().filter_map(|v| first(self.grad(*v)?)).collect();
        if !is_plain && !grads.is_empty() && grads.iter().all(|grad| self.is_optional(*grad)) {
            return self.differentiate_if_present(node, &results, &grads);
        }
        self.differentiate(node, &results)
    }

    /// Appends the gradients of a node, some of whose results have gradients.
    pub(super) fn differentiate(
        &mut self,
        node: NodeId,
        results: &[ValueId],
    ) -> Result<(), NotDifferentiable> {
        match self.editor.graph().prim(node) {
            Some(Prim::ListConstruct | Prim::TupleConstruct) => self.construct(node, results[0]),
            Some(Prim::ListUnpack | Prim::TupleUnpack) => self.unpack(node, results),
            Some(Prim::If) => self.differentiate_branch(node, results),
            Some(Prim::Loop) => self.differentiate_loop(node, results),
            Some(prim) if is_cast(prim) => {
                let (operand, grad) = (self.editor.graph().operand(node, 0), self.gradient(results[0]));
                grad.map_or(Ok(()), |grad| self.add(operand, grad, None))
            }
            _ if is_element(self.editor.graph(), node) => self.element(node, results[0]),
            _ => self.operator(node, results),
        }
    }

    /// Appends the gradients of a list of which an element is read: which one may be known only at run time, and the others have
    /// no gradient by this read.
    fn element(&mut self, node: NodeId, result: ValueId) -> Result<(), NotDifferentiable> {
        let Some(grad) = self.gradient(result) else { return Ok(()) };
        let g = self.editor.graph();
        let (list, index) = (g.operand(node, 0), g.operand(node, 1));
        let grad = self.help(Helper::ElementGrad, &[list, index, grad])?;
        let grad = match self.grad(list).cloned() {
            None => grad,
            Some(Grad::Tensor(sum)) => self.help(Helper::SumElements, &[sum, grad])?,
            Some(Grad::Elements(elements)) => {
                let elements: Vec<ValueId> = elements
                    .into_iter()
                    .map(|grad| grad.unwrap_or_else(|| self.editor.constant(IValue::None)))
                    .collect();
                let ty = Type::list(Type::optional(Type::TENSOR));
                let sum = self.editor.value(Prim::ListConstruct, &elements, ty);
                self.help(Helper::SumElements, &[sum, grad])?
            }
        };
        self.scope().insert(list, Grad::Tensor(grad));
        Ok(())
    }

    fn construct(&mut self, node: NodeId, result: ValueId) -> Result<(), NotDifferentiable> {
        let operands: Vec<ValueId> = self.editor.graph().operands(node).collect();
        let grads = match self.grad(result).cloned() {
            None => return Ok(()),
            Some(Grad::Elements(grads)) => grads,
            Some(Grad::Tensor(list)) => self.unpacked_list(list, operands.len()),
        };
        for (operand, grad) in operands.into_iter().zip(grads) {
            if let Some(grad) = grad {
                self.add(operand, grad, None)?;
            }
        }
        Ok(())
    }

    /// Returns the elements of a list of gradients, each of which may be `None`.
    fn unpacked_list(&mut self, list: ValueId, len: usize) -> Vec<Option<ValueId>> {
        let types = vec![Type::optional(Type::TENSOR); len];
        let unpacked = self.editor.node(Prim::ListUnpack, &[list], &types);
        self.editor.graph().results(unpacked).map(Some).collect()
    }

    /// Whether a node unpacks a list that an operator made, whose formula reads gradients of all elements.
    fn unpacks_operator(&self, node: NodeId) -> bool {
        let g = self.editor.graph();
        g.is_prim(node, Prim::ListUnpack) && self.activity.derivative(g.def(g.operand(node, 0))).is_some()
    }

    fn unpack(&mut self, node: NodeId, results: &[ValueId]) -> Result<(), NotDifferentiable> {
        let operand = self.editor.graph().operand(node, 0);
        let mut grads: Vec<Option<ValueId>> = results.iter().map(|v| self.gradient(*v)).collect();
        if self.unpacks_operator(node) {
            for (grad, result) in grads.iter_mut().zip(results) {
                *grad = Some(match *grad {
                    Some(grad) if self.is_optional(grad) => self.help(Helper::Defined, &[grad, *result])?,
                    Some(grad) => grad,
                    None => self.help(Helper::ZerosLike, &[*result])?,
                });
            }
        }
        self.add_elements(operand, grads)
    }

    fn operator(&mut self, node: NodeId, results: &[ValueId]) -> Result<(), NotDifferentiable> {
        let activity = self.activity;
        let Some(OpDerivative::Formulas(formulas)) = activity.derivative(node) else {
            return Err(NotDifferentiable::at(self.editor.graph(), node, "has no derivative as a graph"));
        };
        let formulas = Arc::clone(formulas);
        let operands: Vec<ValueId> = self.editor.graph().operands(node).collect();
        let is_active = |arg: &usize| operands.get(*arg).is_some_and(|v| activity.is_active(*v));
        let stated = |arg: usize| formulas.iter().any(|formula| formula.args.contains(&arg));
        if let Some(arg) = (0..operands.len()).find(|arg| is_active(arg) && !stated(*arg)) {
            let reason = format!("the derivative with respect to argument {arg} is unknown");
            return Err(NotDifferentiable::at(self.editor.graph(), node, reason));
        }
        for formula in formulas.iter().filter(|formula| formula.args.iter().any(is_active)) {
            let Some(graph) = &formula.graph else { continue };
            let Some(inputs) = self.inputs(node, formula, &operands, results)? else { continue };
            let found = self.inlined(node, graph, &inputs)?;
            let parts = match formula.args.len() {
                1 => vec![found],
                _ => self.unpacked(found),
            };
            for (arg, part) in formula.args.iter().zip(parts) {
                if is_active(arg) {
                    self.add_operand_gradient(node, operands[*arg], part)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the elements of a tuple, with the types of the values that it was made of.
    fn unpacked(&mut self, tuple: ValueId) -> Vec<ValueId> {
        let g = self.editor.graph();
        let def = g.def(tuple);
        if g.is_prim(def, Prim::TupleConstruct) {
            return g.operands(def).collect();
        }
        self.editor.unpack_tuple(tuple).to_vec()
    }

    pub(super) fn help(&mut self, helper: Helper, inputs: &[ValueId]) -> Result<ValueId, NotDifferentiable> {
        let graph = self.formulas.helper(helper)?;
        let node = self.editor.cursor();
        self.inlined(node, &graph, inputs)
    }

    /// Inlines a formula or helper, simplified for what is known of its inputs.
    fn inlined(
        &mut self,
        node: NodeId,
        graph: &Arc<Graph>,
        inputs: &[ValueId],
    ) -> Result<ValueId, NotDifferentiable> {
        match self.types.facts(self.editor.graph(), inputs) {
            Some(facts) => inlined(&mut self.editor, node, &self.formulas.simplified(graph, facts), inputs),
            None => inlined(&mut self.editor, node, graph, inputs),
        }
    }

    /// Returns the operator that a helper consists of, which is generic in the types of its operands.
    pub(super) fn operator_of(&self, helper: Helper) -> Result<OpId, NotDifferentiable> {
        let graph = self.formulas.helper(helper)?;
        let found = graph.nodes(graph.root()).find_map(|node| graph.op(node).row());
        let fail = || NotDifferentiable {
            operator: format!("{helper:?}"),
            reason: "is not an operator".to_owned(),
            node: None,
        };
        found.ok_or_else(fail)
    }

    /// Returns the inputs of a formula; `None` if none of the gradients that it reads exists.
    fn inputs(
        &mut self,
        node: NodeId,
        formula: &FormulaGraph,
        operands: &[ValueId],
        results: &[ValueId],
    ) -> Result<Option<Vec<ValueId>>, NotDifferentiable> {
        let read = formula.params.iter().filter_map(|param| match param {
            Named::Grad(i) => Some(results[*i]),
            _ => None,
        });
        let read: Vec<ValueId> = read.collect();
        if !read.is_empty() && !read.iter().any(|v| self.grad(*v).is_some()) {
            return Ok(None);
        }
        let row = self.editor.graph().op(node).row();
        let registry = Arc::clone(self.editor.graph().registry());
        let schema = row.map(|row| registry.schema(row));
        let schema =
            schema.ok_or_else(|| NotDifferentiable::at(self.editor.graph(), node, "is not registered"))?;
        let mut inputs = Vec::with_capacity(formula.params.len());
        for param in &formula.params {
            inputs.push(match *param {
                Named::Grad(i) => self.result_gradient(node, results[i])?,
                Named::Result(i) => results[i],
                Named::Arg(i) | Named::Copy(i) | Named::Like(i) => {
                    let integer = operands.get(i).copied().filter(|v| {
                        let g = self.editor.graph();
                        has_number(schema.args[i].ty) && g.ty(*v) == Type::INT && g.constant(*v).is_none()
                    });
                    match integer {
                        Some(integer) => self.help(Helper::Float, &[integer])?,
                        None => argument(&mut self.editor, node, schema, i, operands)?,
                    }
                }
            });
        }
        Ok(Some(inputs))
    }

    /// Returns the gradient of a result, as a value of its type.
    fn result_gradient(&mut self, node: NodeId, result: ValueId) -> Result<ValueId, NotDifferentiable> {
        match self.grad(result).cloned() {
            Some(Grad::Tensor(grad)) if self.is_optional(grad) => self.help(Helper::Defined, &[grad, result]),
            Some(Grad::Tensor(grads)) if self.editor.graph().ty(grads).list_elem().is_some() => {
                self.help(Helper::DefinedElements, &[grads, result])
            }
            Some(Grad::Tensor(grad)) => Ok(grad),
            Some(Grad::Elements(elements)) => {
                let is_sure = |grad: &Option<ValueId>| grad.is_some_and(|grad| !self.is_optional(grad));
                let are_sure = elements.iter().all(is_sure);
                let elements: Option<Vec<ValueId>> = elements.into_iter().collect();
                let elements = elements.filter(|_| are_sure).ok_or_else(|| {
                    NotDifferentiable::at(
                        self.editor.graph(),
                        node,
                        "an element of its result has no gradient",
                    )
                })?;
                Ok(self.editor.value(Prim::ListConstruct, &elements, Type::list(Type::TENSOR)))
            }
            None => self.help(Helper::ZerosLike, &[result]),
        }
    }

    /// Adds the gradient that a formula computed for an operand.
    fn add_operand_gradient(
        &mut self,
        node: NodeId,
        operand: ValueId,
        grad: ValueId,
    ) -> Result<(), NotDifferentiable> {
        let g = self.editor.graph();
        let (ty, of) = (g.ty(grad), g.ty(operand));
        if ty == Type::NONE {
            return Ok(());
        }
        if of.unwrap_optional().is_tensor() && ty.unwrap_optional().is_tensor() {
            return self.add(operand, grad, Some(node));
        }
        if of.list_elem().is_some() && ty.list_elem().is_some_and(Type::is_tensor) {
            let list = g.def(operand);
            if !g.is_prim(list, Prim::ListConstruct) {
                return Err(NotDifferentiable::at(g, node, "a list is not made in the graph"));
            }
            let elements: Vec<ValueId> = g.operands(list).collect();
            let types = vec![Type::TENSOR; elements.len()];
            let unpacked = self.editor.node(Prim::ListUnpack, &[grad], &types);
            let grads: Vec<ValueId> = self.editor.graph().results(unpacked).collect();
            // The elements may have different dtypes.
            let fitted = elements.into_iter().zip(grads).map(|(element, grad)| {
                if !self.activity.is_active(element) {
                    return Ok(None);
                }
                let like = self.defined(element);
                self.help(Helper::Fit, &[grad, like]).map(Some)
            });
            let fitted = fitted.collect::<Result<_, NotDifferentiable>>()?;
            return self.add_elements(operand, fitted);
        }
        Err(NotDifferentiable::at(g, node, format!("a gradient has type {ty}")))
    }

    /// Adds gradients of the elements of a list or tuple.
    pub(super) fn add_elements(
        &mut self,
        value: ValueId,
        grads: Vec<Option<ValueId>>,
    ) -> Result<(), NotDifferentiable> {
        let mut sums = match self.grad(value).cloned() {
            Some(Grad::Elements(sums)) => sums,
            Some(Grad::Tensor(list)) => self.unpacked_list(list, grads.len()),
            None => Vec::new(),
        };
        sums.resize(sums.len().max(grads.len()), None);
        for (sum, grad) in sums.iter_mut().zip(grads) {
            *sum = match (*sum, grad) {
                (Some(a), Some(b)) => Some(self.sum(a, b)?),
                (a, b) => a.or(b),
            };
        }
        self.scope().insert(value, Grad::Elements(sums));
        Ok(())
    }

    /// Adds a gradient of a tensor, which the formula of node `from` computed.
    pub(super) fn add(
        &mut self,
        value: ValueId,
        grad: ValueId,
        from: Option<NodeId>,
    ) -> Result<(), NotDifferentiable> {
        if !self.activity.is_active(value) {
            return Ok(());
        }
        let grad = match from {
            Some(node) if !self.keeps_sizes(node) => {
                let like = self.defined(value);
                let fit = if self.is_optional(grad) { Helper::FitOptional } else { Helper::Fit };
                self.help(fit, &[grad, like])?
            }
            _ => grad,
        };
        let grad = match self.gradient(value) {
            Some(sum) => self.sum(sum, grad)?,
            None => grad,
        };
        self.scope().insert(value, Grad::Tensor(grad));
        Ok(())
    }

    /// Returns a tensor that a node has read, as a value whose type is not optional.
    pub(super) fn defined(&mut self, value: ValueId) -> ValueId {
        match self.is_optional(value) {
            true => self.editor.value(Prim::UncheckedCast, &[value], Type::TENSOR),
            false => value,
        }
    }

    /// Returns the sum of two gradients, either of which may be optional.
    pub(super) fn sum(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, NotDifferentiable> {
        match (self.is_optional(a), self.is_optional(b)) {
            (false, false) => self.help(Helper::Sum, &[a, b]),
            (false, true) => self.help(Helper::SumDefined, &[a, b]),
            (true, false) => self.help(Helper::SumDefined, &[b, a]),
            (true, true) => self.help(Helper::SumOptional, &[a, b]),
        }
    }

    /// Whether gradients of a node's operands have their sizes and dtypes: the node maps the elements of one tensor.
    fn keeps_sizes(&self, node: NodeId) -> bool {
        let g = self.editor.graph();
        let is_pointwise = g.op(node).row().is_some_and(|row| g.registry().facet::<Pointwise>(row).is_some());
        // An optional tensor may broadcast the result too.
        let may_be_tensor = |v: &ValueId| g.ty(*v).unwrap_optional().is_tensor();
        is_pointwise && g.operands(node).filter(may_be_tensor).count() == 1
    }
}

/// Whether a node reads an element of a list of tensors.
pub(super) fn is_element(g: &Graph, node: NodeId) -> bool {
    let Some(row) = g.op(node).row() else { return false };
    g.registry().facet::<ContainerOp>(row) == Some(&ContainerOp::Item)
        && g.ty(g.operand(node, 0)).list_elem().is_some_and(Type::is_tensor)
}

fn is_container(prim: Prim) -> bool {
    matches!(prim, Prim::ListConstruct | Prim::TupleConstruct | Prim::ListUnpack | Prim::TupleUnpack)
}

/// Whether a parameter takes a number of any kind, which formulas read as a float.
fn has_number(ty: Type) -> bool {
    let ty = ty.unwrap_optional();
    ty == Type::NUMBER || ty.list_elem() == Some(Type::NUMBER)
}

/// Returns an argument as a formula reads it: numbers as floats, absent arguments as constants.
pub(super) fn argument(
    editor: &mut Editor<'_>,
    node: NodeId,
    schema: &FunctionSchema,
    arg: usize,
    operands: &[ValueId],
) -> Result<ValueId, NotDifferentiable> {
    let declared = &schema.args[arg];
    let fail = |g: &Graph, reason: &str| Err(NotDifferentiable::at(g, node, reason));
    let operand = operands.get(arg).copied();
    if let Some(operand) = operand.filter(|_| !has_number(declared.ty)) {
        return Ok(operand);
    }
    let value = match operand {
        Some(operand) => match editor.graph().constant(operand) {
            Some(value) => value,
            None if editor.graph().ty(operand) == Type::FLOAT => return Ok(operand),
            None => return fail(editor.graph(), "a number is not a constant"),
        },
        None => match &declared.default {
            Some(value) => value.clone(),
            None => return fail(editor.graph(), "an argument is missing"),
        },
    };
    if matches!(value, IValue::Complex(_)) {
        return fail(editor.graph(), "a number is complex");
    }
    Ok(editor.constant(concrete_value(value, declared.ty, false)))
}

/// Inserts a graph at the cursor and returns its first output.
///
/// # Errors
/// Returns the node whose derivative the graph is a part of, if the inputs do not fit the graph.
pub(super) fn inlined(
    editor: &mut Editor<'_>,
    node: NodeId,
    graph: &Graph,
    inputs: &[ValueId],
) -> Result<ValueId, NotDifferentiable> {
    let found = editor.inline_graph(graph, inputs, None).ok().and_then(|values| values.first().copied());
    found.ok_or_else(|| {
        NotDifferentiable::at(editor.graph(), node, "a function of its derivative cannot be inlined")
    })
}
