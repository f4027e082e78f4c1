//! Schemas of operators and functions: names, parameters, defaults, and alias annotations.
//!
//! The text of a schema is PyTorch's, parsed and printed back unchanged: `aten::add_.Tensor(Tensor(a!) self, Tensor
//! other, *, Scalar alpha=1) -> Tensor(a!)`. An argument has two types: the *real* type as written (`ScalarType`,
//! `SymInt[]`), and the type visible to programs, where `ScalarType`, `SymInt` and the like are integers.

mod alias;
mod exact;
mod failure;
mod matching;
mod parse;
mod print;
#[cfg(test)]
mod recorded;

pub use alias::{AliasInfo, AliasSet};
pub use exact::{accepts_types, resolve_exact};
pub use failure::{CallError, CandidateFailure, SchemaMismatch};
pub use matching::{
    ArgInfo, Binding, Conversion, Conversions, MatchedSchema, ParamMatch, SchemaCall, match_call, match_one,
};
pub use parse::{SchemaParseError, unquote};

use std::str::FromStr;

use crate::symbol::Symbol;
use crate::types::{NamedField, NoNames, Type, TypeKind, TypeNames};
use crate::value::IValue;

/// The signature of an operator, function or method.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionSchema {
    /// The qualified name: `aten::add`.
    pub name: Symbol,
    /// The overload name: `Tensor` of `aten::add.Tensor`; empty if there is none.
    pub overload: Symbol,
    /// The parameters, keyword-only parameters last.
    pub args: Vec<Argument>,
    /// The results.
    pub returns: Vec<Argument>,
    /// Whether the function accepts any number of further arguments.
    pub vararg: bool,
    /// Whether the function returns any number of further results.
    pub varret: bool,
}

/// A parameter or a result.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The name; empty if there is none.
    pub name: Symbol,
    /// The type visible to programs.
    pub ty: Type,
    /// The type as written.
    pub real_ty: Type,
    /// The size of a sized list (`int[2]`): a single number stands for a list of this many copies.
    pub n: Option<u32>,
    /// The alias annotation.
    pub alias: Option<AliasInfo>,
    /// The default value.
    pub default: Option<IValue>,
    /// Whether the argument must be passed by keyword.
    pub kwarg_only: bool,
    /// Whether the type is a tensor because the parameter has no annotation. Messages state it.
    pub is_inferred: bool,
}

impl Argument {
    /// Creates a parameter with a name and a type only.
    #[must_use]
    pub fn new(name: Symbol, ty: Type) -> Self {
        Self {
            name,
            ty: fake(ty),
            real_ty: ty,
            n: None,
            alias: None,
            default: None,
            kwarg_only: false,
            is_inferred: false,
        }
    }

    /// Returns the type as messages state it.
    #[must_use]
    pub fn described_type(&self) -> String {
        if self.is_inferred { "Tensor (inferred)".to_owned() } else { self.ty.annotation().to_string() }
    }

    /// Returns the reason for an inferred type, with a line break before it.
    #[must_use]
    pub fn why_inferred(&self) -> String {
        let why = || {
            format!(
                "\nInferred '{}' to be of type 'Tensor' because it was not annotated with an explicit type.",
                self.name
            )
        };
        self.is_inferred.then(why).unwrap_or_default()
    }

    /// Returns the parameter with a default.
    #[must_use]
    pub fn with_default(self, default: IValue) -> Self {
        Self { default: Some(default), ..self }
    }

    /// Returns whether the argument or its elements (`Tensor(a!)[] out`) are written.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.alias.as_ref().is_some_and(AliasInfo::writes)
    }

    /// Returns whether the argument receives results (`*, Tensor(a!) out`, `*, Tensor(a!)[] out`).
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.kwarg_only && self.is_write()
    }
}

/// Compares defaults by their printed form, so that NaN equals itself.
impl PartialEq for Argument {
    fn eq(&self, other: &Self) -> bool {
        let text = |default: &Option<IValue>| default.as_ref().map(|v| format!("{v:?}"));
        self.name == other.name
            && self.real_ty == other.real_ty
            && self.ty == other.ty
            && self.n == other.n
            && self.alias == other.alias
            && self.kwarg_only == other.kwarg_only
            && text(&self.default) == text(&other.default)
    }
}

/// Returns the type visible to programs for a type as written: enumerations such as `ScalarType`, and `SymInt`, become
/// `int`.
#[must_use]
pub fn fake(real: Type) -> Type {
    match real.kind() {
        TypeKind::Layout | TypeKind::MemoryFormat | TypeKind::ScalarType | TypeKind::SymInt => Type::INT,
        TypeKind::List(_)
        | TypeKind::Optional(_)
        | TypeKind::Dict(..)
        | TypeKind::Tuple(_)
        | TypeKind::Union(_)
        | TypeKind::Future(_)
        | TypeKind::Await(_)
        | TypeKind::RRef(_) => real.map_contained(fake),
        _ => real,
    }
}

impl FunctionSchema {
    /// Parses a schema.
    ///
    /// # Errors
    /// Returns [`SchemaParseError`] if the text is not exactly one schema.
    pub fn parse(text: &str) -> Result<Self, SchemaParseError> {
        Self::parse_with(text, &NoNames)
    }

    /// Parses a schema; class names are looked up in `names`.
    ///
    /// # Errors
    /// Returns [`SchemaParseError`] if the text is not exactly one schema.
    pub fn parse_with(text: &str, names: &dyn TypeNames) -> Result<Self, SchemaParseError> {
        parse::schema(text, names)
    }

    /// Returns name and overload: `aten::add.Tensor`.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.overload.is_empty() {
            self.name.to_string()
        } else {
            format!("{}.{}", self.name, self.overload)
        }
    }

    /// Returns the position of the parameter with a name.
    #[must_use]
    pub fn arg_index(&self, name: &str) -> Option<usize> {
        self.args.iter().position(|a| a.name == name)
    }

    /// Returns whether parameter `i` is written.
    #[must_use]
    pub fn is_write(&self, i: usize) -> bool {
        self.args.get(i).is_some_and(Argument::is_write)
    }

    /// Returns whether any parameter is written.
    #[must_use]
    pub fn is_mutable(&self) -> bool {
        self.args.iter().any(Argument::is_write)
    }

    /// Returns whether any parameter or result has an alias annotation.
    #[must_use]
    pub fn has_aliases(&self) -> bool {
        self.args.iter().chain(&self.returns).any(|a| a.alias.is_some())
    }

    /// Returns the alias sets of the schema without duplicates, in order of first occurrence. The index in this list
    /// serves as a dense number of the set.
    #[must_use]
    pub fn alias_sets(&self) -> Vec<AliasSet> {
        let mut sets = Vec::new();
        let infos = self.args.iter().chain(&self.returns).filter_map(|a| a.alias.as_ref());
        for info in infos {
            info.collect_sets(&mut sets);
        }
        sets
    }

    /// Returns the parameters that accept positional arguments.
    pub fn positional(&self) -> impl Iterator<Item = &Argument> {
        self.args.iter().take_while(|a| !a.kwarg_only)
    }

    /// Returns the type of the result; several results form a tuple, with field names if all results have names.
    #[must_use]
    pub fn return_type(&self) -> Type {
        self.pack(&self.returns.iter().map(|r| r.ty).collect::<Vec<_>>())
    }

    /// As [`FunctionSchema::return_type`] with the given result types, for example those of a [`MatchedSchema`].
    #[must_use]
    pub fn pack(&self, types: &[Type]) -> Type {
        if let [one] = types {
            return *one;
        }
        if types.is_empty()
            || types.len() != self.returns.len()
            || self.returns.iter().any(|r| r.name.is_empty())
        {
            return Type::tuple(types);
        }
        let field = |r: &Argument| NamedField { name: r.name, default: None };
        let fields: Vec<(NamedField, Type)> =
            self.returns.iter().map(field).zip(types.iter().copied()).collect();
        Type::named_tuple(Symbol::EMPTY, &fields)
    }
}

impl FromStr for FunctionSchema {
    type Err = SchemaParseError;

    fn from_str(text: &str) -> Result<Self, SchemaParseError> {
        Self::parse(text)
    }
}
