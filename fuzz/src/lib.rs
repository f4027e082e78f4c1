//! Generators, oracles, reducer and planted bugs as a library.
//!
//! [`gen`](generate) makes programs and inputs from bytes, drawing operators from the registry, so that an operator is
//! fuzzed the day it gets a kernel and a sample. An [`oracle`] takes a case and says whether something that must hold
//! does. [`reduce`](reduce::reduce) shrinks a failing case. The same functions run for seconds under `cargo xtask test`,
//! for minutes under `flambeau fuzz`, and for hours under coverage guidance (`fuzz/targets`).

pub mod campaign;
pub mod chance;
pub mod generate;
pub mod oracle;
pub mod raw;
pub mod reduce;
pub mod selftest;

pub use campaign::{Campaign, Tally};
pub use generate::{Case, Menu};
pub use oracle::{Oracle, Outcome};
