//! The walk back: gradients from results to what they came from.

use super::history::{self, Edge, Kind, Node, OpCall};
use super::region::{self, Written};
use super::{Derivative, Derivatives, Tape};
use crate::error::{ExecError, KernelError};
use crate::host::Host;
use crate::structural::sum_gradients;
use flambeau_ir::value::IValue;
use flambeau_tensor::Tensor;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node that gradients came to, one for each of its outputs.
struct Due {
    node: Arc<Node>,
    grads: Vec<Option<Tensor>>,
}

/// The gradients of `inputs`, given those of `outputs`. `None` for an input that no output came from.
///
/// `tape` is where formulas come from; it need not be set on the host, and nothing is recorded meanwhile.
///
/// # Errors
/// `Unsupported` if a gradient meets an operator whose derivative is not known; `Input` if a tensor that a formula needs
/// was written to since, or an output does not require a gradient.
pub fn gradients(
    tape: &Tape,
    outputs: &[(Tensor, Tensor)],
    inputs: &[Tensor],
    host: &mut Host,
) -> Result<Vec<Option<Tensor>>, ExecError> {
    let recording = host.set_tape(None);
    let result = walk(&*tape.derivatives, outputs, inputs, host);
    host.set_tape(recording);
    result
}

fn walk(
    derivatives: &dyn Derivatives,
    outputs: &[(Tensor, Tensor)],
    inputs: &[Tensor],
    host: &mut Host,
) -> Result<Vec<Option<Tensor>>, ExecError> {
    let mut due: BTreeMap<u64, Due> = BTreeMap::new();
    for (output, grad) in outputs {
        let edge = history::edge(output).ok_or_else(|| {
            let message = "element 0 of tensors does not require grad and does not have a grad_fn";
            ExecError::of(&KernelError::input(message))
        })?;
        send(&mut due, &edge, grad.clone()).map_err(|e| ExecError::of(&e))?;
    }
    let wanted: Vec<Option<(u64, usize)>> =
        inputs.iter().map(|t| history::edge(t).map(|edge| (edge.node.id, edge.output))).collect();
    let mut found: Vec<Option<Tensor>> = vec![None; inputs.len()];
    while let Some((id, Due { node, grads })) = due.pop_last() {
        host.poll().map_err(|e| ExecError::of(&e))?;
        for (slot, wanted) in found.iter_mut().zip(&wanted) {
            if let Some((_, output)) = wanted.filter(|(node, _)| *node == id) {
                *slot = grads.get(output).cloned().flatten();
            }
        }
        for (edge, grad) in back(derivatives, &node, &grads, host)? {
            send(&mut due, edge, grad).map_err(|e| ExecError::of(&e))?;
        }
    }
    Ok(found)
}

/// Adds a gradient to what has come to where an edge leads.
fn send(due: &mut BTreeMap<u64, Due>, edge: &Edge, grad: Tensor) -> Result<(), KernelError> {
    let grad = edge.geometry.fit(grad)?;
    let at =
        due.entry(edge.node.id).or_insert_with(|| Due { node: Arc::clone(&edge.node), grads: Vec::new() });
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

/// The gradients that go from a node to those it came from.
fn back<'n>(
    derivatives: &dyn Derivatives,
    node: &'n Node,
    grads: &[Option<Tensor>],
    host: &mut Host,
) -> Result<Sent<'n>, ExecError> {
    let fail = |e: KernelError| ExecError::of(&e);
    let first = grads.first().cloned().flatten();
    match (&node.kind, first) {
        (Kind::Leaf, _) => Ok(Sent::new()),
        (Kind::Op(call), _) => formulas(derivatives, call, &node.edges, grads, host),
        (Kind::View { base, view }, Some(grad)) => {
            let grad = region::of_view(&grad, base, view).map_err(fail)?;
            Ok(node.edges.iter().flatten().map(|edge| (edge, grad.clone())).collect())
        }
        (Kind::Write { base, view, call, target }, Some(grad)) => {
            let written = Written::split(&grad, base, view).map_err(fail)?;
            let part = written.part().map_err(fail)?;
            // What comes back to the view as it was belongs to the region of the base as it was.
            let old = node.edges[1 + call.places[*target].start].as_ref().map(|edge| edge.node.id);
            let back = formulas(derivatives, call, &node.edges[1..], &[Some(part)], host)?;
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
        (Kind::View { .. } | Kind::Write { .. }, None) => Ok(Sent::new()),
    }
}

/// The gradients of an operator's arguments.
fn formulas<'n>(
    derivatives: &dyn Derivatives,
    call: &OpCall,
    edges: &'n [Option<Edge>],
    grads: &[Option<Tensor>],
    host: &mut Host,
) -> Result<Sent<'n>, ExecError> {
    let fail = |e: KernelError| ExecError::of(&e);
    let known = match call.derivative.as_deref() {
        Some(Derivative::Formulas(formulas)) => formulas,
        Some(Derivative::Constant) => return Ok(Sent::new()),
        None => return Err(fail(KernelError::unsupported(format!("the derivative of `{}`", call.name)))),
    };
    call.check_versions().map_err(fail)?;
    let mut sent = Sent::new();
    for (index, formula) in known.iter().enumerate() {
        let place = call.places[formula.arg];
        let edges = &edges[place.start..place.start + place.list.unwrap_or(1)];
        if edges.iter().all(Option::is_none) {
            continue;
        }
        let inputs = formula.inputs.iter().map(|input| call.input(*input, grads));
        let inputs = inputs.collect::<Result<_, _>>().map_err(fail)?;
        match derivatives.apply(call.op, index, inputs, host)? {
            IValue::Tensor(grad) => {
                sent.extend(edges.first().and_then(Option::as_ref).map(|edge| (edge, grad)));
            }
            IValue::List(list) => {
                let grads: Vec<IValue> = list.read().iter().collect();
                let pairs = edges.iter().zip(grads);
                sent.extend(
                    pairs.filter_map(|(edge, grad)| Some((edge.as_ref()?, grad.as_tensor()?.clone()))),
                );
            }
            _ => {}
        }
    }
    Ok(sent)
}
