//! Names of values: a number from a counter that never runs backwards, or a debug name unique in the graph.
//!
//! A debug name asked for twice goes to the newer value; the older one moves on to `base.N` with the next free
//! number, as TorchScript does, so that printed programs agree.

use super::Graph;
use crate::id::ValueId;
use crate::symbol::Symbol;
use hashbrown::{HashMap, HashSet, HashTable};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::fmt;
use std::hash::BuildHasher;

const NAMED: u32 = 1 << 31;

/// How a value is written: `%7` or `%x.1` (without the percent sign).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(u32);

impl Name {
    /// The number of an unnamed value.
    pub fn number(self) -> Option<u32> {
        (self.0 & NAMED == 0).then_some(self.0)
    }

    /// The debug name of a named value.
    pub fn symbol(self) -> Option<Symbol> {
        (self.0 & NAMED != 0).then(|| Symbol::from_raw(self.0 & !NAMED))
    }

    fn named(symbol: Symbol) -> Name {
        Name(symbol.raw() | NAMED)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol() {
            Some(symbol) => f.write_str(symbol.as_str()),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{self}")
    }
}

/// The names in use and the counters behind them.
#[derive(Clone)]
pub(crate) struct NameTable {
    next_number: u32,
    /// Values with debug names, found by the names in their rows: a name is taken out before its row changes.
    owner: HashTable<u32>,
    next_suffix: HashMap<Symbol, u64, FxBuildHasher>,
    /// Names held by nobody in particular.
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

    pub(super) fn fresh(&mut self) -> Name {
        let name = Name(self.next_number);
        self.next_number += 1;
        assert!(self.next_number < NAMED, "graph too large: 2^31 names given out");
        name
    }

    pub(super) fn release(&mut self, name: Name, value: u32) {
        if name.symbol().is_some()
            && let Ok(entry) = self.owner.find_entry(hash(name), |&v| v == value)
        {
            entry.remove();
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        // An entry and a control byte each, at most seven of eight places in use.
        let taken = self.taken.capacity() * 8 / 7 * (size_of::<Symbol>() + 1);
        self.owner.capacity() * 8 / 7 * (size_of::<u32>() + 1)
            + self.next_suffix.capacity() * 8 / 7 * 17
            + taken
    }

    /// The next number to try behind `base`. TorchScript remembers the suffix after the last one and goes on behind
    /// that: 1, 3, 5, ...
    fn next_number(&self, base: Symbol, least: u64) -> u64 {
        self.next_suffix.get(&base).map_or(least, |next| least.max(next.wrapping_add(1)))
    }

    /// Who holds a taken name moves on to a numbered one, which nobody will ever see.
    fn move_taken(&mut self, name: Symbol) {
        let next = self.next_number(name, 1).wrapping_add(1);
        self.next_suffix.insert(name, next);
    }
}

fn hash(name: Name) -> u64 {
    FxBuildHasher.hash_one(name)
}

/// `x.12` from `x` and 12.
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
    // Only what ends in a digit has a suffix.
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
    /// The name a value is printed with.
    pub fn name(&self, value: ValueId) -> Name {
        self.values.get(value).name
    }

    /// Whether a value carries a debug name (and not just a number).
    pub fn has_debug_name(&self, value: ValueId) -> bool {
        self.name(value).symbol().is_some()
    }

    /// The value with a debug name.
    pub fn value_named(&self, name: Symbol) -> Option<ValueId> {
        self.bearer(name).map(|slot| self.values.key(slot))
    }

    fn bearer(&self, symbol: Symbol) -> Option<u32> {
        let name = Name::named(symbol);
        self.names.owner.find(hash(name), |&v| self.values.at(v).name == name).copied()
    }

    /// Names a value whose old name was released, and which nobody else has.
    fn own(&mut self, value: u32, symbol: Symbol) {
        let name = Name::named(symbol);
        self.values.at_mut(value).name = name;
        let values = &self.values;
        self.names.owner.insert_unique(hash(name), value, |&v| hash(values.at(v).name));
    }

    pub(crate) fn raw_set_name(&mut self, value: u32, symbol: Symbol) {
        let wanted = Name::named(symbol);
        let current = self.values.at(value).name;
        if current == wanted {
            return;
        }
        self.names.release(current, value);
        if self.names.taken.remove(&symbol) {
            self.names.move_taken(symbol);
        }
        self.displace(symbol);
        self.own(value, symbol);
    }

    /// Who has a name moves on to a numbered one.
    fn displace(&mut self, symbol: Symbol) {
        if let Some(older) = self.bearer(symbol) {
            let moved = self.next_free_name(symbol);
            self.names.release(Name::named(symbol), older);
            self.own(older, moved);
        }
    }

    pub(crate) fn raw_take_name(&mut self, symbol: Symbol) {
        if self.names.taken.insert(symbol) {
            self.displace(symbol);
        } else {
            self.names.move_taken(symbol);
        }
    }

    pub(crate) fn raw_release_names(&mut self) {
        self.names.taken = HashSet::default();
    }

    fn next_free_name(&mut self, symbol: Symbol) -> Symbol {
        let (base, suffix) = split_suffix(symbol.as_str());
        let base_symbol = if suffix.is_none() { symbol } else { Symbol::new(base) };
        let mut n = self.names.next_number(base_symbol, suffix.unwrap_or(1));
        loop {
            let candidate = numbered(base, n);
            n = n.wrapping_add(1);
            if self.bearer(candidate).is_none() {
                self.names.next_suffix.insert(base_symbol, n);
                return candidate;
            }
        }
    }

    /// Drops a debug name; the value gets the next number.
    pub(crate) fn raw_clear_name(&mut self, value: u32) {
        let current = self.values.at(value).name;
        self.names.release(current, value);
        let fresh = self.names.fresh();
        self.values.at_mut(value).name = fresh;
    }

    /// Gives a value a number read from text; the counter moves behind it. The reader makes sure it is unique.
    pub(crate) fn raw_set_number(&mut self, value: u32, number: u32) {
        let current = self.values.at(value).name;
        self.names.release(current, value);
        self.values.at_mut(value).name = Name(number & !NAMED);
        self.names.next_number = self.names.next_number.max((number & !NAMED) + 1);
    }

    /// Renumbers: unnamed values get 0, 1, 2, … in the order given, and the counter restarts behind them.
    pub(crate) fn raw_renumber(&mut self, order: impl Iterator<Item = u32>) {
        self.names.next_number = 0;
        for value in order {
            if self.values.at(value).name.number().is_some() {
                let fresh = self.names.fresh();
                self.values.at_mut(value).name = fresh;
            }
        }
    }
}
