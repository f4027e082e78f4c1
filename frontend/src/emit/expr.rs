//! Expressions.
//!
//! [`Cx::sugar`] compiles an expression to its compile-time meaning, [`Cx::eval`] to a first-class value. Leaf
//! expressions are compiled directly, all others one level deeper on the heap ([`crate::trampoline`]).

use std::rc::Rc;

use flambeau_ir::{IValue, Prim, Symbol, Type, ValueId};

use super::env::Binding;
use super::fun::{Cx, Res};
use super::matching::CallArgs;
use super::names;
use super::sugar::{Range, Sugar};
use crate::span::Span;
use crate::trampoline::Task;
use crate::tree::{SyntaxOp, TreeId, TreeKind};

/// Returns the builtin operator and the method name of a binary operator.
pub(crate) fn binary(op: SyntaxOp) -> Option<(&'static str, &'static str)> {
    Some(match op {
        SyntaxOp::Add => ("aten::add", "__add__"),
        SyntaxOp::Sub => ("aten::sub", "__sub__"),
        SyntaxOp::Mul => ("aten::mul", "__mul__"),
        SyntaxOp::Div => ("aten::div", "__truediv__"),
        SyntaxOp::FloorDiv => ("aten::floordiv", "__floordiv__"),
        SyntaxOp::Mod => ("aten::remainder", "__mod__"),
        SyntaxOp::MatMul => ("aten::matmul", "__matmul__"),
        SyntaxOp::Pow => ("aten::pow", "__pow__"),
        SyntaxOp::LShift => ("aten::__lshift__", "__lshift__"),
        SyntaxOp::RShift => ("aten::__rshift__", "__rshift__"),
        SyntaxOp::BitAnd => ("aten::__and__", "__and__"),
        SyntaxOp::BitOr => ("aten::__or__", "__or__"),
        SyntaxOp::BitXor => ("aten::__xor__", "__xor__"),
        SyntaxOp::Eq => ("aten::eq", "__eq__"),
        SyntaxOp::NotEq => ("aten::ne", "__ne__"),
        SyntaxOp::Lt => ("aten::lt", "__lt__"),
        SyntaxOp::Le => ("aten::le", "__le__"),
        SyntaxOp::Gt => ("aten::gt", "__gt__"),
        SyntaxOp::Ge => ("aten::ge", "__ge__"),
        SyntaxOp::In => ("aten::__contains__", "__contains__"),
        _ => return None,
    })
}

impl<'a> Cx<'a> {
    /// Compiles an expression to a first-class value.
    pub(crate) async fn eval(&self, tree: TreeId, hint: Option<Type>) -> Res<ValueId> {
        let outer = self.fun.shown.replace(self.span(tree));
        let sugar = self.sugar(tree, hint).await?;
        self.fun.shown.set(outer);
        self.as_value(self.span(tree), sugar)
    }

    /// Compiles an expression to its compile-time meaning.
    pub(crate) async fn sugar(&self, tree: TreeId, hint: Option<Type>) -> Res<Sugar> {
        match self.leaf(tree) {
            Some(result) => result,
            None => self.deeper(self.clone().compound(tree, hint)).await,
        }
    }

    /// Compiles an expression without subexpressions; returns `None` for all others.
    fn leaf(&self, tree: TreeId) -> Option<Res<Sugar>> {
        let value = match self.kind(tree) {
            TreeKind::Var => return Some(self.variable(tree)),
            TreeKind::Const => {
                self.at(self.span(tree));
                return Some(Ok(Sugar::Value(self.number(super::types::number(self.ast().leaf(tree))))));
            }
            TreeKind::True => IValue::Bool(true),
            TreeKind::False => IValue::Bool(false),
            TreeKind::StringLiteral => IValue::str(self.ast().name(tree)),
            TreeKind::None => {
                self.at(self.span(tree));
                return Some(Ok(Sugar::Value(self.none())));
            }
            _ => return None,
        };
        self.at(self.span(tree));
        Some(Ok(Sugar::Value(self.constant(value))))
    }

    fn compound(self, tree: TreeId, hint: Option<Type>) -> Task<'a, Res<Sugar>> {
        match self.kind(tree) {
            TreeKind::Select => Box::pin(async move { self.select(tree).await }),
            TreeKind::Apply => Box::pin(async move { self.apply_expr(tree, hint).await }),
            TreeKind::Subscript => Box::pin(async move { self.subscript(tree, hint).await }),
            TreeKind::BinOp => Box::pin(async move { self.binary_expr(tree).await.map(Sugar::Value) }),
            TreeKind::UnaryOp => Box::pin(async move { self.unary_expr(tree).await.map(Sugar::Value) }),
            TreeKind::TernaryIf => Box::pin(async move { self.ternary(tree, hint).await.map(Sugar::Value) }),
            TreeKind::TupleLiteral => {
                Box::pin(async move { self.tuple_literal(tree, hint).await.map(Sugar::Value) })
            }
            TreeKind::ListLiteral => {
                Box::pin(async move { self.list_literal(tree, hint).await.map(Sugar::Value) })
            }
            TreeKind::DictLiteral => {
                Box::pin(async move { self.dict_literal(tree, hint).await.map(Sugar::Value) })
            }
            TreeKind::ListComp => Box::pin(async move { self.list_comp(tree, hint).await.map(Sugar::Value) }),
            TreeKind::DictComp => Box::pin(async move { self.dict_comp(tree, hint).await.map(Sugar::Value) }),
            TreeKind::FormatString => {
                Box::pin(async move { self.format_string(tree).await.map(Sugar::Value) })
            }
            TreeKind::Dots => {
                Box::pin(
                    async move { self.not_torchscript(self.span(tree), "`...` outside of a subscript is") },
                )
            }
            TreeKind::Starred => {
                Box::pin(async move { self.fail(self.span(tree), "Unexpected starred expansion") })
            }
            _ => Box::pin(async move { self.not_torchscript(self.span(tree), "this expression is") }),
        }
    }

    /// Converts a compile-time value to a first-class value.
    pub(crate) fn as_value(&self, span: Span, sugar: Sugar) -> Res<ValueId> {
        match sugar {
            Sugar::Value(value) => Ok(value),
            Sugar::Constant(value) => {
                self.at(span);
                Ok(self.constant(value))
            }
            Sugar::Tuple(items) => {
                let values = items.iter().map(|s| self.as_value(span, s.clone())).collect::<Res<Vec<_>>>()?;
                self.at(span);
                Ok(self.tuple(&values))
            }
            Sugar::Custom(custom) => custom.as_value(&super::scope::Scope::new(self), span),
            other => self.fail(span, format!("{} cannot be used as a value", other.describe())),
        }
    }

    // --- names -----------------------------------------------------------------------------------------------------

    fn variable(&self, tree: TreeId) -> Res<Sugar> {
        let (span, name) = (self.span(tree), self.symbol(tree));
        self.at(span);
        match self.lookup(name) {
            Some(found) => found.map_err(|why| self.error(span, why)),
            None => self.outside_name(span, name),
        }
    }

    /// Looks up a variable of the function. The inner error is the reason why the variable cannot be used.
    pub(crate) fn lookup(&self, name: Symbol) -> Option<Result<Sugar, String>> {
        if self.is_poisoned(name) {
            return Some(Err(super::recover::POISONED_MESSAGE.to_owned()));
        }
        let entry = self.fun.env.borrow().find(name).cloned()?;
        Some(match entry {
            Binding::Typed(ty) => Ok(Sugar::Value(self.load(name, ty))),
            Binding::Sugared(sugar) => Ok(sugar),
            Binding::Unusable(why) => Err(why),
            Binding::Deleted => Err(format!("undefined value {name}")),
        })
    }

    /// Resolves a name that is not a variable.
    fn outside_name(&self, span: Span, name: Symbol) -> Res<Sugar> {
        let text = name.as_str();
        if let Some(sugar) = self.session.resolver().value(text) {
            return Ok(sugar);
        }
        if self.session.has_function(name) {
            return Ok(Sugar::Function(name));
        }
        if let Some(ty) = self.session.named_type(name) {
            return Ok(self.type_as_value(ty));
        }
        if let Some(sugar) = self.session.global(name) {
            return Ok(sugar);
        }
        let mut error = self.error(span, format!("undefined value {name}"));
        if let Some(near) = self.nearest(text) {
            *error = error.help(format!("did you mean `{near}`?"));
        }
        Err(error)
    }

    pub(crate) fn type_as_value(&self, ty: Type) -> Sugar {
        use flambeau_ir::types::TypeKind;
        match ty.kind() {
            TypeKind::Tuple(_) => Sugar::NamedTuple(ty),
            TypeKind::Enum(..) => Sugar::Enum(ty),
            _ => Sugar::Class(ty),
        }
    }

    /// Returns the variable with the name nearest to `text`, for suggestions.
    fn nearest(&self, text: &str) -> Option<Symbol> {
        let variables = self.fun.env.borrow().names();
        flambeau_ir::nearest(text, variables.iter().map(|n| n.as_str())).map(Symbol::new)
    }

    /// Assigns a variable in the innermost frame.
    pub(crate) fn set_variable(
        &self,
        span: Span,
        name: Symbol,
        sugar: Sugar,
        annotated: Option<Type>,
    ) -> Res<()> {
        if self.is_poisoned(name) {
            return Ok(());
        }
        let mut value = match &sugar {
            Sugar::Value(value) => Some(*value),
            Sugar::Constant(_) => Some(self.as_value(span, sugar.clone())?),
            Sugar::Tuple(_) => Some(self.as_value(span, sugar.clone())?),
            Sugar::Custom(_) if annotated.is_some() => Some(self.as_value(span, sugar.clone())?),
            _ => None,
        };
        self.at(span);
        if let Some(v) = value
            && super::fun::is_meaningful(name.as_str())
            && !self.is_named(v)
            && self.read(|g| Some(g.parent(g.def(v)))) == self.fun.env.borrow().block()
        {
            self.set_name(v, name);
        }
        if self.fun.env.borrow().find_outside(name).is_some() {
            value = self.check_reassignment(span, name, &sugar, value, annotated)?;
        }
        let Some(value) = value else {
            self.fun.env.borrow_mut().set(name, Binding::Sugared(sugar));
            return Ok(());
        };
        let value = match annotated {
            Some(ty) => self.annotated_value(span, name, value, ty)?,
            None => value,
        };
        let ty = annotated.unwrap_or_else(|| self.ty(value));
        self.fun.env.borrow_mut().set(name, Binding::Typed(ty));
        self.store(name, value);
        Ok(())
    }

    /// Checks an assignment to a variable of an outer block, and converts the value to the variable's type.
    fn check_reassignment(
        &self,
        span: Span,
        name: Symbol,
        sugar: &Sugar,
        value: Option<ValueId>,
        annotated: Option<Type>,
    ) -> Res<Option<ValueId>> {
        let outside = self.fun.env.borrow().find_outside(name).cloned();
        match (outside, value) {
            (Some(Binding::Typed(before)), Some(v)) => {
                if annotated.is_some() {
                    return self.fail(
                        span,
                        format!(
                            "Attempting to declare and annotate the type of variable '{name}' that is already defined in \
                             an outer block"
                        ),
                    );
                }
                // Modules are no values that variables can exchange.
                let is_module = |ty| flambeau_ir::types::ClassEnv::is_module(self.session, ty);
                let found = self.ty(v);
                if is_module(before) != is_module(found) {
                    let why = if is_module(before) {
                        format!("because it has type value of type '{}' and", found.annotation())
                    } else {
                        "to a value of type module because".to_owned()
                    };
                    let message = format!(
                        "Cannot re-assign '{name}' {why} {name} is not a first-class value. Only reassignments to first-class \
                         values are allowed"
                    );
                    return self.fail(span, message);
                }
                // This counts as a read of the outer variable in the numbering of debug names.
                self.count_read(name);
                let before = before.erase_shapes();
                let v = self.try_convert(v, before);
                let ty = self.ty(v);
                if !self.is_subtype(ty, before) {
                    return self.fail(
                        span,
                        format!(
                            "Variable '{name}' previously had type {} but is now being assigned to a value of type {}",
                            before.annotation(),
                            ty.annotation()
                        ),
                    );
                }
                Ok(Some(v))
            }
            (Some(Binding::Sugared(_)), _) | (Some(Binding::Typed(_)), None) => {
                self.fail(
                    span,
                    format!(
                        "Cannot re-assign '{name}' to a value of type {} because {name} is not a first-class value. \
                         Only reassignments to first-class values are allowed",
                        sugar.describe()
                    ),
                )
            }
            _ => Ok(value),
        }
    }

    /// Converts a value to the type that an assignment annotates.
    fn annotated_value(&self, span: Span, name: Symbol, value: ValueId, ty: Type) -> Res<ValueId> {
        let value = self.try_convert_literal(value, ty);
        let found = self.ty(value);
        if !self.is_subtype(found, ty) {
            let message = format!(
                "Variable '{name}' is annotated with type {} but is being assigned to a value of type {}",
                ty.annotation(),
                found.annotation()
            );
            return Err(self.explained(self.error(span, message), found, ty));
        }
        Ok(value)
    }

    /// Converts empty list literals, tuples and host objects to the annotated type; leaves other values unchanged.
    fn try_convert_literal(&self, value: ValueId, ty: Type) -> ValueId {
        let given = self.given(value);
        let open = given.empty_list || given.ty.as_tuple().is_some() || given.ty == Type::PY_OBJECT;
        if open { self.try_convert(value, ty) } else { value }
    }

    // --- operators -------------------------------------------------------------------------------------------------

    async fn binary_expr(&self, tree: TreeId) -> Res<ValueId> {
        let span = self.span(tree);
        let (a, b) = (self.ast().child(tree, 0), self.ast().child(tree, 1));
        let Some((name, method)) = self.ast().op(tree).and_then(binary) else {
            return Ok(self.condition(tree).await?.value);
        };
        if let Some(complex) = self.complex_literal(tree) {
            self.at(span);
            return Ok(self.number(complex));
        }
        let mut lhs = self.eval(a, None).await?;
        let mut rhs = self.eval(b, None).await?;
        if self.ast().op(tree) == Some(SyntaxOp::In) {
            std::mem::swap(&mut lhs, &mut rhs);
        }
        if name == "aten::remainder" && self.ty(lhs) == Type::STR && !self.is_host(rhs) {
            return self.builtin(span, "aten::percentFormat", &[lhs, rhs]);
        }
        if name == "aten::add"
            && let (Some(_), Some(_)) = (self.ty(lhs).as_tuple(), self.ty(rhs).as_tuple())
        {
            self.at(span);
            let mut items = self.unpack_tuple(lhs);
            items.extend(self.unpack_tuple(rhs));
            return Ok(self.tuple(&items));
        }
        self.operate(span, name, method, &[lhs, rhs]).await
    }

    /// Folds `1.+2.j` and `0.-infj` to one complex number.
    fn complex_literal(&self, tree: TreeId) -> Option<IValue> {
        let ast = self.ast();
        let number = |tree| match ast.kind(tree) {
            TreeKind::Const => Some(super::types::number(ast.leaf(tree))),
            TreeKind::Var if self.lookup_only(tree).is_none() => names::constant(ast.name(tree)),
            TreeKind::UnaryOp if ast.op(tree) == Some(SyntaxOp::Neg) => {
                let inner = ast.child(tree, 0);
                let infinite = ast.kind(inner) == TreeKind::Var && self.lookup_only(inner).is_none();
                let value = infinite.then(|| names::constant(ast.name(inner))).flatten()?;
                Some(IValue::Float(-value.as_float()?))
            }
            _ => None,
        };
        let negative = match ast.op(tree)? {
            SyntaxOp::Add => false,
            SyntaxOp::Sub => true,
            _ => return None,
        };
        match (number(ast.child(tree, 0))?, number(ast.child(tree, 1))?) {
            (IValue::Float(re), IValue::Complex(z)) if z.re == 0.0 => {
                let im = if negative { -z.im } else { z.im };
                Some(IValue::complex(flambeau_tensor::Complex::new(re, im)))
            }
            _ => None,
        }
    }

    /// Looks up the variable that a tree names, without emitting or counting a read.
    fn lookup_only(&self, tree: TreeId) -> Option<Binding> {
        self.fun.env.borrow().find(self.symbol(tree)).cloned()
    }

    /// Calls an operator, or the overloading method if the first operand is an object.
    pub(crate) async fn operate(
        &self,
        span: Span,
        name: &str,
        method: &str,
        args: &[ValueId],
    ) -> Res<ValueId> {
        if let Some(&object) = args.first()
            && self.ty(object).as_class().is_some()
        {
            let given = args[1..].iter().map(|&v| self.given(v)).collect();
            let args = CallArgs { positional: given, ..CallArgs::default() };
            let called = self.call_method(span, object, Symbol::new(method), args).await?;
            return self.as_value(span, called);
        }
        if let Some(result) = self.operate_on_host(span, method, args) {
            return Ok(result);
        }
        self.builtin(span, name, args)
    }

    async fn unary_expr(&self, tree: TreeId) -> Res<ValueId> {
        let span = self.span(tree);
        let operand = self.ast().child(tree, 0);
        let (name, method) = match self.ast().op(tree) {
            Some(SyntaxOp::Neg) => ("aten::neg", "__neg__"),
            Some(SyntaxOp::Invert) => ("aten::bitwise_not", "__invert__"),
            Some(SyntaxOp::Pos) => {
                // Unary plus is the identity on numbers and tensors.
                let value = self.eval(operand, None).await?;
                let ty = self.ty(value);
                if ty.is_tensor() || matches!(ty, Type::INT | Type::FLOAT | Type::COMPLEX | Type::NUMBER) {
                    return Ok(value);
                }
                if let Some(result) = self.operate_on_host(span, "__pos__", &[value]) {
                    return Ok(result);
                }
                return self.fail(span, format!("bad operand type for unary +: '{}'", ty.annotation()));
            }
            _ => return Ok(self.condition(tree).await?.value),
        };
        let negated = |value| match value {
            IValue::Int(v) => Some(IValue::Int(v.wrapping_neg())),
            IValue::Float(v) => Some(IValue::Float(-v)),
            _ => None,
        };
        if name == "aten::neg"
            && self.kind(operand) == TreeKind::Const
            && let Some(number) = negated(super::types::number(self.ast().leaf(operand)))
        {
            self.at(span);
            return Ok(self.number(number));
        }
        let value = self.eval(operand, None).await?;
        if name == "aten::neg"
            && let Some(folded) = self.known(value).and_then(negated)
        {
            self.at(span);
            return Ok(self.constant(folded));
        }
        self.operate(span, name, method, &[value]).await
    }

    /// Compiles several expressions; `*x` contributes the elements of `x`.
    pub(crate) async fn values(&self, trees: &[TreeId]) -> Res<Vec<ValueId>> {
        let mut values = Vec::with_capacity(trees.len());
        for &tree in trees {
            if self.kind(tree) != TreeKind::Starred {
                values.push(self.eval(tree, None).await?);
                continue;
            }
            let inner = self.ast().child(tree, 0);
            let sugar = self.sugar(inner, None).await?;
            for item in self.as_tuple(self.span(inner), sugar, None)? {
                values.push(self.as_value(self.span(inner), item)?);
            }
        }
        Ok(values)
    }

    async fn tuple_literal(&self, tree: TreeId, hint: Option<Type>) -> Res<ValueId> {
        let elements = self.list(tree);
        let hints = hint.map(Type::unwrap_optional).and_then(Type::as_tuple);
        let hints = hints.filter(|t| t.elems.len() == elements.len());
        let values = match hints {
            Some(hints) if elements.iter().all(|&e| self.kind(e) != TreeKind::Starred) => {
                let mut values = Vec::with_capacity(elements.len());
                for (&e, &h) in elements.iter().zip(&hints.elems) {
                    values.push(self.eval(e, self.part_hint(e, Some(h))).await?);
                }
                values
            }
            _ => self.values(&elements).await?,
        };
        self.at(self.span(tree));
        Ok(self.tuple(&values))
    }

    async fn format_string(&self, tree: TreeId) -> Res<ValueId> {
        let span = self.span(tree);
        let (mut template, mut text) = (String::new(), String::new());
        let mut values = Vec::new();
        for part in self.list(tree) {
            if self.kind(part) == TreeKind::StringLiteral {
                text.push_str(self.ast().name(part));
                continue;
            }
            self.literal_part(span, &mut text, &mut template, &mut values);
            template.push_str("{}");
            values.push(self.eval(part, None).await?);
        }
        self.literal_part(span, &mut text, &mut template, &mut values);
        self.at(span);
        let template = self.string(&template);
        values.insert(0, template);
        self.builtin(span, "aten::format", &values)
    }

    /// Moves the literal text of an f-string to the template. `aten::format` has no escape for `{}`, so a text with these
    /// characters becomes an argument.
    fn literal_part(&self, span: Span, text: &mut String, template: &mut String, values: &mut Vec<ValueId>) {
        if text.contains("{}") {
            self.at(span);
            values.push(self.string(text));
            template.push_str("{}");
        } else {
            template.push_str(text);
        }
        text.clear();
    }

    /// Returns the elements of a value that is unpacked; `count` is the number of targets, if it is fixed.
    pub(crate) fn as_tuple(&self, span: Span, sugar: Sugar, count: Option<usize>) -> Res<Vec<Sugar>> {
        if let Sugar::Tuple(items) = &sugar {
            return Ok(items.to_vec());
        }
        if let Some(n) = self.static_length(&sugar)
            && matches!(sugar, Sugar::Range(_) | Sugar::Zip(_))
        {
            return (0..n).map(|i| self.element_at(span, &sugar, i)).collect();
        }
        if let Sugar::Function(_)
        | Sugar::Overloads(_)
        | Sugar::Method(..)
        | Sugar::Builtin(..)
        | Sugar::Class(_) = sugar
        {
            return self.fail(span, format!("{} cannot be used as a tuple", sugar.describe()));
        }
        let mut value = self.as_value(span, sugar)?;
        if self.is_host(value) {
            value = self.elements_of_host(span, value);
        }
        self.at(span);
        let ty = self.ty(value);
        if ty.as_tuple().is_some() {
            return Ok(self.unpack_tuple(value).into_iter().map(Sugar::Value).collect());
        }
        if let (Some(elem), Some(n)) = (ty.list_elem(), count) {
            let node = self.node(Prim::ListUnpack, &[value], &vec![elem; n]);
            return Ok(self.read(|g| g.results(node).map(Sugar::Value).collect()));
        }
        if ty.list_elem().is_some() {
            return self.fail(
                span,
                "Provided list cannot be used as a tuple: cannot statically infer the expected size of a list in this context",
            );
        }
        if ty == Type::ANY_TUPLE {
            return self.fail(
                span,
                "Provided tuple is not fully defined/refined including its element types, please provide a value of type \
                 like Tuple[int, int]",
            );
        }
        self.fail(span, format!("{} cannot be used as a tuple", ty.annotation()))
    }

    /// Compiles `range(...)` with the given arguments.
    pub(crate) fn range_of(&self, span: Span, args: &[ValueId]) -> Res<Sugar> {
        let mut ints = Vec::with_capacity(args.len());
        for &arg in args {
            let value = self.try_convert(arg, Type::INT);
            if self.ty(value) != Type::INT {
                let found = self.ty(value).annotation();
                return self.fail(span, format!("all inputs of range must be ints, found {found}"));
            }
            ints.push(value);
        }
        self.at(span);
        let (start, stop, step, counts_from_zero) = match *ints.as_slice() {
            [stop] => (self.constant(0_i64), stop, self.constant(1_i64), true),
            [start, stop] => (start, stop, self.constant(1_i64), false),
            [start, stop, step] => (start, stop, step, false),
            _ => return self.fail(span, "range expected 1 to 3 arguments"),
        };
        let length = match (self.known_int(start), self.known_int(stop), self.known_int(step)) {
            (Some(a), Some(b), Some(s)) if s != 0 => Some(range_length(a, b, s)),
            _ => None,
        };
        Ok(Sugar::Range(Rc::new(Range { start, stop, step, counts_from_zero, length, is_endless: false })))
    }
}

fn range_length(start: i64, stop: i64, step: i64) -> i64 {
    let (start, stop, step) = (i128::from(start), i128::from(stop), i128::from(step));
    let n = if step > 0 {
        (stop - start + step - 1).div_euclid(step)
    } else {
        (start - stop - step - 1).div_euclid(-step)
    };
    i64::try_from(n.max(0)).unwrap_or(i64::MAX)
}
