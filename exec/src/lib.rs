//! Runs graphs: a plain reference evaluator and a register bytecode machine that must agree.
//!
//! Operators bring their computation as facets: a [`Kernel`], perhaps the claim to be an [`Intrinsic`], and a
//! [`Sample`] of what they should be tried on. This crate knows no operator by name.

pub mod bytecode;
pub mod callees;
mod emit;
pub mod error;
pub mod eval;
mod fused;
pub mod host;
pub mod intrinsic;
pub mod kernel;
pub mod pointwise;
mod protections;
pub mod reference;
mod resolve;
pub mod sample;
pub mod soundness;
mod structural;
pub mod tape;
pub mod try_cell;
pub mod vm;

pub use bytecode::Code;
pub use callees::Callees;
pub use error::{ExecError, Fault, KernelError, TraceEntry};
pub use eval::{EvalLimits, eval_node};
pub use host::{CancelToken, Host, HostCalls};
pub use intrinsic::{Intrinsic, OfElement, ScalarKind, ScalarOp};
pub use kernel::{Kernel, KernelCx, KernelResult, OpDefExt, Rets, Site, panic_message};
pub use pointwise::{Pointwise, TileArg, TileBuilder, TileOp, TileStep, TileVal};
pub use sample::{Gen, Sample, Tolerance};
pub use structural::{fits_tensor, one_value};
pub use try_cell::TryCell;
pub use vm::{Program, Vm};
