//! Dictionaries: shared, lockable, in insertion order.
//!
//! Entries are stored in a vector in insertion order; a hash table maps keys to positions. A removed entry leaves a
//! gap, and the vector is compacted when more than half of it is gaps. Hence every operation is O(1) amortised,
//! including the removal of the first entry.
//!
//! A key is looked up in the form in which the caller has it ([`DictKey`]), so that the machine need not make a value of an
//! integer. Hashes are seeded per process ([`super::compare`]): keys that an adversary chooses do not collide on purpose.

use flambeau_tensor::Shared;
use hashbrown::HashTable;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::compare::hash_int;
use super::{IValue, Str, ValueError, walk};
use crate::types::{Type, TypeCell};

/// A dictionary. Clones of the handle share the contents. Locks are not reentrant.
#[derive(Clone)]
pub struct Dict(Shared<Data>);

struct Data {
    key: TypeCell,
    value: TypeCell,
    map: RwLock<DictMap>,
}

#[derive(Clone)]
struct Entry {
    hash: u64,
    key: IValue,
    value: IValue,
}

/// The key of a lookup: a value, or what a value of one kind consists of.
pub trait DictKey {
    /// Returns the hash, consistent with [`DictKey::is`].
    ///
    /// # Errors
    /// Returns [`ValueError::Unhashable`] if the key is of a kind without a hash.
    fn key_hash(&self) -> Result<u64, ValueError>;
    /// Returns whether this is the key of an entry.
    fn is(&self, key: &IValue) -> bool;
    /// Returns the key of a new entry.
    fn to_value(&self) -> IValue;
}

impl DictKey for i64 {
    #[inline]
    fn key_hash(&self) -> Result<u64, ValueError> {
        Ok(hash_int(*self))
    }

    #[inline]
    fn is(&self, key: &IValue) -> bool {
        matches!(key, IValue::Int(i) if i == self)
    }

    #[inline]
    fn to_value(&self) -> IValue {
        IValue::Int(*self)
    }
}

impl DictKey for Str {
    #[inline]
    fn key_hash(&self) -> Result<u64, ValueError> {
        Ok(self.hash_bytes())
    }

    #[inline]
    fn is(&self, key: &IValue) -> bool {
        // The hash of an entry's key is in the string, so most different strings differ without a look at their bytes.
        let same = |key: &Str| self.hash_bytes() == key.hash_bytes() && self == key;
        matches!(key, IValue::Str(key) if self.ptr_eq(key) || same(key))
    }

    #[inline]
    fn to_value(&self) -> IValue {
        IValue::Str(self.clone())
    }
}

impl DictKey for IValue {
    #[inline]
    fn key_hash(&self) -> Result<u64, ValueError> {
        match self {
            Self::Int(i) => i.key_hash(),
            Self::Str(text) => text.key_hash(),
            other => other.other_key_hash(),
        }
    }

    #[inline]
    fn is(&self, key: &IValue) -> bool {
        match self {
            Self::Int(i) => i.is(key),
            Self::Str(text) => text.is(key),
            other => other.is_same(key),
        }
    }

    #[inline]
    fn to_value(&self) -> IValue {
        self.clone()
    }
}

/// The entries. Keys are integers, floats, bools, strings, complex numbers, devices, enum members and `None` (compared
/// by value), and tensors (compared by identity).
#[derive(Clone, Default)]
pub struct DictMap {
    table: HashTable<u32>,
    entries: Vec<Option<Entry>>,
    /// Position before which there are no live entries.
    head: usize,
    live: usize,
    recent: Recent,
}

/// Position of the key that was found last. Programs often ask whether a key is present, then read it, then write it.
/// Only a hint, hence relaxed: readers compare the key.
#[derive(Default)]
struct Recent(AtomicU32);

impl Clone for Recent {
    fn clone(&self) -> Self {
        Self(AtomicU32::new(self.0.load(Relaxed)))
    }
}

impl DictMap {
    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Returns the position of a key.
    #[inline]
    fn position<K: DictKey>(&self, key: &K) -> Result<Option<usize>, ValueError> {
        let recent = self.recent.0.load(Relaxed) as usize;
        if let Some(Some(entry)) = self.entries.get(recent)
            && key.is(&entry.key)
        {
            return Ok(Some(recent));
        }
        let hash = key.key_hash()?;
        let same = |&i: &u32| {
            self.entries.get(i as usize).is_some_and(|e| e.as_ref().is_some_and(|e| key.is(&e.key)))
        };
        let at = self.table.find(hash, same).copied();
        at.into_iter().for_each(|at| self.recent.0.store(at, Relaxed));
        Ok(at.map(|at| at as usize))
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// Returns [`ValueError::Unhashable`] if the key is of a kind without a hash.
    #[inline]
    pub fn get<K: DictKey>(&self, key: &K) -> Result<Option<&IValue>, ValueError> {
        Ok(self.position(key)?.and_then(|i| self.entries[i].as_ref()).map(|e| &e.value))
    }

    /// Returns the value of a key for modification.
    ///
    /// # Errors
    /// Returns [`ValueError::Unhashable`] if the key is of a kind without a hash.
    #[inline]
    pub fn get_mut<K: DictKey>(&mut self, key: &K) -> Result<Option<&mut IValue>, ValueError> {
        Ok(self.position(key)?.and_then(|i| self.entries[i].as_mut()).map(|e| &mut e.value))
    }

    /// Sets the value of a key and returns the old value. A key that is already present keeps its position.
    ///
    /// # Errors
    /// Returns [`ValueError::Unhashable`] if the key is of a kind without a hash.
    pub fn insert(&mut self, key: IValue, value: IValue) -> Result<Option<IValue>, ValueError> {
        if let Some(old) = self.get_mut(&key)? {
            return Ok(Some(std::mem::replace(old, value)));
        }
        self.add(key.key_hash()?, key, value);
        Ok(None)
    }

    /// Adds an entry for a key that is absent.
    fn add(&mut self, hash: u64, key: IValue, value: IValue) {
        let at = u32::try_from(self.entries.len()).expect("invariant: fewer than 2^32 entries fit in memory");
        self.entries.push(Some(Entry { hash, key, value }));
        let Self { table, entries, .. } = self;
        table.insert_unique(hash, at, |&i| entries[i as usize].as_ref().map_or(0, |e| e.hash));
        self.recent.0.store(at, Relaxed);
        self.live += 1;
    }

    /// Removes a key and returns its value.
    ///
    /// # Errors
    /// Returns [`ValueError::Unhashable`] if the key is of a kind without a hash.
    pub fn remove<K: DictKey>(&mut self, key: &K) -> Result<Option<IValue>, ValueError> {
        Ok(self.position(key)?.map(|i| self.take(i).1))
    }

    /// Removes and returns the first entry.
    pub fn pop_first(&mut self) -> Option<(IValue, IValue)> {
        while self.head < self.entries.len() {
            if self.entries[self.head].is_some() {
                return Some(self.take(self.head));
            }
            self.head += 1;
        }
        None
    }

    fn take(&mut self, at: usize) -> (IValue, IValue) {
        let entry = self.entries[at].take().expect("invariant: the table names live entries");
        let found = self.table.find_entry(entry.hash, |&i| i as usize == at);
        found.expect("invariant: live entries are in the table").remove();
        self.live -= 1;
        if self.entries.len() > 16 && self.live < self.entries.len() / 2 {
            self.compact();
        }
        (entry.key, entry.value)
    }

    fn compact(&mut self) {
        self.entries.retain(Option::is_some);
        self.head = 0;
        self.table.clear();
        let Self { table, entries, .. } = self;
        for (i, entry) in entries.iter().flatten().enumerate() {
            let rehash = |&i: &u32| entries[i as usize].as_ref().map_or(0, |e| e.hash);
            table.insert_unique(entry.hash, i as u32, rehash);
        }
    }

    /// Whether positions of entries count from 0 without gaps, as for [`DictMap::entry`].
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.entries.len() == self.live
    }

    /// Closes the gaps of removed entries; see [`DictMap::is_dense`].
    pub fn close_gaps(&mut self) {
        if !self.is_dense() {
            self.compact();
        }
    }

    /// Returns key and value of the entry at a position, in insertion order; `None` behind the last one and in a gap.
    #[inline]
    #[must_use]
    pub fn entry(&self, at: usize) -> Option<(&IValue, &IValue)> {
        let entry = self.entries.get(at)?.as_ref()?;
        Some((&entry.key, &entry.value))
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        walk::drop_nested(self.drain());
        *self = Self::default();
    }

    fn drain(&mut self) -> Vec<IValue> {
        self.live = 0;
        self.table.clear();
        std::mem::take(&mut self.entries).into_iter().flatten().flat_map(|e| [e.key, e.value]).collect()
    }

    /// Returns keys and values in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = (&IValue, &IValue)> {
        self.entries[self.head.min(self.entries.len())..].iter().flatten().map(|e| (&e.key, &e.value))
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let map = self.map.get_mut();
        if map.iter().any(|(k, v)| walk::is_container(k) || walk::is_container(v)) {
            walk::drop_nested(map.drain());
        }
    }
}

impl Dict {
    /// Creates an empty dictionary.
    #[must_use]
    pub fn new(key: Type, value: Type) -> Self {
        Self::from_map(key, value, DictMap::default())
    }

    /// Creates a dictionary with these entries.
    #[must_use]
    pub fn from_map(key: Type, value: Type, map: DictMap) -> Self {
        let (key, value) = (TypeCell::new(key), TypeCell::new(value));
        Self(Shared::new(Data { key, value, map: RwLock::new(map) }))
    }

    /// Returns the type of the keys.
    #[must_use]
    pub fn key_type(&self) -> Type {
        self.0.key.get()
    }

    /// Returns the type of the values.
    #[must_use]
    pub fn value_type(&self) -> Type {
        self.0.value.get()
    }

    /// Sets the types; for archive loaders, which read the contents before the types.
    pub fn set_types(&self, key: Type, value: Type) {
        self.0.key.set(key);
        self.0.value.set(value);
    }

    /// Returns the entries without locking if this is the only handle.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut DictMap> {
        self.0.get_mut().map(|data| data.map.get_mut())
    }

    /// Locks the entries for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, DictMap> {
        self.0.map.read()
    }

    /// Locks the entries for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, DictMap> {
        self.0.map.write()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// Returns [`ValueError::Unhashable`] if the key is of a kind without a hash.
    pub fn get<K: DictKey>(&self, key: &K) -> Result<Option<IValue>, ValueError> {
        Ok(self.read().get(key)?.cloned())
    }

    /// Sets the value of a key and returns the old value.
    ///
    /// # Errors
    /// Returns [`ValueError::Unhashable`] if the key is of a kind without a hash.
    pub fn insert(&self, key: IValue, value: IValue) -> Result<Option<IValue>, ValueError> {
        self.write().insert(key, value)
    }

    /// Returns a snapshot of the entries.
    #[must_use]
    pub fn to_vec(&self) -> Vec<(IValue, IValue)> {
        self.read().iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// Returns a new dictionary with the same entries.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self::from_map(self.key_type(), self.value_type(), self.read().clone())
    }

    /// Returns whether both handles refer to the same dictionary.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }

    /// Returns the identity of the dictionary, unique while the dictionary exists.
    #[must_use]
    pub fn id(&self) -> usize {
        self.0.address()
    }

    pub(super) fn take_children(mut self, into: &mut Vec<IValue>) {
        if let Some(map) = self.get_mut() {
            into.append(&mut map.drain());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_through_removals() {
        let d = Dict::new(Type::INT, Type::INT);
        let mut map = d.write();
        for i in 0..1000 {
            map.insert(IValue::Int(i), IValue::Int(i * i)).unwrap();
        }
        for i in (0..1000).filter(|i| i % 3 != 0) {
            assert_eq!(map.remove(&IValue::Int(i)).unwrap().and_then(|v| v.as_int()), Some(i * i));
        }
        let keys: Vec<i64> = map.iter().map(|(k, _)| k.as_int().unwrap()).collect();
        assert_eq!(keys, (0..1000).step_by(3).collect::<Vec<_>>());
        assert_eq!(map.pop_first().and_then(|(k, _)| k.as_int()), Some(0));
        assert_eq!(map.pop_first().and_then(|(k, _)| k.as_int()), Some(3));
        assert_eq!(map.len(), 332);
        map.clear();
        assert!(map.is_empty() && map.pop_first().is_none());
    }

    #[test]
    fn keys_compare_by_value_and_kind() {
        let d = Dict::new(Type::ANY, Type::INT);
        d.insert(IValue::Int(1), IValue::Int(1)).unwrap();
        d.insert(IValue::Float(1.0), IValue::Int(2)).unwrap();
        d.insert(IValue::str("a"), IValue::Int(3)).unwrap();
        d.insert(IValue::Float(-0.0), IValue::Int(4)).unwrap();
        assert_eq!(d.get(&IValue::Float(1.0)).unwrap().and_then(|v| v.as_int()), Some(2));
        assert_eq!(d.get(&IValue::str("a")).unwrap().and_then(|v| v.as_int()), Some(3));
        assert_eq!(d.get(&IValue::Float(0.0)).unwrap().and_then(|v| v.as_int()), Some(4));
        assert_eq!(
            d.insert(IValue::ints(vec![]), IValue::None).err(),
            Some(ValueError::Unhashable("GenericList"))
        );
    }
}
