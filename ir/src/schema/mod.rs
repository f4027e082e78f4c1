//! Operator and function schemas: names, arguments, aliasing, defaults.

use std::fmt;

use crate::symbol::Symbol;
use crate::types::Type;

/// The signature of an operator, function or method.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionSchema {
    /// The qualified name: `aten::add`.
    pub name: Symbol,
    /// The overload: `Tensor` of `aten::add.Tensor`; empty if there is none.
    pub overload: Symbol,
    /// The parameters.
    pub args: Vec<Argument>,
    /// The results.
    pub returns: Vec<Argument>,
    /// Whether any further arguments are taken.
    pub vararg: bool,
    /// Whether any further results are given.
    pub varret: bool,
}

/// A parameter or a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its name; empty if it has none.
    pub name: Symbol,
    /// The type that programs see.
    pub ty: Type,
}

impl fmt::Display for FunctionSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}
