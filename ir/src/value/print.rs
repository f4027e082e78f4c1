//! Text of values: the output of `str()` and `print`, and the exact form in IR attributes.
//!
//! Values are printed from left to right with an explicit stack of pieces. A container that occurs within itself is
//! printed as dots. A container that occurs several times is printed each time, so the text may be exponentially larger
//! than the value: that of `str()` has at most [`MAX_TEXT`] bytes.

use std::fmt::{self, Write};

use flambeau_tensor::Tensor;
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use super::text::{quote, write_complex, write_float, write_float_exact};
use super::{Dict, IValue, List};
use crate::types::{Type, TypeKind};

/// The form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintStyle {
    /// As `str()` and `print`: strings without quotes, floats shortened.
    Str,
    /// As constants in IR and source: quoted strings, exact floats, annotated empty containers.
    Exact,
}

/// Maximum number of bytes of the text of a value in the form of `str()`. The exact form has no bound: IR text contains
/// the elements of large tensors.
pub const MAX_TEXT: usize = 1 << 26;

/// Writes a tensor that occurs in the value.
pub type TensorPrinter<'a> = &'a mut dyn FnMut(&mut dyn Write, &Tensor) -> fmt::Result;

/// Called on every part of a value before the default printing; returns true if it wrote the part.
pub type PartPrinter<'a> = &'a mut dyn FnMut(&mut dyn Write, &IValue) -> Result<bool, fmt::Error>;

enum Piece {
    Value(IValue),
    Text(&'static str),
    Owned(String),
    Close(usize),
}

/// Writes a value with `tensor` for the tensors in it.
///
/// # Errors
/// Returns the errors of `out`, and an error if the text of `str()` would have more than [`MAX_TEXT`] bytes.
pub fn print_value(
    out: &mut dyn Write,
    value: &IValue,
    style: PrintStyle,
    tensor: TensorPrinter<'_>,
) -> fmt::Result {
    print_value_with(out, value, style, &mut |out, part| match part {
        IValue::Tensor(t) => tensor(out, t).map(|()| true),
        _ => Ok(false),
    })
}

/// Writes a value. `own` is called for every part first. It may write the part and return true, or write a prefix and
/// return false.
///
/// # Errors
/// Returns the errors of `out` and of `own`, and an error if the text of `str()` would have more than [`MAX_TEXT`] bytes.
pub fn print_value_with(
    out: &mut dyn Write,
    value: &IValue,
    style: PrintStyle,
    own: PartPrinter<'_>,
) -> fmt::Result {
    let limit = match style {
        PrintStyle::Str => MAX_TEXT,
        PrintStyle::Exact => usize::MAX,
    };
    print_within(out, value, style, own, limit)
}

/// Writes a value in at most `limit` bytes.
fn print_within(
    out: &mut dyn Write,
    value: &IValue,
    style: PrintStyle,
    own: PartPrinter<'_>,
    limit: usize,
) -> fmt::Result {
    let out = &mut Bounded { out, left: limit };
    let mut open: HashSet<usize, FxBuildHasher> = HashSet::default();
    let mut pieces = vec![Piece::Value(value.clone())];
    while let Some(piece) = pieces.pop() {
        match piece {
            Piece::Text(text) => out.write_str(text)?,
            Piece::Owned(text) => out.write_str(&text)?,
            Piece::Close(id) => {
                open.remove(&id);
            }
            Piece::Value(value) => {
                if own(out, &value)? {
                    continue;
                }
                if let Some(parts) = parts(&value, style) {
                    let id = value.identity().expect("invariant: containers have identity");
                    if open.insert(id) {
                        pieces.push(Piece::Close(id));
                        pieces.extend(parts.into_iter().rev());
                    } else {
                        out.write_str(if value.is_dict() { "{...}" } else { "[...]" })?;
                    }
                } else {
                    write_plain(out, &value, style)?;
                }
            }
        }
    }
    Ok(())
}

/// A writer of at most `left` more bytes.
struct Bounded<'a> {
    out: &'a mut dyn Write,
    left: usize,
}

impl Write for Bounded<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.checked_sub(text.len()).ok_or(fmt::Error)?;
        self.out.write_str(text)
    }
}

/// Returns the pieces of a container; `None` for other values.
fn parts(value: &IValue, style: PrintStyle) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    match value {
        IValue::Tuple(t) => {
            pieces.push(Piece::Text("("));
            separated(&mut pieces, t.items().iter().map(|v| vec![Piece::Value(v.clone())]));
            pieces.push(Piece::Text(if t.items().len() == 1 { ",)" } else { ")" }));
        }
        IValue::List(l) => {
            let annotated = style == PrintStyle::Exact && needs_annotation(l);
            if annotated {
                pieces.push(Piece::Owned(format!("annotate({}, ", Type::list(l.elem_type()).annotation())));
            }
            pieces.push(Piece::Text("["));
            separated(&mut pieces, l.to_vec().into_iter().map(|v| vec![Piece::Value(v)]));
            pieces.push(Piece::Text(if annotated { "])" } else { "]" }));
        }
        IValue::Dict(d) => {
            let annotated = style == PrintStyle::Exact && dict_needs_annotation(d);
            if annotated {
                pieces.push(Piece::Owned(format!("annotate({},", value.type_of().annotation())));
            }
            pieces.push(Piece::Text("{"));
            let entries = d.to_vec().into_iter();
            separated(
                &mut pieces,
                entries.map(|(k, v)| vec![Piece::Value(k), Piece::Text(": "), Piece::Value(v)]),
            );
            pieces.push(Piece::Text(if annotated { "})" } else { "}" }));
        }
        _ => return None,
    }
    Some(pieces)
}

fn separated(pieces: &mut Vec<Piece>, items: impl Iterator<Item = Vec<Piece>>) {
    for (i, item) in items.enumerate() {
        if i > 0 {
            pieces.push(Piece::Text(", "));
        }
        pieces.extend(item);
    }
}

/// Returns whether the elements determine the element type.
fn inferable(elem: Type) -> bool {
    !matches!(
        elem.kind(),
        TypeKind::Union(_)
            | TypeKind::Optional(_)
            | TypeKind::Number
            | TypeKind::Interface(_)
            | TypeKind::Any
    )
}

fn needs_annotation(list: &List) -> bool {
    list.is_empty() || !inferable(list.elem_type())
}

fn dict_needs_annotation(dict: &Dict) -> bool {
    dict.is_empty() || !inferable(dict.value_type())
}

fn write_plain(out: &mut dyn Write, value: &IValue, style: PrintStyle) -> fmt::Result {
    let exact = style == PrintStyle::Exact;
    match value {
        IValue::None => out.write_str("None"),
        IValue::Bool(b) => out.write_str(if *b { "True" } else { "False" }),
        IValue::Int(i) => write!(out, "{i}"),
        IValue::Float(x) if exact => write_float_exact(out, *x),
        IValue::Float(x) => write_float(out, *x),
        IValue::Complex(z) => write_complex(out, **z, if exact { write_float_exact } else { write_float }),
        IValue::Str(s) if exact => out.write_str(&quote(s.as_bytes())),
        IValue::Str(s) => out.write_str(&s.to_text()),
        IValue::Device(d) if exact => write!(out, "torch.device(\"{d}\")"),
        IValue::Device(d) => write!(out, "{d}"),
        IValue::Enum(e) if exact => write!(out, "{}.{}", e.ty().annotation(), e.name()),
        IValue::Enum(e) => {
            let class = e.ty().annotation_str();
            write!(out, "Enum<{}.{}>", class.rsplit('.').next().unwrap_or(&class), e.name())
        }
        IValue::Object(o) => write!(out, "<{} object at {:#x}>", o.class().annotation(), o.id()),
        IValue::Future(_) => out.write_str("Future"),
        IValue::Generator(g) if exact => {
            write!(out, "torch.Generator(device=\"{}\", seed={})", g.device(), g.seed())
        }
        IValue::Generator(_) => out.write_str("Generator"),
        IValue::Function(name) => write!(out, "{name}"),
        IValue::Host(h) => write!(out, "{:?}", h.get()),
        IValue::Uninitialized => out.write_str("Uninitialized"),
        IValue::Tensor(t) => write!(out, "{t:?}"),
        IValue::Tuple(_) | IValue::List(_) | IValue::Dict(_) => {
            unreachable!("invariant: containers are printed by the caller")
        }
    }
}

/// Writes a tensor as `print` does.
fn whole_tensor(out: &mut dyn Write, t: &Tensor) -> fmt::Result {
    match flambeau_tensor::print::to_text(t) {
        Ok(text) => out.write_str(&text),
        Err(error) => write!(out, "<tensor that cannot be read: {error}>"),
    }
}

fn short_tensor(out: &mut dyn Write, t: &Tensor) -> fmt::Result {
    write!(out, "{t:?}")
}

/// Writes a value to a formatter. The formatting functions of the standard library panic if there is an error that is
/// not the formatter's, so a text that is too long ends in dots instead.
fn write_formatted(
    f: &mut fmt::Formatter<'_>,
    value: &IValue,
    style: PrintStyle,
    tensor: TensorPrinter<'_>,
) -> fmt::Result {
    let mut failed = false;
    let mut out = Watched { out: &mut *f, failed: &mut failed };
    let mut own = |out: &mut dyn Write, part: &IValue| match part {
        IValue::Tensor(t) => tensor(out, t).map(|()| true),
        _ => Ok(false),
    };
    match print_within(&mut out, value, style, &mut own, MAX_TEXT) {
        Err(_) if !failed => f.write_str("..."),
        result => result,
    }
}

/// A writer that remembers whether an error is its own.
struct Watched<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    failed: &'a mut bool,
}

impl Write for Watched<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let result = self.out.write_str(text);
        *self.failed |= result.is_err();
        result
    }
}

impl IValue {
    /// Returns the text of `str()`; `None` if it would have more than [`MAX_TEXT`] bytes.
    pub fn str_text(&self) -> Option<String> {
        let mut text = String::new();
        print_value(&mut text, self, PrintStyle::Str, &mut whole_tensor).ok()?;
        Some(text)
    }
}

/// Writes the text of `str()`, cut after [`MAX_TEXT`] bytes; dots mark the cut.
impl fmt::Display for IValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_formatted(f, self, PrintStyle::Str, &mut whole_tensor)
    }
}

/// Writes the exact form, cut after [`MAX_TEXT`] bytes; dots mark the cut.
impl fmt::Debug for IValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_formatted(f, self, PrintStyle::Exact, &mut short_tensor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_tensor::{Complex, Device};

    #[test]
    fn tensors_print_within_containers() {
        let t = IValue::Tensor(Tensor::from_slice(&[1.5_f32, 2.0], &[2]).unwrap());
        assert_eq!(IValue::tuple(vec![t]).to_string(), "( 1.5000\n 2.0000\n[ CPUFloatType{2} ],)");
    }

    #[test]
    fn texts_of_values_that_contain_a_value_many_times_are_bounded() {
        let mut value = IValue::ints(vec![1]);
        for _ in 0..60 {
            value = IValue::tuple(vec![value.clone(), value]);
        }
        let mut text = String::new();
        print_within(&mut text, &value, PrintStyle::Str, &mut |_, _| Ok(false), 1000).unwrap_err();
        assert!(text.len() <= 1000);
        let long = IValue::tuple(vec![IValue::str(&"a".repeat(MAX_TEXT))]);
        assert_eq!(long.str_text(), None);
        assert_eq!(long.to_string(), "(...");
        let mut exact = String::new();
        print_value(&mut exact, &long, PrintStyle::Exact, &mut short_tensor).unwrap();
        assert!(exact.len() > MAX_TEXT);
    }

    #[test]
    fn both_styles() {
        let dict = Dict::new(Type::STR, Type::FLOAT);
        dict.insert(IValue::str("k"), IValue::Float(1.0)).unwrap();
        let value = IValue::tuple(vec![
            IValue::Float(1e12),
            IValue::str("a'b"),
            IValue::None,
            IValue::Dict(dict),
            IValue::list(Type::FLOAT, vec![IValue::Float(1.5), IValue::Float(2.0)]),
            IValue::complex(Complex::new(1.0, -2.5)),
            IValue::Device(Device::CPU),
            IValue::ints(vec![]),
            IValue::tuple(vec![IValue::Bool(true)]),
            IValue::list(Type::OPTIONAL_INT, vec![IValue::None]),
        ]);
        assert_eq!(
            value.to_string(),
            "(1000000000000., a'b, None, {k: 1.}, [1.5, 2.], 1.-2.5j, cpu, [], (True,), [None])"
        );
        assert_eq!(
            format!("{value:?}"),
            "(1000000000000., \"a\\'b\", None, {\"k\": 1.}, [1.5, 2.], 1.-2.5j, torch.device(\"cpu\"), \
             annotate(List[int], []), (True,), annotate(List[Optional[int]], [None]))"
        );
    }
}
