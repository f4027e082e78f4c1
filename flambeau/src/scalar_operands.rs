//! Bools for parameters of type `Scalar`, in the graph of an exported program that becomes a TorchScript module.
//!
//! `torch.export` calls operators of ATen, which accept a bool for a `Scalar`; the lowering casts it to `number`. The schemas of
//! TorchScript accept integers, floats and complex numbers only, and a bool determines the dtype of some results. Each such operand is
//! replaced by the first of these that leaves the dtypes of the results as the program states them:
//!
//! 1. the integer 0 or 1, with the dtype as a further argument if the operator has a parameter `dtype` that is not given;
//! 2. a tensor without dimensions and of dtype bool, if the operator has an overload with tensors in place of the `Scalar`s. A bool is the
//!    least dtype of every promotion, so the tensor changes no dtype either.
//!
//! Afterwards every operand has a type that the schema of its operator accepts. The cost is linear in the size of the graph.

use crate::error::Error;
use crate::exported_module::unsupported;
use flambeau_analysis::shape::{Fact, OperandFact, Range, ShapeCx, Symbols, TensorFact, infer};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_export::lower::{Metadata, ValueMeta};
use flambeau_ir::{At, Editor, FunctionSchema, Graph, IValue, NodeId, OpId, Prim, Type, ValueId};
use flambeau_tensor::{DType, Scalar, Tensor};
use std::sync::Arc;

/// Replaces the bools that are operands of type `Scalar`. Nodes of the program keep their ids.
///
/// # Errors
/// `E015` with operator and parameter if no replacement leaves the dtypes of the results as they are.
pub(crate) fn replace_bools(graph: &mut Graph, metadata: &Metadata) -> Result<(), Error> {
    let registry = Arc::clone(graph.registry());
    let nodes: Vec<NodeId> = graph.nodes_deep().collect();
    for node in nodes {
        let Some(op) = graph.op(node).row() else { continue };
        let bools: Vec<usize> = (0..graph.operand_count(node))
            .filter(|&i| bool_of(graph, graph.operand(node, i)).is_some())
            .collect();
        if bools.is_empty() {
            continue;
        }
        let call = Call { graph, metadata, node, op, schema: registry.schema(op), bools: &bools };
        let Some(replacement) = call.replacement() else {
            let parameter = registry.schema(op).args.get(bools[0]).map(|arg| arg.name);
            let name = registry.schema(op).full_name();
            return Err(unsupported(format!(
                "a bool for the parameter `{}` of `{name}`",
                parameter.unwrap_or_default()
            )));
        };
        replacement.apply(graph, node, &bools)?;
    }
    Ok(())
}

/// Returns the bool of an operand that is a bool cast to `number`.
pub(crate) fn bool_of(graph: &Graph, operand: ValueId) -> Option<ValueId> {
    let cast = graph.def(operand);
    let source = graph.is_prim(cast, Prim::UncheckedCast).then(|| graph.operand(cast, 0))?;
    (graph.ty(operand) == Type::NUMBER && graph.ty(source) == Type::BOOL).then_some(source)
}

/// A call with bools among its operands.
struct Call<'g> {
    graph: &'g Graph,
    metadata: &'g Metadata,
    node: NodeId,
    op: OpId,
    schema: &'g FunctionSchema,
    /// Positions of the bools.
    bools: &'g [usize],
}

/// The form of a call in which TorchScript accepts it.
enum Replacement {
    /// Bools as integers. The operand at the position becomes the dtype.
    Integers(Option<(usize, DType)>),
    /// Bools as tensors, for another overload.
    Tensors(OpId),
}

impl Call<'_> {
    fn replacement(&self) -> Option<Replacement> {
        let graph = self.graph;
        let stated: Vec<Option<DType>> =
            graph.results(self.node).map(|result| self.stated_dtype(result)).collect();
        if let (Some(at), [Some(dtype)]) = (self.schema.arg_index("dtype"), stated.as_slice())
            && at < graph.operand_count(self.node)
            && graph.ty(graph.operand(self.node, at)) == Type::NONE
        {
            return Some(Replacement::Integers(Some((at, *dtype))));
        }
        let has_tensors = graph.results(self.node).any(|result| graph.ty(result).is_tensor());
        if !has_tensors || self.keeps_dtypes(self.op, &IValue::Int(1), &stated) {
            return Some(Replacement::Integers(None));
        }
        let tensor = IValue::Tensor(zero_dim(true).ok()?);
        let others = graph.registry().overloads(self.schema.name).iter().copied();
        let mut with_tensors = others.filter(|&other| self.takes_tensors(graph.registry().schema(other)));
        with_tensors.find(|&other| self.keeps_dtypes(other, &tensor, &stated)).map(Replacement::Tensors)
    }

    /// Returns true for the schema of the operator with tensors in place of the bools.
    fn takes_tensors(&self, other: &FunctionSchema) -> bool {
        let same_parameters =
            self.schema.args.iter().zip(&other.args).enumerate().all(|(i, (own, other))| {
                let wanted = if self.bools.contains(&i) { Type::TENSOR } else { own.ty.unwrap_optional() };
                own.name == other.name && other.ty.unwrap_optional() == wanted
            });
        self.schema.args.len() == other.args.len() && same_parameters
    }

    /// Returns true if an operator has results of the stated dtypes for operands with `replacement` in place of the bools.
    fn keeps_dtypes(&self, op: OpId, replacement: &IValue, stated: &[Option<DType>]) -> bool {
        let registry = self.graph.registry();
        let mut symbols = Symbols::default();
        let facts: Vec<OperandFact<'static>> = self
            .graph
            .operands(self.node)
            .enumerate()
            .map(|(i, operand)| match self.bools.contains(&i) {
                true => OperandFact::of(replacement),
                false => self.fact(operand),
            })
            .collect();
        stated.iter().enumerate().all(|(index, stated)| {
            let mut cx = ShapeCx::new(Some(registry.schema(op)), facts.iter().cloned(), &mut symbols);
            let fact = infer(registry.facet::<ResultShapes>(op), registry.facet::<Dtype>(op), index, &mut cx);
            stated.is_some() && fact.as_tensor().and_then(|tensor| tensor.dtype) == *stated
        })
    }

    /// Returns the dtype of a tensor that the program states.
    fn stated_dtype(&self, value: ValueId) -> Option<DType> {
        match self.metadata.meta(value)? {
            ValueMeta::Tensor(meta) => meta.dtype.dtype(),
            _ => None,
        }
    }

    /// Returns an operand as rules of dtypes see it.
    fn fact(&self, operand: ValueId) -> OperandFact<'static> {
        if let Some(value) = self.graph.constant(operand) {
            return OperandFact::of(&value);
        }
        let fact = match self.metadata.meta(operand) {
            Some(ValueMeta::Tensor(meta)) => {
                // The number of dimensions takes part in promotions, sizes do not.
                let mut symbols = Symbols::default();
                let dims = meta.sizes.iter().map(|_| symbols.fresh(Range::SIZE));
                Fact::Tensor(TensorFact::of_dims(dims).with_dtype(meta.dtype.dtype()))
            }
            _ => Fact::Unknown,
        };
        OperandFact { fact: std::borrow::Cow::Owned(fact), ty: self.graph.ty(operand), constant: None }
    }
}

impl Replacement {
    fn apply(&self, graph: &mut Graph, node: NodeId, bools: &[usize]) -> Result<(), Error> {
        for &position in bools {
            let Some(source) = bool_of(graph, graph.operand(node, position)) else { continue };
            // Each operand has a cast of its own, which becomes the conversion: nodes of the program state their modules. A constant
            // tensor would not do, because PyTorch 2.6 makes a bool of it again when it optimizes sums and products.
            let cast = graph.def(graph.operand(node, position));
            let known = graph.constant(source).and_then(|value| value.as_bool());
            let mut edit = graph.edit();
            edit.at(At::before(cast));
            match (self, known) {
                (Replacement::Integers(_), Some(known)) => {
                    let value = edit.constant(IValue::Int(i64::from(known)));
                    edit.set_operand(node, position, value);
                    edit.erase(cast);
                }
                (Replacement::Integers(_), None) => convert(&mut edit, cast, "aten::Int.bool", Type::INT)?,
                (Replacement::Tensors(_), _) => convert(&mut edit, cast, "aten::tensor.bool", Type::TENSOR)?,
            }
        }
        let mut edit = graph.edit();
        edit.at(At::before(node));
        match *self {
            Replacement::Integers(Some((at, dtype))) => {
                let value = edit.constant(IValue::Int(dtype.scalar_type()));
                edit.set_operand(node, at, value);
            }
            Replacement::Integers(None) => {}
            Replacement::Tensors(op) => edit.set_op(node, op),
        }
        Ok(())
    }
}

/// Makes a cast the call of an operator whose further parameters have defaults.
fn convert(edit: &mut Editor<'_>, cast: NodeId, name: &str, ty: Type) -> Result<(), Error> {
    let registry = Arc::clone(edit.graph().registry());
    let op = registry.lookup(name).ok_or_else(|| unsupported(format!("a session without `{name}`")))?;
    for argument in &registry.schema(op).args[1..] {
        let default = edit.constant(argument.default.clone().unwrap_or_default());
        edit.push_operand(cast, default);
    }
    edit.set_op(cast, op);
    edit.set_type(edit.graph().result(cast, 0), ty);
    Ok(())
}

/// Returns a tensor without dimensions and of dtype bool.
fn zero_dim(value: bool) -> Result<Tensor, Error> {
    Tensor::from_scalars(&[Scalar::Bool(value)], &[], DType::Bool)
        .map_err(|e| unsupported(format!("a bool as a tensor: {e}")))
}
