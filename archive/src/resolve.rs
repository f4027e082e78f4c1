//! Resolver for the names of archived code: `__torch__.net.Block` and `CONSTANTS.c3`.
//!
//! Functions are not resolved here: they are declared in the session under their qualified names.

use std::sync::Arc;

use flambeau_frontend::{Overload, Resolver, Sugar};
use flambeau_ir::{Diagnostic, IValue, Registry, Symbol, Type};

use crate::link::{QualifiedItem, QualifiedNames};
use crate::upgrade::former_overloads;

/// Resolves names in the results of linking.
pub(crate) struct ArchiveResolver {
    names: QualifiedNames,
    constants: Vec<IValue>,
    version: u64,
}

impl ArchiveResolver {
    pub(crate) fn new(names: QualifiedNames, constants: Vec<IValue>, version: u64) -> Self {
        ArchiveResolver { names, constants, version }
    }
}

impl Resolver for ArchiveResolver {
    fn value(&self, name: &str) -> Option<Sugar> {
        let number = name.strip_prefix("CONSTANTS.c")?;
        let value = self.constants.get(number.parse::<usize>().ok()?)?;
        Some(Sugar::Constant(value.clone()))
    }

    fn ty(&self, name: &str) -> Option<Type> {
        match self.names.get(name) {
            Some(QualifiedItem::Type(ty)) => Some(*ty),
            _ => None,
        }
    }

    fn overloads(&self, registry: &Arc<Registry>, name: Symbol) -> Result<Vec<Overload>, Box<Diagnostic>> {
        former_overloads(registry, name, self.version)
    }

    fn supports_python_functions(&self) -> bool {
        false
    }
}
