//! Emitter: syntax trees to graphs.
//!
//! A [`CompileSession`] compiles functions and methods into a compilation unit. A name is looked up in this order: variables of
//! the function, the [`Resolver`], functions and types of the unit, builtins of the language. The compile-time meaning of
//! a name is a [`Sugar`]. The result is SSA ([`crate::ssa`]).

mod assign;
mod attr;
mod builtins;
mod call;
mod classes;
mod cond;
mod control;
mod deep_compile;
mod env;
mod expr;
mod fun;
mod hints;
mod host;
mod index;
mod known;
mod library;
mod lists;
mod matching;
mod names;
mod overloads;
mod recover;
mod scope;
mod session;
mod sorting;
mod special;
mod sugar;
mod types;

pub use fun::SourceFile;
pub(crate) use fun::is_meaningful;
pub use host::{host_function, host_object};
pub(crate) use names::structural;
pub(crate) use overloads::callable_overloads;
pub use scope::Scope;
pub use session::{
    CompileSession, NativeResolver, Overload, Resolver, StageText, compile, compile_sources, compile_stages,
    compile_with,
};
pub use sugar::{Range, Special, Sugar, SugaredValue};

#[cfg(test)]
mod tests;
