//! Dense side tables keyed by nodes or values: what an analysis keeps beside a graph.
//!
//! Indexed by slot, so reading is one bounds-checked load. A table says nothing about staleness; analyses are kept in
//! step by the journal, and a table must not outlive edits of the graph it was made for.

use super::Graph;
use crate::id::{NodeId, ValueId, slot_of};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A dense table; see [`NodeMap`] and [`ValueMap`].
#[derive(Clone, Debug)]
pub struct SlotTable<K, T> {
    rows: Vec<T>,
    default: T,
    key: PhantomData<fn() -> K>,
}

/// One row per node.
pub type NodeMap<T> = SlotTable<NodeId, T>;
/// One row per value.
pub type ValueMap<T> = SlotTable<ValueId, T>;

impl<T: Clone> NodeMap<T> {
    /// A table for all nodes of `graph`, filled with `default`; nodes made later read as `default`.
    pub fn for_nodes(graph: &Graph, default: T) -> Self {
        SlotTable { rows: vec![default.clone(); graph.nodes.capacity()], default, key: PhantomData }
    }
}

impl<T: Clone> ValueMap<T> {
    /// A table for all values of `graph`, filled with `default`; values made later read as `default`.
    pub fn for_values(graph: &Graph, default: T) -> Self {
        SlotTable { rows: vec![default.clone(); graph.values.capacity()], default, key: PhantomData }
    }
}

impl<K, T> SlotTable<K, T> {
    /// An empty table, for what is set of few or none: rows that are not set read as `default`.
    pub fn sparse(default: T) -> Self {
        SlotTable { rows: Vec::new(), default, key: PhantomData }
    }
}

impl<K: slotmap::Key, T: Clone> SlotTable<K, T> {
    /// Bytes of heap held by the table itself.
    pub fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<T>()
    }
}

impl<K: slotmap::Key, T> Index<K> for SlotTable<K, T> {
    type Output = T;

    fn index(&self, key: K) -> &T {
        self.rows.get(slot_of(key) as usize).unwrap_or(&self.default)
    }
}

impl<K: slotmap::Key, T: Clone> IndexMut<K> for SlotTable<K, T> {
    fn index_mut(&mut self, key: K) -> &mut T {
        let slot = slot_of(key) as usize;
        if slot >= self.rows.len() {
            self.rows.resize(slot + 1, self.default.clone());
        }
        &mut self.rows[slot]
    }
}

/// A set of entities as bits by slot.
#[derive(Clone, Debug, Default)]
pub struct SlotSet<K> {
    words: Vec<u64>,
    key: PhantomData<fn() -> K>,
}

/// A set of nodes.
pub type NodeSet = SlotSet<NodeId>;
/// A set of values.
pub type ValueSet = SlotSet<ValueId>;

impl<K: slotmap::Key> SlotSet<K> {
    /// The empty set.
    pub fn new() -> Self {
        SlotSet { words: Vec::new(), key: PhantomData }
    }

    /// Adds `key`; says whether it was missing.
    pub fn insert(&mut self, key: K) -> bool {
        let slot = slot_of(key) as usize;
        if slot / 64 >= self.words.len() {
            self.words.resize(slot / 64 + 1, 0);
        }
        let bit = 1 << (slot % 64);
        let fresh = self.words[slot / 64] & bit == 0;
        self.words[slot / 64] |= bit;
        fresh
    }

    /// Removes `key`; says whether it was there.
    pub fn remove(&mut self, key: K) -> bool {
        let slot = slot_of(key) as usize;
        let Some(word) = self.words.get_mut(slot / 64) else { return false };
        let bit = 1 << (slot % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Whether `key` is in the set.
    pub fn contains(&self, key: K) -> bool {
        let slot = slot_of(key) as usize;
        self.words.get(slot / 64).is_some_and(|w| w & (1 << (slot % 64)) != 0)
    }
}
