//! Reasons why a call matches no schema, with PyTorch's messages.

use std::fmt;

use super::Argument;
use crate::symbol::Symbol;
use crate::types::{NoClasses, Type, VarMismatch, is_subtype_why};

/// The reason why one schema does not match a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaMismatch {
    /// An argument has the wrong type.
    Type {
        /// The parameter.
        param: Symbol,
        /// The parameter's type.
        expected: Type,
        /// The parameter's type with variables bound.
        wanted: Type,
        /// The argument's type, after conversions.
        found: Type,
        /// Whether the argument is a tensor only because its type was not declared.
        inferred: bool,
        /// Whether the parameter is a tensor only because it has no annotation.
        parameter_inferred: bool,
    },
    /// The argument's type does not match the type variables of the parameter.
    Variables {
        /// The parameter.
        param: Symbol,
        /// The parameter's type.
        formal: Type,
        /// The argument's type.
        actual: Type,
        /// The mismatch.
        why: VarMismatch,
    },
    /// The arguments do not determine a type variable.
    Unbound {
        /// The parameter's or result's type.
        formal: Type,
        /// The argument's type.
        actual: Type,
    },
    /// A parameter without default has no argument.
    NotProvided(Symbol),
    /// One keyword argument for two parameters.
    SpecifiedTwice(Symbol),
    /// More arguments than parameters.
    TooMany {
        /// Number of arguments used.
        used: usize,
        /// Number of arguments given.
        given: usize,
    },
    /// A keyword that is not a parameter's name.
    KeywordUnknown(Symbol),
    /// A keyword for a parameter that already has an argument.
    KeywordTwice(Symbol),
    /// No parameter accepts the receiver.
    ReceiverUnused,
}

/// A candidate schema with the reason why it does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateFailure {
    /// The index of the candidate.
    pub schema: usize,
    /// The candidate's text.
    pub text: String,
    /// Number of parameters matched before the failure.
    pub matched_params: usize,
    /// The reason.
    pub mismatch: SchemaMismatch,
}

/// The reasons why no candidate matches a call: one failure per candidate, in order of the candidates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct CallError {
    /// The failures.
    pub failures: Vec<CandidateFailure>,
}

impl CallError {
    /// Returns the failures, ordered by descending number of matched parameters.
    #[must_use]
    pub fn ranked(&self) -> Vec<&CandidateFailure> {
        let mut ranked: Vec<&CandidateFailure> = self.failures.iter().collect();
        ranked.sort_by_key(|f| std::cmp::Reverse(f.matched_params));
        ranked
    }
}

impl fmt::Display for SchemaMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { param, expected, wanted, found, inferred, parameter_inferred } => {
                let parameter =
                    Argument { is_inferred: *parameter_inferred, ..Argument::new(*param, *expected) };
                writeln!(
                    f,
                    "Expected a value of type '{}' for argument '{param}' but instead found type '{}'.{}",
                    parameter.described_type(),
                    found.annotation(),
                    parameter.why_inferred(),
                )?;
                if *inferred {
                    writeln!(
                        f,
                        "Inferred the value for argument '{param}' to be of type 'Tensor' because it was not annotated \
                         with an explicit type."
                    )?;
                }
                if found.list_elem().is_some_and(Type::is_tensor) {
                    writeln!(
                        f,
                        "Empty lists default to List[Tensor]. Add a variable annotation to the assignment to create an \
                         empty list of another type (torch.jit.annotate(List[T, []]) where T is the type of elements in \
                         the list for Python 2)"
                    )?;
                }
                f.write_str(&is_subtype_why(*found, *wanted, &NoClasses).1)
            }
            Self::Variables { param, formal, actual, why } => writeln!(
                f,
                "Could not match type {} to {} in argument '{param}': {why}.",
                actual.annotation(),
                formal.annotation()
            ),
            Self::Unbound { formal, actual } => writeln!(
                f,
                "Type variables in type {} could not be inferred from actual type {}.",
                formal.annotation(),
                actual.annotation()
            ),
            Self::NotProvided(name) => writeln!(f, "Argument {name} not provided."),
            Self::SpecifiedTwice(name) => writeln!(f, "Argument {name} specified twice in schema."),
            Self::TooMany { used, given } => {
                writeln!(f, "Expected at most {used} arguments but found {given} positional arguments.")
            }
            Self::KeywordUnknown(name) => writeln!(f, "Keyword argument {name} unknown."),
            Self::KeywordTwice(name) => writeln!(f, "Keyword argument {name} specified twice."),
            Self::ReceiverUnused => writeln!(f, "Provided self argument not used in schema."),
        }
    }
}

impl fmt::Display for CandidateFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}:\n{}", self.text, self.mismatch)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.failures.as_slice() {
            return write!(f, "{only}");
        }
        f.write_str("Arguments for call are not valid.\nThe following variants are available:\n")?;
        for failure in &self.failures {
            for line in failure.to_string().split_inclusive('\n') {
                write!(f, "  {line}")?;
            }
        }
        f.write_str("\nThe original call is")
    }
}
