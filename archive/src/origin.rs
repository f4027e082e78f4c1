//! From places in archived code back to the Python that was compiled.
//!
//! Beside `code/x.py` an archive may have `code/x.py.debug_pkl`: for byte offsets of the printed code, in order, the
//! range of the original source that what stands from there on was made from. Only errors need it, so the record is
//! kept as it lies in the file and read when a place is first asked for. Whatever is wrong with it means that there is
//! no original place, never an error: the table is a remark on the program, not part of it.

pub(crate) mod write;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use flambeau_ir::{Origin, Source, SourceRange};

use crate::Limits;
use crate::pickle::{Pickle, Value, ValueId, read_pickle};
use crate::zip::DetachedRecord;

/// The first item of a table whose texts are lists of numbers of lines in a table of strings.
const WITH_STRING_TABLE: &str = "FORMAT_WITH_STRING_TABLE";

/// The debug ranges of one code record.
#[derive(Debug)]
pub(crate) struct DebugRanges {
    record: DetachedRecord,
    limits: Limits,
    table: OnceLock<Option<Table>>,
}

impl DebugRanges {
    pub(crate) fn new(record: DetachedRecord, limits: &Limits) -> Self {
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
    /// Offsets in the printed code, ascending, with what they stand for.
    entries: Vec<(i64, ValueId)>,
    /// Lines of texts.
    strings: Vec<ValueId>,
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
        let entry = |&id: &ValueId| match pickle.as_tuple(id) {
            Some(&[offset, range, ..]) => Some((pickle.as_int(offset)?, range)),
            _ => None,
        };
        let entries: Vec<_> = entries.iter().map(entry).collect::<Option<_>>()?;
        entries.is_sorted_by_key(|&(offset, _)| offset).then_some(())?;
        Some(Table { entries, strings, pickle })
    }

    /// The original of what stands at `offset`; texts longer than `limit` are none.
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

    fn text(&self, id: ValueId, limit: usize) -> Option<String> {
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

    /// A name is a string, or the number of one.
    fn name(&self, id: ValueId) -> Option<&str> {
        self.pickle.as_text(id).or_else(|| self.string(id))
    }

    fn string(&self, id: ValueId) -> Option<&str> {
        let number = usize::try_from(self.pickle.as_int(id)?).ok()?;
        self.pickle.as_text(*self.strings.get(number)?)
    }
}

/// The items of a tuple or list, typed or not.
fn items(pickle: &Pickle, id: ValueId) -> Option<&[ValueId]> {
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

    /// A table whose one entry stands for bytes 4 to 9 of the lines `lines`, from byte 10 of the code on.
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
        zip.deflate("code/a.py.debug_pkl", &w.finish()).expect("room");
        let bytes = zip.finish().expect("room");
        let zip = ZipReader::open(&bytes, &Limits::default()).expect("an archive");
        DebugRanges::new(zip.detach(&zip.records()[0]), &Limits::default())
    }

    #[test]
    fn places_are_found_by_offset() {
        let ranges = ranges(&[0, 1]);
        assert!(ranges.of(9..12).is_none(), "nothing stands for what is before the first entry");
        let range = ranges.of(11..12).expect("from byte 10 on");
        assert_eq!((range.source.name.as_str(), range.source.first_line), ("net.py", 7));
        assert_eq!(&range.source.text[range.range.start as usize..range.range.end as usize], "return x");
        assert_eq!(range.source.line_column(12).0, 8);
    }

    #[test]
    fn damaged_tables_have_no_places() {
        assert!(ranges(&[0, 9]).of(11..12).is_none(), "a line that is not there");
        assert!(ranges(&[]).of(11..12).is_none(), "no text");
    }
}
