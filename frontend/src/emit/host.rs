//! Objects of the host: what a resolver may say a name stands for when only the embedding program knows.
//!
//! Reading members of them and calling them become nodes that ask the host when the program runs ([`HostOp`]). Their
//! results are of type `PyObject`, whose members and calls are compiled in the same way; under an annotation they are
//! brought back by `prim::CastFromPython`, which fails at run time if the host has something else.

use std::rc::Rc;

use flambeau_ir::{Diagnostic, HostOp, Prim, Symbol, Type, ValueId};

use super::fun::Cx;
use super::matching::Args;
use super::scope::Scope;
use super::sugar::{Sugar, SugaredValue};
use crate::span::Span;

/// What a name stands for that the host resolves by this dotted path when the program runs.
pub fn host_object(path: &str) -> Sugar {
    Sugar::Custom(Rc::new(HostPath(Symbol::new(path))))
}

/// An object of the host, by its path.
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
    /// Appends an operation on objects of the host.
    pub fn host(&self, span: Span, op: HostOp, operands: &[ValueId]) -> ValueId {
        self.cx().host(span, &op, operands)
    }
}

impl Cx<'_> {
    pub(super) fn host(&self, span: Span, op: &HostOp, operands: &[ValueId]) -> ValueId {
        self.at(span);
        self.value_with(Prim::PythonOp, operands, op.attrs(), Type::PY_OBJECT)
    }

    /// Calls an object of the host.
    pub(super) fn call_host(&self, span: Span, callee: ValueId, args: &Args) -> ValueId {
        let operands: Vec<ValueId> = [callee]
            .into_iter()
            .chain(args.positional.iter().map(|g| g.value))
            .chain(args.keywords.iter().map(|(_, g)| g.value))
            .collect();
        self.host(span, &HostOp::Call(args.keywords.iter().map(|(name, _)| *name).collect()), &operands)
    }

    /// An object of the host as what an annotation says it is.
    pub(super) fn cast_host(&self, value: ValueId, to: Type) -> ValueId {
        self.value(Prim::CastFromPython, &[value], to)
    }
}
