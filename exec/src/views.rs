//! Views that the machine makes without a call of a kernel.

use flambeau_ir::Facet;
use flambeau_tensor::{Tensor, TensorError};

/// The arguments of a view operator after the tensor, in order: integers, and the elements of a list of integers, of which there is at
/// most one, in the end.
#[derive(Clone, Copy, Debug)]
pub struct ViewNumbers<'a> {
    numbers: &'a [i64],
    absent: u64,
}

impl<'a> ViewNumbers<'a> {
    /// Makes the arguments. Bit `i` of `absent` states that number `i` is `None`; no element of a list is.
    #[inline]
    pub fn new(numbers: &'a [i64], absent: u64) -> Self {
        ViewNumbers { numbers, absent }
    }

    /// Returns number `i`. A number that is absent or `None`, which the schema of the operator excludes, is 0.
    #[inline]
    pub fn int(&self, i: usize) -> i64 {
        self.optional(i).unwrap_or_default()
    }

    /// Returns number `i`; `None` if it is absent or `None`.
    #[inline]
    pub fn optional(&self, i: usize) -> Option<i64> {
        let is_none = self.absent.checked_shr(i as u32).unwrap_or(0) & 1 == 1;
        self.numbers.get(i).copied().filter(|_| !is_none)
    }

    /// Returns all numbers, for an operator whose only argument is a list; one that is `None` is 0.
    #[inline]
    pub fn all(&self) -> &'a [i64] {
        self.numbers
    }
}

/// Makes a view of a tensor from numbers, or a copy where the operator does.
pub type ViewFunction = fn(&Tensor, ViewNumbers<'_>) -> Result<Tensor, TensorError>;

/// Facet of an operator whose result is a view of its first operand, or a copy as of `reshape`, that depends on integers among its
/// arguments only. A list of integers is the last of these. Booleans have no effect on the result, as `implicit` of `expand`.
#[derive(Clone, Copy, Debug)]
pub struct ViewOf(pub ViewFunction);

impl Facet for ViewOf {
    const NAME: &'static str = "view_of";
}
