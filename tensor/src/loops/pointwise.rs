//! Entry points of the element-wise loops: they apply a closure to the elements of tensors and write a fresh tensor or
//! a given one.
//!
//! `A`, `B`, `C` are the closure's argument types, `R` its result type. Operands of another dtype are converted in
//! blocks (with the semantics of C++'s `static_cast`), so the caller chooses the types by promotion and no converted
//! copy is made. An output that is written into may also be an input. Inputs that overlap it otherwise are refused as
//! in PyTorch, or copied first.
#![allow(unsafe_code, reason = "passes locked memory to kernels")]

use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::block::{self, Closure, Map};
use super::drive::{BLOCK, BlockKernel, FLAT, Operand, drive, drive_flat, drive_straight, walk_copy};
use super::pack::pack_fn;
use super::plan::Plan;
use super::repeat::Repeated;
use crate::access::{LockSet, ReadGuards, ReadThree, WriteGuards, reach_of, start_of};
use crate::create::bytes_of;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, Shape, TensorError};
use crate::layout::{Layout, same_sizes};
use crate::storage::Storage;
use crate::tensor::{Meta, Tensor};
use crate::threads::{self, GRAIN, SendPtr};

/// The dtype of a result, and optionally a tensor that the result may overwrite.
///
/// The tensor is overwritten if it and the inputs are row-major and of one shape and dtype; it is then the result
/// itself. Otherwise the result is fresh, and the caller copies it.
#[derive(Clone, Copy)]
pub struct OutputHint<'a> {
    dtype: DType,
    over: Option<&'a Tensor>,
}

impl<'a> OutputHint<'a> {
    /// Makes a hint that a result may overwrite `tensor`, which may be one of the inputs. Its old value must not be
    /// used afterwards.
    #[inline]
    pub fn over(dtype: DType, tensor: Option<&'a Tensor>) -> OutputHint<'a> {
        OutputHint { dtype, over: tensor }
    }

    /// Returns the dtype of the result.
    #[inline]
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// Returns the same hint with another dtype.
    #[inline]
    #[must_use]
    pub fn in_dtype(self, dtype: DType) -> OutputHint<'a> {
        OutputHint { dtype, ..self }
    }
}

impl From<DType> for OutputHint<'_> {
    #[inline]
    fn from(dtype: DType) -> Self {
        OutputHint { dtype, over: None }
    }
}

/// Applies `f` to each element and returns a fresh tensor.
///
/// # Errors
/// Returns an error if memory is exhausted.
pub fn unary<A: Element, R: Element>(x: &Tensor, f: impl Fn(A) -> R + Copy + Sync) -> Result<Tensor> {
    map(x, Closure(f))
}

/// As [`unary`], for a function that is inlined into the loop however large it is.
///
/// # Errors
/// As for [`unary`].
pub fn map<A: Element, R: Element>(x: &Tensor, f: impl Map<A, R>) -> Result<Tensor> {
    // SAFETY: the dtypes passed to `fresh` are those of `A` and `R`, so the kernel gets blocks of these types.
    fresh(&[x], &[A::DTYPE], Out::of(R::DTYPE), usize::MAX, &|p, n| unsafe {
        block::unary::<A, R>(p, n, f);
    })
}

/// As [`map`], in a dtype whose elements `T` carries ([`DType::carrier`]). The input and the results of `f` are
/// converted to that dtype.
///
/// # Errors
/// As for [`unary`].
pub fn map_in<'a, T: Element>(
    hint: impl Into<OutputHint<'a>>,
    x: &Tensor,
    f: impl Map<T, T>,
) -> Result<Tensor> {
    let hint = hint.into();
    let x = &*exactly::<T>(x, hint.dtype)?;
    // SAFETY: inputs and result have the dtype of `T`, so the kernel gets blocks of `T`.
    meeting(hint, &[x], T::DTYPE, &|p, n| unsafe {
        block::unary::<T, T>(p, n, f);
    })
}

/// As [`unary`] in a dtype whose elements `T` carries.
///
/// # Errors
/// As for [`unary`].
pub fn unary_in<'a, T: Element>(
    hint: impl Into<OutputHint<'a>>,
    x: &Tensor,
    f: impl Fn(T) -> T + Copy + Sync,
) -> Result<Tensor> {
    map_in(hint, x, Closure(f))
}

/// As [`binary`] in a dtype whose elements `T` carries.
///
/// # Errors
/// As for [`binary`].
pub fn binary_in<'a, T: Element>(
    hint: impl Into<OutputHint<'a>>,
    a: &Tensor,
    b: &Tensor,
    f: impl Fn(T, T) -> T + Copy + Sync,
) -> Result<Tensor> {
    let hint = hint.into();
    let (a, b) = (&*exactly::<T>(a, hint.dtype)?, &*exactly::<T>(b, hint.dtype)?);
    // SAFETY: inputs and result have the dtype of `T`, so the kernel gets blocks of `T`.
    meeting(hint, &[a, b], T::DTYPE, &|p, n| unsafe {
        block::binary::<T, T, T>(p, n, Closure(f));
    })
}

/// As [`ternary`] in a dtype whose elements `T` carries.
///
/// # Errors
/// As for [`binary`].
pub fn ternary_in<T: Element>(
    dtype: DType,
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    f: impl Fn(T, T, T) -> T + Copy + Sync,
) -> Result<Tensor> {
    let (a, b, c) = (&*exactly::<T>(a, dtype)?, &*exactly::<T>(b, dtype)?, &*exactly::<T>(c, dtype)?);
    // SAFETY: inputs and result have the dtype of `T`, so the kernel gets blocks of `T`.
    fresh(&[a, b, c], &[T::DTYPE; 3], Out { block: T::DTYPE, dtype }, usize::MAX, &|p, n| unsafe {
        block::ternary::<T, T, T, T>(p, n, Closure(f));
    })
}

/// Returns elements of `a` where `condition` is true and of `b` elsewhere, converted to `dtype`.
///
/// # Errors
/// As for [`binary`].
pub fn choose(dtype: DType, condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    // Elements are moved as bit patterns, so that one loop serves all dtypes of a size.
    dispatch!(widths, dtype.bits(), "where", T => {
        // SAFETY: the kernel gets blocks of `bool` and of `dtype`. Elements of `dtype` have the size of `T`, and every
        // bit pattern is a `T`.
        fresh(&[condition, a, b], &[DType::Bool, dtype, dtype], Out::of(dtype), usize::MAX, &|p, n| unsafe {
            block::ternary::<bool, T, T, T>(p, n, Closure(|c, a, b| if c { a } else { b }));
        })
    })
}

/// Evaluates a predicate on pairs of elements of a dtype that `T` carries.
///
/// # Errors
/// As for [`binary`].
pub fn test_in<T: Element>(
    dtype: DType,
    a: &Tensor,
    b: &Tensor,
    f: impl Fn(T, T) -> bool + Copy + Sync,
) -> Result<Tensor> {
    let (a, b) = (&*exactly::<T>(a, dtype)?, &*exactly::<T>(b, dtype)?);
    binary::<T, T, bool>(a, b, f)
}

/// Returns the tensor in a form that loops over `T` can read: converted to `dtype` unless it has this dtype or `T` is
/// it.
fn exactly<T: Element>(x: &Tensor, dtype: DType) -> Result<Cow<'_, Tensor>> {
    debug_assert!(dtype == T::DTYPE || dtype.carrier() == T::DTYPE, "invariant: the type carries the dtype");
    let as_is = x.dtype() == dtype || dtype == T::DTYPE;
    Ok(if as_is { Cow::Borrowed(x) } else { Cow::Owned(x.to_dtype(dtype)?) })
}

/// Writes `f` of each element to `out`, to whose shape `x` must broadcast.
///
/// # Errors
/// As for [`binary_into`].
pub fn unary_into<A: Element, R: Element>(
    out: &Tensor,
    x: &Tensor,
    f: impl Fn(A) -> R + Copy + Sync,
) -> Result<()> {
    // SAFETY: the dtypes passed to `into` are those of `A` and `R`, so the kernel gets blocks of these types.
    into(out, &[x], &[A::DTYPE], R::DTYPE, usize::MAX, &|p, n| unsafe {
        block::unary::<A, R>(p, n, Closure(f));
    })
}

/// Applies `f` to pairs of elements of the broadcast inputs and returns a fresh tensor.
///
/// # Errors
/// Returns an error if the shapes do not broadcast or memory is exhausted.
pub fn binary<A: Element, B: Element, R: Element>(
    a: &Tensor,
    b: &Tensor,
    f: impl Fn(A, B) -> R + Copy + Sync,
) -> Result<Tensor> {
    // SAFETY: the dtypes passed to `fresh` are those of `A`, `B` and `R`, so the kernel gets blocks of these types.
    fresh(&[a, b], &[A::DTYPE, B::DTYPE], Out::of(R::DTYPE), usize::MAX, &|p, n| unsafe {
        block::binary::<A, B, R>(p, n, Closure(f));
    })
}

/// Writes `f` of each pair of elements to `out`, whose shape must be the one that the inputs broadcast to.
///
/// # Errors
/// Returns an error if the shapes do not fit, `out` has overlapping elements or is protected from writes, an input
/// overlaps `out` in part, or memory is exhausted.
pub fn binary_into<A: Element, B: Element, R: Element>(
    out: &Tensor,
    a: &Tensor,
    b: &Tensor,
    f: impl Fn(A, B) -> R + Copy + Sync,
) -> Result<()> {
    // SAFETY: the dtypes passed to `into` are those of `A`, `B` and `R`, so the kernel gets blocks of these types.
    into(out, &[a, b], &[A::DTYPE, B::DTYPE], R::DTYPE, usize::MAX, &|p, n| unsafe {
        block::binary::<A, B, R>(p, n, Closure(f));
    })
}

/// Applies `f` to triples of elements of the broadcast inputs and returns a fresh tensor.
///
/// # Errors
/// As for [`binary`].
pub fn ternary<A: Element, B: Element, C: Element, R: Element>(
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    f: impl Fn(A, B, C) -> R + Copy + Sync,
) -> Result<Tensor> {
    let dtypes = [A::DTYPE, B::DTYPE, C::DTYPE];
    // SAFETY: the dtypes passed to `fresh` are those of `A`, `B`, `C` and `R`, so the kernel gets blocks of these
    // types.
    fresh(&[a, b, c], &dtypes, Out::of(R::DTYPE), usize::MAX, &|p, n| unsafe {
        block::ternary::<A, B, C, R>(p, n, Closure(f));
    })
}

/// Writes `f` of each triple of elements to `out`, whose shape must be the one that the inputs broadcast to.
///
/// # Errors
/// As for [`binary_into`].
pub fn ternary_into<A: Element, B: Element, C: Element, R: Element>(
    out: &Tensor,
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    f: impl Fn(A, B, C) -> R + Copy + Sync,
) -> Result<()> {
    let dtypes = [A::DTYPE, B::DTYPE, C::DTYPE];
    // SAFETY: the dtypes passed to `into` are those of `A`, `B`, `C` and `R`, so the kernel gets blocks of these types.
    into(out, &[a, b, c], &dtypes, R::DTYPE, usize::MAX, &|p, n| unsafe {
        block::ternary::<A, B, C, R>(p, n, Closure(f));
    })
}

/// Applies `f` to blocks of at most 512 elements of any number of inputs, broadcast together and converted to `T`. `f`
/// gets one slice per input and one to fill. Returns a fresh tensor.
///
/// # Errors
/// As for [`binary`].
pub fn nary<T: Element, R: Element>(
    inputs: &[&Tensor],
    f: impl Fn(&[&[T::Raw]], &mut [R::Raw]) + Sync,
) -> Result<Tensor> {
    let dtypes: SmallVec<[DType; 8]> = SmallVec::from_elem(T::DTYPE, inputs.len());
    fresh(inputs, &dtypes, Out::of(R::DTYPE), BLOCK, &|p, n| {
        // SAFETY: the dtypes passed to `fresh` are those of `T` and `R`, so blocks have these types.
        unsafe { slices::<T, R>(p, n, &f) }
    })
}

/// As [`nary`], written to `out`, whose shape must be the one that the inputs broadcast to.
///
/// # Errors
/// As for [`binary_into`].
pub fn nary_into<T: Element, R: Element>(
    out: &Tensor,
    inputs: &[&Tensor],
    f: impl Fn(&[&[T::Raw]], &mut [R::Raw]) + Sync,
) -> Result<()> {
    let dtypes: SmallVec<[DType; 8]> = SmallVec::from_elem(T::DTYPE, inputs.len());
    into(out, inputs, &dtypes, R::DTYPE, BLOCK, &|p, n| {
        // SAFETY: the dtypes passed to `into` are those of `T` and `R`, so blocks have these types.
        unsafe { slices::<T, R>(p, n, &f) }
    })
}

/// Calls `f` with the operands of a block as slices. The output's block may be uninitialized, so it is zeroed first.
///
/// # Safety
/// The pointers meet the contract of [`BlockKernel`] for a kernel of `T` to `R` and `n` elements.
unsafe fn slices<T: Element, R: Element>(p: &[*mut u8], n: usize, f: &impl Fn(&[&[T::Raw]], &mut [R::Raw])) {
    // SAFETY: the caller's contract: each pointer is aligned and valid for `n` elements during the call, and inputs do
    // not overlap the output. All-zero bytes are a valid element of any type.
    unsafe {
        p[0].write_bytes(0, n * size_of::<R::Raw>());
        let out = std::slice::from_raw_parts_mut(p[0].cast::<R::Raw>(), n);
        let inputs: SmallVec<[&[T::Raw]; 8]> =
            p[1..].iter().map(|p| std::slice::from_raw_parts(p.cast::<T::Raw>(), n)).collect();
        f(&inputs, out);
    }
}

/// Makes the operand for an input.
fn input_operand(meta: &Meta, dtype: DType, block: DType, direct: bool, start: *mut u8) -> Result<Operand> {
    Ok(Operand {
        start: SendPtr(start),
        reach: reach_of(&meta.layout, dtype),
        size: dtype.size(),
        block_size: block.size(),
        pack: pack_fn(dtype, block)?,
        direct: direct && dtype == block,
    })
}

/// Returns the common layout if each input is either row-major of that shape or a single element. The iteration is then
/// one row.
#[inline]
pub(super) fn flat<'a>(metas: &[&'a Meta]) -> Option<&'a Layout> {
    let mut lead: &Layout = &metas.first()?.layout;
    for meta in &metas[1..] {
        let layout = &meta.layout;
        if layout.numel() > lead.numel() || (layout.numel() == lead.numel() && layout.rank() > lead.rank()) {
            lead = layout;
        }
    }
    let fits = |layout: &Layout| {
        let sizes = lead.sizes();
        if layout.numel() == lead.numel() && layout.is_contiguous() && layout.rank() <= sizes.len() {
            // Equal element counts: the dimensions that the smaller shape lacks have size 1.
            return same_sizes(layout.sizes(), &sizes[sizes.len() - layout.rank()..]);
        }
        layout.numel() == 1 && layout.rank() <= lead.rank()
    };
    let fit = lead.numel() > 0 && metas.iter().all(|meta| fits(&meta.layout));
    fit.then_some(lead)
}

/// The fast case: up to three row-major inputs of one shape, without conversion.
struct Plain<'a> {
    /// The inputs; unused slots repeat the first one.
    metas: [&'a Meta; 3],
    dtypes: [DType; 3],
    inputs: usize,
}

impl<'a> Plain<'a> {
    #[inline]
    fn of(inputs: &[&'a Tensor], blocks: &[DType]) -> Option<Plain<'a>> {
        let first = *inputs.first()?;
        if inputs.len() > 3 || !first.meta().layout.is_contiguous() {
            return None;
        }
        let (mut metas, mut dtypes) = ([first.meta(); 3], [first.dtype(); 3]);
        for (k, input) in inputs.iter().enumerate() {
            let meta = input.meta();
            let alike = std::ptr::eq(meta, metas[0])
                || meta.layout.is_contiguous() && same_sizes(meta.layout.sizes(), metas[0].layout.sizes());
            if !alike || input.dtype() != blocks[k] {
                return None;
            }
            (metas[k], dtypes[k]) = (meta, input.dtype());
        }
        Some(Plain { metas, dtypes, inputs: inputs.len() })
    }

    /// Computes into `out` if it has the shape and dtype of the result; returns whether it did. Inputs that are the
    /// elements of `out` are read from copies of a block; other inputs must not overlap it.
    fn over(&self, out: &Tensor, kernel: BlockKernel<'_>) -> Result<bool> {
        let target = out.meta();
        let (layout, dtype) = (&target.layout, out.dtype());
        if !layout.is_contiguous() || !same_sizes(layout.sizes(), self.metas[0].layout.sizes()) {
            return Ok(false);
        }
        let mut own = [false; 3];
        let mut source = None;
        for (k, meta) in self.metas[..self.inputs].iter().enumerate() {
            let placed = if meta.storage.ptr_eq(&target.storage) {
                own[k] = meta.layout.offset() == layout.offset() && self.dtypes[k] == dtype;
                own[k] || are_apart(reached(layout, dtype), reached(&meta.layout, self.dtypes[k]))
            } else {
                source.replace(&meta.storage).is_none_or(|other| other.ptr_eq(&meta.storage))
            };
            if !placed {
                return Ok(false);
            }
        }
        let guards = WriteGuards::new(&target.storage, source)?;
        let to = SendPtr(guards.start(target, dtype));
        let from = [0, 1, 2].map(|k| SendPtr(start_of(self.metas[k], self.dtypes[k])));
        let copied = own.contains(&true);
        threads::split(layout.numel(), GRAIN, |part| {
            let mut buffer = [const { MaybeUninit::<u128>::uninit() }; BLOCK];
            let mut ptrs = [buffer.as_mut_ptr().cast::<u8>(); 4];
            let step = if copied { BLOCK } else { part.len() };
            let mut at = part.start;
            while at < part.end {
                let count = step.min(part.end - at);
                ptrs[0] = to.at(at * dtype.size());
                if copied {
                    // SAFETY: `count` elements of the locked target; the buffer holds a block of the largest element
                    // type and does not overlap it.
                    unsafe {
                        buffer
                            .as_mut_ptr()
                            .cast::<u8>()
                            .copy_from_nonoverlapping(ptrs[0], count * dtype.size())
                    };
                }
                for k in (0..self.inputs).filter(|k| !own[*k]) {
                    ptrs[1 + k] = from[k].at(at * self.dtypes[k].size());
                }
                kernel(&ptrs[..=self.inputs], count);
                at += count;
            }
        });
        drop(guards);
        target.storage.bump_version();
        Ok(true)
    }

    fn run(self, dtype: DType, kernel: BlockKernel<'_>) -> Result<Tensor> {
        let [x, y, _] = self.metas;
        let layout = x.layout.to_contiguous();
        // SAFETY: the kernel writes all elements; the fresh storage overlaps no input.
        let storage = unsafe { Storage::uninit(bytes_of(&layout, dtype)?)? };
        let start = |k: usize| start_of(self.metas[k], self.dtypes[k]);
        let sizes = [dtype, self.dtypes[0], self.dtypes[1], self.dtypes[2]].map(DType::size);
        // SAFETY: the storage is fresh; this function has the only handle.
        let mut ptrs =
            [unsafe { storage.data() }, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut()];
        if self.inputs < 3 {
            let guards = ReadGuards::new(&x.storage, &y.storage);
            (ptrs[1], ptrs[2]) = (start(0), start(1));
            // SAFETY: the inputs are locked, row-major, need no conversion, and have as many elements as the output.
            unsafe { drive_straight(layout.numel(), &ptrs[..3], &sizes, kernel) };
            drop(guards);
        } else {
            let guards = ReadThree::new(self.metas.map(|meta| &meta.storage));
            (ptrs[1], ptrs[2], ptrs[3]) = (start(0), start(1), start(2));
            // SAFETY: as above.
            unsafe { drive_straight(layout.numel(), &ptrs, &sizes, kernel) };
            drop(guards);
        }
        Ok(Tensor::from_parts(storage, dtype, layout))
    }
}

/// Returns the byte range of a storage that a layout without gaps covers.
fn reached(layout: &Layout, dtype: DType) -> Range<usize> {
    layout.offset() as usize * dtype.size()..layout.storage_end() * dtype.size()
}

fn are_apart(a: Range<usize>, b: Range<usize>) -> bool {
    a.end <= b.start || b.end <= a.start
}

/// The dtype of a fresh output, and the dtype of the blocks that the kernel writes.
#[derive(Clone, Copy)]
struct Out {
    block: DType,
    dtype: DType,
}

impl Out {
    #[inline]
    fn of(dtype: DType) -> Out {
        Out { block: dtype, dtype }
    }
}

/// Computes in `block`, the dtype of `T`; the result has the dtype of the hint and overwrites the hint's tensor if
/// possible.
fn meeting(
    hint: OutputHint<'_>,
    inputs: &[&Tensor],
    block: DType,
    kernel: BlockKernel<'_>,
) -> Result<Tensor> {
    let blocks = [block; 2];
    if let Some(out) = hint.over
        && hint.dtype == block
        && out.dtype() == block
        && let Some(plain) = Plain::of(inputs, &blocks)
        && plain.over(out, kernel)?
    {
        return Ok(out.clone());
    }
    fresh(inputs, &blocks[..inputs.len()], Out { block, dtype: hint.dtype }, usize::MAX, kernel)
}

/// Runs the kernel into a fresh output.
fn fresh(
    inputs: &[&Tensor],
    blocks: &[DType],
    out: Out,
    longest: usize,
    kernel: BlockKernel<'_>,
) -> Result<Tensor> {
    if longest == usize::MAX
        && out.block == out.dtype
        && let Some(plain) = Plain::of(inputs, blocks)
    {
        return plain.run(out.dtype, kernel);
    }
    let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|input| input.meta()).collect();
    if metas.len() < FLAT
        && let Some(lead) = flat(&metas)
    {
        let layout = lead.to_contiguous();
        // SAFETY: without a plan the iteration is one row: `flat` found the inputs to be rows of `layout` or single
        // elements.
        return unsafe { fresh_walked(inputs, &metas, blocks, out, layout, None, longest, kernel) };
    }
    if longest == usize::MAX
        && out.block == out.dtype
        && let Some(repeated) = Repeated::of(inputs, blocks)
    {
        return repeated.run(out.dtype, kernel);
    }
    let layouts: SmallVec<[&Layout; 4]> = metas.iter().map(|meta| &meta.layout).collect();
    let mut plan = Plan::new(Plan::shape(&layouts)?, &layouts);
    let layout = if layouts.is_empty() { Layout::scalar() } else { plan.output_layout(&layouts)? };
    plan.insert_first(&layout);
    plan.coalesce();
    if let Some(crosswise_input) = crosswise(&plan, &metas) {
        let copy = inputs[crosswise_input].clone_contiguous()?;
        let mut inputs: SmallVec<[&Tensor; 4]> = SmallVec::from_slice(inputs);
        inputs[crosswise_input] = &copy;
        return fresh(&inputs, blocks, out, longest, kernel);
    }
    // SAFETY: the plan was made for the layouts of the inputs and the output.
    unsafe { fresh_walked(inputs, &metas, blocks, out, layout, Some(&plan), longest, kernel) }
}

/// Returns the index of an input that the iteration would read across its cache lines instead of along them. If it is
/// large, a transposed copy pays.
fn crosswise(plan: &Plan, metas: &[&Meta]) -> Option<usize> {
    if plan.sizes.len() < 2 || plan.sizes[0] < 16 {
        return None;
    }
    (0..metas.len()).find(|k| {
        let strides = &plan.strides[k + 1];
        let large = metas[*k].layout.numel() >= 4096 && !metas[*k].layout.is_contiguous();
        large && strides[0] > 1 && strides[1..].contains(&1)
    })
}

/// Iterates over inputs and a fresh output: by a plan, or as one row.
///
/// # Safety
/// The plan was made for the layouts of the inputs and the output. The output's layout is dense.
#[allow(clippy::too_many_arguments, reason = "the two callers share all of it")]
unsafe fn fresh_walked(
    inputs: &[&Tensor],
    metas: &[&Meta],
    blocks: &[DType],
    out: Out,
    layout: Layout,
    plan: Option<&Plan>,
    longest: usize,
    kernel: BlockKernel<'_>,
) -> Result<Tensor> {
    // SAFETY: the output is fresh, fully written, and overlaps no input; inputs are locked.
    unsafe {
        let storage = Storage::uninit(bytes_of(&layout, out.dtype)?)?;
        let mut set = LockSet::new();
        for meta in metas {
            set.read(&meta.storage);
        }
        let guards = set.lock()?;
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        operands.push(Operand {
            start: SendPtr(storage.data()),
            reach: reach_of(&layout, out.dtype),
            size: out.dtype.size(),
            block_size: out.block.size(),
            pack: pack_fn(out.block, out.dtype)?,
            direct: out.block == out.dtype,
        });
        for ((input, meta), block) in inputs.iter().zip(metas).zip(blocks) {
            let start = guards.start(meta, input.dtype());
            operands.push(input_operand(meta, input.dtype(), *block, true, start)?);
        }
        match plan {
            Some(plan) => drive(plan, &operands, longest, kernel)?,
            None => drive_flat(layout.numel(), &operands, &flat_steps(metas, &layout), longest, kernel),
        }
        drop(guards);
        Ok(Tensor::from_parts(storage, out.dtype, layout))
    }
}

/// Returns the strides of the output and of inputs that are rows (1) or single elements (0).
fn flat_steps(metas: &[&Meta], layout: &Layout) -> [isize; FLAT] {
    let mut steps = [1; FLAT];
    for (step, meta) in steps[1..].iter_mut().zip(metas) {
        *step = isize::from(meta.layout.numel() == layout.numel());
    }
    steps
}

/// How an input relates to the output's memory.
enum Sharing {
    /// No common element.
    Disjoint,
    /// The same elements in the same order.
    Same,
    /// Possibly some common elements: the input is read from a copy.
    Unclear,
}

/// Returns whether an output is the same elements as an input.
///
/// # Errors
/// Returns [`TensorError::PartialOverlap`] if they overlap in part.
pub fn is_shared(out: &Tensor, input: &Tensor) -> Result<bool> {
    Ok(matches!(sharing(out, input, out.meta(), input.meta())?, Sharing::Same))
}

fn sharing(out: &Tensor, input: &Tensor, a: &Meta, b: &Meta) -> Result<Sharing> {
    if !a.storage.ptr_eq(&b.storage) || a.layout.numel() == 0 || b.layout.numel() == 0 {
        return Ok(Sharing::Disjoint);
    }
    if a.layout == b.layout && out.dtype() == input.dtype() {
        return Ok(Sharing::Same);
    }
    let dense = a.layout.is_non_overlapping_and_dense() && b.layout.is_non_overlapping_and_dense();
    let bytes = |tensor: &Tensor, layout: &Layout| {
        let size = tensor.dtype().size();
        (layout.offset() as usize * size, layout.storage_end() * size)
    };
    let ((from, to), (start, end)) = (bytes(out, &a.layout), bytes(input, &b.layout));
    if from >= end || start >= to {
        return Ok(Sharing::Disjoint);
    }
    if dense { Err(TensorError::PartialOverlap) } else { Ok(Sharing::Unclear) }
}

/// Runs the kernel into a given output.
fn into(
    out: &Tensor,
    inputs: &[&Tensor],
    blocks: &[DType],
    result: DType,
    longest: usize,
    kernel: BlockKernel<'_>,
) -> Result<()> {
    let target = out.meta();
    target.layout.check_writable()?;
    let mut same: SmallVec<[bool; 4]> = SmallVec::new();
    let mut copies: SmallVec<[(usize, Tensor); 1]> = SmallVec::new();
    for (k, input) in inputs.iter().enumerate() {
        let kind = sharing(out, input, target, input.meta())?;
        same.push(matches!(kind, Sharing::Same));
        if matches!(kind, Sharing::Unclear) {
            copies.push((k, input.copy_contiguous()?));
        }
    }
    let mut inputs: SmallVec<[&Tensor; 4]> = SmallVec::from_slice(inputs);
    for (k, copy) in &copies {
        inputs[*k] = copy;
    }
    let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|input| input.meta()).collect();
    let layouts: SmallVec<[&Layout; 4]> = metas.iter().map(|meta| &meta.layout).collect();
    let shape = Plan::shape(&layouts)?;
    if !crate::broadcast::expandable(&shape, target.layout.sizes()) {
        return Err(TensorError::shape(format!(
            "output with shape {} doesn't match the broadcast shape {}",
            Shape::from(target.layout.sizes()),
            Shape::from(&shape[..])
        )));
    }
    let mut all: SmallVec<[&Meta; 4]> = SmallVec::from_slice(&[target]);
    all.extend_from_slice(&metas);
    let flat = all.len() <= FLAT && flat(&all).is_some();
    let plan = (!flat).then(|| {
        let mut plan = Plan::new(target.layout.sizes().into(), &layouts);
        plan.insert_first(&target.layout);
        plan.coalesce();
        plan
    });
    let mut set = LockSet::new();
    set.write(&target.storage);
    for meta in &metas {
        set.read(&meta.storage);
    }
    let guards = set.lock()?;
    let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
    operands.push(Operand {
        start: SendPtr(guards.start(target, out.dtype())),
        reach: reach_of(&target.layout, out.dtype()),
        size: out.dtype().size(),
        block_size: result.size(),
        pack: pack_fn(result, out.dtype())?,
        direct: out.dtype() == result,
    });
    for (k, (input, meta)) in inputs.iter().zip(&metas).enumerate() {
        let start = guards.start(meta, input.dtype());
        operands.push(input_operand(meta, input.dtype(), blocks[k], !same[k], start)?);
    }
    // SAFETY: all storages are locked, the output's for writing. Inputs that are the output's elements are packed
    // first; others do not overlap it (checked above).
    unsafe {
        match &plan {
            Some(plan) => drive(plan, &operands, longest, kernel)?,
            None => {
                let steps = flat_steps(&metas, &target.layout);
                drive_flat(target.layout.numel(), &operands, &steps, longest, kernel);
            }
        }
    }
    target.storage.bump_version();
    Ok(())
}

/// Copies `source` into `out`, broadcast and converted, and increments the version of `out`.
pub(crate) fn copy(out: &Tensor, source: &Tensor) -> Result<()> {
    copy_fresh(out, source)?;
    out.storage().bump_version();
    Ok(())
}

/// As [`copy`], without incrementing the version of `out`.
pub(crate) fn copy_fresh(out: &Tensor, source: &Tensor) -> Result<()> {
    let (target, meta) = (out.meta(), source.meta());
    target.layout.check_writable()?;
    if !crate::broadcast::expandable(meta.layout.sizes(), target.layout.sizes()) {
        crate::broadcast::broadcast_shapes(target.layout.sizes(), meta.layout.sizes())?;
        return Err(TensorError::shape(format!(
            "output with shape {} doesn't match the broadcast shape {}",
            Shape::from(target.layout.sizes()),
            Shape::from(meta.layout.sizes())
        )));
    }
    if target.layout.numel() == 0 {
        return Ok(());
    }
    if out.dtype() == DType::C32 || source.dtype() == DType::C32 {
        return copy_complex_f16(out, source);
    }
    let pack = pack_fn(source.dtype(), out.dtype())?;
    if target.storage.ptr_eq(&meta.storage) {
        // The same elements in the same order (other overlaps were copied above): nothing to do.
        return Ok(());
    }
    let guards = WriteGuards::new(&target.storage, Some(&meta.storage))?;
    let starts = [guards.start(target, out.dtype()), guards.start(meta, source.dtype())];
    if flat(&[target, meta]).is_some() {
        let step = usize::from(meta.layout.numel() == target.layout.numel());
        let ([to, from], bytes) = (starts.map(SendPtr), [out.dtype().size(), source.dtype().size()]);
        threads::split(target.layout.numel(), GRAIN, |part| {
            let from = from.at(part.start * bytes[1] * step);
            // SAFETY: both storages are locked and different. The target is one row; the source is one row or one
            // element.
            unsafe { pack(from, step as isize, to.at(part.start * bytes[0]), 1, part.len()) };
        });
        return Ok(());
    }
    let mut plan = Plan::new(target.layout.sizes().into(), &[&meta.layout]);
    plan.insert_first(&target.layout);
    plan.coalesce();
    let transpose = pack_fn(out.dtype(), out.dtype())?;
    let reaches = [reach_of(&target.layout, out.dtype()), reach_of(&meta.layout, source.dtype())];
    let spans = [(starts[0], reaches[0]), (starts[1], reaches[1])];
    // SAFETY: both storages are locked, the output's for writing, and different. Starts and reaches come from the
    // layouts.
    unsafe { walk_copy(&plan, spans, [out.dtype().size(), source.dtype().size()], pack, transpose) };
    Ok(())
}

/// As [`copy_fresh`] if either dtype is complex f16, whose elements have the memory layout of pairs of f16.
fn copy_complex_f16(out: &Tensor, source: &Tensor) -> Result<()> {
    match (out.dtype(), source.dtype()) {
        (DType::C32, DType::C32) => copy_fresh(&out.view_as_real()?, &source.view_as_real()?),
        (DType::C32, _) => copy_fresh(&out.view_as_real()?, &source.to_dtype(DType::C64)?.view_as_real()?),
        _ => {
            let wide = Tensor::zeros(source.sizes(), DType::C64)?;
            copy_fresh(&wide.view_as_real()?, &source.view_as_real()?)?;
            copy_fresh(out, &wide)
        }
    }
}

/// Returns a fresh copy with its own storage, converted to `dtype`. `layout` is dense and has the source's sizes.
pub(crate) fn copied(source: &Tensor, layout: Layout, dtype: DType) -> Result<Tensor> {
    debug_assert!(layout.offset() == 0 && layout.is_non_overlapping_and_dense());
    // SAFETY: the layout is dense, so `copy_fresh` writes every element before the tensor is returned.
    let storage = unsafe { Storage::uninit(bytes_of(&layout, dtype)?)? };
    let out = Tensor::from_parts(storage, dtype, layout);
    copy_fresh(&out, source)?;
    Ok(out)
}

/// Returns the layout of a fresh output of a pointwise operation on one tensor.
pub(crate) fn like(x: &Tensor) -> Result<Layout> {
    let layout = x.layout();
    if layout.is_contiguous() {
        return Ok(layout.to_contiguous());
    }
    Plan::new(layout.sizes().into(), &[layout]).output_layout(&[layout])
}
