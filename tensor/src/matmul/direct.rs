//! Products without packing: small ones, for which packing does not pay, and all products of integers.
//!
//! Tiles of the result stay in registers while the operands are read. Multiplications and additions of floats are fused
//! on every processor.
//!
//! Functions of this file pass a [`Product`], whose constructor checks that its sizes agree. Its matrices contain all
//! elements of their sizes, and loops over rows and columns stay below these sizes.
#![allow(unsafe_code, reason = "walks matrices by pointers")]

use std::mem::MaybeUninit;

use super::matrix::Matrix;
use super::product::{DOTS, Multiply, Product};
use super::target::Target;
use super::tile::{multiply_columns, pack};
use super::vector::{Available, Vector};
use crate::lanes::{Spilled, TAIL_LANES, TailLanes, folded};
use crate::simd::{self, InstructionSets, Multiversioned};

/// Number of multiplications up to which products are never packed, so that a direct loop computes them, whatever their shape.
pub(super) const TINY: usize = 6000;
/// As [`TINY`], for products with whole tiles: at least [`ROWS`] rows and 8 columns, and a row-major `b` or a depth of at most
/// [`DEPTH`].
pub(super) const SMALL_CONTIGUOUS: usize = 1 << 20;

/// Returns whether a floating-point product of `work` multiplications is faster without packing.
pub(super) fn is_small<T: Multiply>(p: &Product<'_, T>, work: usize) -> bool {
    work <= TINY || work <= SMALL_CONTIGUOUS && is_tiled(p)
}

/// Returns whether there are enough rows and columns for tiles.
fn is_tiled<T: Multiply>(p: &Product<'_, T>) -> bool {
    p.m() >= ROWS && p.n() >= 8 && (p.b().column_step() == 1 || p.k() <= DEPTH)
}

/// Returns whether there are enough rows and columns for [`Tiled`] with vectors of `lanes` columns.
pub(super) fn is_tiled_by<T: Multiply>(p: &Product<'_, T>, lanes: usize) -> bool {
    let whole = p.b().column_step() == 1 && p.n().is_multiple_of(lanes);
    p.m() >= ROWS && p.n() >= lanes && (p.k() <= DEPTH || whole)
}

/// Rows per tile.
pub(super) const ROWS: usize = 4;
/// Length of dot products from which on they are summed in [`TAIL_LANES`] lanes; shorter ones have half as many.
pub(super) const FEW_LANES_FROM: usize = 16;
/// Length of dot products from which on each has its own loop; shorter ones share a loop with others.
pub(super) const SEPARATE_LOOPS_FROM: usize = 128;
/// Columns per tile of one row.
pub(super) const ROW_TILE_COLUMNS: usize = 64;

/// Small products in tiles of vectors; only for products that are [`is_tiled_by`] the vector's lanes.
pub(super) struct Tiled<'a, V: Vector, const R: usize, const N: usize>(pub(super) Product<'a, V::Element>);

impl<V: Vector, const R: usize, const N: usize> Multiversioned for Tiled<'_, V, R, N> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::Exactly(V::ISA);

    #[inline(always)]
    fn run(self) {
        let (a, b, to) = self.0.into_parts();
        let (k, n) = (b.rows(), b.columns());
        let available = Available::check();
        let mut panel = [const { MaybeUninit::<[V; N]>::uninit() }; DEPTH];
        // Strips of equal width, up to whole vectors. A strip of a single vector would be limited by the latency of
        // loading its factors.
        let mut strips = n.div_ceil(V::LANES).div_ceil(N);
        let mut j = 0;
        while j < n {
            let columns = ((n - j).div_ceil(V::LANES).div_ceil(strips) * V::LANES).min(n - j);
            let from = b.part(0..k, j..j + columns);
            let right = if b.column_step() == 1 && columns.is_multiple_of(V::LANES) {
                from
            } else {
                let vectors = columns.div_ceil(V::LANES);
                let width = vectors.min(N) * V::LANES;
                assert!(k <= DEPTH && vectors <= N, "invariant: a strip fits the panel");
                let to = panel.as_mut_ptr().cast::<MaybeUninit<V::Element>>();
                // SAFETY: the panel has `DEPTH * N` vectors, and the assertion above bounds this strip, of
                // `k * vectors` vectors, by that. A vector consists of its elements, which may be uninitialized in the
                // slice. No other reference to the panel exists.
                let to = unsafe { std::slice::from_raw_parts_mut(to, k * width) };
                let from = from.transpose();
                let strip = match vectors {
                    1 => pack::<V::Element, [V; 1]>(from, to),
                    2 => pack::<V::Element, [V; 2]>(from, to),
                    _ => pack::<V::Element, [V; N]>(from, to),
                };
                // Padding of the last vector is part of the matrix.
                Matrix::new(strip, [k, width], [width, 1])
            };
            multiply_columns::<V, R, N>(a, right, &to, j..j + columns, available);
            j += columns;
            strips -= 1;
        }
    }
}

/// Computes a product without packing, for any strides.
pub(super) fn direct<T: Multiply>(p: Product<'_, T>) {
    // Only integers have `InstructionSets::UpToAvx2`.
    if const { matches!(InstructionSets::of(&[T::DTYPE]), InstructionSets::UpToAvx2) } {
        simd::run(ByRows(p))
    } else {
        simd::run(Direct(p))
    }
}

/// Computes a row of the result at a time, in loops along contiguous memory, which LLVM vectorizes for integers: their
/// sums do not depend on the order.
struct ByRows<'a, T>(Product<'a, T>);

impl<T: Multiply> Multiversioned for ByRows<'_, T> {
    type Output = ();
    // Only AVX-512 multiplies 64-bit integers.
    const SETS: InstructionSets = InstructionSets::UpToAvx512;

    #[inline(always)]
    fn run(self) {
        let ByRows(p) = self;
        let mut buffer = [T::ZERO; DEPTH];
        for i in 0..p.m() {
            for j in (0..p.n()).step_by(DEPTH) {
                let sums = &mut buffer[..DEPTH.min(p.n() - j)];
                sum_up(p.a(), p.b(), i, j, sums);
                p.to().put_row_part(i, j, sums);
            }
        }
    }
}

/// Adds to `sums` the products for row `i` from column `j` on.
///
/// # Panics
/// Panics if these are not elements of the product.
#[inline(always)]
fn sum_up<T: Multiply>(a: Matrix<'_, T>, b: Matrix<'_, T>, i: usize, j: usize, sums: &mut [T]) {
    let depth = b.rows();
    assert!(
        a.columns() == depth && i < a.rows() && j + sums.len() <= b.columns(),
        "invariant: sums are those of a row of the product"
    );
    // SAFETY: the assertion above checks that row `i` and the columns from `j` on belong to the matrices, for the whole
    // depth. Elements with a step of one are contiguous. The slices do not outlive the matrices' borrows, which are
    // shared.
    unsafe {
        if b.row_step() == 1 && a.column_step() == 1 {
            let a = std::slice::from_raw_parts(a.element(i, 0), depth);
            for (c, sum) in sums.iter_mut().enumerate() {
                let b = std::slice::from_raw_parts(b.element(0, j + c), depth);
                *sum = a.iter().zip(b).fold(T::ZERO, |sum, (a, b)| sum.add_product(*a, *b));
            }
            return;
        }
        sums.fill(T::ZERO);
        let mut k = 0;
        if b.column_step() == 1 {
            // The sums are in memory, so several steps are added at a time.
            while k + 4 <= depth {
                let factors = [0, 1, 2, 3].map(|d| *a.element(i, k + d));
                let row = |d| std::slice::from_raw_parts(b.element(k + d, j), sums.len());
                let [x, y, z, w] = [row(0), row(1), row(2), row(3)];
                add_rows(sums, x, y, z, w, factors);
                k += 4;
            }
        }
        for k in k..depth {
            let factor = *a.element(i, k);
            for (c, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add_product(factor, *b.element(k, j + c));
            }
        }
    }
}

/// Adds rows times their factors to sums. Slices as arguments carry the information that nothing overlaps.
#[inline(always)]
fn add_rows<T: Multiply>(sums: &mut [T], x: &[T], y: &[T], z: &[T], w: &[T], factors: [T; 4]) {
    let n = sums.len();
    let [x, y, z, w] = [&x[..n], &y[..n], &z[..n], &w[..n]];
    for c in 0..n {
        let sum = sums[c].add_product(factors[0], x[c]).add_product(factors[1], y[c]);
        sums[c] = sum.add_product(factors[2], z[c]).add_product(factors[3], w[c]);
    }
}

/// Small floating-point products, a row of the result at a time.
struct Direct<'a, T>(Product<'a, T>);

impl<T: Multiply> Multiversioned for Direct<'_, T> {
    type Output = ();
    // For AVX-512 LLVM would turn tiles into gathers.
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        let (a, b, to) = self.0.into_parts();
        // A constant column step, so that rows are stored as vectors: the result is row-major.
        let to = to.with_unit_column_step();
        if b.column_step() == 1 {
            direct_rows(a, b, &to);
        } else if is_dotted(a, b) {
            direct_dots(a, b, &to);
        } else {
            direct_panels(a, b, to);
        }
    }

    #[inline(always)]
    fn run_small(self) {
        if is_dotted(self.0.a(), self.0.b()) {
            direct_dots(self.0.a(), self.0.b(), self.0.to());
        } else {
            ByRows(self.0).run();
        }
    }
}

/// Returns whether the product has too few rows or columns for panels and its dot products read contiguous operands.
fn is_dotted<T>(a: Matrix<'_, T>, b: Matrix<'_, T>) -> bool {
    let narrow = b.columns() < 8 && b.rows() >= FEW_LANES;
    b.column_step() != 1 && b.row_step() == 1 && a.column_step() == 1 && (a.rows() < 4 || narrow)
}

/// Computes a product with contiguous rows of `b`: they are scaled and added to rows of the result, in tiles that stay
/// in registers.
#[inline(always)]
fn direct_rows<T: Multiply>(a: Matrix<'_, T>, b: Matrix<'_, T>, to: &Target<'_, T>) {
    let n = b.columns();
    let mut j = 0;
    // SAFETY: columns from `j` on belong to the product and are contiguous in the rows of `b`, whose column step is
    // one.
    unsafe {
        // A vector times a matrix reads whole cache lines of the matrix.
        if a.rows() == 1 {
            while j + ROW_TILE_COLUMNS <= n {
                tile::<T, 1, ROW_TILE_COLUMNS>(a, (b, j), to, (0, j));
                j += ROW_TILE_COLUMNS;
            }
        }
        // Enough sums to hide the latency of an addition, in the available registers: eight vectors.
        if size_of::<T>() <= 4 {
            while j + 16 <= n {
                column_of_tiles::<T, 16>(a, (b, j), to, j);
                j += 16;
            }
        }
        while j + 8 <= n {
            column_of_tiles::<T, 8>(a, (b, j), to, j);
            j += 8;
        }
        while j < n {
            column_of_tiles::<T, 1>(a, (b, j), to, j);
            j += 1;
        }
    }
}

/// Computes a product of any strides: groups of columns of `b` are first copied into contiguous rows.
#[inline(always)]
fn direct_panels<T: Multiply>(a: Matrix<'_, T>, b: Matrix<'_, T>, to: Target<'_, T>) {
    let mut j = 0;
    if b.rows() <= DEPTH {
        if size_of::<T>() <= 4 {
            j = panels::<T, 16>(a, b, &to, j);
        }
        j = panels::<T, 8>(a, b, &to, j);
    }
    while j < b.columns() {
        // SAFETY: column `j` belongs to the product; a tile of one column needs no contiguous columns.
        unsafe { column_of_tiles::<T, 1>(a, (b, j), &to, j) };
        j += 1;
    }
}

/// Maximum number of rows of a panel.
pub(super) const DEPTH: usize = 256;

/// Computes panels of `COLUMNS` columns from column `j` on, as many as fit; returns the next column. `b` has at most
/// [`DEPTH`] rows.
#[inline(always)]
fn panels<T: Multiply, const COLUMNS: usize>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    to: &Target<'_, T>,
    mut j: usize,
) -> usize {
    let depth = b.rows();
    let mut panel = [const { MaybeUninit::<[T; COLUMNS]>::uninit() }; DEPTH];
    let panel = &mut panel[..depth];
    while j + COLUMNS <= b.columns() {
        for c in 0..COLUMNS {
            for (k, row) in panel.iter_mut().enumerate() {
                // SAFETY: row `k` and column `j + c` belong to the borrowed matrix; `c` is an index within the row.
                unsafe { *row.as_mut_ptr().cast::<T>().add(c) = *b.element(k, j + c) };
            }
        }
        // SAFETY: the loops above wrote every element of these rows.
        let rows = unsafe { panel.assume_init_ref() }.as_flattened();
        let rows = Matrix::new(rows, [depth, COLUMNS], [COLUMNS, 1]);
        // SAFETY: the columns from `j` on belong to the result; those of the panel are contiguous.
        unsafe { column_of_tiles::<T, COLUMNS>(a, (rows, 0), to, j) };
        j += COLUMNS;
    }
    j
}

/// Computes columns `j..j + COLUMNS` of the result. The corresponding columns of the right operand begin at the number
/// given with it.
///
/// # Safety
/// These columns belong to the result and to the right operand, in whose rows they are contiguous. The sizes are those
/// of a product.
#[inline(always)]
unsafe fn column_of_tiles<T: Multiply, const COLUMNS: usize>(
    a: Matrix<'_, T>,
    b: (Matrix<'_, T>, usize),
    to: &Target<'_, T>,
    j: usize,
) {
    let mut i = 0;
    // SAFETY: the caller's contract; rows from `i` on belong to the left operand and the result.
    unsafe {
        while i + ROWS <= a.rows() {
            tile::<T, ROWS, COLUMNS>(a, b, to, (i, j));
            i += ROWS;
        }
        while i < a.rows() {
            tile::<T, 1, COLUMNS>(a, b, to, (i, j));
            i += 1;
        }
    }
}

/// Computes a tile of the result.
///
/// # Safety
/// As [`column_of_tiles`], and the tile's rows belong to the left operand and the result.
#[inline(always)]
unsafe fn tile<T: Multiply, const ROWS: usize, const COLUMNS: usize>(
    a: Matrix<'_, T>,
    (b, column): (Matrix<'_, T>, usize),
    to: &Target<'_, T>,
    (i, j): (usize, usize),
) {
    debug_assert!(
        i + ROWS <= a.rows() && column + COLUMNS <= b.columns() && a.columns() == b.rows(),
        "invariant: a tile lies within its operands"
    );
    let mut sums = [[T::ZERO; COLUMNS]; ROWS];
    for k in 0..b.rows() {
        // SAFETY: row `k` and its `COLUMNS` contiguous columns belong to the right operand. An array has the alignment
        // of its elements. The borrow ends before the matrix's, and the matrix is not written.
        let row = unsafe { &*b.element(k, column).cast::<[T; COLUMNS]>() };
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the row belongs to the left operand, which has as many columns as the right one has rows.
            let a = unsafe { *a.element(i + r, k) };
            for (sum, b) in sums.iter_mut().zip(row) {
                *sum = sum.add_product(a, *b);
            }
        }
    }
    let Spilled(sums) = Spilled::new(sums);
    for (r, sums) in sums.iter().enumerate() {
        // SAFETY: rows and columns of the tile belong to the result.
        unsafe { to.put(i + r, j, sums) };
    }
}

/// Computes a product with contiguous rows of `a` and contiguous columns of `b`: dot products in lanes, of several
/// columns at a time, whose lanes are merged together.
#[inline(always)]
fn direct_dots<T: Multiply>(a: Matrix<'_, T>, b: Matrix<'_, T>, to: &Target<'_, T>) {
    // Long dot products use many lanes, short ones share a loop. Both have enough sums to hide the latency of an addition.
    // An element that fills no lanes takes as long as a step of the loop, so the lanes are few if that leaves fewer elements.
    let depth = b.rows();
    if depth >= SEPARATE_LOOPS_FROM {
        rows_of_dots::<T, { 4 * TAIL_LANES }>(a, b, to);
    } else if depth >= FEW_LANES_FROM && depth % TAIL_LANES < FEW_LANES {
        rows_of_dots::<T, TAIL_LANES>(a, b, to);
    } else {
        rows_of_dots::<T, FEW_LANES>(a, b, to);
    }
}

/// Lanes of dot products that are too short for [`TAIL_LANES`].
const FEW_LANES: usize = TAIL_LANES / 2;

/// Computes a product row by row. Sums are written as soon as they are merged: a buffer of several would be loaded as wider
/// vectors than were stored, which takes longer than to write each.
#[inline(always)]
fn rows_of_dots<T: Multiply, const LANES: usize>(a: Matrix<'_, T>, b: Matrix<'_, T>, to: &Target<'_, T>) {
    let n = b.columns();
    for i in 0..a.rows() {
        let a = a.row(i);
        let mut j = 0;
        while j + DOTS <= n {
            let group = b.part(0..b.rows(), j..j + DOTS);
            let columns = [group.column(0), group.column(1), group.column(2), group.column(3)];
            // SAFETY: row `i` and the `DOTS` columns from `j` on belong to the result.
            unsafe { to.put(i, j, &dots::<T, LANES>(a, columns, DOTS)) };
            j += DOTS;
        }
        if j < n {
            // The last column takes the place of those that do not exist.
            let column = |c: usize| b.column((j + c).min(n - 1));
            let sums = dots::<T, LANES>(a, [b.column(j), column(1), column(2), column(3)], n - j);
            to.put_row_part(i, j, &sums[..n - j]);
        }
    }
}

/// Computes the first `count` dot products of `a`, those with more than [`TAIL_LANES`] lanes each in a loop of its own; the others are
/// unspecified.
///
/// The lanes are stored and loaded, because LLVM would shuffle elements within the loop otherwise.
#[inline(always)]
fn dots<T: Multiply, const LANES: usize>(a: &[T], columns: [&[T]; DOTS], count: usize) -> [T; DOTS] {
    let mut sums = if LANES <= TAIL_LANES {
        let Spilled(lanes) = Spilled::new(lane_sums::<T, LANES, DOTS>(a, columns));
        T::merge_lanes(&lanes)
    } else {
        let mut few = [[T::ZERO; TAIL_LANES]; DOTS];
        for n in 0..count {
            let Spilled([lanes]) = Spilled::new(lane_sums::<T, { 4 * TAIL_LANES }, 1>(a, [columns[n]]));
            TailLanes(few[n]) = folded(&lanes, |a, b| a.add_product(b, T::ONE));
        }
        T::merge_lanes(&few)
    };
    add_rest::<T, LANES>(&mut sums, a, columns);
    sums
}

/// Adds the products of elements that fill no lanes.
#[inline(always)]
fn add_rest<T: Multiply, const LANES: usize>(sums: &mut [T; DOTS], a: &[T], columns: [&[T]; DOTS]) {
    let [x, y, z, w] = columns;
    let [x, y, z, w] = [&x[..a.len()], &y[..a.len()], &z[..a.len()], &w[..a.len()]];
    for k in a.len() / LANES * LANES..a.len() {
        let row = [x[k], y[k], z[k], w[k]];
        for n in 0..DOTS {
            sums[n] = sums[n].add_product(a[k], row[n]);
        }
    }
}

/// Computes the sums of the lanes of dot products with `N` columns, except for the elements that fill no lanes.
///
/// Loops over arrays: methods of arrays that take closures are not inlined into functions that are compiled for an
/// instruction set, and a call per array takes longer than a short product.
#[inline(always)]
fn lane_sums<T: Multiply, const LANES: usize, const N: usize>(
    a: &[T],
    columns: [&[T]; N],
) -> [[T; LANES]; N] {
    let a = a.as_chunks::<LANES>().0;
    let mut chunks = [&[][..]; N];
    for n in 0..N {
        chunks[n] = &columns[n].as_chunks::<LANES>().0[..a.len()];
    }
    let mut lanes = [[T::ZERO; LANES]; N];
    for k in 0..a.len() {
        for n in 0..N {
            let (x, y) = (&a[k], &chunks[n][k]);
            for l in 0..LANES {
                lanes[n][l] = lanes[n][l].add_product(x[l], y[l]);
            }
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use crate::matmul::mm;
    use crate::tensor::Tensor;

    /// All sums are small integers, so they are exact in any order.
    #[test]
    fn edges_and_steps_of_small_products_agree_with_the_definition() {
        let value = |at: usize, seed: usize| ((at * 37 + seed) % 17) as f64 - 8.0;
        for (m, n) in [
            (4, 16),
            (5, 17),
            (7, 31),
            (9, 33),
            (12, 48),
            (15, 64),
            (11, 70),
            (3, 20),
            (8, 8),
            (2, 7),
            (9, 5),
        ] {
            for k in [1, 6, 12, 20, 40, 45, 131, 300] {
                let (a, b) = ((0..m * k).map(|at| value(at, 3)), (0..k * n).map(|at| value(at, 5)));
                let (a, b): (Vec<f64>, Vec<f64>) = (a.collect(), b.collect());
                let wanted: Vec<f64> = (0..m * n)
                    .map(|at| (0..k).map(|d| a[at / n * k + d] * b[d * n + at % n]).sum())
                    .collect();
                let make = |data: &[f64], rows: usize, columns: usize| {
                    Tensor::from_vec::<f64>(data.to_vec(), &[rows as i64, columns as i64]).unwrap()
                };
                let (a, b) = (make(&a, m, k), make(&b, k, n));
                let transposed = |t: &Tensor| t.t().unwrap().contiguous().unwrap().t().unwrap();
                for (a, b) in [
                    (&a, &b),
                    (&transposed(&a), &b),
                    (&a, &transposed(&b)),
                    (&transposed(&a), &transposed(&b)),
                ] {
                    assert_eq!(mm(a, b).unwrap().to_vec::<f64>().unwrap(), wanted, "{m} {k} {n}");
                    let dtype = crate::dtype::DType::F32;
                    let singles = mm(&a.to_dtype(dtype).unwrap(), &b.to_dtype(dtype).unwrap()).unwrap();
                    let wanted: Vec<f32> = wanted.iter().map(|x| *x as f32).collect();
                    assert_eq!(singles.to_vec::<f32>().unwrap(), wanted, "{m} {k} {n}");
                }
            }
        }
    }
}
