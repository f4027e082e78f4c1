//! The entry points: closures over elements, tensors in, a fresh tensor or a given one out.
//!
//! `A`, `B`, `C` are what the closure takes, `R` what it gives; operands of another dtype are converted on the way
//! (C++'s `static_cast`), so the caller chooses the types by promotion and no copy is made. Outputs written into
//! may be inputs too; inputs that overlap them otherwise are refused as PyTorch refuses them, or copied first.
#![allow(unsafe_code, reason = "hands locked memory to kernels")]

use smallvec::SmallVec;

use super::block;
use super::drive::{BLOCK, BlockKernel, Operand, drive, walk_copy};
use super::pack::pack_fn;
use super::plan::Plan;
use crate::access::LockSet;
use crate::create::bytes_of;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, Shape, TensorError};
use crate::layout::Layout;
use crate::storage::Storage;
use crate::tensor::{Meta, Tensor};

/// `f` of each element, fresh.
#[inline]
pub fn unary<A: Element, R: Element>(x: &Tensor, f: impl Fn(A) -> R + Copy) -> Result<Tensor> {
    let meta = x.meta();
    if x.dtype() == A::DTYPE && meta.layout.is_contiguous() {
        let layout = meta.layout.to_contiguous();
        // SAFETY: the kernel writes all elements; the fresh storage overlaps nothing.
        unsafe {
            let storage = Storage::uninit(bytes_of(&layout, R::DTYPE)?)?;
            let guards = LockSet::one_read(&meta.storage);
            block::unary::<A, R>(storage.data().cast(), guards.ptr::<A>(meta), layout.numel(), f);
            drop(guards);
            return Ok(Tensor::from_parts(storage, R::DTYPE, layout));
        }
    }
    // SAFETY: the kernel gets blocks of A and R, as said by the dtypes.
    fresh(&[x], &[A::DTYPE], R::DTYPE, usize::MAX, &mut |p, n| unsafe {
        block::unary::<A, R>(p[0].cast(), p[1].cast(), n, f);
    })
}

/// `f` of each element, written into `out`, whose shape `x` must broadcast to.
pub fn unary_into<A: Element, R: Element>(out: &Tensor, x: &Tensor, f: impl Fn(A) -> R + Copy) -> Result<()> {
    // SAFETY: the kernel gets blocks of A and R, as said by the dtypes.
    into(out, &[x], &[A::DTYPE], R::DTYPE, usize::MAX, &mut |p, n| unsafe {
        block::unary::<A, R>(p[0].cast(), p[1].cast(), n, f);
    })
}

/// `f` of each pair of elements, broadcast together, fresh.
#[inline]
pub fn binary<A: Element, B: Element, R: Element>(
    a: &Tensor,
    b: &Tensor,
    f: impl Fn(A, B) -> R + Copy,
) -> Result<Tensor> {
    let (x, y) = (a.meta(), b.meta());
    if a.dtype() == A::DTYPE
        && b.dtype() == B::DTYPE
        && x.layout.is_contiguous()
        && y.layout.is_contiguous()
        && x.layout.sizes() == y.layout.sizes()
    {
        let layout = x.layout.to_contiguous();
        // SAFETY: the kernel writes all elements; the fresh storage overlaps nothing.
        unsafe {
            let storage = Storage::uninit(bytes_of(&layout, R::DTYPE)?)?;
            let guards = LockSet::two_read(&x.storage, &y.storage);
            block::binary::<A, B, R>(
                storage.data().cast(),
                guards.ptr::<A>(x),
                guards.ptr::<B>(y),
                layout.numel(),
                f,
            );
            drop(guards);
            return Ok(Tensor::from_parts(storage, R::DTYPE, layout));
        }
    }
    // SAFETY: the kernel gets blocks of A, B and R, as said by the dtypes.
    fresh(&[a, b], &[A::DTYPE, B::DTYPE], R::DTYPE, usize::MAX, &mut |p, n| unsafe {
        block::binary::<A, B, R>(p[0].cast(), p[1].cast(), p[2].cast(), n, f);
    })
}

/// `f` of each pair of elements, written into `out`, whose shape is what they broadcast to.
pub fn binary_into<A: Element, B: Element, R: Element>(
    out: &Tensor,
    a: &Tensor,
    b: &Tensor,
    f: impl Fn(A, B) -> R + Copy,
) -> Result<()> {
    // SAFETY: the kernel gets blocks of A, B and R, as said by the dtypes.
    into(out, &[a, b], &[A::DTYPE, B::DTYPE], R::DTYPE, usize::MAX, &mut |p, n| unsafe {
        block::binary::<A, B, R>(p[0].cast(), p[1].cast(), p[2].cast(), n, f);
    })
}

/// `f` of each triple of elements, broadcast together, fresh.
pub fn ternary<A: Element, B: Element, C: Element, R: Element>(
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    f: impl Fn(A, B, C) -> R + Copy,
) -> Result<Tensor> {
    let dtypes = [A::DTYPE, B::DTYPE, C::DTYPE];
    // SAFETY: the kernel gets blocks of A, B, C and R, as said by the dtypes.
    fresh(&[a, b, c], &dtypes, R::DTYPE, usize::MAX, &mut |p, n| unsafe {
        block::ternary::<A, B, C, R>(p[0].cast(), p[1].cast(), p[2].cast(), p[3].cast(), n, f);
    })
}

/// `f` of each triple of elements, written into `out`, whose shape is what they broadcast to.
pub fn ternary_into<A: Element, B: Element, C: Element, R: Element>(
    out: &Tensor,
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    f: impl Fn(A, B, C) -> R + Copy,
) -> Result<()> {
    let dtypes = [A::DTYPE, B::DTYPE, C::DTYPE];
    // SAFETY: the kernel gets blocks of A, B, C and R, as said by the dtypes.
    into(out, &[a, b, c], &dtypes, R::DTYPE, usize::MAX, &mut |p, n| unsafe {
        block::ternary::<A, B, C, R>(p[0].cast(), p[1].cast(), p[2].cast(), p[3].cast(), n, f);
    })
}

/// Any number of inputs, broadcast together and converted to `T`, by blocks of at most 512 elements: `f` gets one
/// slice per input and one to fill. Fresh.
pub fn nary<T: Element, R: Element>(
    inputs: &[&Tensor],
    mut f: impl FnMut(&[&[T::Raw]], &mut [R::Raw]),
) -> Result<Tensor> {
    let dtypes: SmallVec<[DType; 8]> = SmallVec::from_elem(T::DTYPE, inputs.len());
    fresh(inputs, &dtypes, R::DTYPE, BLOCK, &mut |p, n| slices::<T, R>(p, n, &mut f))
}

/// As [`nary`], written into `out`, whose shape is what the inputs broadcast to.
pub fn nary_into<T: Element, R: Element>(
    out: &Tensor,
    inputs: &[&Tensor],
    mut f: impl FnMut(&[&[T::Raw]], &mut [R::Raw]),
) -> Result<()> {
    let dtypes: SmallVec<[DType; 8]> = SmallVec::from_elem(T::DTYPE, inputs.len());
    into(out, inputs, &dtypes, R::DTYPE, BLOCK, &mut |p, n| slices::<T, R>(p, n, &mut f))
}

/// Pointers of a block as slices. The output's block may hold anything, so it is zeroed first where it is small.
fn slices<T: Element, R: Element>(p: &[*mut u8], n: usize, f: &mut impl FnMut(&[&[T::Raw]], &mut [R::Raw])) {
    // SAFETY: `drive` gives valid pointers to `n` elements; inputs do not overlap the output; zeroes are valid.
    unsafe {
        p[0].write_bytes(0, n * size_of::<R::Raw>());
        let out = std::slice::from_raw_parts_mut(p[0].cast::<R::Raw>(), n);
        let inputs: SmallVec<[&[T::Raw]; 8]> =
            p[1..].iter().map(|p| std::slice::from_raw_parts(p.cast::<T::Raw>(), n)).collect();
        f(&inputs, out);
    }
}

/// An input as an operand of a walk.
fn input_operand(meta: &Meta, dtype: DType, block: DType, direct: bool, start: *mut u8) -> Result<Operand> {
    debug_assert!(meta.layout.numel() == 0 || !start.is_null());
    Ok(Operand {
        start,
        size: dtype.size(),
        block_size: block.size(),
        pack: pack_fn(dtype, block)?,
        direct: direct && dtype == block,
    })
}

/// Everything but the fast case: fresh output.
fn fresh(
    inputs: &[&Tensor],
    blocks: &[DType],
    dtype: DType,
    longest: usize,
    kernel: BlockKernel<'_>,
) -> Result<Tensor> {
    let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|input| input.meta()).collect();
    let layouts: SmallVec<[&Layout; 4]> = metas.iter().map(|meta| &meta.layout).collect();
    let mut plan = Plan::new(Plan::shape(&layouts)?, &layouts);
    let layout = if layouts.is_empty() { Layout::scalar() } else { plan.output_layout(&layouts)? };
    plan.insert_first(&layout);
    plan.coalesce();
    // SAFETY: the output is fresh, fully written (its layout is dense), and overlaps nothing; inputs are locked.
    unsafe {
        let storage = Storage::uninit(bytes_of(&layout, dtype)?)?;
        let mut set = LockSet::new();
        for meta in &metas {
            set.read(&meta.storage);
        }
        let guards = set.lock()?;
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        operands.push(Operand {
            start: storage.data(),
            size: dtype.size(),
            block_size: dtype.size(),
            pack: pack_fn(dtype, dtype)?,
            direct: true,
        });
        for ((input, meta), block) in inputs.iter().zip(&metas).zip(blocks) {
            let start = guards.start(meta, input.dtype());
            operands.push(input_operand(meta, input.dtype(), *block, true, start)?);
        }
        drive(&plan, &operands, longest, kernel)?;
        drop(guards);
        Ok(Tensor::from_parts(storage, dtype, layout))
    }
}

/// What an input that shares the output's storage means for the walk.
enum Sharing {
    /// Nothing in common.
    Apart,
    /// The very same elements.
    Same,
    /// Some in common perhaps: read from a copy.
    Unclear,
}

fn sharing(out: &Tensor, input: &Tensor, a: &Meta, b: &Meta) -> Result<Sharing> {
    if !a.storage.ptr_eq(&b.storage) || a.layout.numel() == 0 || b.layout.numel() == 0 {
        return Ok(Sharing::Apart);
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
        return Ok(Sharing::Apart);
    }
    if dense { Err(TensorError::PartialOverlap) } else { Ok(Sharing::Unclear) }
}

/// Into a given output.
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
    let mut inputs: SmallVec<[Tensor; 4]> = inputs.iter().map(|input| (*input).clone()).collect();
    let mut same: SmallVec<[bool; 4]> = SmallVec::new();
    for input in &mut inputs {
        let kind = sharing(out, input, target, input.meta())?;
        same.push(matches!(kind, Sharing::Same));
        if matches!(kind, Sharing::Unclear) {
            *input = input.copy_contiguous()?;
        }
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
    let mut plan = Plan::new(target.layout.sizes().into(), &layouts);
    plan.insert_first(&target.layout);
    plan.coalesce();
    let mut set = LockSet::new();
    set.write(&target.storage);
    for meta in &metas {
        set.read(&meta.storage);
    }
    let guards = set.lock()?;
    let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
    operands.push(Operand {
        start: guards.start(target, out.dtype()),
        size: out.dtype().size(),
        block_size: result.size(),
        pack: pack_fn(result, out.dtype())?,
        direct: out.dtype() == result,
    });
    for (k, (input, meta)) in inputs.iter().zip(&metas).enumerate() {
        let start = guards.start(meta, input.dtype());
        operands.push(input_operand(meta, input.dtype(), blocks[k], !same[k], start)?);
    }
    // SAFETY: all storages are locked, the output's for writing; inputs that are the output's elements are
    // packed first, others do not overlap it (checked above).
    unsafe { drive(&plan, &operands, longest, kernel)? };
    target.storage.bump_version();
    Ok(())
}

/// `source` into `out`, broadcast and converted; notes the write.
pub(crate) fn copy(out: &Tensor, source: &Tensor) -> Result<()> {
    copy_fresh(out, source)?;
    out.storage().bump_version();
    Ok(())
}

/// As [`copy`] into a tensor whose version is not to change.
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
    let mut plan = Plan::new(target.layout.sizes().into(), &[&meta.layout]);
    plan.insert_first(&target.layout);
    plan.coalesce();
    let pack = pack_fn(source.dtype(), out.dtype())?;
    if target.storage.ptr_eq(&meta.storage) {
        // The same elements in the same places (others were copied before): nothing to do.
        return Ok(());
    }
    let mut set = LockSet::new();
    set.write(&target.storage).read(&meta.storage);
    let guards = set.lock()?;
    let starts = [guards.start(target, out.dtype()), guards.start(meta, source.dtype())];
    // SAFETY: both storages are locked and different; the plan's strides are the layouts'.
    unsafe { walk_copy(&plan, starts, [out.dtype().size(), source.dtype().size()], pack) };
    Ok(())
}

/// Layout of a fresh output of a pointwise operation on one tensor.
pub(crate) fn like(x: &Tensor) -> Result<Layout> {
    let layout = x.layout();
    if layout.is_contiguous() {
        return Ok(layout.to_contiguous());
    }
    Plan::new(layout.sizes().into(), &[layout]).output_layout(&[layout])
}
