//! In-place variants: pairs of an operator that writes its first operand and one that computes the same into new
//! memory.
//!
//! The facet [`InplaceOf`](flambeau_ir::InplaceOf) links the two. A pair is used here if its arguments stand in the same
//! order, so that one operator can replace the other at a node. Their results are equal unless the write converts to the
//! operand's element type, so passes check [`InplaceVariants::keeps_dtype`] before a replacement. An in-place operator raises an error if the result does not fit its operand, where the
//! functional variant may return a value. So a program that raised may return a value, but never a different value.

use flambeau_analysis::Shapes;
use flambeau_analysis::shape::{Dim, Dtype, Fact, OperandFact, ResultShapes, ShapeCx, Symbols, infer};
use flambeau_exec::Kernel;
use flambeau_ir::{FunctionSchema, Graph, NodeId, OpId, Registry};
use flambeau_tensor::DType;
use flambeau_tensor::promote::can_cast;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

/// Finds the variants of operators in a registry. Results are cached.
pub(crate) struct InplaceVariants<'r> {
    registry: &'r Registry,
    functional: Known,
    inplace: Known,
}

/// Cache of variants by operator.
type Known = RefCell<HashMap<OpId, Option<OpId>, FxBuildHasher>>;

/// Maximum number of tensors of unknown element type for which all types are tried.
const MAX_UNKNOWN: usize = 2;

impl<'r> InplaceVariants<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        InplaceVariants { registry, functional: Known::default(), inplace: Known::default() }
    }

    /// The functional variant of in-place operator `op`.
    pub(crate) fn functional(&self, op: OpId) -> Option<OpId> {
        *self.functional.borrow_mut().entry(op).or_insert_with(|| self.find_functional(op))
    }

    fn find_functional(&self, op: OpId) -> Option<OpId> {
        let variant = self.registry.functional_variant(op)?;
        (self.are_interchangeable(op, variant) && self.runs_as(op, variant)).then_some(variant)
    }

    /// The in-place variant of functional operator `op`.
    pub(crate) fn inplace(&self, op: OpId) -> Option<OpId> {
        *self.inplace.borrow_mut().entry(op).or_insert_with(|| self.find_inplace(op))
    }

    fn find_inplace(&self, op: OpId) -> Option<OpId> {
        let variant = self.registry.in_place_variant(op)?;
        (self.are_interchangeable(variant, op) && self.runs_as(op, variant)).then_some(variant)
    }

    /// Whether an in-place operator and its functional variant take the same operands in the same order, and the
    /// functional one returns one new tensor.
    fn are_interchangeable(&self, writer: OpId, function: OpId) -> bool {
        let (writer, function) = (self.registry.schema(writer), self.registry.schema(function));
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

    /// Whether the variant has a kernel if `op` has one.
    fn runs_as(&self, op: OpId, variant: OpId) -> bool {
        self.registry.facet::<Kernel>(op).is_none() || self.registry.facet::<Kernel>(variant).is_some()
    }

    /// Whether an in-place node can be replaced by its functional variant `function`: for all possible operand types,
    /// the variant's result has the element type of the first operand, or cannot be cast to that type (the in-place
    /// node raises then).
    pub(crate) fn keeps_dtype(&self, dtypes: &DtypeRules<'_>, node: NodeId, function: OpId) -> bool {
        infers_for_all(dtypes, node, function, |own, inferred| own == inferred || !can_cast(inferred, own))
    }

    /// Whether a node of functional operator `function` can write its result into its first operand: for all possible
    /// operand types, both have the same element type.
    pub(crate) fn fits_operand(&self, dtypes: &DtypeRules<'_>, node: NodeId, function: OpId) -> bool {
        infers_for_all(dtypes, node, function, |own, inferred| own == inferred)
    }
}

fn infers_for_all(
    dtypes: &DtypeRules<'_>,
    node: NodeId,
    function: OpId,
    right: impl Fn(DType, DType) -> bool,
) -> bool {
    dtypes.for_all(node, |operands| {
        let own = operands.first().and_then(|o| o.fact.as_tensor()).and_then(|t| t.dtype);
        let inferred = dtypes.result_dtype(function, operands);
        own.zip(inferred).is_some_and(|(own, inferred)| right(own, inferred))
    })
}

/// Evaluates dtype rules for nodes of one graph. The graph's symbols are copied once, not per query.
pub(crate) struct DtypeRules<'a> {
    graph: &'a Graph,
    shapes: &'a Shapes,
    symbols: Arc<Symbols>,
}

impl<'a> DtypeRules<'a> {
    pub(crate) fn new(graph: &'a Graph, shapes: &'a Shapes) -> Self {
        DtypeRules { graph, shapes, symbols: Arc::new(shapes.symbols().clone()) }
    }

    /// Returns what is known about the operands of a node.
    fn operands(&self, node: NodeId) -> Vec<OperandFact<'_>> {
        let (graph, shapes) = (self.graph, self.shapes);
        let operands = graph.operands(node).map(|v| OperandFact {
            fact: Cow::Borrowed(shapes.fact(v)),
            ty: shapes.refined_type(graph, v),
            constant: graph.constant(v),
        });
        operands.collect()
    }

    /// Whether a predicate holds for all element types that operands of unknown type may have.
    pub(crate) fn for_all(&self, node: NodeId, holds: impl Fn(&[OperandFact<'_>]) -> bool) -> bool {
        let mut operands = self.operands(node);
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

    /// Whether the result of operator `op`, on the operands of a node, certainly has the sizes of the first operand.
    pub(crate) fn keeps_sizes(&self, node: NodeId, op: OpId) -> bool {
        let operands = self.operands(node);
        let Some(own) = operands.first().and_then(|o| o.fact.as_tensor()).and_then(|t| t.dims.as_ref())
        else {
            return false;
        };
        let inferred = self.result(op, &operands);
        let dims = inferred.as_tensor().and_then(|t| t.dims.as_ref());
        dims == Some(own) && !own.contains(&Dim::Unknown)
    }

    /// The element type of an operator's result for these operands.
    pub(crate) fn result_dtype(&self, op: OpId, operands: &[OperandFact<'_>]) -> Option<DType> {
        self.result(op, operands).as_tensor().and_then(|t| t.dtype)
    }

    fn result(&self, op: OpId, operands: &[OperandFact<'_>]) -> Fact {
        let registry = self.graph.registry();
        let mut symbols = Symbols::over(&self.symbols);
        let mut cx = ShapeCx::new(Some(registry.schema(op)), operands.iter().cloned(), &mut symbols);
        infer(registry.facet::<ResultShapes>(op), registry.facet::<Dtype>(op), 0, &mut cx)
    }
}
