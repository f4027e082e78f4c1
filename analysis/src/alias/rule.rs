//! Aliasing behavior of registry operators: computed once per row from the schema's annotations, corrected by the
//! facets [`AliasRule`] and [`Effects`].

use super::dag::is_location_without_contents;
use flambeau_ir::schema::AliasSet;
use flambeau_ir::{AliasRule, Effects, FunctionSchema, OpId, Registry};

/// The aliasing class of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AliasClass {
    /// Writes and stores nothing, and its results are plain new memory: no constraints.
    Fast,
    /// Like `Fast`, but depending on types a result may be a container with members of operands.
    Derive,
    /// The most common annotations: the only result is argument `arg`, which is written or viewed.
    View {
        /// Position of the argument.
        arg: u8,
        /// Whether the argument is written.
        write: bool,
    },
    /// Described by its annotations.
    Annotated,
    /// Described by its annotations and its rule.
    Ruled(AliasRule),
    /// May do anything.
    Conservative,
}

/// Cache of the classes of rows.
///
/// A registry has thousands of rows and a graph uses few operators, so the table has two bytes per row: initializing a table
/// of classes would take longer than computing the few classes that are used.
#[derive(Clone, Default)]
pub(crate) struct AliasClassCache {
    /// By row: index of its class in `known`, plus one.
    of_row: Vec<u16>,
    known: Vec<AliasClass>,
}

impl AliasClassCache {
    pub(crate) fn of(&mut self, registry: &Registry, id: OpId) -> AliasClass {
        let at = self.of_row.get(id.index()).copied().unwrap_or(0);
        if at != 0 {
            return self.known[usize::from(at) - 1];
        }
        self.compute(registry, id)
    }

    #[cold]
    fn compute(&mut self, registry: &Registry, id: OpId) -> AliasClass {
        if self.of_row.is_empty() {
            self.of_row.resize(registry.len(), 0);
        }
        let class = classify(registry, id);
        // Classes beyond the range of an entry are recomputed each time.
        if let Ok(at) = u16::try_from(self.known.len() + 1) {
            self.known.push(class);
            self.of_row[id.index()] = at;
        }
        class
    }
}

fn classify(registry: &Registry, id: OpId) -> AliasClass {
    if registry.effects(id).contains(Effects::CONSERVATIVE) {
        return AliasClass::Conservative;
    }
    match registry.facet::<AliasRule>(id) {
        Some(AliasRule::Fresh) => return AliasClass::Fast,
        Some(&rule) => return AliasClass::Ruled(rule),
        None => {}
    }
    let schema = registry.schema(id);
    if let Some(view) = as_view(schema) {
        view
    } else if schema.has_aliases() {
        AliasClass::Annotated
    } else if !schema.varret
        && schema
            .returns
            .iter()
            .all(|r| !r.ty.has_vars() && (!r.ty.is_mutable() || is_location_without_contents(r.ty)))
    {
        AliasClass::Fast
    } else {
        AliasClass::Derive
    }
}

/// The class of `(Tensor(a) self, …) -> Tensor(a)` and similar schemas.
fn as_view(schema: &FunctionSchema) -> Option<AliasClass> {
    let mut annotated = schema.args.iter().enumerate().filter(|(_, a)| a.alias.is_some());
    let (arg, argument) = annotated.next()?;
    let [result] = schema.returns.as_slice() else { return None };
    let (from, to) = (argument.alias.as_ref()?, result.alias.as_ref()?);
    let plain = argument.ty.is_tensor()
        && result.ty.is_tensor()
        && matches!(from.before.as_slice(), [AliasSet::Named(_)])
        && from.before == from.after
        && from.before == to.before
        && from.contained.is_empty()
        && to.contained.is_empty()
        && annotated.next().is_none()
        && !schema.vararg
        && !schema.varret;
    let arg = u8::try_from(arg).ok()?;
    plain.then_some(AliasClass::View { arg, write: from.write })
}

/// Whether a result can be a wildcard according to the schema's annotations.
pub(crate) fn returns_wildcard(schema: &FunctionSchema) -> bool {
    let wild = |sets: &[AliasSet]| sets.contains(&AliasSet::Wildcard);
    schema.returns.iter().filter_map(|r| r.alias.as_ref()).any(|info| {
        wild(&info.before)
            || wild(&info.after)
            || info.contained.iter().any(|c| wild(&c.before) || wild(&c.after))
    })
}
