//! Assignments, augmented assignments and deletions.

use flambeau_ir::types::ClassEnv;
use flambeau_ir::{Symbol, Type, ValueId};

use super::env::Binding;
use super::expr::binary;
use super::fun::{Cx, Res};
use super::sugar::Sugar;
use crate::span::Span;
use crate::trampoline::Task;
use crate::tree::{SyntaxOp, TreeId, TreeKind};

/// Returns the in-place operator of an augmented assignment to a tensor or list, if there is one.
pub(crate) fn in_place(op: SyntaxOp) -> Option<&'static str> {
    Some(match op {
        SyntaxOp::Add => "aten::add_",
        SyntaxOp::Sub => "aten::sub_",
        SyntaxOp::Mul => "aten::mul_",
        SyntaxOp::Div => "aten::div_",
        SyntaxOp::Mod => "aten::fmod_",
        SyntaxOp::LShift => "aten::__ilshift__",
        SyntaxOp::RShift => "aten::__irshift__",
        _ => return None,
    })
}

/// Returns the operator of an augmented assignment to a tensor that is not in place and differs from that of the
/// expression: PyTorch compiles `x |= y` to `bitwise_or` and `x | y` to `__or__`.
fn bitwise(op: SyntaxOp) -> Option<&'static str> {
    Some(match op {
        SyntaxOp::BitOr => "aten::bitwise_or",
        SyntaxOp::BitAnd => "aten::bitwise_and",
        SyntaxOp::BitXor => "aten::bitwise_xor",
        _ => return None,
    })
}

const LONE_STAR: &str =
    "A Starred expression may only appear on the lhs within the presence of another non-starred expression";

impl<'a> Cx<'a> {
    pub(crate) async fn assign(&self, tree: TreeId) -> Res<()> {
        let span = self.span(tree);
        let targets = self.list(self.ast().child(tree, 0));
        let Some(value) = self.ast().optional_child(tree, 1) else {
            return self.fail(span, "For an assignment, an rhs must be present");
        };
        let ty = match self.ast().optional_child(tree, 2) {
            Some(annotation) => Some(self.type_reader().read(annotation)?),
            None => None,
        };
        if let [target] = *targets.as_slice() {
            let sugar = self.sugar(value, ty).await?;
            return self.assign_to(target, sugar, self.span(value), ty).await;
        }
        let sugar = self.sugar(value, None).await?;
        let name = self.temporary("$tmp_assign_");
        self.set_variable(self.span(value), name, sugar, None)?;
        for target in targets {
            let Some(Ok(sugar)) = self.lookup(name) else {
                return self.fail(span, "the value of an assignment to several targets cannot be read again");
            };
            self.assign_to(target, sugar, self.span(value), None).await?;
        }
        Ok(())
    }

    /// Assigns a value to a target of any kind.
    pub(crate) async fn assign_to(
        &self,
        target: TreeId,
        sugar: Sugar,
        value_span: Span,
        ty: Option<Type>,
    ) -> Res<()> {
        match self.kind(target) {
            TreeKind::Var => self.set_variable(self.span(target), self.symbol(target), sugar, ty),
            TreeKind::TupleLiteral | TreeKind::ListLiteral => {
                self.deeper(self.clone().assign_parts(target, sugar, value_span)).await
            }
            TreeKind::Subscript => {
                let value = self.as_value(value_span, sugar)?;
                self.set_item(self.span(target).to(value_span), target, value).await
            }
            TreeKind::Select => {
                let mut value = self.as_value(value_span, sugar)?;
                if let Some(ty) = ty {
                    value = self.try_convert(value, ty);
                }
                let object = self.ast().child(target, 0);
                let name = self.ast().name(target).to_string();
                // As in PyTorch, the place of the write is the whole statement.
                self.set_member(self.span(target).to(value_span), object, &name, value).await
            }
            TreeKind::Starred => self.fail(self.span(target), LONE_STAR),
            _ => self.fail(
                self.span(target),
                "lhs of assignment must be a variable, subscript, or starred expression",
            ),
        }
    }

    fn assign_parts(self, target: TreeId, sugar: Sugar, value_span: Span) -> Task<'a, Res<()>> {
        Box::pin(async move {
            let span = self.span(target);
            let parts = self.list(target);
            let stars = parts.iter().filter(|&&p| self.kind(p) == TreeKind::Starred).count();
            if stars > 1 {
                return self.fail(span, "Only one starred expression is allowed on the lhs");
            }
            let fixed = parts.len() - stars;
            if fixed == 0 && stars > 0 {
                return self.fail(span, LONE_STAR);
            }
            let values = self.as_tuple(value_span, sugar, (stars == 0).then_some(fixed))?;
            if values.len() < fixed {
                let least = if stars > 0 { "at least " } else { "" };
                return self.fail(
                    span,
                    format!("need {least}{fixed} values to unpack but found only {}", values.len()),
                );
            }
            if values.len() > fixed && stars == 0 {
                return self.fail(
                    span,
                    format!("too many values to unpack: need {fixed} but found {}", values.len()),
                );
            }
            let packed = values.len() - fixed;
            let mut values = values.into_iter();
            for part in parts {
                if self.kind(part) != TreeKind::Starred {
                    let Some(value) = values.next() else { break };
                    self.assign_to(part, value, value_span, None).await?;
                    continue;
                }
                let inner = self.ast().child(part, 0);
                if self.kind(inner) != TreeKind::Var {
                    return self.fail(self.span(inner), "Cannot pack a tuple into a non-variable");
                }
                let rest = values
                    .by_ref()
                    .take(packed)
                    .map(|v| self.as_value(value_span, v))
                    .collect::<Res<Vec<_>>>()?;
                self.at(self.span(part));
                let tuple = self.tuple(&rest);
                self.assign_to(inner, Sugar::Value(tuple), value_span, None).await?;
            }
            Ok(())
        })
    }

    // --- augmented -------------------------------------------------------------------------------------------------

    pub(crate) async fn aug_assign(&self, tree: TreeId) -> Res<()> {
        let (target, value) = (self.ast().child(tree, 0), self.ast().child(tree, 1));
        let Some(op) = self.ast().op(tree) else { return self.fail(self.span(tree), "no operator") };
        match self.kind(target) {
            TreeKind::Var => {
                let current = self.eval(target, None).await?;
                let result = self.augment(tree, op, current, value).await?;
                self.set_variable(self.span(target), self.symbol(target), Sugar::Value(result), None)
            }
            TreeKind::Select => {
                let object = self.ast().child(target, 0);
                let name = self.ast().name(target).to_string();
                let current = self.eval(target, None).await?;
                let result = self.augment(tree, op, current, value).await?;
                if self.ty(current).is_tensor() && result != current && in_place(op).is_some() {
                    return Ok(());
                }
                self.set_member(self.span(target), object, &name, result).await
            }
            TreeKind::Subscript => self.augment_item(tree, op, target, value).await,
            _ => self.fail(
                self.span(target),
                "augmented assignment can only have one LHS expression: a name, a member or an item",
            ),
        }
    }

    /// Compiles `current op= value`; returns the value to store.
    pub(crate) async fn augment(
        &self,
        tree: TreeId,
        op: SyntaxOp,
        current: ValueId,
        value: TreeId,
    ) -> Res<ValueId> {
        let rhs = self.eval(value, None).await?;
        self.augment_value(self.span(tree), op, current, rhs).await
    }

    pub(crate) async fn augment_value(
        &self,
        span: Span,
        op: SyntaxOp,
        current: ValueId,
        rhs: ValueId,
    ) -> Res<ValueId> {
        let ty = self.ty(current);
        let Some((name, method)) = binary(op) else { return self.fail(span, "no such operator") };
        if ty.as_class().is_some() {
            // Use `__iadd__` if the class defines it, else `__add__`.
            let own = method.replacen("__", "__i", 1);
            let defines = |name: &str| {
                self.session
                    .with_unit(|u| u.class(ty).is_some_and(|c| c.methods.contains_key(&Symbol::new(name))))
            };
            let Some(method) = [own.as_str(), method].into_iter().find(|name| defines(name)) else {
                let class = ty.annotation();
                let message = format!(
                    "Cannot emit inplace op on {class} since it does not define an {own} or {method} method"
                );
                return self.fail(span, message);
            };
            return self.operate(span, name, method, &[current, rhs]).await;
        }
        if let Some(result) = self.operate_on_host(span, &method.replacen("__", "__i", 1), &[current, rhs]) {
            return Ok(result);
        }
        let list = ty.list_elem().is_some() && matches!(op, SyntaxOp::Add | SyntaxOp::Mul);
        if let Some(in_place) = in_place(op).filter(|_| ty.is_tensor() || list) {
            return self.builtin(span, in_place, &[current, rhs]);
        }
        if let Some(bitwise) = bitwise(op).filter(|_| ty.is_tensor()) {
            return self.builtin(span, bitwise, &[current, rhs]);
        }
        if op == SyntaxOp::Mod && !ty.is_tensor() && ty != Type::STR {
            return self.builtin(span, "aten::fmod", &[current, rhs]);
        }
        self.builtin(span, name, &[current, rhs])
    }

    // --- delete ----------------------------------------------------------------------------------------------------

    pub(crate) async fn delete(&self, tree: TreeId) -> Res<()> {
        for target in self.list(tree) {
            let span = self.span(target);
            match self.kind(target) {
                TreeKind::Var => {
                    let name = self.symbol(target);
                    if self.lookup(name).is_none() {
                        return self.fail(span, format!("undefined value {name}"));
                    }
                    self.fun.env.borrow_mut().set(name, Binding::Deleted);
                }
                TreeKind::Subscript => {
                    let subscripts = self.list(self.ast().child(target, 1));
                    let [index] = *subscripts.as_slice() else {
                        return self.fail(span, "deletion takes one index");
                    };
                    if self.kind(index) == TreeKind::SliceExpr {
                        return self.not_torchscript(
                            span,
                            "del statements only support deletion at a single index, slicing is",
                        );
                    }
                    let container = self.eval(self.ast().child(target, 0), None).await?;
                    let index = self.eval(index, None).await?;
                    let class = self.ty(container);
                    if class.as_class().is_some() {
                        self.complete(class)?;
                        if self.session.method(class, Symbol::new("__delitem__")).is_none() {
                            return self.fail(span, "Class does not define __delitem__");
                        }
                        self.operate(span, "aten::Delete", "__delitem__", &[container, index]).await?;
                    } else if class.as_tuple().is_some() {
                        // The operator would take the tuple as a list, which is a copy.
                        let message = format!(
                            "'{}' does not support deletion: its elements cannot be removed",
                            class.annotation()
                        );
                        return self.fail(span, message);
                    } else {
                        self.builtin(span, "aten::Delete", &[container, index])?;
                    }
                }
                _ => {
                    return self
                        .not_torchscript(span, "deletion of anything other than variables and elements is");
                }
            }
        }
        Ok(())
    }
}
