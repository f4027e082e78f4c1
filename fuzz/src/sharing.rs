//! Ways in which the arguments and constants of a program share memory.
//!
//! Generated programs get arguments with separate memory. This file adds aliasing among arguments and constants: each
//! [`Sharing`] constructs a case with one form of it. The tensors are fresh in each case, because runs write them.

use crate::case::Case;
use flambeau_ir::{At, Graph, IValue, Prim, Type, ValueId};
use flambeau_tensor::Tensor;
use std::sync::Arc;

/// The form in which arguments and constants share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// No sharing.
    Disjoint,
    /// All tensor arguments are one tensor.
    OneTensor,
    /// Tensor arguments are views of the first one: the same elements, or transposed.
    Views,
    /// Some uses of arguments read constants instead that share the first argument's storage, alone and in a tuple.
    Constants,
    /// Like `Constants`, but the argument has its own memory.
    ConstantsDisjoint,
}

impl Sharing {
    /// All forms.
    pub const ALL: [Sharing; 5] = [
        Sharing::Disjoint,
        Sharing::OneTensor,
        Sharing::Views,
        Sharing::Constants,
        Sharing::ConstantsDisjoint,
    ];

    /// Returns the case with this form of sharing; `None` if it has too few tensors. Its inputs are for one run.
    #[must_use]
    pub fn apply(self, case: &Case) -> Option<Case> {
        let mut inputs = case.fresh_inputs();
        let first = inputs.iter().position(|v| matches!(v, IValue::Tensor(_)))?;
        let IValue::Tensor(base) = inputs[first].clone() else { return None };
        let others = inputs.iter().skip(first + 1).any(|v| matches!(v, IValue::Tensor(_)));
        let mut graph = Arc::clone(&case.graph);
        match self {
            Sharing::Disjoint => {}
            Sharing::OneTensor | Sharing::Views if !others => return None,
            Sharing::OneTensor | Sharing::Views => {
                for (i, input) in inputs.iter_mut().enumerate().skip(first + 1) {
                    if matches!(input, IValue::Tensor(_)) {
                        *input = IValue::Tensor(match self {
                            Sharing::OneTensor => base.clone(),
                            _ if i % 2 == 0 => base.alias(),
                            _ => transposed(&base),
                        });
                    }
                }
            }
            Sharing::Constants => graph = Arc::new(with_constants(&graph, &base)?),
            Sharing::ConstantsDisjoint => {
                let own = base.clone_data().ok()?;
                graph = Arc::new(with_constants(&graph, &own)?);
            }
        }
        Some(Case { graph, inputs, unit: Arc::clone(&case.unit) })
    }
}

/// Returns the tensor with the dimensions in reverse order.
fn transposed(base: &Tensor) -> Tensor {
    let turned = |of: &[i64]| of.iter().rev().copied().collect::<Vec<i64>>();
    base.as_strided(&turned(base.sizes()), &turned(base.strides()), None).unwrap_or_else(|_| base.alias())
}

/// Replaces every third use of tensor inputs by a constant with the storage of `base`, and every third by an element of
/// a constant tuple.
fn with_constants(graph: &Graph, base: &Tensor) -> Option<Graph> {
    let mut graph = graph.clone();
    let inputs: Vec<ValueId> = graph.inputs().filter(|&v| graph.ty(v).is_tensor()).collect();
    let uses: Vec<_> = inputs.iter().flat_map(|&v| graph.uses(v)).collect();
    let pair = Type::tuple(&[Type::TENSOR, Type::INT]);
    let start = At::start(graph.root());
    let mut e = graph.edit();
    e.at(start);
    let alone = e.constant(IValue::Tensor(base.clone()));
    let held = e.constant_of(IValue::tuple(vec![IValue::Tensor(base.alias()), IValue::Int(0)]), pair);
    let index = e.constant(IValue::Int(0));
    let item = e.value(Prim::TupleIndex, &[held, index], Type::TENSOR);
    for (i, u) in uses.iter().enumerate() {
        match i % 3 {
            0 => e.set_operand(u.user, u.index as usize, alone),
            1 => e.set_operand(u.user, u.index as usize, item),
            _ => {}
        }
    }
    (!uses.is_empty()).then_some(graph)
}
