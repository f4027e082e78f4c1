//! Entry points of the element-wise loops: they apply a closure to the elements of tensors and write a fresh tensor or
//! a given one.
//!
//! `A`, `B`, `C` are the closure's argument types, `R` its result type. Operands of another dtype are converted in
//! blocks (with the semantics of C++'s `static_cast`), so the caller chooses the types by promotion and no converted
//! copy is made. An output that is written into may also be an input. Inputs that overlap it otherwise are refused as
//! in PyTorch, or copied first.

use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::block::{self, BlockKernel, Closure, Map};
use super::drive::{self, BLOCK, FLAT, Input, Output, Traversal};
use super::plan::LoopPlan;
use super::repeat::Repeated;
use crate::access::{LockSet, Locked, ReadGuards, ReadThree, WriteGuards, Writes};
use crate::dispatch;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, SizesText, TensorError};
use crate::layout::{Layout, same_sizes};
use crate::lines::Buffer;
use crate::tensor::{Meta, Tensor};
use crate::threads::{self, GRAIN};

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

/// Applies `f` to each element and returns a fresh tensor. As in all functions here, `f` may be called several times for an element, in any
/// order.
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
    let kernel = block::unary::<A, R, _>(f);
    fresh(&[x], &[A::DTYPE], Out::of(R::DTYPE), usize::MAX, BlockKernel::new(&kernel))
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
    let x = &*converted_for::<T>(x, hint.dtype)?;
    let kernel = block::unary::<T, T, _>(f);
    meeting(hint, &[x], T::DTYPE, BlockKernel::new(&kernel))
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
    let (a, b) = (&*converted_for::<T>(a, hint.dtype)?, &*converted_for::<T>(b, hint.dtype)?);
    let kernel = block::binary::<T, T, T, _>(Closure(f));
    meeting(hint, &[a, b], T::DTYPE, BlockKernel::new(&kernel))
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
    let (a, b, c) =
        (&*converted_for::<T>(a, dtype)?, &*converted_for::<T>(b, dtype)?, &*converted_for::<T>(c, dtype)?);
    let kernel = block::ternary::<T, T, T, T, _>(Closure(f));
    let out = Out { block: T::DTYPE, dtype };
    fresh(&[a, b, c], &[T::DTYPE; 3], out, usize::MAX, BlockKernel::new(&kernel))
}

/// Returns elements of `a` where `condition` is true and of `b` elsewhere, converted to `dtype`.
///
/// # Errors
/// As for [`binary`].
pub fn choose(dtype: DType, condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    // Elements are moved as bit patterns, so that one loop serves all dtypes of a size.
    dispatch!(widths, dtype.bits(), "where", T => {
        let kernel = block::ternary::<bool, T, T, T, _>(Closure(|c, a, b| if c { a } else { b }));
        let blocks = [DType::Bool, dtype, dtype];
        fresh(&[condition, a, b], &blocks, Out::of(dtype), usize::MAX, BlockKernel::new(&kernel))
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
    let (a, b) = (&*converted_for::<T>(a, dtype)?, &*converted_for::<T>(b, dtype)?);
    binary::<T, T, bool>(a, b, f)
}

/// Returns the tensor in a form that loops over `T` can read: converted to `dtype` unless it has this dtype or `T` is
/// it.
fn converted_for<T: Element>(x: &Tensor, dtype: DType) -> Result<Cow<'_, Tensor>> {
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
    let kernel = block::unary::<A, R, _>(Closure(f));
    into(out, &[x], &[A::DTYPE], R::DTYPE, usize::MAX, BlockKernel::new(&kernel))
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
    let kernel = block::binary::<A, B, R, _>(Closure(f));
    fresh(&[a, b], &[A::DTYPE, B::DTYPE], Out::of(R::DTYPE), usize::MAX, BlockKernel::new(&kernel))
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
    let kernel = block::binary::<A, B, R, _>(Closure(f));
    into(out, &[a, b], &[A::DTYPE, B::DTYPE], R::DTYPE, usize::MAX, BlockKernel::new(&kernel))
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
    let kernel = block::ternary::<A, B, C, R, _>(Closure(f));
    fresh(&[a, b, c], &dtypes, Out::of(R::DTYPE), usize::MAX, BlockKernel::new(&kernel))
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
    let kernel = block::ternary::<A, B, C, R, _>(Closure(f));
    into(out, &[a, b, c], &dtypes, R::DTYPE, usize::MAX, BlockKernel::new(&kernel))
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
    let kernel = block::nary::<T, R, _>(f);
    fresh(inputs, &dtypes, Out::of(R::DTYPE), BLOCK, BlockKernel::new(&kernel))
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
    let kernel = block::nary::<T, R, _>(f);
    into(out, inputs, &dtypes, R::DTYPE, BLOCK, BlockKernel::new(&kernel))
}

/// Returns the common layout if each input is either row-major of that shape or a single element. The iteration is then
/// one row.
#[inline]
pub(super) fn flat<'a>(layouts: &[&'a Layout]) -> Option<&'a Layout> {
    let mut lead = *layouts.first()?;
    for layout in &layouts[1..] {
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
    let fit = lead.numel() > 0 && layouts.iter().all(|layout| fits(layout));
    fit.then_some(lead)
}

/// The fast case: up to three row-major inputs of one shape, without conversion.
struct RowMajorInputs<'a> {
    /// The inputs; unused slots repeat the first one.
    metas: [&'a Meta; 3],
    dtypes: [DType; 3],
    inputs: usize,
}

impl<'a> RowMajorInputs<'a> {
    #[inline(always)]
    fn of(inputs: &[&'a Tensor], blocks: &[DType]) -> Option<RowMajorInputs<'a>> {
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
        Some(RowMajorInputs { metas, dtypes, inputs: inputs.len() })
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
                own[k] || are_disjoint(reached(layout, dtype), reached(&meta.layout, self.dtypes[k]))
            } else {
                source.replace(&meta.storage).is_none_or(|other| other.ptr_eq(&meta.storage))
            };
            if !placed {
                return Ok(false);
            }
        }
        let mut guards = WriteGuards::new(&target.storage, source)?;
        let (to, others) = guards.target(target, dtype);
        let inputs = self.inputs;
        let mut from = [&[][..]; 3];
        for k in (0..inputs).filter(|k| !own[*k]) {
            from[k] = others.bytes(self.metas[k], self.dtypes[k]);
        }
        let (copied, size) = (own.contains(&true), dtype.size());
        threads::chunks(to, GRAIN * size, |first, to| {
            let mut array = [const { MaybeUninit::<u128>::uninit() }; BLOCK];
            let mut block = Buffer::of(&mut array);
            let step = if copied { BLOCK * size } else { to.len() };
            for (i, to) in to.chunks_mut(step).enumerate() {
                let (at, count) = ((first + i * step) / size, to.len() / size);
                if copied {
                    block.clear();
                    block.push(to.len(), |own| own.write_copy_of_slice(to));
                }
                let mut rows = [&[][..]; 3];
                for (k, row) in rows[..inputs].iter_mut().enumerate() {
                    let size = self.dtypes[k].size();
                    *row = if own[k] { block.filled() } else { &from[k][at * size..][..count * size] };
                }
                kernel.run_over(count, to, &rows[..inputs]);
            }
        });
        drop(guards);
        target.storage.bump_version();
        Ok(true)
    }

    fn run(self, dtype: DType, kernel: BlockKernel<'_>) -> Result<Tensor> {
        let [x, y, z] = self.metas;
        let [a, b, c] = self.dtypes;
        let layout = x.layout.to_contiguous();
        if self.inputs < 3 {
            let guards = ReadGuards::new(&x.storage, &y.storage);
            let rows = [guards.bytes(x, a), guards.bytes(y, b)];
            return drive::into_fresh_rows(layout, dtype, &rows[..self.inputs], kernel);
        }
        let guards = ReadThree::new(self.metas.map(|meta| &meta.storage));
        let rows = [guards.bytes(x, a), guards.bytes(y, b), guards.bytes(z, c)];
        drive::into_fresh_rows(layout, dtype, &rows, kernel)
    }
}

/// Returns the byte range of a storage that a layout without gaps covers.
fn reached(layout: &Layout, dtype: DType) -> Range<usize> {
    layout.offset() as usize * dtype.size()..layout.storage_end() * dtype.size()
}

fn are_disjoint(a: Range<usize>, b: Range<usize>) -> bool {
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
        && let Some(row_major) = RowMajorInputs::of(inputs, &blocks)
        && row_major.over(out, kernel)?
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
    max_row: usize,
    kernel: BlockKernel<'_>,
) -> Result<Tensor> {
    if max_row == usize::MAX
        && out.block == out.dtype
        && let Some(row_major) = RowMajorInputs::of(inputs, blocks)
    {
        return row_major.run(out.dtype, kernel);
    }
    let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|input| input.meta()).collect();
    let layouts: SmallVec<[&Layout; 4]> = metas.iter().map(|meta| &meta.layout).collect();
    if metas.len() <= FLAT
        && let Some(lead) = flat(&layouts)
    {
        let (layout, traversal) =
            (lead.to_contiguous(), Traversal::Flat(flat_strides(&layouts, lead.numel())));
        return fresh_by(inputs, &metas, blocks, out, layout, &traversal, max_row, kernel);
    }
    if max_row == usize::MAX
        && out.block == out.dtype
        && let Some(repeated) = Repeated::of(inputs, blocks)
    {
        return repeated.run(out.dtype, kernel);
    }
    let mut plan = LoopPlan::new(LoopPlan::shape(&layouts)?, &layouts);
    let layout = if layouts.is_empty() { Layout::scalar() } else { plan.output_layout(&layouts)? };
    plan.insert_first(&layout);
    plan.coalesce();
    match transposed_input(&plan, &metas) {
        Some(crosswise) => fresh_with_copy(crosswise, inputs, blocks, out, layout, max_row, kernel),
        None => fresh_by(inputs, &metas, blocks, out, layout, &Traversal::Plan(&plan), max_row, kernel),
    }
}

/// As [`fresh`], with a row-major copy of an input; the layout of the result is that of the inputs as they were.
#[allow(clippy::too_many_arguments, reason = "its callers share all of it")]
fn fresh_with_copy(
    copied: usize,
    inputs: &[&Tensor],
    blocks: &[DType],
    out: Out,
    layout: Layout,
    max_row: usize,
    kernel: BlockKernel<'_>,
) -> Result<Tensor> {
    let copy = inputs[copied].clone_contiguous()?;
    let mut inputs: SmallVec<[&Tensor; 4]> = SmallVec::from_slice(inputs);
    inputs[copied] = &copy;
    let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|input| input.meta()).collect();
    let layouts: SmallVec<[&Layout; 4]> = metas.iter().map(|meta| &meta.layout).collect();
    let mut plan = LoopPlan::new(layout.sizes().into(), &layouts);
    plan.insert_first(&layout);
    plan.coalesce();
    match transposed_input(&plan, &metas) {
        Some(crosswise) => fresh_with_copy(crosswise, &inputs, blocks, out, layout, max_row, kernel),
        None => fresh_by(&inputs, &metas, blocks, out, layout, &Traversal::Plan(&plan), max_row, kernel),
    }
}

/// Returns the index of an input that the iteration would read across its cache lines instead of along them. If it is
/// large, a transposed copy pays.
fn transposed_input(plan: &LoopPlan, metas: &[&Meta]) -> Option<usize> {
    if plan.sizes.len() < 2 || plan.sizes[0] < 16 {
        return None;
    }
    (0..metas.len()).find(|k| {
        let strides = &plan.strides[k + 1];
        let large = metas[*k].layout.numel() >= 4096 && !metas[*k].layout.is_contiguous();
        large && strides[0] > 1 && strides[1..].contains(&1)
    })
}

/// Iterates over inputs and a fresh output.
#[allow(clippy::too_many_arguments, reason = "its callers share all of it")]
fn fresh_by(
    inputs: &[&Tensor],
    metas: &[&Meta],
    blocks: &[DType],
    out: Out,
    layout: Layout,
    traversal: &Traversal<'_>,
    max_row: usize,
    kernel: BlockKernel<'_>,
) -> Result<Tensor> {
    let mut set = LockSet::new();
    for meta in metas {
        set.read(&meta.storage);
    }
    let guards = set.lock()?;
    let mut operands: SmallVec<[Input<'_>; 4]> = SmallVec::new();
    for ((input, meta), block) in inputs.iter().zip(metas).zip(blocks) {
        operands.push(Input::new(guards.bytes(meta, input.dtype()), input.dtype(), *block)?);
    }
    drive::fresh(layout, [out.block, out.dtype], &operands, traversal, max_row, kernel)
}

/// Returns the strides of inputs that are rows of `n` elements (1) or single elements (0).
fn flat_strides(layouts: &[&Layout], n: usize) -> [usize; FLAT] {
    let mut strides = [1; FLAT];
    for (stride, layout) in strides.iter_mut().zip(layouts) {
        *stride = usize::from(layout.numel() == n);
    }
    strides
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
    max_row: usize,
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
    let shape = LoopPlan::shape(&layouts)?;
    if !crate::broadcast::expandable(&shape, target.layout.sizes()) {
        return Err(TensorError::shape(format!(
            "output with shape {} doesn't match the broadcast shape {}",
            SizesText::from(target.layout.sizes()),
            SizesText::from(&shape[..])
        )));
    }
    let mut all: SmallVec<[&Layout; 5]> = SmallVec::from_slice(&[&target.layout]);
    all.extend_from_slice(&layouts);
    let mut plan = None;
    let traversal = if layouts.len() <= FLAT && flat(&all).is_some() {
        Traversal::Flat(flat_strides(&layouts, target.layout.numel()))
    } else {
        let plan = plan.insert(LoopPlan::new(target.layout.sizes().into(), &layouts));
        plan.insert_first(&target.layout);
        plan.coalesce();
        Traversal::Plan(plan)
    };
    let mut set = LockSet::new();
    set.write(&target.storage);
    for meta in &metas {
        set.read(&meta.storage);
    }
    let mut guards = set.lock()?;
    let (to, others) = guards.target(target, out.dtype());
    let mut operands: SmallVec<[Input<'_>; 4]> = SmallVec::new();
    for (k, (input, meta)) in inputs.iter().zip(&metas).enumerate() {
        let dtype = input.dtype();
        operands.push(match same[k] {
            true => Input::in_place(dtype, blocks[k])?,
            false => Input::new(others.bytes(meta, dtype), dtype, blocks[k])?,
        });
    }
    let output = Output::over(to, result, out.dtype())?;
    drive::drive(target.layout.numel(), &output, &operands, &traversal, max_row, kernel)?;
    target.storage.bump_version();
    Ok(())
}

/// Returns the layout of a fresh output of a pointwise operation on one tensor.
pub(crate) fn like(x: &Tensor) -> Result<Layout> {
    let layout = x.layout();
    if layout.is_contiguous() {
        return Ok(layout.to_contiguous());
    }
    LoopPlan::new(layout.sizes().into(), &[layout]).output_layout(&[layout])
}
