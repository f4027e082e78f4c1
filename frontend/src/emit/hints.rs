//! Which types a literal of a container may have by the annotation of the variable or result to which it is assigned.
//!
//! An annotation is a list or a dictionary, an optional of one, or a union with some of them as members. Of several members, the
//! elements select one. `Any` and type variables admit every container.

use flambeau_ir::Type;
use flambeau_ir::types::{TypeKind, unify};

use super::fun::{Cx, Res};
use crate::span::Span;
use crate::tree::{TreeId, TreeKind};

/// The class of a container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Container {
    List,
    Dict,
}

impl Container {
    fn name(self) -> &'static str {
        match self {
            Container::List => "List",
            Container::Dict => "Dict",
        }
    }

    fn holds(self, ty: Type) -> bool {
        match self {
            Container::List => ty.list_elem().is_some(),
            Container::Dict => ty.dict_types().is_some(),
        }
    }

    /// Returns the containers among the types that an annotation admits.
    fn admitted(self, annotated: Type) -> Vec<Type> {
        let plain = annotated.unwrap_optional();
        match plain.kind() {
            TypeKind::Union(members) => members.iter().copied().filter(|&ty| self.holds(ty)).collect(),
            _ => Some(plain).filter(|&ty| self.holds(ty)).into_iter().collect(),
        }
    }
}

/// Returns the only type that a type hint admits for a container.
pub(crate) fn admitted_type(container: Container, hint: Option<Type>) -> Option<Type> {
    match container.admitted(hint?).as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

impl Cx<'_> {
    /// Returns the types that a container may have by its type hint; none if every container fits.
    ///
    /// # Errors
    ///
    /// Returns an error if no container fits.
    pub(crate) fn candidates(&self, span: Span, container: Container, hint: Option<Type>) -> Res<Vec<Type>> {
        let Some(hint) = hint else { return Ok(Vec::new()) };
        let plain = hint.unwrap_optional();
        if matches!(plain.kind(), TypeKind::Any | TypeKind::AnyList | TypeKind::Var(_)) {
            return Ok(Vec::new());
        }
        let found = container.admitted(hint);
        if found.is_empty() {
            let (name, shown) = (container.name(), hint.annotation());
            let message = match plain.kind() {
                TypeKind::Union(_) => {
                    format!("Expected an Union type annotation with an inner {name} type, but got {shown}")
                }
                _ => format!("Expected an annotation of type {name} but got {shown}"),
            };
            return self.fail(span, message);
        }
        Ok(found)
    }

    /// Returns the only type that a container without elements may have; `None` if every container fits.
    ///
    /// # Errors
    ///
    /// Returns an error if no container fits, or several do.
    pub(crate) fn type_of_empty(
        &self,
        span: Span,
        container: Container,
        hint: Option<Type>,
    ) -> Res<Option<Type>> {
        let candidates = self.candidates(span, container, hint)?;
        if candidates.len() < 2 {
            return Ok(candidates.first().copied());
        }
        let name = container.name();
        let annotated = hint.map(|ty| ty.annotation().to_string()).unwrap_or_default();
        let message = format!(
            "Cannot assign an empty {} to a variable annotated to be type {annotated} because there are multiple \
             possible {name} type candidates in the Union annotation",
            name.to_lowercase()
        );
        self.fail(span, message)
    }

    /// Returns the type among the candidates for a container whose elements have the type `found` in a container of their own.
    ///
    /// # Errors
    ///
    /// Returns an error if none of several candidates holds the elements.
    pub(crate) fn choose(
        &self,
        span: Span,
        candidates: &[Type],
        hint: Option<Type>,
        found: Type,
    ) -> Res<Option<Type>> {
        if candidates.len() < 2 {
            return Ok(candidates.first().copied());
        }
        let parts = |ty: Type| match (ty.list_elem(), ty.dict_types()) {
            (Some(elem), _) => (elem, elem),
            (_, parts) => parts.unwrap_or((Type::ANY, Type::ANY)),
        };
        let (key, value) = parts(found);
        let mut chosen: Option<Type> = None;
        for &candidate in candidates {
            let (k, v) = parts(candidate);
            if !self.is_subtype(key, k) || !self.is_subtype(value, v) {
                continue;
            }
            chosen = Some(match chosen {
                None => candidate,
                Some(before) => unify(before, candidate, false, None, self.session).unwrap_or(before),
            });
        }
        if chosen.is_some() {
            return Ok(chosen);
        }
        let shown: Vec<String> = candidates.iter().map(|ty| ty.annotation().to_string()).collect();
        let shown = match shown.as_slice() {
            [first, last] => format!("{first} or {last}"),
            [first @ .., last] => format!("{}, or {last}", first.join(", ")),
            [] => String::new(),
        };
        let annotated = hint.map(|ty| ty.annotation().to_string()).unwrap_or_default();
        let rest = match found.list_elem() {
            Some(elem) => format!(
                "none of those types match the types of the given list elements, which were unified to {}",
                elem.annotation()
            ),
            None => format!(
                "none of those dict types can hold the types of the given keys and values, which were unified to {}",
                found.annotation()
            ),
        };
        self.fail(span, format!("Union type annotation `{annotated}` can hold {shown}, but {rest}"))
    }

    /// Returns the hint for a part of a literal. A literal that cannot have the type gets none: it is an error of the
    /// whole literal.
    pub(crate) fn part_hint(&self, part: TreeId, hint: Option<Type>) -> Option<Type> {
        let container = match self.kind(part) {
            TreeKind::ListLiteral | TreeKind::ListComp => Container::List,
            TreeKind::DictLiteral | TreeKind::DictComp => Container::Dict,
            _ => return hint,
        };
        hint.filter(|_| admitted_type(container, hint).is_some())
    }
}
