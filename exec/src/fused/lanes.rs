//! The loops of tile operations: one function per operation, element type and instruction set.
//!
//! Each operation is a type here ([`Lane`]), because a type's method is always inlined into the function that is
//! compiled for an instruction set, where a closure or a branch of a large match may be left outside of it and then
//! computes one lane at a time. A loop is counted by its lanes, not by groups of lanes, so that the vectorizer sees one
//! plain loop; that the count is a multiple of a group spares it the remainder.

use crate::pointwise::TileOp;
use flambeau_tensor::math::Real;
use flambeau_tensor::simd::{self, Sets};
use std::marker::PhantomData;

/// Lanes of a group: what every loop here works in multiples of.
pub(super) const GROUP: usize = 16;

/// An operation as a type.
trait Lane {
    /// [`TileOp::eval`] of the operation.
    fn eval<T: Real>(a: T, b: T, c: T) -> T;
    /// The reach up to which [`Lane::near`] gives the same; 0 where it is nothing else.
    #[inline(always)]
    fn limit<T: Real>() -> u32 {
        0
    }
    /// How far an argument is.
    #[inline(always)]
    fn reach<T: Real>(_: T) -> u32 {
        0
    }
    /// The operation of an argument that is near, and anything for others.
    #[inline(always)]
    fn near<T: Real>(a: T) -> T {
        a
    }
}

/// One operation on its way over a tile.
struct Sweep<'a, L, T> {
    to: &'a mut [T],
    args: [&'a [T]; 3],
    lane: PhantomData<L>,
}

impl<L: Lane, T: Real> Sweep<'_, L, T> {
    /// References as arguments say that the destination overlaps no operand.
    #[inline(always)]
    fn plain(to: &mut [T], a: &[T], b: &[T], c: &[T]) {
        let n = to.len() & !(GROUP - 1);
        let (to, a, b, c) = (&mut to[..n], &a[..n], &b[..n], &c[..n]);
        // Functions that are faster for most arguments are computed again for the whole tile if one of it is none of these.
        if L::limit::<T>() > 0 {
            let mut furthest = 0;
            for i in 0..n {
                furthest = furthest.max(L::reach(a[i]));
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

impl<L: Lane, T: Real> simd::Kernel for Sweep<'_, L, T> {
    type Output = ();
    const SETS: Sets = Sets::All;

    #[inline(always)]
    fn run(self) {
        let [a, b, c] = self.args;
        Self::plain(self.to, a, b, c);
    }
}

/// Makes each operation a type and writes the match that runs it. `lanes! { Neg Exp(PLAIN_POWER reach exp_plain) }` expands to
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
///         fn limit<T: Real>() -> u32 { T::PLAIN_POWER }
///         fn reach<T: Real>(a: T) -> u32 { a.reach() }
///         fn near<T: Real>(a: T) -> T { a.exp_plain() }
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
    ($($op:ident $(($limit:ident $reach:ident $near:ident))?)*) => {
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
                fn reach<T: Real>(a: T) -> u32 {
                    a.$reach()
                }
                #[inline(always)]
                fn near<T: Real>(a: T) -> T {
                    a.$near()
                })?
            })*
        }

        /// One operation over the whole groups of a tile; operands are at least as long as the destination.
        pub(super) fn apply<T: Real>(op: TileOp, to: &mut [T], args: [&[T]; 3]) {
            match op {
                $(TileOp::$op => simd::run(Sweep::<ops::$op, T> { to, args, lane: PhantomData }),)*
            }
        }
    };
}

lanes! {
    Neg Abs Sign Sqrt Rsqrt Recip Tanh Relu Erf Floor Ceil Trunc Round Not
    Exp(PLAIN_POWER reach exp_plain) Sigmoid(PLAIN_POWER reach sigmoid_plain)
    Log(PLAIN_ARGUMENT reach_above_tiny ln_plain) Sin(NEAR reach sin_near) Cos(NEAR reach cos_near)
    Add Sub Mul Div Pow Min Max Eq Ne Lt Le Gt Ge And Or Where
}
