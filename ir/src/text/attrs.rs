//! Parser for attribute lists: `[value=3, name="x", types=[int, Tensor]]`.
//!
//! The text of an attribute does not always determine its kind (`1` may be a bool, `inf` a float or a type). The
//! declared type of a constant decides, if there is one.

use super::lex::{Cursor, Read, is_word};
use super::parse::{ReadLimits, read_type};
use super::short::{read_short, starts_short};
use super::tensors::{complex, float, is_number, read_exact, read_filled};
use crate::attr::{Attr, names};
use crate::diag::{Diagnostic, Fault};
use crate::symbol::Symbol;
use crate::types::{Type, TypeKind};
use crate::value::{Dict, IValue, Str};

/// Maximum nesting depth of lists, tuples and dictionaries.
const MAX_DEPTH: usize = 256;

/// Parses `[a=…, b=…]`; `ty` is the type of the node's first result.
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
    let is_tensor = may_be_tensor(wanted) && starts_short(c);
    if !is_tensor && c.peek() == b'[' && list_of_types(c) {
        return types(c);
    }
    if !is_tensor && starts_type(c) {
        return Ok(Attr::Type(read_type(c)?));
    }
    Ok(Attr::Value(value(c, wanted, limits, 0)?))
}

/// Returns whether a value of this type, or of unknown type, may be a tensor.
fn may_be_tensor(wanted: Option<Type>) -> bool {
    wanted.is_none_or(|ty| matches!(ty.unwrap_optional().kind(), TypeKind::Tensor(_) | TypeKind::Any))
}

/// Returns whether a type rather than a value starts at the cursor.
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

/// Parses a value of type `wanted`. For an optional type, parses `None` or a value of the element type.
fn value(c: &mut Cursor<'_>, wanted: Option<Type>, limits: &ReadLimits, depth: usize) -> Read<IValue> {
    let wanted = wanted.map(Type::unwrap_optional);
    if depth > MAX_DEPTH {
        return Err(c.fault(Fault::Limit, "T002", "values are nested too deeply", c.at, c.at + 1));
    }
    if may_be_tensor(wanted) && starts_short(c) {
        return Ok(IValue::Tensor(read_short(c, wanted, limits)?));
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
        b'{' if !matches!(wanted.map(Type::kind), Some(TypeKind::Dict(..))) => {
            Ok(IValue::Tensor(read_filled(c, wanted, limits)?))
        }
        b'{' => dict(c, wanted, limits, depth),
        b'<' => Err(abbreviated(c, wanted)),
        b if b.is_ascii_alphabetic() => word_value(c, wanted, limits, depth),
        _ => number(c, wanted),
    }
}

/// Returns the error for abbreviations such as `<Tensor>`.
fn abbreviated(c: &mut Cursor<'_>, wanted: Option<Type>) -> Box<Diagnostic> {
    let at = c.at;
    c.take_while(|b| b != b'>');
    c.eat(b'>');
    let form = &c.text[at..c.at];
    let missing = match wanted.filter(|ty| ty.as_tensor().is_some()) {
        Some(ty) => format!("the elements of a constant of type {ty} are"),
        None => "the value is".to_owned(),
    };
    let message = format!("{form} is an abbreviation: {missing} not in the text");
    let mut error = c.fault(Fault::Unsupported, "T008", message, at, c.at);
    error.help = Some("print the graph with all elements: `--exact`, or `PrintOptions::exact`".to_owned());
    error
}

fn word_value(c: &mut Cursor<'_>, wanted: Option<Type>, limits: &ReadLimits, depth: usize) -> Read<IValue> {
    let at = c.at;
    let word = c.word();
    Ok(match word {
        "True" => IValue::Bool(true),
        "False" => IValue::Bool(false),
        "None" => IValue::None,
        "inf" | "nan" | "infj" | "nanj" => {
            c.at = at;
            return number(c, wanted);
        }
        "annotate" => {
            c.expect(b'(')?;
            // The annotation is source syntax and repeats the declared type of the constant.
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
            IValue::Tensor(read_exact(c, limits)?)
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

fn number(c: &mut Cursor<'_>, wanted: Option<Type>) -> Read<IValue> {
    c.skip();
    let at = c.at;
    let text = c.take_while(is_number);
    if let Some(z) = complex(text) {
        return Ok(IValue::complex(z));
    }
    let wants_float = wanted == Some(Type::FLOAT);
    if !wants_float && let Ok(v) = text.parse::<i64>() {
        return Ok(if wanted == Some(Type::BOOL) { IValue::Bool(v != 0) } else { IValue::Int(v) });
    }
    let looks_float = wants_float
        || text.bytes().any(|b| matches!(b, b'.' | b'e' | b'E'))
        || ["inf", "nan"].iter().any(|name| text.ends_with(name));
    match float(text).filter(|_| looks_float) {
        Some(v) => Ok(IValue::Float(v)),
        None => Err(c.error("T007", format!("`{text}` is not a value"), at, c.at.max(at + 1))),
    }
}

/// Decodes a quoted string with C escapes.
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
                        let digit = |at: usize| bytes.get(at).and_then(|&b| char::from(b).to_digit(16));
                        let (Some(high), Some(low)) = (digit(at), digit(at + 1)) else {
                            return Err(c.error("T003", "`\\x` needs two hexadecimal digits", at - 2, at));
                        };
                        out.push((high * 16 + low) as u8);
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
    use super::MAX_DEPTH;
    use crate::text::{PrintOptions, parse_graph};
    use crate::{Diagnostic, Fault, Graph, IValue, RegistryBuilder, Source, verify};

    /// Reads a graph that returns one constant.
    fn read_constant(ty: &str, value: &str) -> Result<Graph, Box<Diagnostic>> {
        let registry = RegistryBuilder::new().build().unwrap();
        let text = format!("graph():\n  %a : {ty} = prim::Constant[value={value}]()\n  return (%a)\n");
        parse_graph(&Source::new("test.ir", &text), &registry)
    }

    #[test]
    fn values_nested_deeper_than_the_limit_are_refused() {
        let nested = |depth: usize| format!("{}1,{}", "(".repeat(depth), "),".repeat(depth));
        assert!(read_constant("Any", nested(MAX_DEPTH).trim_end_matches(',')).is_ok());
        let error = read_constant("Any", nested(MAX_DEPTH + 1).trim_end_matches(',')).unwrap_err();
        assert_eq!((error.code, error.fault), ("T002", Fault::Limit), "{error:?}");
    }

    #[test]
    fn hexadecimal_escapes_have_two_digits() {
        let graph = read_constant("str", "\"\\x41\\xfF\"").unwrap();
        let value = graph.constant(graph.outputs().next().unwrap());
        let Some(IValue::Str(text)) = value else { panic!("{value:?}") };
        assert_eq!(text.as_bytes(), b"A\xff");
        for escape in ["\\x+f", "\\x-1", "\\x4", "\\x", "\\xg0"] {
            let error = read_constant("str", &format!("\"{escape}\"")).unwrap_err();
            assert_eq!((error.code, error.fault), ("T003", Fault::Input), "{escape}: {error:?}");
        }
    }

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
