//! Tensor constants in text: three formats with the elements, and an abbreviation without them.
//! - `{0.5}`: one element, in PyTorch's format. The declared type of the constant determines dtype and sizes.
//! - ` 1  2 [ CPULongType{2} ]`: up to [`MAX_SHORT_ELEMENTS`] elements, in PyTorch's format with spaces instead of the line breaks of
//!   C++'s stream. A tensor with more than two dimensions is a sequence of matrices, each after a header `(1,.,.) = `.
//! - `tensor(int64, [2], [1], "…")`: dtype, sizes, strides, and the row-major little-endian bytes in hexadecimal.
//! - `<Tensor>`: more elements than [`MAX_SHORT_ELEMENTS`]. Parsing it is error T008.
//!
//! PyTorch rounds to four decimals or to six digits. The printer uses PyTorch's text if the text parses back to the
//! same elements, and otherwise the same format with as many digits as necessary. The parser does not round, so
//! PyTorch's rounded text parses to rounded elements. The first two formats do not contain strides: the strides of the
//! declared type are used if it has any, else the tensor is row-major.

use super::lex::{Cursor, Read, is_word};
use super::parse::ReadLimits;
use super::short::read_short;
use crate::diag::{Diagnostic, Fault};
use crate::loc::Source;
use crate::types::{TensorType, Type};
use crate::value::write_float_exact;
use flambeau_tensor::print::{general, to_text};
use flambeau_tensor::{DType, Layout, Scalar, Tensor, TensorError};
use num_complex::Complex;
use std::fmt::{self, Write};

/// Maximum number of elements printed without the option `exact`; PyTorch's `max_tensor_display_size`.
pub(super) const MAX_SHORT_ELEMENTS: usize = 10;

/// Significant digits of C++'s streams.
const STREAM_DIGITS: usize = 6;

/// Prints a tensor in a readable format, which the parser accepts if the tensor has up to [`MAX_SHORT_ELEMENTS`] elements.
/// `declared` is the type of the constant.
pub(super) fn write_readable(out: &mut dyn Write, t: &Tensor, declared: Option<Type>) -> fmt::Result {
    if t.numel() > MAX_SHORT_ELEMENTS {
        return out.write_str("<Tensor>");
    }
    for form in [in_braces, in_full_braces, as_pytorch, in_full] {
        if let Some(text) = form(t).filter(|text| reads_back(text, t, declared)) {
            return out.write_str(&text);
        }
    }
    write_exact(out, t)
}

/// Prints dtype, sizes, strides and bytes.
pub(super) fn write_exact(out: &mut dyn Write, t: &Tensor) -> fmt::Result {
    let bytes = t.to_bytes().map_err(|_| fmt::Error)?;
    write!(out, "tensor({}, {:?}, {:?}, \"", t.dtype().name(), t.sizes(), t.strides())?;
    for b in bytes {
        write!(out, "{b:02x}")?;
    }
    out.write_str("\")")
}

/// Prints `{0.333333}`.
fn in_braces(t: &Tensor) -> Option<String> {
    let digits =
        |v: f64| if v.is_finite() { general(v, STREAM_DIGITS) } else { v.to_string().to_lowercase() };
    braced(t, digits, |z| format!("({},{})", digits(z.re), digits(z.im)))
}

/// Prints `{0.33333333333333331}`.
fn in_full_braces(t: &Tensor) -> Option<String> {
    braced(t, full, full_complex)
}

fn braced(
    t: &Tensor,
    float: impl Fn(f64) -> String,
    complex: impl Fn(Complex<f64>) -> String,
) -> Option<String> {
    if t.numel() != 1 {
        return None;
    }
    Some(match t.item().ok()? {
        Scalar::Bool(v) => format!("{{{}}}", u8::from(v)),
        Scalar::Int(v) => format!("{{{v}}}"),
        Scalar::Float(v) => format!("{{{}}}", float(v)),
        Scalar::Complex(z) => format!("{{{}}}", complex(z)),
    })
}

/// Prints PyTorch's text; returns `None` for complex tensors, of which PyTorch prints only the real parts.
fn as_pytorch(t: &Tensor) -> Option<String> {
    if t.dtype().is_complex() {
        return None;
    }
    to_text(t).ok().map(|text| text.replace('\n', " "))
}

/// Prints all elements in row-major order with all digits.
fn in_full(t: &Tensor) -> Option<String> {
    let mut text = String::new();
    for element in elements(t).ok()? {
        text.push(' ');
        match element {
            Scalar::Bool(v) => text.push(if v { '1' } else { '0' }),
            Scalar::Int(v) => text.push_str(&v.to_string()),
            Scalar::Float(v) => text.push_str(&full(v)),
            Scalar::Complex(z) => text.push_str(&full_complex(z)),
        }
    }
    let sizes: Vec<String> = t.sizes().iter().map(i64::to_string).collect();
    text.push_str(&format!(" [ CPU{}Type{{{}}} ]", t.dtype().ir_name(), sizes.join(",")));
    Some(text)
}

fn full(v: f64) -> String {
    let mut text = String::new();
    write_float_exact(&mut text, v).expect("invariant: writing to a string succeeds");
    text
}

fn full_complex(z: Complex<f64>) -> String {
    let sign = if z.im.is_sign_negative() { '-' } else { '+' };
    format!("{}{sign}{}j", full(z.re), full(z.im.abs()))
}

/// Returns whether a text parses to a tensor with the same dtype, sizes and elements. All NaN are equal.
fn reads_back(text: &str, t: &Tensor, declared: Option<Type>) -> bool {
    let source = Source::new("", text);
    let mut cursor = Cursor::new(&source);
    let limits = ReadLimits::trusted();
    let read = match cursor.peek() {
        b'{' => read_filled(&mut cursor, declared, &limits),
        _ => read_short(&mut cursor, declared, &limits),
    };
    let Ok(read) = read else { return false };
    if cursor.peek() != 0 || read.dtype() != t.dtype() || read.sizes() != t.sizes() {
        return false;
    }
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    let (Ok(a), Ok(b)) = (elements(&read), elements(t)) else { return false };
    a.into_iter().zip(b).all(|pair| match pair {
        (Scalar::Float(a), Scalar::Float(b)) => same(a, b),
        (Scalar::Complex(a), Scalar::Complex(b)) => same(a.re, b.re) && same(a.im, b.im),
        (a, b) => a == b,
    })
}

/// Returns all elements in row-major order.
fn elements(t: &Tensor) -> Result<Vec<Scalar>, TensorError> {
    let dtype = t.dtype();
    Ok(if dtype == DType::Bool {
        t.to_vec::<bool>()?.into_iter().map(Scalar::Bool).collect()
    } else if dtype.is_integral(true) {
        t.to_vec::<i64>()?.into_iter().map(Scalar::Int).collect()
    } else if dtype.is_complex() {
        t.to_dtype(DType::C128)?.to_vec::<Complex<f64>>()?.into_iter().map(Scalar::Complex).collect()
    } else {
        t.to_vec::<f64>()?.into_iter().map(Scalar::Float).collect()
    })
}

/// Parses `{n}`: a tensor of the declared type with all elements equal to `n`.
pub(super) fn read_filled(c: &mut Cursor<'_>, declared: Option<Type>, limits: &ReadLimits) -> Read<Tensor> {
    c.skip();
    let at = c.at;
    c.expect(b'{')?;
    let fill = if c.eat(b'(') {
        let re = real(c)?;
        c.expect(b',')?;
        let im = real(c)?;
        c.expect(b')')?;
        Scalar::Complex(Complex::new(re, im))
    } else {
        scalar(c)?
    };
    c.expect(b'}')?;
    let facts = declared.and_then(Type::as_tensor);
    let dtype = facts.and_then(|t| t.dtype).unwrap_or_else(|| fill.dtype());
    let sizes = facts.and_then(TensorType::concrete_sizes).unwrap_or_default();
    check_size(c, at, &sizes, dtype, limits)?;
    let wrong = |c: &Cursor<'_>, e: TensorError| c.error("T009", e.to_string(), at, c.at);
    let tensor = Tensor::full(&sizes, fill, dtype).map_err(|e| wrong(c, e))?;
    with_declared_strides(tensor, declared, limits).map_err(|e| c.error("T009", e, at, c.at))
}

/// Parses a number at the cursor.
fn scalar(c: &mut Cursor<'_>) -> Read<Scalar> {
    c.skip();
    let at = c.at;
    let word = c.take_while(is_number);
    match word {
        "True" => return Ok(Scalar::Bool(true)),
        "False" => return Ok(Scalar::Bool(false)),
        _ => {}
    }
    if let Ok(v) = word.parse::<i64>() {
        return Ok(Scalar::Int(v));
    }
    let found = float(word).map(Scalar::Float).or_else(|| complex(word).map(Scalar::Complex));
    found.ok_or_else(|| not_a_number(c, word, at))
}

fn real(c: &mut Cursor<'_>) -> Read<f64> {
    c.skip();
    let at = c.at;
    let word = c.take_while(is_number);
    float(word).ok_or_else(|| not_a_number(c, word, at))
}

pub(super) fn not_a_number(c: &Cursor<'_>, word: &str, at: usize) -> Box<Diagnostic> {
    c.error("T007", format!("`{word}` is not a number"), at, c.at.max(at + 1))
}

/// Returns whether the byte may occur in a number.
pub(super) fn is_number(b: u8) -> bool {
    is_word(b) || matches!(b, b'+' | b'-')
}

/// Parses a float: text that starts with a digit or a dot after the sign, or `inf` or `nan`.
pub(super) fn float(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['-', '+']);
    let is_number =
        digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') || matches!(digits, "inf" | "nan");
    is_number.then(|| text.parse().ok()).flatten()
}

/// Parses a complex number: `1.+2.j` or `2.j`.
pub(super) fn complex(text: &str) -> Option<Complex<f64>> {
    let text = text.strip_suffix('j')?;
    // The sign between the parts is the last sign that neither is the first byte nor follows an exponent's `e`.
    let bytes = text.as_bytes();
    let sign = (1..bytes.len())
        .rev()
        .find(|&i| matches!(bytes[i], b'+' | b'-') && !matches!(bytes[i - 1], b'e' | b'E'));
    match sign {
        Some(at) => Some(Complex::new(float(&text[..at])?, float(&text[at..])?)),
        None => Some(Complex::new(0.0, float(text)?)),
    }
}

/// Returns the number of elements.
///
/// # Errors
/// Returns T002 if the tensor exceeds the size limit.
pub(super) fn check_size(
    c: &Cursor<'_>,
    at: usize,
    sizes: &[i64],
    dtype: DType,
    limits: &ReadLimits,
) -> Read<usize> {
    let numel = sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(usize::try_from(s).ok()?));
    let fits = |n: &usize| n.checked_mul(dtype.size()).is_some_and(|bytes| bytes <= limits.tensor_bytes);
    let too_large = "the tensor constant is larger than the limit allows";
    numel.filter(fits).ok_or_else(|| c.fault(Fault::Limit, "T002", too_large, at, c.at))
}

/// Returns the tensor with the strides of the declared type if that type has strides and the same sizes.
pub(super) fn with_declared_strides(
    tensor: Tensor,
    declared: Option<Type>,
    limits: &ReadLimits,
) -> Result<Tensor, String> {
    let facts = declared.and_then(Type::as_tensor);
    match facts.and_then(|t| Some((t.concrete_sizes()?, t.concrete_strides()?))) {
        Some((sizes, strides)) if sizes == tensor.sizes() => with_strides(tensor, &strides, limits),
        _ => Ok(tensor),
    }
}

/// Returns a tensor with the same elements and other strides, with as much memory as the strides span.
fn with_strides(dense: Tensor, strides: &[i64], limits: &ReadLimits) -> Result<Tensor, String> {
    if dense.strides() == strides {
        return Ok(dense);
    }
    let failed = |e: TensorError| e.to_string();
    let layout = Layout::new(dense.sizes(), strides, 0).map_err(failed)?;
    if layout.storage_end().checked_mul(dense.dtype().size()).is_none_or(|b| b > limits.tensor_bytes) {
        return Err("the strides of the tensor span more than the limit allows".to_owned());
    }
    let strided = Tensor::empty_strided(dense.sizes(), strides, dense.dtype()).map_err(failed)?;
    strided.copy_(&dense).map_err(failed)?;
    Ok(strided)
}

/// Parses `tensor(dtype, [sizes], [strides], "bytes")`.
pub(super) fn read_exact(c: &mut Cursor<'_>, limits: &ReadLimits) -> Read<Tensor> {
    c.skip();
    let at = c.at;
    if c.word() != "tensor" {
        return Err(c.expected("`tensor(`"));
    }
    c.expect(b'(')?;
    let name = c.word();
    let Some(dtype) = DType::from_name(name) else {
        return Err(c.error("T009", format!("`{name}` is not a dtype"), at, c.at));
    };
    c.expect(b',')?;
    let sizes = integers(c)?;
    c.expect(b',')?;
    let strides = integers(c)?;
    c.expect(b',')?;
    c.expect(b'"')?;
    let hex = c.take_while(|b| b.is_ascii_hexdigit());
    if c.here() != b'"' {
        return Err(c.expected("`\"` after hexadecimal digits"));
    }
    c.at += 1;
    c.expect(b')')?;
    let elements = check_size(c, at, &sizes, dtype, limits)?;
    if elements * dtype.size() * 2 != hex.len() {
        return Err(c.error("T009", "the bytes of the tensor do not match its sizes", at, c.at));
    }
    let digit = |b: u8| char::from(b).to_digit(16).map_or(0, |d| d as u8);
    let bytes: Vec<u8> =
        hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    let dense = Layout::contiguous(&sizes).and_then(|layout| Tensor::from_bytes(&bytes, dtype, layout));
    let tensor = dense.map_err(|e| e.to_string()).and_then(|t| with_strides(t, &strides, limits));
    tensor.map_err(|e| c.error("T009", e, at, c.at))
}

/// Parses `[2, 3]`.
fn integers(c: &mut Cursor<'_>) -> Read<Vec<i64>> {
    let mut numbers = Vec::new();
    c.expect(b'[')?;
    while !c.eat(b']') {
        c.skip();
        let at = c.at;
        let word = c.take_while(is_number);
        numbers.push(word.parse().map_err(|_| not_a_number(c, word, at))?);
        if !c.eat(b',') {
            c.expect(b']')?;
            break;
        }
    }
    Ok(numbers)
}
