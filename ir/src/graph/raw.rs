//! Creation and erasure of rows, without journal and checks: the layer below [`crate::Editor`].

use super::arena::NONE;
use super::{BlockRow, Graph, NodePosition, NodeRow, Run, ValueRow};
use crate::attr::AttrsId;
use crate::id::{BlockId, NodeId, ValueId};
use crate::loc::LocId;
use crate::op::{Op, Prim};
use crate::types::Type;
use smallvec::SmallVec;

impl Graph {
    /// Creates an unplaced node without operands, results and blocks.
    pub(super) fn raw_new_node(&mut self, op: Op, attrs: AttrsId, loc: LocId) -> u32 {
        self.nodes.insert(NodeRow {
            op,
            attrs,
            loc,
            operands: Run::EMPTY,
            results: Run::EMPTY,
            blocks: Run::EMPTY,
            place: NodePosition { parent: NONE, prev: NONE, next: NONE, order: 0 },
        })
    }

    fn raw_new_value(&mut self, node: u32, index: u32, ty: Type) -> u32 {
        let name = self.names.fresh();
        self.values.insert(ValueRow { node, index, ty, first_use: NONE, last_use: NONE, n_uses: 0, name })
    }

    /// Sets the results of a node that has none.
    pub(super) fn raw_set_results(&mut self, node: u32, types: &[Type]) {
        let list = match *types {
            [ty] => Run::of_one(self.raw_new_value(node, 0, ty)),
            _ => {
                let values = types.iter().enumerate();
                let values: SmallVec<[u32; 8]> =
                    values.map(|(i, &ty)| self.raw_new_value(node, i as u32, ty)).collect();
                self.links.list(&values)
            }
        };
        self.nodes.at_mut(node).results = list;
    }

    /// Inserts a result at `index`; later results move up by one.
    pub(super) fn raw_insert_result(&mut self, node: u32, index: u32, ty: Type) -> u32 {
        let run = self.nodes.at(node).results;
        assert!(index <= run.len(), "result position {index} of {}", run.len());
        let value = self.raw_new_value(node, index, ty);
        let run = self.links.insert(run, index, value);
        self.nodes.at_mut(node).results = run;
        self.raw_renumber_results(node, index + 1);
        value
    }

    /// Removes result `index`, which must have no uses.
    pub(super) fn raw_remove_result(&mut self, node: u32, index: u32) {
        let run = self.nodes.at(node).results;
        self.raw_drop_value(self.links.items(&run)[index as usize]);
        let run = self.links.remove(run, index);
        self.nodes.at_mut(node).results = run;
        self.raw_renumber_results(node, index);
    }

    /// Removes the results whose index `keep` rejects, which must have no uses. Takes a time linear in their number.
    pub(super) fn raw_retain_results(&mut self, node: u32, keep: &[bool]) {
        let run = self.nodes.at(node).results;
        for i in (0..run.len()).filter(|&i| !keep[i as usize]) {
            self.raw_drop_value(self.links.items(&run)[i as usize]);
        }
        let run = self.links.retain(run, keep);
        self.nodes.at_mut(node).results = run;
        self.raw_renumber_results(node, 0);
    }

    fn raw_renumber_results(&mut self, node: u32, from: u32) {
        let run = self.nodes.at(node).results;
        for i in from..run.len() {
            let value = self.links.items(&run)[i as usize];
            self.values.at_mut(value).index = i;
        }
    }

    /// Reorders the results of a node: result `i` becomes the old result `order[i]`. `order` is a permutation.
    pub(super) fn raw_permute_results(&mut self, node: u32, order: &[u32]) {
        self.links.permute(self.nodes.at(node).results, order);
        self.raw_renumber_results(node, 0);
    }

    fn raw_drop_value(&mut self, value: u32) {
        let row = self.values.at(value);
        assert!(row.n_uses == 0, "a value with uses cannot be erased");
        let name = row.name;
        self.names.release(name, value);
        self.values.remove(value);
    }

    /// Creates an empty block owned by `owner` (`NONE` for the root) and appends it to the owner's blocks.
    pub(super) fn raw_new_block(&mut self, owner: u32) -> u32 {
        let param = self.raw_new_node(Op::from(Prim::Param), AttrsId::EMPTY, LocId::UNKNOWN);
        let ret = self.raw_new_node(Op::from(Prim::Return), AttrsId::EMPTY, LocId::UNKNOWN);
        let block = self.blocks.insert(BlockRow { param, ret, owner });
        self.raw_bracket(block, param, ret);
        if owner != NONE {
            let run = self.nodes.at(owner).blocks;
            let run = self.links.insert(run, run.len(), block);
            self.nodes.at_mut(owner).blocks = run;
        }
        block
    }

    /// Erases a node and everything nested in it. Its results must have no uses outside of the erased nodes.
    ///
    /// Uses an explicit list of nodes, so nesting depth costs no stack.
    pub(super) fn raw_erase(&mut self, node: u32) {
        self.raw_unplace(node);
        if self.nodes.at(node).blocks.len() == 0 {
            self.raw_clear_operands(node);
            self.raw_drop_results(node);
            self.nodes.remove(node);
            return;
        }
        // Collect the nest breadth-first. Then clear the operands of all nodes, so that no value has uses left; then free
        // results and rows.
        let mut nodes = vec![node];
        let mut blocks = Vec::new();
        let mut next = 0;
        while next < nodes.len() {
            let run = self.nodes.at(nodes[next]).blocks;
            for i in 0..run.len() {
                let block = self.links.items(&run)[i as usize];
                blocks.push(block);
                let mut at = self.blocks.at(block).param;
                while at != NONE {
                    nodes.push(at);
                    at = self.nodes.at(at).place.next;
                }
            }
            next += 1;
        }
        for &n in &nodes {
            self.raw_clear_operands(n);
        }
        for &n in &nodes {
            self.raw_drop_results(n);
            let run = self.nodes.at(n).blocks;
            self.links.release(run);
            self.nodes.remove(n);
        }
        for &b in &blocks {
            self.blocks.remove(b);
        }
    }

    fn raw_drop_results(&mut self, node: u32) {
        let run = self.nodes.at(node).results;
        for i in 0..run.len() {
            let value = self.links.items(&run)[i as usize];
            self.raw_drop_value(value);
        }
        self.links.release(run);
        self.nodes.at_mut(node).results = Run::EMPTY;
    }

    /// Erases block `index` of a node with everything in it.
    pub(super) fn raw_erase_block(&mut self, node: u32, index: u32) {
        let run = self.nodes.at(node).blocks;
        let block = self.links.items(&run)[index as usize];
        let ret = self.blocks.at(block).ret;
        let param = self.blocks.at(block).param;
        self.raw_clear_operands(ret);
        let mut at = self.nodes.at(ret).place.prev;
        while at != param {
            let prev = self.nodes.at(at).place.prev;
            self.raw_erase(at);
            at = prev;
        }
        self.raw_drop_results(param);
        self.nodes.remove(param);
        self.nodes.remove(ret);
        self.blocks.remove(block);
        let run = self.links.remove(run, index);
        self.nodes.at_mut(node).blocks = run;
    }

    /// Moves all nodes of `from`, except `prim::Param` and `prim::Return`, before `next`.
    pub(super) fn raw_move_body_before(&mut self, from: u32, next: u32) {
        let ret = self.blocks.at(from).ret;
        let mut at = self.nodes.at(self.blocks.at(from).param).place.next;
        while at != ret {
            let following = self.nodes.at(at).place.next;
            self.raw_unplace(at);
            self.raw_place_before(at, next);
            at = following;
        }
    }

    pub(super) fn node_slot(&self, id: NodeId) -> u32 {
        self.nodes.slot(id)
    }

    pub(super) fn value_slot(&self, id: ValueId) -> u32 {
        self.values.slot(id)
    }

    pub(super) fn block_slot(&self, id: BlockId) -> u32 {
        self.blocks.slot(id)
    }
}
