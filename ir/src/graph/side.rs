//! Dense side tables keyed by nodes or values, for the results of analyses.
//!
//! Tables are indexed by slot, so a read is one bounds-checked load. A [`NodeMap`] or [`ValueMap`] is for a graph that
//! does not lose entities while the table exists: a reused slot would return the row of its former entity. Debug builds
//! store the generation of every row and panic if the key is stale, belongs to another graph, or names an entity
//! created later in a reused slot. A table that is kept across edits is a [`TrackedNodeMap`] or [`TrackedValueMap`],
//! whose rows store generations in every build.

use super::Graph;
use crate::id::{NodeId, ValueId, slot_of, split};
use fixedbitset::FixedBitSet;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A dense table; see [`NodeMap`] and [`ValueMap`].
#[derive(Clone, Debug)]
pub struct SlotTable<K, T> {
    rows: Vec<T>,
    default: T,
    /// The generation each row belongs to; 0 or an even number if there is none yet.
    #[cfg(debug_assertions)]
    generations: Vec<u32>,
    key: PhantomData<fn() -> K>,
}

/// One row per node.
pub type NodeMap<T> = SlotTable<NodeId, T>;
/// One row per value.
pub type ValueMap<T> = SlotTable<ValueId, T>;

impl<T: Clone> NodeMap<T> {
    /// Creates a table for all nodes of `graph`, filled with `default`. Nodes in slots created later read as `default`.
    pub fn for_nodes(graph: &Graph, default: T) -> Self {
        SlotTable {
            rows: vec![default.clone(); graph.nodes.capacity()],
            default,
            #[cfg(debug_assertions)]
            generations: graph.nodes.generations(),
            key: PhantomData,
        }
    }
}

impl<T: Clone> ValueMap<T> {
    /// Creates a table for all values of `graph`, filled with `default`. Values in slots created later read as
    /// `default`.
    pub fn for_values(graph: &Graph, default: T) -> Self {
        SlotTable {
            rows: vec![default.clone(); graph.values.capacity()],
            default,
            #[cfg(debug_assertions)]
            generations: graph.values.generations(),
            key: PhantomData,
        }
    }
}

impl<K, T> SlotTable<K, T> {
    /// Creates an empty table that grows on write, for tables with few rows. Rows that are not set read as `default`.
    pub fn sparse(default: T) -> Self {
        SlotTable {
            rows: Vec::new(),
            default,
            #[cfg(debug_assertions)]
            generations: Vec::new(),
            key: PhantomData,
        }
    }
}

impl<K: slotmap::Key, T: Clone> SlotTable<K, T> {
    /// Returns the heap size of the table itself in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<T>()
    }
}

/// Panics unless `key` may read a row of generation `of`, or, with `take`, may overwrite the row as a later entity of
/// the same graph.
#[cfg(debug_assertions)]
#[track_caller]
fn check<K: slotmap::Key>(key: K, of: u32, take: bool) {
    let generation = split(key).1;
    let none = of & 1 == 0;
    let later = of >> 24 == generation >> 24 && generation > of;
    assert!(
        none || of == generation || take && later,
        "side table lookup of {:?}, whose row belongs to generation {of}: the id is stale, newer than the table, or \
         of another graph",
        key.data()
    );
}

impl<K: slotmap::Key, T> Index<K> for SlotTable<K, T> {
    type Output = T;

    #[track_caller]
    fn index(&self, key: K) -> &T {
        let slot = slot_of(key) as usize;
        #[cfg(debug_assertions)]
        if let Some(&of) = self.generations.get(slot) {
            check(key, of, false);
        }
        self.rows.get(slot).unwrap_or(&self.default)
    }
}

impl<K: slotmap::Key, T: Clone> IndexMut<K> for SlotTable<K, T> {
    #[track_caller]
    fn index_mut(&mut self, key: K) -> &mut T {
        let slot = slot_of(key) as usize;
        if slot >= self.rows.len() {
            self.rows.resize(slot + 1, self.default.clone());
        }
        #[cfg(debug_assertions)]
        {
            if slot >= self.generations.len() {
                self.generations.resize(slot + 1, 0);
            }
            check(key, self.generations[slot], true);
            self.generations[slot] = split(key).1;
        }
        &mut self.rows[slot]
    }
}

/// A dense table that stays valid across edits. A row stores the generation of its key and reads as the default for any
/// other entity of the same slot, erased or created later. See [`TrackedNodeMap`] and [`TrackedValueMap`].
#[derive(Clone, Debug)]
pub struct TrackedTable<K, T> {
    rows: Vec<(u32, T)>,
    default: T,
    key: PhantomData<fn() -> K>,
}

/// One row per node, valid across edits.
pub type TrackedNodeMap<T> = TrackedTable<NodeId, T>;
/// One row per value, valid across edits.
pub type TrackedValueMap<T> = TrackedTable<ValueId, T>;

impl<T: Copy> TrackedNodeMap<T> {
    /// Creates a table for all nodes of `graph`, filled with `default`.
    pub fn for_nodes(graph: &Graph, default: T) -> Self {
        TrackedTable { rows: vec![(0, default); graph.nodes.capacity()], default, key: PhantomData }
    }
}

impl<T: Copy> TrackedValueMap<T> {
    /// Creates a table for all values of `graph`, filled with `default`.
    pub fn for_values(graph: &Graph, default: T) -> Self {
        TrackedTable { rows: vec![(0, default); graph.values.capacity()], default, key: PhantomData }
    }
}

impl<K, T> TrackedTable<K, T> {
    /// Creates an empty table that grows on write, for tables with few rows. Rows that are not set read as `default`.
    pub fn sparse(default: T) -> Self {
        TrackedTable { rows: Vec::new(), default, key: PhantomData }
    }
}

impl<K: slotmap::Key, T: Copy> TrackedTable<K, T> {
    /// Returns the row of a key, or the default if no row was set for exactly this entity.
    #[inline]
    pub fn get(&self, key: K) -> T {
        let (slot, generation) = split(key);
        match self.rows.get(slot as usize) {
            Some(&(of, row)) if of == generation => row,
            _ => self.default,
        }
    }

    /// Sets the row of a key. A row of another entity in the same slot is overwritten.
    #[inline]
    pub fn set(&mut self, key: K, row: T) {
        let (slot, generation) = split(key);
        if slot as usize >= self.rows.len() {
            self.rows.resize(slot as usize + 1, (0, self.default));
        }
        self.rows[slot as usize] = (generation, row);
    }
}

/// A bit set of entities, indexed by slot. Generations are not stored, so a set is valid while its graph loses no
/// entity.
#[derive(Clone, Debug, Default)]
pub struct SlotSet<K> {
    bits: FixedBitSet,
    key: PhantomData<fn() -> K>,
}

/// A set of nodes.
pub type NodeSet = SlotSet<NodeId>;
/// A set of values.
pub type ValueSet = SlotSet<ValueId>;

impl<K: slotmap::Key> SlotSet<K> {
    /// Creates an empty set.
    pub fn new() -> Self {
        SlotSet { bits: FixedBitSet::new(), key: PhantomData }
    }

    /// Adds `key`; returns whether it was absent.
    pub fn insert(&mut self, key: K) -> bool {
        let slot = slot_of(key) as usize;
        self.bits.grow(slot + 1);
        !self.bits.put(slot)
    }

    /// Removes `key`; returns whether it was present.
    pub fn remove(&mut self, key: K) -> bool {
        let slot = slot_of(key) as usize;
        let was = self.bits.contains(slot);
        if was {
            self.bits.set(slot, false);
        }
        was
    }

    /// Returns whether `key` is in the set.
    pub fn contains(&self, key: K) -> bool {
        self.bits.contains(slot_of(key) as usize)
    }
}
