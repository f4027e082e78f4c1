//! Autograd metadata of tensors ([`AutogradMeta`]), and the graph of recorded operations that their gradient edges lead to.
//! The metadata of a view ([`super::view`]) refers to its base; a write to either changes the gradient edges of both.

use super::graph::GraphCall;
use super::hooks::{NodeHooks, move_retained};
use super::linear::{self, LinearMap};
use super::region::Geometry;
use super::view::{NewView, ViewMeta, ViewOrigin, check_read};
use super::{Derivative, FormulaInput};
use crate::error::KernelError;
use flambeau_ir::OpId;
use flambeau_ir::value::{Generator, IValue, List};
use flambeau_tensor::{AutogradSlot, AutogradState, Tensor};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A recorded operation. Ids increase in order of creation.
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) kind: NodeKind,
    /// Gradient edges of the tensors that the operation read; `None` for those that require no gradient.
    pub(super) edges: Vec<Option<Edge>>,
    pub(super) hooks: NodeHooks,
}

pub(super) enum NodeKind {
    /// A tensor that requires a gradient. The accumulated gradient is owned by the tensor, not by the node: a program
    /// may record a write to the gradient, whose history then contains nodes that depend on this one.
    Leaf(Weak<AccumulatedGrad>),
    /// An operator.
    Op(OpCall),
    /// A linear map of the single tensor it depends on: a view of a base, or a step of a recorded backward walk.
    Linear(LinearMap),
    /// A call of a function with a differentiated graph.
    Graph(GraphCall),
    /// The sum of the tensors it depends on. With one edge: another handle of a tensor.
    Sum,
    /// The tensor of the first edge, as a function with derivative zero of the other edges' tensors.
    ZeroDerivative,
    /// A write through a view. The first edge is the base's; the others are those of the call, without the view's own.
    Write { base: Geometry, view: Geometry, call: OpCall, target: usize },
}

/// A call of an operator, with the data its derivative reads.
pub(super) struct OpCall {
    pub(super) op: OpId,
    pub(super) name: String,
    /// `None` if no derivative is known; then a gradient that reaches the call is an error.
    pub(super) derivative: Option<Arc<Derivative>>,
    /// The values that formulas read.
    pub(super) saved: Mutex<Saved>,
    /// Per result, the position of its first tensor among the outputs of the node.
    pub(super) result_outputs: Vec<usize>,
    /// Geometry of the results, for results that receive no gradient.
    pub(super) outputs: Vec<Geometry>,
    /// Per argument, its range in the list of edges.
    pub(super) arg_edges: Vec<ArgEdges>,
    /// State of the default generator before the call, for a body that draws random numbers.
    pub(super) generator: Option<Generator>,
}

/// The values that the formulas of a call read. A backward walk that does not retain the graph releases them.
#[derive(Default)]
pub(super) struct Saved {
    /// Arguments and results by position; `None` for those that no formula reads.
    pub(super) args: Vec<IValue>,
    pub(super) results: Vec<IValue>,
    /// Arguments of which formulas read only sizes and types, as zeros of that shape.
    pub(super) shapes: Vec<(usize, IValue)>,
    /// Whether copies of arguments were saved.
    pub(super) has_copies: bool,
    /// Whether it is not known if derivatives read a saved argument.
    pub(super) may_save_nothing: bool,
    /// Saved tensors with the values of their version counters when they were saved.
    pub(super) saved_versions: Vec<(Tensor, u64)>,
    /// Whether saved tensors were released.
    pub(super) is_released: bool,
}

/// The range of an argument's edges: `list` is the number of elements if the argument is a list.
#[derive(Clone, Copy)]
pub(super) struct ArgEdges {
    pub(super) start: usize,
    pub(super) list: Option<usize>,
}

impl ArgEdges {
    /// Returns the argument's edges among those of its call.
    pub(super) fn of(self, edges: &[Option<Edge>]) -> &[Option<Edge>] {
        &edges[self.start..self.start + self.list.unwrap_or(1)]
    }
}

/// Options of a backward pass, as in `torch.autograd.backward`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackwardOptions {
    /// Whether the saved tensors are kept, so that another backward pass can run.
    pub retain_graph: bool,
    /// Whether the backward pass is recorded, so that its results can be differentiated.
    pub create_graph: bool,
}

/// The error of a walk over a graph that an earlier walk released.
pub(super) fn released() -> KernelError {
    KernelError::input(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have \
         already been freed). Saved intermediate values of the graph are freed when you call .backward() or \
         autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or \
         if you need to access saved tensors after calling backward.",
    )
}

impl OpCall {
    /// Returns an error if a saved tensor was released, or modified since it was saved.
    pub(super) fn check_saved(&self) -> Result<(), KernelError> {
        let saved = self.saved.lock();
        if saved.is_released {
            return Err(released());
        }
        match saved.saved_versions.iter().find(|(tensor, version)| tensor.version() != *version) {
            None => Ok(()),
            Some((tensor, version)) => Err(KernelError::input(format!(
                "one of the variables needed for gradient computation has been modified by an inplace operation: \
                 a tensor {:?} that `{}` used is at version {}; expected version {version} instead",
                tensor.sizes(),
                self.name,
                tensor.version(),
            ))),
        }
    }

    /// Releases the saved values, unless derivatives read only sizes, or may do so.
    pub(super) fn release(&self) {
        let mut saved = self.saved.lock();
        if (!saved.saved_versions.is_empty() || saved.has_copies) && !saved.may_save_nothing {
            *saved = Saved { is_released: true, ..Saved::default() };
        }
    }

    /// Returns the value of a formula input; a missing gradient is zeros. If `recorded` is set, the saved tensors get
    /// the history that they had in the call of `node`, so that the formula can be differentiated.
    pub(super) fn input(
        &self,
        node: &Arc<Node>,
        input: FormulaInput,
        grads: &[Option<Tensor>],
        recorded: bool,
    ) -> Result<IValue, KernelError> {
        let saved = self.saved.lock();
        Ok(match input {
            FormulaInput::Arg(i) | FormulaInput::Copy(i) if recorded => {
                self.connected_arg(node, i, &saved.args[i])
            }
            FormulaInput::Arg(i) | FormulaInput::Copy(i) => saved.args[i].clone(),
            FormulaInput::Like(i) => {
                let found = saved.shapes.iter().find(|(arg, _)| *arg == i);
                found.map_or(IValue::None, |(_, zeros)| zeros.clone())
            }
            FormulaInput::Result(i) if recorded => self.connected_result(node, i, &saved.results[i]),
            FormulaInput::Result(i) => saved.results[i].clone(),
            FormulaInput::Grad(i) => IValue::Tensor(self.gradient(i, grads)?),
            FormulaInput::Grads(i) => {
                let end = self.result_outputs.get(i + 1).copied().unwrap_or(self.outputs.len());
                let of_list = self.result_outputs.get(i).copied().unwrap_or(0)..end;
                let found: Result<Vec<Tensor>, KernelError> =
                    of_list.map(|output| self.gradient(output, grads)).collect();
                IValue::List(List::from_tensors(found?))
            }
        })
    }

    /// Returns the gradient of an output; zeros if it received none.
    fn gradient(&self, output: usize, grads: &[Option<Tensor>]) -> Result<Tensor, KernelError> {
        match grads.get(output) {
            Some(Some(grad)) => Ok(grad.clone()),
            _ => self.outputs[output].zeros(),
        }
    }

    fn connected_arg(&self, node: &Arc<Node>, arg: usize, value: &IValue) -> IValue {
        let range = self.arg_edges[arg];
        let mut edges = range.of(node.call_edges()).iter();
        connected(value, &mut || edges.next().cloned().flatten())
    }

    fn connected_result(&self, node: &Arc<Node>, result: usize, value: &IValue) -> IValue {
        let first = self.result_outputs.get(result).copied().unwrap_or(0);
        let mut outputs = first..self.outputs.len();
        connected(value, &mut || {
            let output = outputs.next()?;
            let geometry = self.outputs[output].clone();
            if !geometry.is_differentiable() {
                return None;
            }
            match &node.kind {
                // The node's output is the base; the result of the call is the view that was written.
                NodeKind::Write { base, view, .. } => {
                    let base = Edge { node: Arc::clone(node), output: 0, geometry: base.clone() };
                    Some(linear_edge(base, view.clone()))
                }
                _ => Some(Edge { node: Arc::clone(node), output, geometry }),
            }
        })
    }
}

/// Returns a value in which each tensor is an alias whose gradient edge is the next one that `next` returns.
pub(super) fn connected(value: &IValue, next: &mut dyn FnMut() -> Option<Edge>) -> IValue {
    match value {
        IValue::Tensor(t) => match next() {
            Some(edge) => IValue::Tensor(with_gradient_edge(t, edge)),
            None => value.clone(),
        },
        IValue::List(list) if list.read().iter().any(|item| item.is_tensor()) => {
            let items: Vec<IValue> = list.read().iter().collect();
            let items = items.iter().map(|item| match item {
                IValue::Tensor(_) => connected(item, next),
                other => {
                    next();
                    other.clone()
                }
            });
            IValue::List(List::from_values(list.elem_type(), items.collect()))
        }
        IValue::Dict(dict) if dict.read().iter().any(|(_, value)| value.is_tensor()) => {
            let copy = dict.copy();
            for (key, value) in dict.to_vec() {
                let value = connected(&value, next);
                // The key is in the dictionary, so it can be inserted.
                let _ = copy.insert(key, value);
            }
            IValue::Dict(copy)
        }
        other => {
            next();
            other.clone()
        }
    }
}

/// Returns an alias of a tensor with the gradient edge `edge`. A copy of the tensor that had the edge may have other strides.
pub(super) fn with_gradient_edge(tensor: &Tensor, edge: Edge) -> Tensor {
    let alias = tensor.alias();
    let edge = Edge { geometry: Geometry::of(tensor), ..edge };
    set_meta(&alias, AutogradMeta { gradient_edge: Some(edge), view: None, grad: None });
    alias.set_requires_grad(true);
    alias
}

/// A reference to an output of a node, with the geometry of the tensor.
#[derive(Clone)]
pub(super) struct Edge {
    pub(super) node: Arc<Node>,
    pub(super) output: usize,
    pub(super) geometry: Geometry,
}

/// The id of the next node.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Returns an id that is greater than those of all existing nodes.
pub(super) fn next_id() -> u64 {
    NEXT.load(Ordering::Relaxed)
}

impl Node {
    pub(super) fn new(kind: NodeKind, edges: Vec<Option<Edge>>) -> Arc<Node> {
        Arc::new(Node { id: NEXT.fetch_add(1, Ordering::Relaxed), kind, edges, hooks: NodeHooks::new() })
    }
}

impl Node {
    /// Returns the edges of the node's call: those of a write begin with the edge of the base.
    pub(super) fn call_edges(&self) -> &[Option<Edge>] {
        if matches!(self.kind, NodeKind::Write { .. }) { &self.edges[1..] } else { &self.edges }
    }
}

impl Drop for Node {
    /// Drops the history with a worklist: its depth is unbounded, so recursion could overflow the stack.
    fn drop(&mut self) {
        let mut rest: Vec<Option<Edge>> = std::mem::take(&mut self.edges);
        while let Some(edge) = rest.pop() {
            if let Some(mut node) = edge.and_then(|edge| Arc::into_inner(edge.node)) {
                rest.append(&mut node.edges);
            }
        }
    }
}

/// The gradient accumulated in a leaf, or in a tensor whose gradient is retained.
#[derive(Default)]
pub(super) struct AccumulatedGrad(pub(super) Mutex<Option<Tensor>>);

impl Drop for AccumulatedGrad {
    /// Drops chains of gradients in a loop: a gradient may itself be a leaf with an accumulated gradient, and so on.
    fn drop(&mut self) {
        let mut next = self.0.get_mut().take();
        while let Some(tensor) = next {
            let meta = if tensor.is_only_handle() { tensor.set_autograd(None) } else { None };
            let meta = meta.and_then(MetaCell::of).and_then(Arc::into_inner);
            let grad = meta.and_then(|meta| meta.0.into_inner().grad).and_then(Arc::into_inner);
            next = grad.and_then(|grad| grad.0.lock().take());
        }
    }
}

/// The object attached to a tensor that holds its metadata.
#[derive(Default)]
struct MetaCell(Mutex<AutogradMeta>);

impl MetaCell {
    fn of(state: AutogradSlot) -> Option<Arc<MetaCell>> {
        let state: Arc<dyn Any + Send + Sync> = state;
        state.downcast().ok()
    }
}

impl AutogradState for MetaCell {
    fn base_requires_grad(&self) -> bool {
        // The base is asked without the lock.
        let base = self.0.lock().view.as_ref().map(|view| view.base.clone());
        base.is_some_and(|base| base.requires_grad())
    }
}

/// Autograd metadata of a tensor.
#[derive(Default, Clone)]
struct AutogradMeta {
    /// The node and output that computed the tensor; `None` if it requires no gradient, or is a leaf that no operation
    /// has read.
    gradient_edge: Option<Edge>,
    /// The metadata of a view; `None` if the tensor is a base.
    view: Option<ViewMeta>,
    /// The accumulated gradient, if the tensor is a leaf or its gradient is retained.
    grad: Option<Arc<AccumulatedGrad>>,
}

/// Returns a part of the metadata; `None` if the tensor has no metadata or not this part. `part` runs under the lock, so that a call
/// copies what it needs only.
fn part<R>(tensor: &Tensor, part: impl FnOnce(&AutogradMeta) -> Option<R>) -> Option<R> {
    let cell = tensor.autograd().and_then(MetaCell::of)?;
    let meta = cell.0.lock();
    part(&meta)
}

fn meta(tensor: &Tensor) -> AutogradMeta {
    part(tensor, |meta| Some(meta.clone())).unwrap_or_default()
}

fn set_meta(tensor: &Tensor, meta: AutogradMeta) {
    let cell = tensor.autograd().and_then(MetaCell::of);
    match cell {
        Some(cell) => *cell.0.lock() = meta,
        None => drop(tensor.set_autograd(Some(Arc::new(MetaCell(Mutex::new(meta)))))),
    }
}

/// Returns the gradient edge of a tensor that requires a gradient. The edge of a view is recomputed if its base was written.
pub(super) fn gradient_edge(tensor: &Tensor) -> Option<Edge> {
    let of_base = |meta: &AutogradMeta| meta.gradient_edge.as_ref().filter(|_| meta.view.is_none()).cloned();
    if let Some(edge) = part(tensor, of_base) {
        return Some(edge);
    }
    let mut own = meta(tensor);
    if let Some(view) =
        own.view.as_mut().filter(|_| !tensor.is_marked_required() || own.gradient_edge.is_some())
    {
        let base = gradient_edge(&view.base);
        let base_node = base.as_ref().map_or(0, |edge| edge.node.id);
        let is_followed = view.origin != ViewOrigin::Unrecorded;
        // A base that was marked after the view was made, and not written, has no history that the view could follow.
        let is_marked =
            view.base_node == 0 && base.as_ref().is_some_and(is_leaf) && view.version == tensor.version();
        if base.is_some() && (!is_followed || is_marked) {
            return Some(unconnected_edge(tensor));
        }
        if is_followed && base_node != view.base_node {
            view.base_node = base_node;
            own.gradient_edge = base.map(|base| view_edge(base, tensor, view.positions.as_deref()));
            tensor.set_requires_grad(own.gradient_edge.is_some());
            set_meta(tensor, own.clone());
        }
        if own.gradient_edge.is_some() || base_node != 0 {
            return own.gradient_edge;
        }
    }
    if own.gradient_edge.is_none() && tensor.is_marked_required() {
        let grad = Arc::<AccumulatedGrad>::default();
        own.gradient_edge = Some(leaf_edge(tensor, Arc::downgrade(&grad)));
        own.grad = Some(grad);
        // A view of a base without gradient becomes a leaf: the base is irrelevant, since views of this tensor are
        // views of a leaf.
        own.view = None;
        set_meta(tensor, own.clone());
    }
    own.gradient_edge
}

fn leaf_edge(tensor: &Tensor, grad: Weak<AccumulatedGrad>) -> Edge {
    let node = Node::new(NodeKind::Leaf(grad), Vec::new());
    Edge { node, output: 0, geometry: Geometry::of(tensor) }
}

/// Returns the gradient edge of a view that requires a gradient because its base does, but has no history: results computed from it
/// require gradients, which reach no tensor.
fn unconnected_edge(view: &Tensor) -> Edge {
    leaf_edge(view, Weak::new())
}

/// Whether an edge refers to a leaf: a tensor that requires a gradient and is not a recorded result.
pub(super) fn is_leaf(edge: &Edge) -> bool {
    matches!(edge.node.kind, NodeKind::Leaf(_))
}

/// Returns where the gradients of a tensor that is not a leaf accumulate from now on; `None` if they already do.
pub(super) fn retained_grad(tensor: &Tensor) -> Option<Arc<AccumulatedGrad>> {
    let own = meta(tensor);
    if own.grad.is_some() {
        return None;
    }
    let grad = Arc::<AccumulatedGrad>::default();
    set_meta(tensor, AutogradMeta { grad: Some(Arc::clone(&grad)), ..own });
    Some(grad)
}

/// Adds a gradient to the gradient accumulated in a tensor.
pub(super) fn accumulate(
    of: &Weak<AccumulatedGrad>,
    grad: Tensor,
    mode: BackwardOptions,
) -> Result<(), KernelError> {
    // The tensor was dropped, so its gradient is unobservable.
    let Some(accumulated) = of.upgrade() else { return Ok(()) };
    let mut accumulated = accumulated.0.lock();
    match &*accumulated {
        Some(before) if mode.create_graph => *accumulated = Some(linear::sum(before, &grad, true)?),
        // Accumulate in place: the gradient may already be shared with the program.
        Some(before) => before.copy_(&linear::sum(before, &grad, false)?)?,
        // No other code can observe that the memory of a temporary is kept.
        None if mode.create_graph || grad.is_unique() && grad.is_contiguous() => *accumulated = Some(grad),
        None => *accumulated = Some(grad.clone_data()?),
    }
    Ok(())
}

/// Returns the gradient accumulated in a tensor.
pub(super) fn accumulated_grad(tensor: &Tensor) -> Option<Tensor> {
    part(tensor, |meta| meta.grad.clone())?.0.lock().clone()
}

/// Replaces the gradient accumulated in a tensor. Returns false for a tensor in which none accumulates.
pub(super) fn set_accumulated_grad(tensor: &Tensor, grad: Option<Tensor>) -> bool {
    let place = || part(tensor, |meta| meta.grad.clone());
    // A leaf gets the place of its gradient when its edge is first asked for.
    let found = place().or_else(|| gradient_edge(tensor).and_then(|_| place()));
    let Some(accumulated) = found else { return false };
    let before = std::mem::replace(&mut *accumulated.0.lock(), grad);
    drop(before);
    true
}

/// Returns the gradient edge of a view. `positions` are geometries of the base and the view in one memory in which no elements of the
/// base overlap; `None` stands for the geometries of the tensors.
fn view_edge(base: Edge, view: &Tensor, positions: Option<&(Geometry, Geometry)>) -> Edge {
    let Some((of_base, of_view)) = positions else { return linear_edge(base, Geometry::of(view)) };
    let kind = NodeKind::Linear(LinearMap::view(of_base.clone(), of_view.clone()));
    Edge { node: Node::new(kind, vec![Some(base)]), output: 0, geometry: Geometry::of(view) }
}

/// Returns the gradient edge of a view with this geometry.
fn linear_edge(base: Edge, view: Geometry) -> Edge {
    let kind = NodeKind::Linear(LinearMap::view(base.geometry.clone(), view.clone()));
    Edge { node: Node::new(kind, vec![Some(base)]), output: 0, geometry: view }
}

/// Returns the base of a view; the tensor itself if it is not a view.
pub(super) fn base(tensor: &Tensor) -> Tensor {
    let mut base = tensor.clone();
    while let Some(of) = part(&base, |meta| Some(meta.view.as_ref()?.base.clone())) {
        base = of;
    }
    base
}

/// Registers a new tensor as result `output` of `node`.
pub(super) fn set_result(tensor: &Tensor, node: &Arc<Node>, output: usize) {
    let gradient_edge = Some(Edge { node: Arc::clone(node), output, geometry: Geometry::of(tensor) });
    let before = meta(tensor);
    let retained = before.grad.zip(before.gradient_edge).filter(|(_, edge)| !is_leaf(edge));
    if let Some((grad, edge)) = &retained {
        move_retained(grad, &edge.node, node, output);
    }
    set_meta(tensor, AutogradMeta { gradient_edge, view: before.view, grad: retained.map(|(grad, _)| grad) });
    tensor.set_requires_grad(true);
}

/// Returns the metadata of a view; `None` if the tensor is a base.
pub(super) fn view_meta(tensor: &Tensor) -> Option<ViewMeta> {
    part(tensor, |meta| meta.view.clone())
}

/// Returns how a view came about; `None` if the tensor is a base.
fn view_origin(tensor: &Tensor) -> Option<ViewOrigin> {
    part(tensor, |meta| Some(meta.view.as_ref()?.origin))
}

/// Registers `tensor` as a view of `of`, unless `tensor` is the base of `of`.
pub(super) fn set_view(tensor: &Tensor, of: &Tensor, new: NewView) {
    let base = base(of);
    if base.ptr_eq(tensor) {
        return;
    }
    let base_edge = gradient_edge(&base);
    let view = ViewMeta {
        base_node: base_edge.as_ref().map_or(0, |edge| edge.node.id),
        origin: new.origin.after(view_origin(of)),
        source: new.source.filter(|_| base_edge.is_some()),
        version: tensor.version(),
        positions: new.positions,
        base,
    };
    let base_edge = base_edge.filter(|_| view.origin != ViewOrigin::Unrecorded);
    tensor.set_requires_grad(base_edge.is_some());
    let gradient_edge = base_edge.map(|base| view_edge(base, tensor, view.positions.as_deref()));
    set_meta(tensor, AutogradMeta { gradient_edge, view: Some(view), grad: None });
}

/// Returns the gradient edge of a tensor that a recorded operator reads.
///
/// # Errors
/// Returns an input error if the tensor is a view that has no history after the last write to its memory.
pub(super) fn read_edge(tensor: &Tensor) -> Result<Option<Edge>, KernelError> {
    if view_origin(tensor).is_some_and(|origin| origin != ViewOrigin::Recorded)
        && let Some(view) = view_meta(tensor)
    {
        check_read(tensor, &view)?;
    }
    Ok(gradient_edge(tensor))
}

/// Drops the history of a tensor.
///
/// # Errors
/// Returns an input error if the tensor is a view, because its history is that of its base.
pub(super) fn detach(tensor: &Tensor) -> Result<(), KernelError> {
    if part(tensor, |meta| meta.view.as_ref().map(|_| ())).is_some() {
        return Err(KernelError::input("Can't detach views in-place. Use detach() instead."));
    }
    set_meta(
        tensor,
        AutogradMeta { grad: part(tensor, |meta| meta.grad.clone()), ..AutogradMeta::default() },
    );
    tensor.set_requires_grad(false);
    Ok(())
}

/// Registers that a tensor now has another layout on the same memory; `base` is its base, or the tensor itself.
pub(super) fn update_view(tensor: &Tensor, base: &Tensor) {
    if !base.ptr_eq(tensor) {
        let view = view_meta(tensor);
        let origin = view.map_or(ViewOrigin::Recorded, |view| view.origin);
        set_view(tensor, base, NewView { origin, source: None, positions: None });
    } else if let Some(before) = gradient_edge(tensor) {
        set_result(tensor, &linear_edge(before, Geometry::of(tensor)).node, 0);
    }
}

/// Registers that `node` wrote to the memory of `tensor`, a view, and so produced a new version of its base.
pub(super) fn rebase_history(tensor: &Tensor, node: &Arc<Node>) {
    set_result(&base(tensor), node, 0);
    // Recomputes the view's edge from that of the base.
    let _ = gradient_edge(tensor);
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_tensor::DType;

    fn tensor() -> Tensor {
        Tensor::zeros(&[1], DType::F32).expect("small")
    }

    /// Creates a node that depends on the gradient edge of `tensor`.
    fn step(tensor: &Tensor) -> Arc<Node> {
        Node::new(NodeKind::Sum, vec![gradient_edge(tensor)])
    }

    fn leaf() -> Tensor {
        let leaf = tensor();
        leaf.set_requires_grad(true);
        assert!(is_leaf(&gradient_edge(&leaf).expect("a leaf")));
        leaf
    }

    fn accumulate(leaf: &Tensor, grad: Tensor) {
        *meta(leaf).grad.expect("a leaf").0.lock() = Some(grad);
    }

    /// Runs `work` on a stack that is too small for a deep recursion.
    fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work).expect("a thread");
        thread.join().expect("no recursion");
    }

    const CHAIN_LENGTH: usize = 1_000_000;

    #[test]
    fn a_long_history_is_dropped_in_a_loop() {
        on_a_small_stack(|| {
            let result = leaf();
            let first = Arc::downgrade(&gradient_edge(&result).expect("a leaf").node);
            for _ in 0..CHAIN_LENGTH {
                let node = step(&result);
                set_result(&result, &node, 0);
            }
            assert!(first.strong_count() > 0);
            drop(result);
            assert_eq!(first.strong_count(), 0);
        });
    }

    #[test]
    fn gradients_of_gradients_are_dropped_in_a_loop() {
        on_a_small_stack(|| {
            let first = leaf();
            let mut last = first.clone();
            for _ in 0..CHAIN_LENGTH / 10 {
                let grad = leaf();
                accumulate(&last, grad.clone());
                last = grad;
            }
            let node = Arc::downgrade(&gradient_edge(&last).expect("a leaf").node);
            drop(first);
            assert_eq!(node.strong_count(), 1, "a referenced node stays");
            drop(last);
            assert_eq!(node.strong_count(), 0);
        });
    }

    #[test]
    fn a_gradient_that_came_from_its_leaf_is_freed() {
        let (leaf, grad) = (leaf(), tensor());
        let storage = grad.storage().clone();
        accumulate(&leaf, grad.clone());
        set_result(&grad, &step(&leaf), 0);
        let node = Arc::downgrade(&gradient_edge(&grad).expect("recorded").node);
        drop(grad);
        assert!(node.strong_count() > 0);
        drop(leaf);
        assert_eq!((node.strong_count(), storage.ref_count()), (0, 1));
    }

    #[test]
    fn no_tensor_is_a_view_of_itself() {
        let base = leaf();
        let view = base.alias();
        let node = Arc::downgrade(&gradient_edge(&base).expect("a leaf").node);
        set_view(&view, &base, NewView::default());
        set_view(&base, &view, NewView::default());
        drop((base, view));
        assert_eq!(node.strong_count(), 0);
    }
}
