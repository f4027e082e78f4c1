//! What nodes take from around them, those nested in them included, found once for a whole graph.
//!
//! Invariant: a list has every value that is defined outside the node and used inside one of its blocks, each once, in
//! order of first use, constants that hold no memory left out. Groups replace values; [`Captures::replace`] keeps the lists true.

use flambeau_ir::{BlockId, Graph, IValue, NodeId, Prim, ValueId, WalkStep};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

type Map<K, V> = HashMap<K, V, FxBuildHasher>;

/// A node whose blocks take more values from around it is in no group: lists of this length, one per level, would make
/// deep nests quadratic.
const MOST: usize = 2048;

/// Whether a value is a constant that holds no memory, so that a copy in a subgraph is as good: what can be written has to
/// stay in sight of the alias analysis.
pub(super) fn is_copied(g: &Graph, v: ValueId) -> bool {
    g.is_prim(g.def(v), Prim::Constant)
        && (!g.ty(v).is_mutable() || matches!(g.constant(v), None | Some(IValue::None)))
}

/// What nodes with blocks take.
#[derive(Default)]
pub(super) struct Captures {
    /// By node: what is used in its blocks and comes from around it; `None` if that is more than [`MOST`].
    nested: Map<NodeId, Option<Vec<ValueId>>>,
    /// Values of nodes that are in groups by now, and what gives them instead.
    replaced: Map<ValueId, ValueId>,
}

/// A node with blocks that is being walked.
struct Frame {
    /// The depth of the block that the node stands in.
    depth: usize,
    seen: HashSet<ValueId, FxBuildHasher>,
    list: Vec<ValueId>,
    is_too_long: bool,
}

impl Frame {
    fn add(&mut self, value: ValueId) {
        if !self.is_too_long && self.seen.insert(value) {
            self.list.push(value);
            self.is_too_long = self.list.len() > MOST;
        }
    }
}

impl Captures {
    /// One walk. Every value in sight belongs to a block that is open, so the depth of that block says whether it comes
    /// from around a node.
    pub(super) fn of_graph(g: &Graph) -> Captures {
        let mut captures = Captures::default();
        let mut depths: Map<BlockId, usize> = Map::default();
        let mut frames: Vec<Frame> = Vec::new();
        let take = |values: &mut dyn Iterator<Item = ValueId>, depths: &Map<_, usize>, frame: &mut Frame| {
            for v in values {
                let def = g.def(v);
                let is_around = depths.get(&g.parent(def)).is_some_and(|&d| d <= frame.depth);
                if is_around && !is_copied(g, v) {
                    frame.add(v);
                }
            }
        };
        for step in g.walk(g.root()) {
            match step {
                WalkStep::Enter(block) => drop(depths.insert(block, frames.len())),
                WalkStep::Leave(block) => {
                    if let Some(frame) = frames.last_mut() {
                        take(&mut g.block_outputs(block), &depths, frame);
                    }
                }
                WalkStep::Node(node) => {
                    if let Some(frame) = frames.last_mut() {
                        take(&mut g.operands(node), &depths, frame);
                    }
                    if g.block_count(node) > 0 {
                        let (depth, seen) = (frames.len(), HashSet::default());
                        frames.push(Frame { depth, seen, list: Vec::new(), is_too_long: false });
                    }
                }
                WalkStep::Done(node) => {
                    let Some(Frame { list, is_too_long, .. }) = frames.pop() else { continue };
                    if let Some(frame) = frames.last_mut() {
                        frame.is_too_long |= is_too_long;
                        take(&mut list.iter().copied(), &depths, frame);
                    }
                    captures.nested.insert(node, (!is_too_long).then_some(list));
                }
            }
        }
        captures
    }

    /// Whether all that a node takes is known.
    pub(super) fn is_known(&self, node: NodeId) -> bool {
        !matches!(self.nested.get(&node), Some(None))
    }

    /// What a node takes, and what is nested in it; constants that are copied left out.
    pub(super) fn by<'a>(&'a self, g: &'a Graph, node: NodeId) -> impl Iterator<Item = ValueId> + 'a {
        let inner = self.nested.get(&node).and_then(Option::as_deref).unwrap_or_default();
        let now = |v: &ValueId| self.replaced.get(v).copied().unwrap_or(*v);
        let own = g.operands(node).filter(|&v| !is_copied(g, v));
        own.chain(inner.iter().map(now))
    }

    /// Notes that a value is given by something else now.
    pub(super) fn replace(&mut self, old: ValueId, new: ValueId) {
        self.replaced.insert(old, new);
    }
}
