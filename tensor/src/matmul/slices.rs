//! Products of matrices in slices, for convolutions.
#![allow(unsafe_code, reason = "adds to elements that were written before")]

use std::sync::Arc;

use super::matrix::{Matrix, MatrixMut};
use super::packed::{self, Operand, PackedPanels, PackedShape, PrepackedOperands, StripSource, packed};
use super::product::{Multiply, Product, product};
use super::target::Target;
use super::tile::{Side, Tiling};
use crate::access::{Locked, ReadGuards};
use crate::tensor::Tensor;

/// The right operand of a product.
pub(crate) enum RightOperand<'a, T> {
    Matrix(Matrix<'a, T>),
    /// An operand without a matrix in memory, and its tiling.
    Packed(Tiling<T>, &'a dyn StripSource<T>),
}

/// Computes `c = start + a b`; `a` may be prepacked. The start is one element per row, or absent. All of `c` is
/// written.
///
/// # Panics
/// Panics if the sizes do not agree.
pub(crate) fn put_product<T: Multiply>(
    (a, left): (Matrix<'_, T>, Option<&PackedPanels<T>>),
    b: RightOperand<'_, T>,
    start: Option<&[T]>,
    c: MatrixMut<'_, T>,
) {
    let (m, n) = (c.rows(), c.columns());
    if m == 0 || n == 0 {
        return;
    }
    assert!(a.columns() > 0, "invariant: there is something to multiply");
    let to = match start {
        None => Target::fresh(c, T::ONE),
        Some(start) => Target::added_to(c, Matrix::new(start, [m, n], [1, 0]), T::ONE, T::ONE),
    };
    let prepacked = PrepackedOperands { left, right: None };
    match b {
        RightOperand::Matrix(b) => product(Product::new(a, b, to), &prepacked),
        RightOperand::Packed(tiling, made) => {
            packed(tiling, [Operand::Strided(a), Operand::Packed(made)], to, &prepacked);
        }
    }
}

/// A sum of products that is written to a matrix.
pub(crate) struct ProductSum<'a, T> {
    c: MatrixMut<'a, T>,
    is_written: bool,
}

impl<'a, T: Multiply> ProductSum<'a, T> {
    /// Makes a sum; the matrix is written with the first product.
    pub(crate) fn new(c: MatrixMut<'a, T>) -> Self {
        ProductSum { c, is_written: false }
    }

    /// Adds `a b`.
    ///
    /// # Panics
    /// Panics if the sizes do not agree, or there is nothing to multiply.
    pub(crate) fn add(&mut self, a: Matrix<'_, T>, b: Matrix<'_, T>) {
        assert!(a.columns() > 0, "invariant: there is something to multiply");
        let (m, n) = (self.c.rows(), self.c.columns());
        let to = Target::fresh(self.c.part(0..m, 0..n), T::ONE);
        // SAFETY: the first product wrote every element.
        let to = if self.is_written { unsafe { to.accumulating() } } else { to };
        product(Product::new(a, b, to), &PrepackedOperands::NONE);
        self.is_written = true;
    }
}

/// Returns the panels of `count` adjacent matrices of a row-major tensor, whose rows are lanes, if they were requested
/// before and the tensor has not changed since.
pub(crate) fn prepacked<T: Multiply>(
    t: &Tensor,
    side: Side,
    count: usize,
) -> Option<Arc<Vec<PackedPanels<T>>>> {
    let meta = t.meta();
    let rows = *meta.layout.sizes().first()? as usize / count.max(1);
    let lanes = rows * usize::from(meta.layout.is_contiguous() && t.dtype() == T::DTYPE);
    let depth = meta.layout.numel().checked_div(lanes * count)?;
    let shape = PackedShape { side, count, lanes, depth, steps: [depth, 1] };
    let guards = ReadGuards::one(&meta.storage);
    let elements = guards.elements::<T>(meta);
    packed::prepacked(&guards, (meta, elements), shape)
}

/// Returns the panels of `count` adjacent row-major matrices, whose rows are lanes, for several products in one call.
pub(crate) fn pack_now<T: Multiply>(
    elements: &[T],
    side: Side,
    count: usize,
    lanes: usize,
) -> Option<Vec<PackedPanels<T>>> {
    let depth = elements.len().checked_div(lanes * count)?;
    packed::pack_matrices(elements, PackedShape { side, count, lanes, depth, steps: [depth, 1] })
}
