//! Compile-time values.
//!
//! A name or expression need not denote a run-time value: it can be a module, a class, a function or `range(n)`.
//! [`Sugar`] is such a compile-time value or a first-class value. The kinds of the language itself are variants,
//! handled by the emitter; a resolver adds its own kinds through the trait [`SugaredValue`].

use std::fmt;
use std::rc::Rc;

use flambeau_ir::{IValue, Symbol, Type, ValueId};

use super::scope::Scope;
use crate::span::Span;
use flambeau_ir::Diagnostic;

/// The compile-time meaning of a name or expression.
#[derive(Clone, Debug)]
pub enum Sugar {
    /// A first-class value.
    Value(ValueId),
    /// A constant that is not in the graph yet.
    Constant(IValue),
    /// A namespace of builtins, such as `torch` or `torch.linalg`.
    Namespace(Symbol),
    /// An operator by name (`aten::relu`), with the receiver if it is a method.
    Builtin(Symbol, Option<ValueId>),
    /// The values of an unpacked expression.
    Tuple(Rc<[Sugar]>),
    /// A class; a call constructs an object.
    Class(Type),
    /// `C.__new__`; a call creates an uninitialized object.
    NewObject(Type),
    /// A named tuple type; a call constructs a tuple.
    NamedTuple(Type),
    /// An enum class.
    Enum(Type),
    /// A function, by qualified name.
    Function(Symbol),
    /// Functions of one name, by their qualified names: a call selects the first whose parameters its arguments fit.
    Overloads(Rc<[Symbol]>),
    /// A function nested in the function being compiled, by its tree.
    Closure(crate::TreeId),
    /// A method of an object: receiver and method name.
    Method(ValueId, Symbol),
    /// `print`.
    Print,
    /// The result of `print(...)`, which cannot be used.
    Nothing,
    /// `int`, `float`, `complex`, `bool`, `str`: the conversion operator and its result type.
    Cast(Symbol, Type),
    /// An operator that a class can overload with the method of this name.
    Magic(Symbol, Rc<Sugar>),
    /// A special form: a construct with the syntax of a call.
    Special(Special),
    /// `range(...)`.
    Range(Rc<Range>),
    /// `zip(...)`, `enumerate(...)` and other iterables that advance in lockstep.
    Zip(Rc<[Sugar]>),
    /// An exception class, by qualified name.
    Exception(Symbol),
    /// An exception: its message and, if known, its class name.
    Raised(ValueId, Option<ValueId>),
    /// `slice(...)`: start, stop, step.
    Slice([Option<ValueId>; 3]),
    /// A kind defined by the resolver.
    Custom(Rc<dyn SugaredValue>),
}

/// Special forms: they have the syntax of a call but their own compilation rules.
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
    /// A class of tensors of one dtype, such as `torch.LongTensor`.
    TypedTensor(i64),
}

/// `range(start, stop, step)`.
#[derive(Clone, Debug)]
pub struct Range {
    /// The first number.
    pub start: ValueId,
    /// The exclusive bound.
    pub stop: ValueId,
    /// The step.
    pub step: ValueId,
    /// Whether the elements are the numbers of the iterations: `start` is 0 and `step` is 1.
    pub counts_from_zero: bool,
    /// The number of iterations, if known at compile time.
    pub length: Option<i64>,
    /// Whether the range is the counter of `enumerate`, which does not limit the iterables beside it.
    pub is_endless: bool,
}

/// A kind of compile-time value that a resolver adds to the language.
///
/// The default implementation of each operation returns an error that the value does not support the operation.
pub trait SugaredValue: fmt::Debug {
    /// Returns the name of the kind in messages.
    fn kind(&self) -> &str;

    /// Converts the value to a first-class value.
    ///
    /// # Errors
    ///
    /// Returns a diagnostic at `span` if there is no such conversion.
    fn as_value(&self, scope: &Scope<'_>, span: Span) -> Result<ValueId, Box<Diagnostic>> {
        Err(scope.error(span, format!("{} cannot be used as a value", self.kind())))
    }

    /// Evaluates `self.name`.
    ///
    /// # Errors
    ///
    /// Returns a diagnostic at `span` if there is no such member.
    fn attr(&self, scope: &Scope<'_>, span: Span, name: &str) -> Result<Sugar, Box<Diagnostic>> {
        Err(scope.error(span, format!("attribute lookup is not defined on {} (for `{name}`)", self.kind())))
    }

    /// Evaluates `self(positional, keywords)`.
    ///
    /// # Errors
    ///
    /// Returns a diagnostic at `span` if the value is not callable with these arguments.
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
    /// Returns the name of the kind in messages.
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
            Sugar::Function(_) | Sugar::Overloads(_) | Sugar::Closure(_) => "function",
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
