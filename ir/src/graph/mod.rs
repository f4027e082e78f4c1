//! The graph: arenas of nodes, values and blocks, and everything that can be read from them.
//!
//! Shape of the data (all links are four-byte slots, private to this folder):
//! - A **node** row says *what* (operator, operands, results, nested blocks, attributes, location) and, apart from
//!   that, *where* ([`NodePosition`]: parent block, neighbours, order key).
//! - A **value** row is one result of one node, with its type, its name and the ends of its use list.
//! - An **operand** row is one use: the value used, the user, and its neighbours in the value's use list. Operands
//!   of a node lie side by side in one pool, so a use's position is its offset in the run.
//! - A **block** has a `prim::Param` node, whose results are the block's inputs, and a `prim::Return` node, whose
//!   operands are its outputs. They bracket the node list, so no walk has a special case.
//!
//! Reading is `&Graph`; every change goes through [`crate::Editor`] and leaves a [`crate::Change`] in the journal.
//! `operand.rs` is the only writer of use lists, `order.rs` the only writer of order keys.

mod arena;
mod effects;
mod iter;
mod links;
mod mark_live;
mod names;
mod operand;
mod ops;
mod order;
mod pool;
mod raw;
mod read;
mod side;
mod structured;
#[cfg(test)]
mod tests;

pub use iter::{BlockNodes, DeepNodes, Walk, WalkStep};
pub use mark_live::{LiveNodes, MarkLive};
pub use names::Name;
pub use operand::Use;
pub use side::{NodeMap, NodeSet, TrackedNodeMap, TrackedValueMap, ValueMap, ValueSet};
pub use structured::{IfView, LoopView};

use crate::attr::{AttrTable, AttrsId};
use crate::id::{BlockId, NodeId, ValueId};
use crate::journal::Journal;
use crate::loc::{LocId, LocTable};
use crate::op::{Op, Registry};
use crate::types::Type;
use arena::{Arena, NONE};
use links::Links;
use operand::Operand;
use pool::{Pool, Run};
use std::sync::Arc;

/// Where a node stands.
#[derive(Clone, Copy)]
pub(crate) struct NodePosition {
    parent: u32,
    prev: u32,
    next: u32,
    order: u32,
}

/// What a node is.
#[derive(Clone, Copy)]
pub(crate) struct NodeRow {
    op: Op,
    attrs: AttrsId,
    loc: LocId,
    operands: Run,
    results: Run,
    blocks: Run,
    place: NodePosition,
}

/// One result of one node.
#[derive(Clone, Copy)]
pub(crate) struct ValueRow {
    node: u32,
    index: u32,
    ty: Type,
    first_use: u32,
    last_use: u32,
    n_uses: u32,
    name: Name,
}

/// A block: its two bracket nodes and the node that owns it (`NONE` for the root).
#[derive(Clone, Copy)]
pub(crate) struct BlockRow {
    param: u32,
    ret: u32,
    owner: u32,
}

/// A program or a part of one: a root block of nodes over values.
#[derive(Clone)]
pub struct Graph {
    pub(crate) registry: Arc<Registry>,
    nodes: Arena<NodeId, NodeRow>,
    values: Arena<ValueId, ValueRow>,
    blocks: Arena<BlockId, BlockRow>,
    operands: Pool<Operand>,
    links: Links,
    names: names::NameTable,
    root: u32,
    pub(crate) attrs: AttrTable,
    pub(crate) locs: LocTable,
    pub(crate) journal: Journal,
    summary: effects::Summary,
}

impl Graph {
    /// An empty graph (no inputs, no outputs) whose operators are those of `registry`.
    pub fn new(registry: Arc<Registry>) -> Self {
        let journal = Journal::new();
        let first = journal.revision().graph().first_generation();
        let mut g = Graph {
            registry,
            nodes: Arena::new(first),
            values: Arena::new(first),
            blocks: Arena::new(first),
            operands: Pool::new(),
            links: Links::new(),
            names: names::NameTable::new(),
            root: 0,
            attrs: AttrTable::new(),
            locs: LocTable::new(),
            journal,
            summary: effects::Summary::default(),
        };
        g.root = g.raw_new_block(NONE);
        g
    }

    /// Makes room for nodes of one result each, and for operands: who knows them saves the growing and the slack.
    pub fn reserve(&mut self, nodes: usize, operands: usize) {
        self.nodes.reserve(nodes);
        self.values.reserve(nodes);
        self.operands.reserve(operands);
        self.locs.reserve(nodes);
    }

    /// The operators this graph's nodes refer to.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The attribute sets of this graph's nodes.
    pub fn attr_table(&self) -> &AttrTable {
        &self.attrs
    }

    /// The locations of this graph's nodes.
    pub fn locs(&self) -> &LocTable {
        &self.locs
    }

    /// The location table, for adding sources and ranges (which changes no node).
    pub fn locs_mut(&mut self) -> &mut LocTable {
        &mut self.locs
    }

    /// What was changed, and when.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Whether edits are kept in the journal, as they are in a new graph. Building goes faster without.
    pub fn keep_journal(&mut self, keep: bool) {
        if keep { self.journal.resume() } else { self.journal.pause() }
    }

    /// The one door to change: an editor positioned at the end of the root block.
    pub fn edit(&mut self) -> crate::Editor<'_> {
        crate::Editor::new(self)
    }

    /// Bytes of heap this graph holds, spare capacity included; tensors and other shared values are not counted.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.heap_bytes()
            + self.values.heap_bytes()
            + self.blocks.heap_bytes()
            + self.operands.heap_bytes()
            + self.links.heap_bytes()
            + self.names.heap_bytes()
            + self.attrs.heap_bytes()
            + self.locs.heap_bytes()
            + self.journal.heap_bytes()
    }
}
