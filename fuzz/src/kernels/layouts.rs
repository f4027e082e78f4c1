//! The same elements with other strides: permuted, with steps, with an offset, repeated.
//!
//! A tensor is copied byte by byte, without a kernel, into a storage that ends with the last element that the strides
//! reach: in guarded memory the next byte is inaccessible. Gaps between elements are filled with 0xFF, which is NaN in
//! every float type.

use flambeau_exec::Gen;
use flambeau_ir::value::IValue;
use flambeau_tensor::{DType, Layout, Storage, Tensor};

/// Layout of the tensors of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputLayout {
    /// Row-major, from the storage's first byte to its last.
    RowMajor,
    /// Random strides for each tensor. If `repeated`, dimensions with equal slices may have stride 0.
    Drawn { repeated: bool },
}

/// Returns a copy of a value that shares no memory with it, with the given layout of tensors.
pub(super) fn copied(value: &IValue, layout: InputLayout, g: &mut Gen<'_>) -> IValue {
    match value {
        IValue::Tensor(t) => IValue::Tensor(tensor(t, layout, g)),
        IValue::List(list) => {
            IValue::list(list.elem_type(), list.to_vec().iter().map(|v| copied(v, layout, g)).collect())
        }
        other => other.deep_copied().unwrap_or_else(|_| other.clone()),
    }
}

fn tensor(source: &Tensor, layout: InputLayout, g: &mut Gen<'_>) -> Tensor {
    let (sizes, dtype) = (source.sizes().to_vec(), source.dtype());
    let (strides, offset) = match layout {
        InputLayout::RowMajor => (flambeau_tensor::contiguous_strides(&sizes).to_vec(), 0),
        InputLayout::Drawn { repeated } => drawn(source, repeated, g),
    };
    let bytes = source.to_bytes().expect("invariant: a tensor of a case can be read");
    let made = place(&bytes, &sizes, &strides, offset, dtype);
    made.expect("invariant: the storage is as long as the layout reaches")
}

/// Returns a tensor whose row-major elements are `bytes`.
fn place(
    bytes: &[u8],
    sizes: &[i64],
    strides: &[i64],
    offset: i64,
    dtype: DType,
) -> flambeau_tensor::Result<Tensor> {
    let layout = Layout::new(sizes, strides, offset)?;
    let width = dtype.size();
    let mut all = vec![0xFF; layout.storage_end().max(offset as usize) * width];
    let mut index = vec![0i64; sizes.len()];
    for element in bytes.chunks_exact(width) {
        let at = index.iter().zip(strides).fold(offset, |at, (i, s)| at + i * s) as usize * width;
        all[at..at + width].copy_from_slice(element);
        for d in (0..sizes.len()).rev() {
            index[d] += 1;
            if index[d] < sizes[d] {
                break;
            }
            index[d] = 0;
        }
    }
    Tensor::from_storage(Storage::from_bytes(&all)?, dtype, layout)
}

/// Returns random strides and an offset: dimensions in any order, with gaps, after a few elements.
fn drawn(source: &Tensor, repeated: bool, g: &mut Gen<'_>) -> (Vec<i64>, i64) {
    let sizes = source.sizes();
    let rank = sizes.len();
    let mut order: Vec<usize> = (0..rank).rev().collect();
    match g.below(4) {
        0 => {}
        1 if rank >= 2 => order.swap(0, 1),
        2 if rank == 4 => order = vec![1, 3, 2, 0],
        _ => (1..rank).rev().for_each(|i| order.swap(i, g.below(i + 1))),
    }
    let gaps = g.one_in(2);
    let mut strides = vec![0; rank];
    let mut step = 1;
    for d in order {
        if repeated && sizes[d] > 1 && has_equal_slices(source, d) {
            continue;
        }
        if gaps {
            step *= *g.pick(&[1, 1, 2, 3]);
        }
        strides[d] = step;
        step *= sizes[d].max(1);
        if gaps {
            step += *g.pick(&[0, 0, 1, 5]);
        }
    }
    let offset = if g.flag() { 0 } else { *g.pick(&[1, 2, 3, 7, 16]) };
    (strides, offset)
}

/// Returns whether all slices along a dimension have the same bytes.
fn has_equal_slices(tensor: &Tensor, dim: usize) -> bool {
    let sizes: Vec<usize> = tensor.sizes().iter().map(|&n| n as usize).collect();
    let Ok(bytes) = tensor.to_bytes() else { return false };
    let inner = sizes[dim + 1..].iter().product::<usize>() * tensor.dtype().size();
    let slices = |block: &[u8]| block.chunks_exact(inner).all(|slice| slice == &block[..inner]);
    inner > 0 && !bytes.is_empty() && bytes.chunks_exact(inner * sizes[dim]).all(slices)
}

/// Returns a tensor whose slices along one dimension are all equal to the first.
pub(super) fn with_equal_slices(tensor: &Tensor, g: &mut Gen<'_>) -> flambeau_tensor::Result<Tensor> {
    let rank = tensor.rank();
    if rank == 0 || tensor.numel() == 0 {
        return Ok(tensor.clone());
    }
    let dim = g.below(rank) as i64;
    tensor.narrow(dim, 0, 1)?.expand(tensor.sizes())?.clone_contiguous()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_keep_elements() {
        let mut g = Gen::from_seed(3);
        for round in 0..200 {
            let sizes: Vec<i64> = (0..round % 5).map(|_| g.int(0, 4)).collect();
            let count: i64 = sizes.iter().product();
            let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
            let x = Tensor::from_vec(values, &sizes).unwrap();
            let x = if g.flag() { with_equal_slices(&x, &mut g).unwrap() } else { x };
            let y = tensor(&x, InputLayout::Drawn { repeated: true }, &mut g);
            assert_eq!(x.to_bytes().unwrap(), y.to_bytes().unwrap());
            let reach = y.layout().storage_end().max(y.offset() as usize);
            assert_eq!(y.storage().nbytes(), reach * 4, "no byte after the last element");
        }
    }
}
