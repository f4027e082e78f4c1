//! A generational arena keyed by `slotmap` keys, with access by bare slot number for links inside the graph.
//!
//! Why not `slotmap::SlotMap`: operands, use lists and node lists link rows to rows, and a link of four bytes that
//! needs no generation check halves both the memory and the time of every walk. The links are private to
//! `graph/`, written by the few files there and proven by the verifier's handle phase; everything public goes
//! through full keys and is checked. Rows are `Copy`; erased slots keep a stale row and an even generation.

use crate::id::{join, split};
use slotmap::Key;
use std::marker::PhantomData;

/// "No row" in a bare link.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone)]
struct Slot<T> {
    generation: u32,
    row: T,
}

/// Rows of one kind of entity.
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

    /// Makes room for rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.slots.reserve_exact(rows);
    }

    /// Adds a row and returns its bare slot.
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

    /// Frees a slot; its keys are stale from here on.
    pub(crate) fn remove(&mut self, slot: u32) {
        let s = &mut self.slots[slot as usize];
        debug_assert!(s.generation & 1 == 1, "invariant: only live rows are removed");
        s.generation = s.generation.wrapping_add(1);
        self.free.push(slot);
    }

    /// The full key of a live slot.
    pub(crate) fn key(&self, slot: u32) -> K {
        join(slot, self.slots[slot as usize].generation)
    }

    /// The bare slot of a key, if the key is live.
    pub(crate) fn find(&self, key: K) -> Option<u32> {
        let (slot, generation) = split(key);
        let live = self.slots.get(slot as usize)?;
        (live.generation == generation && generation & 1 == 1).then_some(slot)
    }

    /// The bare slot of a key that must be live.
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

    /// Number of live rows.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Number of slots ever used: the size of a dense side table.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Live slots in slot order (not program order).
    pub(crate) fn live_slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.slots.len() as u32).filter(|&s| self.is_live(s))
    }

    /// The generations of all slots ever used; those of free slots are even.
    #[cfg(debug_assertions)]
    pub(crate) fn generations(&self) -> Vec<u32> {
        self.slots.iter().map(|s| s.generation).collect()
    }

    /// Bytes held, free capacity included.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<T>>() + self.free.capacity() * size_of::<u32>()
    }
}

/// Grows by less the more there is: the doubling of `Vec` would cost a third of the byte budget of a node in slack, and
/// growing by an eighth from the start would copy every row nine times.
pub(crate) fn grow<T>(v: &mut Vec<T>) {
    let held = v.capacity();
    let more = match held {
        0..0x4000 => held / 2,
        0x4000..0x1_0000 => held / 4,
        _ => held / 8,
    };
    // Counted from the length, which may lie below the capacity: a wide run must get there.
    v.reserve_exact(held - v.len() + more.max(16));
}
