//! Functions of the rows along one dimension that are neither element-wise nor a fold (softmax, scans, sorting,
//! normalization).
//!
//! A function gets a row as a contiguous slice, whatever its strides and dtype, and fills one with its result. Large
//! numbers of rows are split among threads, each of which has a clone of the function.
#![allow(unsafe_code, reason = "slices of locked memory")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use smallvec::SmallVec;

use crate::access::{self, Locked, ReadAll, ReadGuards};
use crate::budget::check_budget;
use crate::bytes;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::{Layout, dims, wrap_dim};
use crate::lines::{Buffer, Line, LineLayout, LineMut, SharedTarget};
use crate::loops::Pack;
use crate::math::Real;
use crate::simd::{self, InstructionSets, Multiversioned};
use crate::tensor::{Meta, Tensor};
use crate::threads;

/// A function of a row that is compiled per instruction set. Its methods must be `#[inline(always)]`: a closure of this
/// size would not be inlined, and would run with the baseline instruction set.
pub trait RowMap<T: Element, R: Element>: Clone + Sync {
    /// Computes the result of a row; rows are numbered in row-major order of the other dimensions.
    fn row<'a>(&mut self, number: usize, row: &[T::Raw], out: Unwritten<'a, R>) -> Written<'a>;

    /// Computes the results of several adjacent rows of `n` elements. For functions of several passes: with short rows
    /// a single pass ends before the latency of its operations is hidden, whereas a pass over several rows can continue
    /// with the next row.
    #[inline(always)]
    fn rows<'a>(&mut self, first: usize, n: usize, rows: &[T::Raw], out: Unwritten<'a, R>) -> Written<'a> {
        // Rows without elements are passed one by one.
        let count = rows.len().checked_div(n).unwrap_or(1);
        let length = out.len() / count;
        // No closure here or around the other loops: it would not be inlined, as explained above.
        for (i, to) in out.to.chunks_mut(length.max(1)).enumerate() {
            self.row(first + i, &rows[i * n..(i + 1) * n], Unwritten { to, brand: PhantomData });
        }
        Written(out.brand)
    }
}

/// Uninitialized space for results. It is consumed by writing all of it, which yields a [`Written`].
pub struct Unwritten<'a, R: Element> {
    to: &'a mut [MaybeUninit<R::Raw>],
    brand: InvariantLifetime<'a>,
}

/// Proof that all of the [`Unwritten`] of the same lifetime was written. Every call has a lifetime of its own, so the
/// proof for one space cannot be used for another.
pub struct Written<'a>(InvariantLifetime<'a>);

/// Makes a lifetime invariant: neither a longer nor a shorter one can be substituted.
type InvariantLifetime<'a> = PhantomData<fn(&'a ()) -> &'a ()>;

impl<'a, R: Element> Unwritten<'a, R> {
    /// Returns the number of elements to write.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "no row is empty")]
    pub fn len(&self) -> usize {
        self.to.len()
    }

    /// Writes each element by a function of its index.
    #[inline(always)]
    pub fn each(self, mut f: impl FnMut(usize) -> R) -> Written<'a> {
        for (i, to) in self.to.iter_mut().enumerate() {
            to.write(f(i).to_raw());
        }
        Written(self.brand)
    }

    /// Writes a function of each of as many values.
    #[inline(always)]
    pub fn map<T: Copy>(self, from: &[T], f: impl Fn(T) -> R) -> Written<'a> {
        let from = &from[..self.to.len()];
        for (to, x) in self.to.iter_mut().zip(from) {
            to.write(f(*x).to_raw());
        }
        Written(self.brand)
    }

    /// Writes a function of each of as many values and of a value for their row of `n` elements.
    #[inline(always)]
    pub fn map_rows<T: Copy, P: Copy>(
        self,
        n: usize,
        from: &[T],
        of_row: impl Fn(usize) -> P,
        f: impl Fn(P, T) -> R,
    ) -> Written<'a> {
        self.made_of_rows(n, from, of_row, f, |made| made).1
    }

    /// As [`Unwritten::map_rows`] for `then(f(..))`, where `then` may be large: passed by name it is inlined. Returns
    /// the written elements for further processing.
    #[inline(always)]
    pub fn made_of_rows<T: Copy, P: Copy, S>(
        self,
        n: usize,
        from: &[T],
        of_row: impl Fn(usize) -> P,
        f: impl Fn(P, T) -> S,
        then: impl Fn(S) -> R,
    ) -> (&'a mut [R::Raw], Written<'a>) {
        let n = n.max(1);
        let from = &from[..self.to.len()];
        for (i, (to, from)) in self.to.chunks_mut(n).zip(from.chunks(n)).enumerate() {
            let of_row = of_row(i);
            for (to, x) in to.iter_mut().zip(from) {
                to.write(then(f(of_row, *x)).to_raw());
            }
        }
        // SAFETY: `from` has the length of `self.to`, so both have chunks of the same lengths, and the loop writes
        // every element.
        (unsafe { self.to.assume_init_mut() }, Written(self.brand))
    }

    /// As [`Unwritten::map_rows`], with a pair of values for each position in a row.
    ///
    /// # Panics
    /// Panics if there are elements to write but no pairs, or the two slices have different lengths.
    #[inline(always)]
    pub fn map_positions<T: Copy, P: Copy>(
        self,
        pairs: (&[T], &[T]),
        from: &[T],
        of_row: impl Fn(usize) -> P,
        f: impl Fn(P, T, T, T) -> R,
    ) -> Written<'a> {
        let n = pairs.0.len();
        let covers = n == pairs.1.len() && (n > 0 || self.to.is_empty());
        assert!(covers, "invariant: there is a pair for each position");
        let n = n.max(1);
        let from = &from[..self.to.len()];
        for (i, (to, from)) in self.to.chunks_mut(n).zip(from.chunks(n)).enumerate() {
            let of_row = of_row(i);
            for (((to, x), a), b) in to.iter_mut().zip(from).zip(pairs.0).zip(pairs.1) {
                to.write(f(of_row, *x, *a, *b).to_raw());
            }
        }
        Written(self.brand)
    }
}

/// A function called with several rows: the cost of entering code of an instruction set matters if rows are short.
struct Rows<'a, T: Element, R: Element, F> {
    batch: Batch<'a>,
    f: &'a mut F,
    dtypes: PhantomData<(T, R)>,
}

impl<T: Element, R: Element, F: RowMap<T, R>> Multiversioned for Rows<'_, T, R, F> {
    type Output = ();
    // Functions of rows are large code. f64 is rare, and does without the widest vectors.
    const SETS: InstructionSets = match T::DTYPE {
        DType::F64 => InstructionSets::at_most_avx2(T::DTYPE),
        _ => InstructionSets::of(&[T::DTYPE]),
    };

    #[inline(always)]
    fn run(self) {
        let Batch { first_row, row_len, .. } = self.batch;
        let (rows, to) = self.batch.slices::<T, R>();
        _ = self.f.rows(first_row, row_len, rows, Unwritten { to, brand: PhantomData });
    }
}

/// Adjacent rows, and the space for their results, as bytes: the walk over a tensor is the same for all dtypes.
struct Batch<'a> {
    /// The number of the first row, and the number of rows.
    first_row: usize,
    row_count: usize,
    /// The rows, and elements per row; then the same for the results.
    rows: &'a [u8],
    row_len: usize,
    outs: &'a mut [MaybeUninit<u8>],
    result_len: usize,
}

impl<'a> Batch<'a> {
    /// Returns the rows and the space for their results.
    ///
    /// # Panics
    /// Panics if the memory is not rows of `T` and space for results of `R`.
    #[inline(always)]
    fn slices<T: Element, R: Element>(self) -> (&'a [T::Raw], &'a mut [MaybeUninit<R::Raw>]) {
        let (rows, outs) = (bytemuck::cast_slice(self.rows), bytes::cast_uninit(self.outs));
        let whole =
            rows.len() == self.row_count * self.row_len && outs.len() == self.row_count * self.result_len;
        assert!(whole, "invariant: a batch consists of whole rows");
        (rows, outs)
    }
}

/// Returns the start offsets of the rows along a dimension, in row-major order of the other dimensions.
fn starts(layout: &Layout, dim: usize) -> Vec<i64> {
    let outer = |values: &[i64]| -> SmallVec<[i64; 5]> {
        values.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, v)| *v).collect()
    };
    let (sizes, strides) = (outer(layout.sizes()), outer(layout.strides()));
    let mut all = Vec::with_capacity(sizes.iter().product::<i64>() as usize);
    if sizes.contains(&0) {
        return all;
    }
    let mut index: SmallVec<[i64; 5]> = SmallVec::from_elem(0, sizes.len());
    let mut at = 0;
    loop {
        all.push(at);
        let mut d = sizes.len();
        loop {
            if d == 0 {
                return all;
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

/// Calls `f(row, out)` for every row along a dimension; the element of a zero-dimensional tensor is a row. `out` is
/// zeroed and has `result_len` elements (`None`: as many as the row). The result is fresh and row-major, with that length
/// in the dimension.
///
/// # Errors
/// Returns an error if the dimension is out of range, there is no conversion to `T`, or memory is exhausted.
pub fn map_rows<T: Element, R: Element>(
    x: &Tensor,
    dim: i64,
    result_len: Option<usize>,
    f: impl FnMut(&[T::Raw], &mut [R::Raw]) + Clone + Sync,
) -> Result<Tensor> {
    walk(x, dim, result_len, [T::DTYPE, R::DTYPE], &|rows| {
        let mut f = f.clone();
        rows(&mut |batch| {
            let Batch { row_count, row_len, result_len, .. } = batch;
            let (rows, outs) = batch.slices::<T, R>();
            let outs = bytes::zeroed(outs);
            for i in 0..row_count {
                f(&rows[i * row_len..(i + 1) * row_len], &mut outs[i * result_len..(i + 1) * result_len]);
            }
        });
    })
}

/// As [`map_rows`] for a function that is compiled per instruction set.
///
/// # Errors
/// As for [`map_rows`].
pub fn compute_rows<T: Element, R: Element>(
    x: &Tensor,
    dim: i64,
    result_len: Option<usize>,
    f: impl RowMap<T, R>,
) -> Result<Tensor> {
    walk(x, dim, result_len, [T::DTYPE, R::DTYPE], &|rows| {
        let mut f = f.clone();
        rows(&mut |batch| simd::run(Rows::<T, R, _> { batch, f: &mut f, dtypes: PhantomData }));
    })
}

/// The function that a walk calls with each batch.
type EachBatch<'a> = &'a mut dyn FnMut(Batch<'_>);
/// Makes the function for one part of a walk, and passes it on.
type MakePart<'a> = &'a (dyn Fn(&mut dyn FnMut(EachBatch<'_>)) + Sync);

/// Bytes of results that are computed together if rows are shorter: few enough to stay in the L1 cache from one pass to
/// the next.
const FUSED_BYTES: usize = 8192;

/// Estimated operations per element of a row, which are more than in element-wise loops.
const COST: usize = 4;

/// Allocates space for `count` elements of any dtype, in units of `B`, which is aligned for them.
fn buffer_of<B: Clone>(dtype: DType, count: usize, fill: B) -> Result<Vec<B>> {
    let bytes = count.saturating_mul(dtype.size());
    check_budget(bytes)?;
    Ok(vec![fill; bytes.div_ceil(size_of::<B>())])
}

/// The iteration of [`map_rows`], with the dtypes of rows and results as values.
fn walk(
    x: &Tensor,
    dim: i64,
    result_len: Option<usize>,
    dtypes: [DType; 2],
    per_part: MakePart<'_>,
) -> Result<Tensor> {
    let meta = x.meta();
    let layout = &meta.layout;
    let d = wrap_dim(dim, layout.rank())?;
    let (row_len, step) =
        if layout.rank() == 0 { (1, 1) } else { (layout.sizes()[d] as usize, layout.strides()[d]) };
    let result_len = result_len.unwrap_or(row_len);
    let to = if result_len == row_len {
        layout.to_contiguous()
    } else {
        let mut sizes = dims(layout.sizes());
        if layout.rank() > 0 {
            sizes[d] = result_len as i64;
        }
        Layout::contiguous(&sizes)?
    };
    let to_step = if layout.rank() == 0 { 1 } else { to.strides()[d] };
    let guards = ReadGuards::one(&meta.storage);
    let same = x.dtype() == dtypes[0] && (step == 1 || row_len == 1);
    let direct = to_step == 1 || result_len == 1;
    let walk = RowWalk {
        bytes: guards.bytes(meta, x.dtype()),
        dtypes: [x.dtype(), dtypes[0], dtypes[1]],
        row_len,
        result_len,
        grain: threads::rows(row_len.max(result_len).saturating_mul(COST)),
        same,
        direct,
    };
    let last = d + 1 == layout.rank() && row_len > 0 && result_len > 0;
    let fill = |to: &Layout, out: &mut [MaybeUninit<u8>]| {
        if same && direct && layout.is_contiguous() && last {
            walk.adjacent(out, per_part);
        } else if to.numel() > 0 {
            walk.strided([layout, to], d, out, per_part)?;
        }
        // If the result has no elements, the rows can have any length.
        Ok(())
    };
    // SAFETY: both walks visit every row of the result, and the functions that they call write all elements of a row.
    unsafe { access::make_bytes(to, dtypes[1], fill) }
}

/// The common part of walks over rows.
struct RowWalk<'a> {
    /// The bytes of the tensor from its first element to its furthest.
    bytes: &'a [u8],
    /// The dtype of the tensor, of the rows that functions get, and of results.
    dtypes: [DType; 3],
    /// Elements per row, and per row of the result.
    row_len: usize,
    result_len: usize,
    /// Rows per part.
    grain: usize,
    /// Whether rows are contiguous and have the dtype that functions get, and whether those of the result are contiguous.
    same: bool,
    direct: bool,
}

impl RowWalk<'_> {
    /// Walks over rows that are adjacent in memory, as are those of the result, several at a time.
    fn adjacent(&self, out: &mut [MaybeUninit<u8>], per_part: MakePart<'_>) {
        let (row_len, result_len) = (self.row_len, self.result_len);
        let steps = [row_len * self.dtypes[0].size(), result_len * self.dtypes[2].size()];
        let batch = (FUSED_BYTES / steps[1]).max(1);
        threads::chunks(out, self.grain * steps[1], |first, own| {
            per_part(&mut |each| {
                for (i, outs) in own.chunks_mut(batch * steps[1]).enumerate() {
                    let (first_row, row_count) = (first / steps[1] + i * batch, outs.len() / steps[1]);
                    let rows = &self.bytes[first_row * steps[0]..][..row_count * steps[0]];
                    each(Batch { first_row, row_count, rows, row_len, outs, result_len });
                }
            });
        });
    }

    /// Walks over the rows along dimension `d` of any layout, one by one. Rows and results that are not contiguous, or
    /// have another dtype, are copied.
    fn strided(
        &self,
        [layout, to]: [&Layout; 2],
        d: usize,
        out: &mut [MaybeUninit<u8>],
        per_part: MakePart<'_>,
    ) -> Result<()> {
        let RowWalk { row_len, result_len, same, direct, .. } = *self;
        let step = |layout: &Layout| layout.strides().get(d).map_or(1, |step| *step as usize);
        let (step, to_step) = (step(layout), step(to));
        let [from, as_row, made] = self.dtypes;
        let (pack, unpack) = (Pack::new(from, as_row)?, Pack::new(made, made)?);
        let (froms, tos) = (starts(layout, d), starts(to, d));
        let sizes = self.dtypes.map(DType::size);
        let target = SharedTarget::new(out);
        threads::try_split(froms.len(), self.grain, |rows| {
            let mut row_buffer = buffer_of(as_row, if same { 0 } else { row_len }, 0u128)?;
            let space = if direct { 0 } else { result_len };
            let mut out_buffer = buffer_of(made, space, MaybeUninit::new(0u128))?;
            per_part(&mut |each| {
                for i in rows.clone() {
                    let (at, to_at) = (froms[i] as usize * sizes[0], tos[i] as usize * sizes[2]);
                    let row = if same && row_len > 0 {
                        &self.bytes[at..][..row_len * sizes[1]]
                    } else {
                        let row = &mut bytemuck::cast_slice_mut(&mut row_buffer)[..row_len * sizes[1]];
                        if row_len > 0 {
                            let from = Line::new(self.bytes, at, LineLayout::new(sizes[0], step, row_len));
                            pack.copy(from, LineMut::over(row, 0, LineLayout::new(sizes[1], 1, row_len)));
                        }
                        row
                    };
                    let (first_row, row_count, rows) = (i, 1, row);
                    if direct {
                        // SAFETY: aliasing: rows of the result are disjoint, and each belongs to one part.
                        let outs = unsafe { target.bytes(to_at, result_len * sizes[2]) };
                        each(Batch { first_row, row_count, rows, row_len, outs, result_len });
                    } else {
                        let mut buffer = Buffer::new(bytes::cast_uninit::<u128, u8>(&mut out_buffer));
                        buffer.push(result_len * sizes[2], |outs| {
                            each(Batch { first_row, row_count, rows, row_len, outs: &mut *outs, result_len });
                            // SAFETY: the function wrote all elements of the row.
                            unsafe { outs.assume_init_mut() }
                        });
                        let row = Line::new(buffer.filled(), 0, LineLayout::new(sizes[2], 1, result_len));
                        let form = LineLayout::new(sizes[2], to_step, result_len);
                        // SAFETY: aliasing: as above.
                        unpack.copy(row, unsafe { target.line(to_at, form) });
                    }
                }
            });
            Ok(())
        })
    }
}

/// Concatenates row-major tensors of one dtype along a dimension, or stacks them along a new one, into a tensor of
/// these sizes. For every index of the dimensions before it, a block of each tensor is copied in turn.
///
/// The tensors must agree with `sizes` in all dimensions but `dim`. Returns `None` if dtypes differ, a tensor is not
/// row-major, the result is empty, or the numbers of elements do not fit `sizes`.
///
/// # Errors
/// Returns an error if memory is exhausted.
pub fn joined(tensors: &[&Tensor], sizes: &[i64], dim: usize) -> Result<Option<Tensor>> {
    let Some(dtype) = tensors.first().map(|t| t.dtype()) else { return Ok(None) };
    let to = Layout::contiguous(sizes)?;
    let total: usize = tensors.iter().map(|t| t.numel()).sum();
    let alike = |t: &&Tensor| t.dtype() == dtype && t.is_contiguous();
    if to.numel() == 0 || total != to.numel() || !tensors.iter().all(alike) {
        return Ok(None);
    }
    let lines = sizes[..dim].iter().product::<i64>() as usize;
    // The blocks of all lines fill the result only if each tensor has a whole block for every line.
    if tensors.iter().any(|t| t.numel() % lines != 0) {
        return Ok(None);
    }
    let metas: SmallVec<[&Meta; 4]> = tensors.iter().map(|t| t.meta()).collect();
    let guards = ReadAll::new(&metas)?;
    let blocks: SmallVec<[&[u8]; 4]> = metas.iter().map(|meta| guards.bytes(meta, dtype)).collect();
    let line = to.numel() / lines * dtype.size();
    let join = |out: &mut [MaybeUninit<u8>]| {
        if lines == 1 {
            // A single block may be long, so it is split among threads.
            let mut rest = out;
            for block in &blocks {
                let (own, behind) = std::mem::take(&mut rest).split_at_mut(block.len());
                threads::chunks(own, threads::GRAIN, |first, own| {
                    bytes::copy(&block[first..first + own.len()], own);
                });
                rest = behind;
            }
            return;
        }
        threads::chunks(out, threads::rows(line) * line, |first, own| {
            for (i, mut to) in own.chunks_exact_mut(line).enumerate() {
                for block in &blocks {
                    let length = block.len() / lines;
                    let (own, behind) = to.split_at_mut(length);
                    bytes::copy(&block[(first / line + i) * length..][..length], own);
                    to = behind;
                }
            }
        });
    };
    let fill = |_: &Layout, out: &mut [MaybeUninit<u8>]| {
        join(out);
        Ok(())
    };
    // SAFETY: the blocks are elements of the result's dtype, and have as many bytes in total (checked above). That each
    // block divides evenly into lines follows from the agreement of the tensors with `sizes`.
    unsafe { access::make_bytes(to, dtype, fill) }.map(Some)
}

/// Returns rows of a row-major matrix, one per index, as a tensor of these sizes, the last of which is the matrix's.
///
/// # Errors
/// Returns an error if the table is not a matrix, an index is out of range, or memory is exhausted.
pub fn lookup(table: &Tensor, indices: &[i64], sizes: &[i64]) -> Result<Tensor> {
    let table = table.contiguous()?;
    let (dtype, meta) = (table.dtype(), table.meta());
    let &[rows, width] = table.sizes() else { return Err(TensorError::shape("the table must be a matrix")) };
    let to = Layout::contiguous(sizes)?;
    if to.numel() != indices.len() * width as usize {
        return Err(TensorError::shape("the result must have a row for each index"));
    }
    if indices.iter().any(|i| !(0..rows).contains(i)) {
        return Err(TensorError::value("index out of range in self"));
    }
    let row = width as usize * dtype.size();
    let guards = ReadGuards::one(&meta.storage);
    let from = guards.bytes(meta, dtype);
    let pick = |out: &mut [MaybeUninit<u8>]| {
        threads::chunks(out, (threads::rows(row) * row).max(1), |first, own| {
            for (to, i) in own.chunks_exact_mut(row).zip(&indices[first / row..]) {
                to.write_copy_of_slice(&from[*i as usize * row..][..row]);
            }
        });
    };
    let fill = |_: &Layout, out: &mut [MaybeUninit<u8>]| {
        pick(out);
        Ok(())
    };
    // SAFETY: one row per index covers all elements of the result, of the same dtype.
    unsafe { access::make_bytes(to, dtype, fill) }
}

/// Returns `out[.., i, ..] = x[.., indices[.., i, ..], ..]` along a dimension.
///
/// # Errors
/// Returns an error if the ranks or sizes do not match, or an index is outside the dimension.
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
                crate::error::SizesText::from(indices.sizes()),
                crate::error::SizesText::from(x.sizes())
            )));
        }
    }
    check_budget(indices.numel().saturating_mul(size_of::<i64>()))?;
    let wanted = indices.to_vec::<i64>()?;
    if let Some(i) = wanted.iter().find(|i| !(0..bound).contains(*i)) {
        return Err(TensorError::value(format!(
            "index {i} is out of bounds for dimension {dim} with size {bound}"
        )));
    }
    let kind = x.dtype().bits();
    let out = Tensor::zeros(indices.sizes(), x.dtype())?;
    let (from, to) = (x.view_dtype(kind)?, out.view_dtype(kind)?);
    dispatch!(widths, kind, "gather", T => access::edit_with::<T, T, _>(&to, &[&from], |mut out, ins| {
        let (data, strides) = (ins[0].data(), ins[0].layout().strides());
        let step = if rank == 0 { 0 } else { strides[dim] };
        // Steps of the other dimensions, in which the result is visited in order.
        let steps: SmallVec<[i64; 5]> =
            (0..indices.rank()).map(|d| if d == dim || d >= rank { 0 } else { strides[d] }).collect();
        let sizes = indices.sizes();
        threads::chunks(out.data(), threads::rows(COST), |first, own| {
            let mut index: SmallVec<[i64; 5]> = SmallVec::from_elem(0, sizes.len());
            let (mut number, mut at) = (first as i64, 0);
            for d in (0..sizes.len()).rev() {
                index[d] = number % sizes[d];
                number /= sizes[d];
                at += index[d] * steps[d];
            }
            for (out, i) in own.iter_mut().zip(&wanted[first..]) {
                *out = data[(at + i * step) as usize];
                for d in (0..sizes.len()).rev() {
                    index[d] += 1;
                    at += steps[d];
                    if index[d] < sizes[d] {
                        break;
                    }
                    at -= steps[d] * sizes[d];
                    index[d] = 0;
                }
            }
        });
    }))?;
    Ok(out)
}

/// Adds every element of `source` to the element of `target` in the same row, the last dimension, that the index at the same
/// position selects; in order, so that repeated indices have one result. Returns `false` and adds nothing if the tensors are
/// not row-major with the same rows, or if an index is out of range.
///
/// # Errors
/// Returns an error if a dtype is not that of `T` or int64, or memory is exhausted.
pub fn add_at<T: Real>(target: &Tensor, indices: &Tensor, source: &Tensor) -> Result<bool> {
    let (&[ref rows @ .., width], &[ref index_rows @ .., count]) = (target.sizes(), indices.sizes()) else {
        return Ok(false);
    };
    let are_alike = rows == index_rows && source.sizes() == indices.sizes();
    let are_plain = [target, indices, source].iter().all(|t| t.is_contiguous());
    if !are_alike || !are_plain || count == 0 {
        return Ok(are_alike && are_plain);
    }
    check_budget(indices.numel() * size_of::<i64>())?;
    let indices = indices.to_vec::<i64>()?;
    if indices.iter().any(|i| !(0..width).contains(i)) {
        return Ok(false);
    }
    let (width, count) = (width as usize, count as usize);
    access::edit_with::<T, T, _>(target, &[source], |mut target, sources| {
        let source = sources[0].data();
        threads::chunks(target.data(), threads::rows(count.max(width)) * width, |first, own| {
            let from = first / width * count;
            let pairs = indices[from..].chunks_exact(count).zip(source[from..].chunks_exact(count));
            for (row, (indices, values)) in own.chunks_exact_mut(width).zip(pairs) {
                for (i, value) in indices.iter().zip(values) {
                    let at = &mut row[*i as usize];
                    *at = *at + *value;
                }
            }
        });
    })?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_indices_add_up_within_their_row() {
        let target = Tensor::from_vec(vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
        let at = |values: &[i64]| Tensor::from_slice(values, &[2, 2]).unwrap();
        let source = Tensor::from_vec(vec![10.0_f32, 20.0, 30.0, 40.0], &[2, 2]).unwrap();
        assert!(add_at::<f32>(&target, &at(&[2, 2, 0, 1]), &source).unwrap());
        assert_eq!(target.to_vec::<f32>().unwrap(), [1.0, 2.0, 33.0, 34.0, 45.0, 6.0]);
        let before = target.to_vec::<f32>().unwrap();
        assert!(!add_at::<f32>(&target, &at(&[0, 0, 0, 3]), &source).unwrap());
        assert!(!add_at::<f32>(&target, &at(&[0, 0, 0, -1]), &source).unwrap());
        assert!(!add_at::<f32>(&target, &at(&[0, 0, 0, 1]), &source.t().unwrap()).unwrap());
        assert!(!add_at::<f32>(&target.view(&[3, 2]).unwrap(), &at(&[0; 4]), &source).unwrap());
        assert_eq!(target.to_vec::<f32>().unwrap(), before, "nothing is added");
    }
}
