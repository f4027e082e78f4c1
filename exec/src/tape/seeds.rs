//! Gradients of outputs, with which a backward pass begins.

use super::history::{self, Edge};
use crate::error::KernelError;
use flambeau_tensor::{Scalar, Tensor};

/// Returns the gradient of an output for which none is given: 1 for a real number.
///
/// # Errors
/// Returns an input error if the output has several elements or is complex.
pub fn implicit_gradient(output: &Tensor) -> Result<Tensor, KernelError> {
    if output.numel() != 1 {
        return Err(KernelError::input("grad can be implicitly created only for scalar outputs"));
    }
    if output.dtype().is_complex() {
        return Err(KernelError::input("grad can be computed only for real scalar outputs"));
    }
    Ok(Tensor::full(output.sizes(), Scalar::Int(1), output.dtype())?)
}

/// Returns where the gradient of output `index` begins, and the gradient in the dtype of the output.
pub(super) fn seeded(index: usize, output: &Tensor, grad: &Tensor) -> Result<(Edge, Tensor), KernelError> {
    let edge = history::gradient_edge(output).ok_or_else(|| {
        KernelError::input(format!(
            "element {index} of tensors does not require grad and does not have a grad_fn"
        ))
    })?;
    let is_reshaped = grad.sizes() != output.sizes() && grad.numel() == 1 && output.numel() == 1;
    let grad = if is_reshaped { grad.reshape(output.sizes())? } else { grad.clone() };
    if grad.sizes() != output.sizes() {
        return Err(KernelError::input(format!(
            "invalid gradient at index {index} - got {:?} but expected shape compatible with {:?}",
            grad.sizes(),
            output.sizes()
        )));
    }
    let (dtype, wanted) = (grad.dtype(), output.dtype());
    if dtype != wanted && (dtype.is_complex() || wanted.is_complex()) {
        return Err(KernelError::input(format!(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: \
             grad_output[{index}] has a dtype of {dtype} and output[{index}] has a dtype of {wanted}."
        )));
    }
    Ok((edge, grad.to_dtype(wanted)?))
}
