//! Operators on single numbers: arithmetic, comparison, logic, mathematical functions, conversions.
//!
//! TorchScript declares each of them once per combination of number types. One row of a table here represents all
//! combinations: the intrinsics for integers and floats, and a formula for complex numbers and for operands whose type
//! is known only at run time (`Scalar`).

mod arith;
mod cast;
mod math;

use flambeau_ir::OpDef;

/// All operators of the family.
pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = arith::family();
    defs.extend(math::family());
    defs.extend(cast::family());
    defs
}
