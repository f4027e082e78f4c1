//! Conversion of values to text, and of text to numbers.

use super::number::{fixed, scientific};
use super::{draw, return_bytes};
use crate::per_type::{Elem, OverloadRow, check_bytes_fit, row};
use flambeau_exec::{FastPath, KernelCx, KernelError, KernelResult};
use flambeau_ir::value::{IValue, MAX_TEXT, Str};

/// Appends a value as `str()` formats it. A string keeps its bytes.
fn append(out: &mut Vec<u8>, value: &IValue) -> KernelResult {
    match value {
        IValue::Str(s) => out.extend_from_slice(s.as_bytes()),
        other => {
            let too_long =
                || KernelError::limit(format!("the text of a value has more than {MAX_TEXT} bytes"));
            out.extend_from_slice(other.str_text().ok_or_else(too_long)?.as_bytes());
        }
    }
    Ok(())
}

fn to_str(cx: &mut KernelCx<'_>) -> KernelResult {
    if let IValue::Str(s) = cx.arg(0)? {
        let s = s.clone();
        cx.ret(s);
        return Ok(());
    }
    let mut out = Vec::new();
    append(&mut out, cx.arg(0)?)?;
    return_bytes(cx, out)
}

/// Replaces each `{}` by the next argument. Anything else in braces stays as it is.
fn format(cx: &mut KernelCx<'_>) -> KernelResult {
    let pattern = cx.string(0)?.clone();
    let mut rest = pattern.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    let mut next = 1;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"{}") {
        out.extend_from_slice(&rest[..at]);
        if next >= cx.n_args() {
            return Err(KernelError::input(format!("Too few arguments for format string: {pattern}")));
        }
        append(&mut out, cx.arg(next)?)?;
        check_bytes_fit(out.len())?;
        next += 1;
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    return_bytes(cx, out)
}

/// `self % args`: the arguments are one value, or a tuple of several.
fn percent_format(cx: &mut KernelCx<'_>) -> KernelResult {
    let pattern = cx.string(0)?.clone();
    let given = if cx.n_args() > 1 { cx.arg(1)?.clone() } else { IValue::None };
    let args: &[IValue] = match &given {
        IValue::Tuple(t) => t.items(),
        one => std::slice::from_ref(one),
    };
    let mut rest = pattern.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    let mut unused = args.iter();
    while let Some(at) = rest.iter().position(|&b| b == b'%') {
        out.extend_from_slice(&rest[..at]);
        let &specifier = rest.get(at + 1).ok_or_else(|| KernelError::input("Incomplete format specifier"))?;
        rest = &rest[at + 2..];
        if specifier == b'%' {
            out.push(b'%');
            continue;
        }
        let arg = unused.next().ok_or_else(|| KernelError::input("Too few arguments for format string"))?;
        append_as(&mut out, specifier, arg)?;
        check_bytes_fit(out.len())?;
    }
    if unused.next().is_some() {
        return Err(KernelError::input("Too many arguments for format string"));
    }
    out.extend_from_slice(rest);
    return_bytes(cx, out)
}

/// Formats one argument by one specifier. As in TorchScript, floating-point specifiers round to f32, and `%d` converts
/// floats to 32-bit integers.
fn append_as(out: &mut Vec<u8>, specifier: u8, arg: &IValue) -> KernelResult {
    let shown = char::from(specifier);
    let wrong = |wanted: &str| {
        KernelError::input(format!("%{shown} requires {wanted} for formatting, but got {}", arg.tag()))
    };
    let single = || match arg {
        IValue::Int(i) => Ok(f64::from(*i as f32)),
        IValue::Float(x) => Ok(f64::from(*x as f32)),
        _ => Err(wrong("a number")),
    };
    let text = match specifier {
        b'd' | b'i' => match arg {
            IValue::Int(i) => i.to_string(),
            IValue::Float(x) if (-2_147_483_649.0 < *x) && (*x < 2_147_483_648.0) => (*x as i32).to_string(),
            IValue::Float(_) => i32::MIN.to_string(),
            _ => return Err(wrong("a number")),
        },
        b'e' => scientific(single()?, 6),
        b'E' => scientific(single()?, 6).to_uppercase(),
        b'f' | b'F' => fixed(single()?, 6),
        b'c' => match arg {
            IValue::Int(i) => {
                out.push(*i as u8);
                return Ok(());
            }
            IValue::Str(s) if s.len() == 1 => {
                return append(out, arg);
            }
            _ => return Err(wrong("an int or char")),
        },
        b's' => return append(out, arg),
        _ => {
            return Err(KernelError::input(format!(
                "The specifier %{shown} is not supported in TorchScript format strings"
            )));
        }
    };
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Defines an operator that formats an integer in another base, with a prefix after the sign.
fn in_base(name: &'static str, doc: &'static str, write: fn(u64) -> String) -> OverloadRow {
    row(name, "", doc, move |cx| {
        let i = cx.int(0)?;
        let sign = if i < 0 { "-" } else { "" };
        return_bytes(cx, format!("{sign}{}", write(i.unsigned_abs())))
    })
    .sample(|g, _| vec![IValue::Int(g.int(-300, 300))])
}

fn ord(cx: &mut KernelCx<'_>) -> KernelResult {
    match *cx.str_bytes(0)? {
        [byte] => cx.ret(i64::from(byte)),
        ref other => {
            return Err(KernelError::input(format!(
                "String for ord() must be 1 character, found {}",
                other.len()
            )));
        }
    }
    Ok(())
}

/// Returns one byte: the lowest eight bits of the number.
fn chr(cx: &mut KernelCx<'_>) -> KernelResult {
    let i = cx.int(0)?;
    if !(0..1_114_111).contains(&i) {
        return Err(KernelError::input(format!("chr() arg not in range(0x110000), found {i}")));
    }
    return_bytes(cx, [i as u8])
}

pub(super) fn rows() -> Vec<OverloadRow> {
    vec![
        row("aten::str", "", "A value as text.", to_str).fast(FastPath::StrOfInt).sample(|g, _| {
            match g.below(3) {
                0 => vec![Elem::Float.draw(g)],
                1 => vec![Elem::Int.list(g, 0)],
                _ => vec![draw(g)],
            }
        }),
        row("aten::format", "", "Each `{}` replaced by the next argument.", format)
            .raises()
            .sample(|g, _| vec![IValue::str("<{} {}>"), Elem::Float.draw(g), draw(g)]),
        row("aten::percentFormat", "", "`%d %i %e %f %c %s` replaced by arguments.", percent_format)
            .raises()
            .sample(|g, _| vec![IValue::str("%d: %s"), IValue::tuple(vec![Elem::Int.draw(g), draw(g)])]),
        in_base("aten::bin", "An integer in base 2, `0b101`.", |i| format!("{i:#b}")),
        in_base("aten::hex", "An integer in base 16, `0x1f`.", |i| format!("{i:#x}")),
        in_base("aten::oct", "An integer in base 8, `0o17`.", |i| format!("{i:#o}")),
        row("aten::ord", "", "The value of a string of one byte.", ord)
            .raises()
            .sample(|g, _| vec![IValue::Str(Str::from(vec![g.int(0, 255) as u8]))]),
        row("aten::chr", "", "A string of one byte.", chr)
            .raises()
            .sample(|g, _| vec![IValue::Int(g.int(0, 255))]),
    ]
}
