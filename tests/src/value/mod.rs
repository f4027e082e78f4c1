//! Recorded values: JSON objects with a tag `t`.
//!
//! | tag | fields |
//! |---|---|
//! | `none` | |
//! | `bool`, `int`, `str` | `v` |
//! | `float` | `v`, a string: the shortest text that reads back to the same 64-bit float, or `nan`, `inf`, `-inf` |
//! | `complex` | `v`, two such strings |
//! | `list`, `tuple`, `dict` | `v`: values, values, pairs in insertion order |
//! | `tensor` | `dtype`, `shape`, and `data` (a flat list) or `b64` (little-endian bytes), row-major |
//! | `enum`, `object`, `future` | results only |
//!
//! [`elements`] takes tensors apart, [`compare`] compares two values, [`literal`] reads the compact syntax that file
//! tests write values in and [`mod@print`] writes it.

pub mod compare;
pub mod elements;
pub mod literal;
pub mod print;

use serde_json::Value;

/// The tag of a value; an empty string where there is none.
pub fn tag(value: &Value) -> &str {
    value.get("t").and_then(Value::as_str).unwrap_or("")
}

/// The members of a list or tuple; empty for anything else.
pub fn items(value: &Value) -> &[Value] {
    value.get("v").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Reads the text of a float.
///
/// # Errors
/// If it is none.
pub fn float(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("`{text}` is no float"))
}
