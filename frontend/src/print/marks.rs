//! Source map of printed text: the source ranges that its expressions were made from.
//!
//! A statement is composed of nested expression texts, so the final offset of an expression is known only when its line
//! is written. Until then an expression carries an index between control characters. These do not occur in source text,
//! because strings are written with escapes. [`SourceMapBuilder::write`] removes them and records the offsets.

use flambeau_ir::SourceRange;

const OPEN: char = '\u{1}';
const NUMBERED: char = '\u{2}';
const CLOSE: char = '\u{3}';

/// Source map of a text: ascending byte offsets, each with the source range of the text from there on, or `None` if
/// unknown.
pub type SourceMap = Vec<(usize, Option<SourceRange>)>;

/// The source map of one text under construction.
#[derive(Default)]
pub(super) struct SourceMapBuilder {
    /// True if a source map is wanted.
    wanted: bool,
    ranges: Vec<SourceRange>,
    places: Vec<(usize, Option<usize>)>,
}

impl SourceMapBuilder {
    /// Creates an empty source map that is recorded.
    pub(super) fn recorded() -> SourceMapBuilder {
        SourceMapBuilder { wanted: true, ..SourceMapBuilder::default() }
    }

    /// Wraps an expression with the index of its source range, if the range is known and a source map is wanted.
    pub(super) fn numbered(&mut self, text: String, range: impl FnOnce() -> Option<SourceRange>) -> String {
        let Some(range) = self.wanted.then(range).flatten() else { return text };
        self.ranges.push(range);
        format!("{OPEN}{}{NUMBERED}{text}{CLOSE}", self.ranges.len() - 1)
    }

    /// Appends the text of a line to `out` without the control characters, and records the offsets.
    pub(super) fn write(&mut self, out: &mut String, text: &str) {
        if !text.contains(OPEN) {
            out.push_str(text);
            return;
        }
        let mut open: Vec<usize> = Vec::new();
        for piece in text.split_inclusive([NUMBERED, CLOSE]) {
            let (shown, number) = piece.split_once(OPEN).unwrap_or((piece, ""));
            out.push_str(shown.strip_suffix(CLOSE).unwrap_or(shown));
            if let Some(number) = number.strip_suffix(NUMBERED) {
                open.extend(number.parse::<usize>().ok());
            } else {
                open.pop();
            }
            self.record(out.len(), open.last().copied());
        }
    }

    fn record(&mut self, at: usize, range: Option<usize>) {
        if self.places.last().is_some_and(|(last, _)| *last == at) {
            self.places.pop();
        }
        self.places.push((at, range));
    }

    /// Returns the source map without repetitions.
    pub(super) fn into_source_map(self) -> SourceMap {
        let mut places: SourceMap = Vec::new();
        for (at, range) in self.places {
            let range = range.map(|i| self.ranges[i].clone());
            let same = |(_, last): &(usize, Option<SourceRange>)| match (last, &range) {
                (Some(a), Some(b)) => a.range == b.range && a.source.is_same_source(&b.source),
                (None, None) => true,
                _ => false,
            };
            if !places.last().is_some_and(same) && !(places.is_empty() && range.is_none()) {
                places.push((at, range));
            }
        }
        places
    }
}

/// Returns the length of a text in bytes without the control characters and indices.
pub(super) fn width(text: &str) -> usize {
    if !text.contains(OPEN) {
        return text.len();
    }
    let shown = |piece: &str| {
        let (shown, _) = piece.split_once(OPEN).unwrap_or((piece, ""));
        shown.strip_suffix(CLOSE).unwrap_or(shown).len()
    };
    text.split_inclusive([NUMBERED, CLOSE]).map(shown).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_ir::Source;

    #[test]
    fn nested_expressions_are_located() {
        let source = Source::new("net.py", "a * b + c");
        let at = |range| Some(SourceRange { source: source.clone(), range });
        let mut marks = SourceMapBuilder::recorded();
        let inner = marks.numbered("torch.mul(a, b)".to_owned(), || at(0..5));
        let outer = marks.numbered(format!("torch.add({inner}, c)"), || at(0..9));
        assert_eq!(width(&outer), "torch.add(torch.mul(a, b), c)".len());
        let mut text = "  ".to_owned();
        marks.write(&mut text, &format!("x = {outer}"));
        assert_eq!(text, "  x = torch.add(torch.mul(a, b), c)");
        let places: Vec<_> =
            marks.into_source_map().into_iter().map(|(at, r)| (at, r.map(|r| r.range))).collect();
        assert_eq!(places, [(6, Some(0..9)), (16, Some(0..5)), (31, Some(0..9)), (35, None)]);
    }
}
