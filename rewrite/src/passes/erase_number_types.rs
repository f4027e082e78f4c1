//! Converts numbers that operators take in place of tensors to tensors.
//!
//! A constant number becomes a zero-dimensional tensor if the operator has an overload with a tensor in that position
//! and the overload's result has the same element type. Type promotion ranks numbers below tensors, so the element
//! types can differ. Sizes, dimensions and other numbers without such an overload stay numbers.

use super::dce::Dce;
use crate::inplace::DtypeRules;
use crate::numbers;
use crate::pass::{Pass, PassCx, PassError};
use crate::rules::Exactness;
use crate::schedule::Schedule;
use flambeau_analysis::Shapes;
use flambeau_analysis::shape::OperandFact;
use flambeau_ir::types::{TensorType, TypeKind};
use flambeau_ir::{At, Graph, IValue, NodeId, OpId, Registry, Type};
use flambeau_tensor::{DType, Scalar, Tensor};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct EraseNumberTypes;

impl Pass for EraseNumberTypes {
    const NAME: &'static str = "erase_number_types";
    const DOC: &'static str = "Converts numbers that operators take in place of tensors to tensors.";

    /// The overload for a tensor may compute by another formula than the one for a number, as `pow` does.
    fn exactness(&self) -> Exactness {
        Exactness::Rounding
    }

    fn schedule(&self) -> Schedule {
        Schedule::alone().then_if_changed(Dce::default())
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let (graph, shapes) = cx.with::<Shapes>();
        let dtypes = DtypeRules::new(graph, shapes);
        let found: Vec<NumberOperand> =
            graph.nodes_deep().filter_map(|n| plan(graph, &dtypes, &registry, n)).collect();
        if found.is_empty() {
            return Ok(());
        }
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for f in found {
            if !fuel.take("to-tensor", editor.graph(), f.node) {
                break;
            }
            let loc = editor.graph().loc(f.node);
            let tensor = f.tensor;
            let ty = Type::tensor(TensorType::of(&tensor));
            let value = editor.at(At::before(f.node)).loc(loc).constant_of(IValue::Tensor(tensor), ty);
            editor.set_operand(f.node, f.index, value);
            editor.set_op(f.node, f.op);
        }
        Ok(())
    }
}

struct NumberOperand {
    node: NodeId,
    index: usize,
    op: OpId,
    tensor: Tensor,
}

/// The number operand of a node that can be converted.
fn plan(g: &Graph, dtypes: &DtypeRules<'_>, registry: &Registry, node: NodeId) -> Option<NumberOperand> {
    let op = g.op(node).row()?;
    let schema = registry.schema(op);
    if schema.args.len() != g.operand_count(node) || schema.is_mutable() {
        return None;
    }
    // Only a `number` parameter: an `int` parameter is a size or a dimension.
    let index = schema.args.iter().position(|a| matches!(a.ty.kind(), TypeKind::Number))?;
    let scalar = g.constant(g.operand(node, index))?.as_scalar()?;
    let dtype = match scalar {
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => DType::F64,
        Scalar::Bool(_) => DType::Bool,
        Scalar::Complex(_) => DType::C128,
    };
    let other = numbers::overload(registry, op, index, Type::is_tensor)?;
    let tensor = Tensor::from_scalars(&[scalar], &[], dtype).ok()?;
    let as_tensor = OperandFact::of(&IValue::Tensor(tensor.clone()));
    let same = dtypes.for_all(node, |operands| {
        let mut changed = operands.to_vec();
        changed[index] = as_tensor.clone();
        let before = dtypes.result_dtype(op, operands);
        before.is_some() && before == dtypes.result_dtype(other, &changed)
    });
    same.then_some(NumberOperand { node, index, op: other, tensor })
}
