//! Formulas: functions of real numbers that are written once and compiled for every float type.
//!
//! A formula is a type and not a closure: loops inline a method of a type whatever its size, whereas a large closure
//! may remain a call per element. [`formulas!`] declares one function per formula, which contains the formula as a type
//! and calls the driver that applies it to tensors. Drivers are defined next to the tables that use them.

use flambeau_tensor::loops::Map;
use flambeau_tensor::math::{Float, Real};
use flambeau_tensor::{Complex, Element};
use std::convert::identity;
use std::marker::PhantomData;

/// A function of `N` real numbers.
pub(crate) trait Formula<const N: usize>: Copy + Sync {
    /// The name of the function in error messages.
    const NAME: &'static str;
    /// The range of arguments in which [`Formula::near`] gives the same result.
    const RANGE: Range = Range::Nothing;

    /// Computes the function. Formulas that PyTorch computes in several operators apply `round` to each step.
    fn of<A: Real>(x: [A; N], round: impl Fn(A) -> A) -> A;

    /// Computes the function for an argument within the range, with fewer instructions; unspecified for other
    /// arguments.
    #[inline(always)]
    fn near<A: Real>(x: A) -> A {
        x
    }
}

/// A formula that is also defined on complex numbers.
pub(crate) trait ComplexFormula: Formula<1> {
    /// Computes the function in f64. `T` is the element type, to which some formulas round steps.
    fn of_complex<T: Element>(z: Complex<f64>) -> Complex<f64>;
}

/// A formula that is also defined on integers and booleans.
pub(crate) trait IntegerFormula: Formula<1> {
    /// Computes the function.
    fn of_integer<T: Element>(i: T) -> T;
}

/// A range of arguments, as [`Real`] defines it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    /// No argument.
    Nothing,
    /// Below [`Real::EXP_FAST_BELOW`].
    ExpFast,
    /// Below [`Real::LN_FAST_BELOW`].
    LnFast,
    /// Below [`Real::NEAR`].
    Near,
}

impl Range {
    const fn limit<A: Real>(self) -> u32 {
        match self {
            Range::Nothing => 0,
            Range::ExpFast => A::EXP_FAST_BELOW,
            Range::LnFast => A::LN_FAST_BELOW,
            Range::Near => A::NEAR,
        }
    }

    #[inline(always)]
    fn magnitude_bits<A: Real>(self, x: A) -> u32 {
        match self {
            Range::Nothing => 0,
            Range::LnFast => x.normal_magnitude_bits(),
            Range::ExpFast | Range::Near => x.magnitude_bits(),
        }
    }
}

/// Adapts a formula of one number to a loop.
#[derive(Clone, Copy)]
pub(crate) struct Each<F>(PhantomData<F>);

impl<F: Formula<1>> Each<F> {
    /// Creates the adapter for a formula.
    pub(crate) fn of(_: F) -> Each<F> {
        Each(PhantomData)
    }
}

impl<T: Float, F: Formula<1>> Map<T, T> for Each<F> {
    const LIMIT: u32 = F::RANGE.limit::<T::Acc>();

    #[inline(always)]
    fn at(self, v: T) -> T {
        T::from_acc(F::of([v.acc()], identity))
    }

    #[inline(always)]
    fn magnitude_bits(self, v: T) -> u32 {
        F::RANGE.magnitude_bits(v.acc())
    }

    #[inline(always)]
    fn near(self, v: T) -> T {
        T::from_acc(F::near(v.acc()))
    }
}

/// Converts a number to an element.
#[inline(always)]
pub(crate) fn n<T: Real>(x: f64) -> T {
    T::from_f64(x)
}

/// Declares functions that apply formulas. The first line has the signature that the functions share, and the call of
/// the driver, in which `This` is the formula. An entry may have a name for errors (`as "..."`), a name for the
/// function that rounds steps (`name(x, t; round)`), a variant for arguments near zero, and definitions on complex
/// numbers and integers.
///
/// `fn(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> = on_floats(This, x, hint);` followed by
/// `exp(x) = x.exp(), near ExpFast y = y.exp_fast();` expands to
///
/// ```text
/// fn exp(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
///     const N: usize = ["x"].len();
///     #[derive(Clone, Copy)]
///     struct This;
///     impl Formula<N> for This {
///         const NAME: &'static str = "exp";
///         #[inline(always)]
///         fn of<A: Real>([x]: [A; N], _round: impl Fn(A) -> A) -> A {
///             x.exp()
///         }
///         const RANGE: Range = Range::ExpFast;
///         #[inline(always)]
///         fn near<A: Real>(y: A) -> A {
///             y.exp_fast()
///         }
///     }
///     on_floats(This, x, hint)
/// }
/// ```
macro_rules! formulas {
    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident $text:literal) => { $text };
    (fn $parameters:tt -> $result:ty = $call:expr;
     $($name:ident($($x:ident),+ $(; $round:ident)?) $(as $text:literal)? = $body:expr
       $(, near $range:ident $y:ident = $near:expr)?
       $(, complex $z:ident = $complex:expr)?
       $(, integers $i:ident = $integer:expr)?;)*) => {$(
        fn $name $parameters -> $result {
            const N: usize = [$(stringify!($x)),+].len();

            #[derive(Clone, Copy)]
            struct This;

            impl $crate::pointwise::formula::Formula<N> for This {
                const NAME: &'static str = $crate::pointwise::formula::formulas!(@name $name $($text)?);

                #[inline(always)]
                fn of<A: flambeau_tensor::math::Real>([$($x),+]: [A; N], _round: impl Fn(A) -> A) -> A {
                    $(let $round = _round;)?
                    $body
                }

                $(const RANGE: $crate::pointwise::formula::Range = $crate::pointwise::formula::Range::$range;

                #[inline(always)]
                fn near<A: flambeau_tensor::math::Real>($y: A) -> A {
                    $near
                })?
            }

            $(impl $crate::pointwise::formula::ComplexFormula for This {
                #[inline(always)]
                fn of_complex<T: flambeau_tensor::Element>(
                    $z: flambeau_tensor::Complex<f64>,
                ) -> flambeau_tensor::Complex<f64> {
                    $complex
                }
            })?

            $(impl $crate::pointwise::formula::IntegerFormula for This {
                #[inline(always)]
                fn of_integer<T: flambeau_tensor::Element>($i: T) -> T {
                    $integer
                }
            })?

            $call
        }
    )*};
}
pub(crate) use formulas;
