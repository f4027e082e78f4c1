//! Type variables of schemas: binding to the types of a call, and substitution in result types.

use smallvec::SmallVec;

use super::{ClassEnv, Type, TypeKind, unify, unify_all};
use crate::symbol::Symbol;

/// The types bound to variables. Schemas have one or two variables, so a list is the fastest map.
#[derive(Clone, Debug, Default)]
pub struct TypeBindings(SmallVec<[(Symbol, Type); 2]>);

impl TypeBindings {
    /// Returns the type bound to a variable.
    #[must_use]
    pub fn get(&self, var: Symbol) -> Option<Type> {
        self.0.iter().find(|(name, _)| *name == var).map(|(_, t)| *t)
    }

    fn bind(&mut self, var: Symbol, to: Type) {
        self.0.push((var, to));
    }

    /// Returns the type with every variable replaced; `None` if a variable is not bound.
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

/// The reason why type variables do not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VarMismatch {
    /// A variable is bound to a type that does not unify with another occurrence.
    #[error("Type variable '{var}' previously matched to type {} is matched to type {}", .before.annotation(), .actual.annotation())]
    Conflict {
        /// The variable.
        var: Symbol,
        /// The type bound first.
        before: Type,
        /// The type of the other occurrence.
        actual: Type,
    },
    /// The types have different structure.
    #[error("Cannot match {} to {}", type_constructor_name(*.formal), .actual.annotation())]
    Shape {
        /// The type with variables.
        formal: Type,
        /// The actual type.
        actual: Type,
    },
    /// Tuples of different lengths.
    #[error("Cannot match tuples of mismatched size")]
    TupleSize,
}

/// Returns the name of the outermost type constructor, as the error messages of PyTorch spell it.
fn type_constructor_name(formal: Type) -> String {
    match formal.kind() {
        TypeKind::Tuple(_) => "a tuple".to_owned(),
        TypeKind::Future(_) => "a future".to_owned(),
        TypeKind::Await(_) => "an await".to_owned(),
        TypeKind::RRef(_) => "a rref".to_owned(),
        TypeKind::Dict(..) => "a dict".to_owned(),
        _ => formal.annotation_str(),
    }
}

/// Binds the variables of `formal` so that `actual` may match. Success does not imply that `actual` is a subtype.
///
/// # Errors
/// Returns [`VarMismatch`] if no binding makes `actual` match.
pub fn match_type_variables(
    formal: Type,
    actual: Type,
    bound: &mut TypeBindings,
    env: &dyn ClassEnv,
) -> Result<(), VarMismatch> {
    if !formal.has_vars() {
        return Ok(());
    }
    match (formal.kind(), actual.kind()) {
        (TypeKind::Var(name), _) => match bound.get(*name) {
            None => {
                bound.bind(*name, actual);
                Ok(())
            }
            Some(before) if unify(before, actual, false, None, env).is_some() => Ok(()),
            Some(before) => Err(VarMismatch::Conflict { var: *name, before, actual }),
        },
        (TypeKind::List(f), TypeKind::Tuple(a)) if let Ok(elem) = unify_all(&a.elems, false, None, env) => {
            match_type_variables(*f, elem, bound, env)
        }
        (TypeKind::Tuple(f), TypeKind::Tuple(a)) => {
            if f.elems.len() != a.elems.len() {
                return Err(VarMismatch::TupleSize);
            }
            f.elems.iter().zip(&a.elems).try_for_each(|(&f, &a)| match_type_variables(f, a, bound, env))
        }
        (TypeKind::List(f), TypeKind::List(a))
        | (TypeKind::Future(f), TypeKind::Future(a))
        | (TypeKind::Await(f), TypeKind::Await(a))
        | (TypeKind::RRef(f), TypeKind::RRef(a))
        | (TypeKind::Optional(f), TypeKind::Optional(a)) => match_type_variables(*f, *a, bound, env),
        // `None` matches without binding the variable. A result that needs the variable reports it as unbound.
        (TypeKind::Optional(_), TypeKind::None) => Ok(()),
        (TypeKind::Optional(f), _) => match_type_variables(*f, actual, bound, env),
        (TypeKind::Dict(fk, fv), TypeKind::Dict(ak, av)) => {
            match_type_variables(*fk, *ak, bound, env)?;
            match_type_variables(*fv, *av, bound, env)
        }
        _ => Err(VarMismatch::Shape { formal, actual }),
    }
}
