//! Backward walk: propagates gradients from results to the tensors they were computed from.

use super::history::{self, Edge, Node, NodeKind, OpCall};
use super::record;
use super::region::{self, Written};
use super::{Derivative, Formula, Input, Tape};
use crate::error::{ExecError, KernelError};
use crate::host::Host;
use crate::structural::sum_gradients;
use flambeau_ir::value::{IValue, List};
use flambeau_tensor::Tensor;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node with pending gradients, one per output.
struct PendingNode {
    node: Arc<Node>,
    grads: Vec<Option<Tensor>>,
}

/// Returns the gradients of `inputs` for given gradients of `outputs`; `None` for an input that no output depends on.
///
/// `tape` supplies the formulas. It need not be set on the host; nothing is recorded during the walk.
///
/// # Errors
/// Returns `Unsupported` if a gradient reaches an operator without a known derivative. Returns `Input` if a tensor that
/// a formula reads was modified after it was saved, or if an output does not require a gradient.
pub fn gradients(
    tape: &Tape,
    outputs: &[(Tensor, Tensor)],
    inputs: &[Tensor],
    host: &mut Host,
) -> Result<Vec<Option<Tensor>>, ExecError> {
    unrecorded(host, |host| walk(tape, outputs, inputs, &mut |_, _| Ok(()), host))
}

/// Accumulates gradients into the leaves that `outputs` depend on (see [`gathered`]), for given gradients of the
/// outputs. As in [`gradients`], nothing is recorded during the walk.
///
/// # Errors
/// Returns the errors of [`gradients`].
pub fn backward(tape: &Tape, outputs: &[(Tensor, Tensor)], host: &mut Host) -> Result<(), ExecError> {
    let mut gather = |leaf: &Node, grad: &Tensor| {
        let NodeKind::Leaf(gathered) = &leaf.kind else { return Ok(()) };
        // The leaf tensor was dropped, so its gradient is unobservable.
        let Some(gathered) = gathered.upgrade() else { return Ok(()) };
        let mut gathered = gathered.0.lock();
        match &*gathered {
            // Accumulate in place: the gradient may already be shared with the program.
            Some(sum) => sum.copy_(&sum_gradients(sum, grad)?)?,
            None => *gathered = Some(grad.clone_data()?),
        }
        Ok(())
    };
    unrecorded(host, |host| walk(tape, outputs, &[], &mut gather, host)).map(drop)
}

/// Returns the gradient accumulated in a tensor, if it is a leaf of a recorded graph.
pub fn gathered(tensor: &Tensor) -> Option<Tensor> {
    history::gathered(tensor)
}

/// Makes a tensor a leaf that requires no gradient, dropping its history.
///
/// # Errors
/// Returns an input error if the tensor is a view.
pub fn detach(tensor: &Tensor) -> Result<(), KernelError> {
    history::detach(tensor)
}

/// Whether a tensor was not produced by a recorded operator.
pub fn is_leaf(tensor: &Tensor) -> bool {
    history::edge(tensor).is_none_or(|edge| history::is_leaf(&edge))
}

/// Whether a gradient can propagate from a tensor.
pub fn is_recorded(tensor: &Tensor) -> bool {
    history::edge(tensor).is_some()
}

fn unrecorded<R>(host: &mut Host, work: impl FnOnce(&mut Host) -> R) -> R {
    let recording = host.set_tape(None);
    let result = work(host);
    host.set_tape(recording);
    result
}

fn walk(
    tape: &Tape,
    outputs: &[(Tensor, Tensor)],
    inputs: &[Tensor],
    arrived: &mut dyn FnMut(&Node, &Tensor) -> Result<(), KernelError>,
    host: &mut Host,
) -> Result<Vec<Option<Tensor>>, ExecError> {
    let mut pending: BTreeMap<u64, PendingNode> = BTreeMap::new();
    for (output, grad) in outputs {
        let edge = history::edge(output).ok_or_else(|| {
            let message = "element 0 of tensors does not require grad and does not have a grad_fn";
            ExecError::of(&KernelError::input(message))
        })?;
        send(&mut pending, &edge, grad.clone()).map_err(|e| ExecError::of(&e))?;
    }
    let wanted: Vec<Option<(u64, usize)>> =
        inputs.iter().map(|t| history::edge(t).map(|edge| (edge.node.id, edge.output))).collect();
    let mut found: Vec<Option<Tensor>> = vec![None; inputs.len()];
    while let Some((id, PendingNode { node, grads })) = pending.pop_last() {
        host.poll().map_err(|e| ExecError::of(&e))?;
        for (slot, wanted) in found.iter_mut().zip(&wanted) {
            if let Some((_, output)) = wanted.filter(|(node, _)| *node == id) {
                *slot = grads.get(output).cloned().flatten();
            }
        }
        if let (NodeKind::Leaf(_), Some(Some(grad))) = (&node.kind, grads.first()) {
            arrived(&node, grad).map_err(|e| ExecError::of(&e))?;
        }
        for (edge, grad) in back(tape, &node, &grads, host)? {
            send(&mut pending, edge, grad).map_err(|e| ExecError::of(&e))?;
        }
    }
    Ok(found)
}

/// Accumulates a gradient at the target of an edge.
fn send(pending: &mut BTreeMap<u64, PendingNode>, edge: &Edge, grad: Tensor) -> Result<(), KernelError> {
    let grad = edge.geometry.fit(grad)?;
    let at = pending
        .entry(edge.node.id)
        .or_insert_with(|| PendingNode { node: Arc::clone(&edge.node), grads: Vec::new() });
    if at.grads.len() <= edge.output {
        at.grads.resize(edge.output + 1, None);
    }
    let slot = &mut at.grads[edge.output];
    *slot = Some(match slot.take() {
        Some(sum) => sum_gradients(&sum, &grad)?,
        None => grad,
    });
    Ok(())
}

type Sent<'n> = Vec<(&'n Edge, Tensor)>;

/// Returns the gradients that a node sends along its edges.
fn back<'n>(
    tape: &Tape,
    node: &'n Node,
    grads: &[Option<Tensor>],
    host: &mut Host,
) -> Result<Sent<'n>, ExecError> {
    let fail = |e: KernelError| ExecError::of(&e);
    let first = grads.first().cloned().flatten();
    match (&node.kind, first) {
        (NodeKind::Leaf(_), _) => Ok(Sent::new()),
        (NodeKind::Op(call), _) => differentiate(tape, call, &node.edges, grads, host),
        (NodeKind::View { base, view }, Some(grad)) => {
            let grad = region::of_view(&grad, base, view).map_err(fail)?;
            Ok(node.edges.iter().flatten().map(|edge| (edge, grad.clone())).collect())
        }
        (NodeKind::Write { base, view, call, target }, Some(grad)) => {
            let written = Written::split(&grad, base, view).map_err(fail)?;
            let part = written.part().map_err(fail)?;
            // Gradients that reach the previous version of the view belong to its region of the previous base.
            let old = node.edges[1 + call.arg_edges[*target].start].as_ref().map(|edge| edge.node.id);
            let back = differentiate(tape, call, &node.edges[1..], &[Some(part)], host)?;
            let (to_view, mut sent): (Sent<'_>, Sent<'_>) =
                back.into_iter().partition(|(edge, _)| Some(edge.node.id) == old);
            if let Some(edge) = &node.edges[0] {
                let mut region = view.zeros().map_err(fail)?;
                for (_, grad) in to_view {
                    region = view.fit(grad).and_then(|grad| sum_gradients(&region, &grad)).map_err(fail)?;
                }
                sent.push((edge, written.whole(&region).map_err(fail)?));
            }
            Ok(sent)
        }
        (NodeKind::View { .. } | NodeKind::Write { .. }, None) => Ok(Sent::new()),
    }
}

/// Returns the gradients of an operator's arguments.
fn differentiate<'n>(
    tape: &Tape,
    call: &OpCall,
    edges: &'n [Option<Edge>],
    grads: &[Option<Tensor>],
    host: &mut Host,
) -> Result<Sent<'n>, ExecError> {
    call.check_versions().map_err(|e| ExecError::of(&e))?;
    match call.derivative.as_deref() {
        Some(Derivative::Formulas(known)) => formulas(tape, call, known, edges, grads, host),
        Some(Derivative::Body { inputs, .. }) => through_body(tape, call, inputs, edges, grads, host),
        Some(Derivative::Constant | Derivative::Layout) => Ok(Sent::new()),
        None => {
            let message = format!("the derivative of `{}`", call.name);
            Err(ExecError::of(&KernelError::unsupported(message)))
        }
    }
}

fn formulas<'n>(
    tape: &Tape,
    call: &OpCall,
    known: &[Formula],
    edges: &'n [Option<Edge>],
    grads: &[Option<Tensor>],
    host: &mut Host,
) -> Result<Sent<'n>, ExecError> {
    let fail = |e: KernelError| ExecError::of(&e);
    let needs = |arg: usize| call.arg_edges[arg].of(edges).iter().any(Option::is_some);
    let stated = |arg: usize| known.iter().any(|formula| formula.args.contains(&arg));
    if let Some(arg) = (0..call.arg_edges.len()).find(|arg| needs(*arg) && !stated(*arg)) {
        let message = format!("the derivative of `{}` with respect to argument {arg}", call.name);
        return Err(fail(KernelError::unsupported(message)));
    }
    let mut sent = Sent::new();
    for (index, formula) in known.iter().enumerate() {
        let Some(inputs) = formula.inputs.as_ref().filter(|_| formula.args.iter().any(|arg| needs(*arg)))
        else {
            continue;
        };
        let inputs = inputs.iter().map(|input| call.input(*input, grads));
        let inputs = inputs.collect::<Result<_, _>>().map_err(fail)?;
        let found = tape.derivatives.apply(call.op, index, inputs, host)?;
        match (&*formula.args, found) {
            ([arg], found) => deliver(call.arg_edges[*arg].of(edges), &found, &mut sent),
            (args, IValue::Tuple(found)) => {
                for (arg, found) in args.iter().zip(found.items()) {
                    deliver(call.arg_edges[*arg].of(edges), found, &mut sent);
                }
            }
            (_, found) => {
                let message = format!("the derivatives of `{}` are a {}", call.name, found.type_of());
                return Err(fail(KernelError::internal(message)));
            }
        }
    }
    Ok(sent)
}

/// Sends the gradient of an argument along its edges.
fn deliver<'n>(edges: &'n [Option<Edge>], found: &IValue, sent: &mut Sent<'n>) {
    match found {
        IValue::Tensor(grad) => {
            sent.extend(edges.first().and_then(Option::as_ref).map(|edge| (edge, grad.clone())));
        }
        IValue::List(list) => {
            let grads: Vec<IValue> = list.read().iter().collect();
            let pairs = edges.iter().zip(grads);
            sent.extend(pairs.filter_map(|(edge, grad)| Some((edge.as_ref()?, grad.as_tensor()?.clone()))));
        }
        _ => {}
    }
}

/// Maximal nesting of composite bodies: more than any operator requires, and safe for the native stack.
const NESTED: usize = 16;

/// Returns the gradients of a composite operator: reruns its body with recording and differentiates that recording.
///
/// The inner walk is a native recursion. Bodies belong to operators, not to the program, and consist of operators that
/// have formulas, so the depth is that of compositions; `NESTED` stops a body that contains itself.
fn through_body<'n>(
    tape: &Tape,
    call: &OpCall,
    inputs: &[Input],
    edges: &'n [Option<Edge>],
    grads: &[Option<Tensor>],
    host: &mut Host,
) -> Result<Sent<'n>, ExecError> {
    let fail = |e: KernelError| ExecError::of(&e);
    if tape.nesting >= NESTED {
        return Err(fail(KernelError::internal(format!("the body of `{}` contains itself", call.name))));
    }
    let mut leaves: Vec<(&Edge, Tensor)> = Vec::new();
    let mut args = Vec::new();
    for input in inputs {
        let value = call.input(*input, grads).map_err(fail)?;
        let Input::Arg(arg) = input else { continue };
        args.push(leaf(&value, call.arg_edges[*arg].of(edges), &mut leaves));
    }
    let inner = Tape { derivatives: Arc::clone(&tape.derivatives), nesting: tape.nesting + 1 };
    let recording = host.set_tape(Some(inner.clone()));
    let enabled = host.set_grad_enabled(true);
    let drawing = host.rng().clone();
    if let Some(generator) = &call.generator {
        host.set_rng(generator.fork());
    }
    let results = tape.derivatives.apply(call.op, 0, args, host);
    host.set_rng(drawing);
    host.set_grad_enabled(enabled);
    host.set_tape(recording);
    let mut results = tensors_in(&results?).into_iter().zip(grads);
    let outputs: Vec<(Tensor, Tensor)> = results
        .by_ref()
        .filter_map(|(result, grad)| Some((result, grad.clone()?)))
        .filter(|(result, _)| history::edge(result).is_some())
        .collect();
    let (edges, leaves): (Vec<&Edge>, Vec<Tensor>) = leaves.into_iter().unzip();
    let found = gradients(&inner, &outputs, &leaves, host)?;
    Ok(edges.into_iter().zip(found).filter_map(|(edge, grad)| Some((edge, grad?))).collect())
}

/// Prepares an argument of a body: tensors that require gradients become new leaves.
fn leaf<'n>(value: &IValue, edges: &'n [Option<Edge>], leaves: &mut Vec<(&'n Edge, Tensor)>) -> IValue {
    match value {
        IValue::Tensor(t) => match edges.first() {
            Some(Some(edge)) => {
                let own = t.alias();
                own.set_requires_grad(true);
                leaves.push((edge, own.clone()));
                IValue::Tensor(own)
            }
            _ => value.clone(),
        },
        IValue::List(list) if edges.iter().any(Option::is_some) => {
            let items: Vec<IValue> = list.read().iter().collect();
            let items =
                items.iter().zip(edges).map(|(item, edge)| leaf(item, std::slice::from_ref(edge), leaves));
            IValue::List(List::from_values(list.elem_type(), items.collect()))
        }
        other => other.clone(),
    }
}

/// Returns the tensors of a result, left to right.
fn tensors_in(value: &IValue) -> Vec<Tensor> {
    match value {
        IValue::Tuple(tuple) => tuple.items().iter().flat_map(record::tensors_of).collect(),
        other => record::tensors_of(other).into_vec(),
    }
}
