//! Vector registers of instruction sets, for the innermost loops of products.
//!
//! LLVM keeps small arrays in vector registers, but spills an array as large as the accumulators of an AVX-512 tile.
#![allow(
    unsafe_code,
    reason = "calls instructions of detected instruction sets, and reads and writes by pointers"
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m128, __m256, __m256d, __m512, __m512d, _mm_add_ps, _mm_movehl_ps, _mm_movelh_ps, _mm_unpackhi_ps,
    _mm_unpacklo_ps, _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_set1_pd, _mm256_set1_ps, _mm512_fmadd_pd,
    _mm512_fmadd_ps, _mm512_set1_pd, _mm512_set1_ps,
};
use std::marker::PhantomData;

#[cfg(target_arch = "x86_64")]
use super::product::DOTS;
use super::product::Multiply;
use crate::simd::{Isa, isa};

/// A vector of `LANES` elements.
///
/// # Safety
/// An implementor consists of its elements, contiguous, and nothing else. Its functions run only on processors with its
/// instruction set.
pub(super) unsafe trait Vector: Copy {
    type Element: Multiply;
    /// The instruction set that the vector requires.
    const ISA: Isa;
    const LANES: usize = size_of::<Self>() / size_of::<Self::Element>();

    /// Returns a vector with the same element in all lanes.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn splat(x: Self::Element) -> Self;
    /// Returns `self + a * b`, with a single rounding if the instruction set has fused multiply-add.
    ///
    /// # Safety
    /// As [`Vector::splat`].
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
}

/// Proof that the processor has the instruction set of a vector.
pub(super) struct Available<V>(PhantomData<V>);

impl<V> Clone for Available<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Available<V> {}

impl<V: Vector> Available<V> {
    /// Checks the instruction set in use.
    ///
    /// # Panics
    /// Panics if it is not that of the vector, nor one that includes it.
    #[inline(always)]
    pub(super) fn check() -> Self {
        assert!(isa() >= V::ISA, "invariant: a kernel runs only with its instruction set");
        Available(PhantomData)
    }
}

/// The vectors of an architecture's baseline, as LLVM makes them of an array.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct PortableVectors<T, const N: usize>([T; N]);

// SAFETY: `repr(transparent)` over `[T; N]`: the same size and layout as `N` contiguous elements, without padding.
unsafe impl<T: Multiply, const N: usize> Vector for PortableVectors<T, N> {
    type Element = T;
    const ISA: Isa = Isa::Baseline;

    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        PortableVectors([x; N])
    }

    #[inline(always)]
    unsafe fn add_product(mut self, a: Self, b: Self) -> Self {
        // Processors of this architecture without AVX2 multiply and add with two roundings.
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
        // SAFETY: a register consists of its elements.
        unsafe impl Vector for $vector {
            type Element = $element;
            const ISA: Isa = Isa::$isa;

            #[inline(always)]
            unsafe fn splat(x: $element) -> Self {
                // SAFETY: the caller's contract: the processor has the instruction.
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

/// As [`Multiply::merge_lanes`], with the same additions. LLVM shuffles elements of arrays several times as often.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn merge_lanes<const LANES: usize>(lanes: &[[f32; LANES]; DOTS]) -> [f32; DOTS] {
    // SAFETY: SSE belongs to every x86-64 processor. The instructions access registers only.
    unsafe {
        let mut few = [bytemuck::cast::<_, __m128>([0.0f32; 4]); DOTS];
        for n in 0..DOTS {
            let (fours, _) = lanes[n].as_chunks::<4>();
            few[n] = bytemuck::cast(fours[0]);
            for four in &fours[1..] {
                few[n] = _mm_add_ps(few[n], bytemuck::cast(*four));
            }
        }
        let [a, b, c, d] = few;
        // The sums of lanes 0 and 2, and of lanes 1 and 3, of two dot products each.
        let ab = _mm_add_ps(_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
        let cd = _mm_add_ps(_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
        bytemuck::cast(_mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab)))
    }
}

/// The vectors of an element type, by instruction set.
pub(super) trait Registers: Multiply {
    type Baseline: Vector<Element = Self>;
    type Avx2: Vector<Element = Self>;
    type Avx512: Vector<Element = Self>;
}

impl Registers for f32 {
    type Baseline = PortableVectors<f32, 4>;
    type Avx2 = __m256;
    type Avx512 = __m512;
}

impl Registers for f64 {
    type Baseline = PortableVectors<f64, 2>;
    type Avx2 = __m256d;
    type Avx512 = __m512d;
}

/// Other architectures lack these registers; no kernel runs with them there.
#[cfg(not(target_arch = "x86_64"))]
#[allow(non_camel_case_types, reason = "the names that x86-64 gives them")]
mod portable {
    use super::PortableVectors;

    pub(super) type __m256 = PortableVectors<f32, 4>;
    pub(super) type __m256d = PortableVectors<f64, 2>;
    pub(super) type __m512 = PortableVectors<f32, 4>;
    pub(super) type __m512d = PortableVectors<f64, 2>;
}
#[cfg(not(target_arch = "x86_64"))]
use portable::{__m256, __m256d, __m512, __m512d};
