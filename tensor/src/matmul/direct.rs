//! Products computed where their operands lie: small ones, for which packing does not pay, and all of integers.
//!
//! Tiles of the result stay in registers while what they are sums of goes by; multiplications and additions of floats are
//! fused, on every processor alike.
#![allow(unsafe_code, reason = "walks matrices by pointers")]

use std::mem::MaybeUninit;

use super::product::{Matrix, Multiply, Product};
use super::tile::{Tile, cut};
use super::vector::Vector;
use crate::lanes::{FEW, Few, SIDE, Stored, folded, merge_rows};
use crate::simd::{self, Kernel, Sets};

/// Multiplications below which a direct loop is faster than packing, of whatever shape.
pub(super) const TINY: usize = 6000;
/// As [`TINY`], where tiles are whole and find their operands side by side.
const SMALL: usize = 1 << 20;

/// Whether a product of floats is better computed directly.
pub(super) fn is_small<T>(p: &Product<T>, work: usize) -> bool {
    work <= TINY || work <= SMALL && is_tiled(p)
}

/// Whether there are enough rows and columns for tiles.
fn is_tiled<T>(p: &Product<T>) -> bool {
    p.m >= ROWS && p.n >= 8 && (p.b.columns == 1 || p.k <= DEPTH)
}

/// Whether there are for [`Tiled`] ones, of vectors of so many columns.
pub(super) fn is_tiled_by<T>(p: &Product<T>, lanes: usize) -> bool {
    p.m >= ROWS && p.n >= lanes && (p.k <= DEPTH || p.b.columns == 1 && p.n.is_multiple_of(lanes))
}

/// Rows of a tile.
const ROWS: usize = 4;
/// Lengths of dot products from which on they have more lanes, and a loop for themselves.
const SHORT: usize = 16;
const LONG: usize = 128;
/// Columns of a tile of one row.
const WIDE: usize = 64;

/// Small products by tiles of vectors: those that are [`is_tiled_by`] them.
pub(super) struct Tiled<V: Vector, const R: usize, const N: usize>(pub(super) Product<V::Element>);

impl<V: Vector, const R: usize, const N: usize> Kernel for Tiled<V, R, N> {
    type Output = ();
    const SETS: Sets = Sets::Only(V::ISA);

    #[inline(always)]
    fn run(self) {
        let p = self.0;
        let mut panel = [const { MaybeUninit::<[V; N]>::uninit() }; DEPTH];
        // Strips as wide as each other, as far as whole vectors go: those of one vector would wait for their factors.
        let mut strips = p.n.div_ceil(V::LANES).div_ceil(N);
        let mut j = 0;
        while j < p.n {
            let columns = ((p.n - j).div_ceil(V::LANES).div_ceil(strips) * V::LANES).min(p.n - j);
            let right = if p.b.columns == 1 && columns.is_multiple_of(V::LANES) {
                (p.b.element(0, j).cast_const(), p.b.rows)
            } else {
                let to = panel.as_mut_ptr().cast::<V::Element>();
                let from = p.b.turned();
                let vectors = columns.div_ceil(V::LANES);
                // SAFETY: the columns are the matrix's, and no deeper than the panel.
                unsafe {
                    match vectors {
                        1 => cut::<V::Element, [V; 1]>(from, j..j + columns, 0..p.k, to),
                        2 => cut::<V::Element, [V; 2]>(from, j..j + columns, 0..p.k, to),
                        _ => cut::<V::Element, [V; N]>(from, j..j + columns, 0..p.k, to),
                    }
                }
                (to.cast_const(), (vectors * V::LANES) as isize)
            };
            let mut i = 0;
            while i < p.m {
                let left = Matrix { at: p.a.element(i, 0), ..p.a };
                let rows = [R, 4, 2].into_iter().find(|rows| *rows <= p.m - i).unwrap_or(1);
                let tile = Tile { left, right, depth: p.k, at: (i, j), size: (rows, columns), to: &p.to };
                // SAFETY: so many rows are the matrix's; all columns that are computed are there or in the panel.
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
            j += columns;
            strips -= 1;
        }
    }
}

/// A product of matrices as they are, whatever they are.
///
/// # Safety
/// As [`super::product::product`].
pub(super) unsafe fn direct<T: Multiply>(p: Product<T>) {
    // Loops of integers are those that have two sets.
    if const { matches!(Sets::of(&[T::DTYPE]), Sets::Two) } {
        simd::run(ByRows(p))
    } else {
        simd::run(Direct(p))
    }
}

/// A row of the result at a time, by loops that go as memory lies, of which LLVM makes vectors for integers: those are the
/// same in any order.
struct ByRows<T>(Product<T>);

impl<T: Multiply> Kernel for ByRows<T> {
    type Output = ();
    // Only AVX-512 multiplies integers of 64 bits.
    const SETS: Sets = Sets::All;

    #[inline(always)]
    fn run(self) {
        let ByRows(p) = self;
        let mut room = [T::ZERO; DEPTH];
        for i in 0..p.m {
            for j in (0..p.n).step_by(DEPTH) {
                let sums = &mut room[..DEPTH.min(p.n - j)];
                // SAFETY: the caller of `product` gave matrices valid for their sizes.
                unsafe {
                    sum_up(&p, i, j, sums);
                    p.to.put_some(i, j, sums);
                }
            }
        }
    }
}

/// Sums of a row from (i, j) on.
///
/// # Safety
/// They are the product's.
#[inline(always)]
unsafe fn sum_up<T: Multiply>(p: &Product<T>, i: usize, j: usize, sums: &mut [T]) {
    // SAFETY: the caller's word; what is a step of one apart lies side by side.
    unsafe {
        if p.b.rows == 1 && p.a.columns == 1 {
            let a = std::slice::from_raw_parts(p.a.element(i, 0).cast_const(), p.k);
            for (c, sum) in sums.iter_mut().enumerate() {
                let b = std::slice::from_raw_parts(p.b.element(0, j + c).cast_const(), p.k);
                *sum = a.iter().zip(b).fold(T::ZERO, |sum, (a, b)| sum.add_product(*a, *b));
            }
            return;
        }
        sums.fill(T::ZERO);
        let mut k = 0;
        if p.b.columns == 1 {
            // Sums are in memory: several steps of each at a time.
            while k + 4 <= p.k {
                let factors = [0, 1, 2, 3].map(|d| *p.a.element(i, k + d));
                let row = |d| std::slice::from_raw_parts(p.b.element(k + d, j).cast_const(), sums.len());
                let [x, y, z, w] = [row(0), row(1), row(2), row(3)];
                add_rows(sums, x, y, z, w, factors);
                k += 4;
            }
        }
        for k in k..p.k {
            let factor = *p.a.element(i, k);
            for (c, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add_product(factor, *p.b.element(k, j + c));
            }
        }
    }
}

/// Adds rows times their factors to sums. References as arguments say that nothing overlaps.
#[inline(always)]
fn add_rows<T: Multiply>(sums: &mut [T], x: &[T], y: &[T], z: &[T], w: &[T], factors: [T; 4]) {
    let n = sums.len();
    let [x, y, z, w] = [&x[..n], &y[..n], &z[..n], &w[..n]];
    for c in 0..n {
        let sum = sums[c].add_product(factors[0], x[c]).add_product(factors[1], y[c]);
        sums[c] = sum.add_product(factors[2], z[c]).add_product(factors[3], w[c]);
    }
}

/// Small products of floats: a row of the result at a time.
struct Direct<T>(Product<T>);

impl<T: Multiply> Kernel for Direct<T> {
    type Output = ();
    // Of tiles for AVX-512 LLVM makes gathers.
    const SETS: Sets = Sets::two(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        // Said as a constant, so that rows are stored as vectors: the result is row-major.
        let mut p = self.0;
        p.to.c.columns = 1;
        // SAFETY: the caller of `product` gave matrices valid for their sizes; the result overlaps no operand.
        unsafe {
            if p.b.columns == 1 {
                direct_rows(p);
            } else if is_dotted(&p) {
                direct_dots(p);
            } else {
                direct_panels(p);
            }
        }
    }

    #[inline(always)]
    fn run_small(self) {
        if is_dotted(&self.0) {
            // SAFETY: as above.
            unsafe { direct_dots(self.0) };
        } else {
            ByRows(self.0).run();
        }
    }
}

/// Whether there are few rows, of dot products that find their operands side by side.
fn is_dotted<T>(p: &Product<T>) -> bool {
    p.b.columns != 1 && p.b.rows == 1 && p.a.columns == 1 && p.m < 4
}

/// Rows of `b` are contiguous: they are added to rows of `c`, in tiles that stay in registers.
///
/// # Safety
/// As [`Direct`].
#[inline(always)]
unsafe fn direct_rows<T: Multiply>(p: Product<T>) {
    // SAFETY: the caller's word; the tiles are within the sizes.
    unsafe {
        let mut j = 0;
        // A vector reads whole lines of the matrix.
        if p.m == 1 {
            while j + WIDE <= p.n {
                tile::<T, 1, WIDE>(p, 0, j);
                j += WIDE;
            }
        }
        // As many sums as hide the time that one takes, in registers that there are: eight vectors.
        if size_of::<T>() <= 4 {
            while j + 16 <= p.n {
                column_of_tiles::<T, 16>(p, j);
                j += 16;
            }
        }
        while j + 8 <= p.n {
            column_of_tiles::<T, 8>(p, j);
            j += 8;
        }
        while j < p.n {
            column_of_tiles::<T, 1>(p, j);
            j += 1;
        }
    }
}

/// Any strides: some columns of `b` at a time are turned into rows first.
///
/// # Safety
/// As [`Direct`].
#[inline(always)]
unsafe fn direct_panels<T: Multiply>(p: Product<T>) {
    let mut j = 0;
    // SAFETY: the caller's word.
    unsafe {
        if p.k <= DEPTH {
            if size_of::<T>() <= 4 {
                j = panels::<T, 16>(p, j);
            }
            j = panels::<T, 8>(p, j);
        }
        while j < p.n {
            column_of_tiles::<T, 1>(p, j);
            j += 1;
        }
    }
}

/// Rows that a panel has at most.
const DEPTH: usize = 256;

/// Panels of so many columns from column `j` on, as many as there are; gives the column behind.
///
/// # Safety
/// As [`Direct`]; `k` is at most [`DEPTH`].
#[inline(always)]
unsafe fn panels<T: Multiply, const COLUMNS: usize>(p: Product<T>, mut j: usize) -> usize {
    let mut panel = [const { MaybeUninit::<[T; COLUMNS]>::uninit() }; DEPTH];
    while j + COLUMNS <= p.n {
        for c in 0..COLUMNS {
            for (k, row) in panel[..p.k].iter_mut().enumerate() {
                // SAFETY: the caller's word; the place is one of the row's.
                unsafe { *row.as_mut_ptr().cast::<T>().add(c) = *p.b.element(k, j + c) };
            }
        }
        let b = Matrix { at: panel.as_mut_ptr().cast(), rows: COLUMNS as isize, columns: 1 };
        // SAFETY: the panel holds `k` rows, filled above; the rest is the caller's word.
        unsafe { column_of_tiles::<T, COLUMNS>(Product { b, to: p.to.part(0, j), ..p }, 0) };
        j += COLUMNS;
    }
    j
}

/// Columns `j..j + COLUMNS` of the result.
///
/// # Safety
/// As [`Direct`], the columns are within the result, and side by side in `b`'s rows.
#[inline(always)]
unsafe fn column_of_tiles<T: Multiply, const COLUMNS: usize>(p: Product<T>, j: usize) {
    // SAFETY: the caller's word; the rows are within the result.
    unsafe {
        let mut i = 0;
        while i + ROWS <= p.m {
            tile::<T, ROWS, COLUMNS>(p, i, j);
            i += ROWS;
        }
        while i < p.m {
            tile::<T, 1, COLUMNS>(p, i, j);
            i += 1;
        }
    }
}

/// A tile of the result.
///
/// # Safety
/// As [`column_of_tiles`], and the rows are within the result.
#[inline(always)]
unsafe fn tile<T: Multiply, const ROWS: usize, const COLUMNS: usize>(p: Product<T>, i: usize, j: usize) {
    let mut sums = [[T::ZERO; COLUMNS]; ROWS];
    for k in 0..p.k {
        // SAFETY: the caller's word.
        let row = unsafe { &*p.b.element(k, j).cast::<[T; COLUMNS]>() };
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the caller's word.
            let a = unsafe { *p.a.element(i + r, k) };
            for (sum, b) in sums.iter_mut().zip(row) {
                *sum = sum.add_product(a, *b);
            }
        }
    }
    let Stored(sums) = Stored::new(sums);
    for (r, sums) in sums.iter().enumerate() {
        // SAFETY: the caller's word.
        unsafe { p.to.put(i + r, j, sums) };
    }
}

/// `a` has contiguous rows and `b` contiguous columns: dot products by lanes, of some columns at a time, whose lanes are
/// merged side by side.
///
/// # Safety
/// As [`Direct`].
#[inline(always)]
unsafe fn direct_dots<T: Multiply>(p: Product<T>) {
    let add = |a: T, b: T| a.add_product(b, T::ONE);
    for i in 0..p.m {
        // SAFETY: the caller's word.
        let a = unsafe { std::slice::from_raw_parts(p.a.element(i, 0), p.k) };
        // SAFETY: as above.
        let column = |j: usize| unsafe { std::slice::from_raw_parts(p.b.element(0, j).cast_const(), p.k) };
        for first in (0..p.n).step_by(SIDE) {
            let count = SIDE.min(p.n - first);
            let mut room = [Few([T::ZERO; FEW]); SIDE];
            let room = &mut room[..count];
            let column = |c: usize| column(first + c);
            // Long ones by many lanes, short ones several at a time: either way as many sums as hide the time that one takes.
            let lanes = match p.k {
                0..SHORT => several::<T, { FEW / 2 }>(a, column, room),
                SHORT..LONG => several::<T, FEW>(a, column, room),
                _ => {
                    for (c, few) in room.iter_mut().enumerate() {
                        let Stored([lanes]) = Stored::new(dots::<T, { 4 * FEW }, 1>(a, [column(c)]));
                        *few = folded(&lanes, add);
                    }
                    4 * FEW
                }
            };
            let mut sums = [T::ZERO; SIDE];
            let sums = &mut sums[..count];
            merge_rows(sums, room, add);
            let whole = p.k / lanes * lanes;
            if whole < p.k {
                for (c, sum) in sums.iter_mut().enumerate() {
                    let rest = a[whole..].iter().zip(&column(c)[whole..]);
                    *sum = add(rest.fold(T::ZERO, |sum, (a, b)| sum.add_product(*a, *b)), *sum);
                }
            }
            let (fours, rest) = sums.as_chunks::<4>();
            for (d, four) in fours.iter().enumerate() {
                // SAFETY: the caller's word.
                unsafe { p.to.put(i, first + 4 * d, four) };
            }
            if !rest.is_empty() {
                // SAFETY: as above.
                unsafe { p.to.put_some(i, first + 4 * fours.len(), rest) };
            }
        }
    }
}

/// The lanes of dot products that are short, four products at a time; gives how many each has.
#[inline(always)]
fn several<'a, T: Multiply + 'a, const LANES: usize>(
    a: &[T],
    column: impl Fn(usize) -> &'a [T],
    room: &mut [Few<T>],
) -> usize {
    let (fours, rest) = room.as_chunks_mut::<4>();
    for (i, four) in fours.iter_mut().enumerate() {
        let b = [0, 1, 2, 3].map(|d| column(4 * i + d));
        for (Few(few), lanes) in four.iter_mut().zip(dots::<T, LANES, 4>(a, b)) {
            few[..LANES].copy_from_slice(&lanes);
        }
    }
    let before = 4 * fours.len();
    for (d, Few(few)) in rest.iter_mut().enumerate() {
        few[..LANES].copy_from_slice(&dots::<T, LANES, 1>(a, [column(before + d)])[0]);
    }
    LANES
}

/// Dot products, but for what fills no lanes: as many sums side by side as there are lanes.
#[inline(always)]
fn dots<T: Multiply, const LANES: usize, const N: usize>(a: &[T], b: [&[T]; N]) -> [[T; LANES]; N] {
    let mut lanes = [[T::ZERO; LANES]; N];
    let b = b.map(|b| b.as_chunks::<LANES>().0);
    for (k, x) in a.as_chunks::<LANES>().0.iter().enumerate() {
        for (lanes, b) in lanes.iter_mut().zip(b) {
            let y = b[k];
            for l in 0..LANES {
                lanes[l] = lanes[l].add_product(x[l], y[l]);
            }
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use crate::matmul::mm;
    use crate::tensor::Tensor;

    /// All sums are small integers, so exact whatever their order.
    #[test]
    fn edges_and_steps_of_small_products_agree_with_the_definition() {
        let value = |at: usize, seed: usize| ((at * 37 + seed) % 17) as f64 - 8.0;
        for (m, n) in [(4, 16), (5, 17), (7, 31), (9, 33), (12, 48), (15, 64), (11, 70), (3, 20), (8, 8)] {
            for k in [1, 6, 40, 300] {
                let (a, b) = ((0..m * k).map(|at| value(at, 3)), (0..k * n).map(|at| value(at, 5)));
                let (a, b): (Vec<f64>, Vec<f64>) = (a.collect(), b.collect());
                let wanted: Vec<f64> = (0..m * n)
                    .map(|at| (0..k).map(|d| a[at / n * k + d] * b[d * n + at % n]).sum())
                    .collect();
                let make = |data: &[f64], rows: usize, columns: usize| {
                    Tensor::from_vec::<f64>(data.to_vec(), &[rows as i64, columns as i64]).unwrap()
                };
                let (a, b) = (make(&a, m, k), make(&b, k, n));
                let turned = |t: &Tensor| t.t().unwrap().contiguous().unwrap().t().unwrap();
                for (a, b) in [(&a, &b), (&turned(&a), &b), (&a, &turned(&b)), (&turned(&a), &turned(&b))] {
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
