//! Vectors as instruction sets have them: what innermost loops of products keep in registers.
//!
//! Of arrays LLVM makes vectors by itself, but not of as many as a tile of AVX-512 has: it keeps them in memory then.
#![allow(
    unsafe_code,
    reason = "calls instructions of detected instruction sets, and reads and writes by pointers"
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::product::Multiply;
use crate::simd::Isa;

/// A vector of so many elements.
///
/// # Safety
/// Implementors are their elements, one behind the other, and nothing else. What uses one runs with its instruction set.
pub(super) unsafe trait Vector: Copy {
    type Element: Multiply;
    /// The instruction set that has it.
    const ISA: Isa;
    const LANES: usize = size_of::<Self>() / size_of::<Self::Element>();

    /// The same element everywhere.
    ///
    /// # Safety
    /// As all of the trait: the processor has the instruction set.
    unsafe fn splat(x: Self::Element) -> Self;
    /// `self + a * b`, with one rounding where the instruction set has that.
    ///
    /// # Safety
    /// As [`Vector::splat`].
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
    /// `self + a`.
    ///
    /// # Safety
    /// As [`Vector::splat`].
    unsafe fn plus(self, a: Self) -> Self;
}

/// What every processor of an architecture has, as LLVM makes it of an array.
#[derive(Clone, Copy)]
pub(super) struct Plain<T, const N: usize>([T; N]);

// SAFETY: an array is its elements.
unsafe impl<T: Multiply, const N: usize> Vector for Plain<T, N> {
    type Element = T;
    const ISA: Isa = Isa::Baseline;

    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Plain([x; N])
    }

    #[inline(always)]
    unsafe fn add_product(mut self, a: Self, b: Self) -> Self {
        // Processors of this architecture that have no AVX2 add and multiply with two roundings.
        let fused = !cfg!(target_arch = "x86_64");
        for ((sum, a), b) in self.0.iter_mut().zip(a.0).zip(b.0) {
            *sum = if fused { sum.add_product(a, b) } else { sum.add_product(a.times(b), T::ONE) };
        }
        self
    }

    #[inline(always)]
    unsafe fn plus(mut self, a: Self) -> Self {
        for (sum, a) in self.0.iter_mut().zip(a.0) {
            *sum = sum.add_product(a, T::ONE);
        }
        self
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! registers {
    ($($vector:ty, $element:ty, $isa:ident, $splat:ident, $fused:ident, $plus:ident;)+) => { $(
        // SAFETY: a register is its elements.
        unsafe impl Vector for $vector {
            type Element = $element;
            const ISA: Isa = Isa::$isa;

            #[inline(always)]
            unsafe fn splat(x: $element) -> Self {
                // SAFETY: the caller's word: the processor has the instruction.
                unsafe { $splat(x) }
            }

            #[inline(always)]
            unsafe fn add_product(self, a: Self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { $fused(a, b, self) }
            }

            #[inline(always)]
            unsafe fn plus(self, a: Self) -> Self {
                // SAFETY: as above.
                unsafe { $plus(self, a) }
            }
        }
    )+ };
}
#[cfg(target_arch = "x86_64")]
registers! {
    __m256, f32, Avx2, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps;
    __m256d, f64, Avx2, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_add_pd;
    __m512, f32, Avx512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps;
    __m512d, f64, Avx512, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_add_pd;
}

/// The vectors of a type of elements, by instruction set.
pub(super) trait Registers: Multiply {
    type Baseline: Vector<Element = Self>;
    type Avx2: Vector<Element = Self>;
    type Avx512: Vector<Element = Self>;
}

macro_rules! by_set {
    ($($element:ty, $baseline:expr, $avx2:ident, $avx512:ident;)+) => { $(
        impl Registers for $element {
            type Baseline = Plain<$element, $baseline>;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = $avx2;
            #[cfg(not(target_arch = "x86_64"))]
            type Avx2 = Self::Baseline;
            #[cfg(target_arch = "x86_64")]
            type Avx512 = $avx512;
            #[cfg(not(target_arch = "x86_64"))]
            type Avx512 = Self::Baseline;
        }
    )+ };
}
by_set! {
    f32, 4, __m256, __m512;
    f64, 2, __m256d, __m512d;
}
