//! The compact syntax of values in file tests.
//!
//! ```text
//! 1  -2.5  nan  -inf  True  None  "text"  complex(1.0, -2.0)
//! [1, 2]  (1, "a")  (1,)  {"key": 1}
//! tensor([[1.0, 2.0], [3.0, 4.0]])          f32; of ints i64, of bools bool
//! tensor(3, f64)  tensor([1, 2], u8)        dtypes: bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128
//! full([2, 3], 1.5)  iota([2, 3], i64)      equal elements; 0, 1, 2, … in row-major order
//! rand([2, 3], f32, 7)                      multiples of 1/64 between -2 and 2, drawn from the seed 7
//! a := tensor([1.0, 2.0])  a                names a value; the name refers to the same object
//! view(a, [2, 2], [1, 0], 1)                a tensor on the storage of another: sizes, strides, offset
//! ```
//!
//! Parsing produces the encoding of recorded values (see [`super`]). Nesting is limited to [`MAX_DEPTH`].

use serde_json::{Value, json};

use super::tag;
use flambeau::json::float_text;
use flambeau::tensor::DType;

/// Maximum nesting depth of brackets.
pub const MAX_DEPTH: usize = 64;

/// Returns the short name of a PyTorch dtype.
pub fn short_name(dtype: &str) -> &str {
    DType::from_name(dtype).map_or(dtype, |known| known.short_name())
}

/// Parses exactly one value.
///
/// # Errors
/// Returns a message with the byte offset of the error.
pub fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = reader.value()?;
    reader.end()?;
    Ok(value)
}

/// Parses a call `name(value, …, key=value)`; returns the text after the call too.
///
/// # Errors
/// Returns a message with the byte offset of the error.
pub fn parse_call(text: &str) -> Result<(Call, &str), String> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let mut call = Call { name: reader.word().to_string(), args: Vec::new(), kwargs: Vec::new() };
    reader.expect("(")?;
    while !reader.eat(")") {
        let start = reader.at;
        let word = reader.word().to_string();
        if !word.is_empty() && reader.eat("=") {
            let value = reader.value()?;
            call.kwargs.push((word, value));
        } else {
            reader.at = start;
            let value = reader.value()?;
            call.args.push(value);
        }
        if !reader.eat(",") {
            reader.expect(")")?;
            break;
        }
    }
    Ok((call, &text[reader.at..]))
}

/// A call with values as arguments.
#[derive(Debug, Clone)]
pub struct Call {
    /// The function's name; may be empty.
    pub name: String,
    /// Positional arguments.
    pub args: Vec<Value>,
    /// Keyword arguments.
    pub kwargs: Vec<(String, Value)>,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error<T>(&self, what: &str) -> Result<T, String> {
        Err(format!("at byte {} of `{}`: {what}", self.at, self.text))
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token) { Ok(()) } else { self.error(&format!("expected `{token}`")) }
    }

    fn end(&mut self) -> Result<(), String> {
        self.blanks();
        if self.rest().is_empty() { Ok(()) } else { self.error("unexpected text after the value") }
    }

    fn word(&mut self) -> &'a str {
        self.blanks();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            return "";
        }
        self.at += end;
        &rest[..end]
    }

    fn value(&mut self) -> Result<Value, String> {
        if self.depth == MAX_DEPTH {
            return self.error("brackets are nested too deep");
        }
        self.depth += 1;
        self.blanks();
        let value = match self.rest().bytes().next() {
            Some(b'"' | b'\'') => self.string().map(|s| json!({"t": "str", "v": s})),
            Some(b'[') => self.list("[", "]").map(|(v, _)| json!({"t": "list", "v": v})),
            Some(b'(') => self.tuple(),
            Some(b'{') => self.dict(),
            Some(b'-' | b'.' | b'0'..=b'9') => self.number(),
            Some(_) => self.named(),
            None => self.error("expected a value"),
        };
        self.depth -= 1;
        value
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = self.rest().chars().next().unwrap_or('"');
        let mut out = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            if c == quote {
                self.at += i + 1;
                return Ok(out);
            }
            if c != '\\' {
                out.push(c);
                continue;
            }
            match chars.next().map(|(_, c)| c) {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some('u') => {
                    let digits: String = chars
                        .by_ref()
                        .map(|(_, c)| c)
                        .skip_while(|c| *c == '{')
                        .take_while(|c| *c != '}')
                        .collect();
                    let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                    out.push(code.ok_or_else(|| format!("`\\u{{{digits}}}` is not a character"))?);
                }
                Some(c) => out.push(c),
                None => break,
            }
        }
        self.error("unterminated string")
    }

    /// Parses members between brackets; returns whether there was a trailing comma.
    fn list(&mut self, left: &str, right: &str) -> Result<(Vec<Value>, bool), String> {
        self.expect(left)?;
        let mut members = Vec::new();
        let mut comma = false;
        while !self.eat(right) {
            members.push(self.value()?);
            comma = self.eat(",");
            if !comma {
                self.expect(right)?;
                break;
            }
        }
        Ok((members, comma))
    }

    fn tuple(&mut self) -> Result<Value, String> {
        let (mut members, comma) = self.list("(", ")")?;
        if members.len() == 1 && !comma {
            return Ok(members.remove(0));
        }
        Ok(json!({"t": "tuple", "v": members}))
    }

    fn dict(&mut self) -> Result<Value, String> {
        self.expect("{")?;
        let mut pairs = Vec::new();
        while !self.eat("}") {
            let key = self.value()?;
            self.expect(":")?;
            pairs.push(json!([key, self.value()?]));
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(json!({"t": "dict", "v": pairs}))
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = self.rest();
        if rest.starts_with("-inf") {
            self.at += 4;
            return Ok(float_value(f64::NEG_INFINITY));
        }
        let exponent_sign = |i: usize| i > 0 && matches!(rest.as_bytes()[i - 1], b'e' | b'E');
        let ends = |(i, b): (usize, u8)| {
            !(b.is_ascii_digit()
                || matches!(b, b'.' | b'e' | b'E')
                || (matches!(b, b'-' | b'+') && (i == 0 || exponent_sign(i))))
        };
        let end = rest.bytes().enumerate().position(ends).unwrap_or(rest.len());
        let text = &rest[..end];
        self.at += end;
        if let Ok(n) = text.parse::<i64>() {
            return Ok(json!({"t": "int", "v": n}));
        }
        match text.parse::<f64>() {
            Ok(x) => Ok(float_value(x)),
            Err(_) => self.error("not a number"),
        }
    }

    fn named(&mut self) -> Result<Value, String> {
        let word = self.word();
        match word {
            "None" => return Ok(json!({"t": "none"})),
            "True" => return Ok(json!({"t": "bool", "v": true})),
            "False" => return Ok(json!({"t": "bool", "v": false})),
            "nan" => return Ok(float_value(f64::NAN)),
            "inf" => return Ok(float_value(f64::INFINITY)),
            _ => {}
        }
        if DType::from_short_name(word).is_some() {
            return Ok(json!({"t": "dtype", "v": word}));
        }
        if self.eat(":=") {
            let value = self.value()?;
            return Ok(json!({"t": "let", "name": word, "v": value}));
        }
        self.blanks();
        if !word.is_empty() && !self.rest().starts_with('(') {
            return Ok(json!({"t": "ref", "name": word}));
        }
        let (args, _) = self.list("(", ")")?;
        let made = match (word, args.as_slice()) {
            ("complex", [re, im]) => complex(re, im),
            ("tensor", [data]) => tensor(data, None),
            ("tensor", [data, dtype]) => tensor(data, Some(dtype)),
            ("full", [shape, value, dtype @ ..]) => filled(shape, dtype.first(), |_| value.clone()),
            ("iota", [shape, dtype @ ..]) => filled(shape, dtype.first(), |i| json!({"t": "int", "v": i})),
            ("rand", [shape, dtype, seed]) => random(shape, dtype, seed),
            ("view", [of, shape, strides, offset]) => view(of, shape, strides, offset),
            _ => Err(format!("there is no value `{word}` with {} arguments", args.len())),
        };
        made.or_else(|why| self.error(&why))
    }
}

fn float_value(x: f64) -> Value {
    json!({"t": "float", "v": float_text(x)})
}

fn number_of(value: &Value) -> Result<f64, String> {
    match (tag(value), value.get("v")) {
        ("int", Some(v)) => v.as_f64().ok_or_else(|| "not a number".to_string()),
        ("float", Some(v)) => super::float(v.as_str().unwrap_or("")),
        ("bool", Some(v)) => Ok(f64::from(u8::from(v.as_bool().unwrap_or(false)))),
        _ => Err("not a number".to_string()),
    }
}

fn complex(re: &Value, im: &Value) -> Result<Value, String> {
    Ok(json!({"t": "complex", "v": [float_text(number_of(re)?), float_text(number_of(im)?)]}))
}

fn tensor(data: &Value, dtype: Option<&Value>) -> Result<Value, String> {
    let mut shape = Vec::new();
    let mut level: Vec<&Value> = vec![data];
    while level.first().is_some_and(|v| tag(v) == "list") {
        let size = super::items(level[0]).len();
        if level.iter().any(|v| tag(v) != "list" || super::items(v).len() != size) {
            return Err("the rows have different lengths".to_string());
        }
        shape.push(size);
        level = level.into_iter().flat_map(super::items).collect();
    }
    make(shape, dtype, &level)
}

fn filled(shape: &Value, dtype: Option<&Value>, value: impl Fn(i64) -> Value) -> Result<Value, String> {
    let sizes: Option<Vec<usize>> =
        super::items(shape).iter().map(|d| d.get("v").and_then(Value::as_u64).map(|d| d as usize)).collect();
    let sizes = sizes.ok_or("a shape must be a list of natural numbers")?;
    let count: usize = sizes.iter().product();
    if count > 1 << 24 {
        return Err("the tensor is too large".to_string());
    }
    let values: Vec<Value> = (0..count.max(1) as i64).map(value).collect();
    let refs: Vec<&Value> = values.iter().take(count).collect();
    if dtype.is_none() && count == 0 {
        return make(sizes, Some(&json!({"t": "dtype", "v": "f32"})), &refs);
    }
    make(sizes, dtype, &refs)
}

fn view(of: &Value, shape: &Value, strides: &Value, offset: &Value) -> Result<Value, String> {
    let ints = |list: &Value| -> Option<Vec<i64>> {
        super::items(list).iter().map(|d| d.get("v").and_then(Value::as_i64)).collect()
    };
    let (shape, strides) = (ints(shape), ints(strides));
    let offset = offset.get("v").and_then(Value::as_i64);
    match (shape, strides, offset) {
        (Some(shape), Some(strides), Some(offset)) => {
            Ok(json!({"t": "view", "of": of, "shape": shape, "strides": strides, "offset": offset}))
        }
        _ => Err("a view needs two lists of integers and an offset".to_string()),
    }
}

/// Draws multiples of 1/64, which every float type represents exactly.
fn random(shape: &Value, dtype: &Value, seed: &Value) -> Result<Value, String> {
    let seed = seed.get("v").and_then(Value::as_i64).ok_or("the seed must be an int")? as u64;
    let draw = |i: i64| {
        let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i as u64 + 1);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x >> 32) % 257) as f64 / 64.0 - 2.0
    };
    filled(shape, Some(dtype), |i| float_value(draw(i)))
}

fn make(shape: Vec<usize>, dtype: Option<&Value>, elements: &[&Value]) -> Result<Value, String> {
    let name = match dtype {
        Some(d) => {
            d.get("v").and_then(Value::as_str).filter(|_| tag(d) == "dtype").ok_or("this is not a dtype")?
        }
        None if elements.iter().any(|e| tag(e) == "complex") => "c64",
        None if elements.iter().any(|e| tag(e) == "float") || elements.is_empty() => "f32",
        None if elements.iter().any(|e| tag(e) == "int") => "i64",
        None => "bool",
    };
    let long = DType::from_short_name(name).ok_or("unknown dtype")?.name();
    let class = super::elements::class(long)?.0;
    let mut data = Vec::new();
    for element in elements {
        match class {
            'c' if tag(element) == "complex" => {
                for part in super::items(element) {
                    data.push(json_float(super::float(part.as_str().unwrap_or(""))?));
                }
            }
            'c' => data.extend([json_float(number_of(element)?), json!(0.0)]),
            'f' => data.push(json_float(number_of(element)?)),
            'b' => data.push(json!(number_of(element)? != 0.0)),
            _ if tag(element) == "int" => data.push(element["v"].clone()),
            _ => data.push(json!(number_of(element)? as i64)),
        }
    }
    Ok(json!({"t": "tensor", "dtype": long, "shape": shape, "data": data}))
}

fn json_float(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { json!(float_text(x)) }
}

#[cfg(test)]
mod tests {
    use super::super::print::print;
    use super::*;

    #[test]
    fn printed_values_read_back() {
        for text in [
            "1",
            "-2.5",
            "1e16",
            "nan",
            "-inf",
            "None",
            "\"a\\\"b\\n\"",
            "[1, [2]]",
            "(1, \"a\")",
            "(1,)",
            "()",
            "{\"k\": [True]}",
            "complex(1.0, -2.0)",
            "tensor([[1.0, 2.0], [3.0, nan]], f32)",
            "tensor(3, u8)",
            "tensor([True, False], bool)",
            "full([0, 3], 0, i64)",
            "tensor([complex(1.0, 2.0)], c64)",
        ] {
            assert_eq!(print(&parse(text).unwrap()), text);
        }
    }

    #[test]
    fn tensors_may_be_described() {
        assert_eq!(print(&parse("iota([2, 2])").unwrap()), "tensor([[0, 1], [2, 3]], i64)");
        assert_eq!(print(&parse("full([2], 1.5)").unwrap()), "tensor([1.5, 1.5], f32)");
        assert_eq!(print(&parse("tensor([1, 2.5])").unwrap()), "tensor([1.0, 2.5], f32)");
        assert_eq!(parse("rand([3], f32, 1)").unwrap(), parse("rand([3], f32, 1)").unwrap());
        assert_ne!(parse("rand([3], f32, 1)").unwrap(), parse("rand([3], f32, 2)").unwrap());
    }

    #[test]
    fn arguments_may_share_memory() {
        let (call, rest) = parse_call("f(a := tensor([1.0, 2.0]), [a], view(a, [2], [0], 1)) == a").unwrap();
        assert_eq!((call.args.len(), rest), (3, " == a"));
        let mut reader = flambeau::json::Reader::default();
        let read = |v: &Value| reader.read_as(v, flambeau::Type::ANY).unwrap();
        let made: Vec<_> = call.args.iter().map(read).collect();
        let a = made[0].as_tensor().unwrap();
        assert!(made[1].as_list().unwrap().to_tensors().unwrap()[0].ptr_eq(a));
        let view = made[2].as_tensor().unwrap();
        assert!(view.shares_storage(a) && view.strides() == [0] && view.offset() == 1);
    }

    #[test]
    fn calls_are_read() {
        let (call, rest) = parse_call("f(1, [2], key=\"v\") == 3").unwrap();
        assert_eq!((call.name.as_str(), call.args.len(), call.kwargs.len(), rest), ("f", 2, 1, " == 3"));
        assert_eq!(parse_call("main()").unwrap().0.args.len(), 0);
    }

    #[test]
    fn malformed_literals_are_errors() {
        for text in ["", "[1", "tensor([[1], [1, 2]])", "1 2", "what(1)", "\"a"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
