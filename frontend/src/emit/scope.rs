//! The emitter's interface for resolvers and sugared values: append nodes, query types, report problems.

use flambeau_ir::{Diagnostic, IValue, Op, Symbol, Type, ValueId};

use super::fun::Cx;
use super::matching::CallArgs;
use crate::span::Span;

/// The insertion point in the function being compiled.
pub struct Scope<'c> {
    cx: Cx<'c>,
}

impl<'c> Scope<'c> {
    pub(crate) fn new(cx: &Cx<'c>) -> Self {
        Scope { cx: cx.clone() }
    }

    pub(super) fn cx(&self) -> &Cx<'c> {
        &self.cx
    }

    /// Creates an error at `span`.
    pub fn error(&self, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
        self.cx.error(span, message)
    }

    /// Appends a constant and returns its value.
    pub fn constant(&self, value: IValue) -> ValueId {
        self.cx.constant(value)
    }

    /// Appends a node with one result and returns the result.
    pub fn value(&self, op: Op, operands: &[ValueId], result: Type) -> ValueId {
        self.cx.value(op, operands, result)
    }

    /// Calls the overload of operator `name` that matches the arguments.
    ///
    /// # Errors
    ///
    /// Returns a diagnostic at `span` if no overload matches.
    pub fn call(
        &self,
        span: Span,
        name: Symbol,
        positional: &[ValueId],
        keywords: &[(Symbol, ValueId)],
    ) -> Result<ValueId, Box<Diagnostic>> {
        let args = CallArgs {
            receiver: None,
            positional: positional.iter().map(|&v| self.cx.given(v)).collect(),
            keywords: keywords.iter().map(|&(n, v)| (n, self.cx.given(v))).collect(),
        };
        self.cx.call_builtin(span, name, &args)
    }

    /// Returns the type of a value.
    pub fn ty(&self, value: ValueId) -> Type {
        self.cx.ty(value)
    }

    /// Returns the value as a constant, if it is one at compile time.
    pub fn known(&self, value: ValueId) -> Option<IValue> {
        self.cx.known(value)
    }
}
