//! Joining, stripping, padding, replacing.

use super::search::{find, find_all};
use super::{draw, draw_short, return_bytes};
use crate::per_type::{OverloadRow, check_bytes_fit, machine, row, slice_positions};
use flambeau_exec::{FastPath, Gen, Intrinsic, KernelCx, KernelError, KernelResult};
use flambeau_ir::Type;
use flambeau_ir::value::{IValue, List, Str};

/// Pads to `width` bytes with `fill`, of which `before(missing, width)` precede the string.
fn pad(cx: &mut KernelCx<'_>, fill: u8, before: fn(usize, usize) -> usize) -> KernelResult {
    let (s, width) = (cx.str_bytes(0)?, usize::try_from(cx.int(1)?).unwrap_or(0));
    let missing = width.saturating_sub(s.len());
    check_bytes_fit(s.len().saturating_add(missing))?;
    let left = before(missing, width);
    let mut out = vec![fill; left];
    out.extend_from_slice(s);
    out.resize(s.len() + missing, fill);
    return_bytes(cx, out)
}

fn padded(name: &'static str, doc: &'static str, before: fn(usize, usize) -> usize) -> OverloadRow {
    let run = move |cx: &mut KernelCx<'_>| match *cx.str_bytes(2)? {
        [fill] => pad(cx, fill, before),
        _ => Err(KernelError::input("TypeError: The fill character must be exactly one character long")),
    };
    row(name, "", doc, run)
        .raises()
        .sample(|g, _| vec![draw(g), IValue::Int(g.int(0, 9)), IValue::str(["*", " "][g.below(2)])])
}

/// Defines an operator that strips characters from the front, the back, or both.
fn stripped(name: &'static str, doc: &'static str, front: bool, back: bool) -> OverloadRow {
    row(name, "", doc, move |cx| {
        let (s, chars) = (cx.str_bytes(0)?, cx.str_bytes(1)?);
        let kept = |b: &u8| !chars.contains(b);
        let from = if front { s.iter().position(kept).unwrap_or(s.len()) } else { 0 };
        let to = if back { s.iter().rposition(kept).map_or(0, |i| i + 1) } else { s.len() };
        let out = s.get(from..to).unwrap_or_default().to_vec();
        return_bytes(cx, out)
    })
    .sample(|g, _| vec![draw(g), draw_short(g)])
}

fn indexed(name: &'static str, overload: &'static str) -> OverloadRow {
    machine(name, overload, "`s[index]`: one byte, as a string.", Intrinsic::StrGet)
        .raises()
        .sample(|_, _| vec![IValue::str("abc"), IValue::Int(-2)])
}

fn expand_tabs(cx: &mut KernelCx<'_>) -> KernelResult {
    let (s, size) = (cx.str_bytes(0)?, usize::try_from(cx.int(1)?).unwrap_or(0));
    let tabs = s.iter().filter(|&&b| b == b'\t').count();
    check_bytes_fit(s.len().saturating_add(tabs.saturating_mul(size)))?;
    let mut out = Vec::with_capacity(s.len());
    for &b in s {
        match b {
            b'\t' if size == 0 => {}
            b'\t' => out.resize((out.len() / size + 1) * size, b' '),
            _ => out.push(b),
        }
    }
    return_bytes(cx, out)
}

/// Replaces at most `max` occurrences, all if it is negative. An empty string occurs before every byte and at the end.
fn replace(cx: &mut KernelCx<'_>) -> KernelResult {
    let (s, old, new) = (cx.str_bytes(0)?, cx.str_bytes(1)?, cx.str_bytes(2)?);
    let max = usize::try_from(cx.int(3)?).unwrap_or(usize::MAX);
    let at: Vec<usize> = find_all(s, old).take(max).collect();
    check_bytes_fit(s.len().saturating_add(at.len().saturating_mul(new.len())))?;
    let mut out = Vec::with_capacity(s.len());
    let mut from = 0;
    for i in at {
        out.extend_from_slice(&s[from..i]);
        out.extend_from_slice(new);
        from = i + old.len();
    }
    out.extend_from_slice(&s[from..]);
    return_bytes(cx, out)
}

fn join(cx: &mut KernelCx<'_>) -> KernelResult {
    let (s, list) = (cx.str_bytes(0)?, cx.list(1)?.read());
    let not_a_string = || KernelError::input("join: a part is not a string");
    let parts = list.as_values().ok_or_else(not_a_string)?;
    let bytes = |v: &IValue| v.as_str().map_or(0, Str::len);
    let total: usize = parts.iter().map(|v| bytes(v).saturating_add(s.len())).fold(0, usize::saturating_add);
    check_bytes_fit(total)?;
    let mut out = Vec::with_capacity(total);
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(s);
        }
        let part = part.as_str().ok_or_else(not_a_string)?;
        out.extend_from_slice(part.as_bytes());
    }
    drop(list);
    return_bytes(cx, out)
}

fn add(cx: &mut KernelCx<'_>) -> KernelResult {
    let (a, b) = (cx.str_bytes(0)?, cx.str_bytes(1)?);
    check_bytes_fit(a.len().saturating_add(b.len()))?;
    let joined = IValue::Str(Str::concat(a, b));
    cx.ret(joined);
    Ok(())
}

fn slice(cx: &mut KernelCx<'_>) -> KernelResult {
    let s = cx.str_bytes(0)?;
    let out: Vec<u8> =
        slice_positions(s.len(), cx.opt_int(1)?, cx.opt_int(2)?, cx.int(3)?)?.map(|i| s[i]).collect();
    return_bytes(cx, out)
}

/// Returns the string before the separator, the separator, and the string after it; without a separator the whole
/// string is first or, if `last`, last.
fn partition(cx: &mut KernelCx<'_>, last: bool) -> KernelResult {
    let (s, separator) = (cx.str_bytes(0)?, cx.str_bytes(1)?);
    let parts = match find(s, separator, last) {
        Some(i) => [&s[..i], separator, &s[i + separator.len()..]],
        None if last => [b"", b"", s],
        None => [s, b"", b""],
    };
    for part in parts.map(Str::from) {
        cx.ret(part);
    }
    Ok(())
}

fn two(g: &mut Gen<'_>) -> Vec<IValue> {
    vec![draw(g), draw_short(g)]
}

fn text_or_bounds(g: &mut Gen<'_>) -> Vec<IValue> {
    let step = IValue::Int([1, 2, -1, -3][g.below(4)]);
    vec![draw(g), IValue::Int(g.int(-4, 4)), IValue::Int(g.int(-4, 4)), step]
}

pub(super) fn rows() -> Vec<OverloadRow> {
    vec![
        machine("aten::len", "str", "The number of bytes.", Intrinsic::StrLen).sample(|g, _| vec![draw(g)]),
        row("aten::add", "str", "`a + b`.", add).fast(FastPath::StrAdd).sample(|g, _| vec![draw(g), draw(g)]),
        indexed("aten::__getitem__", "str"),
        indexed("prim::StringIndex", ""),
        row("aten::slice", "str", "`s[start:end:step]`, in bytes.", slice)
            .raises()
            .sample(|g, _| text_or_bounds(g)),
        row("aten::list", "", "A list of the bytes, as strings.", |cx| {
            let each = cx.str_bytes(0)?.iter().map(|&b| IValue::Str(Str::from(vec![b]))).collect();
            cx.ret(List::from_values(Type::STR, each));
            Ok(())
        })
        .sample(|g, _| vec![draw(g)]),
        padded(
            "aten::center",
            "Padded on both sides to a width; an odd padding is larger on the left if the width is odd.",
            |n, width| n / 2 + (n & width & 1),
        ),
        padded("aten::ljust", "Padded at the end to a width.", |_, _| 0),
        padded("aten::rjust", "Padded at the front to a width.", |n, _| n),
        row("aten::zfill", "", "Padded at the front with zeros to a width, also before a sign.", |cx| {
            pad(cx, b'0', |n, _| n)
        })
        .sample(|g, _| vec![draw(g), IValue::Int(g.int(0, 9))]),
        stripped("aten::strip", "Without bytes of a set at both ends.", true, true),
        stripped("aten::lstrip", "Without bytes of a set at the front.", true, false),
        stripped("aten::rstrip", "Without bytes of a set at the end.", false, true),
        row(
            "aten::expandtabs",
            "",
            "Tabs replaced by spaces, up to columns counted from the start.",
            expand_tabs,
        )
        .sample(|g, _| vec![draw(g), IValue::Int(g.int(0, 9))]),
        row(
            "aten::replace",
            "",
            "The first `max` occurrences of a string (all, if negative) replaced.",
            replace,
        )
        .sample(|g, _| vec![draw(g), draw_short(g), draw(g), IValue::Int(g.int(-1, 2))]),
        row("aten::join", "", "The strings of a list with this one between them.", join).sample(|g, _| {
            let parts = (0..g.below(4)).map(|_| draw(g)).collect();
            vec![draw(g), IValue::list(Type::STR, parts)]
        }),
        row(
            "aten::partition",
            "",
            "The part before the first separator, the separator, and the rest.",
            |cx| partition(cx, false),
        )
        .sample(|g, _| two(g)),
        row(
            "aten::rpartition",
            "",
            "The part before the last separator, the separator, and the rest.",
            |cx| partition(cx, true),
        )
        .sample(|g, _| two(g)),
    ]
}
