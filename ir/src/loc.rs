//! Source locations: source texts, ranges in them, scopes, and the call sites a node was inlined through.
//!
//! Every node of a graph carries a [`LocId`], a row of the graph's [`LocTable`]. Source texts are shared by `Arc` and
//! live as long as a graph or module refers to them.

use crate::symbol::Symbol;
use std::ops::Range;
use std::sync::Arc;

/// A source text with its name and position in its file.
#[derive(Debug)]
pub struct Source {
    /// File name or another name for the text (`<string>`).
    pub name: String,
    /// The text.
    pub text: String,
    /// Number of the text's first line in its file, from 1.
    pub first_line: u32,
    /// Maps ranges of a generated text back to the text it was generated from; `None` for a text written by hand.
    pub origin: Option<Arc<dyn Origin>>,
}

/// Map from a generated text, such as the code in an archive, to the original text. Called only when a location is
/// displayed, so an implementation may load its data lazily.
pub trait Origin: std::fmt::Debug + Send + Sync {
    /// Returns the original range of the bytes `range` of the generated text.
    fn of(&self, range: Range<u32>) -> Option<SourceRange>;

    /// Returns whether the generated text is the original with replacements. Its locations are displayed in the original only;
    /// those of other generated texts in both.
    fn is_edited(&self) -> bool {
        false
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        let same_origin = match (&self.origin, &other.origin) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        (&self.name, &self.text, self.first_line) == (&other.name, &other.text, other.first_line)
            && same_origin
    }
}

impl Eq for Source {}

impl Source {
    /// Creates a text whose first line is line 1 of `name`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Source { name: name.into(), text: text.into(), first_line: 1, origin: None })
    }

    /// Creates a generated text with a map to the text it was generated from.
    pub fn printed(name: impl Into<String>, text: impl Into<String>, origin: Arc<dyn Origin>) -> Arc<Self> {
        Arc::new(Source { name: name.into(), text: text.into(), first_line: 1, origin: Some(origin) })
    }

    /// Returns whether two sources have the same text, name, first line and map to an original text.
    pub fn is_same_source(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || **self == **other
    }

    /// Returns line and column of a byte offset, both from 1. Columns count characters.
    pub fn line_column(&self, offset: usize) -> (u32, u32) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let line = before.bytes().filter(|&b| b == b'\n').count() as u32;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        (self.first_line + line, before[start..].chars().count() as u32 + 1)
    }
}

/// A byte range of a [`Source`].
#[derive(Clone, Debug)]
pub struct SourceRange {
    /// The text.
    pub source: Arc<Source>,
    /// The bytes of the range.
    pub range: Range<u32>,
}

impl SourceRange {
    /// Returns the range in the original text if this source was generated from one.
    pub fn original(&self) -> Option<SourceRange> {
        self.source.origin.as_ref()?.of(self.range.clone())
    }

    /// Returns the range in the original text if this source is an edited one, else the range itself.
    #[must_use]
    pub fn before_edits(self) -> SourceRange {
        let is_edited = self.source.origin.as_ref().is_some_and(|origin| origin.is_edited());
        if is_edited { self.original().unwrap_or(self) } else { self }
    }
}

/// A row of a graph's [`LocTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocId(u32);

impl LocId {
    /// The location is unknown.
    pub const UNKNOWN: LocId = LocId(0);
}

/// A source of a [`LocTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceId(u32);

#[derive(Clone, Copy, PartialEq, Eq)]
struct LocRow {
    source: u32,
    start: u32,
    end: u32,
    extra: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Extra {
    scope: Option<Symbol>,
    caller: Option<LocId>,
    callee: Option<Symbol>,
}

const NO_EXTRA: Extra = Extra { scope: None, caller: None, callee: None };

/// The locations of one graph.
#[derive(Clone)]
pub struct LocTable {
    sources: Vec<Arc<Source>>,
    rows: Vec<LocRow>,
    extras: Vec<Extra>,
}

impl LocTable {
    pub(crate) fn new() -> Self {
        let unknown = LocRow { source: u32::MAX, start: 0, end: 0, extra: 0 };
        LocTable { sources: Vec::new(), rows: vec![unknown], extras: vec![NO_EXTRA] }
    }

    /// Reserves capacity for `rows` more locations.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.rows.reserve_exact(rows);
    }

    /// Registers a text. The same `Arc` returns the same id.
    pub fn add_source(&mut self, source: &Arc<Source>) -> SourceId {
        let found = self.sources.iter().rposition(|s| Arc::ptr_eq(s, source));
        SourceId(found.unwrap_or_else(|| {
            self.sources.push(Arc::clone(source));
            self.sources.len() - 1
        }) as u32)
    }

    /// Adds a location at a range of a registered text.
    pub fn at(&mut self, source: SourceId, range: Range<u32>) -> LocId {
        self.push(LocRow { source: source.0, start: range.start, end: range.end, extra: 0 })
    }

    /// Adds a copy of `loc` within a scope (`__module.layer1`).
    pub fn in_scope(&mut self, loc: LocId, scope: Symbol) -> LocId {
        let extra = Extra { scope: Some(scope), ..self.extras[self.rows[loc.0 as usize].extra as usize] };
        self.with_extra(loc, extra)
    }

    /// Adds a copy of `loc` that records being inlined from `callee` at the call site `caller`.
    pub fn called_from(&mut self, loc: LocId, caller: LocId, callee: Symbol) -> LocId {
        let old = self.extras[self.rows[loc.0 as usize].extra as usize];
        self.with_extra(loc, Extra { caller: Some(caller), callee: Some(callee), ..old })
    }

    fn with_extra(&mut self, loc: LocId, extra: Extra) -> LocId {
        if self.extras.last() != Some(&extra) {
            self.extras.push(extra);
        }
        let row = LocRow { extra: self.extras.len() as u32 - 1, ..self.rows[loc.0 as usize] };
        self.push(row)
    }

    fn push(&mut self, row: LocRow) -> LocId {
        // Nodes of one expression are created consecutively, so comparing with the newest row finds nearly all
        // duplicates.
        if self.rows.last() != Some(&row) {
            if self.rows.len() == self.rows.capacity() {
                // By an eighth, as the tables of the graph.
                self.rows.reserve_exact(self.rows.len() / 8 + 16);
            }
            self.rows.push(row);
        }
        LocId(self.rows.len() as u32 - 1)
    }

    /// Copies a location of another graph's table. The copy records `caller` (call site in this table, callee) in place
    /// of the call site that it has there.
    pub(crate) fn import(&mut self, other: &LocTable, loc: LocId, caller: Option<(LocId, Symbol)>) -> LocId {
        let row = other.rows[loc.0 as usize];
        let Some(source) = other.sources.get(row.source as usize) else { return LocId::UNKNOWN };
        let source = self.add_source(source);
        let mut here = self.at(source, row.start..row.end);
        if let Some(scope) = other.extras[row.extra as usize].scope {
            here = self.in_scope(here, scope);
        }
        match caller {
            Some((caller, callee)) => self.called_from(here, caller, callee),
            None => here,
        }
    }

    /// Returns the text and the range of a location, of an edited text those in its original.
    pub fn range(&self, loc: LocId) -> Option<SourceRange> {
        let row = self.rows.get(loc.0 as usize)?;
        let source = self.sources.get(row.source as usize)?;
        Some(SourceRange { source: Arc::clone(source), range: row.start..row.end }.before_edits())
    }

    /// Returns the scope of a location.
    pub fn scope(&self, loc: LocId) -> Option<Symbol> {
        self.extras[self.rows.get(loc.0 as usize)?.extra as usize].scope
    }

    /// Returns the call a location was inlined through: the location of the call site and the name of the callee.
    pub fn caller(&self, loc: LocId) -> Option<(LocId, Symbol)> {
        let extra = self.extras[self.rows.get(loc.0 as usize)?.extra as usize];
        Some((extra.caller?, extra.callee?))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<LocRow>() + self.extras.capacity() * size_of::<Extra>()
    }
}
