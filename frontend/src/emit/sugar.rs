//! Values of compile time.
//!
//! What a name or expression stands for need not exist when the program runs: a module, a class, a
//! function, `range(n)`. [`Sugar`] is such a value or a first-class one. The kinds the language
//! itself knows are its variants, resolved by the emitter; a resolver brings in kinds of its own
//! through the trait [`SugaredValue`].

use std::fmt;
use std::rc::Rc;

use flambeau_ir::{IValue, Symbol, Type, ValueId};

use super::scope::Scope;
use crate::span::Span;
use flambeau_ir::Diagnostic;

/// What a name or expression means while compiling.
#[derive(Clone, Debug)]
pub enum Sugar {
    /// A first-class value.
    Value(ValueId),
    /// A constant, not in the graph yet.
    Constant(IValue),
    /// A member of a namespace of builtins such as `torch` or `torch.linalg`.
    Namespace(Symbol),
    /// An operator by name, `aten::relu`; with the object it is a method of.
    Builtin(Symbol, Option<ValueId>),
    /// The values of an expression that unpacks.
    Tuple(Rc<[Sugar]>),
    /// A class; calling it makes an object.
    Class(Type),
    /// `C.__new__`; calling it makes an object that is not initialized.
    NewObject(Type),
    /// A named tuple's type; calling it makes a tuple.
    NamedTuple(Type),
    /// An enum class.
    Enum(Type),
    /// A function by qualified name.
    Function(Symbol),
    /// A function inside of the function being compiled, by its tree.
    Closure(crate::TreeId),
    /// A method of an object.
    Method(ValueId, Symbol),
    /// `print`.
    Print,
    /// What `print(...)` gives: nothing that can be used.
    Nothing,
    /// `int`, `float`, `complex`, `bool`, `str`: the operator and the type it makes.
    Cast(Symbol, Type),
    /// An operator that a class can define by this method.
    Magic(Symbol, Rc<Sugar>),
    /// A construct that looks like a call.
    Special(Special),
    /// `range(...)`.
    Range(Rc<Range>),
    /// `zip(...)`, `enumerate(...)`, or what else is walked in step.
    Zip(Rc<[Sugar]>),
    /// An exception class, by qualified name.
    Exception(Symbol),
    /// An exception with its message and, if known, class.
    Raised(ValueId, Option<ValueId>),
    /// `slice(...)`: start, stop, step.
    Slice([Option<ValueId>; 3]),
    /// A kind that the resolver knows.
    Custom(Rc<dyn SugaredValue>),
}

/// Constructs that look like calls but are compiled in their own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after the constructs")]
pub enum Special {
    Annotate,
    Uninitialized,
    UncheckedCast,
    GetAttr,
    HasAttr,
    IsInstance,
    Tuple,
    List,
    Dict,
    Range,
    Zip,
    Enumerate,
    Slice,
    Fork,
    Awaitable,
    ToList,
}

/// `range(start, stop, step)`.
#[derive(Clone, Debug)]
pub struct Range {
    /// The first number.
    pub start: ValueId,
    /// The first number not reached.
    pub stop: ValueId,
    /// The distance.
    pub step: ValueId,
    /// Whether only `stop` was given.
    pub plain: bool,
    /// The number of turns, if known.
    pub length: Option<i64>,
}

/// A kind of value that a resolver brings into the language.
///
/// Every method that is not implemented answers that the value does not support the operation.
pub trait SugaredValue: fmt::Debug {
    /// What it is called in messages.
    fn kind(&self) -> &str;

    /// The value as a first-class one.
    ///
    /// # Errors
    /// If there is no such value.
    fn as_value(&self, scope: &Scope<'_>, span: Span) -> Result<ValueId, Box<Diagnostic>> {
        Err(scope.error(span, format!("{} cannot be used as a value", self.kind())))
    }

    /// `self.name`.
    ///
    /// # Errors
    /// If there is no such member.
    fn attr(&self, scope: &Scope<'_>, span: Span, name: &str) -> Result<Sugar, Box<Diagnostic>> {
        Err(scope.error(span, format!("attribute lookup is not defined on {} (for `{name}`)", self.kind())))
    }

    /// `self(positional, keywords)`.
    ///
    /// # Errors
    /// If it cannot be called so.
    fn call(
        &self,
        scope: &Scope<'_>,
        span: Span,
        positional: &[ValueId],
        keywords: &[(Symbol, ValueId)],
    ) -> Result<Sugar, Box<Diagnostic>> {
        let _ = (positional, keywords);
        Err(scope.error(span, format!("cannot call a {}", self.kind())))
    }
}

impl Sugar {
    /// What it is called in messages.
    pub fn describe(&self) -> &str {
        match self {
            Sugar::Value(_) | Sugar::Constant(_) => "value",
            Sugar::Namespace(_) => "module",
            Sugar::Builtin(..) | Sugar::Magic(..) => "builtin",
            Sugar::Tuple(_) => "tuple",
            Sugar::Class(_) => "class",
            Sugar::NewObject(_) => "constructor",
            Sugar::NamedTuple(_) => "named tuple constructor",
            Sugar::Enum(_) => "enum class",
            Sugar::Function(_) | Sugar::Closure(_) => "function",
            Sugar::Method(..) => "method",
            Sugar::Print => "print",
            Sugar::Nothing => "the result of print",
            Sugar::Cast(..) => "type cast",
            Sugar::Special(_) => "special form",
            Sugar::Range(_) => "range",
            Sugar::Zip(_) => "iterator",
            Sugar::Exception(_) | Sugar::Raised(..) => "exception",
            Sugar::Slice(_) => "slice",
            Sugar::Custom(c) => c.kind(),
        }
    }
}
