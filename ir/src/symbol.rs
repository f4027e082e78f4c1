//! Interned names.
//!
//! A [`Symbol`] is a 4-byte handle, so operator kinds, attribute names and value names compare in one instruction and
//! print without a context. The text of a symbol is never freed: names are few and repeat. Interning a known name takes
//! a read lock and one hash lookup. The map from handle to text takes no lock (`intern.rs`).

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::num::NonZeroU32;
use std::sync::LazyLock;

use hashbrown::HashTable;
use parking_lot::RwLock;
use rustc_hash::FxBuildHasher;

use crate::intern::AppendTable;

/// An interned name such as `aten::add`, `value` or `x.1`. Equality and hashing use the handle, order uses the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Symbol(NonZeroU32);

struct Entry {
    text: &'static str,
    /// Offset of the first `::`, or the length of the text if it has no namespace.
    split: u32,
}

struct Index {
    map: HashTable<u32>,
    /// Unused rest of the current chunk of text.
    chunk: &'static mut [u8],
    next: u32,
}

static ENTRIES: AppendTable<Entry> = AppendTable::new();
static INDEX: LazyLock<RwLock<Index>> = LazyLock::new(|| {
    let mut index = Index { map: HashTable::with_capacity(EXPECTED), chunk: &mut [], next: 1 };
    index.add(hash(""), "");
    debug_assert_eq!(index.next, 2, "invariant: the empty name has the first handle");
    RwLock::new(index)
});

/// Approximate number of names after the standard operators were registered: the initial capacity of the index.
const EXPECTED: usize = 6000;
/// Bytes allocated at a time, never freed. A longer name gets a chunk of its own.
const CHUNK: usize = 1 << 16;

fn hash(text: &str) -> u64 {
    FxBuildHasher.hash_one(text)
}

impl Index {
    fn find(&self, hash: u64, text: &str) -> Option<u32> {
        self.map.find(hash, |&i| ENTRIES.get(i).text == text).copied()
    }

    fn keep(&mut self, text: &str) -> &'static str {
        if self.chunk.len() < text.len() {
            self.chunk = Box::leak(vec![0; CHUNK.max(text.len())].into_boxed_slice());
        }
        let (mine, rest) = std::mem::take(&mut self.chunk).split_at_mut(text.len());
        self.chunk = rest;
        mine.copy_from_slice(text.as_bytes());
        std::str::from_utf8(mine).expect("invariant: a copy of valid text is valid text")
    }

    fn add(&mut self, own: u64, text: &str) -> u32 {
        let index = self.next;
        assert!(index < u32::MAX, "invariant: fewer than 2^32 names");
        let text = self.keep(text);
        let split = namespace_end(text).unwrap_or(text.len()) as u32;
        ENTRIES.set(index, Entry { text, split });
        self.next += 1;
        self.map.insert_unique(own, index, |&i| hash(ENTRIES.get(i).text));
        index
    }
}

/// Returns the offset of the first `::` of a name. Names are short, so a plain loop is faster than a substring search
/// with its setup.
pub(crate) fn namespace_end(name: &str) -> Option<usize> {
    name.as_bytes().windows(2).position(|pair| pair == b"::")
}

impl Symbol {
    /// The empty name, used for the default overload and for unnamed fields.
    pub const EMPTY: Self = Self(NonZeroU32::MIN);

    /// Interns `text`.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "handles start at 1")]
    pub fn new(text: &str) -> Self {
        if text.is_empty() {
            return Self::EMPTY;
        }
        let hash = hash(text);
        let found = INDEX.read().find(hash, text);
        let index = found.unwrap_or_else(|| {
            let mut index = INDEX.write();
            match index.find(hash, text) {
                Some(i) => i,
                None => index.add(hash, text),
            }
        });
        Self(NonZeroU32::new(index).expect("invariant: handles start at 1"))
    }

    fn entry(self) -> &'static Entry {
        if self == Self::EMPTY {
            // The empty name is the only symbol that may be used before the table is initialized.
            return &Entry { text: "", split: 0 };
        }
        ENTRIES.get(self.0.get())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.entry().text
    }

    /// Returns whether this is the empty name.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Returns the text before the first `::` (`aten` of `aten::add`), or the empty string if there is no `::`.
    #[must_use]
    pub fn ns(self) -> &'static str {
        let Entry { text, split } = *self.entry();
        if split as usize == text.len() { "" } else { &text[..split as usize] }
    }

    /// Returns the text after the first `::` (`add` of `aten::add`), or the whole text if there is no `::`.
    #[must_use]
    pub fn base(self) -> &'static str {
        let Entry { text, split } = *self.entry();
        text.get(split as usize + 2..).filter(|_| (split as usize) < text.len()).unwrap_or(text)
    }

    /// Returns the handle's number: dense, stable within the process, different between processes. For side tables
    /// only.
    #[must_use]
    pub fn index(self) -> u32 {
        self.0.get()
    }

    /// Returns the handle as a number below 2^30, for packing beside a tag.
    pub(crate) fn raw(self) -> u32 {
        debug_assert!(self.0.get() < 1 << 30, "invariant: fewer than 2^30 names");
        self.0.get()
    }

    /// Returns the symbol with a number from [`Symbol::raw`].
    pub(crate) fn from_raw(raw: u32) -> Self {
        Self(NonZeroU32::new(raw).unwrap_or(NonZeroU32::MIN))
    }
}

impl Hash for Symbol {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.0.get());
    }
}

impl PartialOrd for Symbol {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Symbol {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        if self == other { std::cmp::Ordering::Equal } else { self.as_str().cmp(other.as_str()) }
    }
}

impl Default for Symbol {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl PartialEq<str> for Symbol {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Symbol {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl From<&str> for Symbol {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl AsRef<str> for Symbol {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_text_gives_equal_handles() {
        assert_eq!(Symbol::new("aten::add"), Symbol::new("aten::add"));
        assert_ne!(Symbol::new("aten::add"), Symbol::new("aten::sub"));
        assert_eq!(Symbol::new(""), Symbol::EMPTY);
        assert_eq!(Symbol::EMPTY.as_str(), "");
        assert_eq!(Symbol::default(), "");
        assert_eq!(size_of::<Option<Symbol>>(), 4);
    }

    #[test]
    fn namespaces() {
        let s = Symbol::new("aten::add");
        assert_eq!((s.ns(), s.base()), ("aten", "add"));
        let s = Symbol::new("plain");
        assert_eq!((s.ns(), s.base()), ("", "plain"));
        let s = Symbol::new("a::b::c");
        assert_eq!((s.ns(), s.base()), ("a", "b::c"));
        let s = Symbol::new("a::");
        assert_eq!((s.ns(), s.base()), ("a", ""));
    }

    #[test]
    fn order_is_by_text() {
        let mut names: Vec<_> = ["b", "a", "c", "aa"].map(Symbol::new).to_vec();
        names.sort();
        assert_eq!(names.iter().map(|s| s.as_str()).collect::<Vec<_>>(), ["a", "aa", "b", "c"]);
    }

    #[test]
    fn threads_agree() {
        let handles: Vec<Vec<Symbol>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..3000).map(|i| Symbol::new(&format!("thread-{i}"))).collect()))
                .collect();
            workers.into_iter().map(|w| w.join().expect("no panic")).collect()
        });
        assert!(handles.windows(2).all(|w| w[0] == w[1]));
        for (i, s) in handles[0].iter().enumerate() {
            assert_eq!(s.as_str(), format!("thread-{i}"));
        }
    }

    #[test]
    fn long_names_survive() {
        let long = "x".repeat(CHUNK * 2);
        assert_eq!(Symbol::new(&long).as_str(), long);
        assert_eq!(Symbol::new("after-long").as_str(), "after-long");
    }
}
