//! The reverse part of a derivative: formulas of all active nodes, from the last to the first, appended to the graph.
//!
//! Every formula is inlined. Gradients of a value that several nodes use are summed, and each gradient is brought to
//! sizes and dtype of its value ([`Helper::Fit`]), unless the operator maps elements of a single tensor. A value that no
//! result depends on has no gradient, so formulas whose gradients are all absent are left out.

use super::activity::Activity;
use super::{Named, NotDifferentiable, concrete_value};
use flambeau_exec::Pointwise;
use flambeau_ir::{Editor, FunctionSchema, Graph, IValue, NodeId, OpId, Prim, Type, ValueId};
use hashbrown::HashMap;
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
}

/// The source of formulas.
pub trait FormulaGraphs {
    /// Returns the derivative of an operator.
    ///
    /// # Errors
    /// If a formula does not compile.
    fn derivative(&self, op: OpId) -> Result<OpDerivative, NotDifferentiable>;

    /// Returns a helper.
    ///
    /// # Errors
    /// If the helper does not compile.
    fn helper(&self, helper: Helper) -> Result<Arc<Graph>, NotDifferentiable>;
}

/// The gradient of a value.
enum Grad {
    Tensor(ValueId),
    /// Of a list or tuple, per element.
    Elements(Vec<Option<ValueId>>),
}

/// Appends the gradients of active values.
pub(super) struct Reverse<'a> {
    editor: Editor<'a>,
    activity: &'a Activity,
    formulas: &'a dyn FormulaGraphs,
    grads: HashMap<ValueId, Grad, FxBuildHasher>,
}

impl<'a> Reverse<'a> {
    /// `editor`: at the end of the graph.
    pub(super) fn new(editor: Editor<'a>, activity: &'a Activity, formulas: &'a dyn FormulaGraphs) -> Self {
        Reverse { editor, activity, formulas, grads: HashMap::default() }
    }

    /// Seeds the gradient of an output.
    pub(super) fn seed(&mut self, value: ValueId, grad: ValueId) -> Result<(), NotDifferentiable> {
        self.add(value, grad, None)
    }

    /// Returns the gradient of a value, if there is one.
    pub(super) fn gradient(&self, value: ValueId) -> Option<ValueId> {
        match self.grads.get(&value) {
            Some(Grad::Tensor(grad)) => Some(*grad),
            _ => None,
        }
    }

    /// Appends the gradients that a node sends to its operands.
    pub(super) fn node(&mut self, node: NodeId) -> Result<(), NotDifferentiable> {
        let g = self.editor.graph();
        let results: Vec<ValueId> = g.results(node).collect();
        if !results.iter().any(|v| self.grads.contains_key(v)) {
            return Ok(());
        }
        let loc = g.loc(node);
        self.editor.loc(loc);
        match self.editor.graph().prim(node) {
            Some(Prim::ListConstruct | Prim::TupleConstruct) => self.construct(node, results[0]),
            Some(Prim::ListUnpack | Prim::TupleUnpack) => self.unpack(node, &results),
            _ => self.operator(node, &results),
        }
    }

    fn construct(&mut self, node: NodeId, result: ValueId) -> Result<(), NotDifferentiable> {
        let Some(Grad::Elements(grads)) = self.grads.remove(&result) else { return Ok(()) };
        let operands: Vec<ValueId> = self.editor.graph().operands(node).collect();
        for (operand, grad) in operands.into_iter().zip(grads) {
            if let Some(grad) = grad {
                self.add(operand, grad, None)?;
            }
        }
        Ok(())
    }

    fn unpack(&mut self, node: NodeId, results: &[ValueId]) -> Result<(), NotDifferentiable> {
        let operand = self.editor.graph().operand(node, 0);
        let mut grads: Vec<Option<ValueId>> = results.iter().map(|v| self.gradient(*v)).collect();
        // The formula of an operator that made the list reads gradients of all elements.
        if self.activity.derivative(self.editor.graph().def(operand)).is_some() {
            for (grad, result) in grads.iter_mut().zip(results) {
                if grad.is_none() {
                    *grad = Some(self.help(Helper::ZerosLike, &[*result])?);
                }
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
            let what = format!("the derivative with respect to argument {arg} is unknown");
            return Err(NotDifferentiable::at(self.editor.graph(), node, what));
        }
        for formula in formulas.iter().filter(|formula| formula.args.iter().any(is_active)) {
            let Some(graph) = &formula.graph else { continue };
            let Some(inputs) = self.inputs(node, formula, &operands, results)? else { continue };
            let found = self.inline(node, graph, &inputs)?;
            let parts = match formula.args.len() {
                1 => vec![found],
                _ => self.editor.unpack_tuple(found).to_vec(),
            };
            for (arg, part) in formula.args.iter().zip(parts) {
                if is_active(arg) {
                    self.deliver(node, operands[*arg], part)?;
                }
            }
        }
        Ok(())
    }

    fn inline(
        &mut self,
        node: NodeId,
        graph: &Graph,
        inputs: &[ValueId],
    ) -> Result<ValueId, NotDifferentiable> {
        let found = self.editor.inline_graph(graph, inputs, None);
        let found = found.ok().and_then(|values| values.first().copied());
        found.ok_or_else(|| NotDifferentiable::at(self.editor.graph(), node, "its formula cannot be inlined"))
    }

    fn help(&mut self, helper: Helper, inputs: &[ValueId]) -> Result<ValueId, NotDifferentiable> {
        let graph = self.formulas.helper(helper)?;
        let node = self.editor.cursor();
        self.inline(node, &graph, inputs)
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
        if !read.is_empty() && !read.iter().any(|v| self.grads.contains_key(v)) {
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
                Named::Arg(i) | Named::Like(i) => argument(&mut self.editor, node, schema, i, operands)?,
            });
        }
        Ok(Some(inputs))
    }

    /// Returns the gradient of a result, as a value of its type.
    fn result_gradient(&mut self, node: NodeId, result: ValueId) -> Result<ValueId, NotDifferentiable> {
        match self.grads.get(&result) {
            Some(Grad::Tensor(grad)) => Ok(*grad),
            Some(Grad::Elements(elements)) => {
                let elements: Option<Vec<ValueId>> = elements.iter().copied().collect();
                let elements = elements.ok_or_else(|| {
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
    fn deliver(&mut self, node: NodeId, operand: ValueId, grad: ValueId) -> Result<(), NotDifferentiable> {
        let g = self.editor.graph();
        let (ty, of) = (g.ty(grad), g.ty(operand));
        if ty == Type::NONE {
            return Ok(());
        }
        if of.is_tensor() && ty.is_tensor() {
            return self.add(operand, grad, Some(node));
        }
        if of.is_tensor() && ty.unwrap_optional().is_tensor() {
            let grad = self.help(Helper::Defined, &[grad, operand])?;
            return self.add(operand, grad, Some(node));
        }
        if of.list_elem().is_some() && ty.list_elem().is_some_and(Type::is_tensor) {
            let list = g.def(operand);
            if !g.is_prim(list, Prim::ListConstruct) {
                return Err(NotDifferentiable::at(g, node, "a list is not made in the graph"));
            }
            let types = vec![Type::TENSOR; g.operand_count(list)];
            let unpacked = self.editor.node(Prim::ListUnpack, &[grad], &types);
            let grads = self.editor.graph().results(unpacked).map(Some).collect();
            return self.add_elements(operand, grads);
        }
        Err(NotDifferentiable::at(g, node, format!("a gradient has type {ty}")))
    }

    /// Adds gradients of the elements of a list or tuple.
    fn add_elements(&mut self, value: ValueId, grads: Vec<Option<ValueId>>) -> Result<(), NotDifferentiable> {
        let mut sums = match self.grads.remove(&value) {
            Some(Grad::Elements(sums)) => sums,
            _ => vec![None; grads.len()],
        };
        for (sum, grad) in sums.iter_mut().zip(grads) {
            *sum = match (*sum, grad) {
                (Some(a), Some(b)) => Some(self.help(Helper::Sum, &[a, b])?),
                (a, b) => a.or(b),
            };
        }
        self.grads.insert(value, Grad::Elements(sums));
        Ok(())
    }

    /// Adds a gradient of a tensor, which the formula of node `from` computed.
    fn add(&mut self, value: ValueId, grad: ValueId, from: Option<NodeId>) -> Result<(), NotDifferentiable> {
        if !self.activity.is_active(value) {
            return Ok(());
        }
        let grad = match from {
            Some(node) if !self.keeps_sizes(node) => self.help(Helper::Fit, &[grad, value])?,
            _ => grad,
        };
        let sum = match self.grads.get(&value) {
            Some(Grad::Tensor(sum)) => {
                let sum = *sum;
                self.help(Helper::Sum, &[sum, grad])?
            }
            _ => grad,
        };
        self.grads.insert(value, Grad::Tensor(sum));
        Ok(())
    }

    /// Whether gradients of a node's operands have their sizes and dtypes: the node maps the elements of one tensor.
    fn keeps_sizes(&self, node: NodeId) -> bool {
        let g = self.editor.graph();
        let is_pointwise = g.op(node).row().is_some_and(|row| g.registry().facet::<Pointwise>(row).is_some());
        is_pointwise && g.operands(node).filter(|v| g.ty(*v).is_tensor()).count() == 1
    }
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
    let fail = |g: &Graph, what: &str| Err(NotDifferentiable::at(g, node, what));
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
