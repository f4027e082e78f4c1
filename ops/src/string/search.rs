//! Substring search.
//!
//! `start` and `end` count bytes; negative ones count from one past the end, so `-1` is the end of the string. The
//! behaviour for bounds that are out of order or out of range differs between operators, as in TorchScript.

use super::{draw, draw_short};
use crate::per_type::{OverloadRow, row};
use flambeau_exec::{FastPath, Gen, KernelCx, KernelError, KernelResult};
use flambeau_ir::value::IValue;

/// Returns the positions of non-overlapping occurrences from the front. An empty string occurs at every position.
///
/// Linear time (Knuth-Morris-Pratt; the two-way search of the standard library supports only UTF-8 text).
pub(super) fn find_all<'a>(s: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let borders = borders(wanted);
    let (mut matched, mut i, mut next_empty) = (0, 0, 0);
    std::iter::from_fn(move || {
        if wanted.is_empty() {
            next_empty += 1;
            return (next_empty <= s.len() + 1).then(|| next_empty - 1);
        }
        while i < s.len() {
            while matched > 0 && s[i] != wanted[matched] {
                matched = borders[matched - 1];
            }
            matched += usize::from(s[i] == wanted[matched]);
            i += 1;
            if matched == wanted.len() {
                matched = 0;
                return Some(i - wanted.len());
            }
        }
        None
    })
}

/// Returns the KMP failure function: per prefix, the length of its longest proper prefix that is also a suffix.
fn borders(s: &[u8]) -> Vec<usize> {
    let mut out = vec![0; s.len()];
    let mut k = 0;
    for i in 1..s.len() {
        while k > 0 && s[i] != s[k] {
            k = out[k - 1];
        }
        k += usize::from(s[i] == s[k]);
        out[i] = k;
    }
    out
}

/// Returns the first or last occurrence.
pub(super) fn find(s: &[u8], wanted: &[u8], last: bool) -> Option<usize> {
    if !last {
        return find_all(s, wanted).next();
    }
    let reversed = |s: &[u8]| s.iter().rev().copied().collect::<Vec<u8>>();
    let (s_reversed, wanted_reversed) = (reversed(s), reversed(wanted));
    find_all(&s_reversed, &wanted_reversed).next().map(|i| s.len() - i - wanted.len())
}

/// Returns `start` and `end` counted from the front; they may be out of range.
fn bounds(cx: &KernelCx<'_>, len: usize) -> Result<(i64, i64), KernelError> {
    let n = len as i64;
    let (start, end) = (cx.int(2)?, cx.int(3)?);
    let start = if start < 0 { start.saturating_add(n).max(0) } else { start };
    let end = if end < 0 { end.saturating_add(n + 1).max(0) } else { end };
    Ok((start, end))
}

/// Returns the part from `start` to `end`, or to the end of the string if `end < start`.
fn part(s: &[u8], start: i64, end: i64) -> Result<&[u8], KernelError> {
    let (from, n) = (start as usize, s.len());
    if from > n {
        return Err(KernelError::input(format!(
            "basic_string::substr: __pos (which is {from}) > this->size() (which is {n})"
        )));
    }
    let to = if end < start { n } else { (end as usize).min(n) };
    Ok(&s[from..to])
}

/// Returns the position of argument 1 in argument 0.
fn located(cx: &KernelCx<'_>, last: bool) -> Result<Option<i64>, KernelError> {
    let (s, wanted) = (cx.str_bytes(0)?, cx.str_bytes(1)?);
    let (start, end) = bounds(cx, s.len())?;
    if end < start {
        return Ok(wanted.is_empty().then_some(start));
    }
    Ok(find(part(s, start, end)?, wanted, last).map(|i| i as i64 + start))
}

fn found(name: &'static str, doc: &'static str, last: bool) -> OverloadRow {
    row(name, "", doc, move |cx| {
        let at = located(cx, last)?;
        cx.ret(at.unwrap_or(-1));
        Ok(())
    })
    .raises()
    .sample(|g, _| args(g))
}

fn required_match(name: &'static str, overload: &'static str, doc: &'static str, last: bool) -> OverloadRow {
    row(name, overload, doc, move |cx| {
        let at = located(cx, last)?;
        cx.ret(at.ok_or_else(|| KernelError::input("ValueError: substring not found"))?);
        Ok(())
    })
    .raises()
    .sample(|g, _| args(g))
}

fn edge(name: &'static str, doc: &'static str, is: fn(&[u8], &[u8]) -> bool) -> OverloadRow {
    row(name, "", doc, move |cx| {
        let (s, wanted) = (cx.str_bytes(0)?, cx.str_bytes(1)?);
        let (start, end) = bounds(cx, s.len())?;
        let answer = is(part(s, start, end)?, wanted);
        cx.ret(answer);
        Ok(())
    })
    .raises()
    .sample(|g, _| args(g))
}

/// Counts non-overlapping occurrences that begin within the bounds.
fn count(cx: &mut KernelCx<'_>) -> KernelResult {
    let (s, wanted) = (cx.str_bytes(0)?, cx.str_bytes(1)?);
    let (start, end) = bounds(cx, s.len())?;
    let n = match usize::try_from(start) {
        Ok(from) if from <= s.len() => {
            // An empty string also occurs at the end, as in Python.
            let limit = if wanted.is_empty() { end.saturating_add(1) } else { end };
            find_all(&s[from..], wanted).take_while(|&i| (i as i64 + start) < limit).count()
        }
        _ => 0,
    };
    cx.ret(n as i64);
    Ok(())
}

fn args(g: &mut Gen<'_>) -> Vec<IValue> {
    let mut args = vec![draw(g), draw_short(g)];
    if g.flag() {
        args.extend([IValue::Int(g.int(-4, 1)), IValue::Int(g.int(-2, 9))]);
    }
    args
}

pub(super) fn rows() -> Vec<OverloadRow> {
    vec![
        found("aten::find", "The position of the first occurrence, or -1.", false).fast(FastPath::StrFind),
        found("aten::rfind", "The position of the last occurrence, or -1.", true),
        required_match("aten::index", "str", "The position of the first occurrence.", false),
        required_match("aten::rindex", "", "The position of the last occurrence.", true),
        edge("aten::startswith", "Whether the substring between the bounds begins with a string.", |s, w| {
            s.starts_with(w)
        }),
        edge("aten::endswith", "Whether the substring between the bounds ends with a string.", |s, w| {
            s.ends_with(w)
        }),
        row("aten::count", "", "The number of non-overlapping occurrences between the bounds.", count)
            .sample(|g, _| args(g)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences() {
        let all = |s: &str, w: &str| find_all(s.as_bytes(), w.as_bytes()).collect::<Vec<_>>();
        assert_eq!(all("aaaa", "aa"), [0, 2]);
        assert_eq!(all("abababac", "abac"), [4]);
        assert_eq!(all("ab", ""), [0, 1, 2]);
        assert_eq!(all("", "a"), []);
        assert_eq!(find(b"aaaa", b"aa", true), Some(2));
        assert_eq!(find(b"abc", b"", true), Some(3));
        assert_eq!(find(b"abc", b"bc", false), Some(1));
    }
}
