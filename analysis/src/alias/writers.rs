//! Live writers: finds the nodes that write memory that becomes live, each once.
//!
//! Dead code elimination grows a set of live memory from live nodes and needs the writers of memory that joins it.
//! Writers are indexed by the set of locations they write, and sets by location. So the whole search costs time
//! proportional to the sets of the points-to solution, not to rounds times writers.
//!
//! Constants overlap outside memory without being merged with it, so a write to either is live with the other:
//! overlapping locations count as equal here ([`AliasDb::overlapping`]).

use super::locations::LocSet;
use super::{AliasDb, Flags};
use fixedbitset::FixedBitSet;
use flambeau_ir::{NodeId, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// Live memory, and the writers of memory that is not live yet.
pub struct LiveWriters<'a> {
    db: &'a AliasDb,
    live: FixedBitSet,
    /// Sets whose locations are all live.
    whole: HashSet<LocSet, FxBuildHasher>,
    /// By set: its writers that have not been found yet.
    writers: HashMap<LocSet, Vec<NodeId>, FxBuildHasher>,
    /// By location: the sets in `writers` that contain it.
    sets: HashMap<u32, Vec<LocSet>, FxBuildHasher>,
}

impl<'a> LiveWriters<'a> {
    /// Creates an index of `writers` with no live memory. Nested blocks of a writer are not visited.
    #[must_use]
    pub fn new(db: &'a AliasDb, writers: impl IntoIterator<Item = NodeId>) -> Self {
        let mut by_set: HashMap<LocSet, Vec<NodeId>, FxBuildHasher> = HashMap::default();
        let mut sets: HashMap<u32, Vec<LocSet>, FxBuildHasher> = HashMap::default();
        for node in writers {
            for set in db.own_writes(node) {
                let of_set = by_set.entry(set).or_default();
                if of_set.is_empty() {
                    for loc in db.solution.sets.iter(set) {
                        sets.entry(db.overlapping(loc)).or_default().push(set);
                    }
                }
                of_set.push(node);
            }
        }
        let live = FixedBitSet::with_capacity(db.dag.locations.len());
        LiveWriters { db, live, whole: HashSet::default(), writers: by_set, sets }
    }

    /// Makes the memory that a value may be or hold live, and appends its writers to `found`. A writer of several sets
    /// may be appended once per set.
    pub fn add(&mut self, v: ValueId, found: &mut Vec<NodeId>) {
        // A value without an element is memory that no node writes.
        let Some(e) = self.db.element(v) else { return };
        let set = self.db.set_of(e, true);
        if self.whole.insert(set) {
            let db = self.db;
            db.solution.sets.iter(set).for_each(|loc| self.add_location(loc, found));
        }
    }

    /// Makes all memory live that is reachable from outside or returned by the graph.
    pub fn add_visible(&mut self, found: &mut Vec<NodeId>) {
        let visible = Flags(Flags::WILDCARD.0 | Flags::OUTPUT.0);
        for loc in 0..self.db.dag.locations.len() as u32 {
            if self.db.dag.locations.flags(loc).has(visible) {
                self.add_location(loc, found);
            }
        }
    }

    fn add_location(&mut self, loc: u32, found: &mut Vec<NodeId>) {
        let name = self.db.overlapping(loc);
        self.live.grow(name as usize + 1);
        if self.live.put(name as usize) {
            return;
        }
        for set in self.sets.remove(&name).into_iter().flatten() {
            found.extend(self.writers.remove(&set).into_iter().flatten());
        }
    }
}
