//! Captures: for each node with blocks, the values that its blocks use from outside. Computed once for a whole graph.
//!
//! Invariant: a list holds every value that is defined outside the node and used inside one of its blocks, without
//! duplicates, in order of first use, without constants that [`is_copied`] accepts. Outlining replaces values by
//! results of groups; [`Captures::replace`] keeps the lists up to date.

use flambeau_ir::{BlockId, Graph, IValue, NodeId, Prim, ValueId, WalkStep};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

type Map<K, V> = HashMap<K, V, FxBuildHasher>;

/// Maximum number of captures of a node that may join a group. Lists of unbounded length, one per nesting level, would
/// make deep nests quadratic.
const MAX_CAPTURES: usize = 2048;

/// Whether a value is a constant that owns no mutable memory, so that a subgraph can have its own copy. Mutable
/// constants must remain visible to the alias analysis.
pub(super) fn is_copied(g: &Graph, v: ValueId) -> bool {
    g.is_prim(g.def(v), Prim::Constant)
        && (!g.ty(v).is_mutable() || matches!(g.constant(v), None | Some(IValue::None)))
}

/// The captures of nodes with blocks.
#[derive(Default)]
pub(super) struct Captures {
    /// By node: the captures of its blocks; `None` if there are more than [`MAX_CAPTURES`].
    nested: Map<NodeId, Option<Vec<ValueId>>>,
    /// Values whose producers have moved into a group, and the group results that replace them.
    replaced: Map<ValueId, ValueId>,
}

/// A node with blocks whose walk is in progress.
struct OpenNode {
    /// The depth of the block that contains the node.
    depth: usize,
    seen: HashSet<ValueId, FxBuildHasher>,
    list: Vec<ValueId>,
    is_too_long: bool,
}

impl OpenNode {
    fn add(&mut self, value: ValueId) {
        if !self.is_too_long && self.seen.insert(value) {
            self.list.push(value);
            self.is_too_long = self.list.len() > MAX_CAPTURES;
        }
    }
}

impl Captures {
    /// Computes all captures in one walk. Every visible value belongs to an open block, so a value is defined outside a
    /// node exactly if its block is not deeper than that of the node.
    pub(super) fn of_graph(g: &Graph) -> Captures {
        let mut captures = Captures::default();
        let mut depths: Map<BlockId, usize> = Map::default();
        let mut frames: Vec<OpenNode> = Vec::new();
        let take =
            |values: &mut dyn Iterator<Item = ValueId>, depths: &Map<_, usize>, frame: &mut OpenNode| {
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
                        frames.push(OpenNode { depth, seen, list: Vec::new(), is_too_long: false });
                    }
                }
                WalkStep::Done(node) => {
                    let Some(OpenNode { list, is_too_long, .. }) = frames.pop() else { continue };
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

    /// Whether the list of captures of a node is complete.
    pub(super) fn is_known(&self, node: NodeId) -> bool {
        !matches!(self.nested.get(&node), Some(None))
    }

    /// The operands of a node and the captures of its blocks, without constants that are copied.
    pub(super) fn by<'a>(&'a self, g: &'a Graph, node: NodeId) -> impl Iterator<Item = ValueId> + 'a {
        let inner = self.nested.get(&node).and_then(Option::as_deref).unwrap_or_default();
        let now = |v: &ValueId| self.replaced.get(v).copied().unwrap_or(*v);
        let own = g.operands(node).filter(|&v| !is_copied(g, v));
        own.chain(inner.iter().map(now))
    }

    /// Records that `new` replaces `old`.
    pub(super) fn replace(&mut self, old: ValueId, new: ValueId) {
        self.replaced.insert(old, new);
    }
}
