//! Attribute lists: `[value=3, name="x", types=[int, Tensor]]`.
//!
//! An attribute's text does not always tell its kind (`1` may be a bool, `inf` a float or a type), so a constant's
//! declared type decides where there is one.

use super::lex::{Cursor, Read, is_word};
use super::parse::{ReadLimits, read_type};
use super::values::read_exact_tensor;
use crate::attr::{Attr, names};
use crate::symbol::Symbol;
use crate::types::{Type, TypeKind};
use crate::value::{Dict, IValue, Str};
use flambeau_tensor::{Scalar, Tensor};
use num_complex::Complex;

/// Most elements of an attribute list and deepest nesting of lists and tuples.
const MAX_DEPTH: usize = 256;

/// Reads `[a=…, b=…]`; `ty` is the type of the node's first result.
pub(super) fn read(c: &mut Cursor<'_>, ty: Option<Type>, limits: &ReadLimits) -> Read<Vec<(Symbol, Attr)>> {
    let mut entries: Vec<(Symbol, Attr)> = Vec::new();
    c.expect(b'[')?;
    if c.eat(b']') {
        return Ok(entries);
    }
    loop {
        let name = c.word();
        if name.is_empty() {
            return Err(c.expected("an attribute's name"));
        }
        c.expect(b'=')?;
        let symbol = Symbol::new(name);
        let wanted = ty.filter(|_| symbol == names::value());
        entries.push((symbol, attr(c, wanted, limits)?));
        if !c.eat(b',') {
            c.expect(b']')?;
            return Ok(entries);
        }
    }
}

fn attr(c: &mut Cursor<'_>, wanted: Option<Type>, limits: &ReadLimits) -> Read<Attr> {
    if c.peek() == b'[' && list_of_types(c) {
        return types(c);
    }
    if starts_type(c) {
        return Ok(Attr::Type(read_type(c)?));
    }
    Ok(Attr::Value(value(c, wanted, limits, 0)?))
}

/// Whether the text at the cursor begins a type rather than a value.
fn starts_type(c: &mut Cursor<'_>) -> bool {
    let b = c.peek();
    let word: &str = {
        let rest = &c.text[c.at..];
        let n = rest.bytes().take_while(|&b| is_word(b)).count();
        &rest[..floor(rest, n)]
    };
    let literal =
        matches!(word, "inf" | "nan" | "infj" | "nanj" | "True" | "False" | "None" | "annotate" | "tensor");
    (b.is_ascii_alphabetic() || b == b'_') && !literal && !word.starts_with("torch.")
}

fn floor(text: &str, mut n: usize) -> usize {
    while !text.is_char_boundary(n) {
        n -= 1;
    }
    n
}

fn list_of_types(c: &mut Cursor<'_>) -> bool {
    let back = c.at;
    c.at += 1;
    let found = starts_type(c);
    c.at = back;
    found
}

fn types(c: &mut Cursor<'_>) -> Read<Attr> {
    c.expect(b'[')?;
    let mut types = vec![read_type(c)?];
    while c.eat(b',') {
        types.push(read_type(c)?);
    }
    c.expect(b']')?;
    Ok(Attr::Types(types.into_boxed_slice()))
}

/// Reads a value of the type `wanted`. Of an optional type, it is `None` or a value of the element type.
fn value(c: &mut Cursor<'_>, wanted: Option<Type>, limits: &ReadLimits, depth: usize) -> Read<IValue> {
    let wanted = wanted.map(Type::unwrap_optional);
    if depth > MAX_DEPTH {
        return Err(c.error("T002", "values are nested too deeply", c.at, c.at + 1));
    }
    match c.peek() {
        b'"' | b'\'' => {
            let bytes = string(c)?;
            if wanted == Some(Type::DEVICE) {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                return match text.parse() {
                    Ok(device) => Ok(IValue::Device(device)),
                    Err(_) => Err(c.error("T007", format!("`{text}` is not a device"), c.at - 1, c.at)),
                };
            }
            Ok(IValue::Str(Str::from(bytes)))
        }
        b'[' => list(c, wanted, limits, depth),
        b'(' => tuple(c, wanted, limits, depth),
        b'{' if !matches!(wanted.map(Type::kind), Some(TypeKind::Dict(..))) => filled(c, wanted, limits),
        b'{' => dict(c, wanted, limits, depth),
        b'<' => {
            let at = c.at;
            c.take_while(|b| b != b'>');
            c.eat(b'>');
            let what = &c.text[at..c.at];
            Err(c.fault(
                crate::diag::Fault::Unsupported,
                "T008",
                format!("{what} is an abbreviation: the text does not hold the data"),
                at,
                c.at,
            ))
        }
        b if b.is_ascii_alphabetic() => word_value(c, wanted, limits, depth),
        _ => number(c, wanted),
    }
}

fn word_value(c: &mut Cursor<'_>, wanted: Option<Type>, limits: &ReadLimits, depth: usize) -> Read<IValue> {
    let at = c.at;
    let word = c.word();
    Ok(match word {
        "True" => IValue::Bool(true),
        "False" => IValue::Bool(false),
        "None" => IValue::None,
        "inf" => IValue::Float(f64::INFINITY),
        "nan" => IValue::Float(f64::NAN),
        "infj" => IValue::complex(Complex::new(0.0, f64::INFINITY)),
        "nanj" => IValue::complex(Complex::new(0.0, f64::NAN)),
        "annotate" => {
            c.expect(b'(')?;
            // The annotation is source syntax; the declared type of the constant says the same.
            let mut open = 0usize;
            while c.peek() != b',' || open > 0 {
                match c.here() {
                    0 => return Err(c.expected("`,`")),
                    b'[' | b'(' => open += 1,
                    b']' | b')' => open = open.saturating_sub(1),
                    _ => {}
                }
                c.at += 1;
                c.at += c.text[c.at..].bytes().take_while(|b| b & 0xC0 == 0x80).count();
            }
            c.expect(b',')?;
            let v = value(c, wanted, limits, depth + 1)?;
            c.expect(b')')?;
            v
        }
        "torch.device" => {
            c.expect(b'(')?;
            if !matches!(c.peek(), b'"' | b'\'') {
                return Err(c.expected("a device's name in quotes"));
            }
            let device = value(c, Some(Type::DEVICE), limits, depth + 1)?;
            c.expect(b')')?;
            device
        }
        "tensor" => {
            c.at = at;
            match read_exact_tensor(&c.text[at..], limits.tensor_bytes) {
                Ok((tensor, used)) => {
                    c.at += used;
                    IValue::Tensor(tensor)
                }
                Err(e) => return Err(c.error("T009", e, at, at + 6)),
            }
        }
        _ => return Err(c.error("T007", format!("`{word}` is not a value"), at, c.at.max(at + 1))),
    })
}

fn list(c: &mut Cursor<'_>, wanted: Option<Type>, limits: &ReadLimits, depth: usize) -> Read<IValue> {
    c.expect(b'[')?;
    let elem = match wanted.map(Type::kind) {
        Some(TypeKind::List(t)) => Some(*t),
        _ => None,
    };
    let mut items = Vec::new();
    if !c.eat(b']') {
        loop {
            items.push(value(c, elem, limits, depth + 1)?);
            if !c.eat(b',') {
                c.expect(b']')?;
                break;
            }
        }
    }
    let elem = elem.or_else(|| items.first().map(IValue::type_of)).unwrap_or(Type::TENSOR);
    Ok(IValue::list(elem, items))
}

fn tuple(c: &mut Cursor<'_>, wanted: Option<Type>, limits: &ReadLimits, depth: usize) -> Read<IValue> {
    c.expect(b'(')?;
    let elems = match wanted.map(Type::kind) {
        Some(TypeKind::Tuple(t)) => t.elems.to_vec(),
        _ => Vec::new(),
    };
    let mut items = Vec::new();
    while !c.eat(b')') {
        items.push(value(c, elems.get(items.len()).copied(), limits, depth + 1)?);
        if !c.eat(b',') {
            c.expect(b')')?;
            break;
        }
    }
    Ok(IValue::tuple(items))
}

fn dict(c: &mut Cursor<'_>, wanted: Option<Type>, limits: &ReadLimits, depth: usize) -> Read<IValue> {
    let Some(TypeKind::Dict(key, val)) = wanted.map(Type::kind) else {
        return Err(c.expected("a value"));
    };
    let at = c.at;
    c.expect(b'{')?;
    let dict = Dict::new(*key, *val);
    while !c.eat(b'}') {
        let k = value(c, Some(*key), limits, depth + 1)?;
        c.expect(b':')?;
        let v = value(c, Some(*val), limits, depth + 1)?;
        dict.insert(k, v).map_err(|e| c.error("T007", e.to_string(), at, c.at))?;
        if !c.eat(b',') {
            c.expect(b'}')?;
            break;
        }
    }
    Ok(IValue::Dict(dict))
}

/// `{n}`: a tensor of the declared type filled with `n`.
fn filled(c: &mut Cursor<'_>, wanted: Option<Type>, limits: &ReadLimits) -> Read<IValue> {
    let at = c.at;
    c.expect(b'{')?;
    let n = number(c, None)?;
    c.expect(b'}')?;
    let fill = match n {
        IValue::Int(v) => Scalar::Int(v),
        IValue::Float(v) => Scalar::Float(v),
        _ => return Err(c.error("T007", "a tensor is filled with a number", at, c.at)),
    };
    let facts = wanted.and_then(Type::as_tensor);
    let dtype = facts.and_then(|t| t.dtype).unwrap_or_else(|| fill.dtype());
    let sizes = facts.and_then(|t| t.concrete_sizes()).unwrap_or_default();
    let too_large = || c.error("T002", "the tensor constant is larger than the limit allows", at, c.at);
    let elements = sizes
        .iter()
        .try_fold(1usize, |n, &s| n.checked_mul(usize::try_from(s).ok()?))
        .ok_or_else(too_large)?;
    if elements.checked_mul(dtype.size()).is_none_or(|b| b > limits.tensor_bytes) {
        return Err(too_large());
    }
    Tensor::full(&sizes, fill, dtype)
        .map(IValue::Tensor)
        .map_err(|e| c.error("T009", e.to_string(), at, c.at))
}

fn number(c: &mut Cursor<'_>, wanted: Option<Type>) -> Read<IValue> {
    c.skip();
    let at = c.at;
    let text = {
        let bytes = c.text.as_bytes();
        let mut end = at;
        while let Some(&b) = bytes.get(end) {
            let sign = (b == b'-' || b == b'+') && (end == at || matches!(bytes[end - 1], b'e' | b'E'));
            if !(sign || b.is_ascii_alphanumeric() || b == b'.') {
                break;
            }
            end += 1;
        }
        c.at = end;
        &c.text[at..end]
    };
    let bad = |c: &Cursor<'_>| c.error("T007", format!("`{text}` is not a value"), at, c.at.max(at + 1));
    if c.here() == b'+' || c.here() == b'-' {
        // `0.+2.j`: real part, then imaginary part.
        let real: f64 = text.parse().map_err(|_| bad(c))?;
        let negative = c.here() == b'-';
        c.at += 1;
        let rest = c.word();
        let imag: f64 = rest.strip_suffix('j').and_then(parse_float).ok_or_else(|| bad(c))?;
        return Ok(IValue::complex(Complex::new(real, if negative { -imag } else { imag })));
    }
    if let Some(imag) = text.strip_suffix('j') {
        return Ok(IValue::complex(Complex::new(0.0, parse_float(imag).ok_or_else(|| bad(c))?)));
    }
    let wants_float = wanted == Some(Type::FLOAT);
    if !wants_float && let Ok(v) = text.parse::<i64>() {
        return Ok(if wanted == Some(Type::BOOL) { IValue::Bool(v != 0) } else { IValue::Int(v) });
    }
    let looks_float =
        text.bytes().any(|b| matches!(b, b'.' | b'e' | b'E')) || wants_float || text.ends_with("inf");
    match parse_float(text).filter(|_| looks_float) {
        Some(v) => Ok(IValue::Float(v)),
        None => Err(bad(c)),
    }
}

fn parse_float(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['-', '+']);
    let plain =
        digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') || matches!(digits, "inf" | "nan");
    plain.then(|| text.parse().ok()).flatten()
}

/// A quoted string with C escapes, as bytes.
fn string(c: &mut Cursor<'_>) -> Read<Vec<u8>> {
    let start = c.at;
    let bytes = c.text.as_bytes();
    let quote = bytes[c.at];
    let mut at = c.at + 1;
    let mut out = Vec::new();
    loop {
        match bytes.get(at) {
            None => return Err(c.error("T003", "the string is not closed", start, bytes.len())),
            Some(&b) if b == quote => break,
            Some(b'\\') => {
                at += 1;
                let Some(&e) = bytes.get(at) else {
                    return Err(c.error("T003", "the string is not closed", start, bytes.len()));
                };
                at += 1;
                match e {
                    b'n' => out.push(b'\n'),
                    b't' => out.push(b'\t'),
                    b'r' => out.push(b'\r'),
                    b'a' => out.push(7),
                    b'b' => out.push(8),
                    b'f' => out.push(12),
                    b'v' => out.push(11),
                    b'0'..=b'7' => {
                        let mut n = u32::from(e - b'0');
                        for _ in 0..2 {
                            match bytes.get(at) {
                                Some(&d @ b'0'..=b'7') => {
                                    n = n * 8 + u32::from(d - b'0');
                                    at += 1;
                                }
                                _ => break,
                            }
                        }
                        out.push(n as u8);
                    }
                    b'x' => {
                        let hex = bytes.get(at..at + 2).and_then(|h| std::str::from_utf8(h).ok());
                        let Some(n) = hex.and_then(|h| u8::from_str_radix(h, 16).ok()) else {
                            return Err(c.error("T003", "`\\x` needs two hexadecimal digits", at - 2, at));
                        };
                        out.push(n);
                        at += 2;
                    }
                    other => out.push(other),
                }
            }
            Some(&b) => {
                out.push(b);
                at += 1;
            }
        }
    }
    c.at = at + 1;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use crate::text::{PrintOptions, parse_graph};
    use crate::{RegistryBuilder, Source, verify};

    #[test]
    fn values_under_optional_types_have_the_kind_of_the_element_type() {
        let registry = RegistryBuilder::new().build().unwrap();
        let text = "graph():
  %a : bool? = prim::Constant[value=0]()
  %b : float? = prim::Constant[value=inf]()
  %c : bool?[] = prim::Constant[value=annotate(List[Optional[bool]], [True, None])]()
  %d : float[]? = prim::Constant[value=[1., 2.]]()
  %e : (bool?, float) = prim::Constant[value=(True, 1.)]()
  %f : Device? = prim::Constant[value=torch.device(\"cpu\")]()
  return ()
";
        let graph = parse_graph(&Source::new("test.ir", text), &registry).unwrap();
        verify::verify(&graph).unwrap();
        assert_eq!(graph.to_text(PrintOptions { exact: true, ..PrintOptions::default() }), text);
    }
}
