//! What names of the language mean, each looked for once in a compilation.
//!
//! Namespaces and members of builtin values are tables of text ([`super::names`]) and rows of the registry; none of it
//! changes while a source is compiled.

use flambeau_ir::types::TypeKind;
use flambeau_ir::{Symbol, Type};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::names;
use super::session::Session;
use super::sugar::Sugar;

/// The builtin types whose members have tables of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Tensor,
    Device,
    Complex,
    Other,
}

impl Owner {
    pub(crate) fn of(ty: Type) -> Self {
        match ty.kind() {
            TypeKind::Tensor(_) => Owner::Tensor,
            TypeKind::Device => Owner::Device,
            TypeKind::Complex => Owner::Complex,
            _ => Owner::Other,
        }
    }

    /// As the tables call it.
    fn name(self) -> &'static str {
        match self {
            Owner::Tensor => "Tensor",
            Owner::Device => "Device",
            Owner::Complex => "complex",
            Owner::Other => "",
        }
    }
}

/// What a member of a value of a builtin type may be, going by its name.
#[derive(Clone, Copy)]
pub(crate) struct ValueMember {
    /// A conversion of a tensor to this dtype.
    pub(crate) cast: Option<i64>,
    /// An operator without arguments.
    pub(crate) property: Option<Symbol>,
    /// The operator that a method of this name is.
    pub(crate) operator: Symbol,
    /// Whether the registry has that.
    pub(crate) is_known: bool,
}

/// What names were found to mean.
#[derive(Default)]
pub(crate) struct KnownNames {
    globals: HashMap<Symbol, Option<Sugar>, FxBuildHasher>,
    members: HashMap<(Symbol, Symbol), Option<Sugar>, FxBuildHasher>,
    values: HashMap<(Owner, Symbol), ValueMember, FxBuildHasher>,
}

impl Session<'_> {
    /// A name that every program knows.
    pub(crate) fn global(&self, name: Symbol) -> Option<Sugar> {
        let mut known = self.known_names.borrow_mut();
        known.globals.entry(name).or_insert_with(|| names::global(name.as_str())).clone()
    }

    /// Is there an operator of the name?
    pub(crate) fn has_operator(&self, name: Symbol) -> bool {
        self.candidates(name).is_ok_and(|found| !found.is_empty())
    }

    /// A member of a namespace.
    pub(crate) fn member(&self, space: Symbol, name: Symbol) -> Option<Sugar> {
        if let Some(found) = self.known_names.borrow().members.get(&(space, name)) {
            return found.clone();
        }
        let script = |full: &str| match self.library_function(full) {
            Some(function) => Some(Sugar::Function(function)),
            None => self.library_class(full).map(Sugar::Class),
        };
        let found = names::member(self.registry(), space.as_str(), name.as_str(), &script);
        self.known_names.borrow_mut().members.insert((space, name), found.clone());
        found
    }

    /// A member of a value of a builtin type.
    pub(crate) fn value_member(&self, owner: Owner, name: Symbol) -> ValueMember {
        let mut known = self.known_names.borrow_mut();
        *known.values.entry((owner, name)).or_insert_with(|| {
            let text = name.as_str();
            let operator = Symbol::new(&format!("aten::{text}"));
            ValueMember {
                cast: if owner == Owner::Tensor { names::tensor_cast(text) } else { None },
                property: names::property(owner.name(), text).map(Symbol::new),
                operator,
                is_known: !self.registry().overloads(operator).is_empty(),
            }
        })
    }
}
