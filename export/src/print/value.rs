//! Values in printed texts: Python's `str` and `repr`, and the annotations of results.

use crate::codes::SchemaEnum;
use std::borrow::Cow;
use std::fmt::Write as _;

use crate::expr::{Exprs, python_float};
use crate::fx::{FxArg, FxGraph, Val};
use crate::model::{Device, ScalarType, SymBool, SymFloat, SymInt, TensorMeta};

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As in `str(graph)`: `%` before nodes, `str` of other values.
    Graph,
    /// As in generated code: names of nodes, `repr` of other values.
    Code,
}

/// The names of a graph's nodes. Generated code has names of its own, which are legal in Python.
pub(super) type Names<'n> = [Cow<'n, str>];

/// Returns the names of the nodes of a graph.
pub(super) fn names<'n>(graph: &'n FxGraph<'_>) -> Vec<Cow<'n, str>> {
    graph.nodes.iter().map(|node| Cow::Borrowed(&*node.name)).collect()
}

/// Writes an argument.
pub(super) fn argument(out: &mut String, names: &Names<'_>, arg: &FxArg<'_>, form: Form) {
    match arg {
        FxArg::Node(node) => {
            if form == Form::Graph {
                out.push('%');
            }
            out.push_str(&names[*node as usize]);
        }
        FxArg::None => out.push_str("None"),
        FxArg::Bool(v) => out.push_str(python_bool(*v)),
        FxArg::Int(v) => {
            let _ = write!(out, "{v}");
        }
        FxArg::Float(v) => out.push_str(&python_float(*v)),
        FxArg::Complex(real, imag) => out.push_str(&python_complex(*real, *imag)),
        FxArg::Str(v) if form == Form::Graph => out.push_str(v),
        FxArg::Str(v) => out.push_str(&python_string(v)),
        FxArg::ScalarType(v) => {
            let _ = write!(out, "torch.{}", v.name());
        }
        FxArg::MemoryFormat(v) => {
            let _ = write!(out, "torch.{}", v.name());
        }
        FxArg::Layout(v) => {
            let _ = write!(out, "torch.{}", v.name());
        }
        FxArg::Device(v) => out.push_str(&device(v, form)),
        FxArg::Operator(v) if form == Form::Graph => {
            let name = v.strip_prefix("torch.ops.").unwrap_or(v);
            out.push_str(name.strip_prefix("higher_order.").unwrap_or(name));
        }
        FxArg::Operator(v) | FxArg::Object(v) => out.push_str(v),
        FxArg::List(items) => {
            out.push('[');
            arguments(out, names, items, form);
            out.push(']');
        }
        FxArg::Tuple(items) => tuple(out, names, items, form),
        FxArg::Dict(items) => {
            out.push('{');
            for (n, (key, item)) in items.iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                match form {
                    Form::Graph => out.push_str(key),
                    Form::Code => out.push_str(&python_string(key)),
                }
                out.push_str(": ");
                argument(out, names, item, form);
            }
            out.push('}');
        }
    }
}

/// Writes arguments with commas between them.
pub(super) fn arguments(out: &mut String, names: &Names<'_>, items: &[FxArg<'_>], form: Form) {
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        argument(out, names, item, form);
    }
}

/// Writes a tuple.
pub(super) fn tuple(out: &mut String, names: &Names<'_>, items: &[FxArg<'_>], form: Form) {
    out.push('(');
    arguments(out, names, items, form);
    out.push_str(if items.len() == 1 { ",)" } else { ")" });
}

/// Returns the annotation of a result without quotes, such as `f32[s77, 3]` or `Sym(s77 - 1)`; `None` for tuples and constants.
pub(super) fn annotation(val: Val<'_>, exprs: &Exprs) -> Option<String> {
    match val {
        Val::Tensor(meta) => Some(tensor(meta, exprs)),
        Val::Int(SymInt::Expr { expr, .. })
        | Val::Float(SymFloat::Expr { expr, .. })
        | Val::Bool(SymBool::Expr { expr, .. }) => Some(format!("Sym({})", exprs.to_text(*expr))),
        _ => None,
    }
}

fn tensor(meta: &TensorMeta, exprs: &Exprs) -> String {
    let mut out = format!("{}[", abbreviation(meta.dtype));
    for (n, size) in meta.sizes.iter().enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        match size {
            SymInt::Int(v) => {
                let _ = write!(out, "{v}");
            }
            SymInt::Expr { expr, .. } => out.push_str(&exprs.to_text(*expr)),
        }
    }
    out.push(']');
    out
}

/// Returns the short name of a dtype in annotations.
fn abbreviation(dtype: ScalarType) -> &'static str {
    match dtype {
        ScalarType::U8 => "u8",
        ScalarType::I8 => "i8",
        ScalarType::I16 => "i16",
        ScalarType::I32 => "i32",
        ScalarType::I64 => "i64",
        ScalarType::F16 => "f16",
        ScalarType::F32 => "f32",
        ScalarType::F64 => "f64",
        ScalarType::C32 => "c32",
        ScalarType::C64 => "c64",
        ScalarType::C128 => "c128",
        ScalarType::Bool => "b8",
        ScalarType::BF16 => "bf16",
        ScalarType::U16 => "u16",
        ScalarType::U32 => "u32",
        ScalarType::U64 => "u64",
        ScalarType::F8E4M3FN => "f8e4m3fn",
        ScalarType::F8E5M2 => "f8e5m2",
        ScalarType::F8E4M3FNUZ => "f8e4m3fnuz",
        ScalarType::F8E5M2FNUZ => "f8e5m2fnuz",
        ScalarType::F8E8M0FNU => "f8e8m0fnu",
        ScalarType::Unknown => "unknown",
    }
}

pub(super) fn python_bool(v: bool) -> &'static str {
    if v { "True" } else { "False" }
}

/// Returns Python's text of a complex number: `(1+2j)`, `1j`.
fn python_complex(real: f64, imag: f64) -> String {
    let part = |v: f64| {
        let text = python_float(v);
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    if real == 0.0 && real.is_sign_positive() {
        return format!("{}j", part(imag));
    }
    let sign = if imag.is_sign_negative() && !imag.is_nan() { "" } else { "+" };
    format!("({}{sign}{}j)", part(real), part(imag))
}

/// Returns `repr` of a Python string.
pub(super) fn python_string(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c == quote => {
                out.push('\\');
                out.push(c);
            }
            ' ' => out.push(c),
            _ if c.is_control() || c.is_whitespace() => {
                let code = u32::from(c);
                let _ = match code {
                    ..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
            _ => out.push(c),
        }
    }
    out.push(quote);
    out
}

fn device(device: &Device, form: Form) -> String {
    match (form, device.index) {
        (Form::Graph, None) => device.kind.clone(),
        (Form::Graph, Some(index)) => format!("{}:{index}", device.kind),
        (Form::Code, None) => format!("device(type={})", python_string(&device.kind)),
        (Form::Code, Some(index)) => format!("device(type={}, index={index})", python_string(&device.kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_python_writes_them() {
        assert_eq!(python_string("it's"), "\"it's\"");
        assert_eq!(python_string("'\"\n\u{7}é\u{a0}"), "'\\'\"\\n\\x07é\\xa0'");
        assert_eq!(python_complex(1.0, -2.5), "(1-2.5j)");
        assert_eq!(python_complex(0.0, 1.0), "1j");
        assert_eq!(python_complex(-0.0, f64::NAN), "(-0+nanj)");
        let cuda = Device { kind: "cuda".to_owned(), index: Some(1) };
        assert_eq!(device(&cuda, Form::Code), "device(type='cuda', index=1)");
        assert_eq!(device(&cuda, Form::Graph), "cuda:1");
    }
}
