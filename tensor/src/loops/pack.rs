//! Copies rows of elements to and from contiguous blocks, with conversion.
#![allow(unsafe_code, reason = "reads and writes rows of locked memory")]

use crate::bytes;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::{Element, cast};
use crate::error::Result;
use crate::simd::{self, Kernel, Sets};

/// Copies `n` elements with conversion: `(source, source stride, target, target stride, n)`, strides in elements.
///
/// # Safety
/// Each pointer is aligned for the element type of its dtype and valid for `n` elements that are `stride` elements
/// apart (one element if the stride is 0). The elements of a row belong to one allocation that lives during the call.
/// The rows do not overlap, and no other thread writes to them.
pub(crate) type PackFn = unsafe fn(*const u8, isize, *mut u8, isize, usize);

/// Returns the copy function from one dtype to another.
///
/// # Errors
/// Returns an error if there is no conversion between the dtypes.
pub(crate) fn pack_fn(from: DType, to: DType) -> Result<PackFn> {
    if from == to && from != DType::Bool {
        return Ok(match from.size() {
            1 => pack::<u8, u8>,
            2 => pack::<i16, i16>,
            4 => pack::<i32, i32>,
            8 => pack::<i64, i64>,
            _ => pack::<num_complex::Complex<f64>, num_complex::Complex<f64>>,
        });
    }
    dispatch!(all, from, "cast", S => dispatch!(all, to, "cast", D => Ok(pack::<S, D> as PackFn)))
}

struct Contiguous<S: Element, D: Element> {
    from: *const S::Raw,
    to: *mut D::Raw,
    n: usize,
}

impl<S: Element, D: Element> Kernel for Contiguous<S, D> {
    type Output = ();
    // Limited by memory bandwidth, except for conversions from or to f16 and bf16.
    const SETS: Sets = match (S::DTYPE, D::DTYPE) {
        (DType::F16 | DType::BF16, _) | (_, DType::F16 | DType::BF16) => Sets::Two,
        _ => Sets::One,
    };

    #[inline(always)]
    fn run(self) {
        // SAFETY: `pack` makes this value only for strides of one. Then both rows are `n` contiguous elements, aligned,
        // disjoint, and valid during the call, by the contract of `PackFn`.
        let (from, to) = unsafe {
            (std::slice::from_raw_parts(self.from, self.n), std::slice::from_raw_parts_mut(self.to, self.n))
        };
        for (to, from) in to.iter_mut().zip(from) {
            *to = cast::<S, D>(S::from_raw(*from)).to_raw();
        }
    }
}

/// # Safety
/// As [`PackFn`].
unsafe fn pack<S: Element, D: Element>(
    from: *const u8,
    from_step: isize,
    to: *mut u8,
    to_step: isize,
    n: usize,
) {
    let (from, to) = (from.cast::<S::Raw>(), to.cast::<D::Raw>());
    // SAFETY: the caller's contract: both rows have `n` elements at their strides. With strides of one the elements are
    // contiguous, so slices of them are in bounds.
    unsafe {
        if to_step == 1 && from_step == 1 {
            if S::DTYPE == D::DTYPE && S::DTYPE != DType::Bool {
                let len = n * size_of::<S::Raw>();
                bytes::copy(
                    std::slice::from_raw_parts(from.cast(), len),
                    std::slice::from_raw_parts_mut(to.cast(), len),
                );
            } else if n < 8 {
                for i in 0..n {
                    *to.add(i) = cast::<S, D>(S::from_raw(*from.add(i))).to_raw();
                }
            } else {
                simd::run(Contiguous::<S, D> { from, to, n });
            }
        } else if from_step == 0 && to_step == 1 && n > 0 {
            std::slice::from_raw_parts_mut(to, n).fill(cast::<S, D>(S::from_raw(*from)).to_raw());
        } else {
            for i in 0..n as isize {
                *to.offset(i * to_step) = cast::<S, D>(S::from_raw(*from.offset(i * from_step))).to_raw();
            }
        }
    }
}
