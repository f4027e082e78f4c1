//! Node lists and order keys; only this file writes [`NodePosition`].
//!
//! Every node has a key that increases along its block's list, so "does `a` come before `b`" is one comparison. A new
//! node gets the middle of the gap between its neighbours. If there is no gap, the smallest aligned range of keys that
//! is sparse enough is relabelled evenly (order maintenance by list labelling). Insertion is O(log n) amortised at any
//! position.

use super::arena::NONE;
use super::{Graph, NodePosition};

/// Key distance between appended nodes: ten bisections are possible before the first relabelling.
const STRIDE: u32 = 1 << 10;
/// Key of a block's `prim::Return`. Smaller keys above 0 are for the block's nodes.
const LAST: u32 = u32::MAX - 1;

impl Graph {
    /// Links the `prim::Param` and the `prim::Return` of a new block.
    pub(super) fn raw_bracket(&mut self, block: u32, param: u32, ret: u32) {
        self.nodes.at_mut(param).place = NodePosition { parent: block, prev: NONE, next: ret, order: 0 };
        self.nodes.at_mut(ret).place = NodePosition { parent: block, prev: param, next: NONE, order: LAST };
    }

    /// Inserts an unplaced node before `next`, which must be placed and not a `prim::Param`.
    pub(super) fn raw_place_before(&mut self, node: u32, next: u32) {
        let NodePosition { parent, prev, order: high, .. } = self.nodes.at(next).place;
        debug_assert!(prev != NONE, "invariant: prim::Param has no predecessor");
        let low = self.nodes.at(prev).place.order;
        let order = if high == LAST && LAST - low > 2 * STRIDE {
            low + STRIDE
        } else if high - low > 1 {
            low + (high - low) / 2
        } else {
            self.relabel(prev);
            let low = self.nodes.at(prev).place.order;
            let high = self.nodes.at(next).place.order;
            low + (high - low) / 2
        };
        self.nodes.at_mut(node).place = NodePosition { parent, prev, next, order };
        self.nodes.at_mut(prev).place.next = node;
        self.nodes.at_mut(next).place.prev = node;
    }

    /// Removes a node from its list.
    pub(super) fn raw_unplace(&mut self, node: u32) {
        let NodePosition { prev, next, .. } = self.nodes.at(node).place;
        self.nodes.at_mut(prev).place.next = next;
        self.nodes.at_mut(next).place.prev = prev;
        self.nodes.at_mut(node).place = NodePosition { parent: NONE, prev: NONE, next: NONE, order: 0 };
    }

    /// Relabels nodes around `at` so that there is a gap after it.
    fn relabel(&mut self, at: u32) {
        let key = self.nodes.at(at).place.order;
        let (mut first, mut last, mut count) = (at, at, 1u64);
        for bits in 2..=32u32 {
            let size = 1u64 << bits;
            let low = u64::from(key) & !(size - 1);
            let high = (low + size).min(u64::from(LAST));
            // Extend the run to all nodes with keys in low..high, except `prim::Param` and `prim::Return`.
            loop {
                let p = self.nodes.at(first).place.prev;
                if p == NONE
                    || self.nodes.at(p).place.prev == NONE
                    || u64::from(self.nodes.at(p).place.order) < low
                {
                    break;
                }
                (first, count) = (p, count + 1);
            }
            loop {
                let n = self.nodes.at(last).place.next;
                if n == NONE
                    || self.nodes.at(n).place.next == NONE
                    || u64::from(self.nodes.at(n).place.order) >= high
                {
                    break;
                }
                (last, count) = (n, count + 1);
            }
            // The allowed density falls by 1.15 per doubling of the range, so a relabelled range has space for many
            // insertions.
            let allowed = (size as f64) * (1.0f64 / 1.15).powi(bits as i32);
            let gap = (high - low.max(1)) / (count + 1);
            if (count as f64) <= allowed && gap >= 2 || bits == 32 {
                assert!(gap >= 2, "block too long: 2^31 nodes");
                self.spread(first, count, low.max(1), gap);
                return;
            }
        }
    }

    fn spread(&mut self, first: u32, count: u64, low: u64, gap: u64) {
        let (mut node, mut key) = (first, low);
        if self.nodes.at(node).place.prev == NONE {
            // The run starts at prim::Param, which keeps key 0.
            node = self.nodes.at(node).place.next;
        }
        for _ in 0..count {
            if node == NONE || self.nodes.at(node).place.next == NONE {
                break;
            }
            key += gap;
            self.nodes.at_mut(node).place.order = (key - gap / 2).min(u64::from(LAST) - 1) as u32;
            node = self.nodes.at(node).place.next;
        }
    }

    /// Returns whether keys increase along a block's list and its links are consistent.
    pub(crate) fn block_order_holds(&self, block: crate::id::BlockId) -> bool {
        let mut at = self.blocks.get(block).param;
        loop {
            let place = self.nodes.at(at).place;
            if place.next == NONE {
                return true;
            }
            let next = self.nodes.at(place.next).place;
            if next.order <= place.order || next.prev != at || next.parent != place.parent {
                return false;
            }
            at = place.next;
        }
    }
}
