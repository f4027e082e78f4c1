//! Printing of types, under names that are unique in the program.
//!
//! Types are identified by qualified name and number, but source only has names. The first type of a name keeps it.
//! Every later one gets a module of its own (`__torch__.___torch_mangle_0.Net`), as in PyTorch's archives.

use flambeau_ir::types::{TupleType, TypeKind};
use flambeau_ir::{Symbol, Type};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::{Definition, Printer};

/// The names assigned to types so far.
#[derive(Default)]
pub(super) struct PrintedTypeNames {
    names: HashMap<Type, Symbol, FxBuildHasher>,
    used: HashSet<Symbol, FxBuildHasher>,
    mangled: u64,
    /// True if a type has a name other than its own.
    renamed: bool,
}

/// Returns the declared name of a type, or `None` if types of this kind are not declared.
fn declared_name(ty: Type) -> Option<Symbol> {
    match ty.kind() {
        TypeKind::Class(n) | TypeKind::Interface(n) | TypeKind::Enum(n, _) => Some(n.name),
        TypeKind::Tuple(t) => t.named.as_ref().map(|n| n.name).filter(|n| !n.is_empty()),
        _ => None,
    }
}

impl PrintedTypeNames {
    /// Returns the name of a type in the text; assigns one at the first call.
    pub(super) fn name(&mut self, ty: Type) -> Option<Symbol> {
        if let Some(&name) = self.names.get(&ty) {
            return Some(name);
        }
        let own = declared_name(ty)?;
        let mut name = own;
        while !self.used.insert(name) {
            let (module, last) = own.as_str().rsplit_once('.').unwrap_or(("__torch__", own.as_str()));
            name = Symbol::new(&format!("{module}.___torch_mangle_{}.{last}", self.mangled));
            self.mangled += 1;
            self.renamed = true;
        }
        self.names.insert(ty, name);
        Some(name)
    }

    /// Returns the type with all declared types in it under their names in the text. The recursion is bounded by
    /// [`Type::MAX_DEPTH`].
    fn renamed(&mut self, ty: Type) -> Type {
        let map = |names: &mut Self, ts: &[Type]| ts.iter().map(|&t| names.renamed(t)).collect::<Vec<_>>();
        match ty.kind() {
            TypeKind::Class(_) | TypeKind::Interface(_) | TypeKind::Enum(..) => {
                self.name(ty).map_or(ty, |name| Type::class(name, 0))
            }
            TypeKind::Tuple(TupleType { named: Some(named), .. }) if !named.name.is_empty() => {
                self.name(ty).map_or(ty, |name| Type::class(name, 0))
            }
            TypeKind::Tuple(t) => Type::tuple(&map(self, &t.elems)),
            TypeKind::Union(ts) => Type::union(&map(self, ts)),
            TypeKind::List(t) => Type::list(self.renamed(*t)),
            TypeKind::Optional(t) => Type::optional(self.renamed(*t)),
            TypeKind::Future(t) => Type::future(self.renamed(*t)),
            TypeKind::Await(t) => Type::awaitable(self.renamed(*t)),
            TypeKind::RRef(t) => Type::rref(self.renamed(*t)),
            TypeKind::Dict(k, v) => Type::dict(self.renamed(*k), self.renamed(*v)),
            _ => ty,
        }
    }
}

impl Printer<'_> {
    /// Adds the definitions of all declared types in a type to the referenced definitions.
    pub(super) fn need_types(&mut self, ty: Type) {
        let mut stack = vec![ty];
        while let Some(ty) = stack.pop() {
            if self.types.name(ty).is_some() {
                self.needed.insert(Definition::Type(ty));
            }
            stack.extend(ty.kind().contained().into_iter().rev());
        }
    }

    /// Returns a type as source.
    pub(super) fn type_source(&mut self, ty: Type) -> String {
        self.need_types(ty);
        let ty = if self.types.renamed { self.types.renamed(ty) } else { ty };
        ty.annotation_str()
    }
}
