//! The link from an in-place operator to its functional variant.

use super::{Facet, OpId, Registry};
use crate::symbol::Symbol;
use std::borrow::Cow;

/// The functional variant of an operator that writes its result into its first operand: an operator that computes the
/// same from the same arguments and returns new memory.
///
/// Passes replace one by the other, gradients of the functional variant apply to the in-place variant, and tests borrow
/// its samples. [`RegistryBuilder::build`](super::RegistryBuilder::build) states this facet about every operator whose
/// name is that of a functional operator with `_` behind it, if both have the same overload name and, up to the
/// annotation of the first, the same parameters. All other in-place operators state it themselves.
///
/// ```
/// use flambeau_ir::{InplaceOf, OpDef, RegistryBuilder};
///
/// let mut builder = RegistryBuilder::new();
/// builder.add([
///     OpDef::new("mine::swish(Tensor self) -> Tensor"),
///     OpDef::new("mine::swish_(Tensor(a!) self) -> Tensor(a!)"),
///     OpDef::new("mine::swish_into(Tensor(a!) self) -> Tensor(a!)").with(InplaceOf::named("mine::swish")),
///     OpDef::new("mine::touch_(Tensor(a!) self) -> Tensor(a!)").with(InplaceOf::NoVariant),
/// ]);
/// let registry = builder.build().expect("the schemas are right");
/// let functional = |name| registry.functional_variant(registry.lookup(name).expect("it was added"));
/// assert_eq!(functional("mine::swish_"), registry.lookup("mine::swish"));
/// assert_eq!(functional("mine::swish_into"), registry.lookup("mine::swish"));
/// assert_eq!(functional("mine::touch_"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InplaceOf {
    /// This operator, which exists in the registry. The arguments correspond by name, or else by position; it may have
    /// further parameters with defaults.
    Function(Symbol, Symbol),
    /// No operator computes the same without the write.
    NoVariant,
}

impl InplaceOf {
    /// States the functional variant by its name and overload: `aten::add.Tensor`.
    pub fn named(full: &str) -> Self {
        let (name, overload) = super::registry::split_overload(full);
        InplaceOf::Function(Symbol::new(name), Symbol::new(overload))
    }
}

impl Facet for InplaceOf {
    const NAME: &'static str = "in-place-of";
}

/// The rows whose names and schemas show their functional variant, and that state none, with the variant.
pub(super) fn derived(registry: &Registry) -> Vec<(OpId, InplaceOf)> {
    let column = registry.column::<InplaceOf>();
    let mut found = Vec::new();
    // The functional name of the last name; overloads of a name are consecutive.
    let mut last: Option<(Symbol, Option<Symbol>)> = None;
    for id in registry.ids() {
        let name = registry.name(id.into());
        let functional = match last {
            Some((known, functional)) if known == name => functional,
            _ => {
                let base = name.as_str().strip_suffix('_').filter(|base| !base.ends_with(['_', ':']));
                let functional = base.map(Symbol::new).filter(|&base| !registry.overloads(base).is_empty());
                last = Some((name, functional));
                functional
            }
        };
        let Some(functional) = functional.filter(|_| column.get(id).is_none()) else { continue };
        let overload = registry.overload_name(id);
        let Some(variant) = registry.find(functional, overload) else { continue };
        if are_variants(&registry.schema_text(id), &registry.schema_text(variant)) {
            found.push((id, InplaceOf::Function(functional, overload)));
        }
    }
    found
}

/// Whether two schemas have the same parameters up to the annotation of the first, which the first schema writes.
/// Compares texts, so that schemas that are never used are not parsed.
fn are_variants(writer: &str, function: &str) -> bool {
    let (Some((first, rest)), Some((other, more))) = (parameters(writer), parameters(function)) else {
        return false;
    };
    let (Cow::Owned(ty), other) = (unannotated(first), unannotated(other)) else { return false };
    first.contains("!)") && ty == other && rest == more
}

/// The type of the first parameter of a schema, and its name with all other parameters.
fn parameters(schema: &str) -> Option<(&str, &str)> {
    let start = schema.find('(')? + 1;
    schema[start..schema.rfind(") -> ")?].split_once(' ')
}

/// A type without its alias annotation.
fn unannotated(ty: &str) -> Cow<'_, str> {
    match (ty.find('('), ty.find(')')) {
        (Some(open), Some(close)) if open < close => {
            Cow::Owned(format!("{}{}", &ty[..open], &ty[close + 1..]))
        }
        _ => Cow::Borrowed(ty),
    }
}

#[cfg(test)]
mod tests {
    use super::are_variants;

    #[test]
    fn variants_have_the_same_parameters() {
        let writes = "t::f_.x(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)";
        assert!(are_variants(writes, "t::f.x(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"));
        assert!(!are_variants(writes, "t::f.x(Tensor self, Tensor other) -> Tensor"));
        assert!(!are_variants(writes, "t::f.x(Scalar self, Tensor other, *, Scalar alpha=1) -> Tensor"));
        assert!(are_variants("t::v_(Tensor(a!) self) -> Tensor(a!)", "t::v(Tensor(a) self) -> Tensor(a)"));
        assert!(are_variants(
            "t::l_(Tensor(a!)[] self, int n) -> ()",
            "t::l(Tensor[] self, int n) -> Tensor[]"
        ));
        assert!(!are_variants("t::r_(Tensor self) -> Tensor", "t::r(Tensor self) -> Tensor"));
    }
}
