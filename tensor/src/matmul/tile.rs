//! The innermost loop of packed products, and the order of elements that it reads.
//!
//! Both operands are packed into *strips*: a few rows of the left one, or columns of the right one. For each position
//! of the depth a strip has the elements of all its lanes side by side, so the loop reads two ranges of memory
//! sequentially. One strip of each side yields a tile of the result, which stays in registers. Tiles have the shape of
//! an instruction set's registers.
//!
//! Edges: the last strip is padded with zeros. If a tile at the edge needs fewer vectors or rows, a smaller tile is
//! computed.
#![allow(unsafe_code, reason = "walks strips and results by pointers")]

use std::mem::MaybeUninit;
use std::ops::Range;

use super::direct::{Tiled, direct, is_tiled_by};
use super::matrix::{Matrix, MatrixMut};
use super::product::{Multiply, Product};
use super::target::Target;
use super::vector::{Available, Registers, Vector};
use crate::lanes::Spilled;
use crate::simd::{self, InstructionSets, Isa, Multiversioned, isa};
use crate::strided::transpose;

/// Rows per strip of the left operand, and vectors per strip of the right one. Their products are the sums of a tile:
/// enough to hide the latency of an addition, and not more than there are registers (sixteen before AVX-512, then
/// thirty-two).
const NARROW: (usize, usize) = (6, 2);
const WIDE_TILE: (usize, usize) = (8, 3);
/// Elements of the depth that are transposed at a time: at least a cache line.
const DEPTH: usize = 16;

/// An operand of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The left one, whose rows are the result's.
    Left,
    /// The right one, whose columns are the result's.
    Right,
}

/// Lanes of an operand packed into adjacent strips, the last padded with zeros. A strip has `width` elements for each
/// position of the depth.
#[derive(Clone, Copy)]
pub(crate) struct Strips<'a, T> {
    elements: &'a [T],
    width: usize,
    depth: usize,
}

impl<'a, T> Strips<'a, T> {
    /// Makes strips of packed elements.
    ///
    /// # Panics
    /// Panics if the elements are not whole strips.
    pub(super) fn new(elements: &'a [T], width: usize, depth: usize) -> Self {
        assert!(elements.len().is_multiple_of(width * depth), "invariant: strips are whole");
        Strips { elements, width, depth }
    }

    /// Returns the pointer to the first strip.
    ///
    /// # Panics
    /// Panics if the strips have another width or depth, or are too few for `lanes` lanes.
    #[inline(always)]
    fn start(&self, width: usize, depth: usize, lanes: usize) -> *const T {
        assert!((self.width, self.depth) == (width, depth), "invariant: strips have the shape of tiles");
        let needed = strips_len(width, lanes, depth);
        assert!(needed <= self.elements.len(), "invariant: there is a strip for every lane");
        self.elements.as_ptr()
    }
}

/// Returns the number of elements of `lanes` lanes in strips.
pub(super) fn strips_len(width: usize, lanes: usize, depth: usize) -> usize {
    lanes.next_multiple_of(width).saturating_mul(depth)
}

/// A product of strips of equal depth. Rows and columns are those of the target; the last strips may be partial.
pub(crate) struct Block<'a, T> {
    pub(super) left: Strips<'a, T>,
    pub(super) right: Strips<'a, T>,
    pub(super) depth: usize,
    pub(super) to: Target<'a, T>,
}

/// The distances of the operands of a sum from a position, and their maximum.
#[derive(Clone, Copy)]
pub(crate) struct Offsets<'a> {
    all: &'a [usize],
    most: usize,
}

impl<'a> Offsets<'a> {
    pub(crate) fn new(all: &'a [usize]) -> Self {
        Offsets { all, most: all.iter().copied().max().unwrap_or(0) }
    }
}

/// An operation on strips.
pub(crate) enum StripOp<'a, T> {
    Multiply(Block<'a, T>),
    /// Packs a matrix into adjacent strips. A row of the matrix is a lane, which is a row or a column of the product; a
    /// column of the matrix is a position of the depth.
    Pack {
        from: Matrix<'a, T>,
        side: Side,
        to: &'a mut [MaybeUninit<T>],
    },
    /// Gathers a strip of columns. A run `(lane, position)` gives, for each offset, the operands of the lanes from
    /// `lane` to the next run: contiguous elements from `position` plus the offset on.
    Gather {
        from: &'a [T],
        offsets: Offsets<'a>,
        runs: &'a [(usize, usize)],
        to: &'a mut [MaybeUninit<T>],
    },
}

/// The functions for packed products of a type.
#[derive(Clone, Copy)]
pub(crate) struct Tiling<T> {
    /// Returns the lanes per strip of either side, on this processor.
    pub(crate) strip: fn(Side) -> usize,
    /// Runs a job; all of its output is written. Panics if strips, slices or the target are smaller than the job needs.
    run: fn(StripOp<'_, T>),
    /// As [`super::product`], without packing.
    pub(super) small: fn(Product<'_, T>),
}

impl<T: Multiply> Tiling<T> {
    /// Packs a matrix, whose rows are lanes, into strips; `to` has exactly the elements of these strips.
    pub(crate) fn pack<'b>(self, from: Matrix<'_, T>, side: Side, to: &'b mut [MaybeUninit<T>]) -> &'b [T] {
        (self.run)(StripOp::Pack { from, side, to: &mut *to });
        // SAFETY: packing writes every element of the strips: those of lanes, and the zeros of the padding.
        unsafe { to.assume_init_ref() }
    }

    /// Gathers a strip of columns, as [`StripOp::Gather`].
    pub(crate) fn gather(
        self,
        from: &[T],
        offsets: Offsets<'_>,
        runs: &[(usize, usize)],
        to: &mut [MaybeUninit<T>],
    ) {
        (self.run)(StripOp::Gather { from, offsets, runs, to });
    }

    /// Computes the product of strips.
    pub(super) fn multiply(self, block: Block<'_, T>) {
        (self.run)(StripOp::Multiply(block));
    }
}

/// Returns the tiling of a type with its vectors.
const fn tiling<T: Registers>() -> Tiling<T> {
    Tiling {
        strip: |side| match (side, isa()) {
            (Side::Left, Isa::Avx512) => WIDE_TILE.0,
            (Side::Right, Isa::Avx512) => WIDE_TILE.1 * T::Avx512::LANES,
            (Side::Left, _) => NARROW.0,
            (Side::Right, Isa::Avx2) => NARROW.1 * T::Avx2::LANES,
            (Side::Right, Isa::Baseline) => NARROW.1 * T::Baseline::LANES,
        },
        run: |job| match isa() {
            Isa::Avx512 => simd::run(Shaped::<T::Avx512, { WIDE_TILE.0 }, { WIDE_TILE.1 }>(job)),
            Isa::Avx2 => simd::run(Shaped::<T::Avx2, { NARROW.0 }, { NARROW.1 }>(job)),
            Isa::Baseline => simd::run(Shaped::<T::Baseline, { NARROW.0 }, { NARROW.1 }>(job)),
        },
        small: |p| match isa() {
            Isa::Avx512 if is_tiled_by(&p, T::Avx512::LANES) => {
                simd::run(Tiled::<T::Avx512, { WIDE_TILE.0 }, { WIDE_TILE.1 }>(p))
            }
            _ => direct(p),
        },
    }
}

pub(super) const F32_TILING: Tiling<f32> = tiling();
pub(super) const F64_TILING: Tiling<f64> = tiling();

/// A job with strips of `R` rows, and of `N` vectors of columns.
struct Shaped<'a, V: Vector, const R: usize, const N: usize>(StripOp<'a, V::Element>);

impl<V: Vector, const R: usize, const N: usize> Multiversioned for Shaped<'_, V, R, N> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::Exactly(V::ISA);

    #[inline(always)]
    fn run(self) {
        match self.0 {
            StripOp::Multiply(block) => multiply::<V, R, N>(block, Available::check()),
            StripOp::Gather { from, offsets, runs, to } => gather::<V, N>(from, offsets, runs, to),
            StripOp::Pack { from, side: Side::Left, to } => _ = pack::<V::Element, [V::Element; R]>(from, to),
            StripOp::Pack { from, side: Side::Right, to } => _ = pack::<V::Element, [V; N]>(from, to),
        }
    }
}

/// Computes all tiles: a strip of columns stays in the L1 cache while the loop runs over the strips of rows.
///
/// # Panics
/// Panics if there are not strips of this depth, `R` rows and `N` vectors for all rows and columns of the target.
#[inline(always)]
fn multiply<V: Vector, const R: usize, const N: usize>(b: Block<'_, V::Element>, _: Available<V>) {
    let strip = N * V::LANES;
    let Block { left, right, depth, to } = b;
    let (all_rows, all_columns) = (to.rows(), to.columns());
    let (left, right) = (left.start(R, depth, all_rows), right.start(strip, depth, all_columns));
    for j in (0..all_columns).step_by(strip) {
        let columns = strip.min(all_columns - j);
        for i in (0..all_rows).step_by(R) {
            let rows = R.min(all_rows - i);
            // SAFETY: pointers and lengths: `start` checked that there are whole strips of this depth for all rows and
            // columns. So the strips of rows from `i` on and of columns from `j` on begin at `i * depth` and
            // `j * depth`, and have `R` and `strip` elements per position of the depth. Rows and columns of the tile
            // belong to the target. Lifetime: strips are borrowed by the block. Aliasing: the target is exclusive and
            // overlaps no operand. Instruction set: `Available`.
            unsafe {
                let left = (left.add(i * depth), 1, R);
                let right = (right.add(j * depth), strip);
                let tile = Tile { left, right, depth, at: (i, j), size: (rows, columns), to: &to };
                match rows {
                    1 | 2 => tile.put::<V, 2, N>(),
                    3 | 4 => tile.put::<V, 4, N>(),
                    _ => tile.put::<V, R, N>(),
                }
            }
        }
    }
}

/// Computes the columns from `j` on of a product, as many as belong to `columns`, without packing: tiles of up to `R`
/// rows. The columns of the right operand are those that the product begins with at `j`, in whole vectors.
///
/// # Panics
/// Panics if the operands have another depth than each other or other rows than the target, the columns do not belong
/// to the target or to `N` vectors, or the right operand has no whole vectors of contiguous columns for them.
#[inline(always)]
pub(super) fn multiply_columns<V: Vector, const R: usize, const N: usize>(
    left: Matrix<'_, V::Element>,
    right: Matrix<'_, V::Element>,
    to: &Target<'_, V::Element>,
    columns: Range<usize>,
    _: Available<V>,
) {
    let (j, columns, depth, m) = (columns.start, columns.len(), right.rows(), left.rows());
    assert!(
        left.columns() == depth && m == to.rows() && j + columns <= to.columns() && columns <= N * V::LANES,
        "invariant: tiles lie within their product"
    );
    assert!(
        right.columns() >= columns.next_multiple_of(V::LANES) && right.column_step() == 1,
        "invariant: the right operand of tiles consists of whole vectors"
    );
    let mut i = 0;
    while i < m {
        let rows = [R, 4, 2].into_iter().find(|rows| *rows <= m - i).unwrap_or(1);
        let left = (left.element(i, 0), left.row_step(), left.column_step());
        let right = (right.element(0, 0), right.row_step());
        let tile = Tile { left, right, depth, at: (i, j), size: (rows, columns), to };
        // SAFETY: pointers and lengths: the assertions above check that the left operand and the target have all rows
        // below `m`, of which there are `rows` from `i` on; that both operands have the depth; and that the columns
        // belong to the target and are whole vectors of contiguous elements in the right operand. Lifetime: all are
        // borrowed by this function. Aliasing: the target is exclusive and overlaps no operand. Instruction set:
        // `Available`.
        unsafe {
            match rows {
                1 => tile.put::<V, 1, N>(),
                2 => tile.put::<V, 2, N>(),
                4 => tile.put::<V, 4, N>(),
                _ => tile.put::<V, R, N>(),
            }
        }
        i += rows;
    }
}

/// A tile of the result.
struct Tile<'a, T> {
    /// The first row of the left operand: pointer, distance between rows, and distance between positions of the depth.
    left: (*const T, usize, usize),
    /// Contiguous columns of the right operand: pointer, and distance between positions of the depth.
    right: (*const T, usize),
    depth: usize,
    /// Position of the tile in the result, and the number of its rows and columns.
    at: (usize, usize),
    size: (usize, usize),
    to: &'a Target<'a, T>,
}

impl<T: Multiply> Tile<'_, T> {
    /// Computes `R` rows and the needed number of vectors of columns (at most `N`), and writes the elements that belong
    /// to the result.
    ///
    /// # Safety
    /// For every position of the depth, `R` rows are valid for reads from `left` on, and the needed number of whole
    /// vectors from `right` on. The rows and columns of the tile belong to the target. The processor has the vectors'
    /// instruction set.
    #[inline(always)]
    unsafe fn put<V: Vector<Element = T>, const R: usize, const N: usize>(&self) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.size.1.div_ceil(V::LANES) {
                1 => self.put_all::<V, R, 1>(),
                2 => self.put_all::<V, R, 2>(),
                _ => self.put_all::<V, R, N>(),
            }
        }
    }

    /// # Safety
    /// As [`Tile::put`].
    #[inline(always)]
    unsafe fn put_all<V: Vector<Element = T>, const R: usize, const N: usize>(&self) {
        let Tile { left: (mut left, row_step, along), right: (mut right, step), .. } = *self;
        let ((i, j), (rows, columns)) = (self.at, self.size);
        debug_assert!(
            rows <= R && i + rows <= self.to.rows() && j + columns <= self.to.columns(),
            "invariant: a tile lies within its result"
        );
        // SAFETY: the caller's contract; pointers beyond the depth are not dereferenced. Vectors are read and written
        // unaligned. Rows of a fresh target are contiguous.
        unsafe {
            let mut sums = [[V::splat(T::ZERO); N]; R];
            for _ in 0..self.depth {
                let row = right.cast::<[V; N]>().read_unaligned();
                for (r, sums) in sums.iter_mut().enumerate() {
                    let factor = V::splat(*left.add(r * row_step));
                    for (sum, x) in sums.iter_mut().zip(row) {
                        *sum = sum.add_product(factor, x);
                    }
                }
                (left, right) = (left.wrapping_add(along), right.wrapping_add(step));
            }
            if rows == R && columns == N * V::LANES && self.to.is_fresh() {
                // The common case: stored directly from registers.
                for (r, sums) in sums.iter().enumerate() {
                    let row = self.to.element(i + r, j).cast::<V>();
                    for (v, sum) in sums.iter().enumerate() {
                        row.add(v).write_unaligned(*sum);
                    }
                }
                return;
            }
            // Stored once to memory, where they can be indexed; the sums themselves stay in registers.
            let Spilled(sums) = Spilled::new(sums);
            for (r, sums) in sums.iter().enumerate().take(rows) {
                self.to.put_vectors(i + r, j, sums, columns);
            }
        }
    }
}

/// Packs a matrix into strips of as many lanes as `S`, an array or vectors of `T`, has elements. Writes every element
/// of `to` and returns it.
///
/// # Panics
/// Panics if `to` does not have exactly the elements of the strips.
#[inline(always)]
pub(super) fn pack<'b, T: Multiply, S: Copy>(from: Matrix<'_, T>, to: &'b mut [MaybeUninit<T>]) -> &'b [T] {
    let strip = const { size_of::<S>() / size_of::<T>() };
    let (lanes, deep) = (from.rows(), from.columns());
    assert!(to.len() == strips_len(strip, lanes, deep), "invariant: the buffer fits whole strips");
    let mut done = 0;
    if from.row_step() == 1 {
        // All strips are packed in one pass over the matrix, line by line.
        let strips = lanes / strip;
        let to = to.as_mut_ptr().cast::<T>();
        for k in 0..deep {
            let line = from.element(0, k);
            for i in 0..strips {
                // SAFETY: pointers and lengths: the lanes of whole strips and all columns belong to the matrix, and with
                // a row step of one the lanes of a position are contiguous. `to` has `strip * deep` elements for each
                // strip. Alignment: both accesses are unaligned ones. Lifetime: both are borrowed by this function.
                // Aliasing: `to` is exclusive.
                unsafe {
                    let lanes = line.add(i * strip).cast::<S>().read_unaligned();
                    to.add((i * deep + k) * strip).cast::<S>().write_unaligned(lanes);
                }
            }
        }
        done = strips * strip;
    }
    let rest = to[done * deep..].chunks_exact_mut((strip * deep).max(1));
    for (lane, to) in (done..lanes).step_by(strip).zip(rest) {
        let there = strip.min(lanes - lane);
        let own = from.part(lane..lane + there, 0..deep);
        let whole = if from.column_step() == 1 { deep / DEPTH * DEPTH } else { 0 };
        if whole > 0 {
            let columns = MatrixMut::new(&mut *to, [whole, there], [strip, 1]);
            transpose::<T, DEPTH>(own.part(0..there, 0..whole), columns);
        }
        edge(own, strip, whole, to);
    }
    // SAFETY: every element was written: of whole strips by the first loop, of the others by `transpose` and `edge`.
    unsafe { to.assume_init_ref() }
}

/// As [`StripOp::Gather`]. Every run is copied as a whole strip: the next run overwrites its end, and the next offset
/// overwrites elements beyond the strip. For the last offset only the elements within the strip are written. Writes
/// every element of `to`.
///
/// # Panics
/// Panics if `to` is not a strip of this depth, the first run does not begin at lane 0, or a run is not within `from`.
#[inline(always)]
fn gather<V: Vector, const N: usize>(
    from: &[V::Element],
    offsets: Offsets<'_>,
    runs: &[(usize, usize)],
    to: &mut [MaybeUninit<V::Element>],
) {
    let strip = N * V::LANES;
    assert!(to.len() == strip * offsets.all.len(), "invariant: the buffer fits a strip");
    assert!(runs.first().is_some_and(|run| run.0 == 0), "invariant: a strip begins with a run");
    for (lane, start) in runs {
        let end = start.saturating_add(offsets.most).saturating_add(strip);
        assert!(*lane < strip && end <= from.len(), "invariant: a run lies within its source");
    }
    let Some((last, most)) = offsets.all.split_last() else { return };
    let (from, mut to) = (from.as_ptr(), to.as_mut_ptr().cast::<V::Element>());
    // SAFETY: pointers and lengths: the assertions above check that `strip` elements follow every run at every offset.
    // `to` has a strip per offset; a write from a lane within a strip ends within the next strip, or for the last
    // offset within the strip itself. Alignment: vectors are read and written unaligned. Lifetime: both are borrowed by
    // this function. Aliasing: `to` is exclusive.
    unsafe {
        for offset in most {
            for (lane, start) in runs {
                let lanes = from.add(offset + start).cast::<[V; N]>().read_unaligned();
                to.add(*lane).cast::<[V; N]>().write_unaligned(lanes);
            }
            to = to.add(strip);
        }
        for (lane, start) in runs {
            to.add(*lane).copy_from_nonoverlapping(from.add(last + start), strip - lane);
        }
    }
}

/// Packs the columns from `start` on into a strip lane by lane, for any steps, and writes the zeros of the padding for
/// all columns.
///
/// # Panics
/// Panics if the matrix has more than `strip` rows, or `to` has another number of elements than the strip.
#[inline(always)]
fn edge<T: Multiply>(from: Matrix<'_, T>, strip: usize, start: usize, to: &mut [MaybeUninit<T>]) {
    let (there, deep) = (from.rows(), from.columns());
    assert!(there <= strip && to.len() == strip * deep, "invariant: the buffer fits a strip");
    let to = to.as_mut_ptr().cast::<T>();
    // SAFETY: pointers and lengths: rows and columns belong to the matrix; `to` has `strip` elements, of which `there`
    // are rows, for each column. Lifetime: both are borrowed by this function. Aliasing: `to` is exclusive.
    unsafe {
        for i in 0..there {
            for k in start..deep {
                *to.add(k * strip + i) = *from.element(i, k);
            }
        }
        for k in 0..deep {
            for i in there..strip {
                *to.add(k * strip + i) = T::ZERO;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::vector::PortableVectors;
    use super::*;

    /// Compares tiles of a shape, which need no processor features, with a plain sum.
    fn check<const L: usize, const R: usize, const N: usize>() {
        let strip = N * L;
        for (m, k, n) in [
            (1, 1, 1),
            (R + 1, 37, strip + 1),
            (2 * R - 1, 16, 3 * L),
            (2, 5, 2),
            (4, 9, L),
            (3, 8, 2 * strip + 2 * L - 1),
        ] {
            let value = |i: usize, seed: usize| ((i * 37 + seed) % 19) as f32 - 9.0;
            let a: Vec<f32> = (0..m * k).map(|i| value(i, 1)).collect();
            let b: Vec<f32> = (0..k * n).map(|i| value(i, 5)).collect();
            let mut left = vec![MaybeUninit::new(f32::NAN); m.next_multiple_of(R) * k];
            let mut right = vec![MaybeUninit::new(f32::NAN); n.next_multiple_of(strip) * k];
            let start: Vec<f32> = (0..m * n).map(|i| value(i, 3)).collect();
            let wanted: Vec<f32> = (0..m * n)
                .map(|at| {
                    (0..k).map(|d| a[at / n * k + d] * b[d * n + at % n]).sum::<f32>() * 2.0 - start[at]
                })
                .collect();
            let left = pack::<f32, [f32; R]>(Matrix::new(&a, [m, k], [k, 1]), &mut left);
            let right =
                pack::<f32, [PortableVectors<f32, L>; N]>(Matrix::new(&b, [n, k], [1, n]), &mut right);
            let mut c = vec![MaybeUninit::new(f32::NAN); m * n];
            let start = Matrix::new(&start, [m, n], [n, 1]);
            let to = Target::added_to(MatrixMut::of(&mut c, n), start, -1.0, 2.0);
            let (left, right) = (Strips::new(left, R, k), Strips::new(right, strip, k));
            multiply::<PortableVectors<f32, L>, R, N>(
                Block { left, right, depth: k, to },
                Available::check(),
            );
            // SAFETY: a product writes every element.
            assert_eq!(unsafe { c.assume_init_ref() }, wanted, "{L}: {m} {k} {n}");
        }
    }

    #[test]
    fn tiles_of_every_shape_agree_with_the_definition() {
        check::<4, 6, 2>();
        check::<8, 6, 2>();
        check::<16, 8, 3>();
    }

    /// Asserts that a function panics with a message.
    fn refused(text: &str, f: impl FnOnce()) {
        let panic = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
        let message = panic.downcast_ref::<&str>().expect("invariant: assertions have messages");
        assert!(message.contains(text), "{message}");
    }

    #[test]
    fn strips_of_wrong_size_are_refused() {
        let (depth, width) = (5, 6);
        let elements = vec![1.0f32; 2 * width * depth];
        refused("strips are whole", || _ = Strips::new(&elements[1..], width, depth));
        refused("strips are whole", || _ = Strips::new(&elements, width, depth - 1));
        let mut c = vec![MaybeUninit::new(0.0f32); 13 * 9];
        let mut product = |rows: usize, columns: usize, left: Strips<'_, f32>, depth: usize| {
            let right = vec![1.0f32; 8 * depth];
            let to = Target::fresh(MatrixMut::of(&mut c[..rows * columns], columns), 1.0);
            let block = Block { left, right: Strips::new(&right, 8, depth), depth, to };
            multiply::<PortableVectors<f32, 4>, 6, 2>(block, Available::check());
        };
        product(12, 8, Strips::new(&elements, width, depth), depth);
        refused("a strip for every lane", || product(13, 8, Strips::new(&elements, width, depth), depth));
        refused("a strip for every lane", || product(12, 9, Strips::new(&elements, width, depth), depth));
        refused("the shape of tiles", || product(12, 8, Strips::new(&elements, width, depth), depth - 1));
        refused("the shape of tiles", || product(12, 8, Strips::new(&elements, width / 2, depth), depth));
    }

    #[test]
    fn strips_require_their_exact_length() {
        let elements = [1.0f32; 7 * 3];
        let from = Matrix::new(&elements, [7, 3], [3, 1]);
        let mut to = vec![MaybeUninit::new(f32::NAN); 12 * 3 + 1];
        pack::<f32, [f32; 6]>(from, &mut to[..12 * 3]);
        refused("the buffer fits whole strips", || _ = pack::<f32, [f32; 6]>(from, &mut to[..12 * 3 - 1]));
        refused("the buffer fits whole strips", || _ = pack::<f32, [f32; 6]>(from, &mut to));
        refused("the buffer fits whole strips", || _ = pack::<f32, [f32; 6]>(from, &mut to[..7 * 3]));
    }

    #[test]
    fn tiles_lie_within_their_product() {
        let (a, b) = ([1.0f32; 5 * 3], [2.0f32; 3 * 8]);
        let mut c = [MaybeUninit::new(0.0f32); 5 * 6];
        let mut product = |left: [usize; 2], right: ([usize; 2], [usize; 2]), columns: Range<usize>| {
            let (left, right) = (Matrix::new(&a, left, [3, 1]), Matrix::new(&b, right.0, right.1));
            let to = Target::fresh(MatrixMut::of(&mut c, 6), 1.0);
            multiply_columns::<PortableVectors<f32, 4>, 6, 2>(left, right, &to, columns, Available::check());
        };
        product([5, 3], ([3, 8], [8, 1]), 0..6);
        product([5, 3], ([3, 4], [8, 1]), 4..6);
        refused("within their product", || product([4, 3], ([3, 8], [8, 1]), 0..6));
        refused("within their product", || product([5, 2], ([3, 8], [8, 1]), 0..6));
        refused("within their product", || product([5, 3], ([3, 8], [8, 1]), 2..7));
        refused("whole vectors", || product([5, 3], ([3, 7], [8, 1]), 0..6));
        refused("whole vectors", || product([5, 3], ([3, 8], [1, 3]), 0..6));
    }

    #[test]
    fn gathered_runs_lie_within_their_source() {
        let (source, strip) = ([1.0f32; 20], 8);
        let mut to = vec![MaybeUninit::new(f32::NAN); 2 * strip];
        let mut gathered = |offsets: &[usize], runs: &[(usize, usize)], len: usize| {
            gather::<PortableVectors<f32, 4>, 2>(&source, Offsets::new(offsets), runs, &mut to[..len]);
        };
        gathered(&[0, 7], &[(0, 0), (3, 5)], 16);
        refused("within its source", || gathered(&[0, 7], &[(0, 0), (3, 6)], 16));
        refused("within its source", || gathered(&[8, 0], &[(0, 0), (3, 5)], 16));
        refused("within its source", || gathered(&[0, 7], &[(0, 0), (8, 0)], 16));
        refused("begins with a run", || gathered(&[0, 7], &[(1, 0)], 16));
        refused("the buffer fits a strip", || gathered(&[0, 7], &[(0, 0)], 15));
    }
}
