//! Elementwise operators.
//!
//! Operators that are defined on floats have a tile formula for fusion. Operands are promoted as in PyTorch; the
//! in-place and `out=` variants are derived.

mod binary;
mod compare;
pub(crate) mod formula;
mod fused;
mod number;
mod pairs;
mod parts;
mod special;
mod tensors;
mod ternary;
mod unary;

pub(crate) use number::{Number, quotient};
pub(crate) use parts::conj;
pub(crate) use tensors::{difference_of, no_bools, product_of, quotient_of, sum_of};
pub(crate) use ternary::gelu_of;

use flambeau_ir::OpDef;

/// All operators of the family.
pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = unary::family();
    defs.extend(binary::family());
    defs.extend(compare::family());
    defs.extend(ternary::family());
    defs.extend(pairs::family());
    defs.extend(parts::family());
    defs.extend(special::family());
    defs
}
