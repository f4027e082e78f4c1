//! TorchScript front end: source to graph (lexer, parser, emitter, conversion to SSA) and graph to source (printer).

pub mod emit;
pub mod lex;
mod limits;
mod literal;
pub mod parse;
pub mod print;
pub mod span;
pub mod ssa;
mod trampoline;
pub mod tree;
pub mod view;

pub use emit::{
    CompileSession, NativeResolver, Overload, Resolver, SourceFile, Sugar, SugaredValue, compile,
    compile_sources, compile_stages, compile_with, host_function, host_object,
};
pub use limits::FrontendLimits;
pub use parse::{Parsed, parse, parse_expression};
pub use span::{Problem, ProblemKind, Span};
pub use tree::{Ast, Leaf, SyntaxOp, TreeId, TreeKind};
