//! Values as JSON: the format of arguments and results of the command, and of recorded runs.
//!
//! A value is an object with a tag `t`: `none`; `bool`, `int`, `str` with `v`; `float` with its text in `v` (JSON has
//! no infinities); `complex` with two such texts; `list`, `tuple` with their elements in `v`; `dict` with pairs in `v`,
//! in insertion order; `tensor` with `dtype`, `shape` and either `data` (flat, row-major, at most 64 elements when
//! written) or `b64` (little-endian bytes), and `strides` if it is not contiguous; `dtype`, `layout`, `memory_format`
//! by name (integers in a program) and `device`. A tuple may have `fields` (the names of its members) and `class`;
//! `dataclass` has `class` and pairs of names and values in `v`, and is a tuple with `fields` here. Results also have `enum`, `object` (its class only) and `future`.
//!
//! Values may share memory: `let` names a value (`name`, `v`), `ref` refers to a named value, and `view` is a tensor
//! over the storage of another one (`of`, with `shape`, `strides` and `offset` in elements). A [`Reader`] keeps names
//! from one value to the next, so that the arguments of a call may share memory.
//!
//! Where the expected type is known, plain JSON without tags is also read: numbers, strings, `null`, lists, and objects as
//! dictionaries (`plain.rs`).
//!
//! JSON does not state the element type of an empty list, so the functions for reading take the expected type if it is
//! known. Both directions stop at [`MAX_DEPTH`]: the trees of `serde_json` are recursive, and a list may contain
//! itself. Writing stops at [`MAX_VALUES`] and [`MAX_TENSOR_BYTES`]: values that occur several times, and elements of
//! expanded tensors, are written as often as they occur.

mod plain;
mod write;

pub use write::{write, write_to};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flambeau_ir::Symbol;
use flambeau_ir::types::{NamedField, TupleType, Type, TypeKind};
use flambeau_ir::value::{Dict, IValue, Tuple};
use flambeau_tensor::{Complex, DType, Device, Fault, Layout, MemoryFormat, Tensor, TensorLayout};
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum nesting of values that are read from or written as JSON.
pub const MAX_DEPTH: usize = 120;

/// Maximum number of values that are written as one, its members included.
pub const MAX_VALUES: usize = 1 << 24;

/// Maximum number of bytes of tensors that are written as one value.
pub const MAX_TENSOR_BYTES: usize = 1 << 30;

/// The list of tags in errors.
const TAGS: &str = "tags are none, bool, int, float, complex, str, list, tuple, dict, dataclass, tensor, dtype, layout, \
                    memory_format, device, let, ref and view";

/// An error of reading or writing a value as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(.path))]
pub struct JsonError {
    /// Position in the value, as `[1].key(0)`; empty for the value itself.
    pub path: String,
    /// Description of the error.
    pub message: String,
    fault: Fault,
}

fn place(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("at {path}: ") }
}

impl JsonError {
    fn input(message: impl Into<String>) -> JsonError {
        JsonError { path: String::new(), message: message.into(), fault: Fault::Input }
    }

    fn limit(message: impl Into<String>) -> JsonError {
        JsonError { path: String::new(), message: message.into(), fault: Fault::Limit }
    }

    fn too_deep() -> JsonError {
        JsonError::limit(format!("the value is nested deeper than {MAX_DEPTH}"))
    }

    fn unsupported(message: impl Into<String>) -> JsonError {
        JsonError { path: String::new(), message: message.into(), fault: Fault::Unsupported }
    }

    fn no_tag() -> JsonError {
        JsonError::input(format!(r#"expected a value such as 3, [1.5] or {{"t": "int", "v": 3}}; {TAGS}"#))
    }

    fn within(mut self, step: impl Fn() -> String) -> JsonError {
        self.path.insert_str(0, &step());
        self
    }

    /// Returns the kind of the error: input, limit, or unsupported feature.
    pub fn fault(&self) -> Fault {
        self.fault
    }
}

impl From<flambeau_tensor::TensorError> for JsonError {
    fn from(error: flambeau_tensor::TensorError) -> JsonError {
        JsonError { path: String::new(), fault: error.fault(), message: error.to_string() }
    }
}

/// Reads a value; the element type of lists and dictionaries is that of their elements, or tensor if there are none.
///
/// # Errors
/// If the JSON is not a value, with the position; or if it is nested too deeply.
pub fn read(json: &Value) -> Result<IValue, JsonError> {
    read_as(json, Type::ANY)
}

/// Reads a value with the expected type `ty`, as in a function's schema. The type determines the element type of empty
/// lists, and whether an integer is read as a float. Elements that do not match are read with their own type; the
/// consumer of the value checks it.
///
/// # Errors
/// If the JSON is not a value, with the position; or if it is nested too deeply.
pub fn read_as(json: &Value, ty: Type) -> Result<IValue, JsonError> {
    Reader::default().read_as(json, ty)
}

/// Reads values that may share memory by referring to each other by name.
///
/// ```
/// use flambeau::{Type, json::Reader};
/// use serde_json::json;
///
/// let base = json!({"t": "tensor", "dtype": "int64", "shape": [3], "data": [1, 2, 3]});
/// let mut reader = Reader::default();
/// let first = reader.read_as(&json!({"t": "let", "name": "a", "v": base}), Type::TENSOR)?;
/// let last = json!({"t": "view", "of": {"t": "ref", "name": "a"}, "shape": [2], "strides": [1], "offset": 1});
/// let last = reader.read_as(&last, Type::TENSOR)?;
/// assert!(first.as_tensor().unwrap().shares_storage(last.as_tensor().unwrap()));
/// # Ok::<(), flambeau::json::JsonError>(())
/// ```
#[derive(Default)]
pub struct Reader {
    named: BTreeMap<String, IValue>,
}

impl Reader {
    /// Reads a value like [`read_as`]; `ref` may use the names of earlier values.
    ///
    /// # Errors
    /// Like [`read_as`], or for a name without an earlier value.
    pub fn read_as(&mut self, json: &Value, ty: Type) -> Result<IValue, JsonError> {
        read_at(json, ty, 0, self)
    }
}

fn name_of(json: &Value) -> Result<&str, JsonError> {
    json.get("name").and_then(Value::as_str).ok_or_else(|| JsonError::input("no `name`"))
}

/// Reads a view of another tensor.
fn read_view(json: &Value, depth: usize, names: &mut Reader) -> Result<IValue, JsonError> {
    let of = json.get("of").ok_or_else(|| JsonError::input("the view has no `of`"))?;
    let of = read_at(of, Type::TENSOR, depth + 1, names).map_err(|e| e.within(|| ".of".into()))?;
    let of = of.as_tensor().ok_or_else(|| JsonError::input("`of` is not a tensor"))?;
    let sizes = read_sizes(json, "shape")?.ok_or_else(|| JsonError::input("the view has no `shape`"))?;
    let strides =
        read_sizes(json, "strides")?.ok_or_else(|| JsonError::input("the view has no `strides`"))?;
    let offset = json.get("offset").and_then(Value::as_i64).unwrap_or(0);
    Ok(IValue::Tensor(of.as_strided(&sizes, &strides, Some(offset))?))
}

fn read_at(json: &Value, ty: Type, depth: usize, names: &mut Reader) -> Result<IValue, JsonError> {
    if depth > MAX_DEPTH {
        return Err(JsonError::too_deep());
    }
    let ty = match ty.kind() {
        TypeKind::Optional(inner) => *inner,
        _ => ty,
    };
    let Some(tag) = json.get("t").and_then(Value::as_str) else { return plain::read(json, ty, depth, names) };
    let ty = member_for(tag, ty);
    let v = json.get("v").unwrap_or(&Value::Null);
    let wrong = || JsonError::input(format!("`v` is not of type {tag}"));
    Ok(match tag {
        "none" => IValue::None,
        "bool" => IValue::Bool(v.as_bool().ok_or_else(wrong)?),
        "int" => {
            let n = v.as_i64().ok_or_else(wrong)?;
            if matches!(ty.kind(), TypeKind::Float) { IValue::Float(n as f64) } else { IValue::Int(n) }
        }
        "float" => IValue::Float(read_float(v).ok_or_else(wrong)?),
        "complex" => {
            let part = |i: usize| v.get(i).and_then(read_float).ok_or_else(wrong);
            IValue::complex(Complex::new(part(0)?, part(1)?))
        }
        // Callers of a program may pass a device by its name.
        "str" if matches!(ty.kind(), TypeKind::Device) => {
            IValue::Device(Device::parse(v.as_str().ok_or_else(wrong)?)?)
        }
        "str" => IValue::str(v.as_str().ok_or_else(wrong)?),
        "let" => {
            let value = read_at(v, ty, depth + 1, names)?;
            names.named.insert(name_of(json)?.to_owned(), value.clone());
            value
        }
        "ref" => {
            let name = name_of(json)?;
            let known = names.named.get(name).cloned();
            known.ok_or_else(|| JsonError::input(format!("no earlier value is named `{name}`")))?
        }
        "view" => read_view(json, depth, names)?,
        "list" => read_list(v.as_array().ok_or_else(wrong)?, ty, depth, names)?,
        // Callers of a program may pass a tuple for a list.
        "tuple" if matches!(ty.kind(), TypeKind::List(_)) => {
            read_list(v.as_array().ok_or_else(wrong)?, ty, depth, names)?
        }
        "tuple" => match read_tuple(v.as_array().ok_or_else(wrong)?, ty, depth, names)? {
            IValue::Tuple(plain) if plain.named_type().is_none() => name_fields(json, plain)?,
            named => named,
        },
        "dataclass" => read_dataclass(json, v.as_array().ok_or_else(wrong)?, ty, depth, names)?,
        "dict" => read_dict(v.as_array().ok_or_else(wrong)?, ty, depth, names)?,
        "tensor" => number_or_tensor(read_tensor(json)?, ty)?,
        "device" => IValue::Device(Device::parse(v.as_str().ok_or_else(wrong)?)?),
        "dtype" | "layout" | "memory_format" => {
            let name = v.as_str().ok_or_else(wrong)?;
            IValue::Int(
                number_of(tag, name).ok_or_else(|| JsonError::unsupported(format!("the {tag} `{name}`")))?,
            )
        }
        other => return Err(JsonError::input(format!("unknown tag `{other}`; {TAGS}"))),
    })
}

/// Returns the type that is expected of a value with a tag: of a union, the only member that is a container of this kind.
fn member_for(tag: &str, ty: Type) -> Type {
    let TypeKind::Union(members) = ty.kind() else { return ty };
    let fits = |member: &&Type| match member.kind() {
        TypeKind::List(_) => tag == "list",
        TypeKind::Dict(..) => tag == "dict",
        TypeKind::Tuple(tuple) => tag == "tuple" || tag == "dataclass" && tuple.named.is_some(),
        _ => false,
    };
    let mut found = members.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(only), None) => *only,
        _ => ty,
    }
}

/// Converts a tensor of one element to a number where a number is expected, as calls of a program do.
fn number_or_tensor(tensor: Tensor, ty: Type) -> Result<IValue, JsonError> {
    if tensor.numel() != 1 {
        return Ok(IValue::Tensor(tensor));
    }
    Ok(match ty.kind() {
        TypeKind::Int => IValue::Int(tensor.item()?.to_i64()),
        TypeKind::Float => IValue::Float(tensor.item()?.to_f64()),
        TypeKind::Bool => IValue::Bool(tensor.item()?.to_f64() != 0.0),
        _ => IValue::Tensor(tensor),
    })
}

/// Returns the integer that represents a dtype, layout or memory format in a program.
fn number_of(tag: &str, name: &str) -> Option<i64> {
    match tag {
        "dtype" => DType::from_name(name).map(DType::scalar_type),
        "layout" => (name == "strided").then_some(TensorLayout::Strided as i64),
        _ => Some(match name {
            "contiguous_format" => MemoryFormat::Contiguous,
            "preserve_format" => MemoryFormat::Preserve,
            "channels_last" => MemoryFormat::ChannelsLast,
            "channels_last_3d" => MemoryFormat::ChannelsLast3d,
            _ => return None,
        } as i64),
    }
}

fn read_float(v: &Value) -> Option<f64> {
    match v {
        Value::String(text) => text.parse().ok(),
        v => v.as_f64(),
    }
}

fn read_list(items: &[Value], ty: Type, depth: usize, names: &mut Reader) -> Result<IValue, JsonError> {
    let elem = match ty.kind() {
        TypeKind::List(elem) => Some(*elem),
        _ => None,
    };
    let values = read_all(items, |_| elem.unwrap_or(Type::ANY), depth, names)?;
    let elem = elem.filter(|ty| values.iter().all(|v| v.fits(*ty))).unwrap_or_else(|| common_type(&values));
    Ok(IValue::list(elem, values))
}

fn read_tuple(items: &[Value], ty: Type, depth: usize, names: &mut Reader) -> Result<IValue, JsonError> {
    let types: Vec<Type> = match ty.kind() {
        TypeKind::Tuple(tuple) => tuple.elems.to_vec(),
        _ => Vec::new(),
    };
    let values = read_all(items, |i| types.get(i).copied().unwrap_or(Type::ANY), depth, names)?;
    let named = matches!(ty.kind(), TypeKind::Tuple(tuple) if tuple.named.is_some());
    Ok(IValue::Tuple(if named { Tuple::named(ty, values) } else { Tuple::new(values) }))
}

/// Returns a tuple with the names that the JSON gives to its fields, if it does.
fn name_fields(json: &Value, tuple: Tuple) -> Result<IValue, JsonError> {
    let Some(fields) = json.get("fields").and_then(Value::as_array) else { return Ok(IValue::Tuple(tuple)) };
    let names: Option<Vec<&str>> = fields.iter().map(Value::as_str).collect();
    let names = names.filter(|names| names.len() == tuple.items().len() && !names.is_empty());
    let names = names.ok_or_else(|| JsonError::input("`fields` does not name the members of the tuple"))?;
    Ok(named_tuple(json, names.into_iter().zip(tuple.into_items())))
}

/// Reads a dataclass as a tuple with its class and the names of its fields; as the expected named tuple if that has the
/// same fields, perhaps in another order: TorchScript has no dataclasses.
fn read_dataclass(
    json: &Value,
    fields: &[Value],
    ty: Type,
    depth: usize,
    names: &mut Reader,
) -> Result<IValue, JsonError> {
    let expected: Vec<(&str, Type)> = match ty.kind() {
        TypeKind::Tuple(TupleType { elems, named: Some(named) }) => {
            named.fields.iter().map(|field| field.name.as_str()).zip(elems.iter().copied()).collect()
        }
        _ => Vec::new(),
    };
    let mut members = Vec::with_capacity(fields.len());
    for (i, field) in fields.iter().enumerate() {
        let name = field.get(0).and_then(Value::as_str);
        let name = name.ok_or_else(|| JsonError::input("a field of a dataclass has no name"))?;
        let value = field.get(1).unwrap_or(&Value::Null);
        let of = expected.iter().find(|(own, _)| *own == name).map_or(Type::ANY, |(_, ty)| *ty);
        let value = read_at(value, of, depth + 1, names).map_err(|e| e.within(|| format!("[{i}]")))?;
        members.push((name, value));
    }
    let member = |&(own, ty): &(&str, Type)| {
        members.iter().find(|(name, value)| *name == own && value.fits(ty)).map(|(_, value)| value.clone())
    };
    let ordered: Option<Vec<IValue>> = expected.iter().map(member).collect();
    match ordered.filter(|values| !values.is_empty() && values.len() == members.len()) {
        Some(values) => Ok(IValue::Tuple(Tuple::named(ty, values))),
        None => Ok(named_tuple(json, members.into_iter())),
    }
}

fn named_tuple<'j>(json: &Value, members: impl Iterator<Item = (&'j str, IValue)>) -> IValue {
    let class = Symbol::new(json.get("class").and_then(Value::as_str).unwrap_or(""));
    let members: Vec<(&str, IValue)> = members.collect();
    let field = |(name, value): &(&str, IValue)| {
        (NamedField { name: Symbol::new(name), default: None }, value.type_of())
    };
    let fields: Vec<(NamedField, Type)> = members.iter().map(field).collect();
    IValue::Tuple(Tuple::named(Type::named_tuple(class, &fields), members.into_iter().map(|(_, v)| v)))
}

fn read_all(
    items: &[Value],
    ty: impl Fn(usize) -> Type,
    depth: usize,
    names: &mut Reader,
) -> Result<Vec<IValue>, JsonError> {
    let one = |(i, item): (usize, &Value)| {
        read_at(item, ty(i), depth + 1, names).map_err(|e| e.within(|| format!("[{i}]")))
    };
    items.iter().enumerate().map(one).collect()
}

fn read_dict(pairs: &[Value], ty: Type, depth: usize, names: &mut Reader) -> Result<IValue, JsonError> {
    let types = match ty.kind() {
        TypeKind::Dict(key, value) => Some((*key, *value)),
        _ => None,
    };
    let (key_type, value_type) = types.unwrap_or((Type::ANY, Type::ANY));
    let mut entries = Vec::new();
    for (i, pair) in pairs.iter().enumerate() {
        let [key, value] = pair.as_array().map_or(&[][..], Vec::as_slice) else {
            return Err(JsonError::input("expected a pair of key and value").within(|| format!("[{i}]")));
        };
        let key = read_at(key, key_type, depth + 1, names).map_err(|e| e.within(|| format!(".key({i})")))?;
        let value =
            read_at(value, value_type, depth + 1, names).map_err(|e| e.within(|| format!(".value({i})")))?;
        entries.push((key, value));
    }
    dict_of(entries, ty)
}

/// Creates a dictionary with the expected type if the entries fit it, and else with a type for their values.
fn dict_of(entries: Vec<(IValue, IValue)>, ty: Type) -> Result<IValue, JsonError> {
    let types = match ty.kind() {
        TypeKind::Dict(key, value) => Some((*key, *value)),
        _ => None,
    };
    let (keys, values): (Vec<IValue>, Vec<IValue>) = entries.iter().cloned().unzip();
    let fits = |(key, value): &(Type, Type)| {
        keys.iter().all(|k| k.fits(*key)) && values.iter().all(|v| v.fits(*value))
    };
    let (key_type, value_type) = types.filter(fits).unwrap_or_else(|| {
        if entries.is_empty() {
            (Type::STR, Type::TENSOR)
        } else {
            (common_type(&keys), common_type(&values))
        }
    });
    let dict = Dict::new(key_type, value_type);
    for (key, value) in entries {
        dict.insert(key, value).map_err(|e| JsonError::input(e.to_string()))?;
    }
    Ok(IValue::Dict(dict))
}

/// Returns the common type of all values, optional if some are `None`; `Tensor` if there are no values.
fn common_type(values: &[IValue]) -> Type {
    let mut some = values.iter().filter(|v| !v.is_none()).map(IValue::type_of);
    let Some(first) = some.next() else {
        return if values.is_empty() { Type::TENSOR } else { Type::NONE };
    };
    let ty = if some.all(|ty| ty == first) { first } else { Type::ANY };
    if values.iter().any(IValue::is_none) { Type::optional(ty) } else { ty }
}

fn read_tensor(json: &Value) -> Result<Tensor, JsonError> {
    let name = json
        .get("dtype")
        .and_then(Value::as_str)
        .ok_or_else(|| JsonError::input("the tensor has no `dtype`"))?;
    let dtype =
        DType::from_name(name).ok_or_else(|| JsonError::unsupported(format!("tensors of dtype `{name}`")))?;
    let sizes = read_sizes(json, "shape")?.ok_or_else(|| JsonError::input("the tensor has no `shape`"))?;
    let bytes = match (json.get("data").and_then(Value::as_array), json.get("b64").and_then(Value::as_str)) {
        (Some(data), _) => bytes_of(data, dtype)?,
        (None, Some(text)) => BASE64.decode(text).map_err(|e| JsonError::input(format!("`b64`: {e}")))?,
        (None, None) => return Err(JsonError::input("the tensor has neither `data` nor `b64`")),
    };
    let contiguous = Layout::contiguous(&sizes)?;
    if contiguous.numel().checked_mul(dtype.size()) != Some(bytes.len()) {
        let count = bytes.len() / dtype.size();
        return Err(JsonError::input(format!("the shape {sizes:?} does not match {count} elements")));
    }
    let tensor = match read_sizes(json, "strides")? {
        None => Tensor::from_bytes(&bytes, dtype, contiguous)?,
        Some(strides) => {
            let layout = Layout::new(&sizes, &strides, 0)?;
            Tensor::from_bytes(&spread(&bytes, &layout, dtype.size())?, dtype, layout)?
        }
    };
    if json.get("rg").and_then(Value::as_bool) == Some(true) {
        tensor.set_requires_grad(true);
    }
    Ok(tensor)
}

fn read_sizes(json: &Value, field: &str) -> Result<Option<Vec<i64>>, JsonError> {
    let Some(list) = json.get(field).and_then(Value::as_array) else { return Ok(None) };
    let sizes: Option<Vec<i64>> = list.iter().map(|d| d.as_i64().filter(|d| *d >= 0)).collect();
    sizes
        .map(Some)
        .ok_or_else(|| JsonError::input(format!("`{field}` is not a list of non-negative integers")))
}

/// Writes row-major elements to the positions of a layout. Elements with the same position overwrite each other, in
/// order.
fn spread(bytes: &[u8], layout: &Layout, width: usize) -> Result<Vec<u8>, JsonError> {
    // A layout may span much more memory than its elements fill: the bound is a multiple of the elements sent, large
    // enough for real cases.
    let end = layout.storage_end().saturating_mul(width);
    if end > bytes.len().saturating_mul(64).saturating_add(1 << 20) {
        return Err(JsonError::input("the strides span too much memory for the number of elements"));
    }
    let mut out = vec![0u8; end];
    let mut index = vec![0i64; layout.rank()];
    for element in bytes.chunks_exact(width) {
        let at: i64 = index.iter().zip(layout.strides()).map(|(i, s)| i * s).sum();
        let at = at as usize * width;
        out[at..at + width].copy_from_slice(element);
        for dim in (0..index.len()).rev() {
            index[dim] += 1;
            if index[dim] < layout.sizes()[dim] {
                break;
            }
            index[dim] = 0;
        }
    }
    Ok(out)
}

/// Returns the little-endian bytes of a flat list of elements.
fn bytes_of(data: &[Value], dtype: DType) -> Result<Vec<u8>, JsonError> {
    let mut bytes = Vec::with_capacity(data.len() * dtype.size());
    for (i, value) in data.iter().enumerate() {
        let wrong = || {
            JsonError::input(format!("{value} is not an element of dtype {}", dtype.name()))
                .within(|| format!(".data[{i}]"))
        };
        if dtype == DType::Bool {
            bytes.push(u8::from(value.as_bool().ok_or_else(wrong)?));
        } else if dtype.is_integral(false) {
            let n = value.as_i64().ok_or_else(wrong)?;
            let range = 8 * dtype.size() as u32;
            let low = if dtype.is_signed() { i64::MIN >> (64 - range) } else { 0 };
            let high = if dtype.is_signed() { i64::MAX >> (64 - range) } else { (1 << range) - 1 };
            if !(low..=high).contains(&n) {
                return Err(wrong());
            }
            bytes.extend(&n.to_le_bytes()[..dtype.size()]);
        } else {
            let x = read_float(value).ok_or_else(wrong)?;
            match dtype.to_real() {
                DType::F16 => bytes.extend(flambeau_tensor::f16::from_f64(x).to_le_bytes()),
                DType::BF16 => bytes.extend(flambeau_tensor::bf16::from_f64(x).to_le_bytes()),
                DType::F32 => bytes.extend((x as f32).to_le_bytes()),
                _ => bytes.extend(x.to_le_bytes()),
            }
        }
    }
    Ok(bytes)
}

/// Returns the shortest text that reads back as the same f64; `nan`, `inf` and `-inf` for values without digits.
#[must_use]
pub fn float_text(x: f64) -> String {
    if x.is_nan() {
        "nan".to_string()
    } else if x.is_infinite() {
        if x > 0.0 { "inf" } else { "-inf" }.to_string()
    } else {
        format!("{x:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(text: &str) {
        let json: Value = serde_json::from_str(text).unwrap();
        assert_eq!(write(&read(&json).unwrap()).unwrap(), json);
    }

    #[test]
    fn the_declared_type_decides_the_kind_of_a_value() {
        let read = |text: &str, ty: Type| read_as(&serde_json::from_str(text).unwrap(), ty).unwrap();
        let bools = Type::list(Type::BOOL);
        for ty in [bools, Type::optional(bools)] {
            assert_eq!(read(r#"{"t": "list", "v": []}"#, ty).type_of(), bools);
        }
        assert!(read(r#"{"t": "str", "v": "cpu"}"#, Type::DEVICE).fits(Type::DEVICE));
        assert!(read(r#"{"t": "str", "v": "cpu"}"#, Type::STR).fits(Type::STR));
    }

    #[test]
    fn values_round_trip() {
        same(r#"{"t": "none"}"#);
        same(r#"{"t": "float", "v": "-inf"}"#);
        same(r#"{"t": "complex", "v": ["1.0", "nan"]}"#);
        same(
            r#"{"t": "tuple", "v": [{"t": "list", "v": [{"t": "int", "v": 3}]}, {"t": "str", "v": "a\nb"}]}"#,
        );
        same(
            r#"{"t": "dict", "v": [[{"t": "str", "v": "b"}, {"t": "bool", "v": true}], [{"t": "str", "v": "a"}, {"t": "bool", "v": false}]]}"#,
        );
        same(r#"{"t": "tensor", "dtype": "float32", "shape": [2], "data": [0.66135216, "nan"]}"#);
        same(r#"{"t": "tensor", "dtype": "uint8", "shape": [], "data": [255]}"#);
        same(r#"{"t": "tensor", "dtype": "complex128", "shape": [1], "data": [0.1, -2.0]}"#);
        same(
            r#"{"t": "tensor", "dtype": "int64", "shape": [2, 2], "strides": [1, 2], "data": [1, 2, 3, 4]}"#,
        );
    }

    #[test]
    fn large_tensors_are_bytes() {
        let tensor = Tensor::arange(0i64.into(), 100i64.into(), 1i64.into(), DType::F64).unwrap();
        let json = write(&tensor.clone().into()).unwrap();
        assert!(json.get("b64").is_some());
        let back = read(&json).unwrap();
        assert_eq!(back.as_tensor().unwrap().to_bytes().unwrap(), tensor.to_bytes().unwrap());
    }

    #[test]
    fn the_expected_type_decides_the_type_of_elements() {
        let json: Value = serde_json::from_str(r#"{"t": "list", "v": []}"#).unwrap();
        let list = read_as(&json, Type::list(Type::INT)).unwrap();
        assert_eq!(list.as_list().unwrap().elem_type(), Type::INT);
        let list = read(&json).unwrap();
        assert_eq!(list.as_list().unwrap().elem_type(), Type::TENSOR);
        let json: Value = serde_json::from_str(r#"{"t": "list", "v": [{"t": "str", "v": "a"}]}"#).unwrap();
        let list = read_as(&json, Type::list(Type::INT)).unwrap();
        assert_eq!(list.as_list().unwrap().elem_type(), Type::STR);
    }

    #[test]
    fn values_refer_to_other_values() {
        let mut reader = Reader::default();
        let mut read = |text: &str| reader.read_as(&serde_json::from_str(text).unwrap(), Type::ANY);
        let list = read(r#"{"t": "list", "v": [{"t": "let", "name": "a", "v": {"t": "tensor", "dtype": "float32", "shape": [4], "data": [1, 2, 3, 4]}}, {"t": "ref", "name": "a"}]}"#).unwrap();
        let tensors = list.as_list().unwrap().to_tensors().unwrap();
        assert!(tensors[0].ptr_eq(&tensors[1]));
        let view = read(
            r#"{"t": "view", "of": {"t": "ref", "name": "a"}, "shape": [2, 2], "strides": [1, 1], "offset": 1}"#,
        );
        assert!(view.unwrap().as_tensor().unwrap().shares_storage(&tensors[0]));
        assert!(read(r#"{"t": "ref", "name": "b"}"#).unwrap_err().to_string().contains("`b`"));
        assert!(
            read(
                r#"{"t": "view", "of": {"t": "ref", "name": "a"}, "shape": [5], "strides": [1], "offset": 0}"#
            )
            .is_err()
        );
    }

    #[test]
    fn errors_name_their_position() {
        let json: Value = serde_json::from_str(r#"{"t": "list", "v": [{"t": "int", "v": 1.5}]}"#).unwrap();
        assert_eq!(read(&json).unwrap_err().to_string(), "at [0]: `v` is not of type int");
        for bad in [
            r#"{"t": "tensor", "dtype": "float32", "shape": [3], "data": [1.0]}"#,
            r#"{"t": "tensor", "dtype": "uint8", "shape": [1], "data": [256]}"#,
            r#"{"t": "tensor", "dtype": "float32", "shape": [1], "strides": [9223372036854775807], "data": [1.0]}"#,
            r#"{"t": "tensor", "dtype": "float32", "shape": [2], "strides": [1000000000000], "data": [1.0, 2.0]}"#,
            r#"{"t": "what"}"#,
            r#"[]"#,
        ] {
            let json: Value = serde_json::from_str(bad).unwrap();
            let _ = read(&json).map(|v| v.tag());
        }
        let list = flambeau_ir::value::List::new(Type::ANY);
        list.push(IValue::List(list.clone()));
        assert_eq!(write(&IValue::List(list.clone())).unwrap_err().fault(), Fault::Limit);
        list.write().truncate(0);
    }
}
