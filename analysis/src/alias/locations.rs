//! Memory locations and interned sets of them.
//!
//! A location is an index that represents memory owned by some value: a new tensor, a list, "any tensor outside".
//! Locations can be merged (an escaped value merges with a wildcard), so they form a union-find structure. Flags belong
//! to a class of merged locations.
//!
//! A constant may share memory with the outside: with an input, or with an attribute of a module. So the location of a
//! tensor constant overlaps the locations of tensor wildcards, and that of a constant container those of container
//! wildcards, while two constants of different memory do not overlap. This relation is not transitive, so it cannot be
//! a merge. It is computed from the flags, in [`Sets::may_overlap`] and [`Locations::flags`]. Owned constants
//! ([`crate::ConstantOwner`]) overlap no wildcard until the graph returns or stores them.
//!
//! A [`LocSet`] has four bytes: the empty set, one location, or an index into a table of sparse bit sets. Most values
//! have at most one location and need no row. A set that would exceed a bound has its members merged instead. That is
//! less precise but sound, and keeps the total size of all sets linear in the program.

use hashbrown::{HashMap, HashTable};
use rustc_hash::{FxBuildHasher, FxHasher};
use std::hash::Hasher;

/// Properties of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(pub(crate) u16);

impl Flags {
    pub(crate) const NONE: Flags = Flags(0);
    /// Some node, or the caller between runs, writes the location.
    pub(crate) const WRITTEN: Flags = Flags(1);
    /// The location represents memory reachable from outside.
    pub(crate) const WILDCARD: Flags = Flags(2);
    /// The graph returns the location, or a value that holds it.
    pub(crate) const OUTPUT: Flags = Flags(4);
    /// The storage of a tensor constant, which persists from run to run.
    pub(crate) const CONSTANT_TENSOR: Flags = Flags(8);
    /// A constant container, which persists from run to run.
    pub(crate) const CONSTANT_CONTAINER: Flags = Flags(16);
    /// Represents tensors outside the graph, which may include constants.
    pub(crate) const EXTERNAL_TENSOR: Flags = Flags(32);
    /// Represents containers outside the graph, which may include constants.
    pub(crate) const EXTERNAL_CONTAINER: Flags = Flags(64);
    /// The storage of a tensor constant that may be shared with the outside.
    pub(crate) const SHARED_TENSOR: Flags = Flags(128);
    /// A constant container that may be shared with the outside.
    pub(crate) const SHARED_CONTAINER: Flags = Flags(256);

    pub(crate) fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the location is a constant of any kind.
    pub(crate) fn is_constant(self) -> bool {
        self.constant_kinds() != 0
    }

    /// The kinds of constant that the location is: bit 0 for tensors, bit 1 for containers.
    fn constant_kinds(self) -> u8 {
        (self.0 >> 3 & 3) as u8
    }

    /// The kinds of constant that the location is and the outside may share, with the bits of
    /// [`Flags::constant_kinds`].
    fn shared_kinds(self) -> u8 {
        let reachable = self.has(Flags(Flags::OUTPUT.0 | Flags::WILDCARD.0));
        if reachable { self.constant_kinds() } else { self.constant_kinds() & (self.0 >> 7 & 3) as u8 }
    }

    /// The kinds of outside memory that the location represents, with the bits of [`Flags::constant_kinds`].
    fn outside_kinds(self) -> u8 {
        (self.0 >> 5 & 3) as u8
    }

    /// Whether locations with these flags overlap because of the flags alone.
    pub(crate) fn overlap(self, other: Flags) -> bool {
        self.shared_kinds() & other.outside_kinds() != 0 || other.shared_kinds() & self.outside_kinds() != 0
    }
}

/// The union-find of locations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locations {
    parent: Vec<u32>,
    flags: Vec<Flags>,
    /// Upper bound on the depth of the tree below each representative.
    rank: Vec<u8>,
    /// Whether locations were merged since the sets were normalized.
    pub(crate) merged: bool,
    /// The kinds of constants that the outside may share, as returned by [`Flags::shared_kinds`].
    shared: u8,
    /// The kinds among `shared` that nodes write.
    shared_written: u8,
    /// The kinds of outside memory that nodes write.
    outside_written: u8,
}

impl Locations {
    pub(crate) fn add(&mut self, flags: Flags) -> u32 {
        let loc = self.parent.len() as u32;
        self.parent.push(loc);
        self.flags.push(flags);
        self.rank.push(0);
        loc
    }

    pub(crate) fn len(&self) -> usize {
        self.parent.len()
    }

    /// Returns the representative of a location's class.
    pub(crate) fn find(&self, mut loc: u32) -> u32 {
        while self.parent[loc as usize] != loc {
            loc = self.parent[loc as usize];
        }
        loc
    }

    /// Returns the flags of a location, including those implied by the overlap of constants and outside memory. A
    /// constant counts as written if overlapping outside memory is written, or if it is reachable from outside after a
    /// run, and vice versa.
    pub(crate) fn flags(&self, loc: u32) -> Flags {
        let mut flags = self.flags[self.find(loc) as usize];
        let constants = flags.constant_kinds();
        let known_outside = flags.has(Flags(Flags::OUTPUT.0 | Flags::WILDCARD.0));
        if constants != 0 && known_outside
            || flags.shared_kinds() & self.outside_written != 0
            || flags.outside_kinds() & self.shared_written != 0
        {
            flags.0 |= Flags::WRITTEN.0;
        }
        flags
    }

    /// Returns the representative when overlapping locations count as equal: all that overlap are represented by
    /// `outside`.
    pub(crate) fn find_overlapping(&self, loc: u32, outside: u32) -> u32 {
        let rep = self.find(loc);
        let flags = self.flags[rep as usize];
        let overlaps = flags.shared_kinds() | flags.outside_kinds();
        if self.shared & overlaps != 0 { self.find(outside) } else { rep }
    }

    /// Whether there are constants that the outside may share, so that overlaps must be checked.
    pub(crate) fn has_shared(&self) -> bool {
        self.shared != 0
    }

    pub(crate) fn mark(&mut self, loc: u32, flags: Flags) {
        let rep = self.find(loc) as usize;
        self.flags[rep].0 |= flags.0;
        self.update_summary(rep);
    }

    /// Merges two locations. Returns the representative.
    pub(crate) fn merge(&mut self, a: u32, b: u32) -> u32 {
        let (a, b) = (self.halve(a), self.halve(b));
        if a == b {
            return a;
        }
        let (keep, merged) = if self.rank[a as usize] >= self.rank[b as usize] { (a, b) } else { (b, a) };
        if self.rank[keep as usize] == self.rank[merged as usize] {
            self.rank[keep as usize] += 1;
        }
        self.parent[merged as usize] = keep;
        let flags = self.flags[merged as usize];
        self.flags[keep as usize].0 |= flags.0;
        self.update_summary(keep as usize);
        self.merged = true;
        keep
    }

    fn halve(&mut self, mut loc: u32) -> u32 {
        while self.parent[loc as usize] != loc {
            let up = self.parent[self.parent[loc as usize] as usize];
            self.parent[loc as usize] = up;
            loc = up;
        }
        loc
    }

    /// Makes every location point directly at its representative.
    pub(crate) fn flatten(&mut self) {
        for loc in 0..self.parent.len() as u32 {
            self.parent[loc as usize] = self.find(loc);
        }
    }

    /// Updates the summaries over all classes after a change to one class.
    fn update_summary(&mut self, rep: usize) {
        let flags = self.flags[rep];
        self.shared |= flags.shared_kinds();
        if flags.has(Flags::WRITTEN) {
            self.shared_written |= flags.shared_kinds();
            self.outside_written |= flags.outside_kinds();
        }
    }
}

/// A set of locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LocSet(u32);

const SINGLE: u32 = 1 << 31;

impl LocSet {
    pub(crate) const EMPTY: LocSet = LocSet(0);

    pub(crate) fn single(loc: u32) -> LocSet {
        LocSet(loc | SINGLE)
    }

    pub(crate) fn as_single(self) -> Option<u32> {
        (self.0 & SINGLE != 0).then_some(self.0 & !SINGLE)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the row index, for sets with more than one member.
    pub(crate) fn row(self) -> Option<usize> {
        (self.0 != 0 && self.0 & SINGLE == 0).then_some(self.0 as usize)
    }
}

type Word = (u32, u64);

/// The table of sets with more than one member.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    words: Vec<Word>,
    /// Start and length of each row; row 0 is the empty set.
    rows: Vec<(u32, u32)>,
    index: HashTable<u32>,
    unions: HashMap<(u32, u32), LocSet, FxBuildHasher>,
}

/// The members of a set with more words (of 64 locations each) are merged.
const MAX_WORDS: usize = 1024;
/// The same bound once the total size of the sets is large for the number of locations. That happens only for chains of
/// growing sets.
const MAX_WORDS_WHEN_FULL: usize = 8;

impl Sets {
    pub(crate) fn new() -> Self {
        Sets { words: Vec::new(), rows: vec![(0, 0)], index: HashTable::new(), unions: HashMap::default() }
    }

    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    fn row_words(&self, row: usize) -> &[Word] {
        let (start, len) = self.rows[row];
        &self.words[start as usize..(start + len) as usize]
    }

    /// Returns the members, in order.
    pub(crate) fn iter(&self, set: LocSet) -> impl Iterator<Item = u32> + '_ {
        let one = set.as_single();
        let words = if one.is_some() { &[] } else { self.row_words(set.0 as usize) };
        one.into_iter().chain(words.iter().flat_map(|&(at, bits)| Bits(bits).map(move |bit| at * 64 + bit)))
    }

    fn words_of<'a>(&'a self, set: LocSet, buffer: &'a mut [Word; 1]) -> &'a [Word] {
        match set.as_single() {
            Some(loc) => {
                buffer[0] = (loc / 64, 1 << (loc % 64));
                buffer
            }
            None => self.row_words(set.0 as usize),
        }
    }

    /// Returns the union. Above the size bound, merges all members into one location.
    pub(crate) fn union(&mut self, a: LocSet, b: LocSet, locations: &mut Locations) -> LocSet {
        if a == b || b.is_empty() {
            return a;
        }
        if a.is_empty() {
            return b;
        }
        let key = if a.0 < b.0 { (a.0, b.0) } else { (b.0, a.0) };
        if let Some(&known) = self.unions.get(&key) {
            return known;
        }
        let (mut one, mut other) = ([(0, 0)], [(0, 0)]);
        let merged = merge_words(self.words_of(a, &mut one), self.words_of(b, &mut other));
        let full = self.words.len() > 4 * locations.len() + (1 << 16);
        let set = if merged.len() > if full { MAX_WORDS_WHEN_FULL } else { MAX_WORDS } {
            let mut all = merged.iter().flat_map(|&(at, bits)| Bits(bits).map(move |bit| at * 64 + bit));
            let first = all.next().expect("invariant: a long set has members");
            LocSet::single(all.fold(first, |rep, loc| locations.merge(rep, loc)))
        } else {
            self.intern(&merged)
        };
        self.unions.insert(key, set);
        set
    }

    fn intern(&mut self, words: &[Word]) -> LocSet {
        if let [(at, bits)] = *words
            && bits.is_power_of_two()
        {
            return LocSet::single(at * 64 + bits.trailing_zeros());
        }
        let hash = hash_words(words);
        let (rows, all) = (&self.rows, &self.words);
        let slice = |row: u32| {
            let (start, len) = rows[row as usize];
            &all[start as usize..(start + len) as usize]
        };
        if let Some(&row) = self.index.find(hash, |&row| slice(row) == words) {
            return LocSet(row);
        }
        let row = self.rows.len() as u32;
        self.rows.push((self.words.len() as u32, words.len() as u32));
        self.words.extend_from_slice(words);
        let (rows, all) = (&self.rows, &self.words);
        self.index.insert_unique(hash, row, |&row| {
            let (start, len) = rows[row as usize];
            hash_words(&all[start as usize..(start + len) as usize])
        });
        LocSet(row)
    }

    /// Rewrites all sets in terms of representatives. Returns, for each old row, the new set.
    pub(crate) fn normalise(&mut self, locations: &Locations) -> Vec<LocSet> {
        let old = std::mem::replace(self, Sets::new());
        (0..old.rows.len())
            .map(|row| {
                let mut members: Vec<u32> =
                    old.iter(LocSet(row as u32)).map(|loc| locations.find(loc)).collect();
                members.sort_unstable();
                let mut words: Vec<Word> = Vec::new();
                for loc in members {
                    match words.last_mut() {
                        Some((at, bits)) if *at == loc / 64 => *bits |= 1 << (loc % 64),
                        _ => words.push((loc / 64, 1 << (loc % 64))),
                    }
                }
                if words.is_empty() { LocSet::EMPTY } else { self.intern(&words) }
            })
            .collect()
    }

    /// Returns the union of the flags of all members.
    pub(crate) fn flags(&self, set: LocSet, locations: &Locations) -> Flags {
        Flags(self.iter(set).fold(0, |flags, loc| flags | locations.flags(loc).0))
    }

    /// Whether two sets share a location, or have locations that overlap.
    pub(crate) fn may_overlap(&self, a: LocSet, b: LocSet, locations: &Locations) -> bool {
        if a.is_empty() || b.is_empty() {
            return false;
        }
        self.share(a, b, locations)
            || locations.has_shared() && self.flags(a, locations).overlap(self.flags(b, locations))
    }

    fn share(&self, a: LocSet, b: LocSet, locations: &Locations) -> bool {
        if a == b {
            return true;
        }
        if let (Some(x), Some(y)) = (a.as_single(), b.as_single()) {
            return locations.find(x) == locations.find(y);
        }
        if locations.merged {
            let mut names: Vec<u32> = self.iter(a).map(|loc| locations.find(loc)).collect();
            names.sort_unstable();
            return self.iter(b).any(|loc| names.binary_search(&locations.find(loc)).is_ok());
        }
        let (mut one, mut other) = ([(0, 0)], [(0, 0)]);
        let (x, y) = (self.words_of(a, &mut one), self.words_of(b, &mut other));
        let (mut i, mut j) = (0, 0);
        while let (Some(&(p, v)), Some(&(q, w))) = (x.get(i), y.get(j)) {
            if p == q && v & w != 0 {
                return true;
            }
            i += usize::from(p <= q);
            j += usize::from(q <= p);
        }
        false
    }
}

struct Bits(u64);

impl Iterator for Bits {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

fn merge_words(x: &[Word], y: &[Word]) -> Vec<Word> {
    let mut result = Vec::with_capacity(x.len() + y.len());
    let (mut i, mut j) = (0, 0);
    loop {
        match (x.get(i), y.get(j)) {
            (Some(&a), Some(&b)) => {
                let at = a.0.min(b.0);
                let mut bits = 0;
                if a.0 == at {
                    bits |= a.1;
                    i += 1;
                }
                if b.0 == at {
                    bits |= b.1;
                    j += 1;
                }
                result.push((at, bits));
            }
            (Some(_), None) => {
                result.extend_from_slice(&x[i..]);
                return result;
            }
            _ => {
                result.extend_from_slice(&y[j..]);
                return result;
            }
        }
    }
}

fn hash_words(words: &[Word]) -> u64 {
    let mut hasher = FxHasher::default();
    for &(at, bits) in words {
        hasher.write_u32(at);
        hasher.write_u64(bits);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_shared_and_bounded() {
        let (mut sets, mut locations) = (Sets::new(), Locations::default());
        let all: Vec<u32> = (0..100_000).map(|_| locations.add(Flags::NONE)).collect();
        let ab = sets.union(LocSet::single(all[1]), LocSet::single(all[70]), &mut locations);
        let ba = sets.union(LocSet::single(all[70]), LocSet::single(all[1]), &mut locations);
        assert_eq!(ab, ba);
        assert_eq!(sets.iter(ab).collect::<Vec<_>>(), [1, 70]);
        assert!(sets.may_overlap(ab, LocSet::single(70), &locations));
        assert!(!sets.may_overlap(ab, LocSet::single(71), &locations));
        let mut grown = LocSet::EMPTY;
        for &loc in all.iter().step_by(64) {
            grown = sets.union(grown, LocSet::single(loc), &mut locations);
        }
        assert!(sets.words.len() < 600_000, "merging keeps sets small");
        assert!(sets.may_overlap(grown, LocSet::single(0), &locations));
        assert!(sets.may_overlap(grown, LocSet::single(64 * 1000), &locations));
        assert!(!sets.may_overlap(grown, LocSet::single(65), &locations));
        locations.flatten();
        let map = sets.normalise(&locations);
        locations.merged = false;
        let grown = grown.row().map_or(grown, |row| map[row]);
        assert!(sets.may_overlap(grown, LocSet::single(locations.find(64)), &locations));
    }

    const EXTERNAL: Flags = Flags(Flags::WILDCARD.0 | Flags::EXTERNAL_TENSOR.0);

    fn locations_with<const N: usize>(flags: [Flags; N]) -> (Locations, [u32; N]) {
        let mut locations = Locations::default();
        let all = flags.map(|flags| {
            let loc = locations.add(Flags::NONE);
            locations.mark(loc, flags);
            loc
        });
        (locations, all)
    }

    #[test]
    fn flags_follow_classes() {
        let (mut locations, [a, b]) = locations_with([Flags::CONSTANT_TENSOR, Flags::WILDCARD]);
        assert!(!locations.flags(a).has(Flags::WRITTEN));
        locations.merge(a, b);
        assert!(locations.flags(b).has(Flags::WRITTEN), "the outside may change the constant");
    }

    #[test]
    fn constants_overlap_the_wildcard_but_not_each_other() {
        let constant = Flags(Flags::CONSTANT_TENSOR.0 | Flags::SHARED_TENSOR.0);
        let container = Flags(Flags::CONSTANT_CONTAINER.0 | Flags::SHARED_CONTAINER.0);
        let (mut locations, [a, b, outside, list]) =
            locations_with([constant, constant, EXTERNAL, container]);
        let sets = Sets::new();
        let meet = |x, y| sets.may_overlap(LocSet::single(x), LocSet::single(y), &locations);
        assert!(meet(a, outside) && meet(outside, b) && !meet(a, b) && !meet(list, outside));
        let written =
            |locations: &Locations| [a, b, outside, list].map(|loc| locations.flags(loc).has(Flags::WRITTEN));
        assert_eq!(written(&locations), [false, false, false, false]);
        let mut one = locations.clone();
        one.mark(a, Flags::WRITTEN);
        assert_eq!(written(&one), [true, false, true, false]);
        locations.mark(outside, Flags::WRITTEN);
        assert_eq!(written(&locations), [true, true, true, false]);
    }
}
