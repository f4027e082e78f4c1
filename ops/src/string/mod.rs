//! String operators. Strings are byte strings, as in TorchScript: only ASCII letters have case, and positions count
//! bytes, so a substring may contain part of a character.

mod case;
mod edit;
mod format;
pub(crate) mod number;
mod search;
mod split;

use crate::per_type::{OverloadRow, all, machine, row};
use flambeau_exec::{Gen, Intrinsic, KernelCx, KernelResult};
use flambeau_ir::OpDef;
use flambeau_ir::value::{IValue, Str};

/// Draws a string.
fn draw(g: &mut Gen<'_>) -> IValue {
    IValue::str(["", "a", "ab", "b a b", "Hello World", "x\ty\nz", " é1 ", "A_b2"][g.below(8)])
}

/// Draws a short string to search for.
fn draw_short(g: &mut Gen<'_>) -> IValue {
    IValue::str(["a", "b", " ", "l", "lo", "\t"][g.below(6)])
}

fn return_bytes(cx: &mut KernelCx<'_>, bytes: impl Into<Vec<u8>>) -> KernelResult {
    cx.ret(Str::from(bytes.into()));
    Ok(())
}

/// `str -> str`.
fn mapped(name: &'static str, doc: &'static str, f: fn(&[u8]) -> Vec<u8>) -> OverloadRow {
    row(name, "", doc, move |cx| {
        let bytes = f(cx.str_bytes(0)?);
        return_bytes(cx, bytes)
    })
    .sample(|g, _| vec![draw(g)])
}

/// `str -> bool`.
fn str_query(name: &'static str, doc: &'static str, f: fn(&[u8]) -> bool) -> OverloadRow {
    row(name, "", doc, move |cx| {
        let answer = f(cx.str_bytes(0)?);
        cx.ret(answer);
        Ok(())
    })
    .sample(|g, _| vec![draw(g)])
}

/// `(str, str) -> bool`.
fn compared(name: &'static str, doc: &'static str, f: fn(&Str, &Str) -> bool) -> OverloadRow {
    row(name, "str", doc, move |cx| {
        let answer = f(cx.string(0)?, cx.string(1)?);
        cx.ret(answer);
        Ok(())
    })
    .sample(|g, _| vec![draw(g), draw(g)])
}

fn equality(name: &'static str, doc: &'static str, is: Intrinsic) -> OverloadRow {
    machine(name, "str", doc, is).sample(|g, _| vec![draw(g), draw(g)])
}

fn comparisons() -> Vec<OverloadRow> {
    vec![
        equality("aten::eq", "`a == b`.", Intrinsic::StrEqual),
        equality("aten::ne", "`a != b`.", Intrinsic::StrNotEqual),
        compared("aten::lt", "`a < b`, byte by byte.", |a, b| a < b),
        compared("aten::le", "`a <= b`, byte by byte.", |a, b| a <= b),
        compared("aten::gt", "`a > b`, byte by byte.", |a, b| a > b),
        compared("aten::ge", "`a >= b`, byte by byte.", |a, b| a >= b),
    ]
}

pub(super) fn family() -> Vec<OpDef> {
    let families = [comparisons(), case::rows(), edit::rows(), search::rows(), split::rows(), format::rows()];
    all(families.into_iter().flatten())
}
