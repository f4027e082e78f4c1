//! The text form of graphs: a printer that agrees with TorchScript's and a reader for a superset of what is printed.

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
pub use print::{Line, PrintOptions};
