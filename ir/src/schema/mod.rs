//! Operator and function schemas: names, arguments, defaults, and what may alias or be written.
//!
//! A schema's text is PyTorch's, read and printed back unchanged:
//! `aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)`.
//! An argument has two types: the *real* one as written (`ScalarType`, `SymInt[]`), and the one that programs see, where
//! those are integers.

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
pub use failure::{CallError, Failure, Mismatch};
pub use matching::{
    Arg, Binding, Call, Conversion, Conversions, MatchedSchema, ParamMatch, match_call, match_one,
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
    /// The overload: `Tensor` of `aten::add.Tensor`; empty if there is none.
    pub overload: Symbol,
    /// The parameters, keyword-only ones last.
    pub args: Vec<Argument>,
    /// The results.
    pub returns: Vec<Argument>,
    /// Whether any further arguments are taken.
    pub vararg: bool,
    /// Whether any further results are given.
    pub varret: bool,
}

/// A parameter or a result.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name; empty if it has none.
    pub name: Symbol,
    /// The type that programs see.
    pub ty: Type,
    /// The type as written.
    pub real_ty: Type,
    /// The size of a sized list (`int[2]`): one number stands for so many.
    pub n: Option<u32>,
    /// What it may alias, and whether it is written.
    pub alias: Option<AliasInfo>,
    /// Its default.
    pub default: Option<IValue>,
    /// Whether it must be given by name.
    pub kwarg_only: bool,
}

impl Argument {
    /// A parameter with a name and a type, nothing else.
    #[must_use]
    pub fn new(name: Symbol, ty: Type) -> Self {
        Self { name, ty: fake(ty), real_ty: ty, n: None, alias: None, default: None, kwarg_only: false }
    }

    /// A parameter with a default.
    #[must_use]
    pub fn with_default(self, default: IValue) -> Self {
        Self { default: Some(default), ..self }
    }

    /// Whether it is written, or the elements of a list are (`Tensor(a!)[] out`).
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.alias.as_ref().is_some_and(AliasInfo::writes)
    }

    /// Whether results are put into it (`*, Tensor(a!) out`, `*, Tensor(a!)[] out`).
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.kwarg_only && self.is_write()
    }
}

/// Defaults are compared as they print, so that NaN equals itself.
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

/// The type that programs see for a type as written.
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
    /// Reads a schema.
    ///
    /// # Errors
    /// If the text is not one schema and nothing else.
    pub fn parse(text: &str) -> Result<Self, SchemaParseError> {
        Self::parse_with(text, &NoNames)
    }

    /// Reads a schema whose class names are looked up in `names`.
    ///
    /// # Errors
    /// If the text is not one schema and nothing else.
    pub fn parse_with(text: &str, names: &dyn TypeNames) -> Result<Self, SchemaParseError> {
        parse::schema(text, names)
    }

    /// Name and overload: `aten::add.Tensor`.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.overload.is_empty() {
            self.name.to_string()
        } else {
            format!("{}.{}", self.name, self.overload)
        }
    }

    /// The position of a parameter by name.
    #[must_use]
    pub fn arg_index(&self, name: &str) -> Option<usize> {
        self.args.iter().position(|a| a.name == name)
    }

    /// Whether parameter `i` is written.
    #[must_use]
    pub fn is_write(&self, i: usize) -> bool {
        self.args.get(i).is_some_and(Argument::is_write)
    }

    /// Whether any parameter is written.
    #[must_use]
    pub fn is_mutable(&self) -> bool {
        self.args.iter().any(Argument::is_write)
    }

    /// Whether any parameter or result has an alias annotation.
    #[must_use]
    pub fn has_aliases(&self) -> bool {
        self.args.iter().chain(&self.returns).any(|a| a.alias.is_some())
    }

    /// The alias sets that occur, each once, in order of first occurrence; a set's place in this list is its small
    /// number.
    #[must_use]
    pub fn alias_sets(&self) -> Vec<AliasSet> {
        let mut sets = Vec::new();
        let infos = self.args.iter().chain(&self.returns).filter_map(|a| a.alias.as_ref());
        for info in infos {
            info.collect_sets(&mut sets);
        }
        sets
    }

    /// Parameters that may be given by position.
    pub fn positional(&self) -> impl Iterator<Item = &Argument> {
        self.args.iter().take_while(|a| !a.kwarg_only)
    }

    /// The type of the result: the one, or a tuple of several, with the fields' names if all have one.
    #[must_use]
    pub fn return_type(&self) -> Type {
        self.pack(&self.returns.iter().map(|r| r.ty).collect::<Vec<_>>())
    }

    /// [`FunctionSchema::return_type`] with these types for the results, say those of a [`MatchedSchema`].
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
