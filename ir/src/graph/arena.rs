//! A generational arena keyed by `slotmap` keys, with unchecked access by slot number for links inside the graph.
//!
//! `slotmap::SlotMap` is not used because operands, use lists and node lists link rows to rows: a four-byte link
//! without a generation check halves the memory and the time of every walk. Only the files in `graph/` read and write
//! these links, and the verifier's handle phase checks them. All public access uses full keys, whose generation is
//! checked. Rows are `Copy`; an erased slot keeps its old row and gets an even generation.

use crate::id::{join, split};
use slotmap::Key;
use std::marker::PhantomData;

/// The null link.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone)]
struct Slot<T> {
    generation: u32,
    row: T,
}

/// The rows of one kind of entity.
#[derive(Clone)]
pub(crate) struct Arena<K, T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// The generation of new slots: see `GraphId::first_generation`.
    first: u32,
    key: PhantomData<fn() -> K>,
}

impl<K: Key, T: Copy> Arena<K, T> {
    pub(crate) fn new(first: u32) -> Self {
        Arena { slots: Vec::new(), free: Vec::new(), first, key: PhantomData }
    }

    /// Reserves capacity for `rows` more rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.slots.reserve_exact(rows);
    }

    /// Adds a row and returns its slot.
    pub(crate) fn insert(&mut self, row: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            let s = &mut self.slots[slot as usize];
            s.generation = s.generation.wrapping_add(1) | 1;
            s.row = row;
            return slot;
        }
        if self.slots.len() == self.slots.capacity() {
            grow(&mut self.slots);
        }
        let slot = u32::try_from(self.slots.len()).expect("invariant: fewer than 2^32 - 1 rows");
        assert!(slot != NONE, "graph too large: 2^32 - 1 rows");
        self.slots.push(Slot { generation: self.first, row });
        slot
    }

    /// Frees a slot and makes its keys stale.
    pub(crate) fn remove(&mut self, slot: u32) {
        let s = &mut self.slots[slot as usize];
        debug_assert!(s.generation & 1 == 1, "invariant: only live rows are removed");
        s.generation = s.generation.wrapping_add(1);
        self.free.push(slot);
    }

    /// Returns the full key of a live slot.
    pub(crate) fn key(&self, slot: u32) -> K {
        join(slot, self.slots[slot as usize].generation)
    }

    /// Returns the slot of a key if the key is live.
    pub(crate) fn find(&self, key: K) -> Option<u32> {
        let (slot, generation) = split(key);
        let live = self.slots.get(slot as usize)?;
        (live.generation == generation && generation & 1 == 1).then_some(slot)
    }

    /// Returns the slot of a live key.
    ///
    /// # Panics
    /// If the key is stale or of another graph.
    #[track_caller]
    pub(crate) fn slot(&self, key: K) -> u32 {
        self.find(key).unwrap_or_else(|| panic!("stale or foreign id {:?}", key.data()))
    }

    pub(crate) fn at(&self, slot: u32) -> &T {
        &self.slots[slot as usize].row
    }

    pub(crate) fn at_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize].row
    }

    #[track_caller]
    pub(crate) fn get(&self, key: K) -> &T {
        let (slot, generation) = split(key);
        match self.slots.get(slot as usize) {
            Some(s) if s.generation == generation => &s.row,
            _ => panic!("stale or foreign id {:?}", key.data()),
        }
    }

    pub(crate) fn is_live(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|s| s.generation & 1 == 1)
    }

    /// Returns the number of live rows.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the number of slots ever used: the size of a dense side table.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns live slots in slot order (not program order).
    pub(crate) fn live_slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.slots.len() as u32).filter(|&s| self.is_live(s))
    }

    /// Returns the generations of all slots ever used; those of free slots are even.
    #[cfg(debug_assertions)]
    pub(crate) fn generations(&self) -> Vec<u32> {
        self.slots.iter().map(|s| s.generation).collect()
    }

    /// Returns the heap size in bytes, including free capacity.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<T>>() + self.free.capacity() * size_of::<u32>()
    }
}

/// Grows a vector by half, a quarter or an eighth of its capacity, depending on its size. Doubling, as `Vec` does,
/// would spend a third of the byte budget of a node on spare capacity. An eighth from the start would copy every row
/// nine times.
pub(crate) fn grow<T>(v: &mut Vec<T>) {
    let held = v.capacity();
    let more = match held {
        0..0x4000 => held / 2,
        0x4000..0x1_0000 => held / 4,
        _ => held / 8,
    };
    // The argument of `reserve_exact` counts from the length, which may be below the capacity.
    v.reserve_exact(held - v.len() + more.max(16));
}
