//! Sums, differences, products and quotients of two tensors, for kernels of other families.

use super::Number;
use crate::support::Computed;
use flambeau_exec::KernelError;
use flambeau_tensor::loops::binary_in;
use flambeau_tensor::promote::{promote, result_type};
use flambeau_tensor::{DType, Tensor, dispatch};

/// Returns the promoted dtype; within one category, a tensor of rank 0 counts less.
fn promoted(a: &Tensor, b: &Tensor) -> DType {
    result_type(&[a, b]).unwrap_or_else(|| promote(a.dtype(), b.dtype()))
}

/// `a + b`, broadcast, in the promoted dtype.
pub(crate) fn sum_of(a: &Tensor, b: &Tensor) -> Computed {
    let dtype = promoted(a, b);
    dispatch!(carried_all, dtype, "add", T => Ok(binary_in::<T>(dtype, a, b, |a: T, b: T| a.add(b.times_one()))?))
}

/// Returns an error for subtraction with booleans.
pub(crate) fn no_bools(a: DType, b: DType) -> Result<(), KernelError> {
    match (a == DType::Bool, b == DType::Bool) {
        (false, false) => Ok(()),
        (true, true) => Err(KernelError::input(
            "Subtraction, the `-` operator, with two bool tensors is not supported. \
             Use the `^` or `logical_xor()` operator instead.",
        )),
        _ => Err(KernelError::input(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, \
             use the `~` or `logical_not()` operator instead.",
        )),
    }
}

/// `a - b`, broadcast, in the promoted dtype; for booleans, whether they differ.
pub(crate) fn difference_of(a: &Tensor, b: &Tensor) -> Computed {
    if (a.dtype() == DType::Bool) != (b.dtype() == DType::Bool) {
        no_bools(a.dtype(), b.dtype())?;
    }
    let dtype = promoted(a, b);
    dispatch!(carried_all, dtype, "sub", T => Ok(binary_in::<T>(dtype, a, b, |a: T, b: T| a.sub(b.times_one()))?))
}

/// `a * b`, broadcast, in the promoted dtype.
pub(crate) fn product_of(a: &Tensor, b: &Tensor) -> Computed {
    let dtype = promoted(a, b);
    dispatch!(carried_all, dtype, "mul", T => Ok(binary_in::<T>(dtype, a, b, |a: T, b: T| a.mul(b))?))
}

/// `a / b`, broadcast, in the promoted dtype, which is floating or complex.
pub(crate) fn quotient_of(a: &Tensor, b: &Tensor) -> Computed {
    let dtype = promoted(a, b);
    dispatch!(carried_floats_complex, dtype, "div", T => Ok(binary_in::<T>(dtype, a, b, |a: T, b: T| a.div(b))?))
}
