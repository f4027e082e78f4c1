//! Copies lines of elements to other lines and to contiguous blocks, with conversion.
#![allow(unsafe_code, reason = "reads and writes lines of elements by pointers")]

use std::mem::MaybeUninit;

use crate::bytes;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::{Element, cast};
use crate::error::Result;
use crate::lines::{Line, LineLayout, LineMut};
use crate::simd::{self, InstructionSets, Multiversioned};

/// A copy of elements from one dtype to another.
#[derive(Clone, Copy)]
pub(crate) struct Pack {
    copy: PackFn,
    /// Bytes per element of the source and of the target.
    sizes: [usize; 2],
    /// Alignments of the elements of the source and of the target.
    aligns: [usize; 2],
}

/// Returns the alignment of the elements of a dtype. Complex f16 is copied as integers of the same size.
fn alignment(dtype: DType) -> usize {
    if dtype == DType::C64 { align_of::<f32>() } else { dtype.size().min(align_of::<f64>()) }
}

/// Copies `n` elements with conversion: `(source, source step, target, target step, n)`, steps in elements.
///
/// # Safety
/// The lines are of the dtypes that the function was made for. Each is aligned, its elements are valid for reads or
/// writes during the call, and no element of the source overlaps one of the target.
type PackFn = unsafe fn(*const u8, usize, *mut u8, usize, usize);

impl Pack {
    /// Returns the copy from one dtype to another.
    ///
    /// # Errors
    /// Returns an error if there is no conversion between the dtypes.
    pub(crate) fn new(from: DType, to: DType) -> Result<Pack> {
        let (sizes, aligns) = ([from, to].map(DType::size), [from, to].map(alignment));
        if from == to && from != DType::Bool {
            let copy = match from.size() {
                1 => pack::<u8, u8>,
                2 => pack::<i16, i16>,
                4 => pack::<i32, i32>,
                8 if from == DType::C64 => pack::<num_complex::Complex<f32>, num_complex::Complex<f32>>,
                8 => pack::<i64, i64>,
                _ => pack::<num_complex::Complex<f64>, num_complex::Complex<f64>>,
            };
            return Ok(Pack { copy, sizes, aligns });
        }
        let copy =
            dispatch!(all, from, "cast", S => dispatch!(all, to, "cast", D => Ok(pack::<S, D> as PackFn)))?;
        Ok(Pack { copy, sizes, aligns })
    }

    /// Returns the bytes per element of the source.
    #[inline(always)]
    pub(crate) fn source_size(self) -> usize {
        self.sizes[0]
    }

    /// Returns the bytes per element of the target.
    #[inline(always)]
    pub(crate) fn target_size(self) -> usize {
        self.sizes[1]
    }

    /// Copies a line to another one.
    ///
    /// # Panics
    /// Panics if the lines differ in length, or have elements of other sizes or alignments.
    #[inline(always)]
    pub(crate) fn copy(self, from: Line<'_>, to: LineMut<'_>) {
        let ((from_size, from_step, n), (to_size, to_step, count)) = (from.form(), to.form());
        let alike = n == count && from_size == self.sizes[0] && to_size == self.sizes[1];
        let misaligned =
            from.start().addr() & (self.aligns[0] - 1) | to.start().addr() & (self.aligns[1] - 1);
        assert!(alike && misaligned == 0, "invariant: lines have the elements that the copy was made for");
        // SAFETY: pointers, lengths and lifetime: the invariants of lines; any bytes are elements of any dtype of their
        // size. Alignment: of the first elements asserted above; steps are whole elements. Aliasing: the target's
        // elements are exclusive.
        unsafe { (self.copy)(from.start(), from_step, to.start(), to_step, n) };
    }

    /// Copies a line to a contiguous block, and returns its bytes.
    ///
    /// # Panics
    /// Panics if the block does not have exactly as many elements.
    #[inline(always)]
    pub(crate) fn fill<'a>(self, from: Line<'_>, to: &'a mut [MaybeUninit<u8>]) -> &'a mut [u8] {
        let (_, _, n) = from.form();
        assert!(to.len() == n * self.sizes[1], "invariant: a block has as many elements as its source");
        self.copy(from, LineMut::new(to, 0, LineLayout::new(self.sizes[1], 1, n)));
        // SAFETY: the copy wrote `n` contiguous elements, which are all bytes of the block.
        unsafe { to.assume_init_mut() }
    }
}

/// Whether a conversion is not limited by memory bandwidth.
const fn computes(from: DType, to: DType) -> bool {
    matches!((from, to), (DType::F16 | DType::BF16, _) | (_, DType::F16 | DType::BF16))
}

/// A conversion from or to f16 or bf16, compiled for several instruction sets.
struct Contiguous<'a, S: Element, D: Element> {
    from: &'a [S::Raw],
    to: &'a mut [MaybeUninit<D::Raw>],
}

impl<S: Element, D: Element> Multiversioned for Contiguous<'_, S, D> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::UpToAvx2;

    #[inline(always)]
    fn run(self) {
        for (to, from) in self.to.iter_mut().zip(self.from) {
            to.write(cast::<S, D>(S::from_raw(*from)).to_raw());
        }
    }
}

/// # Safety
/// As [`PackFn`].
unsafe fn pack<S: Element, D: Element>(
    from: *const u8,
    from_step: usize,
    to: *mut u8,
    to_step: usize,
    n: usize,
) {
    let (from, to) = (from.cast::<S::Raw>(), to.cast::<MaybeUninit<D::Raw>>());
    let convert = |x: S::Raw| cast::<S, D>(S::from_raw(x)).to_raw();
    if to_step != 1 || from_step > 1 || n == 0 {
        for i in 0..n {
            // SAFETY: the caller's contract: both lines have `n` elements at their steps.
            unsafe { (*to.add(i * to_step)).write(convert(*from.add(i * from_step))) };
        }
        return;
    }
    if S::DTYPE == D::DTYPE && S::DTYPE != DType::Bool && from_step == 1 {
        let len = n * size_of::<S::Raw>();
        // SAFETY: the caller's contract: with a step of one the `n` elements of each line are contiguous, and the lines
        // do not overlap. Bytes need no alignment.
        let (from, to) = unsafe {
            (std::slice::from_raw_parts(from.cast(), len), std::slice::from_raw_parts_mut(to.cast(), len))
        };
        return bytes::copy(from, to);
    }
    // SAFETY: as above; lines are aligned for their elements. With a step of zero the source has one element.
    let (from, to) = unsafe {
        let len = if from_step == 0 { 1 } else { n };
        (std::slice::from_raw_parts(from, len), std::slice::from_raw_parts_mut(to, n))
    };
    if from_step == 0 {
        to.fill(MaybeUninit::new(convert(from[0])));
    } else if n < 8 || const { !computes(S::DTYPE, D::DTYPE) } {
        to.iter_mut().zip(from).for_each(|(to, x)| _ = to.write(convert(*x)));
    } else {
        simd::run(Contiguous::<S, D> { from, to });
    }
}
