//! Flambeau: a compiler framework for TorchScript programs, without libtorch and without Python.
//!
//! A [`Session`] holds the operators, the limits and the mode of execution. It compiles TorchScript source, reads IR
//! text, and loads `.pt` archives into a [`Program`], whose entries can be called, printed and optimized. A [`Module`]
//! gives access to the module of an archive.
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
//! Extensions use the modules [`ir`], [`analysis`], [`rewrite`], [`exec`], [`tensor`], [`frontend`] and `archive`,
//! which list the stable items of the inner crates. All other items of those crates may change.
//!
//! # Features
//!
//! All are on by default. Without any, programs are still compiled, read, analysed, rewritten and printed.
//!
//! | feature | adds |
//! |---|---|
//! | `kernels` | the kernels of the standard operators. Without it a call that reaches one is an error (`X0002`, [`Fault::Unsupported`]), and constants are folded only where no kernel is needed; schemas, effects, aliasing, shapes, derivatives and rules are the same |
//! | `archive` | `.pt` archives and weight files: loading, saving, freezing |
//! | `export` | exported programs, `.pt2` files; includes `archive` |
//! | `egraph` | equality saturation: the pass `egraph` |

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(feature = "archive")]
mod archives;
#[cfg(feature = "archive")]
mod as_module;
mod background;
mod check_ad;
mod engine;
mod error;
#[cfg(feature = "export")]
mod exported;
#[cfg(feature = "export")]
mod exported_module;
#[cfg(feature = "export")]
mod exporter;
mod exports;
mod failures;
#[cfg(feature = "archive")]
mod freeze;
mod functional;
mod gradients;
pub mod json;
mod limits;
mod module;
#[cfg(feature = "export")]
mod module_forms;
mod optim;
mod plans;
mod program;
mod recording;
#[cfg(feature = "archive")]
mod save;
#[cfg(feature = "export")]
mod scalar_operands;
mod session;
pub mod trace;
#[cfg(feature = "export")]
mod unflatten;

#[cfg(feature = "archive")]
pub use archives::StateMismatch;
pub use error::Error;
#[cfg(feature = "export")]
pub use exported::ExportedProgram;
#[cfg(feature = "export")]
pub use exporter::{DecompositionTable, DynamicSize, ExportOptions};
#[cfg(feature = "archive")]
pub use exports::archive;
#[cfg(feature = "export")]
pub use exports::export;
pub use exports::{analysis, exec, executor, frontend, ir, rewrite, tensor};
pub use failures::OptimizationFailure;

pub use check_ad::{AdCheck, AdProblem, AdReport};
pub use flambeau_ir::{Fault, FunctionSchema, Graph, IValue, Type};
pub use flambeau_tensor::Tensor;
pub use limits::{Limits, OptimizationLimits, RunLimits};
pub use module::Module;
pub use optim::{Optimizer, UpdateRule};
pub use plans::RestoredPlans;
pub use program::{Entry, Program};
pub use session::{Compilation, Execution, Session, SessionBuilder};
