//! What a tensor remembers of how it came about.

use super::region::Geometry;
use super::{Derivative, Input};
use crate::error::KernelError;
use flambeau_ir::OpId;
use flambeau_ir::value::{Generator, IValue};
use flambeau_tensor::Tensor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// One step of a history. Ids grow with time.
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) kind: Kind,
    /// Where the tensors it read came from; `None` for those that need no gradient.
    pub(super) edges: Vec<Option<Edge>>,
}

pub(super) enum Kind {
    /// A tensor that gradients are wanted for, with what it has gathered of them.
    Leaf(Mutex<Option<Tensor>>),
    /// An operator.
    Op(OpCall),
    /// A view of the one tensor it came from.
    View { base: Geometry, view: Geometry },
    /// A write through a view: the first edge is the base's; the others, the call's own without the view's.
    Write { base: Geometry, view: Geometry, call: OpCall, target: usize },
}

/// A call of an operator, as far as its derivative needs it.
pub(super) struct OpCall {
    pub(super) op: OpId,
    pub(super) name: String,
    /// `None` if no derivative is known: an error once a gradient comes this way.
    pub(super) derivative: Option<Arc<Derivative>>,
    /// Arguments and results by their positions; those no formula asks for are `None`.
    pub(super) args: Vec<IValue>,
    pub(super) results: Vec<IValue>,
    /// Arguments of which formulas only ask for sizes and types, and zeros like them.
    pub(super) shapes: Vec<(usize, IValue)>,
    /// The results' geometry, for gradients that never came.
    pub(super) outputs: Vec<Geometry>,
    /// For each argument, where its tensors' edges begin, and how many they are if it is a list.
    pub(super) places: Vec<Place>,
    /// The default generator as it was before, for a body that draws.
    pub(super) generator: Option<Generator>,
    /// Tensors kept, and their versions then.
    pub(super) kept: Vec<(Tensor, u64)>,
}

/// Where an argument's edges are.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) list: Option<usize>,
}

impl Place {
    /// An argument's edges among those of its call.
    pub(super) fn of(self, edges: &[Option<Edge>]) -> &[Option<Edge>] {
        &edges[self.start..self.start + self.list.unwrap_or(1)]
    }
}

impl OpCall {
    /// An error if something kept was written to since.
    pub(super) fn check_versions(&self) -> Result<(), KernelError> {
        match self.kept.iter().find(|(tensor, version)| tensor.version() != *version) {
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

    /// The value of something a formula asks for; gradients that never came are zeros.
    pub(super) fn input(&self, input: Input, grads: &[Option<Tensor>]) -> Result<IValue, KernelError> {
        Ok(match input {
            Input::Arg(i) => self.args[i].clone(),
            Input::Like(i) => {
                let found = self.shapes.iter().find(|(arg, _)| *arg == i);
                found.map_or(IValue::None, |(_, zeros)| zeros.clone())
            }
            Input::Result(i) => self.results[i].clone(),
            Input::Grad(i) => IValue::Tensor(match grads.get(i) {
                Some(Some(grad)) => grad.clone(),
                _ => self.outputs[i].zeros()?,
            }),
        })
    }
}

/// A way back: to a result of a node, of this geometry.
#[derive(Clone)]
pub(super) struct Edge {
    pub(super) node: Arc<Node>,
    pub(super) output: usize,
    pub(super) geometry: Geometry,
}

impl Node {
    pub(super) fn new(kind: Kind, edges: Vec<Option<Edge>>) -> Arc<Node> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Node { id: NEXT.fetch_add(1, Ordering::Relaxed), kind, edges })
    }
}

impl Drop for Node {
    /// Histories are as long as programs run: they are taken apart in a loop.
    fn drop(&mut self) {
        let mut rest: Vec<Option<Edge>> = std::mem::take(&mut self.edges);
        while let Some(edge) = rest.pop() {
            if let Some(mut node) = edge.and_then(|edge| Arc::into_inner(edge.node)) {
                rest.append(&mut node.edges);
            }
        }
    }
}

/// What hangs on a tensor.
#[derive(Default)]
struct Slot(Mutex<Memory>);

#[derive(Default, Clone)]
struct Memory {
    from: Option<Edge>,
    view: Option<View>,
}

/// A tensor that is a view of another.
#[derive(Clone)]
struct View {
    base: Tensor,
    /// The node that the base came from when `from` was made; 0 if it came from none.
    seen: u64,
}

fn memory(tensor: &Tensor) -> Memory {
    let slot = tensor.autograd().and_then(|slot| slot.downcast::<Slot>().ok());
    slot.map(|slot| slot.0.lock().clone()).unwrap_or_default()
}

fn remember(tensor: &Tensor, memory: Memory) {
    let found = tensor.autograd().and_then(|slot| slot.downcast::<Slot>().ok());
    match found {
        Some(slot) => *slot.0.lock() = memory,
        None => drop(tensor.set_autograd(Some(Arc::new(Slot(Mutex::new(memory)))))),
    }
}

/// Where a tensor came from, if it needs a gradient.
pub(super) fn edge(tensor: &Tensor) -> Option<Edge> {
    let mut own = memory(tensor);
    if let Some(view) = &mut own.view {
        let base = edge(&view.base);
        let now = base.as_ref().map_or(0, |edge| edge.node.id);
        if now != view.seen {
            view.seen = now;
            own.from = base.map(|base| view_edge(base, tensor));
            tensor.set_requires_grad(own.from.is_some());
            remember(tensor, own.clone());
        }
        if own.from.is_some() || now != 0 {
            return own.from;
        }
    }
    if own.from.is_none() && tensor.requires_grad() {
        own.from = Some(Edge {
            node: Node::new(Kind::Leaf(Mutex::default()), Vec::new()),
            output: 0,
            geometry: Geometry::of(tensor),
        });
        remember(tensor, own.clone());
    }
    own.from
}

/// Whether a tensor is one that gradients are wanted for, not the result of anything.
pub(super) fn is_leaf(edge: &Edge) -> bool {
    matches!(edge.node.kind, Kind::Leaf(_))
}

/// The gradient that a leaf has gathered.
pub(super) fn gathered(tensor: &Tensor) -> Option<Tensor> {
    match &memory(tensor).from?.node.kind {
        Kind::Leaf(grad) => grad.lock().clone(),
        _ => None,
    }
}

fn view_edge(base: Edge, view: &Tensor) -> Edge {
    let geometry = Geometry::of(view);
    let kind = Kind::View { base: base.geometry.clone(), view: geometry.clone() };
    Edge { node: Node::new(kind, vec![Some(base)]), output: 0, geometry }
}

/// The tensor whose memory a tensor is a view of: itself if it is none.
pub(super) fn base(tensor: &Tensor) -> Tensor {
    memory(tensor).view.map_or_else(|| tensor.clone(), |view| view.base)
}

/// Says that a fresh tensor is result `output` of `node`.
pub(super) fn set_result(tensor: &Tensor, node: &Arc<Node>, output: usize) {
    let from = Some(Edge { node: Arc::clone(node), output, geometry: Geometry::of(tensor) });
    remember(tensor, Memory { from, view: memory(tensor).view });
    tensor.set_requires_grad(true);
}

/// Says that a fresh tensor is a view of another.
pub(super) fn set_view(tensor: &Tensor, of: &Tensor) {
    let base = base(of);
    let from = edge(&base);
    let seen = from.as_ref().map_or(0, |edge| edge.node.id);
    tensor.set_requires_grad(from.is_some());
    let from = from.map(|base| view_edge(base, tensor));
    remember(tensor, Memory { from, view: Some(View { base, seen }) });
}

/// Says that the memory of `tensor`, a view, was written to by `node`, which made its base anew.
pub(super) fn rewrite_base(tensor: &Tensor, node: &Arc<Node>) {
    set_result(&base(tensor), node, 0);
    // The view's own edge is made anew from the base's.
    let _ = edge(tensor);
}
