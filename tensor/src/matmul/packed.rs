//! Large products: both operands are packed into strips ([`super::tile`]), block by block, so that the loop's operands
//! are in caches.
//!
//! The longer side of the result is split among threads; the operand of the other side is packed once for all of them.
//! Operands that do not change between calls need not be packed again: [`PackedPanels`] are cached with the storage
//! that they were packed from ([`crate::prepack`]).
//!
//! The sum of every element has a fixed order, independent of the split: blocks of the depth one after the other.
#![allow(unsafe_code, reason = "reads strips that were written piece by piece")]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use super::direct::is_small;
use super::matrix::Matrix;
use super::product::{Multiply, PART, PARTS, Product};
use super::target::Target;
use super::tile::{Block, Side, Strips, Tiling, strips_len};
use crate::access::Locked;
use crate::budget::Charge;
use crate::prepack::Prepacked;
use crate::scratch::Scratch;
use crate::tensor::Meta;
use crate::threads;

/// Maximum depth of a block: strips of both sides fit the L1 cache.
pub(super) const DEPTH: usize = 512;
/// Rows per block: with the depth, half of the L2 cache.
pub(super) const ROWS: usize = 96;
/// Columns per block that is packed on demand.
pub(super) const COLUMNS: usize = 192;
/// Parts begin at multiples of this number, which are whole strips on every processor.
pub(super) const PART_MULTIPLE: usize = 96;
/// Number of multiplications from which on the cache of prepacked operands is used.
pub(super) const PREPACK_WORK: usize = 1 << 18;

/// Returns the blocks of a depth, of equal size except for the last.
fn blocks(depth: usize) -> impl Iterator<Item = Range<usize>> {
    let count = depth.div_ceil(DEPTH).max(1);
    let step = depth.div_ceil(count).next_multiple_of(16);
    (0..depth).step_by(step).map(move |start| start..depth.min(start + step))
}

/// An operand packed into strips, with all strips of one block of the depth before those of the next.
pub(crate) struct PackedPanels<T> {
    /// Whole strips, all written.
    scratch: Scratch<MaybeUninit<T>>,
    lanes: usize,
    depth: usize,
    /// Lanes per strip.
    width: usize,
    /// The charge to the budget under which the panels were made.
    _charge: Option<Charge>,
}

impl<T: Multiply> PackedPanels<T> {
    /// Packs an operand of `lanes` lanes and `depth` elements per lane.
    fn pack(t: Tiling<T>, from: Operand<'_, T>, side: Side, lanes: usize, depth: usize) -> PackedPanels<T> {
        let width = (t.strip)(side);
        let all = lanes.next_multiple_of(width);
        let mut scratch = Scratch::<MaybeUninit<T>>::new(all.saturating_mul(depth));
        let elements = scratch.elements_mut();
        for depth in blocks(depth) {
            let strips = &mut elements[all * depth.start..all * depth.end];
            // Parts are whole strips.
            let grain = threads::rows(width * depth.len()) * width * depth.len();
            threads::chunks(strips, grain, |first, own| {
                let (first, count) = (first / depth.len(), own.len() / depth.len());
                from.pack(t, side, first..lanes.min(first + count), depth.clone(), own);
            });
        }
        PackedPanels { scratch, lanes, depth, width, _charge: None }
    }

    /// Returns the strips of some lanes, the first of which begins a strip, for a block of the depth.
    ///
    /// # Panics
    /// Panics if these strips are not in the panels.
    fn strips(&self, lanes: &Range<usize>, depth: &Range<usize>) -> Strips<'_, T> {
        assert!(
            lanes.start.is_multiple_of(self.width) && lanes.end <= self.lanes && depth.end <= self.depth,
            "invariant: the panels contain the requested strips"
        );
        let all = self.lanes.next_multiple_of(self.width);
        let start = all * depth.start + lanes.start * depth.len();
        // SAFETY: `pack` visits all blocks of the depth and all strips of each, and `Operand::pack` writes its output
        // completely. The scratch buffer is borrowed through `self`, and is not written any more.
        let elements = unsafe { self.scratch.elements().assume_init_ref() };
        let len = strips_len(self.width, lanes.len(), depth.len());
        Strips::new(&elements[start..start + len], self.width, depth.len())
    }

    /// Returns whether the panels are those of an operand of these sizes.
    fn is_of(&self, t: Tiling<T>, side: Side, lanes: usize, depth: usize) -> bool {
        (self.width, self.lanes, self.depth) == ((t.strip)(side), lanes, depth)
    }
}

/// An operand that packs itself into strips of columns.
pub(crate) trait StripSource<T>: Sync {
    /// Returns the number of columns and the elements per column.
    fn sizes(&self) -> (usize, usize);
    /// Packs the strips of some columns, the first of which begins a strip, for a range of the depth. Writes all of
    /// `to` and returns it.
    ///
    /// # Panics
    /// Panics if `to` has another size.
    fn pack<'b>(&self, lanes: Range<usize>, depth: Range<usize>, to: &'b mut [MaybeUninit<T>]) -> &'b [T];
}

/// An operand of a packed product.
#[derive(Clone, Copy)]
pub(super) enum Operand<'a, T> {
    /// A matrix in memory; its rows are the lanes.
    Strided(Matrix<'a, T>),
    /// An operand without a matrix in memory; it cannot be exchanged with the other operand.
    Packed(&'a dyn StripSource<T>),
}

impl<T: Multiply> Operand<'_, T> {
    /// Returns the number of lanes and the elements per lane.
    fn sizes(&self) -> (usize, usize) {
        match self {
            Operand::Strided(matrix) => (matrix.rows(), matrix.columns()),
            Operand::Packed(made) => made.sizes(),
        }
    }

    /// As [`StripSource::pack`], for either side.
    fn pack(
        self,
        t: Tiling<T>,
        side: Side,
        lanes: Range<usize>,
        depth: Range<usize>,
        to: &mut [MaybeUninit<T>],
    ) -> &[T] {
        let whole = &raw const *to;
        let strips = match self {
            Operand::Strided(from) => t.pack(from.part(lanes, depth), side, to),
            Operand::Packed(made) => made.pack(lanes, depth, to),
        };
        // The initialized slice must be the given buffer, because panels are later read as a whole.
        let same = strips.len() == whole.len() && std::ptr::addr_eq(strips.as_ptr(), whole);
        assert!(same, "invariant: all strips were packed");
        strips
    }
}

/// The form of a prepacked operand: `count` adjacent matrices of `lanes` by `depth`.
#[derive(Clone, Copy)]
pub(crate) struct PackedShape {
    pub(crate) side: Side,
    pub(crate) count: usize,
    pub(crate) lanes: usize,
    pub(crate) depth: usize,
    /// Elements between lanes, and along the depth.
    pub(crate) steps: [usize; 2],
}

/// Returns the panels of matrices in a tensor, one per matrix, from the cache of prepacked operands. The matrices begin
/// at the tensor's first element.
///
/// Returns `None` if the storage's bytes were not multiplied before in this form and version, or are not worth packing.
///
/// # Panics
/// Panics if the tensor's storage is not locked.
pub(super) fn prepacked<T: Multiply>(
    guards: &impl Locked,
    (meta, elements): (&Meta, &[T]),
    s: PackedShape,
) -> Option<Arc<Vec<PackedPanels<T>>>> {
    let t = T::TILING?;
    let strip = (t.strip)(s.side);
    let (storage, size, offset) = (&meta.storage, size_of::<T>(), meta.layout.offset() as usize);
    assert!(guards.holds(storage), "invariant: the storage is locked");
    let side = s.side as usize;
    let [lane, along] = s.steps;
    let key = [size * 2 + side, strip, offset, s.count, s.lanes, s.depth, lane, along];
    let make = || Some(Arc::new(pack_matrices(elements, s)?) as Prepacked);
    // SAFETY: the guards hold a shared lock of the storage.
    unsafe { storage.prepack_cache()? }.get((storage.version(), key), make)?.downcast().ok()
}

/// Packs adjacent matrices; `None` if the type has no tiling, or memory is exhausted.
pub(super) fn pack_matrices<T: Multiply>(elements: &[T], s: PackedShape) -> Option<Vec<PackedPanels<T>>> {
    let t = T::TILING?;
    let lanes = s.lanes.next_multiple_of((t.strip)(s.side));
    let bytes = lanes.checked_mul(s.depth)?.checked_mul(size_of::<T>())?;
    let mut all = Vec::with_capacity(s.count);
    for i in 0..s.count {
        let charge = Charge::new(bytes).ok()?;
        let from = Matrix::new(&elements[i * s.lanes * s.depth..], [s.lanes, s.depth], s.steps);
        let panels = PackedPanels::pack(t, Operand::Strided(from), s.side, s.lanes, s.depth);
        all.push(PackedPanels { _charge: Some(charge), ..panels });
    }
    Some(all)
}

/// Returns whether the operands of a product are worth prepacking.
pub(super) fn is_worth_prepacking<T: Multiply>(p: &Product<'_, T>) -> bool {
    let work = p.work();
    work >= PREPACK_WORK && p.m() > 1 && p.n() > 1 && !is_small(p, work)
}

/// Operands that are already packed.
#[derive(Clone, Copy)]
pub(crate) struct PrepackedOperands<'a, T> {
    pub(crate) left: Option<&'a PackedPanels<T>>,
    pub(crate) right: Option<&'a PackedPanels<T>>,
}

impl<T: Multiply> PrepackedOperands<'_, T> {
    /// No operand is packed.
    pub(super) const NONE: PrepackedOperands<'static, T> = PrepackedOperands { left: None, right: None };
}

/// Computes a packed product. The lanes of the operands are the rows and the columns of the result.
///
/// # Panics
/// Panics if the sizes do not agree, or packed panels have the sizes of other operands.
pub(super) fn packed<T: Multiply>(
    t: Tiling<T>,
    [a, b]: [Operand<'_, T>; 2],
    to: Target<'_, T>,
    prepacked: &PrepackedOperands<'_, T>,
) {
    let ((m, k), (n, depth)) = (a.sizes(), b.sizes());
    assert!(k == depth && (m, n) == (to.rows(), to.columns()), "invariant: the sizes of a product agree");
    let agrees = prepacked.left.is_none_or(|left| left.is_of(t, Side::Left, m, k))
        && prepacked.right.is_none_or(|right| right.is_of(t, Side::Right, n, k));
    assert!(agrees, "invariant: panels are those of the operands");
    let by_rows = m >= n;
    let left = (!by_rows && prepacked.left.is_none()).then(|| PackedPanels::pack(t, a, Side::Left, m, k));
    let right = (by_rows && prepacked.right.is_none()).then(|| PackedPanels::pack(t, b, Side::Right, n, k));
    let prepacked = PrepackedOperands {
        left: prepacked.left.or(left.as_ref()),
        right: prepacked.right.or(right.as_ref()),
    };
    let parts = (m.saturating_mul(n).saturating_mul(k) / PART).clamp(1, PARTS);
    let grain = m.max(n).div_ceil(parts).next_multiple_of(PART_MULTIPLE);
    to.split(if by_rows { Side::Left } else { Side::Right }, grain, |own, to| {
        let (rows, columns) = if by_rows { (own, 0..n) } else { (0..m, own) };
        part(t, k, [a, b], to, &prepacked, [rows, columns]);
    });
}

/// Computes a part of a result, block by block: the given rows and columns, which begin with whole strips. One of the
/// operands is packed.
fn part<T: Multiply>(
    t: Tiling<T>,
    k: usize,
    operands: [Operand<'_, T>; 2],
    mut whole: Target<'_, T>,
    prepacked: &PrepackedOperands<'_, T>,
    [rows, columns]: [Range<usize>; 2],
) {
    // A packed operand is not packed again for every block of the other side.
    let wide = if prepacked.right.is_some() { columns.len() } else { COLUMNS };
    let deepest = blocks(k).next().map_or(0, |block| block.len());
    let scratch = |panels: Option<&PackedPanels<T>>, side: Side, lanes: usize| {
        let len = if panels.is_some() { 0 } else { strips_len((t.strip)(side), lanes, deepest) };
        Scratch::<MaybeUninit<T>>::new(len)
    };
    let mut left_scratch = scratch(prepacked.left, Side::Left, ROWS.min(rows.len()));
    let mut right_scratch = scratch(prepacked.right, Side::Right, wide.min(columns.len()));
    for j in columns.clone().step_by(wide.max(1)) {
        let across = j..columns.end.min(j + wide);
        for depth in blocks(k) {
            let right = right_scratch.elements_mut();
            let right = strips(t, (operands[1], prepacked.right), Side::Right, &across, &depth, right);
            for i in rows.clone().step_by(ROWS) {
                let down = i..rows.end.min(i + ROWS);
                let left = left_scratch.elements_mut();
                let left = strips(t, (operands[0], prepacked.left), Side::Left, &down, &depth, left);
                let of =
                    |range: &Range<usize>, all: &Range<usize>| range.start - all.start..range.end - all.start;
                let to = whole.part(of(&down, &rows), of(&across, &columns));
                // SAFETY: the product of the first block of the depth comes first and writes all of the target.
                let to = if depth.start == 0 { to } else { unsafe { to.accumulating() } };
                t.multiply(Block { left, right, depth: depth.len(), to });
            }
        }
    }
}

/// Returns strips of an operand: packed ones, or strips that are packed now into the scratch buffer, which has space
/// for them.
fn strips<'b, T: Multiply>(
    t: Tiling<T>,
    (from, prepacked): (Operand<'_, T>, Option<&'b PackedPanels<T>>),
    side: Side,
    lanes: &Range<usize>,
    depth: &Range<usize>,
    scratch: &'b mut [MaybeUninit<T>],
) -> Strips<'b, T> {
    if let Some(panels) = prepacked {
        return panels.strips(lanes, depth);
    }
    let width = (t.strip)(side);
    let to = &mut scratch[..strips_len(width, lanes.len(), depth.len())];
    Strips::new(from.pack(t, side, lanes.clone(), depth.clone(), to), width, depth.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access;
    use crate::dtype::DType;
    use crate::layout::Layout;
    use crate::matmul::{MatrixMut, RightOperand, addmm, mm, put_product};
    use crate::scalar::Scalar;
    use crate::tensor::Tensor;

    fn matrix(rows: i64, columns: i64, seed: i64) -> Tensor {
        let values = (0..rows * columns).map(|i| ((i * 37 + seed) % 17 - 8) as f32).collect();
        Tensor::from_vec(values, &[rows, columns]).unwrap()
    }

    /// Reference implementation; exact, because all sums are small integers.
    fn reference(a: &Tensor, b: &Tensor) -> Vec<f32> {
        let (m, k, n) = (a.sizes()[0] as usize, a.sizes()[1] as usize, b.sizes()[1] as usize);
        let (a, b) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
        (0..m * n).map(|at| (0..k).map(|d| a[at / n * k + d] * b[d * n + at % n]).sum()).collect()
    }

    #[test]
    fn prepacked_operands_give_equal_products() {
        // More than one block of the depth, and edges on all sides.
        let (a, b) = (matrix(101, 700, 3), matrix(53, 700, 5).t().unwrap());
        for round in 0..3 {
            let wanted = reference(&a, &b);
            for _ in 0..3 {
                assert_eq!(mm(&a, &b).unwrap().to_vec::<f32>().unwrap(), wanted);
            }
            let operand = if round == 0 { &a } else { &b };
            operand.fill_(Scalar::Int(round + 2)).unwrap();
        }
    }

    #[test]
    fn initial_values_may_have_any_strides() {
        let (a, b) = (matrix(60, 90, 3), matrix(90, 70, 5));
        let product = reference(&a, &b);
        let starts = [
            matrix(1, 70, 7),
            matrix(60, 1, 7),
            matrix(60, 70, 7),
            matrix(70, 60, 7).t().unwrap(),
            matrix(1, 1, 7),
        ];
        for start in &starts {
            for (beta, alpha) in [(1, 1), (0, 1), (2, -1)] {
                let got = addmm(start, &a, &b, Scalar::Int(beta), Scalar::Int(alpha)).unwrap();
                let start = start.expand(&[60, 70]).unwrap().to_vec::<f32>().unwrap();
                let wanted: Vec<f32> =
                    product.iter().zip(start).map(|(p, s)| beta as f32 * s + alpha as f32 * p).collect();
                assert_eq!(got.to_vec::<f32>().unwrap(), wanted);
                assert_eq!(got.dtype(), DType::F32);
            }
        }
    }

    /// A matrix that is available to products as strips only.
    struct OnlyStrips<'a> {
        /// A column of the operand is a row of this matrix.
        transposed: Matrix<'a, f32>,
        tiling: Tiling<f32>,
    }

    impl StripSource<f32> for OnlyStrips<'_> {
        fn sizes(&self) -> (usize, usize) {
            (self.transposed.rows(), self.transposed.columns())
        }

        fn pack<'b>(
            &self,
            lanes: Range<usize>,
            depth: Range<usize>,
            to: &'b mut [MaybeUninit<f32>],
        ) -> &'b [f32] {
            self.tiling.pack(self.transposed.part(lanes, depth), Side::Right, to)
        }
    }

    #[test]
    fn packed_operands_may_have_any_number_of_columns() {
        let tiling = f32::TILING.unwrap();
        let value = |i: usize, seed: usize| ((i * 37 + seed) % 17) as f32 - 8.0;
        for (m, k, n) in [(1, 40, 1), (32, 288, 1), (5, 700, 1), (1, 288, 32), (7, 9, 2), (100, 600, 49)] {
            let a: Vec<f32> = (0..m * k).map(|i| value(i, 3)).collect();
            let b: Vec<f32> = (0..k * n).map(|i| value(i, 5)).collect();
            let start: Vec<f32> = (0..m).map(|i| value(i, 1)).collect();
            let made = OnlyStrips { transposed: Matrix::new(&b, [n, k], [1, n]), tiling };
            let left = || (Matrix::new(&a, [m, k], [k, 1]), None);
            // SAFETY: a product writes every element.
            let c = unsafe {
                access::make::<f32>(Layout::contiguous(&[m as i64, n as i64]).unwrap(), |c| {
                    put_product(
                        left(),
                        RightOperand::Packed(tiling, &made),
                        Some(&start),
                        MatrixMut::of(c, n),
                    );
                })
            };
            let c = c.unwrap().to_vec::<f32>().unwrap();
            for (at, got) in c.iter().enumerate() {
                let sum: f32 = (0..k).map(|d| a[at / n * k + d] * b[d * n + at % n]).sum();
                assert_eq!(*got, sum + start[at / n], "{m} {k} {n} at {at}");
            }
        }
    }
}
