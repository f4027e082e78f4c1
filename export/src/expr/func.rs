//! The functions of symbolic expressions: SymPy's, and those that PyTorch adds.

/// Number of arguments: at least, at most.
type Arity = (usize, usize);

const ANY: usize = usize::MAX;

/// Generates the enum, the names, arities and precedences from one table:
/// `/// Doc. Variant = "Name", (min, max), precedence;`.
macro_rules! functions {
    ($($(#[doc = $doc:literal])* $func:ident = $name:literal, $arity:expr, $precedence:expr;)*) => {
        /// A function of a symbolic expression.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Func {
            $($(#[doc = $doc])* $func,)*
        }

        const ALL: &[Func] = &[$(Func::$func,)*];
        const NAMES: &[&str] = &[$($name,)*];
        const ARITIES: &[Arity] = &[$($arity,)*];
        const PRECEDENCES: &[u32] = &[$($precedence,)*];
    };
}

/// Precedences of SymPy's printer.
pub(super) mod precedence {
    pub(crate) const RELATIONAL: u32 = 35;
    pub(crate) const ADD: u32 = 40;
    pub(crate) const MUL: u32 = 50;
    pub(crate) const POW: u32 = 60;
    pub(crate) const FUNC: u32 = 70;
    pub(crate) const NOT: u32 = 100;
    pub(crate) const ATOM: u32 = 1000;
    /// Operands of `&` and of `|` below these are parenthesized.
    pub(crate) const BIT_AND: u32 = 38;
    pub(crate) const BIT_OR: u32 = 36;
    /// Most of PyTorch's functions, which binds them weaker than a sum.
    pub(crate) const WEAK: u32 = 35;
}

use precedence::{ADD, FUNC, MUL, NOT, POW, RELATIONAL, WEAK};

functions! {
    /// The sum of the arguments.
    Add = "Add", (1, ANY), ADD;
    /// The product of the arguments.
    Mul = "Mul", (1, ANY), MUL;
    /// Base and exponent.
    Pow = "Pow", (2, 2), POW;
    /// The maximum.
    Max = "Max", (1, ANY), FUNC;
    /// The minimum.
    Min = "Min", (1, ANY), FUNC;
    /// Whether both are equal.
    Eq = "Equality", (2, 2), MUL;
    /// Whether both differ.
    Ne = "Unequality", (2, 2), MUL;
    /// Greater or equal.
    Ge = "GreaterThan", (2, 2), RELATIONAL;
    /// Greater.
    Gt = "StrictGreaterThan", (2, 2), RELATIONAL;
    /// Less or equal.
    Le = "LessThan", (2, 2), RELATIONAL;
    /// Less.
    Lt = "StrictLessThan", (2, 2), RELATIONAL;
    /// Whether all are true.
    And = "And", (1, ANY), 30;
    /// Whether any is true.
    Or = "Or", (1, ANY), 20;
    /// The negation.
    Not = "Not", (1, 1), NOT;
    /// The quotient of integers, rounded down.
    FloorDiv = "FloorDiv", (2, 2), WEAK;
    /// `(a // b) % c`.
    ModularIndexing = "ModularIndexing", (3, 3), WEAK;
    /// Condition, value if true, value if false.
    Where = "Where", (3, 3), WEAK;
    /// The remainder with the sign of the divisor.
    PythonMod = "PythonMod", (2, 2), WEAK;
    /// The remainder of natural numbers.
    Mod = "Mod", (2, 2), WEAK;
    /// The quotient of integers that divide without remainder.
    CleanDiv = "CleanDiv", (2, 2), WEAK;
    /// The next integer that is not smaller.
    CeilToInt = "CeilToInt", (1, 1), FUNC;
    /// The next integer that is not greater.
    FloorToInt = "FloorToInt", (1, 1), FUNC;
    /// The quotient of integers, rounded up.
    CeilDiv = "CeilDiv", (2, 2), FUNC;
    /// `a * 2**b`.
    LShift = "LShift", (2, 2), FUNC;
    /// `a // 2**b`.
    RShift = "RShift", (2, 2), FUNC;
    /// An integer power of an integer.
    PowByNatural = "PowByNatural", (2, 2), MUL;
    /// A power of floats.
    FloatPow = "FloatPow", (2, 2), POW;
    /// The quotient of floats.
    FloatTrueDiv = "FloatTrueDiv", (2, 2), WEAK;
    /// The quotient of integers as a float.
    IntTrueDiv = "IntTrueDiv", (2, 2), WEAK;
    /// Truncation to a float.
    TruncToFloat = "TruncToFloat", (1, 1), FUNC;
    /// Truncation to an integer.
    TruncToInt = "TruncToInt", (1, 1), FUNC;
    /// The nearest integer; ties to even.
    RoundToInt = "RoundToInt", (1, 1), FUNC;
    /// The nearest float with a number of decimals.
    RoundDecimal = "RoundDecimal", (2, 2), FUNC;
    /// Conversion to a float.
    ToFloat = "ToFloat", (1, 1), FUNC;
    /// The argument, protected from simplification.
    Identity = "Identity", (1, 1), 10;
    /// Bitwise and.
    BitAnd = "BitwiseFn_bitwise_and", (2, 2), precedence::BIT_AND;
    /// Bitwise or.
    BitOr = "BitwiseFn_bitwise_or", (2, 2), precedence::BIT_OR;
    /// Square root.
    Sqrt = "OpaqueUnaryFn_sqrt", (1, 1), FUNC;
    /// Cosine.
    Cos = "OpaqueUnaryFn_cos", (1, 1), FUNC;
    /// Hyperbolic cosine.
    Cosh = "OpaqueUnaryFn_cosh", (1, 1), FUNC;
    /// Sine.
    Sin = "OpaqueUnaryFn_sin", (1, 1), FUNC;
    /// Hyperbolic sine.
    Sinh = "OpaqueUnaryFn_sinh", (1, 1), FUNC;
    /// Tangent.
    Tan = "OpaqueUnaryFn_tan", (1, 1), FUNC;
    /// Hyperbolic tangent.
    Tanh = "OpaqueUnaryFn_tanh", (1, 1), FUNC;
    /// Inverse sine.
    Asin = "OpaqueUnaryFn_asin", (1, 1), FUNC;
    /// Inverse cosine.
    Acos = "OpaqueUnaryFn_acos", (1, 1), FUNC;
    /// Inverse tangent.
    Atan = "OpaqueUnaryFn_atan", (1, 1), FUNC;
    /// Exponential function.
    Exp = "OpaqueUnaryFn_exp", (1, 1), FUNC;
    /// Natural logarithm.
    Log = "OpaqueUnaryFn_log", (1, 1), FUNC;
    /// Inverse hyperbolic sine.
    Asinh = "OpaqueUnaryFn_asinh", (1, 1), FUNC;
    /// Logarithm to base 2.
    Log2 = "OpaqueUnaryFn_log2", (1, 1), FUNC;
}

impl Func {
    /// Returns the name in constructor expressions.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// Returns the function with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Func> {
        NAMES.iter().position(|n| *n == name).map(|i| ALL[i])
    }

    /// Returns whether the function takes this number of arguments.
    #[must_use]
    pub fn accepts(self, args: usize) -> bool {
        let (min, max) = ARITIES[self as usize];
        (min..=max).contains(&args)
    }

    /// Returns how strongly the function binds when printed.
    pub(super) fn precedence(self) -> u32 {
        PRECEDENCES[self as usize]
    }

    /// Returns whether the result is a truth value.
    #[must_use]
    pub fn is_boolean(self) -> bool {
        use Func::{And, Eq, Ge, Gt, Le, Lt, Ne, Not, Or};
        matches!(self, Eq | Ne | Ge | Gt | Le | Lt | And | Or | Not)
    }

    /// Returns the infix operator of a relation; `None` for equality and inequality, which print as functions.
    pub(super) fn relation(self) -> Option<&'static str> {
        match self {
            Func::Ge => Some(">="),
            Func::Gt => Some(">"),
            Func::Le => Some("<="),
            Func::Lt => Some("<"),
            _ => None,
        }
    }
}
