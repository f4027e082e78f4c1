//! Moving rows of elements to and from contiguous blocks, converting on the way.
#![allow(unsafe_code, reason = "reads and writes rows of locked memory")]

use crate::bytes;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::{Element, cast};
use crate::error::Result;
use crate::simd::{self, Kernel, Sets};

/// Moves `n` elements: `(source, its stride, target, its stride, n)`, strides in elements.
///
/// # Safety
/// From either pointer on, `n` elements so many steps apart (one, for a step of 0) may be read or written: they lie in one
/// allocation that lives as long as the call, aligned for the type of their dtype. The rows do not overlap, and no other thread
/// writes to them.
pub(crate) type PackFn = unsafe fn(*const u8, isize, *mut u8, isize, usize);

/// The mover from one dtype to another.
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
    // Memory bounds them all, but where something is made of halves or halves of something.
    const SETS: Sets = match (S::DTYPE, D::DTYPE) {
        (DType::F16 | DType::BF16, _) | (_, DType::F16 | DType::BF16) => Sets::Two,
        _ => Sets::One,
    };

    #[inline(always)]
    fn run(self) {
        // SAFETY: made by `pack`, for rows with steps of one: `n` elements side by side, aligned, and apart from each other,
        // as its caller vouches; both live as long as the call.
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
    // SAFETY: the caller's word, of `n` elements of either row, one by one or, where the steps are one, side by side.
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
