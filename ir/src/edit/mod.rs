//! The editor: all changes of a graph.
//!
//! Every operation is O(1) or linear in the rows it touches, and is recorded in the journal.

mod call;
mod clone;

pub use call::{CallArg, CallValues, InsertError, Operands, device_of};
pub use clone::{CloneError, ValueSubstitution};

use crate::attr::{Attr, AttrsId};
use crate::graph::{Graph, SizeRange};
use crate::id::{BlockId, NodeId, ValueId};
use crate::journal::Change;
use crate::loc::LocId;
use crate::op::{Op, Prim};
use crate::symbol::Symbol;
use crate::types::Type;
use crate::value::IValue;

/// An insertion point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(Position);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Before(NodeId),
    After(NodeId),
    Start(BlockId),
    End(BlockId),
}

impl At {
    /// Directly before a node. Consecutive insertions keep their order.
    pub fn before(node: NodeId) -> At {
        At(Position::Before(node))
    }

    /// Directly after a node. Consecutive insertions keep their order.
    pub fn after(node: NodeId) -> At {
        At(Position::After(node))
    }

    /// At the start of a block. Consecutive insertions keep their order.
    pub fn start(block: BlockId) -> At {
        At(Position::Start(block))
    }

    /// At the end of a block.
    pub fn end(block: BlockId) -> At {
        At(Position::End(block))
    }
}

/// An editor of a graph, with a cursor where nodes are inserted and a current location.
pub struct Editor<'g> {
    graph: &'g mut Graph,
    /// The node before which nodes are inserted (a `prim::Return` at the end of a block).
    next: NodeId,
    loc: LocId,
}

impl<'g> Editor<'g> {
    pub(crate) fn new(graph: &'g mut Graph) -> Self {
        let next = graph.ret(graph.root());
        Editor { graph, next, loc: LocId::UNKNOWN }
    }

    /// Returns the graph in its current state.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// Returns the location table for adding sources and ranges.
    pub fn locs_mut(&mut self) -> &mut crate::loc::LocTable {
        &mut self.graph.locs
    }

    /// Moves the cursor.
    ///
    /// # Panics
    /// If the position is after a `prim::Return`.
    pub fn at(&mut self, at: At) -> &mut Self {
        self.next = match at.0 {
            Position::Before(node) => node,
            Position::After(node) => self.graph.next(node).expect("no position after prim::Return"),
            Position::Start(block) => {
                self.graph.next(self.graph.param(block)).expect("invariant: a block ends in prim::Return")
            }
            Position::End(block) => self.graph.ret(block),
        };
        self
    }

    /// Returns the node before which nodes are inserted.
    pub fn cursor(&self) -> NodeId {
        self.next
    }

    /// Returns the block that contains the cursor.
    pub fn block(&self) -> BlockId {
        self.graph.parent(self.next)
    }

    /// Sets the location of nodes inserted from now on.
    pub fn loc(&mut self, loc: LocId) -> &mut Self {
        self.loc = loc;
        self
    }

    /// Returns the location of inserted nodes.
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

    /// Inserts a constant with the type of the value.
    pub fn constant(&mut self, value: IValue) -> ValueId {
        let ty = value.type_of();
        self.constant_of(value, ty)
    }

    /// Inserts a constant with the given type.
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
    ///
    /// # Panics
    /// If `index` is greater than the number of inputs.
    pub fn insert_block_input(&mut self, block: BlockId, index: usize, ty: Type) -> ValueId {
        let param = self.graph.param(block);
        let value = self.graph.raw_add_result(param, index, ty);
        self.graph.journal.record(Change::SignatureChanged(block));
        value
    }

    /// Removes an input of a block, which must have no uses.
    ///
    /// # Panics
    /// If there is no such input, or if it has uses.
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
    ///
    /// # Panics
    /// If there is no such output.
    pub fn remove_block_output(&mut self, block: BlockId, index: usize) {
        let ret = self.graph.ret(block);
        self.graph.raw_take_operand(ret, index);
        self.graph.journal.record(Change::SignatureChanged(block));
    }

    /// Removes the inputs of a block whose index `keep` rejects, which must have no uses. Takes a time linear in the number
    /// of inputs, unlike removing them one by one.
    ///
    /// # Panics
    /// If a removed input has uses.
    pub fn retain_block_inputs(&mut self, block: BlockId, keep: impl FnMut(usize) -> bool) {
        let param = self.graph.param(block);
        let keep: Vec<bool> = (0..self.graph.result_count(param)).map(keep).collect();
        if keep.contains(&false) {
            self.graph.raw_keep_results(param, &keep);
            self.graph.journal.record(Change::SignatureChanged(block));
        }
    }

    /// Removes the outputs of a block whose index `keep` rejects. Takes a time linear in the number of outputs, unlike
    /// removing them one by one.
    pub fn retain_block_outputs(&mut self, block: BlockId, keep: impl FnMut(usize) -> bool) {
        let ret = self.graph.ret(block);
        let keep: Vec<bool> = (0..self.graph.operand_count(ret)).map(keep).collect();
        if keep.contains(&false) {
            self.graph.raw_keep_operands(ret, &keep);
            self.graph.journal.record(Change::SignatureChanged(block));
        }
    }

    /// Adds an input to the graph.
    pub fn add_input(&mut self, ty: Type) -> ValueId {
        self.add_block_input(self.graph.root(), ty)
    }

    /// Adds an output to the graph.
    pub fn add_output(&mut self, value: ValueId) {
        self.add_block_output(self.graph.root(), value);
    }

    /// States the sizes that a symbol in the types of the graph's inputs may have.
    pub fn set_size_range(&mut self, range: SizeRange) {
        self.graph.size_ranges.set(range);
        self.graph.journal.record(Change::SignatureChanged(self.graph.root()));
    }

    /// Removes all ranges of symbols: for graphs whose inputs get other types.
    pub fn clear_size_ranges(&mut self) {
        if self.graph.size_ranges().next().is_some() {
            self.graph.size_ranges.clear();
            self.graph.journal.record(Change::SignatureChanged(self.graph.root()));
        }
    }

    /// Appends a result to a node.
    pub fn add_result(&mut self, node: NodeId, ty: Type) -> ValueId {
        let index = self.graph.result_count(node);
        self.insert_result(node, index, ty)
    }

    /// Inserts a result before position `index` of a node.
    ///
    /// # Panics
    /// If `index` is greater than the number of results.
    pub fn insert_result(&mut self, node: NodeId, index: usize, ty: Type) -> ValueId {
        let value = self.graph.raw_add_result(node, index, ty);
        self.graph.journal.record(Change::ResultsChanged(node));
        value
    }

    /// Removes a result of a node, which must have no uses.
    ///
    /// # Panics
    /// If there is no such result, or if it has uses.
    pub fn remove_result(&mut self, node: NodeId, index: usize) {
        self.graph.raw_erase_result(node, index);
        self.graph.journal.record(Change::ResultsChanged(node));
    }

    /// Reorders the results of a node: result `i` becomes the old result `order[i]`. `order` is a permutation.
    pub fn permute_results(&mut self, node: NodeId, order: &[u32]) {
        self.graph.raw_order_results(node, order);
        self.graph.journal.record(Change::ResultsChanged(node));
    }

    // --- operands --------------------------------------------------------------------------------------------------

    /// Replaces operand `index` of a node.
    ///
    /// # Panics
    /// If the node has no such operand.
    pub fn set_operand(&mut self, node: NodeId, index: usize, value: ValueId) {
        let old = self.graph.raw_swap_operand(node, index, value);
        if old != value {
            self.graph.journal.record(Change::OperandSet { node, index: index as u32, old, new: value });
        }
    }

    /// Inserts an operand before position `index`.
    ///
    /// # Panics
    /// If `index` is greater than the number of operands.
    pub fn insert_operand(&mut self, node: NodeId, index: usize, value: ValueId) {
        self.graph.raw_add_operand(node, index, value);
        self.graph.journal.record(Change::OperandsChanged(node));
    }

    /// Appends an operand.
    pub fn push_operand(&mut self, node: NodeId, value: ValueId) {
        self.insert_operand(node, self.graph.operand_count(node), value);
    }

    /// Removes operand `index`.
    ///
    /// # Panics
    /// If the node has no such operand.
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

    /// Replaces the uses of `old` that come after `node` in program order with `new`. O(uses · depth).
    pub fn replace_uses_after(&mut self, node: NodeId, old: ValueId, new: ValueId) {
        let uses: Vec<_> = self.graph.uses(old).filter(|u| self.graph.is_before(node, u.user)).collect();
        for u in uses {
            self.set_operand(u.user, u.index as usize, new);
        }
    }

    // --- nodes -----------------------------------------------------------------------------------------------------

    /// Erases a node and everything nested in it. The cursor must not be nested in the node.
    ///
    /// # Panics
    /// If a result has uses outside of the node.
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

    /// Erases block `index` of a node with everything in it. The cursor must not be in the block.
    ///
    /// # Panics
    /// If the node has no such block.
    pub fn erase_block(&mut self, node: NodeId, index: usize) {
        self.graph.raw_drop_block(node, index);
        self.graph.journal.record(Change::BlocksChanged(node));
    }

    /// Moves a node before another, possibly in another block. The caller is responsible for dominance; the verifier
    /// checks it.
    ///
    /// # Panics
    /// If `node` is a `prim::Param` or `prim::Return`, or `next` is a `prim::Param` or nested in `node`.
    pub fn move_before(&mut self, node: NodeId, next: NodeId) {
        if node == next {
            return;
        }
        // A node without blocks contains no other, so most moves need no walk up from `next`.
        assert!(
            self.graph.block_count(node) == 0
                || self.graph.ancestor_in(next, self.graph.parent(node)) != Some(node),
            "a node cannot be moved into its own block"
        );
        if self.next == node {
            self.next = self.graph.next(node).expect("prim::Return cannot be moved");
        }
        self.graph.raw_move(node, next);
        self.graph.journal.record(Change::Moved(node));
    }

    /// Moves a node after another, possibly in another block.
    ///
    /// # Panics
    /// If `node` is a `prim::Param` or `prim::Return`, or `prev` is a `prim::Return` or nested in `node`.
    pub fn move_after(&mut self, node: NodeId, prev: NodeId) {
        let next = self.graph.next(prev).expect("no position after prim::Return");
        self.move_before(node, next);
    }

    /// Moves the nodes of a block, except `prim::Param` and `prim::Return`, before `next`, in order. `next` is not
    /// nested in one of the nodes.
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

    /// Sets the debug name of a value. An older value with the name is renamed to a numbered name.
    pub fn set_name(&mut self, value: ValueId, name: impl Into<Symbol>) {
        self.graph.raw_name_value(value, name.into());
        self.graph.journal.record(Change::Metadata);
    }

    /// Reserves a debug name, as if a temporary value had it: a value with the name is renamed to a numbered name now.
    /// A value that gets the name later receives it with the next suffix counter, as if the temporary value had been
    /// renamed first. [`Editor::release_names`] ends all reservations.
    pub fn take_name(&mut self, name: Symbol) {
        self.graph.raw_take_name(name);
        self.graph.journal.record(Change::Metadata);
    }

    /// Ends the reservations of [`Editor::take_name`].
    pub fn release_names(&mut self) {
        self.graph.raw_release_names();
    }

    /// Sets a node's location.
    pub fn set_loc(&mut self, node: NodeId, loc: LocId) {
        self.graph.raw_set_loc(node, loc);
        self.graph.journal.record(Change::Metadata);
    }

    /// Numbers unnamed values by their positions among all values in program order, as PyTorch does. With `all`, debug names are dropped first.
    pub fn renumber(&mut self, all: bool) {
        self.graph.raw_renumber_values(all);
        self.graph.journal.record(Change::Metadata);
    }
}
