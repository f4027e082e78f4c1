//! Executes graphs: a reference evaluator and a register bytecode machine, which must produce identical results.
//!
//! Operators register their computation as facets: a [`Kernel`], optionally an [`Intrinsic`] (the machine then executes
//! the operator as an instruction), and a [`Sample`] that generates arguments for tests. This crate refers to no
//! operator by name.

mod bailout;
pub mod bytecode;
pub mod callees;
mod counter;
mod emit;
pub mod error;
pub mod eval;
mod fast_path;
mod fused;
pub mod host;
mod instruction_counts;
pub mod intrinsic;
pub mod isolation;
pub mod kernel;
mod listing;
pub mod pointwise;
mod protections;
pub mod reference;
mod resident;
pub mod resolve;
pub mod sample;
pub mod soundness;
mod structural;
pub mod tape;
mod timing;
pub mod try_cell;
mod views;
pub mod vm;

pub use bailout::{BailoutHandler, BailoutState, FailedCheck};
pub use bytecode::Code;
pub use callees::Callees;
pub use error::{ExecError, Fault, KernelError, TraceEntry};
pub use eval::{EvalLimits, eval_node, run_node};
pub use fast_path::{DictList, FastPath};
pub use host::{CancelToken, Host, HostCalls, ProfileReceiver, Warning};
pub use instruction_counts::{CodeCounts, InstructionCounts};
pub use intrinsic::{Intrinsic, OfElement, OfTransposed, ScalarKind, ScalarOp};
pub use isolation::Isolation;
pub use kernel::{CallOrigin, Kernel, KernelCx, KernelResult, OpDefExt, Rets, panic_message};
pub use pointwise::{Pointwise, TileArg, TileBuilder, TileOp, TileStep, TileVal};
pub use sample::{Gen, Sample, Tolerance};
pub use structural::{fits_inputs, fits_tensor, is_control, is_refined, one_value};
pub use timing::{NodeTime, NodeTimes};
pub use try_cell::TryCell;
pub use views::{ViewFunction, ViewNumbers, ViewOf};
pub use vm::{CompiledProgram, Vm};
