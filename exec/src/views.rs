//! Views that the machine makes without a call of a kernel.

use flambeau_ir::Facet;
use flambeau_tensor::{Tensor, TensorError};
use smallvec::SmallVec;

/// The arguments of a view operator after the tensor, in order: integers, and the elements of a list of integers, of which there is at
/// most one, in the end.
#[derive(Clone, Debug, Default)]
pub struct ViewNumbers(SmallVec<[Option<i64>; 6]>);

impl ViewNumbers {
    /// Appends a number; `None` is an argument that is `None`.
    #[inline]
    pub fn push(&mut self, number: Option<i64>) {
        self.0.push(number);
    }

    /// Returns number `i`. A number that is absent or `None`, which the schema of the operator excludes, is 0.
    #[inline]
    pub fn int(&self, i: usize) -> i64 {
        self.optional(i).unwrap_or_default()
    }

    /// Returns number `i`; `None` if it is absent or `None`.
    #[inline]
    pub fn optional(&self, i: usize) -> Option<i64> {
        self.0.get(i).copied().flatten()
    }

    /// Returns all numbers, for an operator whose only argument is a list.
    #[inline]
    pub fn all(&self) -> SmallVec<[i64; 6]> {
        self.0.iter().map(|number| number.unwrap_or_default()).collect()
    }
}

/// Makes a view of a tensor from numbers, or a copy where the operator does.
pub type ViewFunction = fn(&Tensor, &ViewNumbers) -> Result<Tensor, TensorError>;

/// Facet of an operator whose result is a view of its first operand, or a copy as of `reshape`, that depends on integers among its
/// arguments only. Booleans among them have no effect on the result, as `implicit` of `expand`.
#[derive(Clone, Copy, Debug)]
pub struct ViewOf(pub ViewFunction);

impl Facet for ViewOf {
    const NAME: &'static str = "view_of";
}
