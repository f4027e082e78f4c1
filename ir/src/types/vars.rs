//! Type variables of schemas: binding them to the types of a call, and putting the bindings into result types.

use smallvec::SmallVec;

use super::{ClassEnv, Type, TypeKind, unify, unify_all};
use crate::symbol::Symbol;

/// What each variable stands for. Schemas have one or two variables, so a list is the fastest map.
#[derive(Clone, Debug, Default)]
pub struct TypeBindings(SmallVec<[(Symbol, Type); 2]>);

impl TypeBindings {
    /// What the variable stands for.
    #[must_use]
    pub fn get(&self, var: Symbol) -> Option<Type> {
        self.0.iter().find(|(name, _)| *name == var).map(|(_, t)| *t)
    }

    fn bind(&mut self, var: Symbol, to: Type) {
        self.0.push((var, to));
    }

    /// The type with every variable replaced; `None` if one is not bound.
    #[must_use]
    pub fn apply(&self, ty: Type) -> Option<Type> {
        if !ty.has_vars() {
            return Some(ty);
        }
        if let TypeKind::Var(name) = ty.kind() {
            return self.get(*name);
        }
        let mut all = true;
        let applied = ty.map_contained(|part| {
            self.apply(part).unwrap_or_else(|| {
                all = false;
                part
            })
        });
        all.then_some(applied)
    }
}

/// Binds the variables of `formal` so that `actual` may fit it. Success does not say that it fits.
///
/// # Errors
/// Why it cannot fit, in PyTorch's words.
pub fn match_type_variables(
    formal: Type,
    actual: Type,
    bound: &mut TypeBindings,
    env: &dyn ClassEnv,
) -> Result<(), String> {
    if !formal.has_vars() {
        return Ok(());
    }
    let against = |what: &str| Err(format!("Cannot match {what} to {}", actual.annotation()));
    match (formal.kind(), actual.kind()) {
        (TypeKind::Var(name), _) => match bound.get(*name) {
            None => {
                bound.bind(*name, actual);
                Ok(())
            }
            Some(before) if unify(before, actual, false, None, env).is_some() => Ok(()),
            Some(before) => Err(format!(
                "Type variable '{name}' previously matched to type {} is matched to type {}",
                before.annotation(),
                actual.annotation()
            )),
        },
        (TypeKind::List(f), TypeKind::List(a)) => match_type_variables(*f, *a, bound, env),
        (TypeKind::List(f), TypeKind::Tuple(a)) if let Ok(elem) = unify_all(&a.elems, false, None, env) => {
            match_type_variables(*f, elem, bound, env)
        }
        (TypeKind::List(_), _) => against(&formal.annotation_str()),
        (TypeKind::Tuple(f), TypeKind::Tuple(a)) => {
            if f.elems.len() != a.elems.len() {
                return Err("Cannot match tuples of mismatched size".to_owned());
            }
            f.elems.iter().zip(&a.elems).try_for_each(|(&f, &a)| match_type_variables(f, a, bound, env))
        }
        (TypeKind::Tuple(_), _) => against("a tuple"),
        (TypeKind::Future(f), TypeKind::Future(a))
        | (TypeKind::Await(f), TypeKind::Await(a))
        | (TypeKind::RRef(f), TypeKind::RRef(a)) => match_type_variables(*f, *a, bound, env),
        (TypeKind::Future(_), _) => against("a future"),
        (TypeKind::Await(_), _) => against("an await"),
        (TypeKind::RRef(_), _) => against("a rref"),
        (TypeKind::Optional(f), TypeKind::Optional(a)) => match_type_variables(*f, *a, bound, env),
        // `None` fits without saying what the variable is; a result that needs it reports that later.
        (TypeKind::Optional(_), TypeKind::None) => Ok(()),
        (TypeKind::Optional(f), _) => match_type_variables(*f, actual, bound, env),
        (TypeKind::Dict(fk, fv), TypeKind::Dict(ak, av)) => {
            match_type_variables(*fk, *ak, bound, env)?;
            match_type_variables(*fv, *av, bound, env)
        }
        (TypeKind::Dict(..), _) => against("a dict"),
        _ => against(&formal.annotation_str()),
    }
}
