//! Unification: the least common supertype by TorchScript's rules.
//!
//! It determines the types of `if` results, list elements and returns.

use smallvec::SmallVec;

use super::{ClassEnv, NoClasses, Type, TypeKind, is_subtype};

/// Maximum number of members of a union, since construction compares every pair. A larger union is [`Type::OVERFLOW`].
const MAX_MEMBERS: usize = 256;

/// Returns the common supertype of `a` and `b`. If there is none and both are subtypes of `hint`, returns `hint`. With
/// `default_to_union`, unrelated types unify to their union.
#[must_use]
pub fn unify(
    a: Type,
    b: Type,
    default_to_union: bool,
    hint: Option<Type>,
    env: &dyn ClassEnv,
) -> Option<Type> {
    if a == b {
        return Some(a);
    }
    let joined = join(a, b, default_to_union, hint, env);
    if joined.is_none() && default_to_union { Some(Type::union(&[a, b])) } else { joined }
}

/// Unifies a list of types from left to right.
///
/// # Errors
/// Returns the index of the first type that does not unify with those before it; 0 if the list is empty.
pub fn unify_all(
    types: &[Type],
    default_to_union: bool,
    hint: Option<Type>,
    env: &dyn ClassEnv,
) -> Result<Type, usize> {
    let (&first, rest) = types.split_first().ok_or(0_usize)?;
    rest.iter()
        .enumerate()
        .try_fold(first, |joined, (i, &t)| unify(joined, t, default_to_union, hint, env).ok_or(i + 1))
}

/// Returns the least upper bound of `a` and `b` in the order of subtypes, or `hint` as [`unify`] does.
fn join(a: Type, b: Type, to_union: bool, hint: Option<Type>, env: &dyn ClassEnv) -> Option<Type> {
    let sub = |x, y| is_subtype(x, y, env);
    if sub(a, b) {
        return Some(b);
    }
    if sub(b, a) {
        return Some(a);
    }
    match (a.kind(), b.kind()) {
        (TypeKind::Tensor(x), TypeKind::Tensor(y)) => return Some(Type::tensor(x.merge(y))),
        (TypeKind::None, _) => return Some(Type::optional(b)),
        (_, TypeKind::None) => return Some(Type::optional(a)),
        (TypeKind::Optional(x), _) => {
            if let Some(inner) = unify(*x, b, false, None, env) {
                return Some(Type::optional(inner));
            }
        }
        (_, TypeKind::Optional(y)) => {
            if let Some(inner) = unify(*y, a, false, None, env) {
                return Some(Type::optional(inner));
            }
        }
        (TypeKind::Tuple(x), TypeKind::Tuple(y)) => {
            if x.elems.len() != y.elems.len() {
                return None;
            }
            let elems: Option<SmallVec<[Type; 8]>> =
                x.elems.iter().zip(&y.elems).map(|(&s, &t)| unify(s, t, to_union, None, env)).collect();
            return elems.map(|elems| Type::tuple(&elems));
        }
        (TypeKind::Future(x), TypeKind::Future(y)) => {
            if let Some(inner) = unify(*x, *y, false, None, env) {
                return Some(Type::future(inner));
            }
        }
        _ => {}
    }
    // Lists and dictionaries of differently refined tensors unify without refinement.
    let (x, y) = (a.erase_shapes(), b.erase_shapes());
    if sub(x, y) {
        return Some(y);
    }
    if sub(y, x) {
        return Some(x);
    }
    hint.filter(|&h| sub(a, h) && sub(b, h))
}

impl Type {
    /// Returns the union of the types: flattened, with members that unify merged, in PyTorch's order. Returns an
    /// optional if `None` and one other member remain, and the type itself if one member remains.
    #[must_use]
    pub fn union(types: &[Self]) -> Self {
        let mut members: SmallVec<[Self; 8]> = SmallVec::new();
        for &t in types {
            flatten(t, &mut members);
        }
        if members.len() > MAX_MEMBERS {
            members.sort_by_key(|t| t.index());
            members.dedup();
            if members.len() > MAX_MEMBERS {
                return Self::OVERFLOW;
            }
        }
        if members.is_empty() {
            return Self::NONE;
        }
        coalesce(&mut members);
        members.sort_by(|a, b| {
            rank(*a).cmp(&rank(*b)).then_with(|| a.str_text().to_string().cmp(&b.str_text().to_string()))
        });
        let numbers = [Self::FLOAT, Self::COMPLEX, Self::INT];
        match *members.as_slice() {
            [one] => one,
            [a, b] if a == Self::NONE || b == Self::NONE => {
                Self::intern(TypeKind::Optional(if a == Self::NONE { b } else { a }))
            }
            [a, b, c, d]
                if [a, b, c, d].contains(&Self::NONE) && numbers.iter().all(|n| members.contains(n)) =>
            {
                Self::intern(TypeKind::Optional(Self::NUMBER))
            }
            _ => Self::intern(TypeKind::Union(members.as_slice().into())),
        }
    }
}

fn flatten(t: Type, into: &mut SmallVec<[Type; 8]>) {
    match t.kind() {
        // The members of a union are flat already.
        TypeKind::Union(members) => into.extend_from_slice(members),
        TypeKind::Optional(inner) => {
            flatten(*inner, into);
            into.push(Type::NONE);
        }
        TypeKind::Number => into.extend([Type::INT, Type::FLOAT, Type::COMPLEX]),
        _ => into.push(t),
    }
}

/// Merges members that unify, from right to left. `None` is not merged with another member, because the result would be
/// an optional, which a union does not contain.
fn coalesce(types: &mut SmallVec<[Type; 8]>) {
    let mut end = types.len() - 1;
    for i in (1..types.len()).rev() {
        for j in (0..=(i - 1).min(end)).rev() {
            let (a, b) = (types[i], types[j]);
            if (a == Type::NONE) != (b == Type::NONE) {
                continue;
            }
            if let Some(joined) = unify(a, b, false, None, &NoClasses) {
                types[j] = joined;
                types[i] = types[end];
                end -= 1;
                break;
            }
        }
    }
    types.truncate(end + 1);
}

/// Returns the position of a kind in the order of union members.
fn rank(t: Type) -> u8 {
    match t.kind() {
        TypeKind::Any => 0,
        TypeKind::Enum(..) => 1,
        TypeKind::AnyEnum => 2,
        TypeKind::Tensor(_) => 3,
        TypeKind::Storage => 4,
        TypeKind::Tuple(_) => 5,
        TypeKind::List(_) => 6,
        TypeKind::Dict(..) => 7,
        TypeKind::Number => 8,
        TypeKind::Float => 9,
        TypeKind::Complex => 10,
        TypeKind::Future(_) => 11,
        TypeKind::Await(_) => 12,
        TypeKind::RRef(_) => 13,
        TypeKind::Int => 14,
        TypeKind::None => 15,
        TypeKind::Str => 16,
        TypeKind::Generator => 17,
        TypeKind::Quantizer => 18,
        TypeKind::Bool => 19,
        TypeKind::Optional(_) => 20,
        TypeKind::Var(_) => 21,
        TypeKind::Device => 22,
        TypeKind::Stream => 23,
        TypeKind::Function(_) => 24,
        TypeKind::Class(_) => 25,
        TypeKind::PyObject => 26,
        TypeKind::Capsule => 27,
        TypeKind::Interface(_) => 28,
        TypeKind::QScheme => 29,
        TypeKind::ScalarType => 30,
        TypeKind::Layout => 31,
        TypeKind::MemoryFormat => 32,
        TypeKind::AnyList => 33,
        TypeKind::AnyTuple => 34,
        TypeKind::AnyClass => 35,
        TypeKind::SymInt => 36,
        TypeKind::SymFloat => 37,
        TypeKind::SymBool => 38,
        TypeKind::Union(_) => 39,
        TypeKind::Overflow => 40,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(a: Type, b: Type) -> Option<Type> {
        unify(a, b, false, None, &NoClasses)
    }

    #[test]
    fn unions_normalise() {
        assert_eq!(Type::union(&[Type::INT, Type::NONE]), Type::OPTIONAL_INT);
        assert_eq!(Type::union(&[Type::INT, Type::TENSOR]).to_string(), "Union(Tensor, int)");
        assert_eq!(Type::union(&[Type::INT, Type::INT]), Type::INT);
        let three = Type::union(&[Type::STR, Type::optional(Type::union(&[Type::INT, Type::STR]))]);
        assert_eq!(three.to_string(), "Union(int, NoneType, str)");
        let numbers = [Type::INT, Type::FLOAT, Type::COMPLEX, Type::NONE];
        assert_eq!(Type::union(&numbers).to_string(), "Scalar?");
        assert_eq!(Type::union(&[Type::NUMBER, Type::STR]).to_string(), "Union(str, Scalar)");
        let many: Vec<Type> =
            (0..300).map(|i| Type::class(crate::Symbol::new(&format!("C{i}")), 0)).collect();
        assert_eq!(Type::union(&many), Type::OVERFLOW);
    }

    #[test]
    fn unification_follows_the_rules() {
        assert_eq!(plain(Type::INT, Type::FLOAT), None);
        assert_eq!(plain(Type::INT, Type::NONE), Some(Type::OPTIONAL_INT));
        let pair = |a, b| Type::tuple(&[a, b]);
        assert_eq!(
            plain(pair(Type::INT, Type::NONE), pair(Type::NONE, Type::STR)),
            Some(pair(Type::OPTIONAL_INT, Type::optional(Type::STR)))
        );
        assert_eq!(
            unify(Type::INT, Type::STR, true, None, &NoClasses),
            Some(Type::union(&[Type::INT, Type::STR]))
        );
        assert_eq!(unify_all(&[Type::INT, Type::INT, Type::STR], false, None, &NoClasses), Err(2));
    }
}
