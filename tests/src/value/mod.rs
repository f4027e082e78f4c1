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
//! [`elements`] decodes tensors, [`compare`] compares two values, [`literal`] parses the compact syntax of values in
//! file tests, and [`mod@print`] prints it.

pub mod compare;
pub mod elements;
pub mod literal;
pub mod print;

use serde_json::Value;

/// Returns the tag of a value; an empty string if there is none.
pub fn tag(value: &Value) -> &str {
    value.get("t").and_then(Value::as_str).unwrap_or("")
}

/// Returns the members of a list or tuple; empty for other values.
pub fn items(value: &Value) -> &[Value] {
    value.get("v").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Parses the text of a float.
///
/// # Errors
/// Returns an error if the text is not a float.
pub fn float(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a float"))
}
