//! Source maps of texts that the package makes from the user's files.

use std::ops::Range;
use std::sync::Arc;

use flambeau::ir::{Origin, Source, SourceRange};

/// A segment of a text: its length in bytes, the index of the original lines (-1 if there are none), the range in them in bytes,
/// and whether the segment is a copy of the range.
pub(crate) type Segment = (u32, i32, u32, u32, bool);

/// The map from one text to original lines.
#[derive(Debug)]
pub(crate) struct SourceMap {
    /// The ends of the segments in the text, ascending.
    ends: Vec<u32>,
    /// The original of each segment.
    originals: Vec<Option<Original>>,
    sources: Arc<[Arc<Source>]>,
}

/// A range that a segment was made from.
#[derive(Clone, Debug)]
struct Original {
    source: usize,
    range: Range<u32>,
    is_copy: bool,
}

impl SourceMap {
    /// Returns the map of a text with these segments, `None` if no segment was made from original lines.
    pub(crate) fn new(segments: &[Segment], sources: &Arc<[Arc<Source>]>) -> Option<SourceMap> {
        let original = |&(_, index, start, end, is_copy): &Segment| {
            let source = usize::try_from(index).ok().filter(|&index| index < sources.len())?;
            Some(Original { source, range: start..end, is_copy })
        };
        let originals: Vec<_> = segments.iter().map(original).collect();
        if originals.iter().all(Option::is_none) {
            return None;
        }
        let ends = segments.iter().scan(0u32, |end, segment| {
            *end = end.saturating_add(segment.0);
            Some(*end)
        });
        Some(SourceMap { ends: ends.collect(), originals, sources: Arc::clone(sources) })
    }

    /// Returns the original of the byte at an offset: of a copy its own byte, otherwise the whole range.
    fn at(&self, offset: u32) -> Option<(usize, Range<u32>)> {
        let index = self.ends.partition_point(|&end| end <= offset);
        let Original { source, range, is_copy } = self.originals.get(index)?.clone()?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let byte = range.start.saturating_add(offset - start);
        Some((source, if is_copy { byte..byte.saturating_add(1) } else { range }))
    }
}

impl Origin for SourceMap {
    fn of(&self, range: Range<u32>) -> Option<SourceRange> {
        let (source, first) = self.at(range.start)?;
        let last = range.end.saturating_sub(1).max(range.start);
        // The end may have been made from other lines, or from none.
        let end = self.at(last).filter(|(other, _)| *other == source).map_or(first.end, |(_, last)| last.end);
        let end = if range.is_empty() { first.start } else { end };
        Some(SourceRange {
            source: Arc::clone(&self.sources[source]),
            range: first.start..end.max(first.start),
        })
    }

    fn is_edited(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_copies_and_replacements() {
        let sources: Arc<[Arc<Source>]> = [Source::new("a.py", "    return F.relu(x)\n")].into();
        // `return torch.relu(x)`, without the indentation.
        let segments =
            [(7, 0, 4, 11, true), (10, 0, 11, 17, false), (3, 0, 17, 20, true), (1, -1, 0, 0, false)];
        let map = SourceMap::new(&segments, &sources).expect("a map");
        let of = |range: Range<u32>| map.of(range).map(|found| found.range);
        assert_eq!(of(0..20), Some(4..20), "the statement");
        assert_eq!(of(7..20), Some(11..20), "the call");
        assert_eq!(of(13..17), Some(11..17), "a part of the replacement");
        assert_eq!(of(18..19), Some(18..19), "the argument");
        assert_eq!(of(18..18), Some(18..18), "an empty range");
        assert_eq!(of(20..21), None, "what was made from nothing");
    }
}
