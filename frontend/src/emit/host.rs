//! Host objects: values that a resolver leaves to the embedding program.
//!
//! Member reads and calls of a host object become nodes that call back into the host at run time ([`HostOp`]). Their
//! results have type `PyObject`; their members and calls are compiled in the same way. An annotation converts a host
//! object back with `prim::CastFromPython`, which fails at run time if the object is of another type.

use std::rc::Rc;

use flambeau_ir::{Diagnostic, FunctionSchema, HostOp, Prim, Symbol, Type, ValueId};

use super::fun::{Cx, Res};
use super::matching::{CallArgs, CallArgument};
use super::scope::Scope;
use super::sugar::{Sugar, SugaredValue};
use crate::span::Span;

/// Returns a sugared value for the object that the host resolves by this dotted path at run time.
pub fn host_object(path: &str) -> Sugar {
    Sugar::Custom(Rc::new(HostPath(Symbol::new(path))))
}

/// A host object, by its dotted path.
#[derive(Debug)]
struct HostPath(Symbol);

impl SugaredValue for HostPath {
    fn kind(&self) -> &str {
        "host object"
    }

    fn as_value(&self, scope: &Scope<'_>, span: Span) -> Result<ValueId, Box<Diagnostic>> {
        Ok(scope.host(span, HostOp::Object(self.0), &[]))
    }

    fn attr(&self, _scope: &Scope<'_>, _span: Span, name: &str) -> Result<Sugar, Box<Diagnostic>> {
        Ok(host_object(&format!("{}.{name}", self.0)))
    }

    fn call(
        &self,
        scope: &Scope<'_>,
        span: Span,
        positional: &[ValueId],
        keywords: &[(Symbol, ValueId)],
    ) -> Result<Sugar, Box<Diagnostic>> {
        let operands: Vec<ValueId> =
            positional.iter().copied().chain(keywords.iter().map(|(_, v)| *v)).collect();
        let names = keywords.iter().map(|(name, _)| *name).collect();
        Ok(Sugar::Value(scope.host(span, HostOp::Function(self.0, names), &operands)))
    }
}

/// Returns a sugared value for a function that the host resolves by this dotted path at run time, and whose calls fit the
/// signature of a function that the program declares. The latter is not compiled.
pub fn host_function(path: &str, declaration: &str) -> Sugar {
    Sugar::Custom(Rc::new(HostFunction { path: Symbol::new(path), declaration: Symbol::new(declaration) }))
}

/// A function of the host with a signature.
#[derive(Debug)]
struct HostFunction {
    path: Symbol,
    declaration: Symbol,
}

impl SugaredValue for HostFunction {
    fn kind(&self) -> &str {
        "host function"
    }

    fn as_value(&self, scope: &Scope<'_>, span: Span) -> Result<ValueId, Box<Diagnostic>> {
        Ok(scope.host(span, HostOp::Object(self.path), &[]))
    }

    fn call(
        &self,
        scope: &Scope<'_>,
        span: Span,
        positional: &[ValueId],
        keywords: &[(Symbol, ValueId)],
    ) -> Result<Sugar, Box<Diagnostic>> {
        let cx = scope.cx();
        let schema = FunctionSchema { name: self.path, ..cx.session.declaration(self.declaration)? };
        let args = CallArgs {
            positional: positional.iter().map(|&value| cx.given(value)).collect(),
            keywords: keywords.iter().map(|&(name, value)| (name, cx.given(value))).collect(),
            ..CallArgs::default()
        };
        let (operands, _) = cx.match_function(span, &schema, &args)?;
        let names = schema.args.iter().filter(|arg| arg.kwarg_only).map(|arg| arg.name).collect();
        Ok(Sugar::Value(scope.host(span, HostOp::Function(self.path, names), &operands)))
    }
}

impl Scope<'_> {
    /// Appends an operation on host objects and returns its result.
    pub fn host(&self, span: Span, op: HostOp, operands: &[ValueId]) -> ValueId {
        self.cx().host(span, &op, operands)
    }
}

impl Cx<'_> {
    pub(super) fn host(&self, span: Span, op: &HostOp, operands: &[ValueId]) -> ValueId {
        self.at(span);
        self.value_with(Prim::PythonOp, operands, op.attrs(), Type::PY_OBJECT)
    }

    /// Calls a host object.
    pub(super) fn call_host(&self, span: Span, callee: ValueId, args: &CallArgs) -> ValueId {
        let operands: Vec<ValueId> = [callee]
            .into_iter()
            .chain(args.positional.iter().map(|g| g.value))
            .chain(args.keywords.iter().map(|(_, g)| g.value))
            .collect();
        self.host(span, &HostOp::Call(args.keywords.iter().map(|(name, _)| *name).collect()), &operands)
    }

    /// Casts a host object to the annotated type.
    pub(super) fn cast_host(&self, value: ValueId, to: Type) -> ValueId {
        self.value(Prim::CastFromPython, &[value], to)
    }

    /// Calls a function of the host by its path.
    pub(super) fn host_function(&self, span: Span, path: &str, operands: &[ValueId]) -> ValueId {
        self.host(span, &HostOp::Function(Symbol::new(path), Vec::new()), operands)
    }

    /// Returns true if a value is a host object.
    pub(super) fn is_host(&self, value: ValueId) -> bool {
        self.ty(value) == Type::PY_OBJECT
    }

    /// Applies an operator by the name of its method, `__add__`, if an operand is a host object.
    pub(super) fn operate_on_host(&self, span: Span, method: &str, args: &[ValueId]) -> Option<ValueId> {
        let is_host = args.iter().any(|&arg| self.is_host(arg));
        is_host.then(|| self.host_function(span, &format!("operator.{method}"), args))
    }

    /// Returns the elements of a host object as a list.
    pub(super) fn elements_of_host(&self, span: Span, object: ValueId) -> ValueId {
        let list = self.host_function(span, "builtins.list", &[object]);
        self.cast_host(list, Type::list(Type::PY_OBJECT))
    }

    /// Calls an operator on host objects: one that Python has under another name, or a tensor operator, to whose
    /// parameters the objects are cast. Returns `None` without a host object among the arguments.
    pub(super) fn builtin_on_host(&self, span: Span, name: Symbol, args: &CallArgs) -> Res<Option<ValueId>> {
        if !args.has_host() {
            return Ok(None);
        }
        if let Some((_, path, result)) = FUNCTIONS.iter().find(|(op, ..)| name == *op) {
            let operands: Vec<ValueId> = args.all().map(|g| g.value).collect();
            let names = args.keywords.iter().map(|(name, _)| *name).collect();
            let value = self.host(span, &HostOp::Function(Symbol::new(path), names), &operands);
            return Ok(Some(result.map_or(value, |ty| self.cast_host(value, ty))));
        }
        let registry = self.session.registry();
        // As many parameters without names as there are arguments without names, and every name.
        let unnamed = args.all().count() - args.keywords.len();
        let fits = |schema: &&FunctionSchema| {
            let positional = schema.args.iter().filter(|arg| !arg.kwarg_only).count();
            let has = |name: Symbol| schema.args.iter().any(|arg| arg.name == name);
            schema.vararg || unnamed <= positional && args.keywords.iter().all(|(name, _)| has(*name))
        };
        let schemas = registry.overloads(name).iter().map(|&id| registry.schema(id));
        let Some(schema) = schemas.into_iter().find(fits) else { return Ok(None) };
        let cast = self.cast_arguments(span, schema, args);
        self.call_builtin(span, name, &cast).map(Some)
    }

    /// Casts the host objects among arguments to the types of a function's parameters, and to strings where a function
    /// takes any number of arguments.
    pub(super) fn cast_arguments(&self, span: Span, schema: &FunctionSchema, args: &CallArgs) -> CallArgs {
        let cast = |given: &CallArgument, ty: Option<Type>| match ty {
            _ if given.ty != Type::PY_OBJECT => *given,
            Some(Type::ANY | Type::PY_OBJECT) => *given,
            Some(ty) => self.given(self.cast_host(given.value, ty)),
            None => {
                let text = self.host_function(span, "builtins.str", &[given.value]);
                self.given(self.cast_host(text, Type::STR))
            }
        };
        let bound = usize::from(args.receiver.is_some());
        let positional = args.positional.iter().enumerate();
        let formal = |i: usize| schema.args.get(i).map(|arg| arg.ty);
        let named = |name: Symbol| schema.args.iter().find(|arg| arg.name == name).map(|arg| arg.ty);
        CallArgs {
            receiver: args.receiver.as_ref().map(|g| cast(g, formal(0))),
            positional: positional.map(|(i, g)| cast(g, formal(i + bound))).collect(),
            keywords: args.keywords.iter().map(|(n, g)| (*n, cast(g, named(*n)))).collect(),
        }
    }
}

/// Builtin functions of programs, the functions of Python for host objects, and the types of their results.
const FUNCTIONS: &[(&str, &str, Option<Type>)] = &[
    ("aten::len", "builtins.len", Some(Type::INT)),
    ("aten::Int", "builtins.int", Some(Type::INT)),
    ("aten::Float", "builtins.float", Some(Type::FLOAT)),
    ("aten::Complex", "builtins.complex", Some(Type::COMPLEX)),
    ("aten::Bool", "operator.truth", Some(Type::BOOL)),
    ("aten::str", "builtins.str", Some(Type::STR)),
    ("aten::__is__", "operator.is_", Some(Type::BOOL)),
    ("aten::__isnot__", "operator.is_not", Some(Type::BOOL)),
    ("aten::Delete", "operator.__delitem__", None),
    ("aten::hash", "builtins.hash", Some(Type::INT)),
    ("aten::ord", "builtins.ord", Some(Type::INT)),
    ("aten::chr", "builtins.chr", Some(Type::STR)),
    ("aten::hex", "builtins.hex", Some(Type::STR)),
    ("aten::oct", "builtins.oct", Some(Type::STR)),
    ("aten::bin", "builtins.bin", Some(Type::STR)),
    ("aten::abs", "builtins.abs", None),
    ("aten::round", "builtins.round", None),
    ("aten::sorted", "builtins.sorted", None),
    ("aten::sum", "builtins.sum", None),
    ("aten::divmod", "builtins.divmod", None),
    ("aten::all", "builtins.all", Some(Type::BOOL)),
    ("aten::any", "builtins.any", Some(Type::BOOL)),
    ("prim::min", "builtins.min", None),
    ("prim::max", "builtins.max", None),
    ("prim::abs", "builtins.abs", None),
];
