//! Views that the machine makes without a call of a kernel.

use flambeau_ir::Facet;
use flambeau_tensor::{Tensor, TensorError};
use smallvec::SmallVec;

/// The arguments of a view operator after the tensor, in order: integers, and the elements of a list of integers, of which there is at
/// most one, in the end.
#[derive(Clone, Debug, Default)]
pub struct ViewNumbers {
    numbers: SmallVec<[i64; 6]>,
    /// Bit `i` states that number `i`, which is 0 then, is `None`. A list has no `None`, and is behind few other arguments.
    absent: u64,
}

impl ViewNumbers {
    /// Appends a number.
    #[inline]
    pub fn push(&mut self, number: i64) {
        self.numbers.push(number);
    }

    /// Appends an argument that is `None`.
    #[inline]
    pub fn push_none(&mut self) {
        self.absent |= 1 << (self.numbers.len() & 63);
        self.numbers.push(0);
    }

    /// Returns number `i`. A number that is absent or `None`, which the schema of the operator excludes, is 0.
    #[inline]
    pub fn int(&self, i: usize) -> i64 {
        self.numbers.get(i).copied().unwrap_or_default()
    }

    /// Returns number `i`; `None` if it is absent or `None`.
    #[inline]
    pub fn optional(&self, i: usize) -> Option<i64> {
        self.numbers.get(i).copied().filter(|_| self.absent.checked_shr(i as u32).unwrap_or(0) & 1 == 0)
    }

    /// Returns all numbers, for an operator whose only argument is a list.
    #[inline]
    pub fn all(&self) -> &[i64] {
        &self.numbers
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
