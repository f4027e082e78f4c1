//! Host objects: values that a resolver leaves to the embedding program.
//!
//! Member reads and calls of a host object become nodes that call back into the host at run time ([`HostOp`]). Their
//! results have type `PyObject`; their members and calls are compiled in the same way. An annotation converts a host
//! object back with `prim::CastFromPython`, which fails at run time if the object is of another type.

use std::rc::Rc;

use flambeau_ir::{Diagnostic, HostOp, Prim, Symbol, Type, ValueId};

use super::fun::Cx;
use super::matching::CallArgs;
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
}
