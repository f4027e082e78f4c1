//! Values as they stand in attribute lists.

use crate::value::{IValue, PrintStyle, print_value};
use flambeau_tensor::{DType, Layout, Tensor};
use std::fmt::Write;

/// Writes a constant. Tensors are abbreviated as TorchScript does (`{1}`, `<Tensor>`), or written bit for bit when
/// `exact`: `tensor(float32, [2], [1], "0000803f00000040")` gives dtype, sizes, strides and the row-major
/// little-endian bytes in hexadecimal.
pub(crate) fn write_attr_value(out: &mut String, value: &IValue, exact: bool) {
    let style = PrintStyle::Exact;
    let written = if exact {
        print_value(out, value, style, &mut |out, t| write_exact_tensor(out, t))
    } else {
        print_value(out, value, style, &mut |out, t| write_short_tensor(out, t))
    };
    debug_assert!(written.is_ok(), "invariant: writing to a string succeeds");
}

fn write_short_tensor(out: &mut dyn Write, t: &Tensor) -> std::fmt::Result {
    if t.numel() == 1
        && let Ok(item) = t.item()
    {
        out.write_char('{')?;
        print_value(out, &IValue::from(item), PrintStyle::Exact, &mut |_, _| Ok(()))?;
        return out.write_char('}');
    }
    out.write_str("<Tensor>")
}

fn write_exact_tensor(out: &mut dyn Write, t: &Tensor) -> std::fmt::Result {
    let bytes = t.to_bytes().map_err(|_| std::fmt::Error)?;
    write!(out, "tensor({}, {:?}, {:?}, \"", t.dtype().name(), t.sizes(), t.strides())?;
    for b in bytes {
        write!(out, "{b:02x}")?;
    }
    out.write_str("\")")
}

/// Reads what [`write_attr_value`] writes for a tensor when exact. Answers the tensor and the bytes consumed.
pub(crate) fn read_exact_tensor(text: &str, max_bytes: usize) -> Result<(Tensor, usize), String> {
    let malformed = || "expected `tensor(dtype, [sizes], [strides], \"bytes\")`".to_owned();
    let rest = text.strip_prefix("tensor(").ok_or_else(malformed)?;
    let (dtype, rest) = rest.split_once(", ").ok_or_else(malformed)?;
    let dtype = DType::from_name(dtype).ok_or_else(|| format!("`{dtype}` is not a dtype"))?;
    let (sizes, rest) = numbers(rest).ok_or_else(malformed)?;
    let rest = rest.strip_prefix(", ").ok_or_else(malformed)?;
    let (strides, rest) = numbers(rest).ok_or_else(malformed)?;
    let rest = rest.strip_prefix(", \"").ok_or_else(malformed)?;
    let end = rest.find('"').ok_or_else(malformed)?;
    let hex = &rest.as_bytes()[..end];
    let elements = sizes
        .iter()
        .try_fold(1usize, |n, &s| n.checked_mul(usize::try_from(s).ok()?))
        .filter(|n| n.checked_mul(dtype.size()).is_some_and(|b| b <= max_bytes && b * 2 == hex.len()))
        .ok_or("the bytes of the tensor do not match its sizes")?;
    let bytes: Option<Vec<u8>> =
        hex.chunks_exact(2).map(|p| Some(digit(p[0])? << 4 | digit(p[1])?)).collect();
    let bytes = bytes.filter(|b| b.len() == elements * dtype.size()).ok_or_else(malformed)?;
    let rest = rest[end..].strip_prefix("\")").ok_or_else(malformed)?;
    let failed = |e: flambeau_tensor::TensorError| e.to_string();
    let layout = Layout::contiguous(&sizes).map_err(failed)?;
    let dense = Tensor::from_bytes(&bytes, dtype, layout).map_err(failed)?;
    let tensor = if dense.strides() == strides.as_slice() {
        dense
    } else {
        let layout = Layout::new(&sizes, &strides, 0).map_err(failed)?;
        if layout.storage_end().checked_mul(dtype.size()).is_none_or(|b| b > max_bytes) {
            return Err("the strides of the tensor span more than the limit allows".to_owned());
        }
        let strided = Tensor::empty_strided(&sizes, &strides, dtype).map_err(failed)?;
        strided.copy_(&dense).map_err(failed)?;
        strided
    };
    Ok((tensor, text.len() - rest.len()))
}

fn digit(b: u8) -> Option<u8> {
    (b as char).to_digit(16).map(|d| d as u8)
}

/// `[2, 3]` at the start of `text`, and the rest.
fn numbers(text: &str) -> Option<(Vec<i64>, &str)> {
    let (inner, rest) = text.strip_prefix('[')?.split_once(']')?;
    if inner.is_empty() {
        return Some((Vec::new(), rest));
    }
    let numbers: Option<Vec<i64>> = inner.split(", ").map(|n| n.parse().ok()).collect();
    Some((numbers?, rest))
}
