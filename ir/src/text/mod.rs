//! The text form of graphs: a printer in TorchScript's format, and a parser for a superset of that format.

mod attrs;
mod lex;
mod parse;
mod print;
mod resolve;
mod short;
mod tensors;
#[cfg(test)]
mod tests;
mod values;

pub use parse::{ReadLimits, parse_graph, parse_graph_with};
pub use print::{PrintOptions, PrintedLine};
