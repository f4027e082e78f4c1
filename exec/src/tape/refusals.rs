//! Calls that PyTorch refuses because gradients are required: its operators state of which arguments they have no derivative, and
//! whether they are differentiable where their results are complex.

use crate::error::KernelError;
use flambeau_ir::{FunctionSchema, Symbol};

/// The operands that an operator refuses if they require gradients. Each refusal has the name of the operator in the
/// error: of a composite operator, it is the part that refuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Arguments that must not require gradients.
    pub args: Vec<RefusedArg>,
    /// Complex results that require gradients.
    pub complex_results: Option<Symbol>,
}

/// An argument that must not require a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedArg {
    /// Its position.
    pub arg: usize,
    /// The name of the operator in the error.
    pub operator: Symbol,
    /// Another argument, by position, if this one is refused only where that one is a tensor of integers.
    pub where_integral: Option<usize>,
}

impl Refusals {
    /// Checks the arguments, of which those for which `requires` holds require gradients, and those for which `is_integral` holds
    /// may be tensors of integers.
    ///
    /// # Errors
    /// Returns the error of PyTorch for the first argument that must not require a gradient.
    pub fn check_args(
        &self,
        schema: &FunctionSchema,
        requires: &dyn Fn(usize) -> bool,
        is_integral: &dyn Fn(usize) -> bool,
    ) -> Result<(), KernelError> {
        let is_refused =
            |refused: &&RefusedArg| requires(refused.arg) && refused.where_integral.is_none_or(is_integral);
        match self.args.iter().find(is_refused) {
            None => Ok(()),
            Some(RefusedArg { arg, operator, .. }) => Err(KernelError::input(format!(
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
