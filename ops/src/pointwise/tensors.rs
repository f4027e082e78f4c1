//! Sums, differences and products of two tensors, for other families to compute with: compiled once.

use super::Number;
use crate::support::Computed;
use flambeau_tensor::loops::binary;
use flambeau_tensor::promote::promote;
use flambeau_tensor::{Tensor, dispatch};

/// `a + b`, broadcast, in the dtype both meet in.
pub(crate) fn sum_of(a: &Tensor, b: &Tensor) -> Computed {
    dispatch!(all, promote(a.dtype(), b.dtype()), "add", T => Ok(binary::<T, T, T>(a, b, |a: T, b: T| a.add(b))?))
}

/// `a - b`, broadcast, in the dtype both meet in; of truth values, whether they differ.
pub(crate) fn difference_of(a: &Tensor, b: &Tensor) -> Computed {
    dispatch!(all, promote(a.dtype(), b.dtype()), "sub", T => Ok(binary::<T, T, T>(a, b, |a: T, b: T| a.sub(b))?))
}

/// `a * b`, broadcast, in the dtype both meet in.
pub(crate) fn product_of(a: &Tensor, b: &Tensor) -> Computed {
    dispatch!(all, promote(a.dtype(), b.dtype()), "mul", T => Ok(binary::<T, T, T>(a, b, |a: T, b: T| a.mul(b))?))
}

/// `a / b`, broadcast, in the dtype both meet in, which is floating or complex.
pub(crate) fn quotient_of(a: &Tensor, b: &Tensor) -> Computed {
    dispatch!(floats_complex, promote(a.dtype(), b.dtype()), "div", T => Ok(binary::<T, T, T>(a, b, |a: T, b: T| a.div(b))?))
}
