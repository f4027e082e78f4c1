//! Where the expressions of a text come from.
//!
//! While a statement is put together its expressions are texts within texts, so where each ends up is known only once
//! the line is written. Until then an expression carries its number between control characters, which no source text
//! has: strings are written with escapes. Lines are freed of them on the way into the text, and the places are noted.

use flambeau_ir::SourceRange;

const OPEN: char = '\u{1}';
const NUMBERED: char = '\u{2}';
const CLOSE: char = '\u{3}';

/// Offsets of a text with what stands from there on: an expression that was made from this place, or nothing of which
/// that is known. Ascending.
pub type Places = Vec<(usize, Option<SourceRange>)>;

/// The places of one text.
#[derive(Default)]
pub(super) struct Marks {
    /// Whether places are wanted.
    wanted: bool,
    ranges: Vec<SourceRange>,
    places: Vec<(usize, Option<usize>)>,
}

impl Marks {
    /// Marks that are kept.
    pub(super) fn wanted() -> Marks {
        Marks { wanted: true, ..Marks::default() }
    }

    /// An expression with its number, if its place is known and wanted.
    pub(super) fn numbered(&mut self, text: String, range: impl FnOnce() -> Option<SourceRange>) -> String {
        let Some(range) = self.wanted.then(range).flatten() else { return text };
        self.ranges.push(range);
        format!("{OPEN}{}{NUMBERED}{text}{CLOSE}", self.ranges.len() - 1)
    }

    /// Appends a line's text to `out` without the numbers, which are noted.
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
            self.note(out.len(), open.last().copied());
        }
    }

    fn note(&mut self, at: usize, what: Option<usize>) {
        if self.places.last().is_some_and(|(last, _)| *last == at) {
            self.places.pop();
        }
        self.places.push((at, what));
    }

    /// All places, each unlike the one before.
    pub(super) fn into_places(self) -> Places {
        let mut places: Places = Vec::new();
        for (at, what) in self.places {
            let what = what.map(|i| self.ranges[i].clone());
            let same = |(_, last): &(usize, Option<SourceRange>)| match (last, &what) {
                (Some(a), Some(b)) => a.range == b.range && a.source.same_place(&b.source),
                (None, None) => true,
                _ => false,
            };
            if !places.last().is_some_and(same) && !(places.is_empty() && what.is_none()) {
                places.push((at, what));
            }
        }
        places
    }
}

/// Bytes of a text without numbers.
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
    fn expressions_in_expressions_are_found_again() {
        let source = Source::new("net.py", "a * b + c");
        let at = |range| Some(SourceRange { source: source.clone(), range });
        let mut marks = Marks::wanted();
        let inner = marks.numbered("torch.mul(a, b)".to_owned(), || at(0..5));
        let outer = marks.numbered(format!("torch.add({inner}, c)"), || at(0..9));
        assert_eq!(width(&outer), "torch.add(torch.mul(a, b), c)".len());
        let mut text = "  ".to_owned();
        marks.write(&mut text, &format!("x = {outer}"));
        assert_eq!(text, "  x = torch.add(torch.mul(a, b), c)");
        let places: Vec<_> =
            marks.into_places().into_iter().map(|(at, r)| (at, r.map(|r| r.range))).collect();
        assert_eq!(places, [(6, Some(0..9)), (16, Some(0..5)), (31, Some(0..9)), (35, None)]);
    }
}
