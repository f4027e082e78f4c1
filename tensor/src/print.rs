//! Text of a tensor as TorchScript's `print` writes it: numbers in columns, with a scale factor if needed, and a last
//! line with type and sizes. All numbers are printed as f64 (the real part of complex numbers), as in PyTorch.

use std::fmt::{self, Write};

use crate::error::Result;
use crate::tensor::Tensor;

/// Characters per line.
const LINE: i64 = 80;

/// The format of the numbers of a tensor (or of one of its matrices).
#[derive(Clone, Copy, PartialEq)]
enum Style {
    General,
    Fixed,
    Scientific,
}

struct Format {
    scale: f64,
    width: usize,
    style: Style,
}

impl Format {
    /// Returns the stream's precision after this format.
    fn precision(&self, before: usize) -> usize {
        if self.style == Style::General { before } else { 4 }
    }
}

/// Returns the text, without a trailing newline.
///
/// # Errors
/// Returns an error if memory or the budget is exhausted.
#[expect(clippy::missing_panics_doc, reason = "writing to a string does not fail")]
pub fn to_text(tensor: &Tensor) -> Result<String> {
    let values = tensor.to_vec::<f64>()?;
    let mut out = String::new();
    write_values(&mut out, tensor.sizes(), &values).expect("invariant: writing to a string does not fail");
    write!(out, "[ CPU{}Type{{", tensor.dtype().ir_name())
        .expect("invariant: writing to a string does not fail");
    for (i, size) in tensor.sizes().iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(out, "{comma}{size}").expect("invariant: writing to a string does not fail");
    }
    out.push_str("} ]");
    Ok(out)
}

fn write_values(out: &mut String, sizes: &[i64], values: &[f64]) -> fmt::Result {
    // A C++ stream keeps the precision that a format has set, and it applies to general numbers of later matrices.
    let mut precision = 6;
    if values.is_empty() {
        return Ok(());
    }
    match sizes {
        [] => {
            number(out, values[0], 0, Style::General, precision)?;
            out.push('\n');
        }
        [_] => {
            let format = format_of(values);
            precision = format.precision(precision);
            if format.scale != 1.0 {
                scale_line(out, format.scale)?;
            }
            for value in values {
                number(out, value / format.scale, format.width, format.style, precision)?;
                out.push('\n');
            }
        }
        [rows, columns] => matrix(out, values, *rows, *columns, 0, &mut precision)?,
        [outer @ .., rows, columns] => {
            let mut counter = vec![0i64; outer.len()];
            loop {
                // Row-major index of this matrix.
                let place = counter.iter().zip(outer).fold(0, |place, (i, size)| place * size + i);
                let start = (place * rows * columns) as usize;
                out.push('(');
                for i in &counter {
                    write!(out, "{},", i + 1)?;
                }
                out.push_str(".,.) = \n");
                matrix(
                    out,
                    &values[start..start + (rows * columns) as usize],
                    *rows,
                    *columns,
                    1,
                    &mut precision,
                )?;
                // The first counter runs fastest.
                let mut d = 0;
                while d < counter.len() {
                    counter[d] += 1;
                    if counter[d] < outer[d] {
                        break;
                    }
                    counter[d] = 0;
                    d += 1;
                }
                if d == counter.len() {
                    return Ok(());
                }
                out.push('\n');
            }
        }
    }
    Ok(())
}

/// Writes one matrix, in groups of columns that fit a line.
fn matrix(
    out: &mut String,
    values: &[f64],
    rows: i64,
    columns: i64,
    indent: usize,
    precision: &mut usize,
) -> fmt::Result {
    let format = format_of(values);
    *precision = format.precision(*precision);
    let pad = |out: &mut String| (0..indent).for_each(|_| out.push(' '));
    pad(out);
    let per_line = (LINE - indent as i64) / (format.width as i64 + 1);
    let mut first = 0;
    while first < columns {
        let last = if first + per_line <= columns { first + per_line - 1 } else { columns - 1 };
        if per_line < columns {
            if first != 0 {
                out.push('\n');
            }
            write!(out, "Columns {} to {}", first + 1, last + 1)?;
            pad(out);
        }
        if format.scale != 1.0 {
            scale_line(out, format.scale)?;
            pad(out);
        }
        for row in 0..rows {
            for column in first..=last {
                let value = values[(row * columns + column) as usize];
                number(out, value / format.scale, format.width, format.style, *precision)?;
                out.push(if column == last { '\n' } else { ' ' });
            }
            if row != rows - 1 {
                pad(out);
                if format.scale != 1.0 {
                    out.push(' ');
                }
            }
        }
        first = last + 1;
    }
    Ok(())
}

fn scale_line(out: &mut String, scale: f64) -> fmt::Result {
    // The stream still has the precision of four digits that was set for the numbers.
    writeln!(out, "{} *", general(scale, 4))
}

/// Returns the number of digits before the point; 0 or a negative number of leading zeros after it for small values.
fn digits(value: f64) -> f64 {
    if value == 0.0 { 1.0 } else { value.log10().floor() + 1.0 }
}

fn format_of(values: &[f64]) -> Format {
    if values.is_empty() {
        return Format { scale: 1.0, width: 0, style: Style::General };
    }
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let integers = finite().all(|value| value == value.ceil());
    let (mut least, mut most) = (1.0, 1.0);
    if let Some(first) = finite().next() {
        (least, most) = (first.abs(), first.abs());
        for value in finite() {
            least = least.min(value.abs());
            // Signed, as in PyTorch: negative numbers after the first do not widen the columns.
            most = most.max(value);
        }
        (least, most) = (digits(least), digits(most));
    }
    if integers {
        return if most > 9.0 {
            Format { scale: 1.0, width: 11, style: Style::Scientific }
        } else {
            Format { scale: 1.0, width: most as usize + 1, style: Style::General }
        };
    }
    if most - least > 4.0 {
        let wide = most.abs() > 99.0 || least.abs() > 99.0;
        return Format { scale: 1.0, width: 11 + usize::from(wide), style: Style::Scientific };
    }
    if !(0.0..=5.0).contains(&most) {
        return Format { scale: libm::pow(10.0, most - 1.0), width: 7, style: Style::Fixed };
    }
    let width = if most == 0.0 { 7 } else { most as usize + 6 };
    Format { scale: 1.0, width, style: Style::Fixed }
}

/// Writes a number as C++ streams do, at least `width` characters wide.
fn number(out: &mut String, value: f64, width: usize, style: Style, precision: usize) -> fmt::Result {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        let name = if value.is_nan() { "nan" } else { "inf" };
        return write!(out, "{:>width$}", format!("{sign}{name}"));
    }
    match style {
        Style::Fixed => write!(out, "{value:>width$.4}"),
        Style::Scientific => write!(out, "{:>width$}", scientific(value, 4)),
        Style::General => write!(out, "{:>width$}", general(value, precision)),
    }
}

/// Formats as `%.{precision}e`, with at least two digits of exponent.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').expect("invariant: the format has an exponent");
    let exponent: i32 = exponent.parse().expect("invariant: an exponent is a number");
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Formats a finite number as `%.{precision}g`: the shorter of fixed and scientific, without trailing zeros.
///
/// # Panics
/// Panics if the number is not finite, or the precision is 0.
pub fn general(value: f64, precision: usize) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_string();
    }
    let text = scientific(value, precision - 1);
    let exponent: i32 =
        text.split_once('e').and_then(|(_, e)| e.parse().ok()).expect("invariant: an exponent is a number");
    if exponent < -4 || exponent >= precision as i32 {
        let (mantissa, tail) = text.split_once('e').expect("invariant: the format has an exponent");
        return format!("{}e{tail}", trimmed(mantissa));
    }
    let places = (precision as i32 - 1 - exponent) as usize;
    trimmed(&format!("{value:.places$}")).to_string()
}

/// Removes zeros at the end of the fraction.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::layout::Layout;

    /// Expected texts were recorded by `tests/oracle/print.py`.
    #[test]
    fn as_recorded() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/oracle/print.txt");
        let text = std::fs::read_to_string(path).unwrap();
        let mut count = 0;
        for case in text.split("=== ").skip(1) {
            let (head, want) = case.split_once('\n').unwrap();
            let mut words = head.split(' ');
            let dtype = DType::from_name(words.next().unwrap()).unwrap();
            let numbers =
                |word: &str| -> Vec<i64> { word.split(',').filter_map(|n| n.parse().ok()).collect() };
            let sizes = numbers(words.next().unwrap());
            let hex = words.next().unwrap_or("");
            let bytes: Vec<u8> =
                (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
            let tensor = Tensor::from_bytes(&bytes, dtype, Layout::contiguous(&sizes).unwrap()).unwrap();
            assert_eq!(to_text(&tensor).unwrap() + "\n", want, "{head}");
            count += 1;
        }
        assert!(count > 60, "{count}");
    }

    #[test]
    fn general_format_is_that_of_c() {
        for (value, want) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (1e6, "1e+06"),
            (123456.0, "123456"),
            (1234567.0, "1.23457e+06"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (-2.5, "-2.5"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(general(value, 6), want);
        }
    }
}
