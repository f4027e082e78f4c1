//! Spelling suggestions: the known name nearest to a misspelt one, for the "did you mean" of error messages.

/// Returns the name of `names` nearest to `text` by edit distance (substitution, insertion, deletion, transposition of
/// neighbours). The distance is limited to a third of the length of `text` (rounded up), to half of it, and to 3. Ties
/// resolve to the name that sorts first.
pub fn nearest<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // Without the limit of half the length, every name of one letter would match every other.
    let limit = text.len().div_ceil(3).min(3).min(text.len() / 2);
    let near = names.into_iter().map(|name| (distance(name, text), name)).min();
    near.filter(|(edits, _)| *edits <= limit).map(|(_, name)| name)
}

/// Returns the edit distance of `a` and `b` in bytes (optimal string alignment). Returns `usize::MAX` if the lengths
/// differ by more than 3 or `a` is longer than 100 bytes.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > 3 || a.len() > 100 {
        return usize::MAX;
    }
    // Three rows of the dynamic programming table: of the last two prefixes of `a`, and of the current one.
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=b.len()).collect()];
    for i in 1..=a.len() {
        rows.rotate_left(1);
        let [before, last, row] = &mut rows;
        row.clear();
        row.push(i);
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
    }
    rows[2][b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn edit_distances_are_counted() {
        for (a, b, edits) in [("int", "int", 0), ("itn", "int", 1), ("cse", "cze", 1), ("", "ab", 2)] {
            assert_eq!((distance(a, b), distance(b, a)), (edits, edits), "{a} {b}");
        }
    }

    #[test]
    fn only_similar_names_are_suggested() {
        assert_eq!(nearest("Tensr", ["Scalar", "Tensor"]), Some("Tensor"));
        assert_eq!(nearest("q", ["p"]), None);
        assert_eq!(nearest("constant", ["cse", "dce"]), None);
    }
}
