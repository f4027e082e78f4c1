//! Intrinsics: operations that the machine executes as instructions instead of kernel calls.
//!
//! The operator library assigns intrinsics to operators; this module contains no operator names. Each scalar operation
//! is defined once, in [`sem`], and used by the machine, the reference (through the default kernel) and constant
//! folding. Integers wrap, shift counts are taken modulo 64, `%` and `//` follow the sign of the divisor.

use crate::error::KernelError;
use crate::kernel::{KernelCx, KernelResult};
use flambeau_ir::Facet;
use flambeau_ir::value::{IValue, List, ListItems, Str};
use flambeau_tensor::{Scalar, Tensor, check_budget};

/// Type of a 64-bit word of the scalar bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarKind {
    /// A 64-bit integer.
    Int,
    /// The bits of an f64.
    Float,
    /// 0 or 1.
    Bool,
}

/// Types that are represented as words of the scalar bank.
pub trait Word: Copy {
    /// The kind of the word.
    const KIND: ScalarKind;
    /// Converts from a word.
    fn from_word(word: u64) -> Self;
    /// Converts to a word.
    fn to_word(self) -> u64;
}

impl Word for i64 {
    const KIND: ScalarKind = ScalarKind::Int;
    #[inline(always)]
    fn from_word(word: u64) -> i64 {
        word as i64
    }
    #[inline(always)]
    fn to_word(self) -> u64 {
        self as u64
    }
}

impl Word for f64 {
    const KIND: ScalarKind = ScalarKind::Float;
    #[inline(always)]
    fn from_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
    #[inline(always)]
    fn to_word(self) -> u64 {
        self.to_bits()
    }
}

impl Word for bool {
    const KIND: ScalarKind = ScalarKind::Bool;
    #[inline(always)]
    fn from_word(word: u64) -> bool {
        word != 0
    }
    #[inline(always)]
    fn to_word(self) -> u64 {
        u64::from(self)
    }
}

impl ScalarKind {
    /// Decodes the field of an instruction.
    #[inline(always)]
    pub(crate) fn of_field(field: u8) -> ScalarKind {
        match field & 3 {
            0 => ScalarKind::Int,
            1 => ScalarKind::Float,
            _ => ScalarKind::Bool,
        }
    }

    /// Converts a word to a value.
    #[inline]
    pub fn boxed(self, word: u64) -> IValue {
        match self {
            ScalarKind::Int => IValue::Int(word as i64),
            ScalarKind::Float => IValue::Float(f64::from_bits(word)),
            ScalarKind::Bool => IValue::Bool(word != 0),
        }
    }

    /// Converts a value to a word. Integers convert to floats and booleans to integers; other kinds must match.
    #[inline]
    pub fn unboxed(self, value: &IValue) -> Option<u64> {
        match (self, value) {
            (ScalarKind::Int, IValue::Int(v)) => Some(*v as u64),
            (ScalarKind::Float, IValue::Float(v)) => Some(v.to_bits()),
            (ScalarKind::Float, IValue::Int(v)) => Some((*v as f64).to_bits()),
            (ScalarKind::Bool, IValue::Bool(v)) => Some(u64::from(*v)),
            (ScalarKind::Int, IValue::Bool(v)) => Some(u64::from(*v)),
            // The result of a branch that never falls through. It is never read, so its word is arbitrary.
            (_, IValue::Uninitialized) => Some(0),
            _ => None,
        }
    }

    /// Returns the operation that converts a word of this kind to another; `None` if both are the same kind.
    pub(crate) fn conversion(self, to: ScalarKind) -> Option<ScalarOp> {
        match (self, to) {
            (ScalarKind::Int, ScalarKind::Float) => Some(ScalarOp::IToF),
            (ScalarKind::Bool, ScalarKind::Float) => Some(ScalarOp::BToF),
            (ScalarKind::Float, ScalarKind::Int) => Some(ScalarOp::FToI),
            (ScalarKind::Bool, ScalarKind::Int) => Some(ScalarOp::BToI),
            (ScalarKind::Int, ScalarKind::Bool) => Some(ScalarOp::IToB),
            (ScalarKind::Float, ScalarKind::Bool) => Some(ScalarOp::FToB),
            _ => None,
        }
    }

    /// Converts a real number to a word of this kind; `None` for complex numbers.
    #[inline]
    pub fn converted(self, number: Scalar) -> Option<u64> {
        match (self, number) {
            (_, Scalar::Complex(_)) => None,
            (ScalarKind::Int, number) => Some(number.to_i64() as u64),
            (ScalarKind::Float, number) => Some(number.to_f64().to_bits()),
            (ScalarKind::Bool, number) => Some(u64::from(number.to_bool())),
        }
    }
}

/// The failure of a scalar operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarFault {
    /// Integer division by zero.
    DivisionByZero,
    /// Integer remainder by zero.
    ModuloByZero,
    /// Zero to a negative power.
    ZeroToNegative,
    /// More numbers than an integer counts.
    TooManyNumbers,
}

impl From<ScalarFault> for KernelError {
    #[cold]
    fn from(fault: ScalarFault) -> KernelError {
        match fault {
            ScalarFault::DivisionByZero => KernelError::input("division by 0"),
            ScalarFault::ModuloByZero => KernelError::input("modulo by 0"),
            ScalarFault::ZeroToNegative => KernelError::input("0.0 cannot be raised to a negative power"),
            ScalarFault::TooManyNumbers => {
                KernelError::limit("a range has more elements than an int can count")
            }
        }
    }
}

/// Passes the tables of operations to the macro named first: in brackets the tokens after the name, in braces the
/// instructions that combine operations, then the scalar operations with parameters, result and definition.
///
/// An operation takes only a few machine instructions after its dispatch, and its result is stored and loaded again by the
/// next one, so a combination speeds up a short loop by a quarter to a half. There are four kinds:
///
/// - a *pair*: the result of the first operation is the left operand of the second;
/// - a *right pair*: it is the right operand;
/// - a *triple*: the result of a pair is the left operand of a third operation;
/// - a *test*: the result of the operation is compared, and decides a jump.
///
/// The intermediate results have no other use; the result of a test is stored. Of a pair or triple only the last operation may
/// fail, so that a failure belongs to it; the failure of a test belongs to its operation, since a comparison does not fail.
/// Combinations are those that programs execute often (`cargo xtask conform --count-instructions`, `flambeau run --profile`).
///
/// `for_each_operation!(define)` expands to
///
/// ```text
/// define! {
///     []
///     {
///         { IAddAdd = IAdd, IAdd; … }
///         { FMulRAdd = FMul, FAdd; … }
///         { IMulAddMod = IMul, IAdd, IMod; … }
///         { JIAndEq = IAnd, IEq; … }
///     }
///     IAdd(a: i64, b: i64) -> i64 = Ok(a.wrapping_add(b)); …
/// }
/// ```
macro_rules! for_each_operation {
    ($cb:ident $($extra:tt)*) => {
        $cb! {
            [$($extra)*]
            {
                {
                    IAddAdd = IAdd, IAdd;
                    IAddSub = IAdd, ISub;
                    IAddMul = IAdd, IMul;
                    IAddMod = IAdd, IMod;
                    IAddModBy = IAdd, IModBy;
                    ISubAdd = ISub, IAdd;
                    ISubSub = ISub, ISub;
                    ISubMul = ISub, IMul;
                    ISubMod = ISub, IMod;
                    ISubModBy = ISub, IModBy;
                    IMulAdd = IMul, IAdd;
                    IMulSub = IMul, ISub;
                    IMulMul = IMul, IMul;
                    IMulMod = IMul, IMod;
                    IMulModBy = IMul, IModBy;
                    FAddAdd = FAdd, FAdd;
                    FAddSub = FAdd, FSub;
                    FAddMul = FAdd, FMul;
                    FSubAdd = FSub, FAdd;
                    FSubSub = FSub, FSub;
                    FSubMul = FSub, FMul;
                    FMulAdd = FMul, FAdd;
                    FMulSub = FMul, FSub;
                    FMulMul = FMul, FMul;
                    IToFAdd = IToF, FAdd;
                    IToFSub = IToF, FSub;
                    IToFMul = IToF, FMul;
                    IToFDiv = IToF, FDiv;
                }
                {
                    IMulRSub = IMul, ISub;
                    FMulRAdd = FMul, FAdd;
                    FMulRSub = FMul, FSub;
                    FDivRAdd = FDiv, FAdd;
                    IToFRAdd = IToF, FAdd;
                    IToFRSub = IToF, FSub;
                    IToFRMul = IToF, FMul;
                    IToFRDiv = IToF, FDiv;
                }
                {
                    IAddMulAdd = IAdd, IMul, IAdd;
                    IMulAddMod = IMul, IAdd, IMod;
                    IMulAddModBy = IMul, IAdd, IModBy;
                    FMulMulAdd = FMul, FMul, FAdd;
                }
                {
                    JIAndEq = IAnd, IEq;
                    JIAndNe = IAnd, INe;
                    JIModEq = IMod, IEq;
                    JIModNe = IMod, INe;
                    JIModByEq = IModBy, IEq;
                    JIModByNe = IModBy, INe;
                    JIMulLt = IMul, ILt;
                    JIMulLe = IMul, ILe;
                    JIMulGt = IMul, IGt;
                    JIMulGe = IMul, IGe;
                }
            }
            IAdd(a: i64, b: i64) -> i64 = Ok(a.wrapping_add(b));
            ISub(a: i64, b: i64) -> i64 = Ok(a.wrapping_sub(b));
            IMul(a: i64, b: i64) -> i64 = Ok(a.wrapping_mul(b));
            IFloorDiv(a: i64, b: i64) -> i64 = floor_div(a, b);
            IMod(a: i64, b: i64) -> i64 = modulo(a, b);
            IModBy(a: i64, b: i64) -> i64 = modulo_by(a, b);
            IAnd(a: i64, b: i64) -> i64 = Ok(a & b);
            IOr(a: i64, b: i64) -> i64 = Ok(a | b);
            IXor(a: i64, b: i64) -> i64 = Ok(a ^ b);
            IShl(a: i64, b: i64) -> i64 = Ok(a.wrapping_shl(b as u32));
            IShr(a: i64, b: i64) -> i64 = Ok(a.wrapping_shr(b as u32));
            IMin(a: i64, b: i64) -> i64 = Ok(a.min(b));
            IMax(a: i64, b: i64) -> i64 = Ok(a.max(b));
            INeg(a: i64) -> i64 = Ok(a.wrapping_neg());
            IDistance(a: i64, b: i64) -> i64 = distance(a, b);
            IAbs(a: i64) -> i64 = Ok(a.wrapping_abs());
            INot(a: i64) -> i64 = Ok(!a);
            IEq(a: i64, b: i64) -> bool = Ok(a == b);
            INe(a: i64, b: i64) -> bool = Ok(a != b);
            ILt(a: i64, b: i64) -> bool = Ok(a < b);
            ILe(a: i64, b: i64) -> bool = Ok(a <= b);
            IGt(a: i64, b: i64) -> bool = Ok(a > b);
            IGe(a: i64, b: i64) -> bool = Ok(a >= b);
            FAdd(a: f64, b: f64) -> f64 = Ok(a + b);
            FSub(a: f64, b: f64) -> f64 = Ok(a - b);
            FMul(a: f64, b: f64) -> f64 = Ok(a * b);
            FDiv(a: f64, b: f64) -> f64 = Ok(a / b);
            FFloorDiv(a: f64, b: f64) -> f64 = Ok((a / b).floor());
            FMod(a: f64, b: f64) -> f64 = Ok((b + a % b) % b);
            FPow(a: f64, b: f64) -> f64 = power(a, b);
            FMin(a: f64, b: f64) -> f64 = Ok(if a < b { a } else { b });
            FMax(a: f64, b: f64) -> f64 = Ok(if a > b { a } else { b });
            FNeg(a: f64) -> f64 = Ok(-a);
            FAbs(a: f64) -> f64 = Ok(a.abs());
            FSqrt(a: f64) -> f64 = Ok(a.sqrt());
            FExp(a: f64) -> f64 = Ok(a.exp());
            FLog(a: f64) -> f64 = Ok(a.ln());
            FSin(a: f64) -> f64 = Ok(a.sin());
            FCos(a: f64) -> f64 = Ok(a.cos());
            FTanh(a: f64) -> f64 = Ok(a.tanh());
            FEq(a: f64, b: f64) -> bool = Ok(a == b);
            FNe(a: f64, b: f64) -> bool = Ok(a != b);
            FLt(a: f64, b: f64) -> bool = Ok(a < b);
            FLe(a: f64, b: f64) -> bool = Ok(a <= b);
            FGt(a: f64, b: f64) -> bool = Ok(a > b);
            FGe(a: f64, b: f64) -> bool = Ok(a >= b);
            BNot(a: bool) -> bool = Ok(!a);
            BAnd(a: bool, b: bool) -> bool = Ok(a & b);
            BOr(a: bool, b: bool) -> bool = Ok(a | b);
            BXor(a: bool, b: bool) -> bool = Ok(a ^ b);
            BEq(a: bool, b: bool) -> bool = Ok(a == b);
            IToF(a: i64) -> f64 = Ok(a as f64);
            FToI(a: f64) -> i64 = Ok(truncate(a));
            IToB(a: i64) -> bool = Ok(a != 0);
            FToB(a: f64) -> bool = Ok(a != 0.0);
            BToI(a: bool) -> i64 = Ok(i64::from(a));
            BToF(a: bool) -> f64 = Ok(f64::from(u8::from(a)));
        }
    };
}
pub(crate) use for_each_operation;

/// Defines [`ScalarOp`] and the functions that implement it from the table.
/// The row `IAdd(a: i64, b: i64) -> i64 = Ok(a.wrapping_add(b));` expands to
///
/// ```text
/// pub enum ScalarOp { IAdd, … }
/// // in `signature`:  ScalarOp::IAdd => (&[ScalarKind::Int, ScalarKind::Int], ScalarKind::Int),
/// // in `name`:       ScalarOp::IAdd => "IAdd",
/// // in `apply`:      ScalarOp::IAdd => words::IAdd(a, b),
/// // in `words`:
/// #[inline(always)]
/// pub(crate) fn IAdd(a: u64, b: u64) -> Result<u64, ScalarFault> {
///     sem::IAdd(a as i64, b as i64).map(Word::to_word)
/// }
/// // in `sem`:
/// #[inline(always)]
/// pub(crate) fn IAdd(a: i64, b: i64) -> Result<i64, ScalarFault> {
///     Ok(a.wrapping_add(b))
/// }
/// ```
macro_rules! define {
    ([] { $($combinations:tt)* } $($name:ident($($p:ident: $t:ty),*) -> $r:ty = $body:expr;)*) => {
        /// An operation on words: integers (`I`), f64 (`F`), booleans (`B`), conversions (`IToF`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the table above is the documentation: each name beside its meaning")]
        pub enum ScalarOp { $($name),* }

        impl ScalarOp {
            /// All operations.
            pub const ALL: &'static [ScalarOp] = &[$(ScalarOp::$name),*];

            /// Returns the kinds of the operands and of the result.
            pub fn signature(self) -> (&'static [ScalarKind], ScalarKind) {
                match self { $(ScalarOp::$name => (&[$(<$t as Word>::KIND),*], <$r as Word>::KIND)),* }
            }

            /// Returns the name used in listings.
            pub fn name(self) -> &'static str {
                match self { $(ScalarOp::$name => stringify!($name)),* }
            }

            /// Computes the operation on words; a unary operation ignores `b`.
            ///
            /// # Errors
            /// Returns the fault of an operation without result (division by zero, zero to a negative power).
            #[inline]
            pub fn apply(self, a: u64, b: u64) -> Result<u64, ScalarFault> {
                match self { $(ScalarOp::$name => words::$name(a, b)),* }
            }
        }

        /// The definitions, on words; a unary operation ignores `b`.
        #[allow(non_snake_case, reason = "named after the operations")]
        pub(crate) mod words {
            use super::{ScalarFault, Word, sem};

            $(#[inline(always)]
            pub(crate) fn $name(a: u64, b: u64) -> Result<u64, ScalarFault> {
                let mut words = [a, b].into_iter();
                $(let $p = <$t as Word>::from_word(words.next().unwrap_or(0));)*
                sem::$name($($p),*).map(Word::to_word)
            })*
        }

        /// The definitions.
        #[allow(non_snake_case, reason = "named after the operations")]
        pub(crate) mod sem {
            use super::ScalarFault;

            $(#[inline(always)]
            pub(crate) fn $name($($p: $t),*) -> Result<$r, ScalarFault> {
                #[allow(unused_imports, reason = "only some meanings need a helper")]
                use super::{distance, floor_div, modulo, modulo_by, power, truncate};
                $body
            })*
        }
    };
}
for_each_operation!(define);

impl ScalarOp {
    /// Whether the operation has no result for some operands. The divisor of [`ScalarOp::IModBy`] is a constant.
    pub fn may_fail(self) -> bool {
        matches!(self, ScalarOp::IFloorDiv | ScalarOp::IMod | ScalarOp::FPow | ScalarOp::IDistance)
    }
}

/// Division rounded towards minus infinity. `i64::MIN` by -1 wraps.
#[inline(always)]
fn floor_div(a: i64, b: i64) -> Result<i64, ScalarFault> {
    if (a | b) as u64 >> 32 == 0 {
        // Both are nonnegative and fit 32 bits: the narrow division is several times faster.
        return (a as u32).checked_div(b as u32).map(i64::from).ok_or(ScalarFault::DivisionByZero);
    }
    if b == 0 {
        return Err(ScalarFault::DivisionByZero);
    }
    let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
    Ok(if r != 0 && (r < 0) != (b < 0) { q - 1 } else { q })
}

/// The number of integers from `a` that are less than `b`.
#[inline(always)]
fn distance(a: i64, b: i64) -> Result<i64, ScalarFault> {
    if a < b { b.checked_sub(a).ok_or(ScalarFault::TooManyNumbers) } else { Ok(0) }
}

/// The remainder that belongs to [`floor_div`].
#[inline(always)]
fn modulo(a: i64, b: i64) -> Result<i64, ScalarFault> {
    if (a | b) as u64 >> 32 == 0 {
        return (a as u32).checked_rem(b as u32).map(i64::from).ok_or(ScalarFault::ModuloByZero);
    }
    if b == 0 {
        return Err(ScalarFault::ModuloByZero);
    }
    let r = a.wrapping_rem(b);
    Ok(if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
}

/// The remainder of a division by a [`SmallDivisor`].
#[inline(always)]
fn modulo_by(a: i64, divisor: i64) -> Result<i64, ScalarFault> {
    SmallDivisor(divisor as u64).modulo(a)
}

/// A constant divisor of 2 to 16 bits, in the low bits, and above them its reciprocal: `2^48` divided by it, rounded up.
///
/// The remainder of a dividend of at most 32 bits is the fraction of the product with the reciprocal, times the divisor: two
/// multiplications, where a division takes longer.
#[derive(Clone, Copy)]
pub(crate) struct SmallDivisor(pub(crate) u64);

impl SmallDivisor {
    const BITS: u32 = 16;

    /// Returns the word of a divisor that is not too large.
    pub(crate) fn of(divisor: u64) -> Option<SmallDivisor> {
        let reciprocal = (1u64 << 48).div_ceil(u64::max(divisor, 1));
        (2..1 << Self::BITS).contains(&divisor).then_some(SmallDivisor(reciprocal << Self::BITS | divisor))
    }

    /// Returns the divisor.
    #[inline(always)]
    pub(crate) fn divisor(self) -> u64 {
        self.0 & ((1 << Self::BITS) - 1)
    }

    #[inline(always)]
    fn modulo(self, a: i64) -> Result<i64, ScalarFault> {
        if a as u64 >> 32 != 0 {
            return modulo(a, self.divisor() as i64);
        }
        let fraction = (self.0 >> Self::BITS).wrapping_mul(a as u64) << Self::BITS;
        Ok(((u128::from(fraction) * u128::from(self.divisor())) >> 64) as i64)
    }
}

#[inline(always)]
fn power(a: f64, b: f64) -> Result<f64, ScalarFault> {
    if a == 0.0 && b < 0.0 { Err(ScalarFault::ZeroToNegative) } else { Ok(a.powf(b)) }
}

/// Truncates like x86: values out of range become `i64::MIN`.
#[inline(always)]
fn truncate(a: f64) -> i64 {
    if (-9.223372036854775808e18..9.223372036854775808e18).contains(&a) { a as i64 } else { i64::MIN }
}

/// The intrinsic that implements an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intrinsic {
    /// An operation on numbers. Operands of other number kinds are converted if their static type permits (integers and
    /// booleans to floats, booleans to integers).
    Scalar(ScalarOp),
    /// The conversion of a number to a kind: an instruction if the static type of the operand says which kind it has.
    /// Complex numbers are left to the kernel of the operator.
    Convert(ScalarKind),
    /// `(index, start, step) -> int`: `start + index * step`, an element of a range.
    RangeElement,
    /// `(start, stop, step) -> int`: the number of elements of a range.
    RangeLength,
    /// `(list) -> int`: the number of elements.
    ListLen,
    /// `(list, index) -> element`: negative indices count from the end.
    ListGet,
    /// `(list, index, element) -> list`: replaces an element and returns the list.
    ListSet,
    /// `(list, element) -> list`: appends and returns the list.
    ListAppend,
    /// `(a, b) -> bool`: whether both are the identical value.
    Is,
    /// `(a, b) -> bool`: whether they are not identical.
    IsNot,
    /// `(str) -> int`: the number of bytes.
    StrLen,
    /// `(str, index) -> str`: the byte at an index; negative indices count from the end.
    StrGet,
    /// `(str, str) -> bool`: equality.
    StrEqual,
    /// `(str, str) -> bool`: inequality.
    StrNotEqual,
}

impl Facet for Intrinsic {
    const NAME: &'static str = "intrinsic";
}

/// Facet of an operator that returns the only element of a tensor of any real dtype, as a number of its result's kind.
/// If its operand is the result of a select operator, `(self, dim, index)`, on a 1-d tensor, the machine reads the
/// element directly.
#[derive(Clone, Copy, Debug)]
pub struct OfElement {
    /// Name of the select operator, without its overload.
    pub selected_by: &'static str,
}

impl Facet for OfElement {
    const NAME: &'static str = "of_element";
}

/// Computes a product of two tensors, the second one transposed: the same elements as with a view. Returns `None` if it
/// supports the operands only with a view, and for errors.
pub type TransposedProduct = fn(&Tensor, &Tensor) -> Option<Tensor>;

/// Facet of a product of two tensors, `(a, b)`, for which the machine makes no view of a transposed second operand.
#[derive(Clone, Copy, Debug)]
pub struct OfTransposed {
    /// Name of the operator that transposes, without its overload; its only operand is the tensor.
    pub transposed_by: &'static str,
    /// The product with the operand before it is transposed.
    pub product: TransposedProduct,
}

impl Facet for OfTransposed {
    const NAME: &'static str = "of_transposed";
}

impl From<ScalarOp> for Intrinsic {
    fn from(op: ScalarOp) -> Self {
        Intrinsic::Scalar(op)
    }
}

impl Intrinsic {
    /// Returns the name used in listings.
    pub fn name(self) -> &'static str {
        match self {
            Intrinsic::Scalar(op) => op.name(),
            Intrinsic::Convert(_) => "Convert",
            Intrinsic::RangeElement => "RangeElement",
            Intrinsic::RangeLength => "RangeLength",
            Intrinsic::ListLen => "ListLen",
            Intrinsic::ListGet => "ListGet",
            Intrinsic::ListSet => "ListSet",
            Intrinsic::ListAppend => "ListAppend",
            Intrinsic::Is => "Is",
            Intrinsic::IsNot => "IsNot",
            Intrinsic::StrLen => "StrLen",
            Intrinsic::StrGet => "StrGet",
            Intrinsic::StrEqual => "StrEqual",
            Intrinsic::StrNotEqual => "StrNotEqual",
        }
    }

    /// Whether the operator reads its operands without passing them on: neither they nor their identities are observable
    /// afterwards.
    pub(crate) fn only_reads(self) -> bool {
        matches!(self, Intrinsic::StrLen | Intrinsic::StrGet | Intrinsic::StrEqual | Intrinsic::StrNotEqual)
    }

    /// Runs the intrinsic as a kernel.
    pub(crate) fn run(self, cx: &mut KernelCx<'_>) -> KernelResult {
        match self {
            Intrinsic::Scalar(op) => run_scalar(op, cx),
            Intrinsic::Convert(kind) => {
                let number = cx.scalar(0)?;
                let word = kind
                    .converted(number)
                    .ok_or_else(|| KernelError::input("a complex number has no conversion to a real one"))?;
                cx.ret(kind.boxed(word));
                Ok(())
            }
            Intrinsic::RangeElement => {
                let (index, start, step) = (cx.int(0)?, cx.int(1)?, cx.int(2)?);
                cx.ret(start.wrapping_add(index.wrapping_mul(step)));
                Ok(())
            }
            Intrinsic::RangeLength => {
                let length = range_length(cx.int(0)?, cx.int(1)?, cx.int(2)?)?;
                cx.ret(length);
                Ok(())
            }
            Intrinsic::ListLen => {
                let n = cx.list(0)?.len();
                cx.ret(n as i64);
                Ok(())
            }
            Intrinsic::ListGet => {
                let i = cx.int(1)?;
                let value = list_get(cx.list(0)?, i)?;
                cx.ret(value);
                Ok(())
            }
            Intrinsic::ListSet => {
                let (i, value) = (cx.int(1)?, cx.take(2));
                list_set(cx.list(0)?, i, value)?;
                let list = cx.take(0);
                cx.ret(list);
                Ok(())
            }
            Intrinsic::ListAppend => {
                let value = cx.take(1);
                list_append(cx.list(0)?, value)?;
                let list = cx.take(0);
                cx.ret(list);
                Ok(())
            }
            Intrinsic::Is | Intrinsic::IsNot => {
                let same = cx.arg(0)?.is_same(cx.arg(1)?);
                cx.ret(same == (self == Intrinsic::Is));
                Ok(())
            }
            Intrinsic::StrLen => {
                let n = cx.str_bytes(0)?.len();
                cx.ret(n as i64);
                Ok(())
            }
            Intrinsic::StrGet => {
                let (text, i) = (cx.str_bytes(0)?, cx.int(1)?);
                let byte = text[index_in(i, text.len()).ok_or_else(|| byte_error(text.len(), i))?];
                // Not the shared string of the byte: identity is observable.
                cx.ret(Str::from(vec![byte]));
                Ok(())
            }
            Intrinsic::StrEqual | Intrinsic::StrNotEqual => {
                let equal = cx.str_bytes(0)? == cx.str_bytes(1)?;
                cx.ret(equal == (self == Intrinsic::StrEqual));
                Ok(())
            }
        }
    }
}

fn run_scalar(op: ScalarOp, cx: &mut KernelCx<'_>) -> KernelResult {
    let (kinds, result) = op.signature();
    let mut words = [0; 2];
    for (i, kind) in kinds.iter().enumerate() {
        words[i] = match kind {
            ScalarKind::Int => cx.int(i)?.to_word(),
            ScalarKind::Float => cx.float(i)?.to_word(),
            ScalarKind::Bool => cx.boolean(i)?.to_word(),
        };
    }
    cx.ret(result.boxed(op.apply(words[0], words[1])?));
    Ok(())
}

/// Returns the number of elements of a range.
fn range_length(start: i64, stop: i64, step: i64) -> Result<i64, KernelError> {
    let (low, high) = match step {
        0 => return Err(KernelError::input("range() arg 3 must not be zero")),
        1.. => (start, stop),
        ..0 => (stop, start),
    };
    // Unsigned arithmetic, so that neither the distance nor the step overflows.
    let span = if low < high { high.wrapping_sub(low) as u64 } else { return Ok(0) };
    i64::try_from((span - 1) / step.unsigned_abs() + 1).map_err(|_| ScalarFault::TooManyNumbers.into())
}

/// Returns the error of an index that is not in a string.
#[cold]
pub(crate) fn byte_error(len: usize, i: i64) -> KernelError {
    let at = if i < 0 { i.wrapping_add(len as i64) } else { i } as u64;
    KernelError::input(format!("basic_string::at: __n (which is {at}) >= this->size() (which is {len})"))
}

#[cold]
pub(crate) fn index_error() -> KernelError {
    KernelError::new(flambeau_tensor::Fault::Input, "IndexError", "list index out of range")
}

/// Resolves a possibly negative index into a list of `len` elements; `None` if it is out of range.
#[inline(always)]
pub(crate) fn index_in(i: i64, len: usize) -> Option<usize> {
    let at = if i < 0 { i.wrapping_add(len as i64) } else { i };
    ((at as u64) < len as u64).then_some(at as usize)
}

/// Resolves a possibly negative index into a list of `len` elements.
#[inline]
pub(crate) fn wrap_index(i: i64, len: usize) -> Result<usize, KernelError> {
    index_in(i, len).ok_or_else(index_error)
}

/// Reads an element.
#[inline]
pub(crate) fn list_get(list: &List, i: i64) -> Result<IValue, KernelError> {
    get_item(&list.read(), i)
}

/// Reads an element of the contents of a list.
#[inline]
pub(crate) fn get_item(items: &ListItems, i: i64) -> Result<IValue, KernelError> {
    let at = wrap_index(i, items.len())?;
    Ok(items.get(at).expect("invariant: the index was checked"))
}

/// Replaces an element; the old one is dropped after the lock is released, since its destructor may run arbitrary code.
#[inline]
pub(crate) fn list_set(list: &List, i: i64, value: IValue) -> Result<(), KernelError> {
    let old = {
        let mut items = list.write();
        let at = wrap_index(i, items.len())?;
        replace_item(&mut items, at, value)
    };
    drop(old);
    Ok(())
}

/// Replaces the element at a position, and returns the old one if it may have a destructor.
#[inline]
pub(crate) fn replace_item(items: &mut ListItems, at: usize, value: IValue) -> Option<IValue> {
    let old = match &*items {
        ListItems::Values(v) => Some(v[at].clone()),
        _ => None,
    };
    items.set(at, value);
    old
}

/// Appends an element; growth of large lists is checked against the memory limit.
#[inline]
pub(crate) fn list_append(list: &List, value: IValue) -> Result<(), KernelError> {
    push_item(&mut list.write(), value)
}

/// Appends an element to the contents of a list.
#[inline]
pub(crate) fn push_item(items: &mut ListItems, value: IValue) -> Result<(), KernelError> {
    let n = items.len();
    if n >= GROWTH_CHECKED && n.is_power_of_two() {
        check_growth(n)?;
    }
    items.push(value);
    Ok(())
}

/// Lists shorter than this grow without a check.
pub(crate) const GROWTH_CHECKED: usize = 1024;

/// Returns an error if doubling a list of `n` elements exceeds the memory limit.
#[cold]
pub(crate) fn check_growth(n: usize) -> Result<(), KernelError> {
    Ok(check_budget(n.saturating_mul(2 * size_of::<IValue>()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int2(op: ScalarOp, a: i64, b: i64) -> Result<i64, ScalarFault> {
        op.apply(a as u64, b as u64).map(|w| w as i64)
    }

    fn float2(op: ScalarOp, a: f64, b: f64) -> f64 {
        op.apply(a.to_bits(), b.to_bits()).map(f64::from_bits).unwrap()
    }

    #[test]
    fn integers_divide_towards_minus_infinity() {
        for (a, b, q, r) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -3, -2, 0)] {
            assert_eq!(int2(ScalarOp::IFloorDiv, a, b), Ok(q));
            assert_eq!(int2(ScalarOp::IMod, a, b), Ok(r));
            let wide = 1 << 40;
            assert_eq!(int2(ScalarOp::IMod, a * wide, b * wide), Ok(r * wide));
        }
        assert_eq!(int2(ScalarOp::IFloorDiv, 1, 0), Err(ScalarFault::DivisionByZero));
        assert_eq!(int2(ScalarOp::IMod, 1 << 40, 0), Err(ScalarFault::ModuloByZero));
        assert_eq!(int2(ScalarOp::IFloorDiv, i64::MIN, -1), Ok(i64::MIN));
        assert_eq!(int2(ScalarOp::IMod, i64::MIN, -1), Ok(0));
    }

    #[test]
    fn remainders_by_small_constants_are_those_of_divisions() {
        assert!([0, 1, 1 << 16, 1 << 40].into_iter().all(|divisor| SmallDivisor::of(divisor).is_none()));
        for divisor in (2..2000).chain(65_000..65_536) {
            let by = SmallDivisor::of(divisor).expect("a small divisor");
            assert_eq!(by.divisor(), divisor);
            let (divisor, word) = (divisor as i64, by.0 as i64);
            let multiple = u32::MAX as i64 / divisor * divisor;
            let large = [u32::MAX as i64, 1 << 32, i64::MAX, i64::MIN, -1, -divisor];
            for a in (0..100).chain(multiple - 2..multiple + 2).chain(large) {
                assert_eq!(
                    int2(ScalarOp::IModBy, a, word),
                    int2(ScalarOp::IMod, a, divisor),
                    "{a} % {divisor}"
                );
            }
        }
    }

    #[test]
    fn shifts_count_modulo_64_and_integers_wrap() {
        assert_eq!(int2(ScalarOp::IShl, 1, 65), Ok(2));
        assert_eq!(int2(ScalarOp::IShl, 1, -1), Ok(i64::MIN));
        assert_eq!(int2(ScalarOp::IShr, -5, 70), Ok(-1));
        assert_eq!(int2(ScalarOp::IAdd, i64::MAX, 1), Ok(i64::MIN));
        assert_eq!(int2(ScalarOp::IAbs, i64::MIN, 0), Ok(i64::MIN));
    }

    #[test]
    fn f64_as_recorded() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert_eq!(float2(ScalarOp::FFloorDiv, -7.5, 2.0), -4.0);
        assert_eq!(float2(ScalarOp::FFloorDiv, 1.0, 0.0), inf);
        assert!(float2(ScalarOp::FMod, 5.0, inf).is_nan() && float2(ScalarOp::FMod, 1.0, 0.0).is_nan());
        assert_eq!(float2(ScalarOp::FMod, -7.5, 2.0), 0.5);
        assert!(float2(ScalarOp::FMod, 6.0, -3.0).is_sign_negative());
        assert_eq!(float2(ScalarOp::FMin, nan, 1.0), 1.0);
        assert!(float2(ScalarOp::FMin, 1.0, nan).is_nan());
        assert_eq!(ScalarOp::FPow.apply(0f64.to_bits(), (-1f64).to_bits()), Err(ScalarFault::ZeroToNegative));
        assert_eq!(ScalarOp::FToI.apply(nan.to_bits(), 0), Ok(i64::MIN as u64));
    }
}
