//! The functions of symbolic expressions: SymPy's, and those that PyTorch adds.

/// Number of arguments: at least, at most.
type Arity = (usize, usize);

const ANY: usize = usize::MAX;

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

/// A function of a symbolic expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Func {
    /// The sum of the arguments.
    Add,
    /// The product of the arguments.
    Mul,
    /// Base and exponent.
    Pow,
    /// The maximum.
    Max,
    /// The minimum.
    Min,
    /// Whether both are equal.
    Eq,
    /// Whether both differ.
    Ne,
    /// Greater or equal.
    Ge,
    /// Greater.
    Gt,
    /// Less or equal.
    Le,
    /// Less.
    Lt,
    /// Whether all are true.
    And,
    /// Whether any is true.
    Or,
    /// The negation.
    Not,
    /// The quotient of integers, rounded down.
    FloorDiv,
    /// `(a // b) % c`.
    ModularIndexing,
    /// Condition, value if true, value if false.
    Where,
    /// The remainder with the sign of the divisor.
    PythonMod,
    /// The remainder of natural numbers.
    Mod,
    /// The quotient of integers that divide without remainder.
    CleanDiv,
    /// The next integer that is not smaller.
    CeilToInt,
    /// The next integer that is not greater.
    FloorToInt,
    /// The quotient of integers, rounded up.
    CeilDiv,
    /// `a * 2**b`.
    LShift,
    /// `a // 2**b`.
    RShift,
    /// An integer power of an integer.
    PowByNatural,
    /// A power of floats.
    FloatPow,
    /// The quotient of floats.
    FloatTrueDiv,
    /// The quotient of integers as a float.
    IntTrueDiv,
    /// Truncation to a float.
    TruncToFloat,
    /// Truncation to an integer.
    TruncToInt,
    /// The nearest integer; ties to even.
    RoundToInt,
    /// The nearest float with a number of decimals.
    RoundDecimal,
    /// Conversion to a float.
    ToFloat,
    /// The argument, protected from simplification.
    Identity,
    /// Bitwise and.
    BitAnd,
    /// Bitwise or.
    BitOr,
    /// Square root.
    Sqrt,
    /// Cosine.
    Cos,
    /// Hyperbolic cosine.
    Cosh,
    /// Sine.
    Sin,
    /// Hyperbolic sine.
    Sinh,
    /// Tangent.
    Tan,
    /// Hyperbolic tangent.
    Tanh,
    /// Inverse sine.
    Asin,
    /// Inverse cosine.
    Acos,
    /// Inverse tangent.
    Atan,
    /// Exponential function.
    Exp,
    /// Natural logarithm.
    Log,
    /// Inverse hyperbolic sine.
    Asinh,
    /// Logarithm to base 2.
    Log2,
    /// The value of the first of the pairs whose condition is true.
    Piecewise,
    /// A value and its condition, in `Piecewise`.
    ExprCondPair,
}

/// Name, number of arguments and precedence of each function, in the order of the variants.
const TABLE: &[(Func, &str, Arity, u32)] = &[
    (Func::Add, "Add", (1, ANY), ADD),
    (Func::Mul, "Mul", (1, ANY), MUL),
    (Func::Pow, "Pow", (2, 2), POW),
    (Func::Max, "Max", (1, ANY), FUNC),
    (Func::Min, "Min", (1, ANY), FUNC),
    (Func::Eq, "Equality", (2, 2), MUL),
    (Func::Ne, "Unequality", (2, 2), MUL),
    (Func::Ge, "GreaterThan", (2, 2), RELATIONAL),
    (Func::Gt, "StrictGreaterThan", (2, 2), RELATIONAL),
    (Func::Le, "LessThan", (2, 2), RELATIONAL),
    (Func::Lt, "StrictLessThan", (2, 2), RELATIONAL),
    (Func::And, "And", (1, ANY), 30),
    (Func::Or, "Or", (1, ANY), 20),
    (Func::Not, "Not", (1, 1), NOT),
    (Func::FloorDiv, "FloorDiv", (2, 2), WEAK),
    (Func::ModularIndexing, "ModularIndexing", (3, 3), WEAK),
    (Func::Where, "Where", (3, 3), WEAK),
    (Func::PythonMod, "PythonMod", (2, 2), WEAK),
    (Func::Mod, "Mod", (2, 2), WEAK),
    (Func::CleanDiv, "CleanDiv", (2, 2), WEAK),
    (Func::CeilToInt, "CeilToInt", (1, 1), FUNC),
    (Func::FloorToInt, "FloorToInt", (1, 1), FUNC),
    (Func::CeilDiv, "CeilDiv", (2, 2), FUNC),
    (Func::LShift, "LShift", (2, 2), FUNC),
    (Func::RShift, "RShift", (2, 2), FUNC),
    (Func::PowByNatural, "PowByNatural", (2, 2), MUL),
    (Func::FloatPow, "FloatPow", (2, 2), POW),
    (Func::FloatTrueDiv, "FloatTrueDiv", (2, 2), WEAK),
    (Func::IntTrueDiv, "IntTrueDiv", (2, 2), WEAK),
    (Func::TruncToFloat, "TruncToFloat", (1, 1), FUNC),
    (Func::TruncToInt, "TruncToInt", (1, 1), FUNC),
    (Func::RoundToInt, "RoundToInt", (1, 1), FUNC),
    (Func::RoundDecimal, "RoundDecimal", (2, 2), FUNC),
    (Func::ToFloat, "ToFloat", (1, 1), FUNC),
    (Func::Identity, "Identity", (1, 1), 10),
    (Func::BitAnd, "BitwiseFn_bitwise_and", (2, 2), precedence::BIT_AND),
    (Func::BitOr, "BitwiseFn_bitwise_or", (2, 2), precedence::BIT_OR),
    (Func::Sqrt, "OpaqueUnaryFn_sqrt", (1, 1), FUNC),
    (Func::Cos, "OpaqueUnaryFn_cos", (1, 1), FUNC),
    (Func::Cosh, "OpaqueUnaryFn_cosh", (1, 1), FUNC),
    (Func::Sin, "OpaqueUnaryFn_sin", (1, 1), FUNC),
    (Func::Sinh, "OpaqueUnaryFn_sinh", (1, 1), FUNC),
    (Func::Tan, "OpaqueUnaryFn_tan", (1, 1), FUNC),
    (Func::Tanh, "OpaqueUnaryFn_tanh", (1, 1), FUNC),
    (Func::Asin, "OpaqueUnaryFn_asin", (1, 1), FUNC),
    (Func::Acos, "OpaqueUnaryFn_acos", (1, 1), FUNC),
    (Func::Atan, "OpaqueUnaryFn_atan", (1, 1), FUNC),
    (Func::Exp, "OpaqueUnaryFn_exp", (1, 1), FUNC),
    (Func::Log, "OpaqueUnaryFn_log", (1, 1), FUNC),
    (Func::Asinh, "OpaqueUnaryFn_asinh", (1, 1), FUNC),
    (Func::Log2, "OpaqueUnaryFn_log2", (1, 1), FUNC),
    (Func::Piecewise, "Piecewise", (1, ANY), FUNC),
    (Func::ExprCondPair, "ExprCondPair", (2, 2), FUNC),
];

impl Func {
    /// Returns the name in constructor expressions.
    #[must_use]
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Returns the function with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Func> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Returns whether the function takes this number of arguments.
    #[must_use]
    pub fn accepts(self, args: usize) -> bool {
        let (min, max) = TABLE[self as usize].2;
        (min..=max).contains(&args)
    }

    /// Returns how strongly the function binds when printed.
    pub(super) fn precedence(self) -> u32 {
        TABLE[self as usize].3
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_variants() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, i, "{}", row.1);
            assert_eq!(Func::from_name(row.1), Some(row.0));
        }
    }
}
