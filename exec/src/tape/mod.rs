//! Reverse-mode differentiation of what a program did: the gradient tape.
//!
//! While a [`Tape`] is set on the [`Host`], every operator that meets a tensor which requires a gradient leaves
//! a node behind: what it was, the operands and results its derivative needs, and the nodes its operands came from. The
//! nodes hang on the tensors they made (there is no list), so what nobody can reach any more is freed.
//! [`gradients`] walks them backwards.
//!
//! - `history.rs`: nodes and edges, and what a tensor remembers; views and their bases.
//! - `record.rs`: what one call of an operator adds.
//! - `backward.rs`: the walk.
//! - `region.rs`: gradients of views and of writes through views, which follow from layouts alone.
//!
//! This crate knows no operator: formulas come from [`Derivatives`]. Views need none.
//!
//! Invariants: a node's id is greater than those of all nodes it came from, so descending ids are a topological order; a
//! node never owns a tensor that remembers a node (what it saves are aliases without memory, what a leaf gathers belongs to
//! the leaf), and bases of views are no views: nothing goes in a circle, and dropping a result frees its history, without
//! recursion.

mod backward;
mod history;
mod record;
mod region;

use crate::error::{ExecError, KernelError};
use crate::host::Host;
use flambeau_ir::value::IValue;
use flambeau_ir::{Facet, OpId};
use std::sync::Arc;

pub use backward::{backward, detach, gathered, gradients, is_leaf, is_recorded};
pub(crate) use record::call;

/// Of an operator: it asks for gradients of what the program did before, so whatever runs the program has to record.
#[derive(Clone, Copy, Debug)]
pub struct AsksForGradients;

impl Facet for AsksForGradients {
    const NAME: &'static str = "asks_for_gradients";
}

/// Something a formula is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The gradient of a result; zeros if nothing came back to it.
    Grad(usize),
    /// An argument as it was before the call.
    Arg(usize),
    /// Zeros of an argument's sizes and type.
    Like(usize),
    /// A result.
    Result(usize),
}

/// The gradients of one or several arguments of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formula {
    /// The arguments: tensors or lists of tensors. If they are several, the formula gives a tuple.
    pub args: Vec<usize>,
    /// What it is computed from, in the order [`Derivatives::apply`] expects; `None` if the arguments get no gradient.
    pub inputs: Option<Vec<Input>>,
}

/// How gradients go backwards through an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Derivative {
    /// Not at all: its results are constants, whatever it read.
    Constant,
    /// As through a view: it changes in place which elements of its memory a tensor shows.
    Layout,
    /// By formulas; the gradient of an argument without one is not known.
    Formulas(Vec<Formula>),
    /// As through a body that computes the same: formula 0.
    Body {
        /// What it is computed from: arguments.
        inputs: Vec<Input>,
        /// Whether it draws random numbers: it has to draw the same again.
        draws: bool,
    },
}

/// Where a tape finds derivatives.
pub trait Derivatives: Send + Sync {
    /// The derivative of an operator, if one is known.
    fn of(&self, op: OpId) -> Option<Arc<Derivative>>;

    /// Computes formula `index` of an operator. A body's is recorded if the host has a tape.
    ///
    /// # Errors
    /// What the formula raises.
    fn apply(
        &self,
        op: OpId,
        index: usize,
        inputs: Vec<IValue>,
        host: &mut Host,
    ) -> Result<IValue, ExecError>;
}

/// The derivative of no operator: gradients come back to outputs that are leaves themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDerivatives;

impl Derivatives for NoDerivatives {
    fn of(&self, _: OpId) -> Option<Arc<Derivative>> {
        None
    }

    fn apply(&self, _: OpId, _: usize, _: Vec<IValue>, _: &mut Host) -> Result<IValue, ExecError> {
        Err(ExecError::of(&KernelError::internal("a formula of an operator that has none")))
    }
}

/// Says that results are to be differentiable.
#[derive(Clone)]
pub struct Tape {
    derivatives: Arc<dyn Derivatives>,
    /// How many bodies of operators are being differentiated around this one.
    nesting: usize,
}

impl Tape {
    /// A tape with these derivatives.
    pub fn new(derivatives: Arc<dyn Derivatives>) -> Tape {
        Tape { derivatives, nesting: 0 }
    }
}
