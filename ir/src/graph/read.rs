//! Read access to nodes, values and blocks.
//!
//! Every function panics if an id is stale or belongs to another graph, except `has_node`, `has_value` and `has_block`.

use super::Graph;
use super::arena::NONE;
use super::iter::Keys;
use crate::attr::{Attr, AttrSet, AttrsId};
use crate::id::{BlockId, NodeId, ValueId};
use crate::loc::LocId;
use crate::op::{Op, Prim};
use crate::symbol::Symbol;
use crate::types::Type;
use crate::value::IValue;

impl Graph {
    /// Returns the outermost block.
    pub fn root(&self) -> BlockId {
        self.blocks.key(self.root)
    }

    /// Returns the graph's inputs.
    pub fn inputs(&self) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        self.block_inputs(self.root())
    }

    /// Returns the graph's outputs.
    pub fn outputs(&self) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        self.block_outputs(self.root())
    }

    /// Returns the operator of a node.
    pub fn op(&self, node: NodeId) -> Op {
        self.nodes.get(node).op
    }

    /// Returns the structural operator of a node, if its operator is structural.
    pub fn prim(&self, node: NodeId) -> Option<Prim> {
        self.op(node).prim()
    }

    /// Returns whether the operator of a node is the structural operator `prim`.
    pub fn is_prim(&self, node: NodeId, prim: Prim) -> bool {
        self.op(node) == Op::from(prim)
    }

    /// Returns the qualified name of a node's operator without overload: `aten::add`.
    pub fn op_name(&self, node: NodeId) -> Symbol {
        self.registry.name(self.op(node))
    }

    /// Returns the operands of a node, in order.
    pub fn operands(
        &self,
        node: NodeId,
    ) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        let run = self.nodes.get(node).operands;
        Keys::new(self.operands.slice(run), |o| self.values.key(o.value))
    }

    /// Returns operand `index` of a node.
    ///
    /// # Panics
    /// If the node has no such operand.
    #[track_caller]
    pub fn operand(&self, node: NodeId, index: usize) -> ValueId {
        let run = self.nodes.get(node).operands;
        self.values.key(self.operands.slice(run)[index].value)
    }

    /// Returns the number of operands.
    pub fn operand_count(&self, node: NodeId) -> usize {
        self.nodes.get(node).operands.len() as usize
    }

    /// Returns the results of a node, in order.
    pub fn results(&self, node: NodeId) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        let list = &self.nodes.get(node).results;
        Keys::new(self.links.items(list), |&v| self.values.key(v))
    }

    /// Returns result `index` of a node.
    ///
    /// # Panics
    /// If the node has no such result.
    #[track_caller]
    pub fn result(&self, node: NodeId, index: usize) -> ValueId {
        self.values.key(self.links.items(&self.nodes.get(node).results)[index])
    }

    /// Returns the number of results.
    pub fn result_count(&self, node: NodeId) -> usize {
        self.nodes.get(node).results.len() as usize
    }

    /// Returns the blocks of a node, in order.
    pub fn blocks(&self, node: NodeId) -> impl DoubleEndedIterator<Item = BlockId> + ExactSizeIterator + '_ {
        let list = &self.nodes.get(node).blocks;
        Keys::new(self.links.items(list), |&b| self.blocks.key(b))
    }

    /// Returns block `index` of a node.
    ///
    /// # Panics
    /// If the node has no such block.
    #[track_caller]
    pub fn block(&self, node: NodeId, index: usize) -> BlockId {
        self.blocks.key(self.links.items(&self.nodes.get(node).blocks)[index])
    }

    /// Returns the number of blocks of a node.
    pub fn block_count(&self, node: NodeId) -> usize {
        self.nodes.get(node).blocks.len() as usize
    }

    /// Returns the id of a node's interned attribute set.
    pub fn attrs_id(&self, node: NodeId) -> AttrsId {
        self.nodes.get(node).attrs
    }

    /// Returns the attributes of a node.
    pub fn attrs(&self, node: NodeId) -> &AttrSet {
        self.attrs.get(self.attrs_id(node))
    }

    /// Returns the attribute of a node with a name.
    pub fn attr(&self, node: NodeId, name: Symbol) -> Option<&Attr> {
        self.attrs(node).get(name)
    }

    /// Returns the source location of a node.
    pub fn loc(&self, node: NodeId) -> LocId {
        self.nodes.get(node).loc
    }

    /// Returns the block that contains a node.
    pub fn parent(&self, node: NodeId) -> BlockId {
        self.blocks.key(self.nodes.get(node).place.parent)
    }

    /// Returns the next node of the same block, `prim::Return` included.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        let next = self.nodes.get(node).place.next;
        (next != NONE).then(|| self.nodes.key(next))
    }

    /// Returns the previous node of the same block, `prim::Param` included.
    pub fn prev(&self, node: NodeId) -> Option<NodeId> {
        let prev = self.nodes.get(node).place.prev;
        (prev != NONE).then(|| self.nodes.key(prev))
    }

    /// Returns the node that defines a value (`prim::Param` for a block input).
    pub fn def(&self, value: ValueId) -> NodeId {
        self.nodes.key(self.values.get(value).node)
    }

    /// Returns the index of a value among its node's results.
    pub fn result_index(&self, value: ValueId) -> usize {
        self.values.get(value).index as usize
    }

    /// Returns the type of a value.
    pub fn ty(&self, value: ValueId) -> Type {
        self.values.get(value).ty
    }

    /// Returns a block's `prim::Param`, whose results are the block's inputs.
    pub fn param(&self, block: BlockId) -> NodeId {
        self.nodes.key(self.blocks.get(block).param)
    }

    /// Returns a block's `prim::Return`, whose operands are the block's outputs.
    pub fn ret(&self, block: BlockId) -> NodeId {
        self.nodes.key(self.blocks.get(block).ret)
    }

    /// Returns the inputs of a block.
    pub fn block_inputs(
        &self,
        block: BlockId,
    ) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        self.results(self.param(block))
    }

    /// Returns the outputs of a block.
    pub fn block_outputs(
        &self,
        block: BlockId,
    ) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        self.operands(self.ret(block))
    }

    /// Returns the node that owns a block; `None` for the root.
    pub fn owner(&self, block: BlockId) -> Option<NodeId> {
        let owner = self.blocks.get(block).owner;
        (owner != NONE).then(|| self.nodes.key(owner))
    }

    /// Returns the node whose blocks contain `node`; `None` in the root block.
    pub fn enclosing(&self, node: NodeId) -> Option<NodeId> {
        self.owner(self.parent(node))
    }

    /// Returns whether an id names a live node of this graph.
    pub fn has_node(&self, node: NodeId) -> bool {
        self.nodes.find(node).is_some()
    }

    /// Returns whether an id names a live value of this graph.
    pub fn has_value(&self, value: ValueId) -> bool {
        self.values.find(value).is_some()
    }

    /// Returns whether an id names a live block of this graph.
    pub fn has_block(&self, block: BlockId) -> bool {
        self.blocks.find(block).is_some()
    }

    /// Returns the slot number of a node, unique among live nodes. Half the size of an id, for large tables.
    ///
    /// # Panics
    /// If the id is stale or of another graph.
    #[track_caller]
    pub fn number(&self, node: NodeId) -> u32 {
        self.nodes.slot(node)
    }

    /// Returns the node with a slot number.
    pub fn numbered(&self, number: u32) -> NodeId {
        self.nodes.key(number)
    }

    /// Returns the number of nodes, without `prim::Param` and `prim::Return`.
    pub fn node_count(&self) -> usize {
        self.nodes.len() - 2 * self.blocks.len()
    }

    /// Returns the number of values.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Returns the number of blocks, including the root.
    pub fn nested_block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the value of a constant if `value` is the result of a `prim::Constant`.
    pub fn constant(&self, value: ValueId) -> Option<IValue> {
        let row = self.values.get(value);
        let node = self.nodes.at(row.node);
        if node.op != Op::from(Prim::Constant) {
            return None;
        }
        Some(self.attrs.get(node.attrs).constant(row.ty))
    }

    /// Returns whether `a` comes before `b` in program order. In one block the order keys decide. Otherwise the
    /// ancestors of `a` and `b` in the nearest common block, or the order of two blocks of one node, decide. A node
    /// comes neither before nor after a node that it contains. O(depth).
    pub fn is_before(&self, a: NodeId, b: NodeId) -> bool {
        let (mut a, mut b) = (self.nodes.slot(a), self.nodes.slot(b));
        if self.nodes.at(a).place.parent != self.nodes.at(b).place.parent {
            let (depth_a, depth_b) = (self.depth(a), self.depth(b));
            for _ in depth_b..depth_a {
                a = self.outer(a);
            }
            for _ in depth_a..depth_b {
                b = self.outer(b);
            }
            if a == b {
                return false;
            }
            while self.nodes.at(a).place.parent != self.nodes.at(b).place.parent {
                let (oa, ob) = (self.outer(a), self.outer(b));
                if oa == ob {
                    // Two blocks of one node: compare their indices.
                    let (pa, pb) = (self.nodes.at(a).place.parent, self.nodes.at(b).place.parent);
                    let blocks = self.links.items(&self.nodes.at(oa).blocks);
                    return blocks.iter().position(|&x| x == pa) < blocks.iter().position(|&x| x == pb);
                }
                (a, b) = (oa, ob);
            }
        }
        self.nodes.at(a).place.order < self.nodes.at(b).place.order
    }

    fn outer(&self, node: u32) -> u32 {
        self.blocks.at(self.nodes.at(node).place.parent).owner
    }

    fn depth(&self, mut node: u32) -> u32 {
        let mut depth = 0;
        loop {
            node = self.outer(node);
            if node == NONE {
                return depth;
            }
            depth += 1;
        }
    }

    /// Returns whether block `inner` is `outer` or nested in it. O(depth).
    pub fn is_nested_in(&self, inner: BlockId, outer: BlockId) -> bool {
        let outer = self.blocks.slot(outer);
        let mut at = self.blocks.slot(inner);
        loop {
            if at == outer {
                return true;
            }
            let owner = self.blocks.at(at).owner;
            if owner == NONE {
                return false;
            }
            at = self.nodes.at(owner).place.parent;
        }
    }

    /// Returns the node of block `block` that is `node` or contains it. O(depth).
    pub fn ancestor_in(&self, node: NodeId, block: BlockId) -> Option<NodeId> {
        let block = self.blocks.slot(block);
        let mut at = self.nodes.slot(node);
        while self.nodes.at(at).place.parent != block {
            at = self.outer(at);
            if at == NONE {
                return None;
            }
        }
        Some(self.nodes.key(at))
    }

    /// Returns whether a node placed before `at` may use `value`: the definition comes earlier in the same block or in
    /// an enclosing one. O(depth).
    pub fn is_available(&self, value: ValueId, at: NodeId) -> bool {
        let def = self.def(value);
        let Some(holder) = self.ancestor_in(at, self.parent(def)) else { return false };
        holder != def && self.nodes.get(def).place.order < self.nodes.get(holder).place.order
    }
}
