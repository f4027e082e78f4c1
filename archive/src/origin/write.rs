//! Writes debug ranges in PyTorch's format: each distinct line of the original texts once, and entries that refer to
//! the lines.

use std::sync::Arc;

use flambeau_ir::{Source, SourceRange};
use hashbrown::HashMap;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::WITH_STRING_TABLE;
use crate::pickle::{MemoId, PickleWriter};

/// Returns the pickle for a source map, given as ascending offsets with their original source ranges.
pub(crate) fn debug_ranges(origins: &[(usize, Option<SourceRange>)]) -> Vec<u8> {
    let mut sources = Sources::default();
    let nothing = Source::new("", "");
    let texts: Vec<usize> = origins
        .iter()
        .map(|(_, range)| sources.add(range.as_ref().map_or(&nothing, |r| &r.source)))
        .collect();
    let mut out = PickleWriter::new();
    out.mark();
    out.text(WITH_STRING_TABLE);
    out.mark();
    sources.strings.iter().for_each(|text| out.text(text));
    out.tuple();
    out.mark();
    let mut written: Vec<Option<MemoId>> = vec![None; sources.texts.len()];
    for (tag, ((offset, range), &text)) in origins.iter().zip(&texts).enumerate() {
        let bytes = range.as_ref().map_or(0..0, |r| r.range.clone());
        out.int(*offset as i64);
        match written[text] {
            Some(id) => out.recall(id),
            None => written[text] = Some(sources.texts[text].write(&mut out)),
        }
        out.int(bytes.start.into());
        out.int(bytes.end.into());
        out.short_tuple(3);
        out.int(tag as i64);
        out.short_tuple(3);
    }
    out.tuple();
    out.tuple();
    out.finish()
}

/// The deduplicated texts of the ranges.
#[derive(Default)]
struct Sources<'a> {
    /// Lines and file names.
    strings: IndexSet<&'a str, FxBuildHasher>,
    texts: IndexSet<Text, FxBuildHasher>,
    /// Indices of texts by the address of their source, because most ranges share a source.
    known: HashMap<*const Source, usize, FxBuildHasher>,
}

/// A text as indices of strings.
#[derive(PartialEq, Eq, Hash)]
struct Text {
    lines: Vec<usize>,
    name: usize,
    first_line: u32,
}

impl<'a> Sources<'a> {
    fn add(&mut self, source: &'a Arc<Source>) -> usize {
        if let Some(&known) = self.known.get(&Arc::as_ptr(source)) {
            return known;
        }
        let lines = source.text.split_inclusive('\n').map(|line| self.strings.insert_full(line).0).collect();
        let name = self.strings.insert_full(&source.name).0;
        let text = Text { lines, name, first_line: source.first_line };
        let (number, _) = self.texts.insert_full(text);
        self.known.insert(Arc::as_ptr(source), number);
        number
    }
}

impl Text {
    fn write(&self, out: &mut PickleWriter) -> MemoId {
        out.global("torch.jit._pickle", "build_intlist");
        out.mark();
        out.empty_list();
        out.mark();
        self.lines.iter().for_each(|&line| out.int(line as i64));
        out.appends();
        out.tuple();
        out.reduce();
        out.int(self.name as i64);
        out.int(self.first_line.into());
        out.short_tuple(3);
        out.memoize()
    }
}
