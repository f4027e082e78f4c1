//! The innermost loop of packed products, and the order of elements that it reads.
//!
//! Both operands are cut into *strips*: a few rows of the left one, or columns of the right one, with all that is summed
//! up beside each other, so that the loop reads two runs of memory from front to back. A strip of either makes a tile of
//! the result that stays in registers. Tiles have the shape of an instruction set's registers; LLVM makes the vectors.
//!
//! Edges: the last strip is filled up with zeros, and where half of it or more is that, a smaller tile is computed.
#![allow(unsafe_code, reason = "walks strips and results by pointers")]

use std::ops::Range;

use super::direct::{Tiled, direct, is_tiled_by};
use super::product::{Matrix, Multiply, Product, Target};
use super::vector::{Registers, Vector};
use crate::lanes::Stored;
use crate::simd::{self, Isa, Kernel, Sets, isa};
use crate::strided::{LINES, SQUARE, Squares, turn_lines};

/// Rows in a strip of the left operand, and vectors in one of the right: their products are the sums of a tile, as many as
/// hide the time that one takes and as there are registers for, sixteen before AVX-512, then thirty-two.
const NARROW: (usize, usize) = (6, 2);
const WIDE: (usize, usize) = (8, 3);
/// Elements of the depth that are turned at a time: a line of the cache and more.
const TURNED: usize = 16;

/// Which operand of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// That whose rows are the result's.
    Left,
    /// That whose columns are the result's.
    Right,
}

/// A product of strips that are summed up over the same depth.
#[derive(Clone, Copy)]
pub(crate) struct Block<T> {
    pub(super) left: *const T,
    pub(super) right: *const T,
    pub(super) depth: usize,
    /// Rows and columns of the result, the last strips perhaps not whole.
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) to: Target<T>,
}

/// What is done by strips.
pub(crate) enum Job<'a, T> {
    Multiply(Block<T>),
    /// Cuts a part of a matrix into strips, one behind the other from `to` on: a row of the matrix is a row or a column of
    /// the product, called a lane, and a column is a part of its sum.
    Cut {
        from: Matrix<T>,
        side: Side,
        lanes: Range<usize>,
        depth: Range<usize>,
        to: *mut T,
    },
    /// Gathers a strip of columns: for every offset, lanes from one on find what they are side by side from a place on,
    /// until the lane of the next run.
    Gather {
        from: *const T,
        offsets: &'a [usize],
        runs: &'a [(usize, usize)],
        to: *mut T,
    },
}

/// How products of a type are computed by strips.
#[derive(Clone, Copy)]
pub(crate) struct Tiling<T> {
    /// Lanes in a strip of either side, on this processor.
    pub(crate) strip: fn(Side) -> usize,
    /// Does a job. All of its memory must be valid: strips for all lanes, filled up to whole ones, and depths; matrices for
    /// those they say; what is gathered for a whole strip from every place on. What is written overlaps nothing else.
    pub(crate) run: unsafe fn(Job<'_, T>),
    /// As [`super::product`], of operands as they are.
    pub(super) small: unsafe fn(Product<T>),
}

/// The tiling of a type by its vectors.
const fn tiling<T: Registers>() -> Tiling<T> {
    Tiling {
        strip: |side| match (side, isa()) {
            (Side::Left, Isa::Avx512) => WIDE.0,
            (Side::Right, Isa::Avx512) => WIDE.1 * T::Avx512::LANES,
            (Side::Left, _) => NARROW.0,
            (Side::Right, Isa::Avx2) => NARROW.1 * T::Avx2::LANES,
            (Side::Right, Isa::Baseline) => NARROW.1 * T::Baseline::LANES,
        },
        run: |job| match isa() {
            Isa::Avx512 => simd::run(Shaped::<T::Avx512, { WIDE.0 }, { WIDE.1 }>(job)),
            Isa::Avx2 => simd::run(Shaped::<T::Avx2, { NARROW.0 }, { NARROW.1 }>(job)),
            Isa::Baseline => simd::run(Shaped::<T::Baseline, { NARROW.0 }, { NARROW.1 }>(job)),
        },
        small: |p| match isa() {
            Isa::Avx512 if is_tiled_by(&p, T::Avx512::LANES) => {
                simd::run(Tiled::<T::Avx512, { WIDE.0 }, { WIDE.1 }>(p))
            }
            // SAFETY: the caller's word.
            _ => unsafe { direct(p) },
        },
    }
}

pub(super) const SINGLES: Tiling<f32> = tiling();
pub(super) const DOUBLES: Tiling<f64> = tiling();

/// A job with strips of `R` rows, and of columns in `N` vectors.
struct Shaped<'a, V: Vector, const R: usize, const N: usize>(Job<'a, V::Element>);

impl<V: Vector, const R: usize, const N: usize> Kernel for Shaped<'_, V, R, N> {
    type Output = ();
    const SETS: Sets = Sets::Only(V::ISA);

    #[inline(always)]
    fn run(self) {
        // SAFETY: as `Tiling::run`; the processor has the vectors' instruction set.
        unsafe {
            match self.0 {
                Job::Multiply(block) => multiply::<V, R, N>(block),
                Job::Gather { from, offsets, runs, to } => gather::<V, N>(from, offsets, runs, to),
                Job::Cut { from, side: Side::Left, lanes, depth, to } => {
                    cut::<V::Element, [V::Element; R]>(from, lanes, depth, to)
                }
                Job::Cut { from, side: Side::Right, lanes, depth, to } => {
                    cut::<V::Element, [V; N]>(from, lanes, depth, to)
                }
            }
        }
    }
}

/// All tiles: a strip of columns stays in the first cache while the strips of rows go by.
///
/// # Safety
/// As [`Tiling::run`]; the processor has the vectors' instruction set.
#[inline(always)]
unsafe fn multiply<V: Vector, const R: usize, const N: usize>(b: Block<V::Element>) {
    let strip = N * V::LANES;
    for j in (0..b.columns).step_by(strip) {
        let columns = strip.min(b.columns - j);
        for i in (0..b.rows).step_by(R) {
            let rows = R.min(b.rows - i);
            // SAFETY: the caller's word: the tile starts within the result, and so do its strips, which are one behind the
            // other and whole.
            unsafe {
                let left = Matrix { at: b.left.add(i * b.depth).cast_mut(), rows: 1, columns: R as isize };
                let right = (b.right.add(j * b.depth), strip as isize);
                let tile = Tile { left, right, depth: b.depth, at: (i, j), size: (rows, columns), to: &b.to };
                match rows {
                    1 | 2 => tile.put::<V, 2, N>(),
                    3 | 4 => tile.put::<V, 4, N>(),
                    _ => tile.put::<V, R, N>(),
                }
            }
        }
    }
}

/// A tile of the result.
pub(super) struct Tile<'a, T> {
    /// Rows of the left operand.
    pub(super) left: Matrix<T>,
    /// Columns of the right operand, side by side, and how far it is to the next place of the depth.
    pub(super) right: (*const T, isize),
    pub(super) depth: usize,
    /// Where it is in the result, and how many rows and columns of it are there.
    pub(super) at: (usize, usize),
    pub(super) size: (usize, usize),
    pub(super) to: &'a Target<T>,
}

impl<T: Multiply> Tile<'_, T> {
    /// Computes `R` rows, and as many vectors of columns, `N` at most, as there are, and puts those that are there.
    ///
    /// # Safety
    /// The operands are there for all that is computed, the result for what is put. The processor has the vectors'
    /// instruction set.
    #[inline(always)]
    pub(super) unsafe fn put<V: Vector<Element = T>, const R: usize, const N: usize>(&self) {
        // SAFETY: the caller's word.
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
        let Tile { left, right: (mut right, step), at: (i, j), size: (rows, columns), .. } = *self;
        let mut at = left.at.cast_const();
        // SAFETY: the caller's word; what is one place beyond the depth is not read.
        unsafe {
            let mut sums = [[V::splat(T::ZERO); N]; R];
            for _ in 0..self.depth {
                let row = right.cast::<[V; N]>().read_unaligned();
                for (r, sums) in sums.iter_mut().enumerate() {
                    let factor = V::splat(*at.offset(r as isize * left.rows));
                    for (sum, x) in sums.iter_mut().zip(row) {
                        *sum = sum.add_product(factor, x);
                    }
                }
                (at, right) = (at.wrapping_offset(left.columns), right.wrapping_offset(step));
            }
            if rows == R && columns == N * V::LANES && self.to.is_fresh() {
                // The usual case: straight out of registers.
                for (r, sums) in sums.iter().enumerate() {
                    let row = self.to.c.element(i + r, j).cast::<V>();
                    for (v, sum) in sums.iter().enumerate() {
                        row.add(v).write_unaligned(*sum);
                    }
                }
                return;
            }
            // Stored once, where they are found by numbers: the sums themselves stay registers.
            let Stored(sums) = Stored::new(sums);
            for (r, sums) in sums.iter().enumerate().take(rows) {
                self.to.put_vectors(i + r, j, sums, columns);
            }
        }
    }
}

/// Cuts into strips of as many lanes as `S` has.
///
/// # Safety
/// As [`Tiling::run`].
#[inline(always)]
pub(super) unsafe fn cut<T: Multiply, S: Copy>(
    from: Matrix<T>,
    lanes: Range<usize>,
    depth: Range<usize>,
    mut to: *mut T,
) {
    let strip = const { size_of::<S>() / size_of::<T>() };
    let deep = depth.len();
    let mut lane = lanes.start;
    // SAFETY: the caller's word: lanes from `lane` on are the matrix's, and strips have room for whole ones.
    unsafe {
        if from.rows == 1 {
            // Lines of the matrix are read from front to back, for all strips at once.
            let strips = lanes.len() / strip;
            for k in 0..deep {
                let line = from.element(lane, depth.start + k);
                for i in 0..strips {
                    let lanes = line.add(i * strip).cast::<S>().read_unaligned();
                    to.add((i * deep + k) * strip).cast::<S>().write_unaligned(lanes);
                }
            }
            lane += strips * strip;
            to = to.add(strips * strip * deep);
        }
        while lane < lanes.end {
            let own = Matrix { at: from.element(lane, depth.start), ..from };
            let there = strip.min(lanes.end - lane);
            let whole = if from.columns == 1 { deep / TURNED * TURNED } else { 0 };
            for k in (0..whole).step_by(TURNED) {
                turn(own, there, k, strip, to.add(k * strip));
            }
            edge(own, strip, there, whole..deep, to);
            lane += strip;
            to = to.add(strip * deep);
        }
    }
}

/// As [`Job::Gather`]: whole strips are copied, of which runs that come later overwrite the end, and what comes behind the
/// strip overwrites what was written too much; nothing does behind the last.
///
/// # Safety
/// As [`Tiling::run`].
#[inline(always)]
unsafe fn gather<V: Vector, const N: usize>(
    from: *const V::Element,
    offsets: &[usize],
    runs: &[(usize, usize)],
    mut to: *mut V::Element,
) {
    let strip = N * V::LANES;
    let Some((last, most)) = offsets.split_last() else { return };
    // SAFETY: the caller's word.
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

/// Lanes that are contiguous: a square of a strip at a time, so that lines of the cache are read once.
///
/// # Safety
/// As [`Tiling::run`].
#[inline(always)]
unsafe fn turn<T: Multiply>(from: Matrix<T>, there: usize, k: usize, strip: usize, to: *mut T) {
    let whole = there / LINES * LINES;
    let squares = if size_of::<T>() == size_of::<f32>() { there / SQUARE * SQUARE } else { 0 };
    // SAFETY: the caller's word.
    unsafe {
        if squares > 0 {
            let (from, line) = (from.element(0, k).cast_const().cast(), from.rows);
            Squares { from, line, to: to.cast(), row: strip as isize, lines: squares, length: TURNED }.turn();
        }
        for i in (squares..whole).step_by(LINES) {
            turn_lines::<T, TURNED>(from.element(i, k), from.rows, to.add(i), strip as isize);
        }
        for i in whole..there {
            let row = *from.element(i, k).cast::<[T; TURNED]>();
            for (d, x) in row.into_iter().enumerate() {
                *to.add(d * strip + i) = x;
            }
        }
    }
}

/// The end of the depth, or what lies with any steps: lane by lane, with zeros behind those that are there all along.
///
/// # Safety
/// As [`Tiling::run`].
#[inline(always)]
unsafe fn edge<T: Multiply>(from: Matrix<T>, strip: usize, there: usize, depth: Range<usize>, to: *mut T) {
    // SAFETY: the caller's word.
    unsafe {
        for i in 0..there {
            for k in depth.clone() {
                *to.add(k * strip + i) = *from.element(i, k);
            }
        }
        for k in 0..depth.end {
            for i in there..strip {
                *to.add(k * strip + i) = T::ZERO;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::vector::Plain;

    /// Tiles of a shape, whatever the processor, beside a plain sum.
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
            let mut a: Vec<f32> = (0..m * k).map(|i| value(i, 1)).collect();
            let mut b: Vec<f32> = (0..k * n).map(|i| value(i, 5)).collect();
            let mut left = vec![f32::NAN; m.next_multiple_of(R) * k];
            let mut right = vec![f32::NAN; n.next_multiple_of(strip) * k];
            let mut c: Vec<f32> = (0..m * n).map(|i| value(i, 3)).collect();
            let wanted: Vec<f32> = (0..m * n)
                .map(|at| (0..k).map(|d| a[at / n * k + d] * b[d * n + at % n]).sum::<f32>() * 2.0 - c[at])
                .collect();
            let a = Matrix { at: a.as_mut_ptr(), rows: k as isize, columns: 1 };
            let b = Matrix { at: b.as_mut_ptr(), rows: 1, columns: n as isize };
            let result = Matrix { at: c.as_mut_ptr(), rows: n as isize, columns: 1 };
            // SAFETY: all sizes are those of the vectors.
            unsafe {
                cut::<f32, [f32; R]>(a, 0..m, 0..k, left.as_mut_ptr());
                cut::<f32, [Plain<f32, L>; N]>(b, 0..n, 0..k, right.as_mut_ptr());
                multiply::<Plain<f32, L>, R, N>(Block {
                    left: left.as_ptr(),
                    right: right.as_ptr(),
                    depth: k,
                    rows: m,
                    columns: n,
                    to: Target { c: result, start: result, keep: -1.0, factor: 2.0 },
                });
            }
            assert_eq!(c, wanted, "{L}: {m} {k} {n}");
        }
    }

    #[test]
    fn tiles_of_every_shape_agree_with_the_definition() {
        check::<4, 6, 2>();
        check::<8, 6, 2>();
        check::<16, 8, 3>();
    }
}
