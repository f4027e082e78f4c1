//! Special forms: constructs with the syntax of a call but their own compilation rules, such as `isinstance(x, T)`.
//!
//! [`Cx::form_inputs`] checks the number of positional arguments, and that a form without keyword arguments gets none, before
//! any argument is compiled. Forms with keyword arguments check those when they compile them.

use flambeau_ir::{IValue, Prim, Symbol, Type, ValueId};

use super::fun::{Cx, Res};
use super::matching::CallArgs;
use super::sugar::{Special, Sugar};
use crate::span::Span;
use crate::tree::{TreeId, TreeKind};

/// The arguments that a special form takes.
struct Form {
    /// The name in messages.
    name: &'static str,
    /// Minimum and maximum number of positional arguments.
    least: usize,
    most: usize,
    /// The form takes keyword arguments, which its own compilation checks.
    keywords: bool,
}

impl Special {
    fn form(self) -> Form {
        let form = |name, least, most| Form { name, least, most, keywords: false };
        match self {
            Special::Annotate => form("annotate", 2, 2),
            Special::Uninitialized => form("uninitialized", 1, 1),
            Special::UncheckedCast => form("unchecked_cast", 2, 2),
            Special::GetAttr => form("getattr", 2, 3),
            Special::HasAttr => form("hasattr", 2, 2),
            Special::IsInstance => form("isinstance", 2, 2),
            Special::Tuple => form("tuple", 0, 1),
            Special::List => form("list", 0, 1),
            Special::Dict => Form { keywords: true, ..form("dict", 0, 1) },
            Special::Range => form("range", 1, usize::MAX),
            Special::Zip => form("zip", 1, usize::MAX),
            Special::Enumerate => Form { keywords: true, ..form("enumerate", 1, 2) },
            Special::Slice => form("slice", 1, usize::MAX),
            Special::Fork => Form { keywords: true, ..form("fork", 1, usize::MAX) },
            Special::Awaitable => Form { keywords: true, ..form("awaitable", 1, usize::MAX) },
            Special::ToList => form("tolist", 0, 0),
            Special::TypedTensor(_) => form("the constructor of a tensor of one dtype", 0, usize::MAX),
        }
    }
}

impl<'a> Cx<'a> {
    /// Returns the positional arguments of a special form after checking their number, and that there are no keyword
    /// arguments unless the form takes some.
    pub(crate) fn form_inputs(&self, special: Special, tree: TreeId) -> Res<Vec<TreeId>> {
        let inputs = self.list(self.ast().child(tree, 1));
        let Form { name, least, most, keywords } = special.form();
        let found = inputs.len();
        let wanted = match found {
            _ if (least..=most).contains(&found) => None,
            _ if least == most => Some(format!("exactly {least}")),
            _ if found < least => Some(format!("at least {least}")),
            _ => Some(format!("at most {most}")),
        };
        if let Some(wanted) = wanted {
            let message = format!("{name} expected {wanted} arguments, got {found}");
            return self.fail(self.span(tree), message);
        }
        match self.ast().children(self.ast().child(tree, 2)).first() {
            Some(&keyword) if !keywords => {
                let name = if special == Special::Slice { "Slice" } else { name };
                self.fail(self.span(keyword), format!("{name} does not accept any keyword arguments"))
            }
            _ => Ok(inputs),
        }
    }

    /// Compiles a special form.
    pub(crate) async fn special(&self, special: Special, tree: TreeId, hint: Option<Type>) -> Res<Sugar> {
        let span = self.span(tree);
        let inputs = self.form_inputs(special, tree)?;
        match special {
            Special::Annotate => {
                let ty = self.type_reader().read(inputs[0])?;
                self.annotate(span, inputs[1], ty).await.map(Sugar::Value)
            }
            Special::Uninitialized => {
                let ty = self.type_reader().read(inputs[0])?;
                self.at(span);
                Ok(Sugar::Value(self.uninitialized(ty)))
            }
            Special::UncheckedCast => {
                let ty = self.type_reader().read(inputs[0])?;
                let value = self.eval(inputs[1], None).await?;
                self.at(span);
                // Emit the cast even if the value already has this type: it marks where the type was refined.
                Ok(Sugar::Value(self.value(Prim::UncheckedCast, &[value], ty)))
            }
            Special::GetAttr => self.getattr(span, &inputs).await,
            Special::HasAttr => self.hasattr(span, inputs[0], inputs[1]).await.map(|c| Sugar::Value(c.value)),
            Special::IsInstance => {
                self.isinstance(span, inputs[0], inputs[1]).await.map(|c| Sugar::Value(c.value))
            }
            Special::Tuple => self.tuple_call(span, &inputs).await,
            Special::List => self.list_call(span, &inputs, hint).await.map(Sugar::Value),
            Special::Dict => self.dict_call(tree, hint).await.map(Sugar::Value),
            Special::Range => {
                let values = self.values(&inputs).await?;
                self.range_of(span, &values)
            }
            Special::Zip => {
                let mut parts = Vec::with_capacity(inputs.len());
                for &input in &inputs {
                    parts.push(self.iterable(input).await?);
                }
                Ok(Sugar::Zip(parts.into()))
            }
            Special::Enumerate => self.enumerate(tree, &inputs).await,
            Special::Slice => {
                let values = self.values(&inputs).await?;
                let given = |bound: ValueId| (self.ty(bound) != Type::NONE).then_some(bound);
                Ok(match *values.as_slice() {
                    [stop] => Sugar::Slice([None, given(stop), None]),
                    [start, stop] => Sugar::Slice([given(start), given(stop), None]),
                    [start, stop, step] => Sugar::Slice([given(start), given(stop), given(step)]),
                    _ => {
                        return self.fail(
                            span,
                            format!("slice accepts exactly 1, 2 or 3 arguments, got: {}", values.len()),
                        );
                    }
                })
            }
            Special::Fork => self.fork(tree, &inputs, Prim::Fork).await.map(Sugar::Value),
            Special::Awaitable => self.fork(tree, &inputs, Prim::Awaitable).await.map(Sugar::Value),
            Special::TypedTensor(dtype) => {
                let values = self.values(&inputs).await?;
                self.typed_tensor(span, &values, dtype).map(Sugar::Value)
            }
            Special::ToList => {
                let Some(ty) = hint else {
                    return self.fail(span, "Expected type hint for result of tolist()");
                };
                let value = self.eval(self.ast().child(self.ast().child(tree, 0), 0), None).await?;
                self.to_list(span, value, ty).map(Sugar::Value)
            }
        }
    }

    /// Compiles `annotate(T, e)`: the value of `e`, checked against type `T`.
    async fn annotate(&self, span: Span, tree: TreeId, ty: Type) -> Res<ValueId> {
        let value = self.eval(tree, Some(ty)).await?;
        let value = self.try_convert(value, ty);
        let found = self.ty(value);
        if !self.is_subtype(found, ty) {
            return self.fail(
                span,
                format!(
                    "expected an expression of type {} but found {}",
                    ty.annotation(),
                    found.annotation()
                ),
            );
        }
        // `None` is a value of every optional type; the constant must carry the annotated one.
        if found == Type::NONE && ty != Type::NONE {
            self.at(span);
            return Ok(self.edit(|e| e.constant_of(IValue::None, ty)));
        }
        Ok(value)
    }

    async fn getattr(&self, span: Span, inputs: &[TreeId]) -> Res<Sugar> {
        let (object, name, default) = match inputs {
            [object, name] => (*object, *name, None),
            [object, name, default] => (*object, *name, Some(*default)),
            _ => return self.fail(span, "getattr takes 2 or 3 arguments"),
        };
        if self.kind(name) != TreeKind::StringLiteral {
            let at = self.span(name);
            return self.fail(at, "getattr's second argument must be a string literal");
        }
        let sugar = self.sugar(object, None).await?;
        let name = self.symbol(name);
        match default {
            Some(default) if !self.has_member(span, sugar.clone(), name.as_str())? => {
                self.sugar(default, None).await
            }
            _ => self.member(span, sugar, name).await,
        }
    }

    /// Makes a tensor of data, which is one argument, or an uninitialized one of sizes.
    fn typed_tensor(&self, span: Span, values: &[ValueId], dtype: i64) -> Res<ValueId> {
        let is_size = |value: &ValueId| self.ty(*value) == Type::INT;
        self.at(span);
        let (name, first) = match values {
            [] => {
                let none = self.number(IValue::Int(0));
                ("aten::empty", self.value(Prim::ListConstruct, &[none], Type::list(Type::INT)))
            }
            [data] if !is_size(data) => ("aten::tensor", *data),
            sizes if sizes.iter().all(is_size) => {
                ("aten::empty", self.value(Prim::ListConstruct, sizes, Type::list(Type::INT)))
            }
            _ => {
                let message = "the constructor of a tensor of one dtype takes data or sizes, not multiple positional arguments that \
                               were not all integers";
                return self.fail(span, message);
            }
        };
        let dtype = self.constant(dtype);
        let args = CallArgs {
            positional: vec![self.given(first)],
            keywords: vec![(Symbol::new("dtype"), self.given(dtype))],
            ..CallArgs::default()
        };
        self.call_builtin(span, Symbol::new(name), &args)
    }

    fn to_list(&self, span: Span, value: ValueId, ty: Type) -> Res<ValueId> {
        let mut dims = 0;
        let mut elem = ty;
        while let Some(inner) = elem.list_elem() {
            (dims, elem) = (dims + 1, inner);
        }
        let code =
            match elem {
                Type::INT => 0,
                Type::FLOAT => 1,
                Type::BOOL => 2,
                Type::COMPLEX => 3,
                _ => return self.fail(
                    span,
                    format!(
                        "{} is not one of the supported element types for tolist: int, float, complex, bool",
                        elem.annotation()
                    ),
                ),
            };
        self.at(span);
        let dims = self.constant(dims as i64);
        let code = self.constant(code as i64);
        Ok(self.value(Prim::ToList, &[value, dims, code], ty))
    }
}
