//! Shapes and dtypes: what is known of tensors (and of the integers their sizes are computed from) without running.
//!
//! Operators state [`Shape`] and [`Dtype`] rules as facets. [`Shapes`] carries the [`Fact`]s of a graph's inputs through
//! all its nodes, joins them where branches meet and widens them around loops until nothing changes. Sizes that are not
//! known are symbols with ranges ([`Symbols`]), so that "the same unknown size" can be said.

mod cx;
mod dtypes;
mod fact;
mod parts;
mod propagate;
mod report;
mod rule;
mod sizes;
mod symbols;
#[cfg(test)]
mod tests;
mod valuation;
mod views;

pub use cx::{Arg, Operand, ShapeCx, axis, wrap};
pub use fact::{Dims, Fact, Strides, TensorFact};
pub use flambeau_ir::types::Dim;
pub use propagate::Shapes;
pub use rule::{Dtype, Shape, conclude, infer};
pub use sizes::broadcast_dims;
pub use symbols::{Expr, Range, Symbols};
pub use valuation::{Mark, Valuation};
