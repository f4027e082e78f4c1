//! Vectors as instruction sets have them: what innermost loops of products keep in registers.
//!
//! Of arrays LLVM makes vectors by itself, but not of as many as a tile of AVX-512 has: it keeps them in memory then.
#![allow(
    unsafe_code,
    reason = "calls instructions of detected instruction sets, and reads and writes by pointers"
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256, __m256d, __m512, __m512d, _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_set1_pd, _mm256_set1_ps,
    _mm512_fmadd_pd, _mm512_fmadd_ps, _mm512_set1_pd, _mm512_set1_ps,
};

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
}

/// Makes registers of an instruction set vectors. `registers! { __m256, f32, Avx2, _mm256_set1_ps, _mm256_fmadd_ps; }`
/// expands to
///
/// ```text
/// unsafe impl Vector for __m256 {
///     type Element = f32;
///     const ISA: Isa = Isa::Avx2;
///     unsafe fn splat(x: f32) -> Self { unsafe { _mm256_set1_ps(x) } }
///     unsafe fn add_product(self, a: Self, b: Self) -> Self { unsafe { _mm256_fmadd_ps(a, b, self) } }
/// }
/// ```
#[cfg(target_arch = "x86_64")]
macro_rules! registers {
    ($($vector:ty, $element:ty, $isa:ident, $splat:ident, $fused:ident;)+) => { $(
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
        }
    )+ };
}
#[cfg(target_arch = "x86_64")]
registers! {
    __m256, f32, Avx2, _mm256_set1_ps, _mm256_fmadd_ps;
    __m256d, f64, Avx2, _mm256_set1_pd, _mm256_fmadd_pd;
    __m512, f32, Avx512, _mm512_set1_ps, _mm512_fmadd_ps;
    __m512d, f64, Avx512, _mm512_set1_pd, _mm512_fmadd_pd;
}

/// The vectors of a type of elements, by instruction set.
pub(super) trait Registers: Multiply {
    type Baseline: Vector<Element = Self>;
    type Avx2: Vector<Element = Self>;
    type Avx512: Vector<Element = Self>;
}

impl Registers for f32 {
    type Baseline = Plain<f32, 4>;
    type Avx2 = __m256;
    type Avx512 = __m512;
}

impl Registers for f64 {
    type Baseline = Plain<f64, 2>;
    type Avx2 = __m256d;
    type Avx512 = __m512d;
}

/// Where there are no such registers nothing runs with them.
#[cfg(not(target_arch = "x86_64"))]
#[allow(non_camel_case_types, reason = "as the architecture calls them that has them")]
mod elsewhere {
    use super::Plain;

    pub(super) type __m256 = Plain<f32, 4>;
    pub(super) type __m256d = Plain<f64, 2>;
    pub(super) type __m512 = Plain<f32, 4>;
    pub(super) type __m512d = Plain<f64, 2>;
}
#[cfg(not(target_arch = "x86_64"))]
use elsewhere::{__m256, __m256d, __m512, __m512d};
