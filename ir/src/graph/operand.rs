//! Operands and use lists; only this file writes them.
//!
//! A use list is threaded through the operand pool: doubly linked, in order of creation. Linking and unlinking a use is
//! O(1). Replacing all uses of a value is O(uses): the list is spliced onto the other value's list.

use super::arena::NONE;
use super::{Graph, Run};
use crate::id::{NodeId, ValueId};

/// A use: one row of the operand pool.
#[derive(Clone, Copy)]
pub(crate) struct Operand {
    pub(crate) value: u32,
    pub(crate) user: u32,
    prev: u32,
    next: u32,
}

const VACANT: Operand = Operand { value: NONE, user: NONE, prev: NONE, next: NONE };

/// A use of a value: the user and the operand index. A node that uses a value twice has two uses of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Use {
    /// The node that uses the value.
    pub user: NodeId,
    /// The operand index.
    pub index: u32,
}

impl Graph {
    fn link_use(&mut self, at: u32, value: u32, user: u32) {
        let row = self.values.at_mut(value);
        let last = row.last_use;
        row.last_use = at;
        row.n_uses += 1;
        if last == NONE {
            row.first_use = at;
        } else {
            self.operands.at_mut(last).next = at;
        }
        *self.operands.at_mut(at) = Operand { value, user, prev: last, next: NONE };
    }

    fn unlink_use(&mut self, at: u32) {
        let Operand { value, prev, next, .. } = *self.operands.at(at);
        let row = self.values.at_mut(value);
        row.n_uses -= 1;
        if prev == NONE {
            row.first_use = next;
        }
        if next == NONE {
            row.last_use = prev;
        }
        if prev != NONE {
            self.operands.at_mut(prev).next = next;
        }
        if next != NONE {
            self.operands.at_mut(next).prev = prev;
        }
    }

    /// Sets the operands of a node that has none.
    pub(super) fn raw_set_operands(&mut self, node: u32, values: impl ExactSizeIterator<Item = u32>) {
        let run = self.operands.take(values.len() as u32, VACANT);
        self.nodes.at_mut(node).operands = run;
        for (i, value) in values.enumerate() {
            self.link_use(run.start() + i as u32, value, node);
        }
    }

    /// Removes all operands of a node.
    pub(super) fn raw_clear_operands(&mut self, node: u32) {
        let run = self.nodes.at(node).operands;
        for at in run.start()..run.start() + run.len() {
            self.unlink_use(at);
        }
        self.operands.release(run);
        self.nodes.at_mut(node).operands = Run::EMPTY;
    }

    /// Replaces operand `index` and returns the old value.
    pub(super) fn raw_replace_operand(&mut self, node: u32, index: u32, value: u32) -> u32 {
        let run = self.nodes.at(node).operands;
        assert!(index < run.len(), "operand {index} of {}", run.len());
        let at = run.start() + index;
        let old = self.operands.at(at).value;
        self.unlink_use(at);
        self.link_use(at, value, node);
        old
    }

    /// Inserts an operand before position `index`.
    pub(super) fn raw_insert_operand(&mut self, node: u32, index: u32, value: u32) {
        let run = self.nodes.at(node).operands;
        let len = run.len();
        assert!(index <= len, "operand position {index} of {len}");
        let run = if len < run.capacity() {
            run.with_len(len + 1)
        } else {
            let wider = self.operands.take(len + 1, VACANT);
            for i in 0..len {
                self.move_use(run.start() + i, wider.start() + i);
            }
            self.operands.release(run);
            wider
        };
        self.nodes.at_mut(node).operands = run;
        for i in (index..len).rev() {
            self.move_use(run.start() + i, run.start() + i + 1);
        }
        self.link_use(run.start() + index, value, node);
    }

    /// Removes operand `index` and returns its value. Later operands move down by one.
    pub(super) fn raw_remove_operand(&mut self, node: u32, index: u32) -> u32 {
        let run = self.nodes.at(node).operands;
        assert!(index < run.len(), "operand {index} of {}", run.len());
        let at = run.start() + index;
        let old = self.operands.at(at).value;
        self.unlink_use(at);
        for i in index + 1..run.len() {
            self.move_use(run.start() + i, run.start() + i - 1);
        }
        if run.len() == 1 {
            self.operands.release(run);
            self.nodes.at_mut(node).operands = Run::EMPTY;
        } else {
            self.nodes.at_mut(node).operands = run.with_len(run.len() - 1);
        }
        old
    }

    /// Removes the operands whose index `keep` rejects. Takes a time linear in their number.
    pub(super) fn raw_retain_operands(&mut self, node: u32, keep: &[bool]) {
        let run = self.nodes.at(node).operands;
        let mut kept = 0;
        for i in 0..run.len() {
            match keep[i as usize] {
                true if kept == i => kept += 1,
                true => {
                    self.move_use(run.start() + i, run.start() + kept);
                    kept += 1;
                }
                false => self.unlink_use(run.start() + i),
            }
        }
        if kept == 0 && run.len() > 0 {
            self.operands.release(run);
            self.nodes.at_mut(node).operands = Run::EMPTY;
        } else {
            self.nodes.at_mut(node).operands = run.with_len(kept);
        }
    }

    /// Moves a linked operand row to another index of the pool. Its position in the use list does not change.
    fn move_use(&mut self, from: u32, to: u32) {
        let row = *self.operands.at(from);
        *self.operands.at_mut(to) = row;
        if row.prev == NONE {
            self.values.at_mut(row.value).first_use = to;
        } else {
            self.operands.at_mut(row.prev).next = to;
        }
        if row.next == NONE {
            self.values.at_mut(row.value).last_use = to;
        } else {
            self.operands.at_mut(row.next).prev = to;
        }
    }

    /// Makes every use of `old` a use of `new`, appended after the existing uses of `new`.
    pub(super) fn raw_replace_all_uses(&mut self, old: u32, new: u32) {
        if old == new {
            return;
        }
        let (first, last, n) = {
            let row = self.values.at_mut(old);
            let ends = (row.first_use, row.last_use, row.n_uses);
            (row.first_use, row.last_use, row.n_uses) = (NONE, NONE, 0);
            ends
        };
        if n == 0 {
            return;
        }
        let mut at = first;
        while at != NONE {
            let operand = self.operands.at_mut(at);
            operand.value = new;
            at = operand.next;
        }
        let row = self.values.at_mut(new);
        let tail = row.last_use;
        row.last_use = last;
        row.n_uses += n;
        if tail == NONE {
            row.first_use = first;
        } else {
            self.operands.at_mut(tail).next = first;
            self.operands.at_mut(first).prev = tail;
        }
    }

    /// Returns the uses of a value, in order of creation.
    pub fn uses(&self, value: ValueId) -> impl Iterator<Item = Use> + '_ {
        let mut at = self.values.get(value).first_use;
        std::iter::from_fn(move || {
            if at == NONE {
                return None;
            }
            let operand = self.operands.at(at);
            let start = self.nodes.at(operand.user).operands.start();
            let found = Use { user: self.nodes.key(operand.user), index: at - start };
            at = operand.next;
            Some(found)
        })
    }

    /// Returns the number of uses of a value.
    pub fn use_count(&self, value: ValueId) -> usize {
        self.values.get(value).n_uses as usize
    }

    /// Checks every use list against the operands.
    ///
    /// # Errors
    /// Returns a description of the first mismatch.
    pub(crate) fn check_use_lists(&self) -> Result<(), String> {
        let mut linked = 0usize;
        for value in self.values.live_slots() {
            let row = self.values.at(value);
            let (mut at, mut prev, mut n) = (row.first_use, NONE, 0u32);
            while at != NONE {
                let o = self.operands.at(at);
                if o.value != value || o.prev != prev || n >= row.n_uses {
                    return Err(format!("use list of value{value} is broken at operand {at}"));
                }
                (prev, at, n) = (at, o.next, n + 1);
            }
            if prev != row.last_use || n != row.n_uses {
                return Err(format!("use list of value{value} has {n} uses, counts {}", row.n_uses));
            }
            linked += n as usize;
        }
        let mut held = 0usize;
        for node in self.nodes.live_slots() {
            let run = self.nodes.at(node).operands;
            for o in self.operands.slice(run) {
                if o.user != node || !self.values.is_live(o.value) {
                    return Err(format!("node{node} has an operand that does not belong to it or is dead"));
                }
            }
            held += run.len() as usize;
        }
        if held == linked { Ok(()) } else { Err(format!("{held} operands but {linked} uses")) }
    }
}
