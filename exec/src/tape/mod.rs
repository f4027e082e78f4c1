//! Gradient tape: reverse-mode differentiation of recorded operator calls.
//!
//! While a [`Tape`] is set on the [`Host`], every operator that receives a tensor requiring a gradient creates a node.
//! The node holds the operator, the operands and results its derivative reads, and edges to the nodes of its operands.
//! Nodes are owned by the tensors they produced (there is no global list), so unreachable history is freed.
//! [`gradients`] walks the nodes backwards.
//!
//! - `history.rs`: nodes, edges and the metadata of tensors.
//! - `view.rs`: metadata of views, and the writes to views that PyTorch refuses.
//! - `record.rs`: recording of one operator call.
//! - `backward.rs`: the backward walk. A recorded walk can be differentiated again.
//! - `graph.rs`: calls of differentiated graphs, which are single nodes.
//! - `refusals.rs`: the calls that PyTorch refuses because gradients are required.
//! - `linear.rs`: the linear maps between formulas; `region.rs`: those of views and of writes through views, which follow
//!   from layouts alone.
//!
//! This crate contains no formulas: they come from [`Derivatives`]. Views require none.
//!
//! Invariants:
//! - A node's id is greater than the ids of all nodes it depends on, so descending ids are a topological order.
//! - A node never owns a tensor that has a node: saved tensors are aliases without history, and accumulated gradients
//!   belong to the leaf tensor. Bases of views are not views. So there are no reference cycles, except those that a hook closes
//!   which owns its tensor (`hooks.rs`), and dropping a result frees its history (without recursion).

mod backward;
mod graph;
mod history;
mod hooks;
mod linear;
mod record;
mod refusals;
mod region;
mod seeds;
mod view;

use crate::error::{ExecError, KernelError};
use crate::host::Host;
use flambeau_ir::value::IValue;
use flambeau_ir::{Facet, OpId};
use std::sync::Arc;

pub use backward::{
    accumulated_grad, backward, clear_accumulated_grad, detach, gradients, is_leaf, is_recorded,
    set_accumulated_grad,
};
pub use graph::{ArgSources, GraphDerivative, RecordedCall, has_views_by_layout, record_graph, record_view};
pub use history::BackwardOptions;
pub use hooks::{GradientHook, HookHandle, register_hook, retain_grad};
pub(crate) use record::call;
pub use refusals::{Refusals, RefusedArg};
pub use seeds::implicit_gradient;

/// Facet of operators that compute gradients of earlier operations, so the program that contains them must be recorded.
#[derive(Clone, Copy, Debug)]
pub struct RequestsGradients;

impl Facet for RequestsGradients {
    const NAME: &'static str = "requests_gradients";
}

/// Facet of operators whose results depend on the history of their operands, so that a graph which contains them cannot
/// run without a tape where PyTorch would record.
#[derive(Clone, Copy, Debug)]
pub struct ReadsHistory;

impl Facet for ReadsHistory {
    const NAME: &'static str = "reads_history";
}

/// Facet of operators that read or change the state of recording, which a differentiated graph has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingQuery {
    /// `(tensor)`: whether the tensor requires a gradient.
    RequiresGrad,
    /// `()`: whether gradients are enabled.
    GradEnabled,
    /// `(bool)`: enables or disables gradients.
    SetGradEnabled,
    /// `(tensor)`: drops the history of the tensor in place.
    Detach,
}

impl Facet for RecordingQuery {
    const NAME: &'static str = "recording_query";
}

/// Facet of view operators whose results are not recorded as one view whose elements follow from the shape of the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewRecord {
    /// The operator returns several views, and PyTorch refuses writes to each. The name is that of PyTorch's node, which
    /// the error has.
    Several(&'static str),
    /// The elements of the view follow from positions in memory, also where elements of the operand share memory.
    Memory,
}

impl Facet for ViewRecord {
    const NAME: &'static str = "view_record";
}

/// An input of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormulaInput {
    /// The gradient of a result; zeros if the result received none.
    Grad(usize),
    /// The gradients of the elements of a result that is a list of tensors; zeros for those that received none.
    Grads(usize),
    /// An argument as it was before the call.
    Arg(usize),
    /// A copy of an argument as it was before the call.
    Copy(usize),
    /// Zeros of an argument's sizes and dtype.
    Like(usize),
    /// A result.
    Result(usize),
}

/// The gradient formula of one or several arguments of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formula {
    /// Positions of the arguments (tensors or lists of tensors). For several arguments the formula returns a tuple.
    pub args: Vec<usize>,
    /// Inputs of the formula in the order [`Derivatives::apply`] expects; `None` if the arguments receive no gradient.
    pub inputs: Option<Vec<FormulaInput>>,
    /// Whether the gradient is constant in pieces of the arguments, so that its derivatives with respect to them are
    /// zero.
    pub is_piecewise: bool,
}

/// The derivative of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Derivative {
    /// Zero: the results are constants, whatever the operator reads.
    Constant,
    /// That of a view: the operator changes the layout of its tensor in place.
    Layout,
    /// Formulas. The gradient of an argument that no formula covers is unknown.
    Formulas(Vec<Formula>),
    /// That of a body which computes the same results; the body is formula 0.
    Body {
        /// Inputs of the body, all of them arguments.
        inputs: Vec<FormulaInput>,
        /// Whether the body draws random numbers, so that the rerun must reproduce the generator state.
        draws: bool,
    },
}

/// How a recorded call keeps an argument for the body of a composite operator, which the backward pass runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// As it is: the backward pass refuses an argument that was written, since derivatives of the operator's parts read it.
    Saved,
    /// As a copy: derivatives read tensors that were computed from it, so that it may be written.
    Copied,
    /// As it is: derivatives read at most its sizes, so that it may be written.
    Unread,
    /// As it is: it is not known what reads it. The backward pass refuses an argument that was written, but may run twice.
    Unknown,
}

/// The source of derivatives of a tape.
pub trait Derivatives: Send + Sync {
    /// Returns the derivative of an operator, if known.
    fn of(&self, op: OpId) -> Option<Arc<Derivative>>;

    /// Returns the derivative of an operator that returns views, as if it returned copies.
    fn of_copy(&self, _op: OpId) -> Option<Arc<Derivative>> {
        None
    }

    /// Returns which calls of an operator are refused because gradients are required.
    fn refusals(&self, _op: OpId) -> Option<Arc<Refusals>> {
        None
    }

    /// Returns how the views that an operator returns are recorded, if the operator states it.
    fn view_record(&self, _op: OpId) -> Option<ViewRecord> {
        None
    }

    /// Whether a result of an operator whose derivative is that of a body may depend differentiably on an argument.
    fn may_depend_on(&self, _op: OpId, _arg: usize) -> bool {
        true
    }

    /// Whether a result of such an operator certainly depends on no argument differentiably.
    fn is_constant_result(&self, _op: OpId, _result: usize) -> bool {
        false
    }

    /// Returns how a recorded call with these arguments keeps one of them for the body of such an operator, if the arguments for
    /// which `requires` holds require gradients.
    fn keeping(
        &self,
        _op: OpId,
        _args: &[IValue],
        _arg: usize,
        _requires: &dyn Fn(usize) -> bool,
    ) -> Keeping {
        Keeping::Unknown
    }

    /// Whether the derivatives of the parts of such an operator read a result of such a call.
    fn saves_result(
        &self,
        _op: OpId,
        _args: &[IValue],
        _result: usize,
        _requires: &dyn Fn(usize) -> bool,
    ) -> bool {
        false
    }

    /// Computes formula `index` of an operator, recorded if the host has a tape.
    ///
    /// # Errors
    /// Returns the errors that the formula raises.
    fn apply(
        &self,
        op: OpId,
        index: usize,
        inputs: Vec<IValue>,
        host: &mut Host,
    ) -> Result<IValue, ExecError>;
}

/// An empty set of derivatives: gradients reach only outputs that are leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDerivatives;

impl Derivatives for NoDerivatives {
    fn of(&self, _: OpId) -> Option<Arc<Derivative>> {
        None
    }

    fn apply(&self, _: OpId, _: usize, _: Vec<IValue>, _: &mut Host) -> Result<IValue, ExecError> {
        Err(ExecError::of(&KernelError::internal("the operator has no derivative formula")))
    }
}

/// Set on a host, enables recording of differentiable operations.
#[derive(Clone)]
pub struct Tape {
    derivatives: Arc<dyn Derivatives>,
    /// Nesting depth of operator bodies being differentiated.
    nesting: usize,
}

impl Tape {
    /// Creates a tape with these derivatives.
    pub fn new(derivatives: Arc<dyn Derivatives>) -> Tape {
        Tape { derivatives, nesting: 0 }
    }
}
