//! Writing of values. A value is checked first; then it is serialized without a tree of JSON in memory, unless the caller
//! needs one.

use super::{JsonError, MAX_DEPTH, MAX_TENSOR_BYTES, MAX_VALUES, float_text};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD as BASE64;
use flambeau_ir::value::{IValue, Tuple};
use flambeau_tensor::{DType, Scalar, Tensor};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use std::io;

/// Maximum number of elements written as numbers; larger tensors are written as bytes.
const MAX_DATA: usize = 64;

/// Writes a value.
///
/// # Errors
/// If the value is nested too deeply (for example a list that contains itself), is too large, or is of a kind without a
/// JSON tag.
pub fn write(value: &IValue) -> Result<Value, JsonError> {
    Size::default().add(value, 0)?;
    serde_json::to_value(Member(value)).map_err(|error| JsonError::input(error.to_string()))
}

/// Writes a value to `out` without a tree of JSON in memory.
///
/// # Errors
/// Those of [`write()`], with nothing written then; and, in the inner result, those of `out`.
pub fn write_to(out: impl io::Write, value: &IValue) -> Result<io::Result<()>, JsonError> {
    Size::default().add(value, 0)?;
    Ok(serde_json::to_writer(out, &Member(value)).map_err(io::Error::from))
}

/// The size of the values that have been checked.
#[derive(Default)]
struct Size {
    values: usize,
    tensor_bytes: usize,
}

impl Size {
    /// Adds a value with its members.
    fn add(&mut self, value: &IValue, depth: usize) -> Result<(), JsonError> {
        if depth > MAX_DEPTH {
            return Err(JsonError::too_deep());
        }
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(JsonError::limit(format!("the value has more than {MAX_VALUES} members")));
        }
        match value {
            IValue::Tensor(t) => {
                let bytes = t.numel().saturating_mul(t.dtype().size());
                self.tensor_bytes = self.tensor_bytes.saturating_add(bytes);
                if self.tensor_bytes > MAX_TENSOR_BYTES {
                    let what = format!("the tensors have more than {MAX_TENSOR_BYTES} bytes");
                    return Err(JsonError::limit(what));
                }
            }
            IValue::List(list) => {
                for (i, item) in list.to_vec().iter().enumerate() {
                    self.add(item, depth + 1).map_err(|e| e.within(|| format!("[{i}]")))?;
                }
            }
            IValue::Tuple(tuple) => {
                for (i, item) in tuple.items().iter().enumerate() {
                    self.add(item, depth + 1).map_err(|e| e.within(|| format!("[{i}]")))?;
                }
            }
            IValue::Dict(dict) => {
                for (i, (key, value)) in dict.to_vec().iter().enumerate() {
                    self.add(key, depth + 1).map_err(|e| e.within(|| format!(".key({i})")))?;
                    self.add(value, depth + 1).map_err(|e| e.within(|| format!(".value({i})")))?;
                }
            }
            IValue::Enum(e) => self.add(e.value(), depth + 1)?,
            IValue::Future(f) => {
                if let Some(Ok(value)) = f.result() {
                    self.add(&value, depth + 1)?;
                }
            }
            IValue::Generator(_) | IValue::Function(_) | IValue::Host(_) | IValue::Uninitialized => {
                return Err(JsonError::unsupported(format!("a value of kind {} as JSON", value.tag())));
            }
            IValue::None
            | IValue::Bool(_)
            | IValue::Int(_)
            | IValue::Float(_)
            | IValue::Complex(_)
            | IValue::Str(_)
            | IValue::Device(_)
            | IValue::Object(_) => {}
        }
        Ok(())
    }
}

/// A checked value.
struct Member<'a>(&'a IValue);

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        match self.0 {
            IValue::None => object.serialize_entry("t", "none")?,
            IValue::Bool(b) => tagged(&mut object, "bool", b)?,
            IValue::Int(n) => tagged(&mut object, "int", n)?,
            IValue::Float(x) => tagged(&mut object, "float", &float_text(*x))?,
            IValue::Complex(z) => tagged(&mut object, "complex", &[float_text(z.re), float_text(z.im)])?,
            IValue::Str(s) => tagged(&mut object, "str", &s.to_text())?,
            IValue::Tensor(t) => write_tensor(&mut object, t)?,
            IValue::List(l) => tagged(&mut object, "list", &Members(&l.to_vec()))?,
            IValue::Tuple(t) => write_tuple(&mut object, t)?,
            IValue::Dict(d) => tagged(&mut object, "dict", &Pairs(&d.to_vec()))?,
            IValue::Device(d) => tagged(&mut object, "device", &d.to_string())?,
            IValue::Object(o) => {
                object.serialize_entry("t", "object")?;
                object.serialize_entry("class", &o.class().to_string())?;
            }
            IValue::Enum(e) => {
                object.serialize_entry("t", "enum")?;
                object.serialize_entry("class", &e.ty().to_string())?;
                object.serialize_entry("name", e.name().as_str())?;
                object.serialize_entry("v", &Member(e.value()))?;
            }
            IValue::Future(f) => match f.result() {
                Some(Ok(value)) => tagged(&mut object, "future", &Member(&value))?,
                Some(Err(error)) => {
                    object.serialize_entry("t", "future")?;
                    object.serialize_entry("error", &error.to_string())?;
                }
                None => object.serialize_entry("t", "future")?,
            },
            IValue::Generator(_) | IValue::Function(_) | IValue::Host(_) | IValue::Uninitialized => {
                return Err(S::Error::custom(format!("a value of kind {} as JSON", self.0.tag())));
            }
        }
        object.end()
    }
}

/// Writes the tag of an object and its value `v`.
fn tagged<M: SerializeMap>(
    object: &mut M,
    tag: &str,
    value: &(impl Serialize + ?Sized),
) -> Result<(), M::Error> {
    object.serialize_entry("t", tag)?;
    object.serialize_entry("v", value)
}

struct Members<'a>(&'a [IValue]);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Member))
    }
}

struct Pairs<'a>(&'a [(IValue, IValue)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(key, value)| [Member(key), Member(value)]))
    }
}

fn write_tuple<M: SerializeMap>(object: &mut M, tuple: &Tuple) -> Result<(), M::Error> {
    object.serialize_entry("t", "tuple")?;
    let named = tuple.named_type().and_then(|ty| ty.as_tuple()).and_then(|tuple| tuple.named.as_deref());
    if let Some(named) = named {
        let fields: Vec<&str> = named.fields.iter().map(|f| f.name.as_str()).collect();
        object.serialize_entry("fields", &fields)?;
        if !named.name.as_str().is_empty() {
            object.serialize_entry("class", named.name.as_str())?;
        }
    }
    object.serialize_entry("v", &Members(tuple.items()))
}

fn write_tensor<M: SerializeMap>(object: &mut M, tensor: &Tensor) -> Result<(), M::Error> {
    object.serialize_entry("t", "tensor")?;
    object.serialize_entry("dtype", tensor.dtype().name())?;
    object.serialize_entry("shape", tensor.sizes())?;
    if !tensor.is_contiguous() {
        object.serialize_entry("strides", tensor.strides())?;
    }
    if tensor.requires_grad() {
        object.serialize_entry("rg", &true)?;
    }
    if tensor.numel() > MAX_DATA {
        let bytes = tensor.to_bytes().map_err(M::Error::custom)?;
        return object.serialize_entry("b64", &Base64Text(&bytes));
    }
    object.serialize_entry("data", &elements(tensor).map_err(M::Error::custom)?)
}

/// Bytes as text in base 64.
struct Base64Text<'a>(&'a [u8]);

impl Serialize for Base64Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &BASE64))
    }
}

/// Returns the elements of a small tensor as numbers, two for a complex one.
fn elements(tensor: &Tensor) -> flambeau_tensor::Result<Vec<Value>> {
    let narrow = matches!(tensor.dtype(), DType::F32 | DType::C64);
    let number = |x: f64| match x {
        x if !x.is_finite() => json!(float_text(x)),
        // The shortest text that identifies the f32.
        x if narrow => format!("{:?}", x as f32).parse::<f64>().map_or_else(|_| json!(x), |x| json!(x)),
        x => json!(x),
    };
    let mut data = Vec::new();
    for scalar in tensor.to_scalars()? {
        match scalar {
            Scalar::Bool(b) => data.push(json!(b)),
            Scalar::Int(n) => data.push(json!(n)),
            Scalar::Float(x) => data.push(number(x)),
            Scalar::Complex(z) => data.extend([number(z.re), number(z.im)]),
        }
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_ir::types::Type;
    use flambeau_tensor::Fault;

    #[test]
    fn both_ways_of_writing_agree() {
        let tensor = Tensor::arange(Scalar::Int(0), Scalar::Int(70), Scalar::Int(1), DType::I64).unwrap();
        let value = IValue::tuple(vec![tensor.into(), IValue::list(Type::FLOAT, vec![IValue::Float(0.5)])]);
        let mut text = Vec::new();
        write_to(&mut text, &value).unwrap().unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), write(&value).unwrap().to_string());
    }

    #[test]
    fn results_that_are_small_only_in_memory_are_refused() {
        let one = Tensor::full(&[1], Scalar::Float(1.0), DType::F32).unwrap();
        let expanded = IValue::Tensor(one.expand(&[1_000_000_000]).unwrap());
        let mut nested = IValue::ints(vec![1]);
        for _ in 0..60 {
            nested = IValue::tuple(vec![nested.clone(), nested]);
        }
        for value in [expanded, nested] {
            assert_eq!(write(&value).unwrap_err().fault(), Fault::Limit);
        }
    }
}
