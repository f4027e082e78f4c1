//! Autograd metadata of tensors: the graph of recorded operations, and the relation between views and bases.

use super::graph::GraphCall;
use super::linear::Linear;
use super::region::Geometry;
use super::{Derivative, Input};
use crate::error::KernelError;
use flambeau_ir::OpId;
use flambeau_ir::value::{Generator, IValue, List};
use flambeau_tensor::Tensor;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A recorded operation. Ids increase in order of creation.
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) kind: NodeKind,
    /// Origins of the tensors the operation read; `None` for those that require no gradient.
    pub(super) edges: Vec<Option<Edge>>,
}

pub(super) enum NodeKind {
    /// A tensor that requires a gradient. The accumulated gradient is owned by the tensor, not by the node: a program
    /// may record a write to the gradient, whose history then contains nodes that depend on this one.
    Leaf(Weak<Gathered>),
    /// An operator.
    Op(OpCall),
    /// A linear map of the single tensor it depends on: a view of a base, or a step of a recorded backward walk.
    Linear(Linear),
    /// A call of a function with a differentiated graph.
    Graph(GraphCall),
    /// The sum of the tensors it depends on. With one edge: another handle of a tensor.
    Sum,
    /// The tensor of the first edge, as a function with derivative zero of the other edges' tensors.
    Flat,
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
    /// Saved tensors with their versions at that time.
    pub(super) kept: Vec<(Tensor, u64)>,
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

/// How a backward walk treats the graph that it walks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkMode {
    /// Whether the saved tensors are kept, so that the graph can be walked again.
    pub retain_graph: bool,
    /// Whether the walk is recorded, so that its results can be differentiated.
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
        match saved.kept.iter().find(|(tensor, version)| tensor.version() != *version) {
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

    /// Releases the saved values. Those of a composite operator stay: which of them PyTorch saves depends on the operators
    /// it consists of, and some of these save nothing.
    pub(super) fn release(&self) {
        let is_body = matches!(self.derivative.as_deref(), Some(Derivative::Body { .. }));
        let mut saved = self.saved.lock();
        if !saved.kept.is_empty() && !is_body {
            *saved = Saved { is_released: true, ..Saved::default() };
        }
    }

    /// Returns the value of a formula input; a missing gradient is zeros. If `recorded` is set, the saved tensors get
    /// the history that they had in the call of `node`, so that the formula can be differentiated.
    pub(super) fn input(
        &self,
        node: &Arc<Node>,
        input: Input,
        grads: &[Option<Tensor>],
        recorded: bool,
    ) -> Result<IValue, KernelError> {
        let saved = self.saved.lock();
        Ok(match input {
            Input::Arg(i) if recorded => self.connected_arg(node, i, &saved.args[i]),
            Input::Arg(i) => saved.args[i].clone(),
            Input::Like(i) => {
                let found = saved.shapes.iter().find(|(arg, _)| *arg == i);
                found.map_or(IValue::None, |(_, zeros)| zeros.clone())
            }
            Input::Result(i) if recorded => self.connected_result(node, i, &saved.results[i]),
            Input::Result(i) => saved.results[i].clone(),
            Input::Grad(i) => IValue::Tensor(match grads.get(i) {
                Some(Some(grad)) => grad.clone(),
                _ => self.outputs[i].zeros()?,
            }),
        })
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

/// Returns a value in which each tensor is an alias whose origin is the next edge.
pub(super) fn connected(value: &IValue, next: &mut dyn FnMut() -> Option<Edge>) -> IValue {
    match value {
        IValue::Tensor(t) => match next() {
            Some(edge) => IValue::Tensor(with_origin(t, edge)),
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

/// Returns an alias of a tensor whose origin is `edge`.
pub(super) fn with_origin(tensor: &Tensor, edge: Edge) -> Tensor {
    let alias = tensor.alias();
    set_memory(&alias, Memory { from: Some(edge), view: None, gathered: None });
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
        Arc::new(Node { id: NEXT.fetch_add(1, Ordering::Relaxed), kind, edges })
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

/// The gradient accumulated in a leaf.
#[derive(Default)]
pub(super) struct Gathered(pub(super) Mutex<Option<Tensor>>);

impl Drop for Gathered {
    /// Drops chains of gradients in a loop: a gradient may itself be a leaf with an accumulated gradient, and so on.
    fn drop(&mut self) {
        let mut next = self.0.get_mut().take();
        while let Some(tensor) = next {
            let slot = if tensor.is_only_handle() { tensor.set_autograd(None) } else { None };
            let slot = slot.and_then(|slot| slot.downcast::<Slot>().ok()).and_then(Arc::into_inner);
            let gathered = slot.and_then(|slot| slot.0.into_inner().gathered).and_then(Arc::into_inner);
            next = gathered.and_then(|gathered| gathered.0.lock().take());
        }
    }
}

/// Autograd metadata attached to a tensor.
#[derive(Default)]
struct Slot(Mutex<Memory>);

#[derive(Default, Clone)]
struct Memory {
    from: Option<Edge>,
    view: Option<View>,
    /// The accumulated gradient, if the tensor is a leaf.
    gathered: Option<Arc<Gathered>>,
}

/// The metadata of a view.
#[derive(Clone)]
struct View {
    base: Tensor,
    /// Id of the base's node at the time `from` was computed; 0 if it had none.
    seen: u64,
}

fn memory(tensor: &Tensor) -> Memory {
    let slot = tensor.autograd().and_then(|slot| slot.downcast::<Slot>().ok());
    slot.map(|slot| slot.0.lock().clone()).unwrap_or_default()
}

fn set_memory(tensor: &Tensor, memory: Memory) {
    let found = tensor.autograd().and_then(|slot| slot.downcast::<Slot>().ok());
    match found {
        Some(slot) => *slot.0.lock() = memory,
        None => drop(tensor.set_autograd(Some(Arc::new(Slot(Mutex::new(memory)))))),
    }
}

/// Returns the origin of a tensor that requires a gradient. The edge of a view is recomputed if its base has changed.
pub(super) fn edge(tensor: &Tensor) -> Option<Edge> {
    let mut own = memory(tensor);
    if let Some(view) = &mut own.view {
        let base = edge(&view.base);
        let now = base.as_ref().map_or(0, |edge| edge.node.id);
        if now != view.seen {
            view.seen = now;
            own.from = base.map(|base| view_edge(base, tensor));
            tensor.set_requires_grad(own.from.is_some());
            set_memory(tensor, own.clone());
        }
        if own.from.is_some() || now != 0 {
            return own.from;
        }
    }
    if own.from.is_none() && tensor.requires_grad() {
        let gathered = Arc::<Gathered>::default();
        own.from = Some(Edge {
            node: Node::new(NodeKind::Leaf(Arc::downgrade(&gathered)), Vec::new()),
            output: 0,
            geometry: Geometry::of(tensor),
        });
        own.gathered = Some(gathered);
        // A view of a base without gradient becomes a leaf: the base is irrelevant, since views of this tensor are
        // views of a leaf.
        own.view = None;
        set_memory(tensor, own.clone());
    }
    own.from
}

/// Whether an edge refers to a leaf: a tensor that requires a gradient and is not a recorded result.
pub(super) fn is_leaf(edge: &Edge) -> bool {
    matches!(edge.node.kind, NodeKind::Leaf(_))
}

/// Returns the gradient accumulated in a leaf.
pub(super) fn gathered(tensor: &Tensor) -> Option<Tensor> {
    memory(tensor).gathered?.0.lock().clone()
}

/// Removes the gradient accumulated in a leaf.
pub(super) fn clear_gathered(tensor: &Tensor) {
    let gathered = memory(tensor).gathered.and_then(|gathered| gathered.0.lock().take());
    drop(gathered);
}

fn view_edge(base: Edge, view: &Tensor) -> Edge {
    linear_edge(base, Geometry::of(view))
}

/// Returns the origin of a view with this geometry.
fn linear_edge(base: Edge, view: Geometry) -> Edge {
    let kind = NodeKind::Linear(Linear::view(base.geometry.clone(), view.clone()));
    Edge { node: Node::new(kind, vec![Some(base)]), output: 0, geometry: view }
}

/// Returns the base of a view; the tensor itself if it is not a view.
pub(super) fn base(tensor: &Tensor) -> Tensor {
    let mut base = tensor.clone();
    while let Some(view) = memory(&base).view {
        base = view.base;
    }
    base
}

/// Registers a new tensor as result `output` of `node`.
pub(super) fn set_result(tensor: &Tensor, node: &Arc<Node>, output: usize) {
    let from = Some(Edge { node: Arc::clone(node), output, geometry: Geometry::of(tensor) });
    set_memory(tensor, Memory { from, view: memory(tensor).view, gathered: None });
    tensor.set_requires_grad(true);
}

/// Registers `tensor` as a view of `of`, unless `tensor` is the base of `of`.
pub(super) fn set_view(tensor: &Tensor, of: &Tensor) {
    let base = base(of);
    if base.ptr_eq(tensor) {
        return;
    }
    let from = edge(&base);
    let seen = from.as_ref().map_or(0, |edge| edge.node.id);
    tensor.set_requires_grad(from.is_some());
    let from = from.map(|base| view_edge(base, tensor));
    set_memory(tensor, Memory { from, view: Some(View { base, seen }), gathered: None });
}

/// Drops the history of a tensor.
///
/// # Errors
/// Returns an input error if the tensor is a view, because its history is that of its base.
pub(super) fn detach(tensor: &Tensor) -> Result<(), KernelError> {
    if memory(tensor).view.is_some() {
        return Err(KernelError::input("Can't detach views in-place. Use detach() instead."));
    }
    set_memory(tensor, Memory { gathered: memory(tensor).gathered, ..Memory::default() });
    tensor.set_requires_grad(false);
    Ok(())
}

/// Registers that a tensor now has another layout on the same memory; `base` is its base, or the tensor itself.
pub(super) fn update_view(tensor: &Tensor, base: &Tensor) {
    if !base.ptr_eq(tensor) {
        set_view(tensor, base);
    } else if let Some(before) = edge(tensor) {
        set_result(tensor, &view_edge(before, tensor).node, 0);
    }
}

/// Registers that `node` wrote to the memory of `tensor`, a view, and so produced a new version of its base.
pub(super) fn rewrite_base(tensor: &Tensor, node: &Arc<Node>) {
    set_result(&base(tensor), node, 0);
    // Recomputes the view's edge from that of the base.
    let _ = edge(tensor);
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_tensor::DType;

    fn tensor() -> Tensor {
        Tensor::zeros(&[1], DType::F32).expect("small")
    }

    /// Creates a node that depends on the origin of `tensor`.
    fn step(tensor: &Tensor) -> Arc<Node> {
        Node::new(NodeKind::Sum, vec![edge(tensor)])
    }

    fn leaf() -> Tensor {
        let leaf = tensor();
        leaf.set_requires_grad(true);
        assert!(is_leaf(&edge(&leaf).expect("a leaf")));
        leaf
    }

    fn gather(leaf: &Tensor, grad: Tensor) {
        *memory(leaf).gathered.expect("a leaf").0.lock() = Some(grad);
    }

    /// Runs `work` on a stack that is too small for a deep recursion.
    fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work).expect("a thread");
        thread.join().expect("no recursion");
    }

    const LONG: usize = 1_000_000;

    #[test]
    fn a_long_history_is_dropped_in_a_loop() {
        on_a_small_stack(|| {
            let result = leaf();
            let first = Arc::downgrade(&edge(&result).expect("a leaf").node);
            for _ in 0..LONG {
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
            for _ in 0..LONG / 10 {
                let grad = leaf();
                gather(&last, grad.clone());
                last = grad;
            }
            let node = Arc::downgrade(&edge(&last).expect("a leaf").node);
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
        gather(&leaf, grad.clone());
        set_result(&grad, &step(&leaf), 0);
        let node = Arc::downgrade(&edge(&grad).expect("recorded").node);
        drop(grad);
        assert!(node.strong_count() > 0);
        drop(leaf);
        assert_eq!((node.strong_count(), storage.ref_count()), (0, 1));
    }

    #[test]
    fn no_tensor_is_a_view_of_itself() {
        let base = leaf();
        let view = base.alias();
        let node = Arc::downgrade(&edge(&base).expect("a leaf").node);
        set_view(&view, &base);
        set_view(&base, &view);
        drop((base, view));
        assert_eq!(node.strong_count(), 0);
    }
}
