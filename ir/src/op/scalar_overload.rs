//! Operators whose second operand may be a tensor or a number, in two overloads.

use super::Facet;

/// States the overload of the same operator that takes a number where this one takes a tensor as its second operand. All
/// other parameters are the same.
///
/// Traces need it: tracing records `x / 2.5` as a call on a zero-dimensional constant tensor, and saving the trace drops
/// the mark that this tensor was a number, which type promotion depends on. Loading an archive brings the number back.
#[derive(Clone, Copy, Debug)]
pub struct ScalarOverload(pub &'static str);

impl Facet for ScalarOverload {
    const NAME: &'static str = "scalar-overload";
}
