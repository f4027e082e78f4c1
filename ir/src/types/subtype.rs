//! The subtype relation.
//!
//! Lists and dictionaries are invariant. Tuples, optionals, futures, awaitables and references are covariant. A refined
//! tensor is a subtype of every tensor type with fewer properties. Int, float and complex are subtypes of `Scalar`;
//! bool is not. Classes are nominal and are subtypes of the interfaces whose methods they have. The recursion is
//! bounded by the depth of types. [`Type::OVERFLOW`] is related only to itself.

use super::{ClassEnv, Type, TypeKind};
use crate::schema::FunctionSchema;

/// Returns whether `a` is a subtype of `b`.
#[must_use]
pub fn is_subtype(a: Type, b: Type, env: &dyn ClassEnv) -> bool {
    Relation { env, assumed: Vec::new(), why: None }.holds(a, b)
}

/// As [`is_subtype`], with the reason if the result is false: one sentence per line, or empty if the two types say
/// enough.
#[must_use]
pub fn is_subtype_why(a: Type, b: Type, env: &dyn ClassEnv) -> (bool, String) {
    let mut relation = Relation { env, assumed: Vec::new(), why: Some(String::new()) };
    let holds = relation.holds(a, b);
    (holds, relation.why.filter(|_| !holds).unwrap_or_default())
}

/// Returns whether a value may have both types, so that a value of one may be declared with the other after a check or
/// after shapes were erased. Undecidable cases (classes that may implement an interface, type variables) return true.
#[must_use]
pub fn may_share_values(a: Type, b: Type, env: &dyn ClassEnv) -> bool {
    if a == b {
        return true;
    }
    let share = |x: Type, y: Type| may_share_values(x, y, env);
    match (a.kind(), b.kind()) {
        (TypeKind::Optional(x), _) => b.may_be_none() || share(*x, b),
        (_, TypeKind::Optional(y)) => a.may_be_none() || share(a, *y),
        (TypeKind::Union(members), _) => members.iter().any(|&m| share(m, b)),
        (_, TypeKind::Union(members)) => members.iter().any(|&m| share(a, m)),
        (TypeKind::Tensor(_), TypeKind::Tensor(_))
        | (TypeKind::Interface(_), TypeKind::Class(_) | TypeKind::Interface(_))
        | (TypeKind::Class(_), TypeKind::Interface(_))
        | (TypeKind::Var(_), _)
        | (_, TypeKind::Var(_)) => true,
        (TypeKind::Tuple(x), TypeKind::Tuple(y)) => {
            x.elems.len() == y.elems.len() && x.elems.iter().zip(&*y.elems).all(|(&x, &y)| share(x, y))
        }
        (TypeKind::Dict(key, value), TypeKind::Dict(k, v)) => share(*key, *k) && share(*value, *v),
        (TypeKind::List(x), TypeKind::List(y))
        | (TypeKind::Future(x), TypeKind::Future(y))
        | (TypeKind::Await(x), TypeKind::Await(y))
        | (TypeKind::RRef(x), TypeKind::RRef(y)) => share(*x, *y),
        _ => is_subtype(a, b, env) || is_subtype(b, a, env),
    }
}

struct Relation<'a> {
    env: &'a dyn ClassEnv,
    /// Pairs that are being decided. An interface may refer to itself; a pair that is being decided is assumed to hold.
    assumed: Vec<(Type, Type)>,
    why: Option<String>,
}

impl Relation<'_> {
    fn holds(&mut self, a: Type, b: Type) -> bool {
        if a == b {
            return true;
        }
        // The type stands for unknown types, so no relation to another type can be decided, not even to `Any`.
        if a == Type::OVERFLOW || b == Type::OVERFLOW {
            return false;
        }
        if b == Type::ANY {
            return true;
        }
        match (a.kind(), b.kind()) {
            (TypeKind::Union(members), _) => members.iter().all(|&m| self.holds(m, b)),
            (TypeKind::Optional(t), _) => b.may_be_none() && self.holds(*t, b),
            (TypeKind::None, TypeKind::Optional(_)) => true,
            (TypeKind::Number, TypeKind::Union(members)) => {
                [Type::INT, Type::FLOAT, Type::COMPLEX].iter().all(|t| members.contains(t))
            }
            (_, TypeKind::Optional(t)) => self.holds(a, *t),
            (_, TypeKind::Union(members)) => members.iter().any(|&m| self.holds(a, m)),
            (TypeKind::Int | TypeKind::Float | TypeKind::Complex, TypeKind::Number) => true,
            (TypeKind::Tensor(x), TypeKind::Tensor(y)) => x.implies(y),
            (TypeKind::Tuple(_), TypeKind::Tuple(_)) => self.tuples(a, b),
            (TypeKind::Tuple(_), TypeKind::AnyTuple)
            | (TypeKind::List(_), TypeKind::AnyList)
            | (TypeKind::Class(_), TypeKind::AnyClass)
            | (TypeKind::Enum(..), TypeKind::AnyEnum) => true,
            (TypeKind::Future(x), TypeKind::Future(y))
            | (TypeKind::Await(x), TypeKind::Await(y))
            | (TypeKind::RRef(x), TypeKind::RRef(y)) => self.holds(*x, *y),
            (TypeKind::Class(_) | TypeKind::Interface(_), TypeKind::Interface(_)) => self.interface(a, b),
            _ => false,
        }
    }

    fn tuples(&mut self, a: Type, b: Type) -> bool {
        let (x, y) = (a.as_tuple(), b.as_tuple());
        let (x, y) = (x.expect("invariant: a tuple"), y.expect("invariant: a tuple"));
        let names = match (&x.named, &y.named) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(n), Some(m)) => {
                n.fields.len() == m.fields.len()
                    && n.fields.iter().zip(&m.fields).all(|(f, g)| f.name == g.name)
            }
        };
        names
            && x.elems.len() == y.elems.len()
            && x.elems.iter().zip(&y.elems).all(|(&s, &t)| self.holds(s, t))
    }

    fn interface(&mut self, a: Type, b: Type) -> bool {
        if self.assumed.contains(&(a, b)) {
            return true;
        }
        let Some(methods) = self.env.interface_methods(b) else { return false };
        if self.env.is_module(b) && !self.env.is_module(a) {
            self.explain(|| {
                format!(
                    "Class '{}' is not a subtype of the module interface '{}', only ScriptModule class can be subtype of \
                     module interface.",
                    a.annotation(),
                    b.annotation()
                )
            });
            return false;
        }
        if self.assumed.len() >= Type::MAX_DEPTH as usize {
            return false;
        }
        self.assumed.push((a, b));
        let all = methods.into_iter().all(|name| {
            let (Some(own), Some(wanted)) = (self.env.method(a, name), self.env.method(b, name)) else {
                self.explain(|| {
                    let (a, b) = (a.annotation(), b.annotation());
                    format!("Class '{a}' does not have method '{name}' but '{b}' does.")
                });
                return false;
            };
            let fits = self.schemas(&own, &wanted);
            if !fits {
                self.explain(|| {
                    let (a, b) = (a.annotation(), b.annotation());
                    format!("Method on class '{a}' (1) is not compatible with interface '{b}' (2)\n  (1) {own}\n  (2) {wanted}")
                });
            }
            fits
        });
        self.assumed.pop();
        all
    }

    /// Compares method schemas: contravariant in parameters (after `self`), covariant in results. The names must be
    /// equal; defaults are not compared.
    fn schemas(&mut self, own: &FunctionSchema, wanted: &FunctionSchema) -> bool {
        let own_args = own.args.get(1..).unwrap_or_default();
        let wanted_args = wanted.args.get(1..).unwrap_or_default();
        own_args.len() == wanted_args.len()
            && own.returns.len() == wanted.returns.len()
            && wanted_args.iter().zip(own_args).all(|(w, o)| w.name == o.name && self.holds(w.ty, o.ty))
            && own
                .returns
                .iter()
                .zip(&wanted.returns)
                .all(|(o, w)| o.name == w.name && self.holds(o.ty, w.ty))
    }

    fn explain(&mut self, text: impl FnOnce() -> String) {
        if let Some(why) = &mut self.why {
            why.push_str(&text());
            why.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::symbol::Symbol;
    use crate::types::{NamedField, NoClasses};

    /// Schemas of methods by class or interface. A name that starts with `I` is an interface.
    struct Env(Vec<(Type, Vec<&'static str>)>);

    impl Env {
        fn methods(&self, ty: Type) -> impl Iterator<Item = FunctionSchema> {
            let found = self.0.iter().find(|(t, _)| *t == ty).map(|(_, methods)| methods.clone());
            found
                .unwrap_or_default()
                .into_iter()
                .map(|text| FunctionSchema::parse_with(text, self).expect("a schema"))
        }
    }

    impl crate::types::TypeNames for Env {
        fn resolve(&self, name: &str) -> Option<Type> {
            self.0.iter().map(|(t, _)| *t).find(|t| t.annotation_str() == name)
        }
    }

    impl ClassEnv for Env {
        fn interface_methods(&self, interface: Type) -> Option<Vec<Symbol>> {
            Some(self.methods(interface).map(|s| s.name).collect())
        }

        fn method(&self, class: Type, name: Symbol) -> Option<Arc<FunctionSchema>> {
            self.methods(class).find(|s| s.name == name).map(Arc::new)
        }

        fn is_module(&self, class: Type) -> bool {
            class.annotation_str().ends_with("Module")
        }
    }

    #[test]
    fn classes_have_interfaces() {
        let class = |name| Type::class(Symbol::new(name), 0);
        let interface = |name| Type::interface(Symbol::new(name), 0);
        let (c, d, i, j, k, m) =
            (class("C"), class("D"), interface("I"), interface("J"), interface("K"), interface("IModule"));
        let env = Env(vec![
            (c, vec!["f(Any self, Tensor x) -> int", "g(Any self, int? y) -> (int)"]),
            (d, vec!["f(Any self, int x) -> int"]),
            (i, vec!["f(Any self, Tensor x) -> int"]),
            (j, vec!["f(Any self, Tensor x) -> int?", "g(Any self, int y) -> (int)"]),
            (k, vec!["h(Any self, K x) -> K"]),
            (m, vec!["f(Any self, Tensor x) -> int"]),
        ]);
        assert!(is_subtype(c, i, &env) && is_subtype(c, j, &env) && !is_subtype(j, i, &env));
        assert!(!is_subtype(d, i, &env) && !is_subtype(c, m, &env) && !is_subtype(c, i, &NoClasses));
        assert!(is_subtype(k, k, &env) && !is_subtype(c, k, &env));
        assert!(is_subtype(Type::optional(c), Type::optional(i), &env));
        assert!(!is_subtype(Type::list(c), Type::list(i), &env));
        assert!(is_subtype(c, Type::ANY_CLASS, &env));
        assert_eq!(is_subtype_why(c, k, &env).1, "Class 'C' does not have method 'h' but 'K' does.\n");
        assert!(
            is_subtype_why(d, i, &env)
                .1
                .starts_with("Method on class 'D' (1) is not compatible with interface 'I' (2)")
        );
    }

    #[test]
    fn mutually_recursive_interfaces_terminate() {
        let a = Type::interface(Symbol::new("A"), 0);
        let b = Type::interface(Symbol::new("B"), 0);
        let env = Env(vec![(a, vec!["f(Any self, A x) -> A"]), (b, vec!["f(Any self, B x) -> B"])]);
        assert!(is_subtype(a, b, &env) && is_subtype(b, a, &env));
    }

    #[test]
    fn the_type_for_too_large_types_is_related_only_to_itself() {
        let overflow = Type::OVERFLOW;
        assert!(
            is_subtype(overflow, overflow, &NoClasses) && is_subtype_why(overflow, overflow, &NoClasses).0
        );
        for other in [Type::ANY, Type::TENSOR, Type::NONE, Type::ANY_TUPLE, Type::optional(Type::INT)] {
            assert!(!is_subtype(overflow, other, &NoClasses) && !is_subtype(other, overflow, &NoClasses));
            assert!(!may_share_values(overflow, other, &NoClasses));
        }
    }

    #[test]
    fn named_tuples() {
        let field = |name| NamedField { name: Symbol::new(name), default: None };
        let make = |q, n, t| Type::named_tuple(Symbol::new(q), &[(field(n), t)]);
        let (p, q) = (make("P", "x", Type::INT), make("Q", "x", Type::OPTIONAL_INT));
        let bare = Type::tuple(&[Type::INT]);
        assert!(is_subtype(p, bare, &NoClasses) && !is_subtype(bare, p, &NoClasses));
        assert!(is_subtype(p, q, &NoClasses) && !is_subtype(p, make("R", "y", Type::INT), &NoClasses));
        assert!(is_subtype(p, Type::ANY_TUPLE, &NoClasses));
    }
}
