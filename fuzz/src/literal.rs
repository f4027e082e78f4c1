//! Arguments in the syntax of file tests, exact to the bit except for payloads of NaN:
//! `a := tensor([1.0, -0.0], f32), a, view(a, [2], [0], 1)`.
//!
//! A tensor that occurs twice gets a name at its first occurrence, and so does a storage of several tensors. A tensor that
//! shares its storage, or is not row-major over its whole storage, is written as a view of the storage. A container that
//! occurs twice is written twice.

use crate::case::storage_bytes;
use flambeau_ir::IValue;
use flambeau_tensor::{DType, Layout, Scalar, Tensor};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the arguments of a call, separated by commas. Objects, futures and generators have no literal: they are
/// written as `<Object>`, which no reader accepts.
pub fn arguments(values: &[IValue]) -> String {
    let mut writer = Writer::default();
    values.iter().for_each(|v| v.visit_tensors(|t| writer.count(t)));
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            writer.out.push_str(", ");
        }
        writer.value(value);
    }
    writer.out
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Number of occurrences of each tensor, and number of tensors of each storage, by identity.
    tensors: BTreeMap<usize, usize>,
    storages: BTreeMap<usize, usize>,
    /// Assigned names, by identity.
    named_tensors: BTreeMap<usize, String>,
    named_storages: BTreeMap<usize, String>,
}

impl Writer {
    fn count(&mut self, tensor: &Tensor) {
        let times = self.tensors.entry(tensor.id()).or_default();
        *times += 1;
        if *times == 1 && tensor.storage().nbytes() > 0 {
            *self.storages.entry(tensor.storage().address()).or_default() += 1;
        }
    }

    /// Values of generated cases are shallow: their types bound the recursion.
    fn value(&mut self, value: &IValue) {
        match value {
            IValue::None => self.out.push_str("None"),
            IValue::Bool(b) => self.out.push_str(if *b { "True" } else { "False" }),
            IValue::Int(n) => push(&mut self.out, n),
            IValue::Float(x) => self.out.push_str(&float(*x)),
            IValue::Complex(z) => self.out.push_str(&complex(z.re, z.im)),
            IValue::Str(_) => self.out.push_str(&quoted(value)),
            IValue::Tensor(t) => self.tensor(t),
            IValue::List(_) => self.members(value, "[", "]"),
            IValue::Tuple(t) if t.items().len() == 1 => self.members(value, "(", ",)"),
            IValue::Tuple(_) => self.members(value, "(", ")"),
            IValue::Dict(d) => {
                self.out.push('{');
                for (i, (key, value)) in d.to_vec().iter().enumerate() {
                    self.out.push_str(if i > 0 { ", " } else { "" });
                    self.value(key);
                    self.out.push_str(": ");
                    self.value(value);
                }
                self.out.push('}');
            }
            other => push(&mut self.out, format_args!("<{}>", other.tag())),
        }
    }

    fn members(&mut self, value: &IValue, left: &str, right: &str) {
        self.out.push_str(left);
        for (i, member) in value.sub_values().iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.value(member);
        }
        self.out.push_str(right);
    }

    fn tensor(&mut self, tensor: &Tensor) {
        if let Some(name) = self.named_tensors.get(&tensor.id()) {
            self.out.push_str(name);
            return;
        }
        if self.tensors.get(&tensor.id()).is_some_and(|&times| times > 1) {
            let name = format!("t{}", self.named_tensors.len());
            push(&mut self.out, format_args!("{name} := "));
            self.named_tensors.insert(tensor.id(), name);
        }
        let fills = tensor.numel() * tensor.dtype().size() == tensor.storage().nbytes();
        let shared = self.storages.get(&tensor.storage().address()).is_some_and(|&n| n > 1);
        if fills && tensor.is_contiguous() && tensor.offset() == 0 && !shared {
            self.out.push_str(&elements(tensor));
            return;
        }
        self.out.push_str("view(");
        self.storage(tensor);
        let (sizes, strides, offset) = (tensor.sizes(), tensor.strides(), tensor.offset());
        push(&mut self.out, format_args!(", {sizes:?}, {strides:?}, {offset})"));
    }

    /// Writes the storage of a tensor as a tensor of one dimension.
    fn storage(&mut self, tensor: &Tensor) {
        let (address, dtype) = (tensor.storage().address(), tensor.dtype());
        if let Some(name) = self.named_storages.get(&address) {
            self.out.push_str(name);
            return;
        }
        if self.storages.get(&address).is_some_and(|&n| n > 1) {
            let name = format!("s{}", self.named_storages.len());
            push(&mut self.out, format_args!("{name} := "));
            self.named_storages.insert(address, name);
        }
        let flat = storage_bytes(tensor.storage()).and_then(|mut bytes| {
            let count = bytes.len() / dtype.size();
            bytes.truncate(count * dtype.size());
            Tensor::from_bytes(&bytes, dtype, Layout::contiguous(&[i64::try_from(count).unwrap_or(0)])?)
        });
        self.out.push_str(&flat.map_or_else(|_| "<Tensor>".to_owned(), |flat| elements(&flat)));
    }
}

fn push(out: &mut String, text: impl std::fmt::Display) {
    // Writing to a string does not fail.
    let _ = write!(out, "{text}");
}

fn float(x: f64) -> String {
    flambeau::json::float_text(x)
}

fn complex(re: f64, im: f64) -> String {
    format!("complex({}, {})", float(re), float(im))
}

fn quoted(value: &IValue) -> String {
    let text = value.as_str().map(ToString::to_string).unwrap_or_default();
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => push(&mut out, format_args!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns the elements of a row-major tensor as a nested list.
fn elements(tensor: &Tensor) -> String {
    let (sizes, dtype) = (tensor.sizes(), tensor.dtype().short_name());
    let Ok(scalars) = tensor.to_scalars() else { return "<Tensor>".to_owned() };
    if scalars.is_empty() {
        return format!("full({sizes:?}, 0, {dtype})");
    }
    let mut out = String::from("tensor(");
    for (i, scalar) in scalars.iter().enumerate() {
        // A bracket opens at each index that is a multiple of the number of elements in it, and closes likewise.
        let inside = sizes.iter().rev().scan(1, |n, &d| {
            *n *= d as usize;
            Some(*n)
        });
        let brackets = inside.filter(|n| i % n == 0).count();
        if i > 0 {
            out.push_str(&"]".repeat(brackets));
            out.push_str(", ");
        }
        out.push_str(&"[".repeat(brackets));
        out.push_str(&element(*scalar, tensor.dtype()));
    }
    out.push_str(&"]".repeat(sizes.len()));
    push(&mut out, format_args!(", {dtype})"));
    out
}

/// Returns the shortest text that reads back to the same bits in the element type.
fn element(scalar: Scalar, dtype: DType) -> String {
    match scalar {
        Scalar::Bool(b) => if b { "True" } else { "False" }.to_owned(),
        Scalar::Int(n) => n.to_string(),
        Scalar::Float(x) if dtype != DType::F64 && x.is_finite() => format!("{:?}", x as f32),
        Scalar::Float(x) => float(x),
        Scalar::Complex(z) => complex(z.re, z.im),
    }
}
