//! Operators that write their first operand, and those that compute the same into memory of their own.
//!
//! The two go by one name, the first with `_` behind it, and take the same. They give the same unless writing changes
//! what is written to the operand's element type, so whoever replaces one by the other asks [`Twins::keeps_dtype`]. An
//! operator that writes refuses what does not fit its operand; its twin may go on there, so a program that raised may
//! give a value, never another value.

use flambeau_analysis::Shapes;
use flambeau_analysis::shape::{Dtype, Fact, Operand, Shape, ShapeCx, infer};
use flambeau_exec::Kernel;
use flambeau_ir::{FunctionSchema, Graph, NodeId, OpId, Registry, Symbol};
use flambeau_tensor::DType;
use flambeau_tensor::promote::can_cast;
use std::borrow::Cow;

/// Finds twins in a registry.
pub(crate) struct Twins<'r> {
    registry: &'r Registry,
}

/// Most tensors of unknown element type for which all types are tried.
const MAX_UNKNOWN: usize = 2;

impl<'r> Twins<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        Twins { registry }
    }

    /// The operator that computes into new memory what `op` writes into its first operand.
    pub(crate) fn functional(&self, op: OpId) -> Option<OpId> {
        let writer = self.registry.schema(op);
        let name = writer.name.as_str().strip_suffix('_').filter(|n| !n.ends_with(['_', ':']))?;
        let twin = self.registry.find(Symbol::new(name), writer.overload)?;
        self.are_twins(writer, self.registry.schema(twin)).then_some(twin).filter(|&t| self.runs_as(op, t))
    }

    /// The operator that writes into its first operand what `op` computes.
    pub(crate) fn writing(&self, op: OpId) -> Option<OpId> {
        let function = self.registry.schema(op);
        let name = format!("{}_", function.name.as_str());
        let twin = self.registry.find(Symbol::new(&name), function.overload)?;
        self.are_twins(self.registry.schema(twin), function).then_some(twin).filter(|&t| self.runs_as(op, t))
    }

    fn are_twins(&self, writer: &FunctionSchema, function: &FunctionSchema) -> bool {
        let takes_alike = writer.args.len() == function.args.len()
            && writer.args.iter().zip(&function.args).all(|(a, b)| a.ty == b.ty && a.name == b.name);
        let writes_first = writer.args.iter().enumerate().all(|(i, a)| a.is_write() == (i == 0));
        let gives_one = |s: &FunctionSchema| s.returns.len() == 1 && s.returns[0].ty.is_tensor();
        takes_alike
            && writes_first
            && gives_one(writer)
            && gives_one(function)
            && writer.returns[0].alias.is_some()
            && !function.has_aliases()
    }

    /// A twin that cannot be run is none for one that can.
    fn runs_as(&self, op: OpId, twin: OpId) -> bool {
        self.registry.facet::<Kernel>(op).is_none() || self.registry.facet::<Kernel>(twin).is_some()
    }

    /// Whether a node that writes can be its twin `function`: that gives the element type of the first operand, as far
    /// as it can be written there at all, for all types that the operands may have.
    pub(crate) fn keeps_dtype(&self, graph: &Graph, shapes: &Shapes, node: NodeId, function: OpId) -> bool {
        self.all_give(graph, shapes, node, function, |own, given| own == given || !can_cast(given, own))
    }

    /// Whether a node that computes `function` can write into its first operand: that has the element type of the result,
    /// for all types that the operands may have.
    pub(crate) fn fits_operand(&self, graph: &Graph, shapes: &Shapes, node: NodeId, function: OpId) -> bool {
        self.all_give(graph, shapes, node, function, |own, given| own == given)
    }

    fn all_give(
        &self,
        graph: &Graph,
        shapes: &Shapes,
        node: NodeId,
        function: OpId,
        right: impl Fn(DType, DType) -> bool,
    ) -> bool {
        for_all_dtypes(graph, shapes, node, |operands| {
            let own = operands.first().and_then(|o| o.fact.as_tensor()).and_then(|t| t.dtype);
            let given = given_dtype(self.registry, shapes, function, operands);
            own.zip(given).is_some_and(|(own, given)| right(own, given))
        })
    }
}

/// Whether something holds of a node's operands for all element types that those may have of which it is not known.
pub(crate) fn for_all_dtypes(
    graph: &Graph,
    shapes: &Shapes,
    node: NodeId,
    holds: impl Fn(&[Operand<'_>]) -> bool,
) -> bool {
    let mut operands: Vec<Operand<'_>> = graph
        .operands(node)
        .map(|v| Operand {
            fact: Cow::Borrowed(shapes.fact(v)),
            ty: shapes.refined_type(graph, v),
            constant: graph.constant(v),
        })
        .collect();
    let unknown: Vec<usize> = (0..operands.len())
        .filter(|&i| operands[i].ty.as_tensor().is_some_and(|t| t.dtype.is_none()))
        .collect();
    if unknown.len() > MAX_UNKNOWN {
        return false;
    }
    let choices = DType::ALL.len().pow(unknown.len() as u32);
    (0..choices).all(|choice| {
        let mut rest = choice;
        for &i in &unknown {
            let dtype = DType::ALL[rest % DType::ALL.len()];
            rest /= DType::ALL.len();
            let known = operands[i].fact.as_tensor().cloned().unwrap_or_default();
            operands[i].fact = Cow::Owned(Fact::Tensor(known.with_dtype(Some(dtype))));
        }
        holds(&operands)
    })
}

/// The element type that an operator gives for operands.
pub(crate) fn given_dtype(
    registry: &Registry,
    shapes: &Shapes,
    op: OpId,
    operands: &[Operand<'_>],
) -> Option<DType> {
    let mut symbols = shapes.symbols().clone();
    let mut cx = ShapeCx::new(Some(registry.schema(op)), operands.iter().cloned(), &mut symbols);
    let (shape, dtype) = (registry.facet::<Shape>(op), registry.facet::<Dtype>(op));
    infer(shape, dtype, 0, &mut cx).as_tensor().and_then(|t| t.dtype)
}
