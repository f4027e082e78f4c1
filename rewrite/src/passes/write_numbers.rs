//! Writes numbers into tensors without making tensors of the numbers.
//!
//! `a[i] = 0.5` makes a tensor of the number, with the dtype and device of the view, and copies it. The copy is replaced by
//! a write of the number; dead code elimination removes the tensor. The conversion of a tensor wraps around, or becomes infinite,
//! where the write of a number raises an error: the number must be in the range of the dtype of the view, or of all dtypes
//! if that is not known.

use crate::facets::OpRole;
use crate::pass::{Pass, PassCx, PassError};
use crate::roles;
use flambeau_analysis::shape::Fact;
use flambeau_analysis::{AliasDb, Shapes};
use flambeau_ir::{At, Column, Graph, IValue, NodeId, Type, ValueId};
use flambeau_tensor::{DType, Scalar};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteNumbers;

/// The largest number that all dtypes of numbers have, of which one has no sign.
const MAX: f64 = 127.0;

impl Pass for WriteNumbers {
    const NAME: &'static str = "write_numbers";
    const DOC: &'static str =
        "Replaces copies of tensors that were made of numbers by writes of the numbers.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let roles = registry.column::<OpRole>();
        let is_copy = |g: &Graph, node: NodeId| roles.of(g.op(node)) == Some(&OpRole::Copy);
        if !cx.graph().nodes_deep().any(|node| is_copy(cx.graph(), node)) {
            return Ok(());
        }
        let (graph, (db, shapes)) = cx.with::<(AliasDb, Shapes)>();
        let write = Writes { graph, db, shapes, roles };
        let copies = graph.nodes_deep().filter(|&node| is_copy(graph, node));
        let found: Vec<(NodeId, Number)> =
            copies.filter_map(|node| Some((node, write.number(node)?))).collect();
        if found.is_empty() {
            return Ok(());
        }
        let operators =
            [roles::find(&registry, OpRole::WriteInt)?, roles::find(&registry, OpRole::WriteFloat)?];
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (node, number) in found {
            if !fuel.take("write", editor.graph(), node) {
                break;
            }
            let (target, result) = (editor.graph().operand(node, 0), editor.graph().result(node, 0));
            let (ty, loc) = (editor.graph().ty(result), editor.graph().loc(node));
            editor.at(At::before(node)).loc(loc);
            let number = match number {
                Number::Value(value) => value,
                Number::Constant(value) => editor.constant(value),
            };
            let operator = operators[usize::from(editor.graph().ty(number) == Type::FLOAT)];
            let written = editor.value(operator, &[target, number], ty);
            editor.replace_all_uses(result, written);
            editor.erase(node);
        }
        Ok(())
    }
}

/// A number that is written.
enum Number {
    /// The number that the tensor was made of.
    Value(ValueId),
    /// The element of a constant tensor.
    Constant(IValue),
}

struct Writes<'a> {
    graph: &'a Graph,
    db: &'a AliasDb,
    shapes: &'a Shapes,
    roles: Column<'a, OpRole>,
}

impl Writes<'_> {
    /// Returns the number that a copy may write in place of its source.
    fn number(&self, copy: NodeId) -> Option<Number> {
        let g = self.graph;
        let (target, source) = (g.operand(copy, 0), g.operand(copy, 1));
        if self.db.has_writers(source) {
            return None;
        }
        let dtype = match self.shapes.fact(target) {
            Fact::Tensor(tensor) => tensor.dtype,
            _ => None,
        };
        let is_in_range = |number: Scalar| match dtype {
            Some(dtype) if dtype.is_floating() => number.is_in_range_of(dtype),
            _ => (0.0..=MAX).contains(&number.to_f64()),
        };
        if let Some(IValue::Tensor(tensor)) = g.constant(source) {
            let is_number = tensor.rank() == 0 && dtype == Some(tensor.dtype());
            let number = tensor.item().ok().filter(|number| is_number && is_in_range(*number))?;
            return match number {
                Scalar::Float(x) => Some(Number::Constant(IValue::Float(x))),
                Scalar::Int(n) => Some(Number::Constant(IValue::Int(n))),
                _ => None,
            };
        }
        let made = g.def(source);
        if self.roles.of(g.op(made)) != Some(&OpRole::NumberTensor) || g.operand_count(made) != 4 {
            return None;
        }
        let [number, of_dtype, of_device, requires_grad] = [0, 1, 2, 3].map(|i| g.operand(made, i));
        let is_of_target =
            [(of_dtype, OpRole::DtypeOf), (of_device, OpRole::DeviceOf)].iter().all(|(value, role)| {
                let question = g.def(*value);
                self.roles.of(g.op(question)) == Some(role) && g.operand(question, 0) == target
            });
        let is_plain = matches!(g.constant(requires_grad), Some(IValue::Bool(false)));
        let fits = match g.constant(number) {
            Some(IValue::Float(x)) => is_in_range(Scalar::Float(x)),
            Some(IValue::Int(n)) => is_in_range(Scalar::Int(n)),
            _ => dtype == Some(DType::F64) && g.ty(number) == Type::FLOAT,
        };
        (is_of_target && is_plain && fits).then_some(Number::Value(number))
    }
}
