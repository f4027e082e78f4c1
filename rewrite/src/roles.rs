//! Finding the operators that passes build with, by what they are and not by name.

use crate::facets::Role;
use crate::pass::PassError;
use flambeau_ir::{Fault, OpId, Registry};

/// The operator that has a role in a registry.
///
/// # Errors
/// If none has.
pub(crate) fn find(registry: &Registry, role: Role) -> Result<OpId, PassError> {
    let column = registry.column::<Role>();
    let found = column.iter().find(|(_, r)| **r == role).map(|(op, _)| op);
    found.ok_or_else(|| {
        PassError::new(Fault::Unsupported, format!("no operator of the registry has the role {role:?}"))
    })
}
