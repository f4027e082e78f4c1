//! The raw operations of the graph with public ids as arguments, for [`crate::Editor`] only.

use super::Graph;
use super::arena::NONE;
use crate::attr::AttrsId;
use crate::id::{BlockId, NodeId, ValueId};
use crate::loc::LocId;
use crate::op::Op;
use crate::symbol::Symbol;
use crate::types::Type;

impl Graph {
    pub(crate) fn raw_insert(
        &mut self,
        next: NodeId,
        op: Op,
        attrs: AttrsId,
        loc: LocId,
        operands: &[ValueId],
        results: &[Type],
    ) -> NodeId {
        let next = self.node_slot(next);
        let node = self.raw_new_node(op, attrs, loc);
        if !operands.is_empty() {
            let slots: smallvec::SmallVec<[u32; 8]> = operands.iter().map(|&v| self.values.slot(v)).collect();
            self.raw_set_operands(node, slots.into_iter());
        }
        if !results.is_empty() {
            self.raw_set_results(node, results);
        }
        self.raw_place_before(node, next);
        self.nodes.key(node)
    }

    pub(crate) fn raw_add_block(&mut self, node: NodeId) -> BlockId {
        let block = self.raw_new_block(self.node_slot(node));
        self.blocks.key(block)
    }

    pub(crate) fn raw_drop_block(&mut self, node: NodeId, index: usize) {
        self.raw_erase_block(self.node_slot(node), index as u32);
    }

    pub(crate) fn raw_add_result(&mut self, node: NodeId, index: usize, ty: Type) -> ValueId {
        let value = self.raw_insert_result(self.node_slot(node), index as u32, ty);
        self.values.key(value)
    }

    pub(crate) fn raw_erase_result(&mut self, node: NodeId, index: usize) {
        self.raw_remove_result(self.node_slot(node), index as u32);
    }

    pub(crate) fn raw_keep_results(&mut self, node: NodeId, keep: &[bool]) {
        self.raw_retain_results(self.node_slot(node), keep);
    }

    pub(crate) fn raw_keep_operands(&mut self, node: NodeId, keep: &[bool]) {
        self.raw_retain_operands(self.node_slot(node), keep);
    }

    pub(crate) fn raw_order_results(&mut self, node: NodeId, order: &[u32]) {
        self.raw_permute_results(self.node_slot(node), order);
    }

    pub(crate) fn raw_swap_operand(&mut self, node: NodeId, index: usize, value: ValueId) -> ValueId {
        let old = self.raw_replace_operand(self.node_slot(node), index as u32, self.value_slot(value));
        self.values.key(old)
    }

    pub(crate) fn raw_add_operand(&mut self, node: NodeId, index: usize, value: ValueId) {
        self.raw_insert_operand(self.node_slot(node), index as u32, self.value_slot(value));
    }

    pub(crate) fn raw_take_operand(&mut self, node: NodeId, index: usize) {
        self.raw_remove_operand(self.node_slot(node), index as u32);
    }

    pub(crate) fn raw_move_uses(&mut self, old: ValueId, new: ValueId) {
        self.raw_replace_all_uses(self.value_slot(old), self.value_slot(new));
    }

    pub(crate) fn raw_erase_node(&mut self, node: NodeId) {
        let slot = self.node_slot(node);
        assert!(
            self.nodes.at(slot).place.prev != NONE && self.nodes.at(slot).place.next != NONE,
            "prim::Param and prim::Return cannot be erased"
        );
        self.raw_erase(slot);
    }

    pub(crate) fn raw_move(&mut self, node: NodeId, next: NodeId) {
        let (node, next) = (self.node_slot(node), self.node_slot(next));
        self.raw_unplace(node);
        self.raw_place_before(node, next);
    }

    pub(crate) fn raw_splice(&mut self, block: BlockId, next: NodeId) {
        self.raw_move_body_before(self.block_slot(block), self.node_slot(next));
    }

    pub(crate) fn raw_set_op(&mut self, node: NodeId, op: Op) {
        let slot = self.node_slot(node);
        self.nodes.at_mut(slot).op = op;
    }

    pub(crate) fn raw_set_attrs(&mut self, node: NodeId, attrs: AttrsId) {
        let slot = self.node_slot(node);
        self.nodes.at_mut(slot).attrs = attrs;
    }

    pub(crate) fn raw_set_loc(&mut self, node: NodeId, loc: LocId) {
        let slot = self.node_slot(node);
        self.nodes.at_mut(slot).loc = loc;
    }

    pub(crate) fn raw_set_type(&mut self, value: ValueId, ty: Type) {
        let slot = self.value_slot(value);
        self.values.at_mut(slot).ty = ty;
    }

    pub(crate) fn raw_name_value(&mut self, value: ValueId, name: Symbol) {
        self.raw_set_name(self.value_slot(value), name);
    }

    /// Sets the debug name of a value that was just parsed.
    pub(crate) fn name_value(&mut self, value: ValueId, name: &str) {
        self.raw_name_value(value, Symbol::new(name));
    }

    /// Sets the number of a value that was just parsed.
    pub(crate) fn number_value(&mut self, value: ValueId, number: u32) {
        self.raw_set_number(self.value_slot(value), number);
    }

    /// Gives a value a number that no other value has.
    pub(crate) fn number_freshly(&mut self, value: ValueId) {
        let slot = self.value_slot(value);
        self.raw_set_fresh_number(slot);
    }

    pub(crate) fn raw_renumber_values(&mut self, all: bool) {
        let order: Vec<u32> = self.values_in_order().map(|v| self.values.slot(v)).collect();
        if all {
            for &v in &order {
                if self.values.at(v).name.symbol().is_some() {
                    self.raw_clear_name(v);
                }
            }
        }
        self.raw_renumber(order.into_iter());
    }
}
