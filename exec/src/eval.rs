//! Evaluation of one node: on constant operands, for constant propagation, and as a part of a run, for evaluators outside
//! this crate.

use crate::callees::Callees;
use crate::error::KernelError;
use crate::host::Host;
use crate::kernel::{CallOrigin, KernelCx, Rets};
use crate::{resolve, structural};
use flambeau_ir::value::IValue;
use flambeau_ir::{CompilationUnit, Graph, NodeId};
use std::ops::ControlFlow;

/// Resource limits for the evaluation of one node.
#[derive(Clone, Copy, Debug)]
pub struct EvalLimits {
    /// Maximal size of tensors allocated during the evaluation, in bytes.
    pub bytes: usize,
    /// Maximal number of values in the results, including contents: elements of tensors and flat lists count.
    pub values: usize,
}

impl Default for EvalLimits {
    fn default() -> Self {
        EvalLimits { bytes: 64 << 20, values: 1 << 20 }
    }
}

/// Evaluates one node: an operator with a kernel, or a structural operator without blocks, calls or subgraph.
///
/// # Errors
/// Returns the error that the node raises, `Unsupported` for other nodes, and `Limit` if the results exceed the limits.
pub fn eval_node(
    graph: &Graph,
    node: NodeId,
    args: &[IValue],
    limits: EvalLimits,
    host: &mut Host,
) -> Result<Vec<IValue>, KernelError> {
    let mut args = args.to_vec();
    let mut rets = Rets::new();
    let budget = flambeau_tensor::MemoryBudget::new(limits.bytes);
    budget.run(|| match graph.prim(node) {
        Some(prim) if structural::is_control(prim) => Err(KernelError::unsupported(format!(
            "`{}` cannot be evaluated as a constant: it has blocks, calls or a subgraph",
            prim.name()
        ))),
        Some(prim) => {
            let no_functions = CompilationUnit::new();
            let mut cx = KernelCx::new(&mut args, &mut rets, CallOrigin::Node(graph, node), host);
            structural::run(prim, &mut cx, &no_functions)
        }
        None => {
            let kernel = resolve::kernel(graph, graph.op(node))?;
            args.extend(resolve::defaults(graph, node)?);
            kernel.call(&mut KernelCx::new(&mut args, &mut rets, CallOrigin::Node(graph, node), host))
        }
    })?;
    if rets.len() != graph.result_count(node) {
        let (name, n) = (graph.op_name(node), rets.len());
        return Err(KernelError::internal(format!(
            "`{name}` returned {n} results; expected {}",
            graph.result_count(node)
        )));
    }
    let mut left = limits.values;
    for value in &rets {
        check_size(value, &mut left)?;
    }
    Ok(rets)
}

/// Runs one node without control flow ([`is_control`](structural::is_control)) as an evaluator does. The results are not
/// recorded for gradients. `args` are the node's operands; defaults are added.
///
/// # Errors
/// Returns the error that the node raises, and `Unsupported` for operators without a kernel.
pub fn run_node(
    graph: &Graph,
    node: NodeId,
    mut args: Vec<IValue>,
    callees: &dyn Callees,
    host: &mut Host,
) -> Result<Vec<IValue>, KernelError> {
    let mut rets = Rets::new();
    match graph.prim(node) {
        Some(prim) => {
            let mut cx = KernelCx::new(&mut args, &mut rets, CallOrigin::Node(graph, node), host);
            structural::run(prim, &mut cx, callees)?;
        }
        None => {
            host.poll()?;
            let kernel = resolve::kernel(graph, graph.op(node))?;
            args.extend(resolve::defaults(graph, node)?);
            kernel.call(&mut KernelCx::new(&mut args, &mut rets, CallOrigin::Node(graph, node), host))?;
        }
    }
    if rets.len() != graph.result_count(node) {
        let (name, n) = (graph.op_name(node), rets.len());
        let wanted = graph.result_count(node);
        return Err(KernelError::internal(format!("`{name}` returned {n} results; expected {wanted}")));
    }
    Ok(rets)
}

fn check_size(value: &IValue, left: &mut usize) -> Result<(), KernelError> {
    let walked = value.visit(|v| {
        let size = match v {
            IValue::Tensor(t) => t.numel(),
            IValue::Str(s) => s.len() / 8,
            IValue::List(l) => l.len(),
            _ => 0,
        };
        match left.checked_sub(size + 1) {
            Some(rest) => {
                *left = rest;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    });
    match walked {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            Err(KernelError::limit("the result of a constant node exceeds the size limit"))
        }
    }
}
