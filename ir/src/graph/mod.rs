//! The graph: arenas of nodes, values and blocks, and all read access to them.
//!
//! Data layout (all links are four-byte slots, private to this folder):
//! - A **node** row holds operator, operands, results, nested blocks, attributes and location, and separately its
//!   position ([`NodePosition`]: parent block, neighbours, order key).
//! - A **value** row is one result of one node: its type, its name and the ends of its use list.
//! - An **operand** row is one use: the value, its user, and the neighbours in the value's use list. The operands of a
//!   node are adjacent in one pool, so the index of a use is its offset in the run.
//! - A **block** has a `prim::Param` node, whose results are the block's inputs, and a `prim::Return` node, whose
//!   operands are its outputs. They are the first and the last node of the list, so no walk has a special case for the
//!   ends.
//!
//! Reads need `&Graph`. Every change goes through [`crate::Editor`] and leaves a [`crate::Change`] in the journal. Only
//! `operand.rs` writes use lists, and only `order.rs` writes order keys.

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
mod size_range;
mod structured;
#[cfg(test)]
mod tests;

pub use iter::{BlockNodes, DeepNodes, Walk, WalkStep};
pub use mark_live::{LiveNodes, MarkLive};
pub use names::ValueName;
pub use operand::Use;
pub use side::{NodeMap, NodeSet, TrackedNodeMap, TrackedValueMap, ValueMap, ValueSet};
pub use size_range::SizeRange;
pub(crate) use size_range::SizeRanges;
pub use structured::{IfView, LoopView};

use crate::attr::{AttrTable, AttrsId};
use crate::id::{BlockId, NodeId, ValueId};
use crate::journal::Journal;
use crate::loc::{LocId, LocTable};
use crate::op::{Op, Registry};
use crate::types::Type;
use arena::{Arena, NONE};
use links::SlabLists;
use operand::Operand;
use pool::{Pool, Run};
use std::sync::Arc;

/// The position of a node: its block, its neighbours in the block's list (or [`NONE`]), and its order key.
#[derive(Clone, Copy)]
pub(crate) struct NodePosition {
    parent: u32,
    prev: u32,
    next: u32,
    order: u32,
}

/// A node.
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
    name: ValueName,
}

/// A block: its `prim::Param`, its `prim::Return`, and the node that owns it ([`NONE`] for the root).
#[derive(Clone, Copy)]
pub(crate) struct BlockRow {
    param: u32,
    ret: u32,
    owner: u32,
}

/// A program or a part of a program: a root block of nodes over values.
#[derive(Clone)]
pub struct Graph {
    pub(crate) registry: Arc<Registry>,
    nodes: Arena<NodeId, NodeRow>,
    values: Arena<ValueId, ValueRow>,
    blocks: Arena<BlockId, BlockRow>,
    operands: Pool<Operand>,
    links: SlabLists,
    names: names::NameTable,
    root: u32,
    pub(crate) attrs: AttrTable,
    pub(crate) locs: LocTable,
    pub(crate) size_ranges: SizeRanges,
    pub(crate) journal: Journal,
    summary: effects::EffectsCache,
}

impl Graph {
    /// Creates an empty graph (no inputs, no outputs) over the operators of `registry`.
    pub fn new(registry: Arc<Registry>) -> Self {
        let journal = Journal::new();
        let first = journal.revision().graph().first_generation();
        let mut g = Graph {
            registry,
            nodes: Arena::new(first),
            values: Arena::new(first),
            blocks: Arena::new(first),
            operands: Pool::new(),
            links: SlabLists::new(),
            names: names::NameTable::new(),
            root: 0,
            attrs: AttrTable::new(),
            locs: LocTable::new(),
            size_ranges: SizeRanges::default(),
            journal,
            summary: effects::EffectsCache::default(),
        };
        g.root = g.raw_new_block(NONE);
        g
    }

    /// Reserves capacity for `nodes` more nodes of one result each and for `operands` more operands. Saves reallocation
    /// and spare capacity when the sizes are known in advance.
    pub fn reserve(&mut self, nodes: usize, operands: usize) {
        self.nodes.reserve(nodes);
        self.values.reserve(nodes);
        self.operands.reserve(operands);
        self.locs.reserve(nodes);
    }

    /// Returns the registry that defines this graph's operators.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the interned attribute sets of this graph's nodes.
    pub fn attr_table(&self) -> &AttrTable {
        &self.attrs
    }

    /// Returns the table of this graph's locations.
    pub fn locs(&self) -> &LocTable {
        &self.locs
    }

    /// Returns the location table for adding sources and ranges, which changes no node.
    pub fn locs_mut(&mut self) -> &mut LocTable {
        &mut self.locs
    }

    /// Returns the record of edits.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Sets whether the journal records edits; it does in a new graph. Building is faster without records.
    pub fn keep_journal(&mut self, keep: bool) {
        if keep { self.journal.resume() } else { self.journal.pause() }
    }

    /// Returns the ranges of symbols in the types of the inputs, in the order of the symbols. A symbol without a range may have any
    /// size.
    pub fn size_ranges(&self) -> impl Iterator<Item = &SizeRange> {
        self.size_ranges.iter()
    }

    /// Returns the range of a symbol in the types of the inputs.
    pub fn size_range(&self, symbol: i64) -> Option<&SizeRange> {
        self.size_ranges.get(symbol)
    }

    /// Returns an editor positioned at the end of the root block. All changes of a graph go through an editor.
    pub fn edit(&mut self) -> crate::Editor<'_> {
        crate::Editor::new(self)
    }

    /// Returns the heap size in bytes, including spare capacity. Tensors and other shared values are not counted.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.heap_bytes()
            + self.values.heap_bytes()
            + self.blocks.heap_bytes()
            + self.operands.heap_bytes()
            + self.links.heap_bytes()
            + self.names.heap_bytes()
            + self.attrs.heap_bytes()
            + self.locs.heap_bytes()
            + self.size_ranges.heap_bytes()
            + self.journal.heap_bytes()
    }
}
