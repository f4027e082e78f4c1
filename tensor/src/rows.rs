//! Work on the rows along one dimension: what is neither element by element nor a fold (softmax, scans, sorting,
//! normalisation). A row comes as one contiguous slice, whatever its strides and dtype, and goes back likewise.
#![allow(unsafe_code, reason = "slices of locked memory")]

use smallvec::SmallVec;

use crate::access::{self, LockSet};
use crate::create::bytes_of;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::{Dims, Layout, wrap_dim};
use crate::loops::pack_fn;
use crate::simd::{self, Kernel};
use crate::storage::Storage;
use crate::tensor::Tensor;

struct Row<'a, T: Element, R: Element, F> {
    row: &'a [T::Raw],
    out: &'a mut [R::Raw],
    f: &'a mut F,
}

impl<T: Element, R: Element, F: FnMut(&[T::Raw], &mut [R::Raw])> Kernel for Row<'_, T, R, F> {
    type Output = ();
    const WIDE: bool = matches!(T::DTYPE, DType::F32 | DType::F64);

    #[inline(always)]
    fn run(self) {
        (self.f)(self.row, self.out);
    }
}

/// Where the rows along a dimension start, in row-major order of the other dimensions.
fn starts(layout: &Layout, dim: usize, mut f: impl FnMut(i64)) {
    let outer = |values: &[i64]| -> SmallVec<[i64; 5]> {
        values.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, v)| *v).collect()
    };
    let (sizes, strides) = (outer(layout.sizes()), outer(layout.strides()));
    if sizes.contains(&0) {
        return;
    }
    let mut index: SmallVec<[i64; 5]> = SmallVec::from_elem(0, sizes.len());
    let mut at = 0;
    loop {
        f(at);
        let mut d = sizes.len();
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            index[d] += 1;
            at += strides[d];
            if index[d] < sizes[d] {
                break;
            }
            at -= strides[d] * sizes[d];
            index[d] = 0;
        }
    }
}

/// `f(row, out)` for every row along a dimension (the only element of a tensor without dimensions is a row); `out` is
/// zeroed and has `length` elements (`None`: as many as the row). Fresh and row-major, with that length in the
/// dimension.
pub fn map_rows<T: Element, R: Element>(
    x: &Tensor,
    dim: i64,
    length: Option<usize>,
    mut f: impl FnMut(&[T::Raw], &mut [R::Raw]),
) -> Result<Tensor> {
    let meta = x.meta();
    let layout = &meta.layout;
    let d = wrap_dim(dim, layout.rank())?;
    let (n, step) =
        if layout.rank() == 0 { (1, 1) } else { (layout.sizes()[d] as usize, layout.strides()[d]) };
    let length = length.unwrap_or(n);
    let mut sizes = Dims::from_slice(layout.sizes());
    if layout.rank() > 0 {
        sizes[d] = length as i64;
    }
    let to = Layout::contiguous(&sizes)?;
    let storage = Storage::zeroed(bytes_of(&to, R::DTYPE)?)?;
    let to_step = if layout.rank() == 0 { 1 } else { to.strides()[d] };
    let mut set = LockSet::new();
    set.read(&meta.storage);
    let guards = set.lock()?;
    let base = guards.start(meta, x.dtype());
    let size = x.dtype().size();
    let same = x.dtype() == T::DTYPE && (step == 1 || n == 1);
    let pack = pack_fn(x.dtype(), T::DTYPE)?;
    let unpack = pack_fn(R::DTYPE, R::DTYPE)?;
    let mut row_buffer: Vec<T::Raw> = if same { Vec::new() } else { vec![T::ZERO.to_raw(); n] };
    let direct = to_step == 1 || length == 1;
    let mut out_buffer: Vec<R::Raw> = if direct { Vec::new() } else { vec![R::ZERO.to_raw(); length] };
    let mut targets: Vec<i64> = Vec::new();
    starts(&to, d, |at| targets.push(at));
    let mut target = targets.into_iter();
    if to.numel() > 0 {
        starts(layout, d, |at| {
            let to_at = target.next().expect("invariant: as many rows out as in");
            // SAFETY: rows of the locked tensor and of the fresh, zeroed output; buffers are as long as rows.
            unsafe {
                let from = base.wrapping_offset(at as isize * size as isize);
                let row: &[T::Raw] = if n == 0 {
                    &[]
                } else if same {
                    std::slice::from_raw_parts(from.cast(), n)
                } else {
                    pack(from, step as isize, row_buffer.as_mut_ptr().cast(), 1, n);
                    &row_buffer
                };
                let out_at = storage.data().cast::<R::Raw>().offset(to_at as isize);
                if direct {
                    let out = std::slice::from_raw_parts_mut(out_at, length);
                    simd::run(Row::<T, R, _> { row, out, f: &mut f });
                } else {
                    out_buffer.fill(R::ZERO.to_raw());
                    simd::run(Row::<T, R, _> { row, out: &mut out_buffer, f: &mut f });
                    unpack(out_buffer.as_ptr().cast(), 1, out_at.cast(), to_step as isize, length);
                }
            }
        });
    }
    drop(guards);
    Ok(Tensor::from_parts(storage, R::DTYPE, to))
}

/// `out[.., i, ..] = x[.., indices[.., i, ..], ..]` along a dimension. Indices outside the dimension are an error.
pub fn gather(x: &Tensor, dim: usize, indices: &Tensor) -> Result<Tensor> {
    let (rank, bound) = (x.rank(), x.sizes().get(dim).copied().unwrap_or(1));
    if rank.max(1) != indices.rank().max(1) {
        return Err(TensorError::shape(
            "Index tensor must have the same number of dimensions as input tensor",
        ));
    }
    for d in (0..rank.min(indices.rank())).filter(|d| *d != dim) {
        if indices.sizes()[d] > x.sizes()[d] {
            return Err(TensorError::shape(format!(
                "Size does not match at dimension {d} expected index {} to be no larger than self {} apart from \
                 dimension {dim}",
                crate::error::Shape::from(indices.sizes()),
                crate::error::Shape::from(x.sizes())
            )));
        }
    }
    let wanted = indices.to_vec::<i64>()?;
    let out_layout = Layout::contiguous(indices.sizes())?;
    dispatch!(all, x.dtype(), "gather", T => {
        let values: Result<Vec<T>> = access::read::<T, _>(x, |view| {
            let mut out = Vec::with_capacity(wanted.len());
            let strides = view.layout().strides();
            let mut index: SmallVec<[i64; 5]> = SmallVec::from_elem(0, indices.rank());
            for &i in &wanted {
                if i < 0 || i >= bound {
                    return Err(TensorError::value(format!(
                        "index {i} is out of bounds for dimension {dim} with size {bound}"
                    )));
                }
                let mut at = if rank == 0 { 0 } else { i * strides[dim] };
                for d in (0..rank.min(index.len())).filter(|d| *d != dim) {
                    at += index[d] * strides[d];
                }
                out.push(T::from_raw(view.data()[at as usize]));
                for d in (0..index.len()).rev() {
                    index[d] += 1;
                    if index[d] < out_layout.sizes()[d] {
                        break;
                    }
                    index[d] = 0;
                }
            }
            Ok(out)
        })?;
        Tensor::from_vec(values?, out_layout.sizes())
    })
}
