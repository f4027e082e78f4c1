//! Generated programs, oracles over them, a reducer and planted bugs, as a library.
//!
//! [`generate`] makes programs and arguments from a source of choices, drawing operators from the registry, so that an
//! operator is fuzzed the day it gets a kernel and a sample. An [`oracle`] tests a property of a [`Case`]; own oracles
//! run programs with [`observe`]. A [`Campaign`] draws cases, counts how they end, and reduces the first failure
//! ([`reduce`]). The same functions run for seconds under `cargo xtask test`, for minutes under `flambeau fuzz`, and for
//! hours under coverage guidance (`fuzz/targets`).

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
pub use oracle::{Oracle, Outcome};
