//! Iterators over nodes: of one block, or of a block with everything nested in it in program order.
//!
//! Nesting depth costs heap memory, not stack.

use super::Graph;
use super::arena::NONE;
use crate::id::{BlockId, NodeId, ValueId};

/// Iterates over a list of slots as keys. `nth` and `skip` take constant time, unlike those of `std::iter::Map`.
#[derive(Clone)]
pub(super) struct Keys<'g, T, F> {
    items: std::slice::Iter<'g, T>,
    key: F,
}

impl<'g, T, K, F: Fn(&T) -> K> Keys<'g, T, F> {
    #[inline]
    pub(super) fn new(items: &'g [T], key: F) -> Self {
        Keys { items: items.iter(), key }
    }
}

impl<T, K, F: Fn(&T) -> K> Iterator for Keys<'_, T, F> {
    type Item = K;

    #[inline]
    fn next(&mut self) -> Option<K> {
        self.items.next().map(&self.key)
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<K> {
        self.items.nth(n).map(&self.key)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

impl<T, K, F: Fn(&T) -> K> DoubleEndedIterator for Keys<'_, T, F> {
    #[inline]
    fn next_back(&mut self) -> Option<K> {
        self.items.next_back().map(&self.key)
    }

    #[inline]
    fn nth_back(&mut self, n: usize) -> Option<K> {
        self.items.nth_back(n).map(&self.key)
    }
}

impl<T, K, F: Fn(&T) -> K> ExactSizeIterator for Keys<'_, T, F> {}

/// Iterates over the nodes of one block in order, without `prim::Param` and `prim::Return`.
#[derive(Clone)]
pub struct BlockNodes<'g> {
    graph: &'g Graph,
    front: u32,
    back: u32,
}

impl Iterator for BlockNodes<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        if self.front == NONE {
            return None;
        }
        let at = self.front;
        self.front = if at == self.back { NONE } else { self.graph.nodes.at(at).place.next };
        Some(self.graph.nodes.key(at))
    }
}

impl DoubleEndedIterator for BlockNodes<'_> {
    fn next_back(&mut self) -> Option<NodeId> {
        if self.front == NONE {
            return None;
        }
        let at = self.back;
        if at == self.front {
            self.front = NONE;
        } else {
            self.back = self.graph.nodes.at(at).place.prev;
        }
        Some(self.graph.nodes.key(at))
    }
}

/// One step of a [`Walk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// A block begins; its inputs are defined.
    Enter(BlockId),
    /// A node, before its blocks.
    Node(NodeId),
    /// A block ends; its outputs are read.
    Leave(BlockId),
    /// All blocks of a node that has blocks are done.
    Done(NodeId),
}

/// Iterates over a block and everything nested in it, in program order, with entry and exit of every block.
pub struct Walk<'g> {
    graph: &'g Graph,
    cursor: Cursor,
    /// The nodes that enclose the cursor, outermost first, each with the number of its blocks entered so far.
    around: Vec<(u32, u32)>,
}

#[derive(Clone, Copy)]
enum Cursor {
    /// Before a block.
    Enter(u32),
    /// Before a node.
    At(u32),
    /// After a block, or before the first block of a node.
    Between,
}

impl Iterator for Walk<'_> {
    type Item = WalkStep;

    #[inline]
    fn next(&mut self) -> Option<WalkStep> {
        let g = self.graph;
        match self.cursor {
            Cursor::Enter(block) => Some(self.enter(block)),
            Cursor::At(node) => {
                let row = g.nodes.at(node);
                if row.place.next == NONE {
                    self.cursor = Cursor::Between;
                    return Some(WalkStep::Leave(g.blocks.key(row.place.parent)));
                }
                if row.blocks.len() == 0 {
                    self.cursor = Cursor::At(row.place.next);
                } else {
                    self.cursor = Cursor::Between;
                    self.around.push((node, 0));
                }
                Some(WalkStep::Node(g.nodes.key(node)))
            }
            Cursor::Between => {
                let (node, entered) = self.around.last_mut()?;
                let row = g.nodes.at(*node);
                if let Some(&block) = g.links.items(&row.blocks).get(*entered as usize) {
                    *entered += 1;
                    return Some(self.enter(block));
                }
                let done = g.nodes.key(*node);
                self.around.pop();
                self.cursor = Cursor::At(row.place.next);
                Some(WalkStep::Done(done))
            }
        }
    }
}

impl Walk<'_> {
    fn enter(&mut self, block: u32) -> WalkStep {
        let g = self.graph;
        self.cursor = Cursor::At(g.nodes.at(g.blocks.at(block).param).place.next);
        WalkStep::Enter(g.blocks.key(block))
    }
}

/// Iterates over all nodes of a block and of the blocks nested in it, in program order.
pub struct DeepNodes<'g>(Walk<'g>);

impl Iterator for DeepNodes<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        loop {
            if let WalkStep::Node(n) = self.0.next()? {
                return Some(n);
            }
        }
    }
}

impl Graph {
    /// Returns the nodes of a block in order, without `prim::Param` and `prim::Return`.
    pub fn nodes(&self, block: BlockId) -> BlockNodes<'_> {
        let row = self.blocks.get(block);
        let front = self.nodes.at(row.param).place.next;
        let back = self.nodes.at(row.ret).place.prev;
        let front = if front == row.ret { NONE } else { front };
        BlockNodes { graph: self, front, back }
    }

    /// Walks a block and everything nested in it, in program order.
    pub fn walk(&self, block: BlockId) -> Walk<'_> {
        Walk { graph: self, cursor: Cursor::Enter(self.block_slot(block)), around: Vec::new() }
    }

    /// Returns all nodes of the graph in preorder: nested nodes follow the node that contains them.
    pub fn nodes_deep(&self) -> DeepNodes<'_> {
        DeepNodes(self.walk(self.root()))
    }

    /// Returns all nodes of a block in preorder: nested nodes follow the node that contains them.
    pub fn nodes_deep_in(&self, block: BlockId) -> DeepNodes<'_> {
        DeepNodes(self.walk(block))
    }

    /// Returns all values in program order: block inputs at the block's entry, results at their node.
    pub fn values_in_order(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.walk(self.root()).flat_map(move |step| {
            let node = match step {
                WalkStep::Enter(block) => Some(self.param(block)),
                WalkStep::Node(node) => Some(node),
                WalkStep::Leave(_) | WalkStep::Done(_) => None,
            };
            node.into_iter().flat_map(move |n| self.results(n))
        })
    }
}
