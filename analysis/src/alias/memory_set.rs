//! A growing set of memory with membership queries.

use super::locations::LocSet;
use super::{AliasDb, Flags};
use fixedbitset::FixedBitSet;
use flambeau_ir::{NodeId, ValueId, ValueSet};

/// A set of locations of one [`AliasDb`], which walks collect ("memory that is still live") and query. The time of a
/// query does not depend on the size of the set.
#[derive(Clone)]
pub struct MemorySet {
    locations: FixedBitSet,
    /// The union of the flags of all locations, for overlaps that depend on flags alone (constants and the outside).
    flags: Flags,
    /// Values that have memory of their own without a location: no other value refers to it.
    plain: ValueSet,
}

impl MemorySet {
    /// Creates an empty set.
    #[must_use]
    pub fn new(db: &AliasDb) -> Self {
        MemorySet {
            locations: FixedBitSet::with_capacity(db.dag.locations.len()),
            flags: Flags::NONE,
            plain: ValueSet::new(),
        }
    }

    fn add_set(&mut self, db: &AliasDb, set: LocSet) -> bool {
        let mut grew = false;
        for loc in db.solution.sets.iter(set) {
            let name = db.dag.locations.find(loc) as usize;
            self.locations.grow(name + 1);
            grew |= !self.locations.put(name);
            self.flags.0 |= db.dag.locations.flags(loc).0;
        }
        grew
    }

    fn intersects_set(&self, db: &AliasDb, set: LocSet) -> bool {
        let locations = &db.dag.locations;
        db.solution.sets.iter(set).any(|loc| {
            self.locations.contains(locations.find(loc) as usize)
                || locations.has_shared() && self.flags.overlap(locations.flags(loc))
        })
    }

    /// Adds the memory that a value may point to or contain. Returns whether any of it is new.
    pub fn add(&mut self, db: &AliasDb, v: ValueId) -> bool {
        match db.element(v) {
            Some(e) => self.add_set(db, db.set_of(e, true)),
            None => self.plain.insert(v),
        }
    }

    /// Adds the memory that the node itself writes, without nested blocks.
    pub fn add_writes_of(&mut self, db: &AliasDb, node: NodeId) {
        for set in db.own_writes(node) {
            self.add_set(db, set);
        }
    }

    /// Whether a value may point to or contain memory of the set.
    #[must_use]
    pub fn intersects(&self, db: &AliasDb, v: ValueId) -> bool {
        match db.element(v) {
            Some(e) => self.intersects_set(db, db.set_of(e, true)),
            None => self.plain.contains(v),
        }
    }

    /// Whether a value itself may point to memory of the set, regardless of its contents.
    #[must_use]
    pub fn intersects_shallow(&self, db: &AliasDb, v: ValueId) -> bool {
        match db.element(v) {
            Some(e) => self.intersects_set(db, db.set_of(e, false)),
            None => self.plain.contains(v),
        }
    }

    /// Whether the node itself, without nested blocks, may write memory of the set.
    #[must_use]
    pub fn written_by(&self, db: &AliasDb, node: NodeId) -> bool {
        db.own_writes(node).any(|set| self.intersects_set(db, set))
    }
}
