//! Lists of slots: the results and the blocks of a node.
//!
//! Most lists have one item, which is stored in the [`Run`] itself; longer lists are slabs of a pool.

use super::arena::NONE;
use super::pool::{Pool, Run};

/// Storage of the lists. The [`Run`] of a list is the item if there is one item, else the position of its slab.
#[derive(Clone)]
pub(crate) struct SlabLists(Pool<u32>);

impl SlabLists {
    pub(crate) fn new() -> Self {
        SlabLists(Pool::new())
    }

    /// Creates a list of these items.
    pub(crate) fn list(&mut self, items: &[u32]) -> Run {
        if let [item] = *items {
            return Run::of_one(item);
        }
        let run = self.0.take(items.len() as u32, NONE);
        self.0.slice_mut(run).copy_from_slice(items);
        run
    }

    /// Returns the items of a list.
    pub(crate) fn items<'a>(&'a self, list: &'a Run) -> &'a [u32] {
        if list.len() == 1 { std::slice::from_ref(list.item()) } else { self.0.slice(*list) }
    }

    /// Inserts an item at `index` and returns the new list; the old run is invalid.
    pub(crate) fn insert(&mut self, list: Run, index: u32, item: u32) -> Run {
        let len = list.len();
        if len == 0 {
            return Run::of_one(item);
        }
        let run = if len > 1 && len < list.capacity() { list.with_len(len + 1) } else { self.widen(list) };
        let items = self.0.slice_mut(run);
        items.copy_within(index as usize..len as usize, index as usize + 1);
        items[index as usize] = item;
        run
    }

    /// Copies a list to a slab with space for one more item and frees the old slab.
    fn widen(&mut self, list: Run) -> Run {
        let len = list.len();
        let wider = self.0.take(len + 1, NONE);
        for i in 0..len {
            *self.0.at_mut(wider.start() + i) = self.items(&list)[i as usize];
        }
        self.release(list);
        wider
    }

    /// Removes the item at `index` and returns the new list; the old run is invalid.
    pub(crate) fn remove(&mut self, list: Run, index: u32) -> Run {
        let len = list.len();
        if len <= 2 {
            let left = (0..len).find(|&i| i != index).map(|i| self.items(&list)[i as usize]);
            self.release(list);
            return left.map_or(Run::EMPTY, Run::of_one);
        }
        self.0.slice_mut(list).copy_within(index as usize + 1.., index as usize);
        list.with_len(len - 1)
    }

    /// Removes the items whose index `keep` rejects and returns the new list; the old run is invalid.
    pub(crate) fn retain(&mut self, list: Run, keep: &[bool]) -> Run {
        let kept: Vec<u32> =
            self.items(&list).iter().zip(keep).filter(|(_, keep)| **keep).map(|(i, _)| *i).collect();
        if let [] | [_] = kept[..] {
            self.release(list);
            return kept.first().map_or(Run::EMPTY, |&item| Run::of_one(item));
        }
        let run = list.with_len(kept.len() as u32);
        self.0.slice_mut(run).copy_from_slice(&kept);
        run
    }

    /// Reorders the items: item `i` becomes the old item `order[i]`. `order` is a permutation.
    pub(crate) fn permute(&mut self, list: Run, order: &[u32]) {
        if list.len() > 1 {
            let old = self.0.slice(list).to_vec();
            for (slot, &from) in self.0.slice_mut(list).iter_mut().zip(order) {
                *slot = old[from as usize];
            }
        }
    }

    /// Frees a list.
    pub(crate) fn release(&mut self, list: Run) {
        if list.len() > 1 {
            self.0.release(list);
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_agree_with_vectors() {
        let (mut links, mut list, mut model) = (SlabLists::new(), Run::EMPTY, Vec::new());
        let mut state = 7u32;
        for step in 0..2000u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let grow = model.len() < 2 || state >> 31 == 0;
            if grow && model.len() < 40 {
                let at = (state >> 8) as usize % (model.len() + 1);
                list = links.insert(list, at as u32, step);
                model.insert(at, step);
            } else if state & 0x70 == 0 {
                let order: Vec<u32> = (0..model.len() as u32).rev().collect();
                links.permute(list, &order);
                model.reverse();
            } else {
                let at = (state >> 8) as usize % model.len();
                list = links.remove(list, at as u32);
                model.remove(at);
            }
            assert_eq!(links.items(&list), model);
        }
        for items in [&[][..], &[4], &[4, 5], &[4, 5, 6]] {
            let list = links.list(items);
            assert_eq!(links.items(&list), items);
        }
    }
}
