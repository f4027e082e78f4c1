//! Calls that PyTorch refuses because gradients are required: its operators state of which arguments they have no derivative, and
//! whether they are differentiable where their results are complex.

use crate::error::KernelError;
use flambeau_ir::{FunctionSchema, Symbol};

/// What an operator refuses when it is called with tensors that require gradients. Each refusal has the name of the operator in the
/// error: of a composite operator, it is the part that refuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Arguments that must not require gradients, by position.
    pub args: Vec<(usize, Symbol)>,
    /// Complex results that require gradients.
    pub complex_results: Option<Symbol>,
}

impl Refusals {
    /// Checks the arguments, of which those for which `requires` holds require gradients.
    ///
    /// # Errors
    /// Returns the error of PyTorch for the first argument that must not require a gradient.
    pub fn check_args(
        &self,
        schema: &FunctionSchema,
        requires: &dyn Fn(usize) -> bool,
    ) -> Result<(), KernelError> {
        match self.args.iter().find(|(arg, _)| requires(*arg)) {
            None => Ok(()),
            Some((arg, operator)) => Err(KernelError::input(format!(
                "The function '{operator}' is not differentiable with respect to argument '{}'. This input cannot \
                 have requires_grad True.",
                schema.args[*arg].name
            ))),
        }
    }

    /// Checks a result that requires a gradient.
    ///
    /// # Errors
    /// Returns the error of PyTorch if the result must not be complex.
    pub fn check_result(&self, is_complex: bool) -> Result<(), KernelError> {
        match self.complex_results.filter(|_| is_complex) {
            None => Ok(()),
            Some(operator) => Err(KernelError::input(format!(
                "{operator} does not support automatic differentiation for outputs with complex dtype."
            ))),
        }
    }
}
