//! Restores numbers in traced code: replaces constant tensors that stand for numbers when an archive is loaded.
//!
//! A trace calls operators on zero-dimensional constant tensors where the traced program used numbers. PyTorch marks
//! these tensors as wrapped numbers, which have lower priority in type promotion, but an archive does not store the
//! mark. PyTorch's executor treats a constant second operand of a sum, difference, product or quotient as a number.
//! This module rewrites such operands once at loading, so that evaluator and passes need no special case. The facet
//! [`ScalarOverload`] marks the operators concerned.

use std::sync::Arc;

use flambeau_ir::module::{CompilationUnit, Function};
use flambeau_ir::{At, Graph, IValue, NodeId, OpId, Prim, ScalarOverload};
use flambeau_tensor::{DType, Scalar};

/// Rewrites all functions of a unit.
pub(crate) fn restore_numbers(unit: &mut CompilationUnit) {
    let changed: Vec<Function> = unit
        .functions()
        .filter_map(|f| Some(Function { graph: with_numbers(&f.graph)?, ..(**f).clone() }))
        .collect();
    for function in changed {
        unit.define_function(function);
    }
}

/// Returns the rewritten graph, or `None` if there is nothing to rewrite.
fn with_numbers(graph: &Graph) -> Option<Arc<Graph>> {
    let calls: Vec<Call> = graph.nodes_deep().filter_map(|node| call_on_number(graph, node)).collect();
    if calls.is_empty() {
        return None;
    }
    let mut graph = graph.clone();
    let mut editor = graph.edit();
    for call in calls {
        let (loc, tensor) = (editor.graph().loc(call.node), editor.graph().operand(call.node, NUMBER));
        let number = editor.at(At::before(call.node)).loc(loc).constant(IValue::from(call.number));
        editor.set_operand(call.node, NUMBER, number);
        editor.set_op(call.node, call.op);
        if editor.graph().use_count(tensor) == 0 {
            let unused = editor.graph().def(tensor);
            editor.erase(unused);
        }
    }
    Some(Arc::new(graph))
}

/// Index of the operand that may stand for a number.
const NUMBER: usize = 1;

struct Call {
    node: NodeId,
    op: OpId,
    number: Scalar,
}

/// Returns the scalar overload to call if the second operand of a node is a constant that stands for a number.
fn call_on_number(graph: &Graph, node: NodeId) -> Option<Call> {
    let (op, registry) = (graph.op(node).row()?, graph.registry());
    let ScalarOverload(overload) = registry.facet::<ScalarOverload>(op)?;
    let operand = graph.operands(node).nth(NUMBER)?;
    if !graph.is_prim(graph.def(operand), Prim::Constant) {
        return None;
    }
    let constant = graph.constant(operand)?;
    // Tracing never turns booleans into tensors, and PyTorch's executor fails on them.
    let tensor = constant.as_tensor().filter(|t| t.rank() == 0 && t.dtype() != DType::Bool)?;
    let number = tensor.item().ok()?;
    let op = registry.lookup(&format!("{}.{overload}", registry.schema(op).name))?;
    Some(Call { node, op, number })
}
