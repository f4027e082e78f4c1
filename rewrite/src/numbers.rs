//! Lookup of overloads that differ in one argument, such as a number in place of a tensor.

use flambeau_exec::Kernel;
use flambeau_ir::{OpId, Registry, Type};

/// Returns the overload of `op` with the same arguments and results except for argument `index`, whose type satisfies
/// `is`. An overload without a kernel is skipped if `op` has one.
pub(crate) fn overload(
    registry: &Registry,
    op: OpId,
    index: usize,
    is: impl Fn(Type) -> bool,
) -> Option<OpId> {
    let schema = registry.schema(op);
    let fits = |&other: &OpId| {
        let o = registry.schema(other);
        o.args.len() == schema.args.len()
            && o.returns.len() == schema.returns.len()
            && o.returns.iter().zip(&schema.returns).all(|(a, b)| a.ty == b.ty)
            && o.args
                .iter()
                .zip(&schema.args)
                .enumerate()
                .all(|(i, (a, b))| a.name == b.name && if i == index { is(a.ty) } else { a.ty == b.ty })
            && (registry.facet::<Kernel>(op).is_none() || registry.facet::<Kernel>(other).is_some())
    };
    registry.overloads(schema.name).iter().copied().find(fits)
}
