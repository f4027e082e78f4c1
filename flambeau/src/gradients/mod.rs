//! Gradients: the formulas of operators, calls of differentiated graphs, and backward passes.
//!
//! [`library`] compiles formulas for the tape of `flambeau_exec` and for differentiation, with [`dependence`] for composite
//! operators, and [`helpers`] for what differentiation needs beside formulas. [`preparation`] makes a function
//! ready for differentiation, where [`versions`] finds writes to memory that formulas read. [`graphs`] runs differentiated
//! graphs, whose memory the caller shares ([`memory`]).

mod dependence;
mod extensions;
pub(crate) mod graphs;
mod helpers;
mod library;
mod memory;
mod preparation;
mod versions;

pub(crate) use extensions::check_extensions;
pub(crate) use library::FormulaLibrary;

use crate::error::Error;
use crate::session::Session;
use flambeau_exec::tape::{self, BackwardOptions, HookHandle, Tape};
use flambeau_exec::{ExecError, Host, KernelError};
use flambeau_tensor::Tensor;
use std::sync::Arc;

impl Session {
    /// Returns a tape. Set on a [`Host`], it records a run, so that [`Session::gradients`] can compute gradients
    /// afterwards.
    ///
    /// # Errors
    /// `S0002` if stated derivatives are invalid.
    pub fn tape(&self) -> Result<Tape, Error> {
        Ok(Tape::new(self.gradient_library()?))
    }

    /// Returns the gradients of `inputs`, given those of `outputs`, which were computed by recorded calls. The gradient
    /// is `None` for an input on which no output depends. The history is retained.
    ///
    /// # Errors
    /// `X0002` if an operator between them has no derivative, an output does not require a gradient, or a tensor that a
    /// formula needs was written after it was recorded.
    pub fn gradients(
        &self,
        outputs: &[(Tensor, Tensor)],
        inputs: &[Tensor],
        host: &mut Host,
    ) -> Result<Vec<Option<Tensor>>, Error> {
        self.gradients_with(
            outputs,
            inputs,
            BackwardOptions { retain_graph: true, create_graph: false },
            host,
        )
    }

    /// As [`Session::gradients`], with options for the history: with `create_graph` the gradients have
    /// a history themselves and can be differentiated again, without `retain_graph` the history is released.
    ///
    /// # Errors
    /// As [`Session::gradients`].
    pub fn gradients_with(
        &self,
        outputs: &[(Tensor, Tensor)],
        inputs: &[Tensor],
        mode: BackwardOptions,
        host: &mut Host,
    ) -> Result<Vec<Option<Tensor>>, Error> {
        Ok(tape::gradients(&self.tape()?, outputs, inputs, mode, host)?)
    }

    /// Accumulates gradients in the leaves on which `outputs` depend: see [`Session::accumulated_gradient`].
    ///
    /// # Errors
    /// As [`Session::gradients`].
    pub fn backward(
        &self,
        outputs: &[(Tensor, Tensor)],
        mode: BackwardOptions,
        host: &mut Host,
    ) -> Result<(), Error> {
        Ok(tape::backward(&self.tape()?, outputs, mode, host)?)
    }

    /// Registers a function that backward walks call with the complete gradient of a tensor, as PyTorch's
    /// `Tensor.register_hook`. It may return another gradient of the same sizes and dtype for the rest of the walk. Calls on
    /// its host are recorded if the walk is.
    ///
    /// # Errors
    /// If the tensor does not require a gradient.
    pub fn register_hook(
        tensor: &Tensor,
        hook: impl Fn(&Tensor, &mut Host) -> Result<Option<Tensor>, KernelError> + Send + Sync + 'static,
    ) -> Result<HookHandle, Error> {
        tape::register_hook(tensor, Arc::new(hook)).map_err(|error| ExecError::of(&error).into())
    }

    /// Lets the gradients of a tensor that is not a leaf accumulate, as PyTorch's `Tensor.retain_grad`: see
    /// [`Session::accumulated_gradient`].
    ///
    /// # Errors
    /// If the tensor does not require a gradient.
    pub fn retain_gradient(tensor: &Tensor) -> Result<(), Error> {
        tape::retain_grad(tensor).map_err(|error| ExecError::of(&error).into())
    }

    /// Returns the gradient that backward walks accumulated in a leaf, or in a tensor whose gradient is retained, as PyTorch's
    /// `.grad`.
    pub fn accumulated_gradient(leaf: &Tensor) -> Option<Tensor> {
        tape::accumulated_grad(leaf)
    }
}
