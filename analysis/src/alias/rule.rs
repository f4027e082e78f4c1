//! How an operator of the registry treats memory: read off its schema's annotations once per row, corrected by the
//! [`AliasRule`] and [`Effects`] facets where the annotations do not tell.

use super::dag::is_plain;
use flambeau_ir::schema::AliasSet;
use flambeau_ir::{AliasRule, Effects, FunctionSchema, OpId, Registry};

/// How a row is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Writes nothing, stores nothing, and results are plain new memory: nothing to record.
    Fast,
    /// As `Fast`, but a result may be a container of what operands hold, depending on types.
    Derive,
    /// The commonest annotations: the one result is argument `arg`, which is written or only viewed.
    View {
        /// The argument.
        arg: u8,
        /// Whether it is written.
        write: bool,
    },
    /// As its annotations say.
    Annotated,
    /// As its annotations and its rule say.
    Ruled(AliasRule),
    /// Anything is possible.
    Conservative,
}

/// The class of every row met so far.
///
/// A registry has thousands of rows and a graph few operators, so a row's entry is small: most graphs are too, and
/// clearing a table of classes would cost more than reading them.
#[derive(Clone, Default)]
pub(crate) struct Classes {
    /// By row: where its class stands in `known`, plus one.
    of_row: Vec<u16>,
    known: Vec<Class>,
}

impl Classes {
    pub(crate) fn of(&mut self, registry: &Registry, id: OpId) -> Class {
        let at = self.of_row.get(id.index()).copied().unwrap_or(0);
        if at != 0 {
            return self.known[usize::from(at) - 1];
        }
        self.meet(registry, id)
    }

    #[cold]
    fn meet(&mut self, registry: &Registry, id: OpId) -> Class {
        if self.of_row.is_empty() {
            self.of_row.resize(registry.len(), 0);
        }
        let class = classify(registry, id);
        // Beyond what an entry can name, classes are found anew each time.
        if let Ok(at) = u16::try_from(self.known.len() + 1) {
            self.known.push(class);
            self.of_row[id.index()] = at;
        }
        class
    }
}

fn classify(registry: &Registry, id: OpId) -> Class {
    if registry.effects(id).contains(Effects::CONSERVATIVE) {
        return Class::Conservative;
    }
    match registry.facet::<AliasRule>(id) {
        Some(AliasRule::Fresh) => return Class::Fast,
        Some(&rule) => return Class::Ruled(rule),
        None => {}
    }
    let schema = registry.schema(id);
    if let Some(view) = as_view(schema) {
        view
    } else if schema.has_aliases() {
        Class::Annotated
    } else if !schema.varret
        && schema.returns.iter().all(|r| !r.ty.has_vars() && (!r.ty.is_mutable() || is_plain(r.ty)))
    {
        Class::Fast
    } else {
        Class::Derive
    }
}

/// The class of `(Tensor(a) self, …) -> Tensor(a)` and its like.
fn as_view(schema: &FunctionSchema) -> Option<Class> {
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
    plain.then_some(Class::View { arg, write: from.write })
}

/// Whether results can come from the outside by the schema's annotations.
pub(crate) fn returns_wildcard(schema: &FunctionSchema) -> bool {
    let wild = |sets: &[AliasSet]| sets.contains(&AliasSet::Wildcard);
    schema.returns.iter().filter_map(|r| r.alias.as_ref()).any(|info| {
        wild(&info.before)
            || wild(&info.after)
            || info.contained.iter().any(|c| wild(&c.before) || wild(&c.after))
    })
}
