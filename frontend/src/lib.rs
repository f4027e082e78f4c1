//! TorchScript source to graph and back: lexer, parser, emitter, conversion to SSA, printer.

pub mod lex;
mod limits;
mod literal;
pub mod parse;
pub mod span;
pub mod tree;
pub mod view;

pub use limits::Limits;
pub use parse::{Parsed, parse, parse_expression};
pub use span::{Problem, ProblemKind, Span};
pub use tree::{Ast, Kind, Leaf, Op, Tree, TreeId};
