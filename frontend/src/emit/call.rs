//! Calls of functions, methods, classes and builtins, and tasks that run them.

use flambeau_ir::attr::{Attr, names as attr_names};
use flambeau_ir::module::Class;
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{IValue, Prim, Symbol, Type, ValueId};
use std::rc::Rc;

use super::builtins;
use super::deep_compile;
use super::fun::{Cx, Res};
use super::index::SubscriptPart;
use super::matching::CallArgs;
use super::sugar::Sugar;
use crate::span::Span;
use crate::tree::TreeId;

impl<'a> Cx<'a> {
    pub(crate) async fn apply_expr(&self, tree: TreeId, hint: Option<Type>) -> Res<Sugar> {
        let callee_tree = self.ast().child(tree, 0);
        let callee = self.sugar(callee_tree, None).await?;
        if let Sugar::Special(special) = callee {
            return self.special(special, tree, hint).await;
        }
        if let Sugar::NewObject(ty) = callee {
            // The argument is the class itself, which is not a first-class value.
            let [positional, keywords] = [1, 2].map(|i| self.ast().children(self.ast().child(tree, i)).len());
            if (positional, keywords) != (1, 0) {
                return self.fail(self.span(tree), "`__new__` takes one argument, the class");
            }
            self.at(self.span(tree));
            return Ok(Sugar::Value(self.value(Prim::CreateObject, &[], ty)));
        }
        let args = self.arguments(tree).await?;
        // As in PyTorch, the place of a call is its callee: the arguments have places of their own.
        self.call(self.span(callee_tree), callee, args).await
    }

    /// Compiles the arguments of a call.
    async fn arguments(&self, tree: TreeId) -> Res<CallArgs> {
        self.arguments_after(tree, 0).await
    }

    /// Compiles the arguments of a call without the first `skip` positional ones.
    async fn arguments_after(&self, tree: TreeId, skip: usize) -> Res<CallArgs> {
        let inputs = self.list(self.ast().child(tree, 1)).split_off(skip);
        let attributes = self.list(self.ast().child(tree, 2));
        let values = self.values(&inputs).await?;
        let mut args =
            CallArgs { positional: values.iter().map(|&v| self.given(v)).collect(), ..CallArgs::default() };
        for attribute in attributes {
            let value = self.eval(self.ast().child(attribute, 0), None).await?;
            args.keywords.push((self.symbol(attribute), self.given(value)));
        }
        Ok(args)
    }

    /// Compiles a call of `callee`.
    pub(crate) async fn call(&self, span: Span, callee: Sugar, mut args: CallArgs) -> Res<Sugar> {
        match callee {
            Sugar::Builtin(name, Some(tensor))
                if name == "aten::__getitem__" && self.ty(tensor).is_tensor() =>
            {
                let [index] = args.positional.as_slice() else {
                    return self.fail(span, "__getitem__ expected exactly 1 argument");
                };
                self.item(span, tensor, vec![SubscriptPart::Value(index.value)]).await.map(Sugar::Value)
            }
            Sugar::Builtin(name, receiver) => {
                args.receiver = receiver.map(|v| self.given(v));
                self.builtin_call(span, name, &args).map(Sugar::Value)
            }
            Sugar::Magic(method, base) => {
                if let Some(first) = args.positional.first()
                    && first.ty.as_class().is_some()
                {
                    let object = args.positional.remove(0).value;
                    if method == "__len__"
                        && let Some(names) = self.session.elements(self.ty(object))
                        && !self.has_own_method(object, method)
                    {
                        return Ok(Sugar::Value(self.constant(names.len() as i64)));
                    }
                    return self.call_method(span, object, method, args).await;
                }
                // Overload resolution would take such a value as the only element of a list.
                if method == "__len__"
                    && let [given] = args.positional.as_slice()
                    && matches!(given.ty, Type::ANY_LIST | Type::ANY_TUPLE)
                {
                    let message = format!(
                        "a value of type '{}' has no length in a program: its annotation does not state the types of its elements",
                        given.ty
                    );
                    return self.fail(span, message);
                }
                match &*base {
                    Sugar::Cast(op, ty) => self.cast(span, *op, *ty, &args).map(Sugar::Value),
                    Sugar::Builtin(op, _) => self.builtin_call(span, *op, &args).map(Sugar::Value),
                    other => self.fail(span, format!("cannot call a {}", other.describe())),
                }
            }
            Sugar::Cast(op, ty) => self.cast(span, op, ty, &args).map(Sugar::Value),
            Sugar::Print => {
                self.at(span);
                let operands: Vec<ValueId> = args.positional.iter().map(|g| g.value).collect();
                if !args.keywords.is_empty() {
                    return self.fail(span, "print doesn't accept any keyword arguments");
                }
                self.node(Prim::Print, &operands, &[]);
                Ok(Sugar::Nothing)
            }
            Sugar::Function(name) => {
                let name = self.flagged(span, name, &args)?;
                self.call_function(span, name, &args).await.map(Sugar::Value)
            }
            Sugar::Overloads(functions) => {
                let chosen = self.select_function(span, &functions, &args).await?;
                self.call_function(span, chosen, &args).await.map(Sugar::Value)
            }
            Sugar::Method(object, name) => self.call_method(span, object, name, args).await,
            Sugar::Class(ty) => self.construct(span, ty, args).await.map(Sugar::Value),
            Sugar::NamedTuple(ty) => self.named_tuple(span, ty, &args).map(Sugar::Value),
            Sugar::Exception(class) => self.exception(span, class, &args),
            Sugar::Value(value) if self.ty(value).as_class().is_some() || self.is_interface(value) => {
                // Calling a module calls `forward`, calling any other object calls `__call__`.
                let ty = self.ty(value);
                let module = flambeau_ir::types::ClassEnv::is_module(self.session, ty);
                match module {
                    true => self.call_module(span, value, args).await,
                    false => self.call_method(span, value, Symbol::new("__call__"), args).await,
                }
            }
            Sugar::Value(value) if self.ty(value) == Type::PY_OBJECT => {
                Ok(Sugar::Value(self.call_host(span, value, &args)))
            }
            Sugar::Custom(custom) => {
                let positional: Vec<ValueId> = args.positional.iter().map(|g| g.value).collect();
                let keywords: Vec<(Symbol, ValueId)> =
                    args.keywords.iter().map(|(n, g)| (*n, g.value)).collect();
                custom.call(&super::scope::Scope::new(self), span, &positional, &keywords)
            }
            Sugar::Closure(_) => self.not_torchscript(span, "calling a function inside of a function is"),
            Sugar::Namespace(space) => match self.operator_named_as(space) {
                Some(op) => self.builtin_call(span, op, &args).map(Sugar::Value),
                None => self.fail(span, "cannot call a module"),
            },
            Sugar::Value(value) => {
                self.fail(span, format!("cannot call a value of type '{}'", self.ty(value).annotation()))
            }
            other => self.fail(span, format!("cannot call a {}", other.describe())),
        }
    }

    /// Calls `forward` of a module between its hooks, as PyTorch calls modules. A hook before `forward` gets the tuple of the
    /// inputs, and its result, if there is one, replaces them; a hook behind it gets the inputs and the output, and its result
    /// replaces the output.
    async fn call_module(&self, span: Span, module: ValueId, mut args: CallArgs) -> Res<Sugar> {
        let forward = Symbol::new("forward");
        let ty = self.ty(module);
        let hooks = |class: &Class| (class.pre_hooks.clone(), class.hooks.clone());
        let (before, behind) = self.session.with_unit(|u| u.class(ty).map(hooks)).unwrap_or_default();
        for hook in before {
            let inputs = self.inputs(&args);
            let result = self.call_hook(span, module, hook, &[inputs]).await?;
            args.positional = match self.ty(result) {
                Type::NONE => args.positional,
                ty if ty.as_tuple().is_some() => {
                    self.unpack_tuple(result).into_iter().map(|part| self.given(part)).collect()
                }
                _ => vec![self.given(result)],
            };
        }
        if behind.is_empty() {
            return self.call_method(span, module, forward, args).await;
        }
        let inputs = self.inputs(&args);
        let output = self.call_method(span, module, forward, args).await?;
        let mut output = self.as_value(span, output)?;
        for hook in behind {
            let result = self.call_hook(span, module, hook, &[inputs, output]).await?;
            output = if self.ty(result) == Type::NONE { output } else { result };
        }
        Ok(Sugar::Value(output))
    }

    /// Returns the tuple of the inputs of a module, which its hooks get.
    fn inputs(&self, args: &CallArgs) -> ValueId {
        let parts: Vec<ValueId> = args.all().map(|given| given.value).collect();
        self.tuple(&parts)
    }

    async fn call_hook(&self, span: Span, module: ValueId, hook: Symbol, args: &[ValueId]) -> Res<ValueId> {
        let positional = args.iter().map(|&arg| self.given(arg)).collect();
        let args = CallArgs { receiver: None, positional, keywords: Vec::new() };
        let result = self.call_method(span, module, hook, args).await?;
        self.as_value(span, result)
    }

    /// Returns the operator that a name of a namespace denotes in printed and archived code: there, `torch.cuda` is not a
    /// module of Python but the operator `aten::cuda`.
    fn operator_named_as(&self, space: Symbol) -> Option<Symbol> {
        let op = Symbol::new(&format!("aten::{}", space.as_str().strip_prefix("torch.")?));
        let is_printed = !self.session.resolver().supports_python_functions();
        (is_printed && self.session.has_operator(op)).then_some(op)
    }

    fn is_interface(&self, value: ValueId) -> bool {
        matches!(self.ty(value).kind(), TypeKind::Interface(_))
    }

    /// Calls a builtin operator. Some operators are evaluated at compile time or have their own typing rule.
    fn builtin_call(&self, span: Span, name: Symbol, args: &CallArgs) -> Res<ValueId> {
        if name == "aten::is_scripting" {
            self.at(span);
            return Ok(self.constant(true));
        }
        if name == "aten::device"
            && let ([given], true) = (args.positional.as_slice(), args.keywords.is_empty())
            && let Some(device) = self.known_device(given.value)
        {
            self.at(span);
            return Ok(self.constant(device));
        }
        if name == "aten::wait"
            && let [given] = args.positional.as_slice()
            && let Some(elem) = given.ty.future_elem()
        {
            self.at(span);
            let op = crate::ssa::operator(self.session.registry(), "aten::wait");
            return Ok(self.value(op, &[given.value], elem));
        }
        self.call_builtin(span, name, args)
    }

    fn cast(&self, span: Span, op: Symbol, ty: Type, args: &CallArgs) -> Res<ValueId> {
        if args.positional.is_empty() && args.keywords.is_empty() {
            let zero = match ty {
                Type::INT => IValue::Int(0),
                Type::FLOAT => IValue::Float(0.0),
                Type::BOOL => IValue::Bool(false),
                Type::STR => IValue::str(""),
                _ => return self.fail(span, "expected an argument"),
            };
            self.at(span);
            return Ok(self.constant(zero));
        }
        if let [given] = args.positional.as_slice()
            && args.keywords.is_empty()
            && given.ty == ty
        {
            return Ok(given.value);
        }
        if let [given] = args.positional.as_slice()
            && ty == Type::BOOL
            && matches!(given.ty.kind(), TypeKind::Str | TypeKind::List(_) | TypeKind::Dict(..))
        {
            let length = self.builtin(span, "aten::len", &[given.value])?;
            return self.builtin(span, "aten::Bool", &[length]);
        }
        self.call_builtin(span, op, args)
    }

    // --- functions and methods -------------------------------------------------------------------------------------

    /// Returns the definition of a library function that the constant flags of the call select.
    fn flagged(&self, span: Span, name: Symbol, args: &CallArgs) -> Res<Symbol> {
        let Some(full) = name.as_str().strip_prefix("__torch__.") else { return Ok(name) };
        let mut chosen = full.to_owned();
        for (flag, at) in builtins::flags(full) {
            let keyword = args.keywords.iter().find(|(n, _)| n.as_str() == *flag).map(|(_, given)| given);
            let Some(given) = keyword.or(args.positional.get(*at)) else { continue };
            match self.known(given.value).and_then(|v| v.as_bool()) {
                Some(true) => chosen = format!("{chosen}__{flag}"),
                Some(false) => {}
                None => return self.fail(span, format!("the argument '{flag}' must be a constant")),
            }
        }
        Ok(self.session.library_function(&chosen).unwrap_or(name))
    }

    pub(crate) async fn call_function(&self, span: Span, name: Symbol, args: &CallArgs) -> Res<ValueId> {
        let schema = self.function_schema(name).await?;
        self.call_compiled(span, name, &schema, args)
    }

    /// Returns the first function that accepts the arguments without conversion, else the first that accepts them with conversion.
    async fn select_function(&self, span: Span, functions: &[Symbol], args: &CallArgs) -> Res<Symbol> {
        let mut schemas = Vec::with_capacity(functions.len());
        for &function in functions {
            schemas.push(self.function_schema(function).await?);
        }
        let schemas: Vec<&FunctionSchema> = schemas.iter().map(|schema| &**schema).collect();
        let name = functions.first().map_or(Symbol::EMPTY, |first| *first);
        self.match_functions(span, name, &schemas, args).map(|chosen| functions[chosen])
    }

    /// Returns the functions that implement a method which the resolver states to have several signatures.
    pub(crate) fn overloaded_methods(&self, ty: Type, name: Symbol) -> Option<Rc<[Symbol]>> {
        match self.session.resolver().value(&format!("{}.{name}", ty.annotation())) {
            Some(Sugar::Overloads(functions)) => Some(functions),
            _ => None,
        }
    }

    /// Calls a function with a known schema.
    pub(crate) fn call_compiled(
        &self,
        span: Span,
        name: Symbol,
        schema: &FunctionSchema,
        args: &CallArgs,
    ) -> Res<ValueId> {
        let (mut operands, result) = self.match_function(span, schema, args)?;
        let function = self.value_with(
            Prim::Constant,
            &[],
            vec![(attr_names::name(), Attr::str(last_part(name)))],
            Type::function(name),
        );
        operands.insert(0, function);
        Ok(self.value(Prim::CallFunction, &operands, result))
    }

    /// Returns the schema of a function; compiles the function if necessary.
    pub(crate) async fn function_schema(&self, name: Symbol) -> Res<Rc<FunctionSchema>> {
        if let Some(done) = self.session.compiled(name) {
            return Ok(Rc::new((*done.schema).clone()));
        }
        let compiled =
            self.trampoline.call(deep_compile::function(self.session, self.trampoline, name)).await;
        match compiled {
            Ok(function) => Ok(Rc::new((*function.schema).clone())),
            Err(mut problem) => {
                let why = format!("'{name}' is being compiled since it was called from '{}'", self.fun.name);
                *problem = problem.also(self.fun.file.range(self.fun.shown.get()), why);
                Err(problem)
            }
        }
    }

    pub(crate) async fn call_method(
        &self,
        span: Span,
        object: ValueId,
        mut name: Symbol,
        mut args: CallArgs,
    ) -> Res<Sugar> {
        let ty = self.ty(object);
        self.complete(ty)?;
        args.positional.insert(0, self.given(object));
        let schema = if let TypeKind::Interface(_) = ty.kind() {
            match flambeau_ir::types::ClassEnv::method(self.session, ty, name) {
                Some(schema) => Rc::new((*schema).clone()),
                None => return Err(self.missing_member(span, ty, name)),
            }
        } else {
            let function =
                self.session.with_unit(|u| u.class(ty).and_then(|c| c.methods.get(&name).copied()));
            let overloads = if function.is_none() { self.overloaded_methods(ty, name) } else { None };
            match (function, overloads) {
                (Some(function), _) => self.function_schema(function).await?,
                (None, Some(functions)) => {
                    let chosen = self.select_function(span, &functions, &args).await?;
                    name = Symbol::new(last_part(chosen));
                    self.function_schema(chosen).await?
                }
                (None, None) => return Err(self.missing_member(span, ty, name)),
            }
        };
        let (operands, result) = self.match_function(span, &schema, &args)?;
        let attrs = vec![(attr_names::name(), Attr::str(name.as_str()))];
        Ok(Sugar::Value(self.value_with(Prim::CallMethod, &operands, attrs, result)))
    }

    /// Lets the resolver define a class before it is inspected.
    pub(crate) fn complete(&self, ty: Type) -> Res<()> {
        self.session.resolver().complete(self.session, ty)
    }

    /// Compiles `C(...)`: creates an object and calls `__init__`.
    async fn construct(&self, span: Span, ty: Type, args: CallArgs) -> Res<ValueId> {
        self.complete(ty)?;
        self.at(span);
        let object = self.value(Prim::CreateObject, &[], ty);
        let has_init = self
            .session
            .with_unit(|u| u.class(ty).is_some_and(|c| c.methods.contains_key(&Symbol::new("__init__"))));
        if !has_init {
            return self
                .fail(span, format!("Class {} does not have an __init__ function defined", ty.annotation()));
        }
        self.call_method(span, object, Symbol::new("__init__"), args).await?;
        Ok(object)
    }

    fn named_tuple(&self, span: Span, ty: Type, args: &CallArgs) -> Res<ValueId> {
        let Some(tuple) = ty.as_tuple() else { return self.fail(span, "this is not a tuple") };
        let Some(named) = &tuple.named else { return self.fail(span, "this tuple has no names") };
        let schema = FunctionSchema {
            name: named.name,
            overload: Symbol::EMPTY,
            args: named
                .fields
                .iter()
                .zip(&tuple.elems)
                .map(|(f, &t)| {
                    let arg = flambeau_ir::schema::Argument::new(f.name, t);
                    match f.default.and_then(|d| super::classes::default_of(self.session, d.as_str(), t)) {
                        Some(default) => arg.with_default(default),
                        None => arg,
                    }
                })
                .collect(),
            returns: vec![flambeau_ir::schema::Argument::new(Symbol::EMPTY, ty)],
            vararg: false,
            varret: false,
        };
        let (operands, _) = self.match_function(span, &schema, args)?;
        Ok(self.value(Prim::TupleConstruct, &operands, ty))
    }

    /// Compiles `E("message")`.
    fn exception(&self, span: Span, class: Symbol, args: &CallArgs) -> Res<Sugar> {
        if !args.keywords.is_empty() {
            return self.fail(span, format!("{} takes no keyword arguments", last_part(class)));
        }
        self.at(span);
        let values: Vec<ValueId> = args.positional.iter().map(|g| g.value).collect();
        if class == "builtins.AssertionError" {
            // The class of an `AssertionError` is not recorded, so its message starts with the class name.
            let mut message = self.string("AssertionError: ");
            for value in values {
                let text = self.as_text(span, value)?;
                message = self.builtin(span, "aten::add", &[message, text])?;
            }
            return Ok(Sugar::Raised(message, None));
        }
        let message = match values.as_slice() {
            [] => self.string(""),
            [one] => *one,
            many => self.tuple(many),
        };
        let class = self.string(class.as_str());
        Ok(Sugar::Raised(message, Some(class)))
    }

    /// Converts a value to a string.
    pub(crate) fn as_text(&self, span: Span, value: ValueId) -> Res<ValueId> {
        if self.ty(value) == Type::STR { Ok(value) } else { self.builtin(span, "aten::str", &[value]) }
    }

    // --- tasks ---------------------------------------------------------------------------------------------------------

    /// Compiles `fork(f, ...)` or `awaitable(f, ...)`: a node with the call in a subgraph.
    pub(crate) async fn fork(&self, tree: TreeId, inputs: &[TreeId], kind: Prim) -> Res<ValueId> {
        let span = self.span(tree);
        let Some((&callee, _)) = inputs.split_first() else {
            return self.fail(span, "fork needs a function to call");
        };
        let sugar = self.sugar(callee, None).await?;
        let mut args = self.arguments_after(tree, 1).await?;
        let (function, method) = match sugar {
            Sugar::Closure(def) => {
                let (captured, task, result) = self.deeper(deep_compile::closure(self.clone(), def)).await?;
                return Ok(self.task(span, kind, &captured, task, result));
            }
            Sugar::Function(name) => (name, None),
            Sugar::Method(object, name) => {
                args.positional.insert(0, self.given(object));
                (self.method_function(span, object, name)?, Some(name))
            }
            Sugar::Value(object) if self.ty(object).as_class().is_some() => {
                let name = Symbol::new("forward");
                args.positional.insert(0, self.given(object));
                (self.method_function(span, object, name)?, Some(name))
            }
            Sugar::Builtin(_, None) | Sugar::Magic(..) => {
                let task = deep_compile::operator_task(self.clone(), span, sugar, args);
                let (captured, task, result) = self.deeper(task).await?;
                return Ok(self.task(span, kind, &captured, task, result));
            }
            other => return self.fail(span, format!("cannot call a {}", other.describe())),
        };
        let schema = self.function_schema(function).await?;
        let (operands, result) = self.match_function(span, &schema, &args)?;
        let mut task = flambeau_ir::Graph::new(std::sync::Arc::clone(self.session.registry()));
        let source = task.locs_mut().add_source(&self.fun.file.source);
        let loc = task.locs_mut().at(source, span.start..span.end);
        let mut e = task.edit();
        e.loc(loc);
        // Constants are copied into the subgraph and not passed as operands.
        let (mut inner, mut captured) = (Vec::with_capacity(operands.len()), Vec::new());
        for &operand in &operands {
            inner.push(match self.known(operand) {
                Some(constant) => e.constant_of(constant, self.ty(operand)),
                None => {
                    captured.push(operand);
                    e.add_input(self.ty(operand))
                }
            });
        }
        let (prim, attrs) = match method {
            Some(name) => (Prim::CallMethod, vec![(attr_names::name(), Attr::str(name.as_str()))]),
            None => {
                let attrs = e.attrs(vec![(attr_names::name(), Attr::str(last_part(function)))]);
                let constant = e.insert(Prim::Constant, &[], attrs, &[Type::function(function)]);
                let constant = e.graph().result(constant, 0);
                inner.insert(0, constant);
                (Prim::CallFunction, Vec::new())
            }
        };
        let attrs = e.attrs(attrs);
        let call = e.insert(prim, &inner, attrs, &[result]);
        let output = e.graph().result(call, 0);
        e.add_output(output);
        Ok(self.task(span, kind, &captured, task, result))
    }

    /// Appends the node that runs a subgraph as a task.
    fn task(
        &self,
        span: Span,
        kind: Prim,
        operands: &[ValueId],
        task: flambeau_ir::Graph,
        result: Type,
    ) -> ValueId {
        self.at(span);
        let attrs = vec![(attr_names::subgraph(), Attr::Graph(std::sync::Arc::new(task)))];
        let ty = if kind == Prim::Fork { Type::future(result) } else { Type::awaitable(result) };
        self.value_with(kind, operands, attrs, ty)
    }

    /// Returns the qualified name of the function that implements a method of an object.
    fn method_function(&self, span: Span, object: ValueId, name: Symbol) -> Res<Symbol> {
        let ty = self.ty(object);
        self.complete(ty)?;
        match self.session.with_unit(|u| u.class(ty).and_then(|c| c.methods.get(&name).copied())) {
            Some(function) => Ok(function),
            None => self.fail(span, format!("'{}' has no method '{name}'", ty.annotation())),
        }
    }
}

/// Returns the last component of a qualified function name. The function type carries the whole name.
fn last_part(name: Symbol) -> &'static str {
    let text = name.as_str();
    text.rsplit_once('.').map_or(text, |(_, last)| last)
}
