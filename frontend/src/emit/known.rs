//! Caches of name lookups: each builtin name is resolved once per compilation.
//!
//! Namespaces and members of builtin values come from text tables ([`super::names`]) and from the registry. Neither
//! changes during a compilation, so entries are never invalidated.

use flambeau_ir::types::TypeKind;
use flambeau_ir::{Symbol, Type};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::names;
use super::session::CompileSession;
use super::sugar::Sugar;

/// Builtin types whose members have their own tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BuiltinType {
    Tensor,
    Device,
    Complex,
    Other,
}

impl BuiltinType {
    pub(crate) fn of(ty: Type) -> Self {
        match ty.kind() {
            TypeKind::Tensor(_) => BuiltinType::Tensor,
            TypeKind::Device => BuiltinType::Device,
            TypeKind::Complex => BuiltinType::Complex,
            _ => BuiltinType::Other,
        }
    }

    /// Returns the key of the type in the tables.
    fn name(self) -> &'static str {
        match self {
            BuiltinType::Tensor => "Tensor",
            BuiltinType::Device => "Device",
            BuiltinType::Complex => "complex",
            BuiltinType::Other => "",
        }
    }
}

/// Candidate meanings of a member name on a value of a builtin type.
#[derive(Clone, Copy)]
pub(crate) struct ValueMember {
    /// The target dtype, if the member is a dtype cast of a tensor.
    pub(crate) cast: Option<i64>,
    /// The operator without arguments, if the member is a property.
    pub(crate) property: Option<Symbol>,
    /// The operator `aten::<name>`, if the member is a method.
    pub(crate) operator: Symbol,
}

/// Results of past lookups.
#[derive(Default)]
pub(crate) struct KnownNames {
    globals: HashMap<Symbol, Option<Sugar>, FxBuildHasher>,
    members: HashMap<(Symbol, Symbol), Option<Sugar>, FxBuildHasher>,
    values: HashMap<(BuiltinType, Symbol), ValueMember, FxBuildHasher>,
}

impl CompileSession<'_> {
    /// Looks up a global name of the language.
    pub(crate) fn global(&self, name: Symbol) -> Option<Sugar> {
        let mut known = self.known_names.borrow_mut();
        known.globals.entry(name).or_insert_with(|| names::global(name.as_str())).clone()
    }

    /// Returns true if there is an operator of this name.
    pub(crate) fn has_operator(&self, name: Symbol) -> bool {
        self.candidates(name).is_ok_and(|found| !found.is_empty())
    }

    /// Looks up a member of a namespace.
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

    /// Looks up a member of a value of a builtin type.
    pub(crate) fn value_member(&self, owner: BuiltinType, name: Symbol) -> ValueMember {
        let mut known = self.known_names.borrow_mut();
        *known.values.entry((owner, name)).or_insert_with(|| {
            let text = name.as_str();
            let operator = Symbol::new(&format!("aten::{text}"));
            ValueMember {
                cast: if owner == BuiltinType::Tensor { names::tensor_cast(text) } else { None },
                property: names::property(owner.name(), text).map(Symbol::new),
                operator,
            }
        })
    }
}
