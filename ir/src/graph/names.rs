//! Names of values: a number from an increasing counter, or a debug name that is unique in the graph.
//!
//! If a debug name is assigned twice, the newer value gets it and the older value is renamed to `base.N` with the next
//! free number. TorchScript does the same, so printed programs agree with PyTorch's.

use super::Graph;
use crate::id::ValueId;
use crate::symbol::Symbol;
use hashbrown::{HashMap, HashSet, HashTable};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::fmt;
use std::hash::BuildHasher;

const NAMED: u32 = 1 << 31;

/// The printed name of a value without the percent sign: `7` or `x.1`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValueName(u32);

impl ValueName {
    /// Returns the number of an unnamed value.
    pub fn number(self) -> Option<u32> {
        (self.0 & NAMED == 0).then_some(self.0)
    }

    /// Returns the debug name of a named value.
    pub fn symbol(self) -> Option<Symbol> {
        (self.0 & NAMED != 0).then(|| Symbol::from_raw(self.0 & !NAMED))
    }

    fn named(symbol: Symbol) -> ValueName {
        ValueName(symbol.raw() | NAMED)
    }
}

impl fmt::Display for ValueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol() {
            Some(symbol) => f.write_str(symbol.as_str()),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for ValueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{self}")
    }
}

/// The debug names in use, and the counters for numbers and suffixes.
#[derive(Clone)]
pub(crate) struct NameTable {
    next_number: u32,
    /// Slots of values with debug names, hashed by the name in the value's row. A name must be removed from this table
    /// before the row changes.
    owner: HashTable<u32>,
    next_suffix: HashMap<Symbol, u64, FxBuildHasher>,
    /// Names that are reserved without belonging to a value.
    taken: HashSet<Symbol, FxBuildHasher>,
}

impl NameTable {
    pub(super) fn new() -> Self {
        NameTable {
            next_number: 0,
            owner: HashTable::new(),
            next_suffix: HashMap::default(),
            taken: HashSet::default(),
        }
    }

    pub(super) fn fresh(&mut self) -> ValueName {
        let name = ValueName(self.next_number);
        self.next_number += 1;
        assert!(self.next_number < NAMED, "graph too large: 2^31 names given out");
        name
    }

    pub(super) fn release(&mut self, name: ValueName, value: u32) {
        if name.symbol().is_some()
            && let Ok(entry) = self.owner.find_entry(hash(name), |&v| v == value)
        {
            entry.remove();
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        // Each entry has a control byte, and at most seven of eight buckets are in use.
        let taken = self.taken.capacity() * 8 / 7 * (size_of::<Symbol>() + 1);
        self.owner.capacity() * 8 / 7 * (size_of::<u32>() + 1)
            + self.next_suffix.capacity() * 8 / 7 * 17
            + taken
    }

    /// Returns the next number to try as a suffix of `base`. TorchScript stores the number after the one it used and
    /// starts at the number after that, which yields 1, 3, 5, ...
    fn next_suffix_of(&self, base: Symbol, least: u64) -> u64 {
        self.next_suffix.get(&base).map_or(least, |next| least.max(next.wrapping_add(1)))
    }

    /// Advances the suffix counter as if the holder of a reserved name were renamed; the numbered name is not used.
    fn skip_suffix_of(&mut self, name: Symbol) {
        let next = self.next_suffix_of(name, 1).wrapping_add(1);
        self.next_suffix.insert(name, next);
    }
}

fn hash(name: ValueName) -> u64 {
    FxBuildHasher.hash_one(name)
}

/// Returns `x.12` for `x` and 12.
fn numbered(base: &str, number: u64) -> Symbol {
    let mut text: SmallVec<[u8; 48]> = SmallVec::from_slice(base.as_bytes());
    text.push(b'.');
    let start = text.len();
    let mut rest = number;
    loop {
        text.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text[start..].reverse();
    Symbol::new(std::str::from_utf8(&text).expect("invariant: a name and digits are text"))
}

/// Splits `x.12` into `x` and 12.
fn split_suffix(text: &str) -> (&str, Option<u64>) {
    // A name without a digit at the end has no suffix.
    if !text.ends_with(|c: char| c.is_ascii_digit()) {
        return (text, None);
    }
    match text.rsplit_once('.') {
        Some((base, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            match digits.parse() {
                Ok(n) => (base, Some(n)),
                Err(_) => (text, None),
            }
        }
        _ => (text, None),
    }
}

impl Graph {
    /// Returns the name a value is printed with.
    pub fn name(&self, value: ValueId) -> ValueName {
        self.values.get(value).name
    }

    /// Returns whether a value has a debug name rather than a number.
    pub fn has_debug_name(&self, value: ValueId) -> bool {
        self.name(value).symbol().is_some()
    }

    /// Returns the value with a debug name.
    pub fn value_named(&self, name: Symbol) -> Option<ValueId> {
        self.slot_with_name(name).map(|slot| self.values.key(slot))
    }

    fn slot_with_name(&self, symbol: Symbol) -> Option<u32> {
        let name = ValueName::named(symbol);
        self.names.owner.find(hash(name), |&v| self.values.at(v).name == name).copied()
    }

    /// Assigns a debug name to a value. The caller has released the value's old name, and no other value has the new
    /// one.
    fn assign_name(&mut self, value: u32, symbol: Symbol) {
        let name = ValueName::named(symbol);
        self.values.at_mut(value).name = name;
        let values = &self.values;
        self.names.owner.insert_unique(hash(name), value, |&v| hash(values.at(v).name));
    }

    pub(crate) fn raw_set_name(&mut self, value: u32, symbol: Symbol) {
        let wanted = ValueName::named(symbol);
        let current = self.values.at(value).name;
        if current == wanted {
            return;
        }
        self.names.release(current, value);
        if self.names.taken.remove(&symbol) {
            self.names.skip_suffix_of(symbol);
        }
        self.rename_holder(symbol);
        self.assign_name(value, symbol);
    }

    /// Renames the value that has the name `symbol`, if any, to the next free numbered name.
    fn rename_holder(&mut self, symbol: Symbol) {
        if let Some(older) = self.slot_with_name(symbol) {
            let moved = self.next_free_name(symbol);
            self.names.release(ValueName::named(symbol), older);
            self.assign_name(older, moved);
        }
    }

    pub(crate) fn raw_take_name(&mut self, symbol: Symbol) {
        if self.names.taken.insert(symbol) {
            self.rename_holder(symbol);
        } else {
            self.names.skip_suffix_of(symbol);
        }
    }

    pub(crate) fn raw_release_names(&mut self) {
        self.names.taken = HashSet::default();
    }

    fn next_free_name(&mut self, symbol: Symbol) -> Symbol {
        let (base, suffix) = split_suffix(symbol.as_str());
        let base_symbol = if suffix.is_none() { symbol } else { Symbol::new(base) };
        let mut n = self.names.next_suffix_of(base_symbol, suffix.unwrap_or(1));
        loop {
            let candidate = numbered(base, n);
            n = n.wrapping_add(1);
            if self.slot_with_name(candidate).is_none() {
                self.names.next_suffix.insert(base_symbol, n);
                return candidate;
            }
        }
    }

    /// Removes a debug name; the value gets the next number.
    pub(crate) fn raw_clear_name(&mut self, value: u32) {
        let current = self.values.at(value).name;
        self.names.release(current, value);
        let fresh = self.names.fresh();
        self.values.at_mut(value).name = fresh;
    }

    /// Sets the number of a value read from text and advances the counter past it. The parser checks that numbers are
    /// unique.
    pub(crate) fn raw_set_number(&mut self, value: u32, number: u32) {
        let current = self.values.at(value).name;
        self.names.release(current, value);
        self.values.at_mut(value).name = ValueName(number & !NAMED);
        self.names.next_number = self.names.next_number.max((number & !NAMED) + 1);
    }

    /// Gives a value the next number of the counter.
    pub(crate) fn raw_set_fresh_number(&mut self, value: u32) {
        let fresh = self.names.fresh();
        self.names.release(self.values.at(value).name, value);
        self.values.at_mut(value).name = fresh;
    }

    /// Numbers unnamed values by their positions in the given order, in which named values count as well, and restarts the counter
    /// after them.
    pub(crate) fn raw_renumber(&mut self, order: impl Iterator<Item = u32>) {
        self.names.next_number = 0;
        for value in order {
            let position = self.names.fresh();
            if self.values.at(value).name.number().is_some() {
                self.values.at_mut(value).name = position;
            }
        }
    }
}
