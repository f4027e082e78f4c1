//! Comparison of values with recorded ones.

use serde_json::Value;

use super::elements::{Elements, read};
use super::{items, tag};

/// Tolerance of a comparison. Numbers match if `|got - want| <= atol + rtol * |want|`, if both are NaN, or if both are
/// the same infinity. Integers, booleans, strings, dtypes and shapes must be equal.
#[derive(Debug, Clone, Copy)]
pub struct Tolerance {
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Compare structure, dtype and shape only (random or uninitialised results).
    pub meta: bool,
    /// Whether `-0.0` differs from `0.0`.
    pub signed_zeros: bool,
    /// Whether tensors must agree in requiring gradients.
    pub requires_grad: bool,
}

impl Tolerance {
    /// Numbers must be equal; `-0.0` equals `0.0`.
    pub const EXACT: Tolerance =
        Tolerance { rtol: 0.0, atol: 0.0, meta: false, signed_zeros: false, requires_grad: false };

    /// Numbers must have the same bits, except that all NaN are equal.
    pub const BITS: Tolerance = Tolerance { signed_zeros: true, ..Tolerance::EXACT };

    fn close(self, got: f64, want: f64) -> bool {
        if self.signed_zeros && got == 0.0 && want == 0.0 {
            return got.is_sign_negative() == want.is_sign_negative();
        }
        if got == want || (got.is_nan() && want.is_nan()) {
            return true;
        }
        got.is_finite() && want.is_finite() && (got - want).abs() <= self.atol + self.rtol * want.abs()
    }

    fn close_complex(self, got: (f64, f64), want: (f64, f64)) -> bool {
        if self.close(got.0, want.0) && self.close(got.1, want.1) {
            return true;
        }
        if self.signed_zeros {
            return false;
        }
        let far = (got.0 - want.0).hypot(got.1 - want.1);
        far.is_finite() && far <= self.atol + self.rtol * want.0.hypot(want.1)
    }
}

/// Compares a value with the recorded one, including all members.
///
/// # Errors
/// Returns the first difference with the path to it (`[1].key(0)`).
pub fn compare(got: &Value, want: &Value, tolerance: Tolerance) -> Result<(), String> {
    let mut open = vec![(got, want, String::new())];
    while let Some((got, want, path)) = open.pop() {
        let wrong = |what: String| {
            if path.is_empty() { Err(what) } else { Err(format!("at {path}: {what}")) }
        };
        if tag(want) == "dataclass" && tag(got) == "tuple" {
            match fields(got, want) {
                Some(pairs) => {
                    open.extend(pairs.into_iter().rev().map(|(name, g, w)| (g, w, format!("{path}.{name}"))));
                }
                None => return wrong("fields of another class than was recorded".to_owned()),
            }
            continue;
        }
        if tag(got) != tag(want) {
            return wrong(format!("{} where {} was recorded", show(got), show(want)));
        }
        match tag(want) {
            "list" | "tuple" | "dict" => {
                let (got, want) = (items(got), items(want));
                if got.len() != want.len() {
                    return wrong(format!("{} members where {} were recorded", got.len(), want.len()));
                }
                // Pushed in reverse, so that the stack pops them in order.
                for (i, (g, w)) in got.iter().zip(want).enumerate().rev() {
                    match (g.as_array(), w.as_array()) {
                        (Some(g), Some(w)) if g.len() == 2 && w.len() == 2 => {
                            open.push((&g[1], &w[1], format!("{path}.value({i})")));
                            open.push((&g[0], &w[0], format!("{path}.key({i})")));
                        }
                        _ => open.push((g, w, format!("{path}[{i}]"))),
                    }
                }
            }
            "future" => {
                let none = &Value::Null;
                let of = |v: &'_ Value| v.get("v").is_some();
                if of(got) && of(want) {
                    let pair = (got.get("v").unwrap_or(none), want.get("v").unwrap_or(none));
                    open.push((pair.0, pair.1, format!("{path}.wait()")));
                }
            }
            _ => {
                if let Err(what) = leaf(got, want, tolerance) {
                    return wrong(what);
                }
            }
        }
    }
    Ok(())
}

/// A field with its value and the recorded value.
type Field<'v> = (&'v str, &'v Value, &'v Value);

/// Pairs the members of a tuple with field names with the fields of a recorded dataclass; `None` if the names differ.
fn fields<'v>(got: &'v Value, want: &'v Value) -> Option<Vec<Field<'v>>> {
    let names: Vec<&str> = got.get("fields")?.as_array()?.iter().filter_map(Value::as_str).collect();
    if names.len() != items(want).len() {
        return None;
    }
    let pair = |field: &'v Value| {
        let name = field.get(0)?.as_str()?;
        let at = names.iter().position(|own| *own == name)?;
        Some((name, items(got).get(at)?, field.get(1)?))
    };
    items(want).iter().map(pair).collect()
}

fn leaf(got: &Value, want: &Value, tolerance: Tolerance) -> Result<(), String> {
    let differ = || Err(format!("{} where {} was recorded", show(got), show(want)));
    match tag(want) {
        "none" | "object" => Ok(()),
        "tensor" => tensor(got, want, tolerance),
        _ if tolerance.meta => Ok(()),
        "float" => {
            let (g, w) = (float_of(got, None)?, float_of(want, None)?);
            if tolerance.close(g, w) { Ok(()) } else { differ() }
        }
        "complex" => {
            let parts = |v| Ok::<_, String>((float_of(v, Some(0))?, float_of(v, Some(1))?));
            if tolerance.close_complex(parts(got)?, parts(want)?) { Ok(()) } else { differ() }
        }
        "enum" if got.get("name") != want.get("name") => differ(),
        "bool" | "int" | "str" | "enum" | "dtype" | "layout" | "memory_format" | "device" => {
            if got.get("v") == want.get("v") { Ok(()) } else { differ() }
        }
        other => Err(format!("no way to compare values with the tag `{other}`")),
    }
}

fn float_of(value: &Value, part: Option<usize>) -> Result<f64, String> {
    let field = value.get("v");
    let text = part.map_or(field, |i| field.and_then(|v| v.get(i))).and_then(Value::as_str);
    super::float(text.unwrap_or(""))
}

fn tensor(got: &Value, want: &Value, tolerance: Tolerance) -> Result<(), String> {
    let requires_grad = |value: &Value| value.get("rg").and_then(Value::as_bool) == Some(true);
    if tolerance.requires_grad && requires_grad(got) != requires_grad(want) {
        return Err(format!("requires_grad is {}", requires_grad(got)));
    }
    if tolerance.meta {
        // The elements were not recorded.
        for field in ["dtype", "shape"] {
            let (g, w) = (got.get(field).unwrap_or(&Value::Null), want.get(field).unwrap_or(&Value::Null));
            if g != w {
                return Err(format!("{field} {g} where {w} was recorded"));
            }
        }
        return Ok(());
    }
    let (got, want) = (read(got)?, read(want)?);
    if got.dtype != want.dtype {
        return Err(format!("dtype {} where {} was recorded", got.dtype, want.dtype));
    }
    if got.shape != want.shape {
        return Err(format!("shape {:?} where {:?} was recorded", got.shape, want.shape));
    }
    match (&got.elements, &want.elements) {
        (Elements::Float(g), Elements::Float(w)) => each(g, w, |g, w| tolerance.close(g, w)),
        (Elements::Int(g), Elements::Int(w)) => each(g, w, |g, w| g == w),
        (Elements::Bool(g), Elements::Bool(w)) => each(g, w, |g, w| g == w),
        (Elements::Complex(g), Elements::Complex(w)) => each(g, w, |g, w| tolerance.close_complex(g, w)),
        _ => Err("elements of a different kind".to_string()),
    }
}

/// Compares element by element; the error has the number of differences and the first one.
fn each<T: Copy + std::fmt::Debug>(got: &[T], want: &[T], same: impl Fn(T, T) -> bool) -> Result<(), String> {
    let mut wrong = got.iter().zip(want).enumerate().filter(|(_, (g, w))| !same(**g, **w));
    let Some((at, (g, w))) = wrong.next() else { return Ok(()) };
    let count = 1 + wrong.count();
    Err(format!("{count} of {} elements differ; element {at} is {g:?} where {w:?} was recorded", got.len()))
}

/// Returns the text of a value, shortened for messages.
fn show(value: &Value) -> String {
    let text = super::print::print(value);
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOOSE: Tolerance = Tolerance { rtol: 1e-3, atol: 0.0, ..Tolerance::EXACT };

    fn floats(v: &[f64]) -> Value {
        json!({"t": "tensor", "dtype": "float64", "shape": [v.len()], "data": v})
    }

    #[test]
    fn numbers_match_within_the_tolerance() {
        assert!(compare(&floats(&[1.0, 2.0]), &floats(&[1.0005, 2.0]), LOOSE).is_ok());
        let error = compare(&floats(&[1.0, 2.0]), &floats(&[1.0, 2.1]), LOOSE).unwrap_err();
        assert!(error.contains("1 of 2 elements differ; element 1"), "{error}");
        assert!(compare(&floats(&[1.0]), &floats(&[1.0000001]), Tolerance::EXACT).is_err());
    }

    #[test]
    fn structure_is_compared_with_its_path() {
        let value = |x: i64| json!({"t": "tuple", "v": [{"t": "list", "v": [{"t": "int", "v": x}]}]});
        assert!(compare(&value(1), &value(1), LOOSE).is_ok());
        let error = compare(&value(1), &value(2), LOOSE).unwrap_err();
        assert!(error.starts_with("at [0][0]: 1 where 2"), "{error}");
        let one = json!({"t": "int", "v": 1});
        let truth = json!({"t": "bool", "v": true});
        assert!(compare(&one, &truth, LOOSE).is_err());
    }

    #[test]
    fn dicts_are_compared_in_order() {
        let dict = |k: &str| json!({"t": "dict", "v": [[{"t": "str", "v": k}, {"t": "none"}]]});
        assert!(compare(&dict("a"), &dict("a"), LOOSE).is_ok());
        assert!(compare(&dict("a"), &dict("b"), LOOSE).unwrap_err().starts_with("at .key(0)"));
    }

    #[test]
    fn special_numbers_and_meta() {
        let nan = json!({"t": "float", "v": "nan"});
        let inf = json!({"t": "float", "v": "inf"});
        let zero = |text: &str| json!({"t": "float", "v": text});
        assert!(compare(&zero("-0.0"), &zero("0.0"), Tolerance::EXACT).is_ok());
        assert!(compare(&zero("-0.0"), &zero("0.0"), Tolerance::BITS).is_err());
        assert!(compare(&zero("-0.0"), &zero("-0.0"), Tolerance::BITS).is_ok());
        assert!(compare(&nan, &nan, Tolerance::EXACT).is_ok());
        assert!(compare(&inf, &inf, Tolerance::EXACT).is_ok());
        assert!(compare(&nan, &inf, LOOSE).is_err());
        let meta = Tolerance { meta: true, ..LOOSE };
        assert!(compare(&floats(&[1.0]), &floats(&[9.0]), meta).is_ok());
        assert!(compare(&floats(&[1.0]), &floats(&[9.0, 1.0]), meta).is_err());
    }
}
