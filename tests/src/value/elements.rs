//! The elements of a recorded tensor.

use base64::Engine as _;
use serde_json::Value;

/// A decoded tensor with its elements in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// PyTorch's name of the dtype, without `torch.`.
    pub dtype: String,
    /// Sizes.
    pub shape: Vec<usize>,
    /// The elements.
    pub elements: Elements,
}

/// The elements, by kind of arithmetic.
#[derive(Debug, Clone, PartialEq)]
pub enum Elements {
    /// Real floating point numbers of any width.
    Float(Vec<f64>),
    /// Integers of any width.
    Int(Vec<i64>),
    /// Booleans.
    Bool(Vec<bool>),
    /// Complex numbers of any width.
    Complex(Vec<(f64, f64)>),
}

impl Elements {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self {
            Elements::Float(v) => v.len(),
            Elements::Int(v) => v.len(),
            Elements::Bool(v) => v.len(),
            Elements::Complex(v) => v.len(),
        }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Decodes a value with the tag `tensor`.
///
/// # Errors
/// Returns an error if a field is missing or invalid, or if the number of elements does not match the shape.
pub fn read(value: &Value) -> Result<Tensor, String> {
    let dtype = value.get("dtype").and_then(Value::as_str).ok_or("the tensor has no dtype")?.to_string();
    let shape = value.get("shape").and_then(Value::as_array).ok_or("the tensor has no shape")?;
    let shape: Option<Vec<usize>> =
        shape.iter().map(|d| d.as_u64().and_then(|d| d.try_into().ok())).collect();
    let shape = shape.ok_or("a size is not a natural number")?;
    let elements =
        match (value.get("data").and_then(Value::as_array), value.get("b64").and_then(Value::as_str)) {
            (Some(data), _) => from_data(&dtype, data)?,
            (None, Some(text)) => from_bytes(&dtype, text)?,
            (None, None) => return Err("the tensor has neither data nor b64".to_string()),
        };
    let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).ok_or("the shape is too large")?;
    if elements.len() != count {
        return Err(format!("{} elements for the shape {shape:?}", elements.len()));
    }
    Ok(Tensor { dtype, shape, elements })
}

/// Returns the kind of a dtype's elements (`f`loat, `i`nteger, `b`ool, `c`omplex) and the size in bytes of one number.
///
/// # Errors
/// Returns an error if the dtype is unknown.
pub fn class(dtype: &str) -> Result<(char, usize), String> {
    Ok(match dtype {
        "bool" => ('b', 1),
        "uint8" | "int8" => ('i', 1),
        "int16" | "uint16" => ('i', 2),
        "int32" | "uint32" => ('i', 4),
        "int64" | "uint64" => ('i', 8),
        "float16" | "bfloat16" => ('f', 2),
        "float32" => ('f', 4),
        "float64" => ('f', 8),
        "complex32" => ('c', 2),
        "complex64" => ('c', 4),
        "complex128" => ('c', 8),
        other => return Err(format!("unknown dtype `{other}`")),
    })
}

fn from_data(dtype: &str, data: &[Value]) -> Result<Elements, String> {
    // The text is the shortest one for the dtype, so the number is exact only after rounding to the dtype.
    let float = |v: &Value| match v {
        Value::String(text) => super::float(text),
        v => v.as_f64().map(|x| round_to(dtype, x)).ok_or_else(|| format!("{v} is not a float")),
    };
    Ok(match class(dtype)?.0 {
        'b' => Elements::Bool(collect(data, |v| v.as_bool().ok_or_else(|| format!("{v} is not a bool")))?),
        'i' => Elements::Int(collect(data, |v| v.as_i64().ok_or_else(|| format!("{v} is not an int")))?),
        'f' => Elements::Float(collect(data, float)?),
        _ => {
            let parts = collect(data, float)?;
            Elements::Complex(parts.chunks_exact(2).map(|p| (p[0], p[1])).collect())
        }
    })
}

fn collect<T>(data: &[Value], read: impl Fn(&Value) -> Result<T, String>) -> Result<Vec<T>, String> {
    data.iter().map(read).collect()
}

fn from_bytes(dtype: &str, text: &str) -> Result<Elements, String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).map_err(|e| e.to_string())?;
    let (class, width) = class(dtype)?;
    if bytes.len() % width != 0 {
        return Err(format!("{} bytes are not a whole number of elements", bytes.len()));
    }
    let words = bytes.chunks_exact(width).map(|chunk| {
        let mut word = [0u8; 8];
        word[..width].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let float = |word: u64| match (dtype, width) {
        ("bfloat16", _) => f64::from(f32::from_bits((word as u32) << 16)),
        (_, 2) => half(word as u16),
        (_, 4) => f64::from(f32::from_bits(word as u32)),
        _ => f64::from_bits(word),
    };
    let signed = dtype.starts_with("int");
    Ok(match class {
        'b' => Elements::Bool(words.map(|w| w != 0).collect()),
        'i' => Elements::Int(words.map(|w| if signed { sign_extend(w, width) } else { w as i64 }).collect()),
        'f' => Elements::Float(words.map(float).collect()),
        _ => {
            let parts: Vec<f64> = words.map(float).collect();
            Elements::Complex(parts.chunks_exact(2).map(|p| (p[0], p[1])).collect())
        }
    })
}

fn sign_extend(word: u64, width: usize) -> i64 {
    let unused = 64 - 8 * width as u32;
    ((word << unused) as i64) >> unused
}

/// Rounds to the nearest number of the dtype.
fn round_to(dtype: &str, x: f64) -> f64 {
    let (bits, smallest, largest) = match dtype {
        "float32" | "complex64" => return f64::from(x as f32),
        "float16" | "complex32" => (10, -14, 65504.0),
        "bfloat16" => (7, -126, f64::from(f32::from_bits(0x7f7f_0000))),
        _ => return x,
    };
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let exponent = (x.abs().log2().floor() as i32).max(smallest);
    let step = 2f64.powi(exponent - bits);
    let rounded = (x / step).round_ties_even() * step;
    if rounded.abs() > largest { f64::INFINITY.copysign(x) } else { rounded }
}

/// Returns the value of a 16-bit float.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from((bits >> 10) & 31);
    let fraction = f64::from(bits & 1023);
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_and_bytes_agree() {
        let data = json!({"t": "tensor", "dtype": "float32", "shape": [2], "data": [1.0, "-inf"]});
        let bytes = json!({"t": "tensor", "dtype": "float32", "shape": [2], "b64": "AACAPwAAgP8="});
        assert_eq!(read(&data).unwrap(), read(&bytes).unwrap());
        let ints = json!({"t": "tensor", "dtype": "int8", "shape": [2], "b64": "/wE="});
        assert_eq!(read(&ints).unwrap().elements, Elements::Int(vec![-1, 1]));
    }

    #[test]
    fn half_floats_are_read() {
        assert_eq!(half(0x3c00), 1.0);
        assert_eq!(half(0xc000), -2.0);
        assert_eq!(half(0x0001), 2f64.powi(-24));
        assert_eq!(half(0x7bff), 65504.0);
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn narrow_numbers_are_rounded() {
        assert_eq!(round_to("float16", -8.48), -8.4765625);
        assert_eq!(round_to("float16", 65519.0), 65504.0);
        assert_eq!(round_to("float16", 65521.0), f64::INFINITY);
        assert_eq!(round_to("float16", 6e-8), 2f64.powi(-24));
        assert_eq!(round_to("bfloat16", 1.0039), 1.0);
        assert_eq!(round_to("float32", 0.1), f64::from(0.1f32));
    }

    #[test]
    fn a_wrong_count_is_refused() {
        let value = json!({"t": "tensor", "dtype": "int64", "shape": [3], "data": [1, 2]});
        assert!(read(&value).is_err());
    }
}
