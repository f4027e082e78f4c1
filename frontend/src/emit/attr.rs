//! Member access: `value.name`.

use flambeau_ir::attr::{Attr, names as attr_names};
use flambeau_ir::types::{ClassEnv, TypeBindings, TypeKind, match_type_variables};
use flambeau_ir::{IValue, Prim, Symbol, Type, ValueId};

use super::fun::{Cx, Res};
use super::known::BuiltinType;
use super::matching::CallArgs;
use super::sugar::{Special, Sugar};
use super::types::TypeReader;
use crate::span::Span;
use crate::tree::{TreeId, TreeKind};

/// Maximum number of components of a dotted name that is looked up as a whole.
const MAX_PARTS: usize = 64;

impl<'a> Cx<'a> {
    pub(crate) fn type_reader(&self) -> TypeReader<'_> {
        TypeReader { session: self.session, file: &self.fun.file }
    }

    pub(crate) async fn select(&self, tree: TreeId) -> Res<Sugar> {
        // A dotted name may name a class as a whole.
        let base = self.ast().child(tree, 0);
        if let Some(found) = self.dotted_name(tree) {
            return Ok(found);
        }
        let sugar = self.sugar(base, None).await?;
        self.member(self.span(tree), sugar, self.symbol(tree)).await
    }

    /// Resolves `a.b.C` to a type or function, unless `a` is a variable.
    fn dotted_name(&self, tree: TreeId) -> Option<Sugar> {
        let ast = self.ast();
        // Longer chains are member accesses, which are resolved one by one.
        let mut root = tree;
        for _ in 0..MAX_PARTS {
            if ast.kind(root) != TreeKind::Select {
                break;
            }
            root = ast.child(root, 0);
        }
        if ast.kind(root) != TreeKind::Var || self.fun.env.borrow().find(self.symbol(root)).is_some() {
            return None;
        }
        let dotted = self.type_reader().dotted(tree)?;
        let name = Symbol::new(&dotted);
        if let Some(ty) = self.session.named_type(name) {
            return Some(self.type_as_value(ty));
        }
        if let Some(sugar) = self.session.resolver().value(&dotted) {
            return Some(sugar);
        }
        if dotted.starts_with("torch.") || dotted.starts_with("math.") {
            return None;
        }
        if self.session.has_function(name) {
            return Some(Sugar::Function(name));
        }
        self.session.resolver().ty(&dotted).map(|ty| self.type_as_value(ty))
    }

    /// Compiles `sugar.name`.
    pub(crate) async fn member(&self, span: Span, sugar: Sugar, name: Symbol) -> Res<Sugar> {
        match sugar {
            Sugar::Namespace(space) => match self.session.member(space, name) {
                Some(found) => Ok(found),
                // As PyTorch shows functions of Python's library.
                None if space.as_str() == "math" => {
                    self.unsupported(span, &format!("Python builtin <built-in function {name}> is currently"))
                }
                None => self.unsupported(span, &format!("`{space}.{name}` is")),
            },
            Sugar::Value(value) => self.value_member(span, value, name).await,
            Sugar::Constant(_) | Sugar::Tuple(_) => {
                let value = self.as_value(span, sugar)?;
                self.value_member(span, value, name).await
            }
            Sugar::Class(ty) => self.class_member(span, ty, name),
            Sugar::Enum(ty) => self.enum_member(span, ty, name),
            Sugar::Raised(..) => self.fail(span, "an exception has no members"),
            // `torch.x.y`, where `torch` has no member `x`.
            Sugar::Builtin(op, None) if !self.session.has_operator(op) => {
                Err(self.unknown_operator(span, op, &Default::default()))
            }
            Sugar::Custom(custom) => custom.attr(&super::scope::Scope::new(self), span, name.as_str()),
            other => self.fail(span, format!("attribute lookup is not defined on {}", other.describe())),
        }
    }

    fn class_member(&self, span: Span, ty: Type, name: Symbol) -> Res<Sugar> {
        self.complete(ty)?;
        // `C.__new__(C)` creates an uninitialized object.
        if name == "__new__" {
            return Ok(Sugar::NewObject(ty));
        }
        let (function, constant) = self.session.with_unit(|u| {
            let class = u.class(ty);
            (
                class.and_then(|c| c.static_methods.get(&name).or_else(|| c.methods.get(&name)).copied()),
                class.and_then(|c| c.constant(name).cloned()),
            )
        });
        if let Some(function) = function {
            return Ok(Sugar::Function(function));
        }
        if let Some(constant) = constant {
            return Ok(Sugar::Constant(constant));
        }
        self.fail(span, format!("Tried to lookup unknown attribute on class '{}': {name}", ty.annotation()))
    }

    fn enum_member(&self, span: Span, ty: Type, name: Symbol) -> Res<Sugar> {
        self.complete(ty)?;
        let value = self.session.with_unit(|u| {
            u.enumeration(ty).and_then(|e| e.members.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone()))
        });
        match value {
            Some(value) => {
                self.at(span);
                let member = IValue::Enum(flambeau_ir::value::EnumValue::new(ty, name, value));
                Ok(Sugar::Value(self.edit(|e| e.constant_of(member, ty))))
            }
            None => self.fail(span, format!("Enum {} has no attribute '{name}'", ty.annotation())),
        }
    }

    /// Compiles a member access of a first-class value.
    async fn value_member(&self, span: Span, value: ValueId, name: Symbol) -> Res<Sugar> {
        self.at(span);
        // A member access of an `Await` waits for its value.
        let value = match self.ty(value).kind() {
            TypeKind::Await(elem) => self.value(Prim::AwaitableWait, &[value], *elem),
            _ => value,
        };
        let ty = self.ty(value);
        if ty.is_tensor() && name == "type" {
            return Ok(Sugar::Builtin(Symbol::new("aten::to"), Some(value)));
        }
        if ty.is_tensor() && name == "tolist" {
            return Ok(Sugar::Special(Special::ToList));
        }
        let known = self.session.value_member(BuiltinType::of(ty), name);
        if let Some(dtype) = known.cast {
            return Ok(Sugar::Custom(std::rc::Rc::new(TensorCast { value, dtype })));
        }
        if let Some(op) = known.property {
            let args = CallArgs { positional: vec![self.given(value)], ..CallArgs::default() };
            return self.call_builtin(span, op, &args).map(Sugar::Value);
        }
        match ty.kind() {
            TypeKind::PyObject => {
                let member = flambeau_ir::HostOp::Member(name);
                return Ok(Sugar::Value(self.host(span, &member, &[value])));
            }
            TypeKind::Tuple(tuple) => {
                let field = tuple.named.as_ref().and_then(|n| n.fields.iter().position(|f| f.name == name));
                if let Some(i) = field {
                    let index = self.constant(i as i64);
                    return Ok(Sugar::Value(self.value(Prim::TupleIndex, &[value, index], tuple.elems[i])));
                }
            }
            TypeKind::Class(_) => {
                if let Some(found) = self.object_member(span, value, ty, name).await? {
                    return Ok(found);
                }
            }
            TypeKind::Interface(_) => {
                self.complete(ty)?;
                if self.session.method(ty, name).is_some() {
                    return Ok(Sugar::Method(value, name));
                }
            }
            TypeKind::Enum(_, inner) => match name.as_str() {
                "name" | "value" if self.known(value).is_some() => {
                    if let Some(IValue::Enum(member)) = self.known(value) {
                        let part = if name == "name" {
                            IValue::str(member.name().as_str())
                        } else {
                            member.value().clone()
                        };
                        return Ok(Sugar::Value(self.constant(part)));
                    }
                }
                "name" => return self.builtin_or_plain(span, "prim::EnumName", value, Type::STR),
                "value" => {
                    // The operator has one overload per value type.
                    let op = format!("prim::EnumValue.{}", inner.annotation());
                    return self.builtin_or_plain(span, &op, value, *inner);
                }
                _ => {}
            },
            TypeKind::Future(_) if name == "wait" => {
                return Ok(Sugar::Builtin(Symbol::new("aten::wait"), Some(value)));
            }
            _ => {}
        }
        if self.has_method(ty, known.operator)? || (ty.is_tensor() && name.as_str().starts_with('_')) {
            return Ok(Sugar::Builtin(known.operator, Some(value)));
        }
        Err(self.missing_member(span, ty, name))
    }

    /// Returns true if an overload of an operator can have a value of type `ty` as `self`.
    fn has_method(&self, ty: Type, operator: Symbol) -> Res<bool> {
        let candidates = self.session.candidates(operator)?;
        Ok(candidates.schemas(self.session.registry()).any(|schema| {
            let own = schema.args.iter().find(|arg| arg.name == "self");
            own.is_some_and(|own| {
                let mut bound = TypeBindings::default();
                let env = self.session;
                match_type_variables(own.ty, ty, &mut bound, env).is_ok()
                    && bound.apply(own.ty).is_some_and(|formal| self.is_subtype(ty, formal))
            })
        }))
    }

    /// Describes the access of a member that values of type `ty` do not have.
    pub(super) fn missing_member(&self, span: Span, ty: Type, name: Symbol) -> Box<flambeau_ir::Diagnostic> {
        let class = ty.annotation().to_string();
        let is_module = ClassEnv::is_module(self.session, ty);
        let message = match ty.as_class() {
            Some(_) if is_module => {
                let short = class.rsplit_once('.').map_or(class.as_str(), |(_, last)| last);
                format!("Module '{short}' has no attribute '{name}'")
            }
            Some(_) => format!(
                "'{class}' object has no attribute or method '{name}'. Did you forget to initialize an attribute in __init__()?"
            ),
            None => format!("'{class}' object has no attribute or method '{name}'."),
        };
        let mut error = self.error(span, message);
        if ty.optional_elem().is_some() {
            *error = error.help("the value may be None; compare it with None first");
        } else if let Some(near) = self.nearest_member(ty, name.as_str()) {
            *error = error.help(format!("did you mean `{near}`?"));
        }
        error
    }

    /// Returns the attribute or method with the name nearest to `name`; for values other than objects, the operator.
    fn nearest_member(&self, ty: Type, name: &str) -> Option<String> {
        if ty.as_class().is_none() {
            let registry = self.session.registry();
            let kind = std::mem::discriminant(ty.kind());
            let methods = registry.ids().filter(|&id| {
                let first = registry.schema(id).args.first();
                first.is_some_and(|a| std::mem::discriminant(a.ty.kind()) == kind)
                    && registry.schema(id).name.ns() == "aten"
            });
            let methods = methods.map(|id| registry.schema(id).name.base());
            return flambeau_ir::nearest(name, methods).map(str::to_owned);
        }
        self.session.with_unit(|unit| {
            let class = unit.class(ty)?;
            let attributes = class.attributes.iter().map(|a| a.name.as_str());
            let members = attributes.chain(class.methods.keys().map(|m| m.as_str()));
            flambeau_ir::nearest(name, members).map(str::to_owned)
        })
    }

    fn builtin_or_plain(&self, span: Span, op: &str, value: ValueId, ty: Type) -> Res<Sugar> {
        self.at(span);
        Ok(Sugar::Value(self.value(crate::ssa::operator(self.session.registry(), op), &[value], ty)))
    }

    /// Emits the read of an attribute. The value gets the name of the attribute as its debug name.
    fn read_attribute(&self, object: ValueId, name: Symbol, ty: Type) -> ValueId {
        let attrs = vec![(attr_names::name(), Attr::str(name.as_str()))];
        let read = self.value_with(Prim::GetAttr, &[object], attrs, ty);
        let is_number = name.as_str().bytes().all(|b| b.is_ascii_digit());
        self.set_name(read, if is_number { Symbol::new(&format!("_{name}")) } else { name });
        read
    }

    /// Returns true if the class of an object has a method of this name.
    pub(super) fn has_own_method(&self, object: ValueId, method: Symbol) -> bool {
        let ty = self.ty(object);
        self.session.with_unit(|u| u.class(ty).is_some_and(|class| class.methods.contains_key(&method)))
    }

    /// Returns the elements of a container of modules; `None` for other values.
    pub(super) fn elements(&self, span: Span, value: ValueId) -> Option<Vec<Sugar>> {
        let ty = self.ty(value);
        let names = self.session.elements(ty)?;
        let types = self.session.with_unit(|u| {
            let class = u.class(ty)?;
            names.iter().map(|&name| Some(class.attribute(name)?.ty)).collect::<Option<Vec<Type>>>()
        })?;
        self.at(span);
        let read = |(&name, ty)| Sugar::Value(self.read_attribute(value, name, ty));
        Some(names.iter().zip(types).map(read).collect())
    }

    /// Compiles a member access of an object: an attribute, method, constant or property.
    async fn object_member(
        &self,
        span: Span,
        value: ValueId,
        ty: Type,
        symbol: Symbol,
    ) -> Res<Option<Sugar>> {
        self.complete(ty)?;
        self.ensure_attributes(ty, symbol).await?;
        enum Found {
            Attribute(Type),
            Method,
            Constant(IValue),
            Getter(Symbol),
            Static(Symbol),
        }
        let found = self.session.with_unit(|u| {
            let class = u.class(ty)?;
            if let Some(attribute) = class.attribute(symbol) {
                return Some(Found::Attribute(attribute.ty));
            }
            if class.methods.contains_key(&symbol) {
                return Some(Found::Method);
            }
            if let Some(constant) = class.constant(symbol) {
                return Some(Found::Constant(constant.clone()));
            }
            if let Some(property) = class.properties.iter().find(|p| p.name == symbol) {
                return Some(Found::Getter(property.getter));
            }
            class.static_methods.get(&symbol).map(|f| Found::Static(*f))
        });
        self.at(span);
        Ok(match found {
            Some(Found::Attribute(ty)) => Some(Sugar::Value(self.read_attribute(value, symbol, ty))),
            Some(Found::Method) => Some(Sugar::Method(value, symbol)),
            Some(Found::Constant(constant)) => Some(Sugar::Constant(constant)),
            Some(Found::Getter(getter)) => {
                Some(self.call_method(span, value, getter, CallArgs::default()).await?)
            }
            Some(Found::Static(function)) => Some(Sugar::Function(function)),
            None => self.overloaded_methods(ty, symbol).map(|_| Sugar::Method(value, symbol)),
        })
    }

    /// Compiles `__init__` if member `name` is unknown, because `__init__` may define it.
    async fn ensure_attributes(&self, ty: Type, name: Symbol) -> Res<()> {
        let init = self.session.with_unit(|u| {
            let class = u.class(ty)?;
            let known = class.slot(name).is_some() || class.methods.contains_key(&name);
            if known { None } else { class.methods.get(&Symbol::new("__init__")).copied() }
        });
        if let Some(init) = init.filter(|&f| self.session.is_waiting(f)) {
            self.function_schema(init).await?;
        }
        Ok(())
    }

    /// Returns true if the value has this member.
    pub(crate) fn has_member(&self, span: Span, sugar: Sugar, name: &str) -> Res<bool> {
        let ty = match sugar {
            Sugar::Value(value) => self.ty(value),
            Sugar::Class(ty) => ty,
            other => {
                let what = other.describe();
                return self.fail(
                    span,
                    format!("hasattr's first argument must be an object or NamedTuple, got {what}"),
                );
            }
        };
        let symbol = Symbol::new(name);
        match ty.kind() {
            TypeKind::Class(_) => {
                self.complete(ty)?;
                Ok(self.session.with_unit(|u| {
                    u.class(ty).is_some_and(|c| {
                        c.slot(symbol).is_some()
                            || c.methods.contains_key(&symbol)
                            || c.constant(symbol).is_some()
                            || c.properties.iter().any(|p| p.name == symbol)
                    })
                }))
            }
            TypeKind::Tuple(tuple) => {
                Ok(tuple.named.as_ref().is_some_and(|n| n.fields.iter().any(|f| f.name == symbol)))
            }
            _ => self.fail(
                span,
                format!(
                    "hasattr's first argument must be an object or NamedTuple, got {} instead",
                    ty.annotation()
                ),
            ),
        }
    }

    /// Compiles an assignment to `object.name`.
    pub(crate) async fn set_member(&self, span: Span, object: TreeId, name: &str, value: ValueId) -> Res<()> {
        let target = self.eval(object, None).await?;
        let ty = self.ty(target);
        if self.is_host(target) {
            self.at(span);
            let name = self.constant(name);
            self.host_function(span, "builtins.setattr", &[target, name, value]);
            return Ok(());
        }
        if ty.as_class().is_none() {
            return self
                .fail(span, format!("Assignment to attribute of '{}' is not supported", ty.annotation()));
        }
        self.complete(ty)?;
        let symbol = Symbol::new(name);
        let (declared, setter) = self.session.with_unit(|u| {
            let class = u.class(ty);
            (
                class.and_then(|c| c.attribute(symbol).map(|a| a.ty)),
                class.and_then(|c| c.properties.iter().find(|p| p.name == symbol).map(|p| p.setter)),
            )
        });
        if let (None, Some(setter)) = (declared, setter) {
            let Some(setter) = setter else {
                return self.fail(span, format!("Tried to set read-only attribute: {name}"));
            };
            let args = CallArgs { positional: vec![self.given(value)], ..CallArgs::default() };
            self.call_method(span, target, setter, args).await?;
            return Ok(());
        }
        let (value, declared) = match declared {
            Some(declared) => (self.try_convert(value, declared), declared),
            None if self.defines_attributes(target) => {
                let found = self.ty(value);
                if let Some(why) = super::classes::refused_attribute(ty, symbol, found) {
                    return self.fail(span, why);
                }
                let attribute =
                    flambeau_ir::module::Attribute { name: symbol, ty: found, kind: flambeau_ir::module::AttributeKind::Plain };
                self.session.with_unit(|u| {
                    if let Some(class) = u.class_mut(ty) {
                        class.attributes.push(attribute);
                    }
                });
                (value, found)
            }
            None if self.is_in_constructor(target) => {
                return self.fail(
                    span,
                    "First assignment cannot be in a control-flow block. Initialize the field at the top level first",
                );
            }
            None => return self.fail(span, format!("Tried to set nonexistent attribute: {name}. Did you forget to initialize it in __init__()?")),
        };
        let found = self.ty(value);
        if !self.is_subtype(found, declared) {
            return self.fail(
                span,
                format!(
                    "Wrong type for attribute assignment. Expected {} but got {}",
                    declared.annotation(),
                    found.annotation()
                ),
            );
        }
        self.at(span);
        let attrs = vec![(attr_names::name(), Attr::str(name))];
        self.node_with(Prim::SetAttr, &[target, value], attrs, &[]);
        Ok(())
    }

    /// Returns true at the top level of `__init__`, where assignments to members of `self` define attributes.
    fn defines_attributes(&self, target: ValueId) -> bool {
        self.is_in_constructor(target) && self.fun.env.borrow().depth() == 1
    }

    fn is_in_constructor(&self, target: ValueId) -> bool {
        self.fun.name.as_str().ends_with(".__init__") && !self.session.is_module(self.ty(target))
    }
}

/// A dtype conversion method of a tensor, such as `x.float`.
#[derive(Debug)]
struct TensorCast {
    value: ValueId,
    dtype: i64,
}

impl super::sugar::SugaredValue for TensorCast {
    fn kind(&self) -> &str {
        "type cast"
    }

    fn call(
        &self,
        scope: &super::scope::Scope<'_>,
        span: Span,
        positional: &[ValueId],
        keywords: &[(Symbol, ValueId)],
    ) -> Res<Sugar> {
        let dtype = scope.constant(IValue::Int(self.dtype));
        let mut named = vec![(Symbol::new("self"), self.value), (Symbol::new("dtype"), dtype)];
        named.extend_from_slice(keywords);
        scope.call(span, Symbol::new("aten::to"), positional, &named).map(Sugar::Value)
    }
}
