//! Flambeau: a compiler framework for TorchScript programs, without libtorch and without Python.
//!
//! A [`Session`] holds the operators, the limits and the way programs are executed. It compiles TorchScript source,
//! reads IR text, and loads `.pt` archives into a [`Program`], whose entries can be called, printed and optimized. What
//! an archive's module holds is a [`Module`].
//!
//! ```
//! use flambeau::{IValue, Session};
//!
//! let session = Session::standard()?;
//! let program = session.compile_source("def f(x: int, y: int) -> int:\n    return x * y + 1\n", "example.py")?;
//! let result = program.entry("f")?.call(&[IValue::Int(6), IValue::Int(7)], &[])?;
//! assert_eq!(result.as_int(), Some(43));
//! # Ok::<(), flambeau::Error>(())
//! ```
//!
//! Everything below is public too, under its own name: [`tensor`], [`ir`], [`analysis`], [`exec`], [`rewrite`],
//! [`frontend`], [`archive`].

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

mod as_module;
mod engine;
mod error;
mod failures;
mod freeze;
mod gradients;
pub mod json;
mod limits;
mod module;
mod program;
mod save;
mod session;

pub use error::Error;
pub use failures::OptimizationFailure;
pub use flambeau_analysis as analysis;
pub use flambeau_archive as archive;
pub use flambeau_exec as exec;
pub use flambeau_frontend as frontend;
pub use flambeau_ir as ir;
pub use flambeau_ops as ops;
pub use flambeau_rewrite as rewrite;
pub use flambeau_tensor as tensor;

pub use flambeau_ir::{Fault, FunctionSchema, Graph, IValue, Type};
pub use flambeau_tensor::Tensor;
pub use limits::{Limits, RunLimits};
pub use module::{Module, StateMismatch};
pub use program::{Entry, Program};
pub use session::{Execution, Session, SessionBuilder};
