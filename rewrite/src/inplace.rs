//! Operators that write their first operand, and those that compute the same into memory of their own.
//!
//! The two go by one name, the first with `_` behind it, and take the same. They give the same unless writing changes
//! what is written to the operand's element type, so whoever replaces one by the other asks [`InplaceVariants::keeps_dtype`]. An
//! operator that writes refuses what does not fit its operand; its twin may go on there, so a program that raised may
//! give a value, never another value.

use flambeau_analysis::Shapes;
use flambeau_analysis::shape::{Dtype, Fact, Operand, Shape, ShapeCx, Symbols, infer};
use flambeau_exec::Kernel;
use flambeau_ir::{FunctionSchema, Graph, NodeId, OpId, Registry, Symbol};
use flambeau_tensor::DType;
use flambeau_tensor::promote::can_cast;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

/// Finds twins in a registry, each once.
pub(crate) struct InplaceVariants<'r> {
    registry: &'r Registry,
    functional: Known,
    inplace: Known,
}

/// The twins of operators asked about.
type Known = RefCell<HashMap<OpId, Option<OpId>, FxBuildHasher>>;

/// Most tensors of unknown element type for which all types are tried.
const MAX_UNKNOWN: usize = 2;

impl<'r> InplaceVariants<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        InplaceVariants { registry, functional: Known::default(), inplace: Known::default() }
    }

    /// The operator that computes into new memory what `op` writes into its first operand.
    pub(crate) fn functional(&self, op: OpId) -> Option<OpId> {
        *self.functional.borrow_mut().entry(op).or_insert_with(|| self.find_functional(op))
    }

    fn find_functional(&self, op: OpId) -> Option<OpId> {
        let writer = self.registry.schema(op);
        let name = writer.name.as_str().strip_suffix('_').filter(|n| !n.ends_with(['_', ':']))?;
        let variant = self.registry.find(Symbol::new(name), writer.overload)?;
        self.are_variants(writer, self.registry.schema(variant))
            .then_some(variant)
            .filter(|&t| self.runs_as(op, t))
    }

    /// The operator that writes into its first operand what `op` computes.
    pub(crate) fn inplace(&self, op: OpId) -> Option<OpId> {
        *self.inplace.borrow_mut().entry(op).or_insert_with(|| self.find_inplace(op))
    }

    fn find_inplace(&self, op: OpId) -> Option<OpId> {
        let function = self.registry.schema(op);
        let name = format!("{}_", function.name.as_str());
        let variant = self.registry.find(Symbol::new(&name), function.overload)?;
        self.are_variants(self.registry.schema(variant), function)
            .then_some(variant)
            .filter(|&t| self.runs_as(op, t))
    }

    fn are_variants(&self, writer: &FunctionSchema, function: &FunctionSchema) -> bool {
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
    fn runs_as(&self, op: OpId, variant: OpId) -> bool {
        self.registry.facet::<Kernel>(op).is_none() || self.registry.facet::<Kernel>(variant).is_some()
    }

    /// Whether a node that writes can be its twin `function`: that gives the element type of the first operand, as far
    /// as it can be written there at all, for all types that the operands may have.
    pub(crate) fn keeps_dtype(&self, dtypes: &DtypeRules<'_>, node: NodeId, function: OpId) -> bool {
        all_give(dtypes, node, function, |own, given| own == given || !can_cast(given, own))
    }

    /// Whether a node that computes `function` can write into its first operand: that has the element type of the result,
    /// for all types that the operands may have.
    pub(crate) fn fits_operand(&self, dtypes: &DtypeRules<'_>, node: NodeId, function: OpId) -> bool {
        all_give(dtypes, node, function, |own, given| own == given)
    }
}

fn all_give(
    dtypes: &DtypeRules<'_>,
    node: NodeId,
    function: OpId,
    right: impl Fn(DType, DType) -> bool,
) -> bool {
    dtypes.for_all(node, |operands| {
        let own = operands.first().and_then(|o| o.fact.as_tensor()).and_then(|t| t.dtype);
        let given = dtypes.given(function, operands);
        own.zip(given).is_some_and(|(own, given)| right(own, given))
    })
}

/// Asks dtype rules about nodes of one graph. The graph's symbols are copied once, not for every question.
pub(crate) struct DtypeRules<'a> {
    graph: &'a Graph,
    shapes: &'a Shapes,
    symbols: Arc<Symbols>,
}

impl<'a> DtypeRules<'a> {
    pub(crate) fn new(graph: &'a Graph, shapes: &'a Shapes) -> Self {
        DtypeRules { graph, shapes, symbols: Arc::new(shapes.symbols().clone()) }
    }

    /// Whether something holds of a node's operands for all element types that the unknown ones may have.
    pub(crate) fn for_all(&self, node: NodeId, holds: impl Fn(&[Operand<'_>]) -> bool) -> bool {
        let (graph, shapes) = (self.graph, self.shapes);
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
    pub(crate) fn given(&self, op: OpId, operands: &[Operand<'_>]) -> Option<DType> {
        let registry = self.graph.registry();
        let mut symbols = Symbols::over(&self.symbols);
        let mut cx = ShapeCx::new(Some(registry.schema(op)), operands.iter().cloned(), &mut symbols);
        let (shape, dtype) = (registry.facet::<Shape>(op), registry.facet::<Dtype>(op));
        infer(shape, dtype, 0, &mut cx).as_tensor().and_then(|t| t.dtype)
    }
}
