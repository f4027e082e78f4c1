//! Inner loops of tile operations: one function per operation, element type and instruction set.
//!
//! Each operation is a type ([`Lane`]), not a closure or a match arm: a type's method is always inlined into the
//! function compiled for an instruction set. A closure or a branch of a large match may stay outside of that function
//! and then computes one lane at a time. Loops count lanes, not groups of lanes, so that the vectorizer recognizes a
//! simple loop; since the count is a multiple of [`GROUP`], there is no remainder loop.

use crate::pointwise::TileOp;
use flambeau_tensor::math::Real;
use flambeau_tensor::simd::{self, InstructionSets};
use std::marker::PhantomData;

/// Lanes per group. Every loop of this module processes a multiple of this number.
pub(super) const GROUP: usize = 16;

/// An operation, represented as a type.
trait Lane {
    /// Computes [`TileOp::eval`] of the operation.
    fn eval<T: Real>(a: T, b: T, c: T) -> T;
    /// The exclusive bound of [`Lane::magnitude_bits`] below which [`Lane::near`] is exact; 0 if there is no such fast
    /// path.
    #[inline(always)]
    fn limit<T: Real>() -> u32 {
        0
    }
    /// Magnitude of an argument, compared with [`Lane::limit`].
    #[inline(always)]
    fn magnitude_bits<T: Real>(_: T) -> u32 {
        0
    }
    /// Fast path: equals [`Lane::eval`] for arguments whose magnitude is below the limit, unspecified for others.
    #[inline(always)]
    fn near<T: Real>(a: T) -> T {
        a
    }
}

/// One operation applied to a tile.
struct Sweep<'a, L, T> {
    to: &'a mut [T],
    args: [&'a [T]; 3],
    lane: PhantomData<L>,
}

impl<L: Lane, T: Real> Sweep<'_, L, T> {
    /// Computes all lanes. The operands are function parameters, not fields, so that the compiler may assume that the
    /// destination does not overlap them.
    #[inline(always)]
    fn vectorized_loop(to: &mut [T], a: &[T], b: &[T], c: &[T]) {
        let n = to.len() & !(GROUP - 1);
        let (to, a, b, c) = (&mut to[..n], &a[..n], &b[..n], &c[..n]);
        // Fast path for operations that are cheaper for most arguments. If one argument of the tile is out of its
        // range, the whole tile is recomputed by the general path.
        if L::limit::<T>() > 0 {
            let mut furthest = 0;
            for i in 0..n {
                furthest = furthest.max(L::magnitude_bits(a[i]));
                to[i] = L::near(a[i]);
            }
            if furthest < L::limit::<T>() {
                return;
            }
        }
        for i in 0..n {
            to[i] = L::eval(a[i], b[i], c[i]);
        }
    }
}

impl<L: Lane, T: Real> simd::Multiversioned for Sweep<'_, L, T> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::UpToAvx512;

    #[inline(always)]
    fn run(self) {
        let [a, b, c] = self.args;
        Self::vectorized_loop(self.to, a, b, c);
    }
}

/// Declares the operation types and the match that dispatches to them. `lanes! { Neg Exp(EXP_FAST_BELOW magnitude_bits
/// exp_fast) }` expands to
///
/// ```text
/// mod ops {
///     pub(super) struct Neg;
///     impl super::Lane for Neg {
///         fn eval<T: Real>(a: T, b: T, c: T) -> T { TileOp::Neg.eval(a, b, c) }
///     }
///     pub(super) struct Exp;
///     impl super::Lane for Exp {
///         fn eval<T: Real>(a: T, b: T, c: T) -> T { TileOp::Exp.eval(a, b, c) }
///         fn limit<T: Real>() -> u32 { T::EXP_FAST_BELOW }
///         fn magnitude_bits<T: Real>(a: T) -> u32 { a.magnitude_bits() }
///         fn near<T: Real>(a: T) -> T { a.exp_fast() }
///     }
/// }
///
/// pub(super) fn apply<T: Real>(op: TileOp, to: &mut [T], args: [&[T]; 3]) {
///     match op {
///         TileOp::Neg => simd::run(Sweep::<ops::Neg, T> { to, args, lane: PhantomData }),
///         TileOp::Exp => simd::run(Sweep::<ops::Exp, T> { to, args, lane: PhantomData }),
///     }
/// }
/// ```
macro_rules! lanes {
    ($($op:ident $(($limit:ident $bits:ident $near:ident))?)*) => {
        mod ops {
            use flambeau_tensor::math::Real;

            $(pub(super) struct $op;

            impl super::Lane for $op {
                #[inline(always)]
                fn eval<T: Real>(a: T, b: T, c: T) -> T {
                    crate::pointwise::TileOp::$op.eval(a, b, c)
                }
                $(#[inline(always)]
                fn limit<T: Real>() -> u32 {
                    T::$limit
                }
                #[inline(always)]
                fn magnitude_bits<T: Real>(a: T) -> u32 {
                    a.$bits()
                }
                #[inline(always)]
                fn near<T: Real>(a: T) -> T {
                    a.$near()
                })?
            })*
        }

        /// Applies one operation to the whole groups of a tile; operands must be at least as long as the destination.
        pub(super) fn apply<T: Real>(op: TileOp, to: &mut [T], args: [&[T]; 3]) {
            match op {
                $(TileOp::$op => simd::run(Sweep::<ops::$op, T> { to, args, lane: PhantomData }),)*
            }
        }
    };
}

lanes! {
    Neg Abs Sign Sqrt Rsqrt Recip Tanh Relu Erf Floor Ceil Trunc Round Not
    Exp(EXP_FAST_BELOW magnitude_bits exp_fast) Sigmoid(EXP_FAST_BELOW magnitude_bits sigmoid_fast)
    Log(LN_FAST_BELOW normal_magnitude_bits ln_fast) Sin(NEAR magnitude_bits sin_near) Cos(NEAR magnitude_bits cos_near)
    Add Sub Mul Div Pow Min Max Eq Ne Lt Le Gt Ge And Or Where
}
