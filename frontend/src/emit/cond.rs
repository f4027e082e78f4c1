//! Conditions: short-circuit evaluation, type refinement, and conditions decided at compile time.

use flambeau_ir::attr::{Attr, names};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{OpKind, Prim, Symbol, Type, ValueId};

use super::env::Binding;
use super::fun::{Cx, Res};
use crate::span::Span;
use crate::trampoline::Task;
use crate::tree::{SyntaxOp, TreeId, TreeKind};

/// Types of variables refined by a condition, for the case that it is true and the case that it is false.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refinements {
    pub(crate) when_true: Vec<(Symbol, Type)>,
    pub(crate) when_false: Vec<(Symbol, Type)>,
}

impl Refinements {
    fn not(self) -> Self {
        Refinements { when_true: self.when_false, when_false: self.when_true }
    }

    fn and(self, other: Self) -> Self {
        Refinements {
            when_true: both(self.when_true, other.when_true),
            when_false: either(&self.when_false, &other.when_false),
        }
    }

    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

/// Combines refinements that both hold. For a variable in both, the later refinement is used.
fn both(mut a: Vec<(Symbol, Type)>, b: Vec<(Symbol, Type)>) -> Vec<(Symbol, Type)> {
    a.retain(|(name, _)| b.iter().all(|(n, _)| n != name));
    a.extend(b);
    a
}

/// Combines refinements of which one holds: a variable must be in both and gets the union type.
fn either(a: &[(Symbol, Type)], b: &[(Symbol, Type)]) -> Vec<(Symbol, Type)> {
    let same = |name: Symbol| b.iter().find(|(n, _)| *n == name).map(|(_, t)| *t);
    a.iter().filter_map(|&(name, ty)| Some((name, Type::union(&[ty, same(name)?])))).collect()
}

/// A compiled condition.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) value: ValueId,
    pub(crate) refinements: Refinements,
    /// The constant truth value, in which case only one branch is compiled.
    pub(crate) constant_condition: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NoneNess {
    Always,
    Maybe,
    Never,
}

impl<'a> Cx<'a> {
    pub(crate) async fn condition(&self, tree: TreeId) -> Res<Condition> {
        self.deeper(self.clone().condition_task(tree)).await
    }

    fn condition_task(self, tree: TreeId) -> Task<'a, Res<Condition>> {
        match (self.kind(tree), self.ast().op(tree)) {
            (TreeKind::BinOp, Some(op @ (SyntaxOp::And | SyntaxOp::Or))) => {
                Box::pin(async move { self.short_circuit(tree, op == SyntaxOp::Or).await })
            }
            (TreeKind::UnaryOp, Some(SyntaxOp::Not)) => Box::pin(async move { self.negation(tree).await }),
            (TreeKind::BinOp, Some(op @ (SyntaxOp::Is | SyntaxOp::IsNot))) => {
                Box::pin(async move { self.identity(tree, op == SyntaxOp::Is).await })
            }
            _ => Box::pin(async move { self.plain_condition(tree).await }),
        }
    }

    fn constant_condition(&self, span: Span, truth: bool) -> Condition {
        self.at(span);
        let value = self.constant(truth);
        Condition { value, refinements: Refinements::default(), constant_condition: Some(truth) }
    }

    async fn negation(&self, tree: TreeId) -> Res<Condition> {
        let inner = self.condition(self.ast().child(tree, 0)).await?;
        let value = self.builtin(self.span(tree), "aten::__not__", &[inner.value])?;
        Ok(Condition {
            value,
            refinements: inner.refinements.not(),
            constant_condition: inner.constant_condition.map(|d| !d),
        })
    }

    async fn short_circuit(&self, tree: TreeId, is_or: bool) -> Res<Condition> {
        let span = self.span(tree);
        let (first, second) = (self.ast().child(tree, 0), self.ast().child(tree, 1));
        let lhs = self.condition(first).await?;
        if let Some(truth) = lhs.constant_condition {
            // The first operand determines the result, or the result is that of the second operand.
            return if truth == is_or { Ok(lhs) } else { self.condition(second).await };
        }
        self.at(span);
        let node = self.node(Prim::If, &[lhs.value], &[Type::BOOL]);
        let (then_block, else_block) = self.edit(|e| (e.add_block(node), e.add_block(node)));
        let (short, long) = if is_or { (then_block, else_block) } else { (else_block, then_block) };
        let outer = self.enter(short);
        let known = self.constant(is_or);
        self.edit(|e| e.add_block_output(short, known));
        self.enter(long);
        self.fun.env.borrow_mut().push(long);
        let known = if is_or { &lhs.refinements.when_false } else { &lhs.refinements.when_true };
        self.refine(span, known)?;
        let rhs = self.condition(second).await?;
        self.edit(|e| e.add_block_output(long, rhs.value));
        self.fun.env.borrow_mut().pop();
        self.enter(outer);
        let value = self.read(|g| g.result(node, 0));
        let refinements =
            if is_or { lhs.refinements.or(rhs.refinements) } else { lhs.refinements.and(rhs.refinements) };
        // A constant second operand decides the result only if it absorbs the first.
        let constant_condition = rhs.constant_condition.filter(|&d| d == is_or);
        Ok(Condition { value, refinements, constant_condition })
    }

    fn none_ness(&self, value: ValueId) -> NoneNess {
        let ty = self.ty(value);
        if ty == Type::NONE {
            NoneNess::Always
        } else if ty.may_be_none() || ty == Type::PY_OBJECT || ty.is_tensor() && self.is_undefined(value) {
            NoneNess::Maybe
        } else {
            NoneNess::Never
        }
    }

    fn is_undefined(&self, value: ValueId) -> bool {
        self.read(|g| g.is_prim(g.def(value), Prim::AutogradZero))
    }

    async fn identity(&self, tree: TreeId, is: bool) -> Res<Condition> {
        let span = self.span(tree);
        let (a, b) = (self.ast().child(tree, 0), self.ast().child(tree, 1));
        let lhs = self.eval(a, None).await?;
        let rhs = self.eval(b, None).await?;
        match (self.none_ness(lhs), self.none_ness(rhs)) {
            (NoneNess::Always, NoneNess::Always) => return Ok(self.constant_condition(span, is)),
            (NoneNess::Always, NoneNess::Never) | (NoneNess::Never, NoneNess::Always) => {
                return Ok(self.constant_condition(span, !is));
            }
            _ => {}
        }
        let name = if is { "aten::__is__" } else { "aten::__isnot__" };
        let value = self.builtin(span, name, &[lhs, rhs])?;
        // If `x is None` is false, `x` is not `None`. If it is true, `x` keeps its type: existing and archived programs
        // depend on that.
        let about = match (self.kind(a), self.kind(b)) {
            (TreeKind::Var, TreeKind::None) => Some((a, lhs)),
            (TreeKind::None, TreeKind::Var) => Some((b, rhs)),
            _ => None,
        };
        let mut refinements = Refinements::default();
        if let Some((var, value)) = about {
            let (name, ty) = (self.symbol(var), self.ty(value));
            if ty != Type::PY_OBJECT {
                refinements.when_false.extend(without(ty, &[Type::NONE], self).map(|t| (name, t)));
            }
        }
        let refinements = if is { refinements } else { refinements.not() };
        Ok(Condition { value, refinements, constant_condition: None })
    }

    async fn plain_condition(&self, tree: TreeId) -> Res<Condition> {
        if self.kind(tree) == TreeKind::Apply {
            let callee = self.ast().child(tree, 0);
            let (inputs, span) = (self.list(self.ast().child(tree, 1)), self.span(tree));
            let name = self.type_reader().dotted(callee);
            match name.as_deref() {
                Some("isinstance" | "torch.jit.isinstance") if inputs.len() == 2 => {
                    return self.isinstance(span, inputs[0], inputs[1]).await;
                }
                Some("hasattr") if inputs.len() == 2 => {
                    return self.hasattr(span, inputs[0], inputs[1]).await;
                }
                _ => {}
            }
        }
        let span = self.span(tree);
        let value = self.eval(tree, None).await?;
        let value = self.to_bool(span, value).await?;
        let constant_condition = self.read(|g| match g.op(g.def(value)).kind() {
            OpKind::Prim(Prim::Constant) => g.constant(value).and_then(|c| c.as_bool()),
            _ => None,
        });
        Ok(Condition { value, refinements: Refinements::default(), constant_condition })
    }

    /// Converts a value to bool.
    pub(crate) async fn to_bool(&self, span: Span, value: ValueId) -> Res<ValueId> {
        let ty = self.ty(value);
        if ty == Type::BOOL {
            return Ok(value);
        }
        if ty.as_class().is_some() {
            let truth = self.operate(span, "aten::Bool", "__bool__", &[value]).await?;
            return match self.ty(truth) {
                Type::BOOL => Ok(truth),
                other => {
                    let found = other.annotation();
                    let text = format!("expected a bool expression for condition but found '{found}'");
                    self.fail(span, text)
                }
            };
        }
        let sized = matches!(ty.kind(), TypeKind::Str | TypeKind::List(_) | TypeKind::Dict(..));
        let result = if sized {
            let length = self.builtin(span, "aten::len", &[value])?;
            self.builtin(span, "aten::Bool", &[length])
        } else {
            self.builtin(span, "aten::Bool", &[value])
        };
        result.map_err(|_| {
            self.error(span, format!("Could not cast value of type {} to bool", ty.annotation()))
        })
    }

    /// Applies refinements in the current block: variables get their refined types.
    pub(crate) fn refine(&self, span: Span, known: &[(Symbol, Type)]) -> Res<()> {
        for &(name, ty) in known {
            let Some(Ok(super::sugar::Sugar::Value(value))) = self.lookup(name) else { continue };
            self.at(span);
            let cast = self.value(Prim::UncheckedCast, &[value], ty);
            self.set_name(cast, name);
            self.fun.env.borrow_mut().set(name, Binding::Typed(ty));
            self.store(name, cast);
        }
        Ok(())
    }

    // --- isinstance ------------------------------------------------------------------------------------------------

    /// Returns the types named by the second argument of `isinstance`.
    fn class_list(&self, tree: TreeId) -> Res<Vec<Type>> {
        let trees = match self.kind(tree) {
            TreeKind::TupleLiteral | TreeKind::ListLiteral => self.list(tree),
            _ => vec![tree],
        };
        trees.into_iter().map(|t| self.type_reader().read(t)).collect()
    }

    pub(crate) async fn isinstance(&self, span: Span, object: TreeId, classes: TreeId) -> Res<Condition> {
        let value = self.eval(object, None).await?;
        if self.is_host(value) {
            let text = "a test of the type of a Python object: annotate the object with the type that it has";
            return self.unsupported(span, text);
        }
        let classes = self.class_list(classes)?;
        let ty = self.ty(value);
        let fits = |t: Type| classes.iter().any(|&c| self.is_subtype(t, c) || matches_bare_container(t, c));
        let members: Vec<Type> = match ty.kind() {
            TypeKind::Union(members) => members.to_vec(),
            TypeKind::Optional(inner) => vec![*inner, Type::NONE],
            TypeKind::Any => vec![Type::ANY],
            TypeKind::Number => vec![Type::INT, Type::FLOAT, Type::COMPLEX],
            _ => vec![ty],
        };
        let open = ty == Type::ANY || matches!(ty.kind(), TypeKind::Interface(_));
        let (inside, outside): (Vec<Type>, Vec<Type>) = members.iter().partition(|&&t| fits(t));
        if !open && outside.is_empty() {
            return Ok(self.constant_condition(span, true));
        }
        if !open && inside.is_empty() {
            let possible = members.iter().any(|&t| classes.iter().any(|&c| self.is_subtype(c, t)));
            if !possible {
                return Ok(self.constant_condition(span, false));
            }
        }
        let mut refinements = Refinements::default();
        if self.kind(object) == TreeKind::Var {
            let name = self.symbol(object);
            let when_true = if inside.is_empty() { Type::union(&classes) } else { Type::union(&inside) };
            refinements.when_true.push((name, when_true));
            if !open {
                refinements.when_false.push((name, Type::union(&outside)));
            }
        }
        self.at(span);
        let attrs = vec![(names::types(), Attr::Types(classes.into_boxed_slice()))];
        let value = self.value_with(Prim::Isinstance, &[value], attrs, Type::BOOL);
        Ok(Condition { value, refinements, constant_condition: None })
    }

    /// Compiles `hasattr(object, "name")`, which is decided at compile time.
    pub(crate) async fn hasattr(&self, span: Span, object: TreeId, name: TreeId) -> Res<Condition> {
        let sugar = self.sugar(object, None).await?;
        if self.kind(name) != TreeKind::StringLiteral {
            let at = self.span(name);
            return self.fail(at, "hasattr's second argument must be a string literal");
        }
        let found = self.has_member(span, sugar, self.ast().name(name))?;
        Ok(self.constant_condition(span, found))
    }

    // --- ternary ---------------------------------------------------------------------------------------------------

    pub(crate) async fn ternary(&self, tree: TreeId, hint: Option<Type>) -> Res<ValueId> {
        let span = self.span(tree);
        let (cond, then_tree, else_tree) =
            (self.ast().child(tree, 0), self.ast().child(tree, 1), self.ast().child(tree, 2));
        let cond = self.condition(cond).await?;
        if let Some(truth) = cond.constant_condition {
            return self.eval(if truth { then_tree } else { else_tree }, hint).await;
        }
        self.at(span);
        let node = self.node(Prim::If, &[cond.value], &[]);
        let (then_block, else_block) = self.edit(|e| (e.add_block(node), e.add_block(node)));
        let outer = self.block();
        let sides = [
            (then_block, then_tree, &cond.refinements.when_true),
            (else_block, else_tree, &cond.refinements.when_false),
        ];
        let mut values = Vec::with_capacity(2);
        for (block, tree, known) in sides {
            self.enter(block);
            self.fun.env.borrow_mut().push(block);
            self.refine(span, known)?;
            let value = self.eval(tree, hint).await?;
            self.edit(|e| e.add_block_output(block, value));
            self.fun.env.borrow_mut().pop();
            values.push(value);
        }
        self.enter(outer);
        let (a, b) = (self.ty(values[0]), self.ty(values[1]));
        let to_union = hint.is_some_and(|h| matches!(h.kind(), TypeKind::Union(_)));
        let Some(ty) = flambeau_ir::types::unify(a, b, to_union, hint, self.session) else {
            return self.fail(
                span,
                format!(
                    "if-expression's true branch has type {} but false branch has type {}",
                    a.annotation(),
                    b.annotation()
                ),
            );
        };
        Ok(self.edit(|e| e.add_result(node, ty)))
    }
}

/// Returns true for a list type and `list`, or a tuple type and `tuple`.
fn matches_bare_container(ty: Type, class: Type) -> bool {
    matches!(
        (ty.kind(), class.kind()),
        (TypeKind::List(_), TypeKind::AnyList) | (TypeKind::Tuple(_), TypeKind::AnyTuple)
    )
}

/// Removes members of an optional or union type. Returns `None` if the type has no members or none is left.
fn without(ty: Type, gone: &[Type], cx: &Cx<'_>) -> Option<Type> {
    let members: Vec<Type> = match ty.kind() {
        TypeKind::Optional(inner) => vec![*inner],
        TypeKind::Union(members) => {
            members.iter().copied().filter(|&m| gone.iter().all(|&g| !cx.is_subtype(m, g))).collect()
        }
        _ => return None,
    };
    (!members.is_empty()).then(|| Type::union(&members))
}
