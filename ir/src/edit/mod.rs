//! The one door to change a graph. Every step is O(1) or linear in what it touches, and is recorded in the journal.

mod call;
mod clone;

pub use call::{CallArg, CallValues, InsertError, Operands, device_of};
pub use clone::{CloneError, ValueSubstitution};

use crate::attr::{Attr, AttrsId};
use crate::graph::Graph;
use crate::id::{BlockId, NodeId, ValueId};
use crate::journal::Change;
use crate::loc::LocId;
use crate::op::{Op, Prim};
use crate::symbol::Symbol;
use crate::types::Type;
use crate::value::IValue;

/// A place to insert at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(Spot);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Before(NodeId),
    After(NodeId),
    Start(BlockId),
    End(BlockId),
}

impl At {
    /// Directly before a node; further insertions follow each other.
    pub fn before(node: NodeId) -> At {
        At(Spot::Before(node))
    }

    /// Directly after a node; further insertions follow each other.
    pub fn after(node: NodeId) -> At {
        At(Spot::After(node))
    }

    /// First in a block; further insertions follow each other.
    pub fn start(block: BlockId) -> At {
        At(Spot::Start(block))
    }

    /// Last in a block.
    pub fn end(block: BlockId) -> At {
        At(Spot::End(block))
    }
}

/// A cursor that changes a graph.
pub struct Editor<'g> {
    graph: &'g mut Graph,
    /// Insert before this node (a `prim::Return` at the end of a block).
    next: NodeId,
    loc: LocId,
}

impl<'g> Editor<'g> {
    pub(crate) fn new(graph: &'g mut Graph) -> Self {
        let next = graph.ret(graph.root());
        Editor { graph, next, loc: LocId::UNKNOWN }
    }

    /// The graph as it stands.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// The location table, to register sources and ranges.
    pub fn locs_mut(&mut self) -> &mut crate::loc::LocTable {
        &mut self.graph.locs
    }

    /// Moves the cursor.
    pub fn at(&mut self, at: At) -> &mut Self {
        self.next = match at.0 {
            Spot::Before(node) => node,
            Spot::After(node) => self.graph.next(node).expect("nothing can stand after prim::Return"),
            Spot::Start(block) => {
                self.graph.next(self.graph.param(block)).expect("invariant: a block ends in prim::Return")
            }
            Spot::End(block) => self.graph.ret(block),
        };
        self
    }

    /// The node that insertions go before.
    pub fn cursor(&self) -> NodeId {
        self.next
    }

    /// The block insertions go into.
    pub fn block(&self) -> BlockId {
        self.graph.parent(self.next)
    }

    /// Sets the location of the nodes inserted from here on.
    pub fn loc(&mut self, loc: LocId) -> &mut Self {
        self.loc = loc;
        self
    }

    /// The location given to inserted nodes.
    pub fn current_loc(&self) -> LocId {
        self.loc
    }

    // --- insertion -------------------------------------------------------------------------------------------------

    /// Inserts a node with interned attributes.
    pub fn insert(
        &mut self,
        op: impl Into<Op>,
        operands: &[ValueId],
        attrs: AttrsId,
        results: &[Type],
    ) -> NodeId {
        let g = &mut *self.graph;
        let node = g.raw_insert(self.next, op.into(), attrs, self.loc, operands, results);
        g.journal.record(Change::Inserted(node));
        node
    }

    /// Inserts a node without attributes.
    pub fn node(&mut self, op: impl Into<Op>, operands: &[ValueId], results: &[Type]) -> NodeId {
        self.insert(op, operands, AttrsId::EMPTY, results)
    }

    /// Inserts a node with one result and returns the result.
    pub fn value(&mut self, op: impl Into<Op>, operands: &[ValueId], result: Type) -> ValueId {
        let node = self.insert(op, operands, AttrsId::EMPTY, &[result]);
        self.graph.result(node, 0)
    }

    /// Interns attributes for use with [`Editor::insert`].
    pub fn attrs(&mut self, entries: impl AsRef<[(Symbol, Attr)]> + Into<Box<[(Symbol, Attr)]>>) -> AttrsId {
        self.graph.attrs.intern(entries)
    }

    /// Inserts a constant of the value's own type.
    pub fn constant(&mut self, value: IValue) -> ValueId {
        let ty = value.type_of();
        self.constant_of(value, ty)
    }

    /// Inserts a constant under a given type.
    pub fn constant_of(&mut self, value: IValue, ty: Type) -> ValueId {
        let attrs = self.graph.attrs.intern_constant(value);
        let node = self.insert(Prim::Constant, &[], attrs, &[ty]);
        self.graph.result(node, 0)
    }

    /// Appends an empty block to a node.
    pub fn add_block(&mut self, node: NodeId) -> BlockId {
        let block = self.graph.raw_add_block(node);
        self.graph.journal.record(Change::BlocksChanged(node));
        block
    }

    /// Appends an input to a block.
    pub fn add_block_input(&mut self, block: BlockId, ty: Type) -> ValueId {
        let param = self.graph.param(block);
        let index = self.graph.result_count(param);
        let value = self.graph.raw_add_result(param, index, ty);
        self.graph.journal.record(Change::SignatureChanged(block));
        value
    }

    /// Inserts an input before position `index` of a block.
    pub fn insert_block_input(&mut self, block: BlockId, index: usize, ty: Type) -> ValueId {
        let param = self.graph.param(block);
        let value = self.graph.raw_add_result(param, index, ty);
        self.graph.journal.record(Change::SignatureChanged(block));
        value
    }

    /// Removes an unused input of a block.
    pub fn remove_block_input(&mut self, block: BlockId, index: usize) {
        let param = self.graph.param(block);
        self.graph.raw_erase_result(param, index);
        self.graph.journal.record(Change::SignatureChanged(block));
    }

    /// Appends an output to a block.
    pub fn add_block_output(&mut self, block: BlockId, value: ValueId) {
        let ret = self.graph.ret(block);
        let index = self.graph.operand_count(ret);
        self.graph.raw_add_operand(ret, index, value);
        self.graph.journal.record(Change::SignatureChanged(block));
    }

    /// Removes output `index` of a block.
    pub fn remove_block_output(&mut self, block: BlockId, index: usize) {
        let ret = self.graph.ret(block);
        self.graph.raw_take_operand(ret, index);
        self.graph.journal.record(Change::SignatureChanged(block));
    }

    /// Adds an input to the graph.
    pub fn add_input(&mut self, ty: Type) -> ValueId {
        self.add_block_input(self.graph.root(), ty)
    }

    /// Adds an output to the graph.
    pub fn add_output(&mut self, value: ValueId) {
        self.add_block_output(self.graph.root(), value);
    }

    /// Appends a result to a node.
    pub fn add_result(&mut self, node: NodeId, ty: Type) -> ValueId {
        let index = self.graph.result_count(node);
        self.insert_result(node, index, ty)
    }

    /// Inserts a result before position `index` of a node.
    pub fn insert_result(&mut self, node: NodeId, index: usize, ty: Type) -> ValueId {
        let value = self.graph.raw_add_result(node, index, ty);
        self.graph.journal.record(Change::ResultsChanged(node));
        value
    }

    /// Removes an unused result of a node.
    pub fn remove_result(&mut self, node: NodeId, index: usize) {
        self.graph.raw_erase_result(node, index);
        self.graph.journal.record(Change::ResultsChanged(node));
    }

    /// Reorders the results of a node: result `i` becomes what was result `order[i]`.
    pub fn permute_results(&mut self, node: NodeId, order: &[u32]) {
        self.graph.raw_order_results(node, order);
        self.graph.journal.record(Change::ResultsChanged(node));
    }

    // --- operands --------------------------------------------------------------------------------------------------

    /// Replaces operand `index` of a node.
    pub fn set_operand(&mut self, node: NodeId, index: usize, value: ValueId) {
        let old = self.graph.raw_swap_operand(node, index, value);
        if old != value {
            self.graph.journal.record(Change::OperandSet { node, index: index as u32, old, new: value });
        }
    }

    /// Inserts an operand before position `index`.
    pub fn insert_operand(&mut self, node: NodeId, index: usize, value: ValueId) {
        self.graph.raw_add_operand(node, index, value);
        self.graph.journal.record(Change::OperandsChanged(node));
    }

    /// Appends an operand.
    pub fn push_operand(&mut self, node: NodeId, value: ValueId) {
        self.insert_operand(node, self.graph.operand_count(node), value);
    }

    /// Removes operand `index`.
    pub fn remove_operand(&mut self, node: NodeId, index: usize) {
        self.graph.raw_take_operand(node, index);
        self.graph.journal.record(Change::OperandsChanged(node));
    }

    /// Makes every use of `old` a use of `new`. O(uses).
    pub fn replace_all_uses(&mut self, old: ValueId, new: ValueId) {
        if self.graph.use_count(old) == 0 || old == new {
            return;
        }
        self.graph.raw_move_uses(old, new);
        self.graph.journal.record(Change::UsesReplaced { old, new });
    }

    /// Makes the uses of `old` that come after `node` (in program order) uses of `new`. O(uses · depth).
    pub fn replace_uses_after(&mut self, node: NodeId, old: ValueId, new: ValueId) {
        let uses: Vec<_> = self.graph.uses(old).filter(|u| self.graph.is_before(node, u.user)).collect();
        for u in uses {
            self.set_operand(u.user, u.index as usize, new);
        }
    }

    // --- nodes -----------------------------------------------------------------------------------------------------

    /// Erases a node and all nested in it. Panics if a result is still used outside.
    pub fn erase(&mut self, node: NodeId) {
        if self.next == node {
            self.next = self.graph.next(node).expect("prim::Return cannot be erased");
        }
        self.graph.raw_erase_node(node);
        self.graph.journal.record(Change::Erased(node));
    }

    /// Replaces all results of `node` by `values` and erases it.
    pub fn replace_node(&mut self, node: NodeId, values: &[ValueId]) {
        debug_assert_eq!(self.graph.result_count(node), values.len());
        for (i, &v) in values.iter().enumerate() {
            self.replace_all_uses(self.graph.result(node, i), v);
        }
        self.erase(node);
    }

    /// Erases block `index` of a node with all in it.
    pub fn erase_block(&mut self, node: NodeId, index: usize) {
        self.graph.raw_drop_block(node, index);
        self.graph.journal.record(Change::BlocksChanged(node));
    }

    /// Moves a node before another (of any block). The caller answers for dominance; the verifier checks it.
    pub fn move_before(&mut self, node: NodeId, next: NodeId) {
        if node == next {
            return;
        }
        if self.next == node {
            self.next = self.graph.next(node).expect("prim::Return cannot be moved");
        }
        self.graph.raw_move(node, next);
        self.graph.journal.record(Change::Moved(node));
    }

    /// Moves a node after another.
    pub fn move_after(&mut self, node: NodeId, prev: NodeId) {
        let next = self.graph.next(prev).expect("nothing can stand after prim::Return");
        self.move_before(node, next);
    }

    /// Moves the nodes of a block (not its inputs and outputs) before `next`, in order.
    pub fn splice_before(&mut self, block: BlockId, next: NodeId) {
        let moved: Vec<NodeId> = self.graph.nodes(block).collect();
        self.graph.raw_splice(block, next);
        for node in moved {
            self.graph.journal.record(Change::Moved(node));
        }
    }

    /// Replaces a node's operator.
    pub fn set_op(&mut self, node: NodeId, op: impl Into<Op>) {
        self.graph.raw_set_op(node, op.into());
        self.graph.journal.record(Change::OpSet(node));
    }

    /// Sets one attribute of a node.
    pub fn set_attr(&mut self, node: NodeId, name: Symbol, attr: Attr) {
        let mut entries = self.graph.attrs(node).entries().to_vec();
        match entries.iter_mut().find(|(n, _)| *n == name) {
            Some(entry) => entry.1 = attr,
            None => entries.push((name, attr)),
        }
        let attrs = self.graph.attrs.intern(entries);
        self.set_attrs(node, attrs);
    }

    /// Replaces a node's attributes.
    pub fn set_attrs(&mut self, node: NodeId, attrs: AttrsId) {
        self.graph.raw_set_attrs(node, attrs);
        self.graph.journal.record(Change::OpSet(node));
    }

    // --- values ----------------------------------------------------------------------------------------------------

    /// Sets a value's type.
    pub fn set_type(&mut self, value: ValueId, ty: Type) {
        let old = self.graph.ty(value);
        if old != ty {
            self.graph.raw_set_type(value, ty);
            self.graph.journal.record(Change::TypeSet { value, old });
        }
    }

    /// Gives a value a debug name; an older value of the same name gets a numbered one.
    pub fn set_name(&mut self, value: ValueId, name: impl Into<Symbol>) {
        self.graph.raw_name_value(value, name.into());
        self.graph.journal.record(Change::Metadata);
    }

    /// As if a value got a debug name that will not stay: who has it moves on to a numbered one, now and whenever the
    /// name is asked for again, until [`Editor::release_names`].
    pub fn take_name(&mut self, name: Symbol) {
        self.graph.raw_take_name(name);
        self.graph.journal.record(Change::Metadata);
    }

    /// Frees the names that [`Editor::take_name`] took.
    pub fn release_names(&mut self) {
        self.graph.raw_release_names();
    }

    /// Sets a node's location.
    pub fn set_loc(&mut self, node: NodeId, loc: LocId) {
        self.graph.raw_set_loc(node, loc);
        self.graph.journal.record(Change::Metadata);
    }

    /// Gives unnamed values the numbers 0, 1, 2, … in program order; with `all`, drops debug names first.
    pub fn renumber(&mut self, all: bool) {
        self.graph.raw_renumber_values(all);
        self.graph.journal.record(Change::Metadata);
    }
}
