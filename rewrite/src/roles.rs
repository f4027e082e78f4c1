//! Lookup of the operators that passes insert, by role instead of name.

use crate::facets::OpRole;
use crate::pass::PassError;
use flambeau_ir::{Fault, OpId, Registry};

/// Returns the operator with a role.
///
/// # Errors
/// Returns an error if no operator of the registry has the role.
pub(crate) fn find(registry: &Registry, role: OpRole) -> Result<OpId, PassError> {
    let column = registry.column::<OpRole>();
    let found = column.iter().find(|(_, r)| **r == role).map(|(op, _)| op);
    found.ok_or_else(|| {
        PassError::new(Fault::Unsupported, format!("no operator of the registry has the role {role:?}"))
    })
}
