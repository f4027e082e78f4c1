//! Types as source, under names that no two of them share.
//!
//! Types are told apart by qualified name and number; source has names only. So the first type of a name keeps it and
//! every later one gets a module of its own (`__torch__.___torch_mangle_0.Net`), as in PyTorch's archives.

use flambeau_ir::types::{TupleType, TypeKind};
use flambeau_ir::{Symbol, Type};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::{Definition, Printer};

/// The names given to types so far.
#[derive(Default)]
pub(super) struct TypeNames {
    names: HashMap<Type, Symbol, FxBuildHasher>,
    used: HashSet<Symbol, FxBuildHasher>,
    mangled: u64,
    /// Whether any type goes by another name than its own.
    renamed: bool,
}

/// The name that a type declares, if it is of a kind that is declared.
fn declared_name(ty: Type) -> Option<Symbol> {
    match ty.kind() {
        TypeKind::Class(n) | TypeKind::Interface(n) | TypeKind::Enum(n, _) => Some(n.name),
        TypeKind::Tuple(t) => t.named.as_ref().map(|n| n.name).filter(|n| !n.is_empty()),
        _ => None,
    }
}

impl TypeNames {
    /// The name of a type in the text.
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

    /// The type with all declared types in it under their names in the text. Types nest no deeper than
    /// [`Type::MAX_DEPTH`], so this may recurse.
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
    /// Asks for the definitions of all declared types in a type.
    pub(super) fn need_types(&mut self, ty: Type) {
        let mut stack = vec![ty];
        while let Some(ty) = stack.pop() {
            if self.types.name(ty).is_some() {
                self.needed.insert(Definition::Type(ty));
            }
            stack.extend(ty.kind().contained().into_iter().rev());
        }
    }

    /// A type as source.
    pub(super) fn spell(&mut self, ty: Type) -> String {
        self.need_types(ty);
        let ty = if self.types.renamed { self.types.renamed(ty) } else { ty };
        ty.annotation_str()
    }
}
