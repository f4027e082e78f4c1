//! Calls in a region of automatic mixed precision (`torch.autocast`).
//!
//! The operands of an operator with a policy are converted before the call. PyTorch computes composite operators by calls of
//! others and converts the operands of those, so a call of a composite operator becomes the body of the function that
//! computes it ([`Composites`]), with conversions within it.

use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::{AutocastPolicy, Graph, IValue, LoweringRole, NodeId, OpId, OpKind, Prim, Type, ValueId};
use std::sync::Arc;

use super::{Lowering, Res};
use crate::error::quoted;
use crate::{ExportCode, ExportError};

/// Returns the body of the function that computes an operator with the operators that PyTorch calls for it: a graph
/// without calls of functions, whose inputs are all parameters of the operator. `None` if there is no such function.
pub type Composites<'a> = dyn Fn(OpId) -> Result<Option<Arc<Graph>>, ExportError> + 'a;

/// Bound on the number of composite operators within each other.
const MAX_NESTING: usize = 8;

impl Lowering<'_> {
    /// Applies the policy of the operator that a node calls, and returns the values of its results.
    pub(super) fn in_region(&mut self, node: NodeId) -> Res<Vec<ValueId>> {
        match self.autocast {
            Some(dtype) => self.with_policy(node, dtype, 0),
            None => Ok(self.graph.results(node).collect()),
        }
    }

    fn with_policy(&mut self, node: NodeId, dtype: i64, nesting: usize) -> Res<Vec<ValueId>> {
        let OpKind::Row(op) = self.graph.op(node).kind() else {
            return Ok(self.graph.results(node).collect());
        };
        match self.registry.facet::<AutocastPolicy>(op) {
            Some(AutocastPolicy::Composite) if nesting < MAX_NESTING => {
                if let Some(function) = (self.composites)(op)? {
                    return self.expand(node, op, &function, dtype, nesting + 1);
                }
            }
            Some(AutocastPolicy::Reduced) => self.convert_operands(node, Some(dtype))?,
            Some(AutocastPolicy::Full) => self.convert_operands(node, None)?,
            Some(AutocastPolicy::Composite) | None => {}
        }
        Ok(self.graph.results(node).collect())
    }

    /// Converts the operands of a node that are tensors: to `dtype`, or to single precision.
    fn convert_operands(&mut self, node: NodeId, dtype: Option<i64>) -> Res<()> {
        let operands: Vec<ValueId> = self.graph.operands(node).collect();
        for (i, operand) in operands.into_iter().enumerate() {
            self.before = Some(node);
            let ty = self.graph.ty(operand);
            let converted = if ty.is_tensor() {
                self.convert(operand, dtype)?
            } else if ty.unwrap_optional().is_tensor() {
                self.convert_optional(operand, dtype)?
            } else {
                continue;
            };
            self.edit().set_operand(node, i, converted);
        }
        self.before = None;
        Ok(())
    }

    fn convert(&mut self, tensor: ValueId, dtype: Option<i64>) -> Res<ValueId> {
        let no = self.constant(IValue::Bool(false), Type::BOOL);
        let yes = self.constant(IValue::Bool(true), Type::BOOL);
        match dtype {
            Some(dtype) => {
                let dtype = self.int(dtype);
                let operands = [tensor, no, yes, dtype, dtype];
                self.role_value(LoweringRole::ToReducedPrecision, &operands, Type::TENSOR)
            }
            None => self.role_value(LoweringRole::ToFullPrecision, &[tensor, no, yes], Type::TENSOR),
        }
    }

    /// Converts a value that is a tensor or `None`.
    fn convert_optional(&mut self, value: ValueId, dtype: Option<i64>) -> Res<ValueId> {
        let none = self.constant(IValue::None, Type::NONE);
        let is_tensor = self.role_value(LoweringRole::IsNot, &[value, none], Type::BOOL)?;
        let mut edit = self.edit();
        let node = edit.node(Prim::If, &[is_tensor], &[Type::optional(Type::TENSOR)]);
        let blocks = [edit.add_block(node), edit.add_block(node)];
        edit.add_block_output(blocks[1], none);
        let outer = (std::mem::replace(&mut self.block, blocks[0]), self.before.take());
        let tensor = self.edit().value(Prim::UncheckedUnwrapOptional, &[value], Type::TENSOR);
        let converted = self.convert(tensor, dtype)?;
        self.edit().add_block_output(blocks[0], converted);
        (self.block, self.before) = outer;
        Ok(self.graph.result(node, 0))
    }

    /// Replaces a call of a composite operator by the body of the function that computes it.
    fn expand(
        &mut self,
        node: NodeId,
        op: OpId,
        function: &Graph,
        dtype: i64,
        nesting: usize,
    ) -> Res<Vec<ValueId>> {
        let registry = Arc::clone(&self.registry);
        let schema = registry.schema(op);
        let operands: Vec<ValueId> = self.graph.operands(node).collect();
        if operands.len() != function.inputs().len() {
            return Err(unusable(schema));
        }
        self.lowered += function.nodes_deep().count();
        self.check_size()?;
        let before = self.graph.prev(node);
        self.before = Some(node);
        let mut edit = self.edit();
        let mut results = edit.inline_graph(function, &operands, None).map_err(|_| unusable(schema))?;
        if let ([tuple], 2..) = (results.as_slice(), schema.returns.len()) {
            results = edit.unpack_tuple(*tuple).to_vec();
        }
        self.before = None;
        if results.len() != self.graph.result_count(node) {
            return Err(unusable(schema));
        }
        let mut copied: Vec<NodeId> = Vec::new();
        let mut at = before.and_then(|before| self.graph.next(before));
        while let Some(next) = at.filter(|&next| next != node) {
            copied.push(next);
            let blocks: Vec<_> = self.graph.blocks(next).collect();
            copied.extend(blocks.into_iter().flat_map(|block| self.graph.nodes_deep_in(block)));
            at = self.graph.next(next);
        }
        for inner in copied {
            let own = self.graph.results(inner).collect::<Vec<_>>();
            let made = self.with_policy(inner, dtype, nesting)?;
            for result in &mut results {
                if let Some(i) = own.iter().position(|value| value == result) {
                    *result = made[i];
                }
            }
        }
        self.edit().replace_node(node, &results);
        Ok(results)
    }
}

#[cold]
fn unusable(schema: &FunctionSchema) -> ExportError {
    let message = format!("the function that computes {} does not fit it", quoted(&schema.full_name()));
    ExportError::new(ExportCode::Operator, message)
}
