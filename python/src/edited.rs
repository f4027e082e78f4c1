//! Texts that the package generates from the user's files: where their parts come from.

use std::ops::Range;
use std::sync::Arc;

use flambeau::ir::{Origin, Source, SourceRange};

/// A part of a text: its length in bytes, the index of the lines that it was made from (-1 if there are none), and the range in
/// them in bytes. A part as long as its range is a copy of it.
pub(crate) type Piece = (u32, i32, u32, u32);

/// The map from one text to the lines of the user.
#[derive(Debug)]
pub(crate) struct Edited {
    /// The ends of the parts in the text, ascending.
    ends: Vec<u32>,
    /// The lines and the range of each part.
    parts: Vec<Option<(usize, Range<u32>)>>,
    written: Arc<[Arc<Source>]>,
}

impl Edited {
    /// Returns the map of a text with these pieces, `None` if no piece was made from lines of the user.
    pub(crate) fn new(pieces: &[Piece], written: &Arc<[Arc<Source>]>) -> Option<Edited> {
        let part = |&(_, index, start, end): &Piece| {
            let index = usize::try_from(index).ok().filter(|&index| index < written.len())?;
            Some((index, start..end))
        };
        let parts: Vec<_> = pieces.iter().map(part).collect();
        if parts.iter().all(Option::is_none) {
            return None;
        }
        let ends = pieces.iter().scan(0u32, |end, piece| {
            *end = end.saturating_add(piece.0);
            Some(*end)
        });
        Some(Edited { ends: ends.collect(), parts, written: Arc::clone(written) })
    }

    /// Returns the lines and the range that the byte at an offset was made from: of a copy its own byte.
    fn at(&self, offset: u32) -> Option<(usize, Range<u32>)> {
        let index = self.ends.partition_point(|&end| end <= offset);
        let (source, range) = self.parts.get(index)?.as_ref()?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let is_copy = self.ends[index] - start == range.end.saturating_sub(range.start);
        let range = if is_copy {
            let byte = range.start + (offset - start);
            byte..byte + 1
        } else {
            range.clone()
        };
        Some((*source, range))
    }
}

impl Origin for Edited {
    fn of(&self, range: Range<u32>) -> Option<SourceRange> {
        let (source, first) = self.at(range.start)?;
        let last = range.end.saturating_sub(1).max(range.start);
        // A range ends in the lines in which it begins, except one whose end was made from nothing.
        let end = self.at(last).filter(|(other, _)| *other == source).map_or(first.end, |(_, last)| last.end);
        let end = if range.is_empty() { first.start } else { end };
        Some(SourceRange {
            source: Arc::clone(&self.written[source]),
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
        let written: Arc<[Arc<Source>]> = [Source::new("a.py", "    return F.relu(x)\n")].into();
        // `return torch.relu(x)`, without the indentation.
        let pieces = [(7, 0, 4, 11), (10, 0, 11, 17), (3, 0, 17, 20), (1, -1, 0, 0)];
        let edited = Edited::new(&pieces, &written).expect("a map");
        let of = |range: Range<u32>| edited.of(range).map(|found| found.range);
        assert_eq!(of(0..20), Some(4..20), "the statement");
        assert_eq!(of(7..20), Some(11..20), "the call");
        assert_eq!(of(13..17), Some(11..17), "a part of the replacement");
        assert_eq!(of(18..19), Some(18..19), "the argument");
        assert_eq!(of(18..18), Some(18..18), "an empty range");
        assert_eq!(of(20..21), None, "what was made from nothing");
    }
}
