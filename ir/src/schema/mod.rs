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

// ---- Stand-ins until the schema parser lands: keep these names (used by registry, text reader and verifier). ----

/// Why a schema does not parse.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message} at byte {offset}")]
pub struct SchemaParseError {
    /// What is wrong.
    pub message: String,
    /// Where.
    pub offset: usize,
}

impl FunctionSchema {
    /// Parses a schema.
    pub fn parse(_text: &str) -> Result<Self, SchemaParseError> {
        Err(SchemaParseError { message: "no parser yet".into(), offset: 0 })
    }

    /// `ns::name.overload`.
    pub fn full_name(&self) -> String {
        if self.overload.is_empty() {
            self.name.to_string()
        } else {
            format!("{}.{}", self.name, self.overload)
        }
    }
}

/// Whether operands of these types can be passed as they are, defaults for missing ones.
pub fn accepts_types(_schema: &FunctionSchema, _types: &[Type]) -> bool {
    true
}
