//! The link from a tensor overload to the overload with a number as its second operand.

use super::Facet;

/// Names the overload of the same operator whose second parameter is a number where this overload has a tensor. All
/// other parameters are equal.
///
/// Loading traced archives needs it. Tracing records `x / 2.5` as a call with a zero-dimensional constant tensor, and
/// saving drops the mark that the tensor was a number, on which type promotion depends. The archive loader replaces the
/// constant tensor by a number and selects this overload.
#[derive(Clone, Copy, Debug)]
pub struct ScalarOverload(pub &'static str);

impl Facet for ScalarOverload {
    const NAME: &'static str = "scalar-overload";
}
