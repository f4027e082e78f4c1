//! Program generators, oracles, a test case reducer and planted bugs, as a library.
//!
//! [`generate`] makes programs and arguments from a source of choices, and draws operators from the registry, so that
//! every operator with a kernel and a sample is fuzzed. An [`oracle`] tests a property of a [`Case`]; oracles of other
//! crates run programs with [`observe`]. A [`Campaign`] draws cases, counts their outcomes, and reduces the first
//! failure ([`reduce`]). The same functions run for seconds under `cargo xtask test`, for minutes under `flambeau
//! fuzz`, and for hours with coverage guidance (`fuzz/targets`).

pub mod campaign;
pub mod case;
mod dead_errors;
pub mod generate;
pub mod isolated;
pub mod kernels;
pub mod literal;
pub mod observe;
pub mod oracle;
mod planted;
pub mod raw;
pub mod reduce;
pub mod seeded;
pub mod selftest;
pub mod sharing;
pub mod worker;

pub use campaign::{Campaign, Tally};
pub use case::Case;
pub use generate::OperatorPool;
pub use oracle::{CheckOutcome, Oracle};
