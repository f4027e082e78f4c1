//! Printing of values in the compact syntax of [`super::literal`].

use std::fmt::Write as _;

use serde_json::Value;

use super::elements::{Elements, Tensor, read};
use super::{items, tag};
use flambeau::json::float_text;

/// Remaining output.
enum Part<'a> {
    Value(&'a Value),
    Text(&'static str),
}

/// Prints a value. [`super::literal::parse`] parses the text back, except for kinds of results that have no literal.
pub fn print(value: &Value) -> String {
    let mut out = String::new();
    let mut open = vec![Part::Value(value)];
    while let Some(part) = open.pop() {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Value(value) => one(value, &mut out, &mut open),
        }
    }
    out
}

fn one<'a>(value: &'a Value, out: &mut String, open: &mut Vec<Part<'a>>) {
    let v = value.get("v");
    match tag(value) {
        "none" => out.push_str("None"),
        "bool" => out.push_str(if v == Some(&Value::Bool(true)) { "True" } else { "False" }),
        "int" => write_display(out, v),
        "str" => string(v.and_then(Value::as_str).unwrap_or(""), out),
        "float" => out.push_str(&float_part(v)),
        "complex" => {
            let part = |i: usize| float_part(v.and_then(|v| v.get(i)));
            let _ = write!(out, "complex({}, {})", part(0), part(1));
        }
        "list" => members(items(value), "[", "]", out, open),
        "tuple" if items(value).len() == 1 => members(items(value), "(", ",)", out, open),
        "tuple" => members(items(value), "(", ")", out, open),
        "dict" => members(items(value), "{", "}", out, open),
        "tensor" => match read(value) {
            Ok(t) => tensor(&t, out),
            Err(why) => {
                let _ = write!(out, "<tensor: {why}>");
            }
        },
        other => {
            let _ = write!(out, "<{other} ");
            write_display(out, v.or(value.get("class")));
            out.push('>');
        }
    }
}

fn write_display(out: &mut String, value: Option<&Value>) {
    if let Some(value) = value {
        let _ = write!(out, "{value}");
    }
}

fn float_part(value: Option<&Value>) -> String {
    let text = value.and_then(Value::as_str).unwrap_or("");
    super::float(text).map_or_else(|_| text.to_string(), float_text)
}

fn members<'a>(
    members: &'a [Value],
    left: &'static str,
    right: &'static str,
    out: &mut String,
    open: &mut Vec<Part<'a>>,
) {
    out.push_str(left);
    open.push(Part::Text(right));
    for (i, member) in members.iter().enumerate().rev() {
        match member.as_array().map(Vec::as_slice) {
            Some([key, value]) => {
                open.push(Part::Value(value));
                open.push(Part::Text(": "));
                open.push(Part::Value(key));
            }
            _ => open.push(Part::Value(member)),
        }
        if i > 0 {
            open.push(Part::Text(", "));
        }
    }
}

/// Writes a string in double quotes with the escapes common to Python and the literal parser.
pub(crate) fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn tensor(t: &Tensor, out: &mut String) {
    let short = super::literal::short_name(&t.dtype);
    if t.elements.is_empty() {
        let _ = write!(out, "full({:?}, 0, {short})", t.shape);
        return;
    }
    out.push_str("tensor(");
    let text = |i: usize| match &t.elements {
        Elements::Float(v) if t.dtype == "float64" => float_text(v[i]),
        Elements::Float(v) => narrow_text(v[i]),
        Elements::Int(v) => v[i].to_string(),
        Elements::Bool(v) => if v[i] { "True" } else { "False" }.to_string(),
        Elements::Complex(v) => format!("complex({}, {})", float_text(v[i].0), float_text(v[i].1)),
    };
    for i in 0..t.elements.len() {
        // A dimension starts where the index is a multiple of the number of elements inside it, and ends likewise.
        let mut inside = 1;
        let mut brackets = 0;
        for &d in t.shape.iter().rev() {
            inside *= d;
            if i % inside == 0 {
                brackets += 1;
            }
        }
        if i > 0 {
            out.push_str(&"]".repeat(brackets));
            out.push_str(", ");
        }
        out.push_str(&"[".repeat(brackets));
        out.push_str(&text(i));
    }
    out.push_str(&"]".repeat(t.shape.len()));
    let _ = write!(out, ", {short})");
}

/// Returns the shortest text of a number that has at most 32 bits.
fn narrow_text(x: f64) -> String {
    if x.is_finite() { format!("{:?}", x as f32) } else { float_text(x) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tensors_are_nested() {
        let t = json!({"t": "tensor", "dtype": "float32", "shape": [2, 2], "data": [1.0, 0.1, "nan", -2.5]});
        assert_eq!(print(&t), "tensor([[1.0, 0.1], [nan, -2.5]], f32)");
        let t = json!({"t": "tensor", "dtype": "int64", "shape": [], "data": [3]});
        assert_eq!(print(&t), "tensor(3, i64)");
        let t = json!({"t": "tensor", "dtype": "bool", "shape": [2, 1, 1], "data": [true, false]});
        assert_eq!(print(&t), "tensor([[[True]], [[False]]], bool)");
    }

    #[test]
    fn containers_are_nested() {
        let v = json!({"t": "tuple", "v": [
            {"t": "dict", "v": [[{"t": "str", "v": "a\"b"}, {"t": "list", "v": []}]]},
            {"t": "float", "v": "1e+16"}, {"t": "none"}]});
        assert_eq!(print(&v), r#"({"a\"b": []}, 1e16, None)"#);
    }
}
