//! Read access: what a node is, where it stands, who uses a value.

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
    /// The outermost block.
    pub fn root(&self) -> BlockId {
        self.blocks.key(self.root)
    }

    /// The graph's inputs.
    pub fn inputs(&self) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        self.block_inputs(self.root())
    }

    /// The graph's outputs.
    pub fn outputs(&self) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        self.block_outputs(self.root())
    }

    /// The operator of a node.
    pub fn op(&self, node: NodeId) -> Op {
        self.nodes.get(node).op
    }

    /// The structural operator of a node, if it is one.
    pub fn prim(&self, node: NodeId) -> Option<Prim> {
        self.op(node).prim()
    }

    /// Whether a node is the structural operator `prim`.
    pub fn is_prim(&self, node: NodeId, prim: Prim) -> bool {
        self.op(node) == Op::from(prim)
    }

    /// The qualified name of a node's operator, without overload: `aten::add`.
    pub fn op_name(&self, node: NodeId) -> Symbol {
        self.registry.name(self.op(node))
    }

    /// The operands of a node, in order.
    pub fn operands(
        &self,
        node: NodeId,
    ) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        let run = self.nodes.get(node).operands;
        Keys::new(self.operands.slice(run), |o| self.values.key(o.value))
    }

    /// Operand `index` of a node. Panics if there is none.
    #[track_caller]
    pub fn operand(&self, node: NodeId, index: usize) -> ValueId {
        let run = self.nodes.get(node).operands;
        self.values.key(self.operands.slice(run)[index].value)
    }

    /// Number of operands.
    pub fn operand_count(&self, node: NodeId) -> usize {
        self.nodes.get(node).operands.len() as usize
    }

    /// The results of a node, in order.
    pub fn results(&self, node: NodeId) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        let list = &self.nodes.get(node).results;
        Keys::new(self.links.items(list), |&v| self.values.key(v))
    }

    /// Result `index` of a node. Panics if there is none.
    #[track_caller]
    pub fn result(&self, node: NodeId, index: usize) -> ValueId {
        self.values.key(self.links.items(&self.nodes.get(node).results)[index])
    }

    /// Number of results.
    pub fn result_count(&self, node: NodeId) -> usize {
        self.nodes.get(node).results.len() as usize
    }

    /// The blocks of a node, in order.
    pub fn blocks(&self, node: NodeId) -> impl DoubleEndedIterator<Item = BlockId> + ExactSizeIterator + '_ {
        let list = &self.nodes.get(node).blocks;
        Keys::new(self.links.items(list), |&b| self.blocks.key(b))
    }

    /// Block `index` of a node. Panics if there is none.
    #[track_caller]
    pub fn block(&self, node: NodeId, index: usize) -> BlockId {
        self.blocks.key(self.links.items(&self.nodes.get(node).blocks)[index])
    }

    /// Number of nested blocks.
    pub fn block_count(&self, node: NodeId) -> usize {
        self.nodes.get(node).blocks.len() as usize
    }

    /// The interned attribute set of a node.
    pub fn attrs_id(&self, node: NodeId) -> AttrsId {
        self.nodes.get(node).attrs
    }

    /// The attributes of a node.
    pub fn attrs(&self, node: NodeId) -> &AttrSet {
        self.attrs.get(self.attrs_id(node))
    }

    /// One attribute of a node.
    pub fn attr(&self, node: NodeId, name: Symbol) -> Option<&Attr> {
        self.attrs(node).get(name)
    }

    /// Where a node comes from.
    pub fn loc(&self, node: NodeId) -> LocId {
        self.nodes.get(node).loc
    }

    /// The block a node stands in.
    pub fn parent(&self, node: NodeId) -> BlockId {
        self.blocks.key(self.nodes.get(node).place.parent)
    }

    /// The following node of the same block, `prim::Return` included.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        let next = self.nodes.get(node).place.next;
        (next != NONE).then(|| self.nodes.key(next))
    }

    /// The preceding node of the same block, `prim::Param` included.
    pub fn prev(&self, node: NodeId) -> Option<NodeId> {
        let prev = self.nodes.get(node).place.prev;
        (prev != NONE).then(|| self.nodes.key(prev))
    }

    /// The node that defines a value (`prim::Param` for a block input).
    pub fn def(&self, value: ValueId) -> NodeId {
        self.nodes.key(self.values.get(value).node)
    }

    /// A value's position among its node's results.
    pub fn result_index(&self, value: ValueId) -> usize {
        self.values.get(value).index as usize
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> Type {
        self.values.get(value).ty
    }

    /// A block's `prim::Param`: its results are the block's inputs.
    pub fn param(&self, block: BlockId) -> NodeId {
        self.nodes.key(self.blocks.get(block).param)
    }

    /// A block's `prim::Return`: its operands are the block's outputs.
    pub fn ret(&self, block: BlockId) -> NodeId {
        self.nodes.key(self.blocks.get(block).ret)
    }

    /// The inputs of a block.
    pub fn block_inputs(
        &self,
        block: BlockId,
    ) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        self.results(self.param(block))
    }

    /// The outputs of a block.
    pub fn block_outputs(
        &self,
        block: BlockId,
    ) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + '_ {
        self.operands(self.ret(block))
    }

    /// The node a block belongs to; `None` for the root.
    pub fn owner(&self, block: BlockId) -> Option<NodeId> {
        let owner = self.blocks.get(block).owner;
        (owner != NONE).then(|| self.nodes.key(owner))
    }

    /// The node in whose blocks a node stands; `None` in the root block.
    pub fn enclosing(&self, node: NodeId) -> Option<NodeId> {
        self.owner(self.parent(node))
    }

    /// Whether an id names a live node of this graph.
    pub fn has_node(&self, node: NodeId) -> bool {
        self.nodes.find(node).is_some()
    }

    /// Whether an id names a live value of this graph.
    pub fn has_value(&self, value: ValueId) -> bool {
        self.values.find(value).is_some()
    }

    /// Whether an id names a live block of this graph.
    pub fn has_block(&self, block: BlockId) -> bool {
        self.blocks.find(block).is_some()
    }

    /// The number of a node, its own while it lives: half an id, for tables of very many.
    #[track_caller]
    pub fn number(&self, node: NodeId) -> u32 {
        self.nodes.slot(node)
    }

    /// The node that has a number.
    pub fn numbered(&self, number: u32) -> NodeId {
        self.nodes.key(number)
    }

    /// Number of nodes, brackets of blocks not counted.
    pub fn node_count(&self) -> usize {
        self.nodes.len() - 2 * self.blocks.len()
    }

    /// Number of values.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Number of blocks, the root included.
    pub fn nested_block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The constant a value holds, if it is the result of a `prim::Constant`.
    pub fn constant(&self, value: ValueId) -> Option<IValue> {
        let row = self.values.get(value);
        let node = self.nodes.at(row.node);
        if node.op != Op::from(Prim::Constant) {
            return None;
        }
        Some(self.attrs.get(node.attrs).constant(row.ty))
    }

    /// Whether `a` comes before `b` in program order: in one block by order key, else by the position of the nodes
    /// that hold them in the nearest common block. A node does not come before what it contains, nor after it.
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
                    // Two blocks of one node: their order among the node's blocks.
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

    /// Whether block `inner` is `outer` or nested in it.
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

    /// The node of block `block` that is `node` or contains it.
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

    /// Whether `value` may be used by a node placed before `at`: it is defined earlier, in this block or one around.
    pub fn is_available(&self, value: ValueId, at: NodeId) -> bool {
        let def = self.def(value);
        let Some(holder) = self.ancestor_in(at, self.parent(def)) else { return false };
        holder != def && self.nodes.get(def).place.order < self.nodes.get(holder).place.order
    }
}
