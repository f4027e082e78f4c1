//! Shape analysis: facts about tensors, and about the integers that their sizes are computed from, without execution.
//!
//! Operators state [`ResultShapes`] and [`Dtype`] rules as facets. [`Shapes`] propagates the [`Fact`]s of a graph's inputs
//! through all nodes, joins them where branches meet, and widens them around loops up to a fixpoint. Unknown sizes are
//! symbols with ranges ([`Symbols`]), so that facts can express the equality of unknown sizes.

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

pub use cx::{ArgRef, OperandFact, ShapeCx, axis, wrap};
pub use fact::{Dims, Fact, Strides, TensorFact};
pub use flambeau_ir::types::Dim;
pub use propagate::{Shapes, resized_memory};
pub use rule::{Dtype, ResultShapes, conclude, infer};
pub use sizes::broadcast_dims;
pub use symbols::{Expr, Range, Symbols};
pub use valuation::{BindingPosition, Valuation};
