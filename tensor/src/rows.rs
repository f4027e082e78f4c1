//! Work on the rows along one dimension: what is neither element by element nor a fold (softmax, scans, sorting,
//! normalisation). A row comes as one contiguous slice, whatever its strides and dtype, and goes back likewise. Many rows
//! are several threads' work, each of which has a clone of the function.
#![allow(unsafe_code, reason = "slices of locked memory")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use smallvec::SmallVec;

use crate::access::{self, Locked, ReadAll, ReadGuards};
use crate::budget::check_budget;
use crate::bytes;
use crate::create::bytes_of;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::{Layout, dims, wrap_dim};
use crate::loops::pack_fn;
use crate::simd::{self, Kernel, Sets};
use crate::storage::Storage;
use crate::tensor::{Meta, Tensor};
use crate::threads::{self, SendPtr};

/// A function of a row that computes with it. Its methods are to be `#[inline(always)]`: then they are compiled for every
/// instruction set, where a closure of this size would be left outside and computed without any.
pub trait RowMap<T: Element, R: Element>: Clone + Sync {
    /// Writes what a row gives; rows are numbered in row-major order of the other dimensions.
    fn row<'a>(&mut self, number: usize, row: &[T::Raw], out: Unwritten<'a, R>) -> Written<'a>;

    /// What some rows of `n` elements give, one behind the other. For functions of several passes: a pass over short rows
    /// one by one is over before what it waited for has come, where one over several has the next row to go on with.
    #[inline(always)]
    fn rows<'a>(&mut self, first: usize, n: usize, rows: &[T::Raw], out: Unwritten<'a, R>) -> Written<'a> {
        // Rows without elements come one by one.
        let count = rows.len().checked_div(n).unwrap_or(1);
        let length = out.len() / count;
        // No closure here or around the other loops: it would be left outside, as said above.
        for (i, to) in out.to.chunks_mut(length.max(1)).enumerate() {
            self.row(first + i, &rows[i * n..(i + 1) * n], Unwritten { to, brand: PhantomData });
        }
        Written(out.brand)
    }
}

/// Where results go that nothing was written to yet. It is used up by writing all of it, for which there is a [`Written`].
pub struct Unwritten<'a, R: Element> {
    to: &'a mut [MaybeUninit<R::Raw>],
    brand: Brand<'a>,
}

/// Says that all of an [`Unwritten`], the one of the same lifetime, was written. Every call has a lifetime of its own, so
/// that nothing said of one place is taken for another.
pub struct Written<'a>(Brand<'a>);

/// Makes a lifetime stand for itself only: none longer or shorter is as good.
type Brand<'a> = PhantomData<fn(&'a ()) -> &'a ()>;

impl<'a, R: Element> Unwritten<'a, R> {
    /// How many elements there are to write.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "no row is empty")]
    pub fn len(&self) -> usize {
        self.to.len()
    }

    /// Writes each by a function of its place.
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

    /// Writes a function of each of as many values, and of what there is for its row of `n`.
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

    /// As [`Unwritten::map_rows`], of a function and what another makes of it, which may be a large one: given by its name
    /// it is inlined. What was written may be worked on further.
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
        // SAFETY: there are as many to make them of, in chunks of the same lengths: each was written.
        (unsafe { self.to.assume_init_mut() }, Written(self.brand))
    }

    /// As [`Unwritten::map_rows`], where the places of a row have a pair of values each.
    #[inline(always)]
    pub fn map_positions<T: Copy, P: Copy>(
        self,
        pairs: (&[T], &[T]),
        from: &[T],
        of_row: impl Fn(usize) -> P,
        f: impl Fn(P, T, T, T) -> R,
    ) -> Written<'a> {
        let n = pairs.0.len().max(1);
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

/// A function called with each of a few rows: a call of the code for an instruction set counts when rows are short.
struct Rows<'a, T: Element, R: Element, F> {
    batch: Batch,
    f: &'a mut F,
    dtypes: PhantomData<(T, R)>,
}

impl<T: Element, R: Element, F: RowMap<T, R>> Kernel for Rows<'_, T, R, F> {
    type Output = ();
    // Whole passes are much code: doubles, which are rare, do without the widest vectors.
    const SETS: Sets = match T::DTYPE {
        DType::F64 => Sets::two(T::DTYPE),
        _ => Sets::of(&[T::DTYPE]),
    };

    #[inline(always)]
    fn run(self) {
        let Batch { number, n, .. } = self.batch;
        // SAFETY: the walk gives rows of these dtypes, and takes them once.
        let (rows, to) = unsafe { self.batch.slices::<T, R>() };
        _ = self.f.rows(number, n, rows, Unwritten { to, brand: PhantomData });
    }
}

/// Rows one behind the other, and the places of their results.
#[derive(Clone, Copy)]
struct Batch {
    /// The number of the first, and how many.
    number: usize,
    count: usize,
    /// Where they start, and the elements of each.
    rows: *const u8,
    n: usize,
    outs: *mut u8,
    length: usize,
}

impl Batch {
    /// The rows and the places of their results.
    ///
    /// # Safety
    ///
    /// They are rows of `T`, with room for results of `R` apart from them; no other slice of the results is in use.
    #[inline(always)]
    unsafe fn slices<'a, T: Element, R: Element>(self) -> (&'a [T::Raw], &'a mut [MaybeUninit<R::Raw>]) {
        // SAFETY: pointers and lengths: `count` rows of `n` elements, and places for `count` results of `length`, as the
        // caller vouches; places that hold nothing are places for elements that may be uninitialized. Alignment: rows begin
        // in storages or buffers that are aligned for every type, at multiples of its size. Aliasing: the caller's word.
        unsafe {
            (
                std::slice::from_raw_parts(self.rows.cast(), self.count * self.n),
                std::slice::from_raw_parts_mut(self.outs.cast(), self.count * self.length),
            )
        }
    }
}

/// Where the rows along a dimension start, in row-major order of the other dimensions.
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

/// `f(row, out)` for every row along a dimension (the only element of a tensor without dimensions is a row); `out` is
/// zeroed and has `length` elements (`None`: as many as the row). Fresh and row-major, with that length in the
/// dimension.
pub fn map_rows<T: Element, R: Element>(
    x: &Tensor,
    dim: i64,
    length: Option<usize>,
    f: impl FnMut(&[T::Raw], &mut [R::Raw]) + Clone + Sync,
) -> Result<Tensor> {
    walk(x, dim, length, [T::DTYPE, R::DTYPE], &|rows| {
        let mut f = f.clone();
        rows(&mut |batch| {
            let (n, length) = (batch.n, batch.length);
            // SAFETY: the walk gives rows of these dtypes, and takes them once.
            let (rows, outs) = unsafe { batch.slices::<T, R>() };
            outs.fill(MaybeUninit::zeroed());
            // SAFETY: they were just filled, and zero bytes are an element of any dtype.
            let outs = unsafe { outs.assume_init_mut() };
            for i in 0..batch.count {
                f(&rows[i * n..(i + 1) * n], &mut outs[i * length..(i + 1) * length]);
            }
        });
    })
}

/// As [`map_rows`], of a function that computes with the whole row: it is compiled per instruction set.
pub fn compute_rows<T: Element, R: Element>(
    x: &Tensor,
    dim: i64,
    length: Option<usize>,
    f: impl RowMap<T, R>,
) -> Result<Tensor> {
    walk(x, dim, length, [T::DTYPE, R::DTYPE], &|rows| {
        let mut f = f.clone();
        rows(&mut |batch| simd::run(Rows::<T, R, _> { batch, f: &mut f, dtypes: PhantomData }));
    })
}

/// What a walk calls.
type EachBatch<'a> = &'a mut dyn FnMut(Batch);
/// Gives a part of a walk what it calls.
type PerPart<'a> = &'a (dyn Fn(&mut dyn FnMut(EachBatch<'_>)) + Sync);

/// Bytes of results that are computed at once where rows are shorter: few enough for what one pass leaves to be in the
/// nearest memory still when the next one takes it.
const AHEAD: usize = 8192;

/// Operations that an element of a row is thought to cost: more than those that are computed one by one.
const COST: usize = 4;

/// Room for elements of any dtype.
fn buffer_of(dtype: DType, count: usize) -> Result<Vec<u128>> {
    let bytes = count.saturating_mul(dtype.size());
    check_budget(bytes)?;
    Ok(vec![0; bytes.div_ceil(size_of::<u128>())])
}

/// The walk of [`map_rows`], for rows and results of these dtypes.
fn walk(
    x: &Tensor,
    dim: i64,
    length: Option<usize>,
    dtypes: [DType; 2],
    per_part: PerPart<'_>,
) -> Result<Tensor> {
    let meta = x.meta();
    let layout = &meta.layout;
    let d = wrap_dim(dim, layout.rank())?;
    let (n, step) =
        if layout.rank() == 0 { (1, 1) } else { (layout.sizes()[d] as usize, layout.strides()[d]) };
    let length = length.unwrap_or(n);
    let to = if length == n {
        layout.to_contiguous()
    } else {
        let mut sizes = dims(layout.sizes());
        if layout.rank() > 0 {
            sizes[d] = length as i64;
        }
        Layout::contiguous(&sizes)?
    };
    // SAFETY: the walk comes to every row of the result, and what it calls writes all of it.
    let storage = unsafe { Storage::uninit(bytes_of(&to, dtypes[1])?)? };
    let to_step = if layout.rank() == 0 { 1 } else { to.strides()[d] };
    let guards = ReadGuards::one(&meta.storage);
    let base = SendPtr(guards.start(meta, x.dtype()));
    // SAFETY: the storage is fresh.
    let target = SendPtr(unsafe { storage.data() });
    let grain = threads::rows(n.max(length).saturating_mul(COST));
    let same = x.dtype() == dtypes[0] && (step == 1 || n == 1);
    let direct = to_step == 1 || length == 1;
    if same && direct && layout.is_contiguous() && d + 1 == layout.rank() && n > 0 && length > 0 {
        // Row after row in memory.
        let steps = [n * x.dtype().size(), length * dtypes[1].size()];
        let batch = (AHEAD / steps[1]).max(1);
        threads::split(to.numel() / length, grain, |rows| {
            per_part(&mut |each| {
                for number in rows.clone().step_by(batch) {
                    let count = batch.min(rows.end - number);
                    let (rows, outs) = (base.at(number * steps[0]), target.at(number * steps[1]));
                    each(Batch { number, count, rows, n, outs, length });
                }
            });
        });
        drop(guards);
        return Ok(Tensor::from_parts(storage, dtypes[1], to));
    }
    // Where the result has no elements a row may be of any length.
    if to.numel() > 0 {
        let (pack, unpack) = (pack_fn(x.dtype(), dtypes[0])?, pack_fn(dtypes[1], dtypes[1])?);
        let (froms, tos) = (starts(layout, d), starts(&to, d));
        threads::try_split(froms.len(), grain, |rows| {
            let mut row_buffer = buffer_of(dtypes[0], if same { 0 } else { n })?;
            let mut out_buffer = buffer_of(dtypes[1], if direct { 0 } else { length })?;
            per_part(&mut |each| {
                for i in rows.clone() {
                    let (at, to_at) = (froms[i], tos[i]);
                    // SAFETY: `froms` and `tos` are where the rows of the two layouts begin, of which that of the locked tensor
                    // lies within its storage, as `start` found, and that of the output is all of its own; buffers have room
                    // for a row each, and are this part's.
                    unsafe {
                        let from = base.by(at as isize * x.dtype().size() as isize);
                        let row = if n == 0 {
                            // Where nothing is read the place must still be one for elements of the wanted dtype.
                            row_buffer.as_ptr().cast()
                        } else if same {
                            from.cast_const()
                        } else {
                            pack(from, step as isize, row_buffer.as_mut_ptr().cast(), 1, n);
                            row_buffer.as_ptr().cast()
                        };
                        let out_at = target.by(to_at as isize * dtypes[1].size() as isize);
                        let one = |outs| Batch { number: i, count: 1, rows: row, n, outs, length };
                        if direct {
                            each(one(out_at));
                        } else {
                            each(one(out_buffer.as_mut_ptr().cast()));
                            unpack(out_buffer.as_ptr().cast(), 1, out_at, to_step as isize, length);
                        }
                    }
                }
            });
            Ok(())
        })?;
    }
    drop(guards);
    Ok(Tensor::from_parts(storage, dtypes[1], to))
}

/// Row-major tensors of one dtype joined at a dimension, or side by side along a new one, into a tensor of these sizes: for
/// every index of the dimensions before it, a block of memory of each tensor in turn. `None` if they do not lie so.
pub fn joined(tensors: &[&Tensor], sizes: &[i64], dim: usize) -> Result<Option<Tensor>> {
    let Some(dtype) = tensors.first().map(|t| t.dtype()) else { return Ok(None) };
    let to = Layout::contiguous(sizes)?;
    let total: usize = tensors.iter().map(|t| t.numel()).sum();
    let alike = |t: &&Tensor| t.dtype() == dtype && t.is_contiguous();
    if to.numel() == 0 || total != to.numel() || !tensors.iter().all(alike) {
        return Ok(None);
    }
    let lines = sizes[..dim].iter().product::<i64>() as usize;
    let metas: SmallVec<[&Meta; 4]> = tensors.iter().map(|t| t.meta()).collect();
    let guards = ReadAll::new(&metas)?;
    let blocks: SmallVec<[&[u8]; 4]> = metas.iter().map(|meta| guards.bytes(meta, dtype)).collect();
    let line = to.numel() / lines * dtype.size();
    let join = |out: &mut [MaybeUninit<u8>]| {
        if lines == 1 {
            // One block may be long: it is cut where threads take it.
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
    // SAFETY: the blocks of all lines are as many elements as the result has, of its dtype.
    unsafe { access::make_bytes(to, dtype, join) }.map(Some)
}

/// Rows of a row-major matrix, one for each index, as a tensor of these sizes, the last of which is the matrix's. An index
/// that is not a row's is an error.
pub fn lookup(table: &Tensor, indices: &[i64], sizes: &[i64]) -> Result<Tensor> {
    let table = table.contiguous()?;
    let (dtype, meta) = (table.dtype(), table.meta());
    let &[rows, width] = table.sizes() else { return Err(TensorError::shape("rows are a matrix's")) };
    let to = Layout::contiguous(sizes)?;
    if to.numel() != indices.len() * width as usize || indices.iter().any(|i| !(0..rows).contains(i)) {
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
    // SAFETY: as many rows as indices are all elements of the result, of the same dtype.
    unsafe { access::make_bytes(to, dtype, pick) }
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
        // Steps of the other dimensions, in which the result is walked in order.
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
