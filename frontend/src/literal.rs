//! Evaluation of number and string tokens, and constant folding of arithmetic on literals.
//!
//! An octal escape denotes a byte, because archives write non-ASCII text as the octal escapes of its UTF-8 bytes. `\x`,
//! `\u` and `\U` denote characters, as in Python.

use flambeau_ir::IValue;

use crate::tree::{Leaf, SyntaxOp};

/// Parses the text of a number token.
pub(crate) fn number(text: &str) -> Result<Leaf, String> {
    let clean: String;
    let text = if text.contains('_') {
        if text.ends_with('_') || text.contains("__") || text.contains("_.") || text.contains("._") {
            return Err(format!("`{text}` has a misplaced underscore"));
        }
        clean = text.replace('_', "");
        &clean
    } else {
        text
    };
    let bytes = text.as_bytes();
    if bytes.len() > 1 && bytes[0] == b'0' {
        let radix = match bytes[1] | 0x20 {
            b'x' => 16,
            b'o' => 8,
            b'b' => 2,
            _ => 0,
        };
        if radix != 0 {
            return integer(&text[2..], radix, text);
        }
    }
    if let Some(digits) = text.strip_suffix(['j', 'J']) {
        return digits.parse().map(Leaf::Imag).map_err(|_| format!("`{text}` is not a number"));
    }
    if bytes.iter().all(u8::is_ascii_digit) {
        // As in C, digits after a leading zero are octal.
        let radix = if bytes.len() > 1 && bytes[0] == b'0' { 8 } else { 10 };
        return integer(text, radix, text);
    }
    text.parse().map(Leaf::Float).map_err(|_| format!("`{text}` is not a number"))
}

fn integer(digits: &str, radix: u32, text: &str) -> Result<Leaf, String> {
    match i64::from_str_radix(digits, radix) {
        Ok(v) => Ok(Leaf::Int(v)),
        Err(e) if matches!(e.kind(), std::num::IntErrorKind::PosOverflow) => {
            Err(format!("integer literal `{text}` is out of range of 64 bits"))
        }
        Err(_) => Err(format!("`{text}` is not a number")),
    }
}

/// Folds `a op b` to the value that the program would compute. Returns `None` if the operation would fail at run time,
/// or if constants of these types are not folded.
pub(crate) fn arithmetic(op: SyntaxOp, a: &IValue, b: &IValue) -> Option<IValue> {
    let floor = |x: f64, y: f64| (y != 0.0).then(|| (x / y).floor());
    if let (IValue::Int(a), IValue::Int(b)) = (a, b) {
        let (a, b) = (*a, *b);
        // Python's `//` rounds towards minus infinity.
        let quotient = || {
            let (q, r) = (a.checked_div(b)?, a.wrapping_rem(b));
            Some(if r != 0 && (r < 0) != (b < 0) { q - 1 } else { q })
        };
        return Some(match op {
            SyntaxOp::Add => IValue::Int(a.wrapping_add(b)),
            SyntaxOp::Sub => IValue::Int(a.wrapping_sub(b)),
            SyntaxOp::Mul => IValue::Int(a.wrapping_mul(b)),
            SyntaxOp::Div if b != 0 => IValue::Float(a as f64 / b as f64),
            SyntaxOp::FloorDiv => IValue::Int(quotient()?),
            SyntaxOp::Mod => IValue::Int(a.wrapping_sub(quotient()?.wrapping_mul(b))),
            SyntaxOp::Pow => IValue::Float((a as f64).powf(b as f64)),
            _ => return None,
        });
    }
    if let (IValue::Str(a), IValue::Str(b), SyntaxOp::Add) = (a, b, op) {
        return Some(IValue::str(&format!("{}{}", a.to_str()?, b.to_str()?)));
    }
    let float = |v: &IValue| match v {
        IValue::Int(v) => Some(*v as f64),
        IValue::Float(v) => Some(*v),
        _ => None,
    };
    if let (Some(re), IValue::Complex(z), SyntaxOp::Add | SyntaxOp::Sub) = (float(a), b, op)
        && z.re == 0.0
    {
        // The literal `re + imj`, whose parts are taken as they are: signs of zeros and infinities stay.
        let im = if op == SyntaxOp::Sub { -z.im } else { z.im };
        return Some(IValue::complex(flambeau_tensor::Complex::new(re, im)));
    }
    let (a, b) = (float(a)?, float(b)?);
    Some(IValue::Float(match op {
        SyntaxOp::Add => a + b,
        SyntaxOp::Sub => a - b,
        SyntaxOp::Mul => a * b,
        SyntaxOp::Div if b != 0.0 => a / b,
        SyntaxOp::FloorDiv => floor(a, b)?,
        SyntaxOp::Mod => a - b * floor(a, b)?,
        SyntaxOp::Pow => a.powf(b),
        _ => return None,
    }))
}

/// Appends the value of a string token (prefix and quotes included) to `out`.
pub(crate) fn string(token: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let quote_at = token.find(['"', '\'']).unwrap_or(0);
    let (prefix, quoted) = token.split_at(quote_at);
    if prefix.contains(['b', 'B']) {
        return Err("bytes literals are not supported".into());
    }
    let n =
        if quoted.len() >= 6 && (quoted.starts_with("\"\"\"") || quoted.starts_with("'''")) { 3 } else { 1 };
    // An unclosed string has no closing quotes to strip, and the cut may fall within a character.
    let body = quoted.get(n..quoted.len().saturating_sub(n)).unwrap_or("");
    if prefix.contains(['r', 'R']) {
        out.extend_from_slice(body.as_bytes());
        return Ok(());
    }
    escapes(body, out)
}

/// Decodes the escapes of `body` and appends the result to `out`.
pub(crate) fn escapes(body: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let bytes = body.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let c = bytes[i];
        if c != b'\\' || i + 1 == bytes.len() {
            out.push(c);
            i += 1;
            continue;
        }
        let e = bytes[i + 1];
        i += 2;
        let character = match e {
            b'\n' => continue,
            b'\r' => {
                i += usize::from(bytes.get(i) == Some(&b'\n'));
                continue;
            }
            b'\\' | b'\'' | b'"' => e,
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'0'..=b'7' => {
                let (value, used) = digits(&bytes[i - 1..], 8, 3);
                i += used - 1;
                u8::try_from(value).map_err(|_| "octal escape is larger than `\\377`".to_string())?
            }
            b'x' | b'u' | b'U' => {
                let want = match e {
                    b'x' => 2,
                    b'u' => 4,
                    _ => 8,
                };
                let (value, used) = digits(&bytes[i..], 16, want);
                let c = char::from_u32(value).filter(|_| used == want);
                let c = c.ok_or_else(|| {
                    format!("`\\{}` needs {want} hexadecimal digits of a character", e as char)
                })?;
                i += used;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            _ => {
                // An unknown escape stays as written, as in Python.
                out.push(b'\\');
                e
            }
        };
        out.push(character);
    }
    Ok(())
}

/// Parses at most `max` digits; returns their value and their count.
fn digits(bytes: &[u8], radix: u32, max: usize) -> (u32, usize) {
    let (mut value, mut used) = (0u32, 0);
    for d in bytes.iter().take(max).map_while(|&b| (b as char).to_digit(radix)) {
        value = value.wrapping_mul(radix).wrapping_add(d);
        used += 1;
    }
    (value, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(token: &str) -> String {
        let mut out = Vec::new();
        string(token, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers() {
        assert_eq!(number("12"), Ok(Leaf::Int(12)));
        assert_eq!(number("007"), Ok(Leaf::Int(7)));
        assert_eq!(number("1_000"), Ok(Leaf::Int(1000)));
        assert_eq!(number("0xff"), Ok(Leaf::Int(255)));
        assert_eq!(number("0b101"), Ok(Leaf::Int(5)));
        assert_eq!(number("1e-5"), Ok(Leaf::Float(1e-5)));
        assert_eq!(number("5."), Ok(Leaf::Float(5.0)));
        assert_eq!(number(".5"), Ok(Leaf::Float(0.5)));
        assert_eq!(number("2j"), Ok(Leaf::Imag(2.0)));
        assert_eq!(number("9223372036854775807"), Ok(Leaf::Int(i64::MAX)));
        assert!(number("9223372036854775808").is_err());
        assert!(number("1_").is_err());
        assert!(number("0b12").is_err());
    }

    #[test]
    fn strings() {
        assert_eq!(text(r#""a\n\t\\\"b""#), "a\n\t\\\"b");
        assert_eq!(text("'''a\nb'''"), "a\nb");
        assert_eq!(text(r"'\303\251\x41\u00e9'"), "éAé");
        assert_eq!(text(r"r'\n'"), "\\n");
        assert_eq!(text("'a\\\nb'"), "ab");
        assert_eq!(text(r"'\d'"), "\\d");
        assert_eq!(text("''"), "");
        assert!(string("b'x'", &mut Vec::new()).is_err());
        assert!(string(r"'\xg'", &mut Vec::new()).is_err());
        assert!(string(r"'\777'", &mut Vec::new()).is_err());
    }
}
