//! Values as plain JSON, for arguments that are written by hand.
//!
//! The expected type decides the meaning of plain JSON: `[1, 2]` is a list, a tuple or a tensor, `3` an integer or a float,
//! `{"a": 1}` a dictionary with strings as keys. Properties that plain JSON cannot express (dtypes, strides, shared memory, infinities)
//! need the form with tags. Results are always written with tags.

use super::{JsonError, Reader, dict_of, read_list, read_tuple};
use flambeau_ir::types::{Type, TypeKind};
use flambeau_ir::value::IValue;
use flambeau_tensor::{Device, Tensor};
use serde_json::{Map, Value};

/// Reads a value without a tag. Optional types are resolved by the caller.
pub(super) fn read(json: &Value, ty: Type, depth: usize, names: &mut Reader) -> Result<IValue, JsonError> {
    Ok(match json {
        Value::Null => IValue::None,
        Value::Bool(b) => IValue::Bool(*b),
        Value::Number(n) => match (n.as_i64(), ty.kind()) {
            (Some(n), TypeKind::Float) => IValue::Float(n as f64),
            (Some(n), _) => IValue::Int(n),
            (None, TypeKind::Int) if n.as_f64().is_some_and(|n| n.fract() == 0.0) => {
                return Err(JsonError::input(format!("{n} does not fit a 64-bit integer")));
            }
            (None, _) => IValue::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => match ty.kind() {
            TypeKind::Device => IValue::Device(Device::parse(text)?),
            TypeKind::Float => IValue::Float(
                text.parse()
                    .map_err(|_| JsonError::input(format!("expected a number, found the string {text:?}")))?,
            ),
            _ => IValue::str(text.as_str()),
        },
        Value::Array(items) => match ty.kind() {
            TypeKind::Tensor(_) => IValue::Tensor(tensor(items)?),
            TypeKind::Tuple(_) => read_tuple(items, ty, depth, names)?,
            _ => read_list(items, ty, depth, names)?,
        },
        Value::Object(entries) => match ty.kind() {
            TypeKind::Dict(..) | TypeKind::Any => dict(entries, ty, depth, names)?,
            _ => return Err(JsonError::no_tag()),
        },
    })
}

fn dict(
    entries: &Map<String, Value>,
    ty: Type,
    depth: usize,
    names: &mut Reader,
) -> Result<IValue, JsonError> {
    let value_type = match ty.kind() {
        TypeKind::Dict(_, value) => *value,
        _ => Type::ANY,
    };
    let read = |(key, value): (&String, &Value)| {
        let value = super::read_at(value, value_type, depth + 1, names);
        Ok((IValue::str(key.as_str()), value.map_err(|e| e.within(|| format!(".{key}")))?))
    };
    dict_of(entries.iter().map(read).collect::<Result<_, JsonError>>()?, ty)
}

/// Reads a tensor from nested lists of numbers: `int64`, or `bool` if all elements are, or `float32` if one is a float.
fn tensor(items: &[Value]) -> Result<Tensor, JsonError> {
    let mut sizes = vec![items.len() as i64];
    let mut level: Vec<&Value> = items.iter().collect();
    // Each round replaces the lists of one level by their elements.
    while let Some(Value::Array(first)) = level.first() {
        let width = first.len();
        sizes.push(width as i64);
        let rows = level.into_iter().map(|row| match row {
            Value::Array(row) if row.len() == width => Ok(row),
            _ => Err(JsonError::input("the rows of a tensor differ in length")),
        });
        level = rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    }
    if let Some(bools) = level.iter().map(|v| v.as_bool()).collect::<Option<Vec<bool>>>()
        && !bools.is_empty()
    {
        return Ok(Tensor::from_vec(bools, &sizes)?);
    }
    if let Some(integers) = level.iter().map(|v| v.as_i64()).collect::<Option<Vec<i64>>>()
        && !integers.is_empty()
    {
        return Ok(Tensor::from_vec(integers, &sizes)?);
    }
    let float = |v: &&Value| v.as_f64().map(|v| v as f32);
    let floats: Option<Vec<f32>> = level.iter().map(float).collect();
    let floats = floats.ok_or_else(|| JsonError::input("a tensor has an element that is not a number"))?;
    Ok(Tensor::from_vec(floats, &sizes)?)
}
