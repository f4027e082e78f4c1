//! Source maps of archived code: from offsets in printed code to the original Python source.
//!
//! An archive may have a record `code/x.py.debug_pkl` beside `code/x.py`. It lists byte offsets of the printed code in
//! ascending order, each with the range of the original source that the code from there on was made from. Only
//! diagnostics need it, so the record is kept in its compressed form and read at the first lookup. If the record is
//! invalid, there are no original locations; this is never an error, because the map does not affect the program.

pub(crate) mod write;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use flambeau_ir::{Origin, Source, SourceRange};

use crate::ArchiveLimits;
use crate::pickle::{Pickle, PickleId, Value, read_pickle};
use crate::zip::DetachedRecord;

/// First item of a table that stores texts as lists of indices into a table of lines.
const WITH_STRING_TABLE: &str = "FORMAT_WITH_STRING_TABLE";

/// The debug ranges of one code record.
#[derive(Debug)]
pub(crate) struct DebugRanges {
    record: DetachedRecord,
    limits: ArchiveLimits,
    table: OnceLock<Option<Table>>,
}

impl DebugRanges {
    pub(crate) fn new(record: DetachedRecord, limits: &ArchiveLimits) -> Self {
        DebugRanges { record, limits: limits.clone(), table: OnceLock::new() }
    }

    fn table(&self) -> Option<&Table> {
        let read = || Table::read(read_pickle(&self.record.read().ok()?, &self.limits).ok()?);
        self.table.get_or_init(read).as_ref()
    }
}

impl Origin for DebugRanges {
    fn of(&self, range: Range<u32>) -> Option<SourceRange> {
        self.table()?.range(i64::from(range.start), self.limits.source_bytes)
    }
}

/// A table of debug ranges.
#[derive(Debug)]
struct Table {
    pickle: Pickle,
    /// Ascending offsets in the printed code, each with its range.
    entries: Vec<(i64, PickleId)>,
    /// The table of lines.
    strings: Vec<PickleId>,
}

impl Table {
    fn read(pickle: Pickle) -> Option<Table> {
        let root = pickle.as_tuple(pickle.root())?;
        let (strings, entries) = match root {
            [format, strings, entries] if pickle.as_text(*format) == Some(WITH_STRING_TABLE) => {
                (items(&pickle, *strings)?.to_vec(), items(&pickle, *entries)?)
            }
            old => (Vec::new(), old),
        };
        let entry = |&id: &PickleId| match pickle.as_tuple(id) {
            Some(&[offset, range, ..]) => Some((pickle.as_int(offset)?, range)),
            _ => None,
        };
        let entries: Vec<_> = entries.iter().map(entry).collect::<Option<_>>()?;
        entries.is_sorted_by_key(|&(offset, _)| offset).then_some(())?;
        Some(Table { entries, strings, pickle })
    }

    /// Returns the original source range of `offset`, or `None` if there is none or if its text is longer than `limit`
    /// bytes.
    fn range(&self, offset: i64, limit: usize) -> Option<SourceRange> {
        let behind = self.entries.partition_point(|&(from, _)| from <= offset);
        let (_, entry) = self.entries.get(behind.checked_sub(1)?)?;
        let &[context, start, end] = self.pickle.as_tuple(*entry)? else { return None };
        let &[text, name, line] = self.pickle.as_tuple(context)? else { return None };
        let text = self.text(text, limit).filter(|text| !text.is_empty())?;
        let bound = |id| Some(u32::try_from(self.pickle.as_int(id)?).ok()?.min(text.len() as u32));
        let (start, end) = (bound(start)?, bound(end)?);
        let source = Source {
            name: self.name(name).unwrap_or("<unknown>").to_owned(),
            first_line: u32::try_from(self.pickle.as_int(line)?).ok()?,
            text,
            origin: None,
        };
        Some(SourceRange { source: Arc::new(source), range: start..end.max(start) })
    }

    fn text(&self, id: PickleId, limit: usize) -> Option<String> {
        if let Some(text) = self.pickle.as_text(id) {
            return Some(text.to_owned());
        }
        let mut out = String::new();
        for &line in items(&self.pickle, id)? {
            let line = self.string(line)?;
            if out.len() + line.len() > limit {
                return None;
            }
            out.push_str(line);
        }
        Some(out)
    }

    /// Returns a name, which is a string or the index of one.
    fn name(&self, id: PickleId) -> Option<&str> {
        self.pickle.as_text(id).or_else(|| self.string(id))
    }

    fn string(&self, id: PickleId) -> Option<&str> {
        let number = usize::try_from(self.pickle.as_int(id)?).ok()?;
        self.pickle.as_text(*self.strings.get(number)?)
    }
}

/// Returns the items of a tuple or list, with or without a type tag.
fn items(pickle: &Pickle, id: PickleId) -> Option<&[PickleId]> {
    match pickle.get(id) {
        Value::Tuple(span) => Some(pickle.tuple(span)),
        Value::List(list) => Some(pickle.list(list)),
        Value::Call(call) => match pickle.as_tuple(pickle.call(call).args)? {
            &[inner, ..] => match pickle.get(inner) {
                Value::List(list) => Some(pickle.list(list)),
                _ => None,
            },
            [] => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pickle::PickleWriter;
    use crate::zip::{ZipReader, ZipWriter};

    /// Creates a table with one entry: from byte 10 of the code on, bytes 12 to 20 of the text made of `lines`.
    fn ranges(lines: &[i64]) -> DebugRanges {
        let mut w = PickleWriter::new();
        w.mark();
        w.text(WITH_STRING_TABLE);
        w.mark();
        ["def f(x):\n", "  return x\n", "net.py"].iter().for_each(|text| w.text(text));
        w.tuple();
        w.mark();
        w.mark();
        w.int(10);
        w.mark();
        w.mark();
        w.global("torch.jit._pickle", "build_intlist");
        w.empty_list();
        w.mark();
        lines.iter().for_each(|&line| w.int(line));
        w.appends();
        w.short_tuple(1);
        w.reduce();
        w.int(2);
        w.int(7);
        w.tuple();
        w.int(12);
        w.int(20);
        w.tuple();
        w.int(0);
        w.tuple();
        w.tuple();
        w.tuple();
        let mut zip = ZipWriter::new(Vec::new(), "x");
        zip.deflate("code/a.py.debug_pkl", &w.finish()).expect("the memory suffices");
        let bytes = zip.finish().expect("the memory suffices");
        let zip = ZipReader::open(&bytes, &ArchiveLimits::default()).expect("an archive");
        DebugRanges::new(zip.detach(&zip.records()[0]), &ArchiveLimits::default())
    }

    #[test]
    fn source_ranges_are_found_by_offset() {
        let ranges = ranges(&[0, 1]);
        assert!(ranges.of(9..12).is_none(), "no range precedes the first entry");
        let range = ranges.of(11..12).expect("from byte 10 on");
        assert_eq!((range.source.name.as_str(), range.source.first_line), ("net.py", 7));
        assert_eq!(&range.source.text[range.range.start as usize..range.range.end as usize], "return x");
        assert_eq!(range.source.line_column(12).0, 8);
    }

    #[test]
    fn damaged_tables_give_no_ranges() {
        assert!(ranges(&[0, 9]).of(11..12).is_none(), "a line that is not there");
        assert!(ranges(&[]).of(11..12).is_none(), "no text");
    }
}
