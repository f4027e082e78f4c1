//! Parser for tensors in the format of PyTorch's C++ streams: ` 1  2 [ CPULongType{2} ]`.
//!
//! ```text
//! tensor = { matrix } "[" BACKEND DTYPE "Type{" [ size { "," size } ] "}" "]"
//! matrix = [ "(" index { "," index } ",.,.)" "=" ] { part }
//! part   = [ "Columns" first "to" last ] [ scale "*" ] { number }
//! ```
//!
//! Indices and columns start at one. Dtype and sizes follow the numbers, so the parser collects numbers by part and
//! computes their positions at the end. Each element must occur exactly once. The time is linear in the length of the
//! text.

use super::lex::{Cursor, Read};
use super::parse::ReadLimits;
use super::tensors::{check_size, complex, float, is_number, not_a_number, with_declared_strides};
use crate::diag::Fault;
use crate::types::Type;
use flambeau_tensor::{DType, Tensor, TensorError};
use num_complex::Complex;
use std::rc::Rc;

/// Returns whether a tensor in this format starts at the cursor. A number is the start of a tensor if neither a
/// separator nor the end of the value follows it.
pub(super) fn starts_short(c: &mut Cursor<'_>) -> bool {
    let back = c.at;
    let found = match c.peek() {
        b'(' => {
            c.at += 1;
            c.take_while(|b| b.is_ascii_digit() || matches!(b, b',' | b' '));
            c.text[c.at..].starts_with(".,")
        }
        b'[' => {
            c.at += 1;
            c.word().ends_with("Type") && c.here() == b'{'
        }
        b'C' => c.word() == "Columns",
        _ => {
            let word = c.take_while(is_number);
            (float(word).is_some() || complex(word).is_some())
                && !matches!(c.peek(), b',' | b']' | b')' | b'}' | b':' | 0)
        }
    };
    c.at = back;
    found
}

/// A number with its scale, as a power of ten.
struct Number<'t> {
    text: &'t str,
    at: usize,
    exponent: i32,
}

/// The numbers of a matrix, or of some columns of a matrix.
struct Part<'t> {
    /// Indices of the matrix; empty if the text has none.
    matrix: Rc<[i64]>,
    /// First and last column, if the text has them.
    columns: Option<(i64, i64)>,
    numbers: Vec<Number<'t>>,
}

/// Parses a tensor. If a declared type has the same sizes, its strides are used.
///
/// # Errors
/// Returns T007, T008 or T009 if numbers, dtype and sizes do not form a tensor, and T002 if a limit is exceeded.
pub(super) fn read_short(c: &mut Cursor<'_>, declared: Option<Type>, limits: &ReadLimits) -> Read<Tensor> {
    c.skip();
    let at = c.at;
    let parts = parts(c)?;
    let (dtype, sizes) = dtype_and_sizes(c)?;
    let numel = check_size(c, at, &sizes, dtype, limits)?;
    let given: usize = parts.iter().map(|part| part.numbers.len()).sum();
    let placed = if given == numel { place(parts, &sizes, numel) } else { None };
    let Some(numbers) = placed else {
        let text = format!("the {given} numbers do not make a tensor of the sizes {sizes:?}");
        return Err(c.error("T009", text, at, c.at));
    };
    let tensor = tensor_of(c, &numbers, &sizes, dtype)?;
    with_declared_strides(tensor, declared, limits).map_err(|e| c.error("T009", e, at, c.at))
}

/// Parses the text before the dtype.
fn parts<'t>(c: &mut Cursor<'t>) -> Read<Vec<Part<'t>>> {
    let mut parts: Vec<Part<'t>> = Vec::new();
    let mut exponent = 0;
    loop {
        match c.peek() {
            b'[' => return Ok(parts),
            b'(' => {
                exponent = 0;
                parts.push(Part { matrix: matrix_indices(c)?.into(), columns: None, numbers: Vec::new() });
            }
            b'C' => {
                exponent = 0;
                let columns = Some(columns(c)?);
                match parts.last_mut() {
                    Some(open) if open.columns.is_none() && open.numbers.is_empty() => open.columns = columns,
                    last => {
                        let matrix = last.map_or_else(Rc::default, |part| Rc::clone(&part.matrix));
                        parts.push(Part { matrix, columns, numbers: Vec::new() });
                    }
                }
            }
            _ => {
                let at = c.at;
                let text = c.take_while(is_number);
                if text.is_empty() {
                    return Err(c.expected("a number, or `[` with the dtype of a tensor"));
                }
                if c.eat(b'*') {
                    exponent = power_of_ten(text).ok_or_else(|| {
                        c.error("T009", format!("the scale `{text}` is not a power of ten"), at, c.at)
                    })?;
                    continue;
                }
                if parts.is_empty() {
                    parts.push(Part { matrix: Rc::default(), columns: None, numbers: Vec::new() });
                }
                let open = parts.last_mut().expect("invariant: there is a part");
                open.numbers.push(Number { text, at, exponent });
            }
        }
    }
}

/// Parses `(1,2,.,.) =`.
fn matrix_indices(c: &mut Cursor<'_>) -> Read<Vec<i64>> {
    let mut indices = Vec::new();
    c.expect(b'(')?;
    while c.peek() != b'.' {
        indices.push(index(c)?);
        c.expect(b',')?;
    }
    for expected in [b'.', b',', b'.', b')', b'='] {
        c.expect(expected)?;
    }
    Ok(indices)
}

/// Parses `Columns 1 to 7`.
fn columns(c: &mut Cursor<'_>) -> Read<(i64, i64)> {
    if c.word() != "Columns" {
        return Err(c.expected("`Columns`"));
    }
    let first = index(c)?;
    if c.word() != "to" {
        return Err(c.expected("`to`"));
    }
    Ok((first, index(c)?))
}

fn index(c: &mut Cursor<'_>) -> Read<i64> {
    c.skip();
    let at = c.at;
    let word = c.take_while(|b| b.is_ascii_digit());
    word.parse().map_err(|_| not_a_number(c, word, at))
}

/// Parses `[ CPUFloatType{2,3} ]`.
fn dtype_and_sizes(c: &mut Cursor<'_>) -> Read<(DType, Vec<i64>)> {
    c.expect(b'[')?;
    c.skip();
    let at = c.at;
    let name = c.word();
    let Some(name) = name.strip_suffix("Type") else {
        return Err(c.expected("the type of a tensor, as `CPUFloatType{2}`"));
    };
    let Some(dtype) = name.strip_prefix("CPU").and_then(DType::from_ir_name) else {
        let text = format!("`{name}` is not a dtype of tensors on the CPU");
        return Err(c.fault(Fault::Unsupported, "T009", text, at, c.at));
    };
    let mut sizes = Vec::new();
    c.expect(b'{')?;
    while !c.eat(b'}') {
        sizes.push(index(c)?);
        if !c.eat(b',') {
            c.expect(b'}')?;
            break;
        }
    }
    c.expect(b']')?;
    Ok((dtype, sizes))
}

/// Returns the exponent of a power of ten such as `0.001` or `1e-05`.
fn power_of_ten(text: &str) -> Option<i32> {
    let exponent = float(text)?.log10().round();
    let is_exact = exponent.abs() <= 308.0 && format!("1e{exponent}").parse() == Ok(float(text)?);
    is_exact.then_some(exponent as i32)
}

/// Returns the numbers in row-major order if each element occurs exactly once.
fn place<'t>(parts: Vec<Part<'t>>, sizes: &[i64], numel: usize) -> Option<Vec<Number<'t>>> {
    let is_flat = |part: &Part<'_>| part.matrix.is_empty() && part.columns.is_none();
    if parts.iter().all(is_flat) {
        return Some(parts.into_iter().flat_map(|part| part.numbers).collect());
    }
    let (outer, rows, width) = match sizes {
        [outer @ .., rows, columns] => (outer, *rows, *columns),
        _ => return None,
    };
    if numel == 0 {
        return Some(Vec::new());
    }
    let mut slots: Vec<Option<Number<'t>>> = (0..numel).map(|_| None).collect();
    for part in parts {
        let (first, last) = part.columns.unwrap_or((1, width));
        if part.matrix.len() != outer.len() || first < 1 || last < first || last > width {
            return None;
        }
        let mut start = 0;
        for (&i, &size) in part.matrix.iter().zip(outer) {
            start = (1..=size).contains(&i).then(|| start * size + i - 1)?;
        }
        let mut numbers = part.numbers.into_iter();
        for row in 0..rows {
            for column in first - 1..last {
                let slot = slots.get_mut(usize::try_from((start * rows + row) * width + column).ok()?)?;
                if slot.replace(numbers.next()?).is_some() {
                    return None;
                }
            }
        }
        if numbers.next().is_some() {
            return None;
        }
    }
    slots.into_iter().collect()
}

fn tensor_of(c: &Cursor<'_>, numbers: &[Number<'_>], sizes: &[i64], dtype: DType) -> Read<Tensor> {
    if dtype.is_complex() {
        let elements: Read<Vec<Complex<f64>>> = numbers.iter().map(|n| complex_number(c, n)).collect();
        return converted(c, Tensor::from_vec(elements?, sizes), dtype);
    }
    if dtype.is_integral(true) {
        let elements: Read<Vec<i64>> = numbers.iter().map(|n| integer(c, n)).collect();
        let elements = elements?;
        let tensor = converted(c, Tensor::from_vec(elements.clone(), sizes), dtype)?;
        let kept = tensor.to_vec::<i64>().map_err(|e| wrong(c, &e))?;
        let changed = elements.iter().zip(&kept).position(|(a, b)| a != b);
        return match changed.map(|i| &numbers[i]) {
            Some(n) => {
                let text = format!("`{}` is not a value of the dtype {}", n.text, dtype.name());
                Err(c.error("T009", text, n.at, n.at + n.text.len()))
            }
            None => Ok(tensor),
        };
    }
    let elements: Read<Vec<f64>> = numbers.iter().map(|n| decimal(c, n)).collect();
    converted(c, Tensor::from_vec(elements?, sizes), dtype)
}

fn converted(c: &Cursor<'_>, tensor: Result<Tensor, TensorError>, dtype: DType) -> Read<Tensor> {
    tensor.and_then(|t| t.to_dtype(dtype)).map_err(|e| wrong(c, &e))
}

fn wrong(c: &Cursor<'_>, error: &TensorError) -> Box<crate::diag::Diagnostic> {
    c.error("T009", error.to_string(), c.at.saturating_sub(1), c.at)
}

/// Returns a number multiplied by its scale, rounded once.
fn decimal(c: &Cursor<'_>, n: &Number<'_>) -> Read<f64> {
    let value = float(n.text).ok_or_else(|| unreadable(c, n))?;
    if n.exponent == 0 || !value.is_finite() || n.text.contains(['e', 'E']) {
        return Ok(value * 10f64.powi(n.exponent));
    }
    format!("{}e{}", n.text, n.exponent).parse().map_err(|_| unreadable(c, n))
}

/// Parses an integer, which PyTorch may print as `1.23457e+06`.
fn integer(c: &Cursor<'_>, n: &Number<'_>) -> Read<i64> {
    if n.exponent == 0
        && let Ok(value) = n.text.parse()
    {
        return Ok(value);
    }
    let value = decimal(c, n)?;
    // Both bounds are f64; the upper one is the first that is too large.
    let fits =
        value.trunc() == value && (-9.223_372_036_854_775_8e18..9.223_372_036_854_775_8e18).contains(&value);
    if fits { Ok(value as i64) } else { Err(unreadable(c, n)) }
}

fn complex_number(c: &Cursor<'_>, n: &Number<'_>) -> Read<Complex<f64>> {
    complex(n.text).filter(|_| n.exponent == 0).ok_or_else(|| {
        let text = "the text has only the real parts of the elements, as PyTorch prints complex tensors";
        c.fault(Fault::Unsupported, "T008", text, n.at, n.at + n.text.len())
    })
}

fn unreadable(c: &Cursor<'_>, n: &Number<'_>) -> Box<crate::diag::Diagnostic> {
    c.error("T007", format!("`{}` is not an element of this tensor", n.text), n.at, n.at + n.text.len())
}
