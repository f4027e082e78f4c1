//! Backward walk: propagates gradients from results to the tensors they were computed from.
//!
//! With [`BackwardOptions::create_graph`] the walk is recorded like a program: formulas run on a host with a tape, their saved
//! inputs get back the history that they had when the operator ran, and the linear maps between formulas are nodes. The
//! gradients then have a history of their own, which a further walk differentiates.

use super::history::{self, BackwardOptions, Edge, Node, NodeKind, OpCall};
use super::hooks;
use super::linear::{self, LinearMap};
use super::region::Geometry;
use super::seeds;
use super::{Derivative, Formula, FormulaInput, Tape, record};
use crate::error::{ExecError, KernelError};
use crate::host::Host;
use flambeau_ir::value::IValue;
use flambeau_tensor::Tensor;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// A node with pending gradients, one per output.
struct PendingNode {
    node: Arc<Node>,
    grads: Vec<Option<Tensor>>,
}

/// Returns the gradients of `inputs` for given gradients of `outputs`; `None` for an input that no output depends on.
///
/// `tape` supplies the formulas. It need not be set on the host. Nothing is recorded during the walk, unless `mode`
/// requires it. Only nodes between the outputs and the inputs are visited.
///
/// # Errors
/// Returns `Unsupported` if a gradient reaches an operator without a known derivative. Returns `FormulaInput` if a tensor that
/// a formula reads was modified or released after it was saved, or if an output does not require a gradient.
pub fn gradients(
    tape: &Tape,
    outputs: &[(Tensor, Tensor)],
    inputs: &[Tensor],
    mode: BackwardOptions,
    host: &mut Host,
) -> Result<Vec<Option<Tensor>>, ExecError> {
    let node_output = |t: &Tensor| history::gradient_edge(t).map(|edge| (edge.node.id, edge.output));
    let wanted: Vec<Option<NodeOutput>> = inputs.iter().map(node_output).collect();
    gradients_at(tape, outputs, &wanted, mode, host)
}

/// The id of a node, and one of its outputs.
type NodeOutput = (u64, usize);

/// Returns the gradients that arrive at outputs of nodes.
fn gradients_at(
    tape: &Tape,
    outputs: &[(Tensor, Tensor)],
    wanted: &[Option<NodeOutput>],
    mode: BackwardOptions,
    host: &mut Host,
) -> Result<Vec<Option<Tensor>>, ExecError> {
    on_host(tape, mode, host, |host| {
        let mut walk = Walk::new(tape, mode, outputs)?;
        walk.restrict_to(wanted);
        let mut found: Vec<Option<Tensor>> = vec![None; wanted.len()];
        walk.run(host, &mut |node, grads| {
            for (slot, wanted) in found.iter_mut().zip(wanted) {
                if let Some((_, output)) = wanted.filter(|(id, _)| *id == node.id) {
                    *slot = grads.get(output).cloned().flatten();
                }
            }
            Ok(())
        })?;
        Ok(found)
    })
}

/// Accumulates gradients into the leaves that `outputs` depend on (see [`accumulated_grad`]), for given gradients of the
/// outputs. As in [`gradients`], the walk is recorded only if `mode` requires it.
///
/// # Errors
/// Returns the errors of [`gradients`].
pub fn backward(
    tape: &Tape,
    outputs: &[(Tensor, Tensor)],
    mode: BackwardOptions,
    host: &mut Host,
) -> Result<(), ExecError> {
    on_host(tape, mode, host, |host| {
        Walk::new(tape, mode, outputs)?.run(host, &mut |node, grads| match &node.kind {
            NodeKind::Leaf(leaf) => match grads.first_mut().and_then(Option::take) {
                Some(grad) => history::accumulate(leaf, grad, mode),
                None => Ok(()),
            },
            _ => Ok(()),
        })
    })
}

/// Returns the gradient accumulated in a tensor, if it is a leaf of a recorded graph or its gradient is retained.
pub fn accumulated_grad(tensor: &Tensor) -> Option<Tensor> {
    history::accumulated_grad(tensor)
}

/// Removes the gradient accumulated in a tensor.
pub fn clear_accumulated_grad(tensor: &Tensor) {
    history::set_accumulated_grad(tensor, None);
}

/// Makes `grad` the gradient accumulated in a tensor: later ones are added to it, in its memory unless the backward pass is recorded.
/// Returns false for a tensor in which none accumulates, such as one that requires no gradient.
pub fn set_accumulated_grad(tensor: &Tensor, grad: Tensor) -> bool {
    history::set_accumulated_grad(tensor, Some(grad))
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
    history::gradient_edge(tensor).is_none_or(|edge| history::is_leaf(&edge))
}

/// Whether a gradient can propagate from a tensor.
pub fn is_recorded(tensor: &Tensor) -> bool {
    history::gradient_edge(tensor).is_some()
}

/// Runs a walk with the tape set on the host if the walk is recorded, and with no tape otherwise.
fn on_host<R>(tape: &Tape, mode: BackwardOptions, host: &mut Host, work: impl FnOnce(&mut Host) -> R) -> R {
    let recording = host.set_tape(mode.create_graph.then(|| tape.clone()));
    let enabled = host.set_grad_enabled(mode.create_graph);
    let result = work(host);
    host.set_grad_enabled(enabled);
    host.set_tape(recording);
    result
}

/// The state of a walk.
struct Walk<'t> {
    tape: &'t Tape,
    mode: BackwardOptions,
    /// Nodes with gradients that were not propagated yet, by id. Descending ids are a topological order.
    pending: BTreeMap<u64, PendingNode>,
    /// The nodes to visit, in ascending order; `None` for all.
    visited: Option<Vec<u64>>,
    /// The id of the next node when the walk began.
    began: u64,
}

impl<'t> Walk<'t> {
    fn new(
        tape: &'t Tape,
        mode: BackwardOptions,
        outputs: &[(Tensor, Tensor)],
    ) -> Result<Walk<'t>, ExecError> {
        let mut walk = Walk { tape, mode, pending: BTreeMap::new(), visited: None, began: 0 };
        for (i, (output, grad)) in outputs.iter().enumerate() {
            let seeded = seeds::seeded(i, output, grad);
            seeded.and_then(|(edge, grad)| walk.accumulate_at(&edge, grad)).map_err(|e| ExecError::of(&e))?;
        }
        // After the edges of views were computed.
        walk.began = history::next_id();
        Ok(walk)
    }

    /// Restricts the walk to nodes from which one of the wanted nodes can be reached.
    fn restrict_to(&mut self, wanted: &[Option<NodeOutput>]) {
        let wanted: Vec<u64> = wanted.iter().flatten().map(|(id, _)| *id).collect();
        // No node depends on one with a greater id.
        let Some(&first) = wanted.iter().min() else {
            self.visited = Some(Vec::new());
            return;
        };
        let mut reached: BTreeMap<u64, Arc<Node>> = BTreeMap::new();
        let mut open: Vec<Arc<Node>> = self.pending.values().map(|p| Arc::clone(&p.node)).collect();
        while let Some(node) = open.pop() {
            if node.id < first || reached.contains_key(&node.id) {
                continue;
            }
            open.extend(node.edges.iter().flatten().map(|edge| Arc::clone(&edge.node)));
            reached.insert(node.id, node);
        }
        let mut visited: Vec<u64> = Vec::new();
        for (id, node) in reached {
            let leads = |edge: &Edge| visited.binary_search(&edge.node.id).is_ok();
            if wanted.contains(&id) || node.edges.iter().flatten().any(leads) {
                visited.push(id);
            }
        }
        self.visited = Some(visited);
    }

    /// Whether a gradient may have to pass a node: those that exist since the walk began are known.
    fn visits(&self, node: &Node) -> bool {
        let is_known = |visited: &Vec<u64>| visited.binary_search(&node.id).is_ok();
        node.id >= self.began || self.visited.as_ref().is_none_or(is_known)
    }

    /// Propagates all gradients; passes each node with its complete gradients to `arrived`, which may take those of
    /// leaves.
    fn run(
        mut self,
        host: &mut Host,
        arrived: &mut dyn FnMut(&Node, &mut [Option<Tensor>]) -> Result<(), KernelError>,
    ) -> Result<(), ExecError> {
        while let Some((_, PendingNode { node, mut grads })) = self.pending.pop_last() {
            host.poll().map_err(|e| ExecError::of(&e))?;
            if !self.visits(&node) {
                continue;
            }
            hooks::run_hooks(&node, &mut grads, self.mode, host).map_err(|e| ExecError::of(&e))?;
            arrived(&node, &mut grads).map_err(|e| ExecError::of(&e))?;
            if let NodeKind::Graph(call) = &node.kind
                && (self.mode.create_graph || !call.is_complete(&grads))
            {
                let mode = BackwardOptions { create_graph: true, ..self.mode };
                if call.is_complete(&grads) {
                    let found = on_host(self.tape, mode, host, |host| {
                        call.recorded_gradients(&node.edges, &grads, host)
                    })?;
                    if let Some(found) = found {
                        for (edge, grad) in node.edges.iter().zip(found) {
                            if let (Some(edge), Some(grad)) = (edge, grad.as_tensor())
                                && self.visits(&edge.node)
                            {
                                self.accumulate_at(edge, grad.clone()).map_err(|e| ExecError::of(&e))?;
                            }
                        }
                        continue;
                    }
                }
                let outputs = on_host(self.tape, mode, host, |host| call.again(&node.edges, host))?;
                self.continue_in(outputs, &grads)?;
                continue;
            }
            for (edge, grad) in self.edge_gradients(&node, &grads, host)? {
                if self.visits(&edge.node) {
                    self.accumulate_at(edge, grad).map_err(|e| ExecError::of(&e))?;
                }
            }
            match &node.kind {
                _ if self.mode.retain_graph => {}
                NodeKind::Op(call) | NodeKind::Write { call, .. } => call.release(),
                NodeKind::Graph(call) => call.release(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends the gradients of a call to the outputs of another recording of it. Its nodes are newer than all others.
    fn continue_in(
        &mut self,
        outputs: Vec<Option<Tensor>>,
        grads: &[Option<Tensor>],
    ) -> Result<(), ExecError> {
        for (output, grad) in outputs.iter().zip(grads) {
            if let (Some(edge), Some(grad)) = (output.as_ref().and_then(history::gradient_edge), grad) {
                self.accumulate_at(&edge, grad.clone()).map_err(|e| ExecError::of(&e))?;
            }
        }
        Ok(())
    }

    /// Accumulates a gradient at the target of an edge.
    fn accumulate_at(&mut self, edge: &Edge, grad: Tensor) -> Result<(), KernelError> {
        let record = self.mode.create_graph;
        let grad = linear::fit(grad, &edge.geometry, record)?;
        let at = self
            .pending
            .entry(edge.node.id)
            .or_insert_with(|| PendingNode { node: Arc::clone(&edge.node), grads: Vec::new() });
        if at.grads.len() <= edge.output {
            at.grads.resize(edge.output + 1, None);
        }
        let slot = &mut at.grads[edge.output];
        *slot = Some(match slot.take() {
            Some(sum) => linear::sum(&sum, &grad, record)?,
            None => grad,
        });
        Ok(())
    }

    /// Returns the gradients that a node sends along its edges.
    fn edge_gradients<'n>(
        &self,
        node: &'n Arc<Node>,
        grads: &[Option<Tensor>],
        host: &mut Host,
    ) -> Result<NodeGradients<'n>, ExecError> {
        let record = self.mode.create_graph;
        let first = grads.first().cloned().flatten();
        match (&node.kind, first) {
            (NodeKind::Leaf(_), _) => Ok(NodeGradients::new()),
            (NodeKind::Op(call), _) => Call { walk: self, node, call }.differentiate(grads, host),
            (NodeKind::Graph(call), _) => {
                let found = call.gradients(grads, self.mode.retain_graph, host)?;
                let pairs = node.edges.iter().zip(found);
                Ok(pairs
                    .filter_map(|(edge, grad)| Some((edge.as_ref()?, grad.as_tensor()?.clone())))
                    .collect())
            }
            (NodeKind::Sum, Some(grad)) => {
                Ok(node.edges.iter().flatten().map(|edge| (edge, grad.clone())).collect())
            }
            (NodeKind::Linear(map), Some(grad)) => {
                let grad = map.adjoint().apply(&grad, record).map_err(|e| ExecError::of(&e))?;
                Ok(node.edges.iter().flatten().map(|edge| (edge, grad.clone())).collect())
            }
            (NodeKind::Write { base, view, call, target }, Some(grad)) => {
                let call = Call { walk: self, node, call };
                call.write_edge_gradients(&grad, (base, view), *target, host)
            }
            (NodeKind::ZeroDerivative, Some(grad)) => {
                let mut edge_grads: NodeGradients<'_> =
                    node.edges[0].iter().map(|edge| (edge, grad.clone())).collect();
                for edge in node.edges[1..].iter().flatten().filter(|edge| self.visits(&edge.node)) {
                    edge_grads.push((edge, edge.geometry.zeros().map_err(|e| ExecError::of(&e))?));
                }
                Ok(edge_grads)
            }
            (
                NodeKind::Sum | NodeKind::ZeroDerivative | NodeKind::Linear(_) | NodeKind::Write { .. },
                None,
            ) => Ok(NodeGradients::new()),
        }
    }
}

type NodeGradients<'n> = Vec<(&'n Edge, Tensor)>;

/// A call whose gradients are computed.
#[derive(Clone, Copy)]
struct Call<'w, 'n> {
    walk: &'w Walk<'w>,
    node: &'n Arc<Node>,
    call: &'n OpCall,
}

impl<'n> Call<'_, 'n> {
    /// Returns the edges of an argument.
    fn edges(self, arg: usize) -> &'n [Option<Edge>] {
        self.call.arg_edges[arg].of(self.node.call_edges())
    }

    /// Whether the walk visits the gradient edge of an argument.
    fn needs(self, arg: usize) -> bool {
        self.edges(arg).iter().flatten().any(|edge| self.walk.visits(&edge.node))
    }

    fn input(self, input: FormulaInput, grads: &[Option<Tensor>]) -> Result<IValue, ExecError> {
        let record = self.walk.mode.create_graph;
        self.call.input(self.node, input, grads, record).map_err(|e| ExecError::of(&e))
    }

    /// Returns the gradients of the arguments of an operator that wrote through a view, and of the base before the
    /// write.
    fn write_edge_gradients(
        self,
        grad: &Tensor,
        (base, view): (&Geometry, &Geometry),
        target: usize,
        host: &mut Host,
    ) -> Result<NodeGradients<'n>, ExecError> {
        let fail = |e: KernelError| ExecError::of(&e);
        let record = self.walk.mode.create_graph;
        let read = LinearMap::view(base.clone(), view.clone());
        let part = read.apply(grad, record).map_err(fail)?;
        // Gradients that reach the previous version of the view belong to its region of the previous base.
        let old = self.edges(target).first().and_then(Option::as_ref).map(|edge| edge.node.id);
        let edge_gradients = self.differentiate(&[Some(part)], host)?;
        let (to_view, mut edge_grads): (NodeGradients<'_>, NodeGradients<'_>) =
            edge_gradients.into_iter().partition(|(edge, _)| Some(edge.node.id) == old);
        if let Some(edge) = self.node.edges[0].as_ref().filter(|edge| self.walk.visits(&edge.node)) {
            let erase = LinearMap::Erase { base: base.clone(), view: view.clone() };
            let mut whole = erase.apply(grad, record).map_err(fail)?;
            for (_, grad) in to_view {
                let region = linear::fit(grad, view, record)
                    .and_then(|grad| read.adjoint().apply(&grad, record))
                    .map_err(fail)?;
                whole = linear::sum(&whole, &region, record).map_err(fail)?;
            }
            edge_grads.push((edge, whole));
        }
        Ok(edge_grads)
    }

    /// Returns the gradients of an operator's arguments.
    fn differentiate(
        self,
        grads: &[Option<Tensor>],
        host: &mut Host,
    ) -> Result<NodeGradients<'n>, ExecError> {
        self.call.check_saved().map_err(|e| ExecError::of(&e))?;
        match self.call.derivative.as_deref() {
            Some(Derivative::Formulas(known)) => self.by_formulas(known, grads, host),
            Some(Derivative::Body { inputs, .. }) => self.through_body(inputs, grads, host),
            Some(Derivative::Constant | Derivative::Layout) => Ok(NodeGradients::new()),
            None => {
                let message = format!("the derivative of `{}` is not implemented", self.call.name);
                Err(ExecError::of(&KernelError::unsupported(message)))
            }
        }
    }

    fn by_formulas(
        self,
        known: &[Formula],
        grads: &[Option<Tensor>],
        host: &mut Host,
    ) -> Result<NodeGradients<'n>, ExecError> {
        let fail = |e: KernelError| ExecError::of(&e);
        let stated = |arg: usize| known.iter().any(|formula| formula.args.contains(&arg));
        if let Some(arg) = (0..self.call.arg_edges.len()).find(|arg| self.needs(*arg) && !stated(*arg)) {
            let message = format!(
                "the derivative of `{}` with respect to argument {arg} is not implemented",
                self.call.name
            );
            return Err(fail(KernelError::unsupported(message)));
        }
        let mut edge_grads = NodeGradients::new();
        for (index, formula) in known.iter().enumerate() {
            let Some(inputs) =
                formula.inputs.as_ref().filter(|_| formula.args.iter().any(|arg| self.needs(*arg)))
            else {
                continue;
            };
            let inputs = inputs.iter().map(|input| self.input(*input, grads)).collect::<Result<_, _>>()?;
            let found = self.walk.tape.derivatives.apply(self.call.op, index, inputs, host)?;
            match (&*formula.args, found) {
                ([arg], IValue::Tensor(grad)) if formula.is_piecewise && self.walk.mode.create_graph => {
                    let grad = linear::flat(&grad, self.edges(*arg));
                    push_edge_gradients(self.edges(*arg), &IValue::Tensor(grad), &mut edge_grads);
                }
                ([arg], found) => push_edge_gradients(self.edges(*arg), &found, &mut edge_grads),
                (args, IValue::Tuple(found)) => {
                    for (arg, found) in args.iter().zip(found.items()) {
                        push_edge_gradients(self.edges(*arg), found, &mut edge_grads);
                    }
                }
                (_, found) => {
                    let message =
                        format!("the derivatives of `{}` are a {}", self.call.name, found.type_of());
                    return Err(fail(KernelError::internal(message)));
                }
            }
        }
        Ok(edge_grads)
    }

    /// Returns the gradients of a composite operator: reruns its body with recording and differentiates that
    /// recording.
    ///
    /// The inner walk is a native recursion. Bodies belong to operators, not to the program, and consist of operators
    /// that have formulas, so the depth is that of compositions; `NESTED` stops a body that contains itself.
    fn through_body(
        self,
        inputs: &[FormulaInput],
        grads: &[Option<Tensor>],
        host: &mut Host,
    ) -> Result<NodeGradients<'n>, ExecError> {
        let (tape, mode) = (self.walk.tape, self.walk.mode);
        if tape.nesting >= NESTED {
            let message = format!("the body of `{}` contains itself", self.call.name);
            return Err(ExecError::of(&KernelError::internal(message)));
        }
        let mut leaves: Vec<(&Edge, Option<NodeOutput>)> = Vec::new();
        let mut args = Vec::new();
        for input in inputs {
            let (FormulaInput::Arg(arg) | FormulaInput::Copy(arg)) = *input else { continue };
            // The history of the arguments is that of their leaves, below.
            let value = self.call.input(self.node, *input, grads, false).map_err(|e| ExecError::of(&e))?;
            let mut edges = self.edges(arg).iter();
            args.push(with_leaves(&value, &mut edges, mode.create_graph, &mut leaves));
        }
        let inner = Tape { derivatives: Arc::clone(&tape.derivatives), nesting: tape.nesting + 1 };
        let recorded = BackwardOptions { create_graph: true, ..mode };
        let results = on_host(&inner, recorded, host, |host| {
            let drawing = host.rng().clone();
            if let Some(generator) = &self.call.generator {
                host.set_rng(generator.fork());
            }
            let results = tape.derivatives.apply(self.call.op, 0, args, host);
            host.set_rng(drawing);
            results
        })?;
        let outputs = self.outputs_of_body(&results, grads);
        let (edges, leaves): (Vec<&Edge>, Vec<Option<NodeOutput>>) = leaves.into_iter().unzip();
        let found = gradients_at(&inner, &outputs, &leaves, mode, host)?;
        Ok(edges.into_iter().zip(found).filter_map(|(edge, grad)| Some((edge, grad?))).collect())
    }

    /// Returns the results of the body that have a history, with their gradients. A body computes all results, also those that
    /// the call left out because of a mask.
    fn outputs_of_body(self, results: &IValue, grads: &[Option<Tensor>]) -> Vec<(Tensor, Tensor)> {
        let first = &self.call.result_outputs;
        let parts = match results {
            IValue::Tuple(tuple) if first.len() > 1 => tuple.items(),
            single => std::slice::from_ref(single),
        };
        let mut outputs = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let start = first.get(i).copied().unwrap_or(if i == 0 { 0 } else { grads.len() });
            let end = first.get(i + 1).copied().unwrap_or(self.call.outputs.len());
            let own = grads.iter().take(end).skip(start);
            let pairs = tensors_in(part).into_iter().zip(own);
            outputs.extend(pairs.filter_map(|(result, grad)| Some((result, grad.clone()?))));
        }
        outputs.retain(|(result, _)| history::gradient_edge(result).is_some());
        outputs
    }
}

/// Sends the gradient of an argument along its edges.
fn push_edge_gradients<'n>(edges: &'n [Option<Edge>], found: &IValue, edge_grads: &mut NodeGradients<'n>) {
    match found {
        IValue::Tensor(grad) => {
            edge_grads.extend(edges.first().and_then(Option::as_ref).map(|edge| (edge, grad.clone())));
        }
        IValue::List(list) => {
            let grads: Vec<IValue> = list.read().iter().collect();
            let pairs = edges.iter().zip(grads);
            edge_grads
                .extend(pairs.filter_map(|(edge, grad)| Some((edge.as_ref()?, grad.as_tensor()?.clone()))));
        }
        _ => {}
    }
}

/// Maximal nesting of composite bodies: more than any operator requires, and safe for the native stack.
const NESTED: usize = 16;

/// Prepares an argument of a body: each tensor that requires a gradient becomes a new node, at which the inner walk
/// ends. In a recorded walk that node depends on the gradient edge of the argument, otherwise it is a leaf.
fn with_leaves<'n>(
    value: &IValue,
    edges: &mut std::slice::Iter<'n, Option<Edge>>,
    create_graph: bool,
    leaves: &mut Vec<(&'n Edge, Option<NodeOutput>)>,
) -> IValue {
    history::connected(value, &mut || {
        let edge = edges.next()?.as_ref()?;
        let kind = if create_graph { NodeKind::Sum } else { NodeKind::Leaf(Weak::new()) };
        let edge_of_argument = create_graph.then(|| edge.clone());
        let node = Node::new(kind, vec![edge_of_argument]);
        leaves.push((edge, Some((node.id, 0))));
        Some(Edge { node, output: 0, geometry: edge.geometry.clone() })
    })
}

/// Returns the tensors of a result, left to right.
fn tensors_in(value: &IValue) -> Vec<Tensor> {
    match value {
        IValue::Tuple(tuple) => tuple.items().iter().flat_map(record::tensors_of).collect(),
        other => record::tensors_of(other).into_vec(),
    }
}
