//! Splitting strings into lists.

use super::search::find_all;
use super::{draw, draw_short};
use crate::per_type::{OverloadRow, check_values_fit, row};
use flambeau_exec::{KernelCx, KernelError, KernelResult};
use flambeau_ir::Type;
use flambeau_ir::value::{IValue, List, Str};

fn return_bytes(cx: &mut KernelCx<'_>, parts: Vec<&[u8]>) -> KernelResult {
    check_values_fit(parts.len())?;
    let parts = parts.into_iter().map(|part| IValue::Str(Str::from(part))).collect();
    cx.ret(List::from_values(Type::STR, parts));
    Ok(())
}

/// Returns the pieces between separators of `width` bytes at the given positions.
fn pieces<'a>(s: &'a [u8], at: &[usize], width: usize) -> Vec<&'a [u8]> {
    let mut from = 0;
    let mut out = Vec::with_capacity(at.len() + 1);
    for &i in at {
        out.push(&s[from..i]);
        from = i + width;
    }
    out.push(&s[from..]);
    out
}

fn separator(separator: &[u8]) -> Result<&[u8], KernelError> {
    if separator.is_empty() {
        return Err(KernelError::input("ValueError: empty separator"));
    }
    Ok(separator)
}

/// Without a separator: splits at runs of white space and line ends.
fn split(cx: &mut KernelCx<'_>) -> KernelResult {
    let s = cx.string(0)?.clone();
    let s = s.as_bytes();
    let Some(by) = cx.opt_string(1)?.cloned() else {
        let words = s.split(|&b| matches!(b, b' ' | b'\t') || ends_line(b)).filter(|word| !word.is_empty());
        return return_bytes(cx, words.collect());
    };
    let by = separator(by.as_bytes())?;
    let max = usize::try_from(cx.int(2)?).unwrap_or(usize::MAX);
    let at: Vec<usize> = find_all(s, by).take(max).collect();
    return_bytes(cx, pieces(s, &at, by.len()))
}

/// Splits at the last `max` separators.
fn rsplit(cx: &mut KernelCx<'_>) -> KernelResult {
    let (s, by) = (cx.string(0)?.clone(), cx.string(1)?.clone());
    let (s, by) = (s.as_bytes(), separator(by.as_bytes())?);
    let max = usize::try_from(cx.int(2)?).unwrap_or(usize::MAX);
    let reversed = |s: &[u8]| s.iter().rev().copied().collect::<Vec<u8>>();
    let (s_reversed, by_reversed) = (reversed(s), reversed(by));
    let found = find_all(&s_reversed, &by_reversed).take(max).map(|i| s.len() - i - by.len());
    let mut at: Vec<usize> = found.collect();
    at.reverse();
    return_bytes(cx, pieces(s, &at, by.len()))
}

/// Whether a byte ends a line: ASCII line breaks and separators, and single bytes of the Unicode ones.
fn ends_line(b: u8) -> bool {
    matches!(b, b'\n'..=b'\r' | 0x1c..=0x1e | 0x85 | 0xe2 | 0x80 | 0xa8 | 0xa9)
}

/// Every line end counts separately, also the two of `\r\n`; kept line ends are separate elements.
fn split_lines(cx: &mut KernelCx<'_>) -> KernelResult {
    let (s, keep) = (cx.string(0)?.clone(), cx.boolean(1)?);
    let s = s.as_bytes();
    let mut from = 0;
    let mut out = Vec::new();
    for (i, _) in s.iter().enumerate().filter(|(_, b)| ends_line(**b)) {
        out.push(&s[from..i]);
        if keep {
            out.push(&s[i..=i]);
        }
        from = i + 1;
    }
    if from < s.len() {
        out.push(&s[from..]);
    }
    return_bytes(cx, out)
}

pub(super) fn rows() -> Vec<OverloadRow> {
    vec![
        row("aten::split", "str", "The pieces between separators; without one, the words.", split)
            .raises()
            .sample(|g, _| {
                let by = if g.flag() { IValue::None } else { draw_short(g) };
                vec![draw(g), by, IValue::Int(g.int(-1, 2))]
            }),
        row("aten::rsplit", "", "The pieces between the last `max` separators.", rsplit)
            .raises()
            .sample(|g, _| vec![draw(g), draw_short(g), IValue::Int(g.int(-1, 2))]),
        row(
            "aten::splitlines",
            "",
            "The lines; with `keepends`, their line ends as separate elements.",
            split_lines,
        )
        .sample(|g, _| vec![draw(g), IValue::Bool(g.flag())]),
    ]
}
