//! The innermost loop of packed products, and the order of elements that it reads.
//!
//! Both operands are cut into *strips*: a few rows of the left one, or columns of the right one, with all that is summed
//! up beside each other, so that the loop reads two runs of memory from front to back. A strip of either makes a tile of
//! the result that stays in registers. Tiles have the shape of an instruction set's registers; LLVM makes the vectors.
//!
//! Edges: the last strip is filled up with zeros, and where half of it or more is that, a smaller tile is computed.
#![allow(unsafe_code, reason = "walks strips and results by pointers")]

use std::hint::black_box;
use std::ops::Range;

use super::product::{Matrix, Multiply, Target};
use crate::simd::{self, Isa, Kernel, Sets, isa};

/// Rows in a strip, and in the tiles of edges: with two vectors of columns as many sums as hide the time that one takes, on
/// processors with sixteen registers as on those with thirty-two. (Of tiles of eight rows and more LLVM makes gathers.)
const ROWS: usize = 6;
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
}

/// The tiling of a type of which 16, 32, 64 and 128 bytes have so many elements.
const fn tiling<T: Multiply, const N16: usize, const N32: usize, const N64: usize, const N128: usize>()
-> Tiling<T> {
    Tiling {
        strip: |side| match (side, isa()) {
            (Side::Left, _) => ROWS,
            (Side::Right, Isa::Avx512) => N128,
            (Side::Right, Isa::Avx2) => N64,
            (Side::Right, Isa::Baseline) => N32,
        },
        run: |job| match isa() {
            Isa::Avx512 => simd::run(Shaped::<T, N128, N64>(job)),
            Isa::Avx2 => simd::run(Shaped::<T, N64, N32>(job)),
            Isa::Baseline => simd::run(Shaped::<T, N32, N16>(job)),
        },
    }
}

pub(super) const SINGLES: Tiling<f32> = tiling::<f32, 4, 8, 16, 32>();
pub(super) const DOUBLES: Tiling<f64> = tiling::<f64, 2, 4, 8, 16>();

/// A job with strips of so many columns, and tiles of one vector of them for edges.
struct Shaped<'a, T, const C: usize, const C1: usize>(Job<'a, T>);

impl<T: Multiply, const C: usize, const C1: usize> Kernel for Shaped<'_, T, C, C1> {
    type Output = ();
    const SETS: Sets = Sets::Only(match C1 * size_of::<T>() {
        64 => Isa::Avx512,
        32 => Isa::Avx2,
        _ => Isa::Baseline,
    });

    #[inline(always)]
    fn run(self) {
        // SAFETY: as `Tiling::run`.
        unsafe {
            match self.0 {
                Job::Multiply(block) => multiply::<T, C, C1>(block),
                Job::Gather { from, offsets, runs, to } => gather::<T, C>(from, offsets, runs, to),
                Job::Cut { from, side: Side::Left, lanes, depth, to } => {
                    cut::<T, ROWS>(from, lanes, depth, to)
                }
                Job::Cut { from, side: Side::Right, lanes, depth, to } => cut::<T, C>(from, lanes, depth, to),
            }
        }
    }
}

/// All tiles: a strip of columns stays in the first cache while the strips of rows go by.
///
/// # Safety
/// As [`Tiling::run`].
#[inline(always)]
unsafe fn multiply<T: Multiply, const C: usize, const C1: usize>(b: Block<T>) {
    // Whether processors that have such vectors multiply and add with one rounding.
    let fused = !cfg!(target_arch = "x86_64") || C1 * size_of::<T>() > 16;
    let mut sums = [[T::ZERO; C]; ROWS];
    for j in (0..b.columns).step_by(C) {
        let columns = C.min(b.columns - j);
        for i in (0..b.rows).step_by(ROWS) {
            let rows = ROWS.min(b.rows - i);
            // SAFETY: the caller's word: the tile starts within the result, and so do its strips, which are one behind the
            // other and whole.
            unsafe {
                let [left, right] = [b.left.add(i * b.depth), b.right.add(j * b.depth)];
                match (rows > 4, rows > 2, columns > C1) {
                    (true, _, true) => tile::<T, ROWS, C, C>(left, right, b.depth, fused, &mut sums),
                    (_, true, true) => tile::<T, 4, C, C>(left, right, b.depth, fused, &mut sums),
                    (_, _, true) => tile::<T, 2, C, C>(left, right, b.depth, fused, &mut sums),
                    (true, _, _) => tile::<T, ROWS, C1, C>(left, right, b.depth, fused, &mut sums),
                    (_, true, _) => tile::<T, 4, C1, C>(left, right, b.depth, fused, &mut sums),
                    (_, _, _) => tile::<T, 2, C1, C>(left, right, b.depth, fused, &mut sums),
                }
            }
            for (r, row) in sums.iter().enumerate().take(rows) {
                // SAFETY: so much of the row is within the result.
                unsafe {
                    if columns == C {
                        b.to.put(i + r, j, row);
                    } else {
                        b.to.put_some(i + r, j, &row[..columns]);
                    }
                }
            }
        }
    }
}

/// A tile of the result, from strips of so many rows and columns.
///
/// # Safety
/// The strips are so deep.
#[inline(always)]
unsafe fn tile<T, const R: usize, const COLUMNS: usize, const C: usize>(
    mut left: *const T,
    mut right: *const T,
    depth: usize,
    fused: bool,
    to: &mut [[T; C]; ROWS],
) where
    T: Multiply,
{
    let mut sums = [[T::ZERO; COLUMNS]; R];
    for _ in 0..depth {
        // SAFETY: a place of the depth in either strip.
        let (column, row) = unsafe { (*left.cast::<[T; R]>(), *right.cast::<[T; COLUMNS]>()) };
        for (sums, factor) in sums.iter_mut().zip(column) {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum =
                    if fused { sum.add_product(factor, x) } else { sum.add_product(factor.times(x), T::ONE) };
            }
        }
        // SAFETY: the next place, or the end.
        (left, right) = unsafe { (left.add(ROWS), right.add(C)) };
    }
    // Through memory: what is stored side by side is kept in whole vectors, whatever becomes of it.
    for (to, sums) in to.iter_mut().zip(black_box(sums)) {
        to[..COLUMNS].copy_from_slice(&sums);
    }
}

/// Cuts into strips of so many lanes.
///
/// # Safety
/// As [`Tiling::run`].
#[inline(always)]
unsafe fn cut<T: Multiply, const STRIP: usize>(
    from: Matrix<T>,
    lanes: Range<usize>,
    depth: Range<usize>,
    mut to: *mut T,
) {
    let deep = depth.len();
    let mut lane = lanes.start;
    // SAFETY: the caller's word: lanes from `lane` on are the matrix's, and strips have room for whole ones.
    unsafe {
        if from.rows == 1 {
            // Lines of the matrix are read from front to back, for all strips at once.
            let strips = lanes.len() / STRIP;
            for k in 0..deep {
                let line = from.element(lane, depth.start + k);
                for i in 0..strips {
                    *to.add((i * deep + k) * STRIP).cast::<[T; STRIP]>() =
                        *line.add(i * STRIP).cast::<[T; STRIP]>();
                }
            }
            lane += strips * STRIP;
            to = to.add(strips * STRIP * deep);
        }
        while lane < lanes.end {
            let own = Matrix { at: from.element(lane, depth.start), ..from };
            let there = STRIP.min(lanes.end - lane);
            let whole = if from.columns == 1 && there == STRIP { deep / TURNED * TURNED } else { 0 };
            for k in (0..whole).step_by(TURNED) {
                turn::<T, STRIP>(own, k, to.add(k * STRIP));
            }
            edge(own, STRIP, there, whole..deep, to);
            lane += STRIP;
            to = to.add(STRIP * deep);
        }
    }
}

/// As [`Job::Gather`]: whole strips are copied, of which runs that come later overwrite the end, and what comes behind the
/// strip overwrites what was written too much; nothing does behind the last.
///
/// # Safety
/// As [`Tiling::run`].
#[inline(always)]
unsafe fn gather<T: Multiply, const STRIP: usize>(
    from: *const T,
    offsets: &[usize],
    runs: &[(usize, usize)],
    mut to: *mut T,
) {
    let Some((last, most)) = offsets.split_last() else { return };
    // SAFETY: the caller's word.
    unsafe {
        for offset in most {
            for (lane, start) in runs {
                *to.add(*lane).cast::<[T; STRIP]>() = *from.add(offset + start).cast::<[T; STRIP]>();
            }
            to = to.add(STRIP);
        }
        for (lane, start) in runs {
            to.add(*lane).copy_from_nonoverlapping(from.add(last + start), STRIP - lane);
        }
    }
}

/// A strip whose lanes are contiguous: a square of it at a time, so that lines of the cache are read once. Element by element,
/// which is faster than what LLVM makes of whole lines of the strip.
///
/// # Safety
/// As [`Tiling::run`].
#[inline(always)]
unsafe fn turn<T: Multiply, const STRIP: usize>(from: Matrix<T>, k: usize, to: *mut T) {
    for i in 0..STRIP {
        // SAFETY: the caller's word.
        unsafe {
            let row = *from.element(i, k).cast::<[T; TURNED]>();
            for (d, x) in row.into_iter().enumerate() {
                *to.add(d * STRIP + i) = x;
            }
        }
    }
}

/// What is not whole, or lies with any steps: lane by lane, with zeros behind those that are there.
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
        for i in there..strip {
            for k in depth.clone() {
                *to.add(k * strip + i) = T::ZERO;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tiles of a shape, whatever the processor, beside a plain sum.
    fn check<const C: usize, const C1: usize>() {
        let (strip_a, strip_b) = (ROWS, C);
        for (m, k, n) in
            [(1, 1, 1), (strip_a + 1, 37, strip_b + 1), (2 * strip_a - 1, 16, 3 * C1), (2, 5, 2), (4, 9, C1)]
        {
            let value = |i: usize, seed: usize| ((i * 37 + seed) % 19) as f32 - 9.0;
            let mut a: Vec<f32> = (0..m * k).map(|i| value(i, 1)).collect();
            let mut b: Vec<f32> = (0..k * n).map(|i| value(i, 5)).collect();
            let mut left = vec![f32::NAN; m.next_multiple_of(strip_a) * k];
            let mut right = vec![f32::NAN; n.next_multiple_of(strip_b) * k];
            let mut c: Vec<f32> = (0..m * n).map(|i| value(i, 3)).collect();
            let wanted: Vec<f32> = (0..m * n)
                .map(|at| (0..k).map(|d| a[at / n * k + d] * b[d * n + at % n]).sum::<f32>() * 2.0 - c[at])
                .collect();
            let a = Matrix { at: a.as_mut_ptr(), rows: k as isize, columns: 1 };
            let b = Matrix { at: b.as_mut_ptr(), rows: 1, columns: n as isize };
            let result = Matrix { at: c.as_mut_ptr(), rows: n as isize, columns: 1 };
            // SAFETY: all sizes are those of the vectors.
            unsafe {
                cut::<f32, ROWS>(a, 0..m, 0..k, left.as_mut_ptr());
                cut::<f32, C>(b, 0..n, 0..k, right.as_mut_ptr());
                multiply::<f32, C, C1>(Block {
                    left: left.as_ptr(),
                    right: right.as_ptr(),
                    depth: k,
                    rows: m,
                    columns: n,
                    to: Target { c: result, start: result, keep: -1.0, factor: 2.0 },
                });
            }
            assert_eq!(c, wanted, "{C}: {m} {k} {n}");
        }
    }

    #[test]
    fn tiles_of_every_shape_agree_with_the_definition() {
        check::<8, 4>();
        check::<16, 8>();
        check::<32, 16>();
    }
}
