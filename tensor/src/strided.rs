//! Strided access: every n-th element of a row, for convolutions and pooling, and transposition of lines into columns.
#![allow(
    unsafe_code,
    reason = "reads lines and writes columns by pointers, and by instructions that were detected"
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
    _mm256_unpackhi_ps, _mm256_unpacklo_ps,
};

use crate::matmul::{Matrix, MatrixMut};
use crate::simd::{self, InstructionSets, Isa, Multiversioned, isa};

/// Calls `f` for every `step`-th element and the elements of `to`.
#[inline(always)]
pub(crate) fn strided<T: Copy, R>(from: &[T], step: usize, to: &mut [R], f: impl Fn(&mut R, T)) {
    match step {
        1 => to.iter_mut().zip(from).for_each(|(t, s)| f(t, *s)),
        2 => {
            // Pairs are loaded as vectors while there is an element behind each used one.
            let pairs = (from.len() / 2).min(to.len());
            let (whole, rest) = to.split_at_mut(pairs);
            whole.iter_mut().zip(from.chunks_exact(2)).for_each(|(t, pair)| f(t, pair[0]));
            rest.iter_mut().zip(&from[pairs * 2..]).for_each(|(t, s)| f(t, *s));
        }
        _ => to.iter_mut().zip(from.iter().step_by(step)).for_each(|(t, s)| f(t, *s)),
    }
}

/// Lines that are transposed at a time, for elements of any type.
pub(crate) const LINES: usize = 4;
/// Side of the squares of four-byte elements that are transposed at a time: the elements of an AVX vector.
pub(crate) const SQUARE: usize = 8;

/// Transposes a matrix: its rows, which have contiguous elements, become the columns of `to`. `N` columns at a time are
/// read, so that the elements of a cache line are read together.
///
/// # Panics
/// Panics if the sizes of the matrices do not fit, the elements of their rows are not contiguous, or the number of
/// columns is not a multiple of `N`, which is one of [`SQUARE`].
pub(crate) fn transpose<T: Copy, const N: usize>(from: Matrix<'_, T>, to: MatrixMut<'_, T>) {
    let (rows, columns) = (from.rows(), from.columns());
    let fits = to.rows() == columns && to.columns() == rows && columns.is_multiple_of(N);
    assert!(
        fits && N.is_multiple_of(SQUARE),
        "invariant: a transpose has the sizes of its matrix, exchanged"
    );
    let contiguous = from.column_step() == 1 && to.column_step() == 1;
    assert!(contiguous, "invariant: rows that are transposed have contiguous elements");
    let (line, row) = (from.row_step(), to.row_step());
    let whole = rows / LINES * LINES;
    let mut done = 0;
    if size_of::<T>() == size_of::<f32>() && rows >= SQUARE && isa() >= Isa::Avx2 {
        done = rows / SQUARE * SQUARE;
        let (from, to) = (from.element(0, 0).cast(), to.element(0, 0).cast());
        simd::run(Squares::<N> { from, line, to, row, rows: done, columns });
    }
    for k in (0..columns).step_by(N) {
        // SAFETY: pointers and lengths: rows below `rows` and `N` columns from `k` on belong to the matrix, and to the
        // target as columns and rows; the assertions above check that both are contiguous. Alignment: an array has the
        // alignment of its elements. Lifetime: both are borrowed by this function. Aliasing: the target's elements are
        // exclusive.
        unsafe {
            for i in (done..whole).step_by(LINES) {
                transpose_lines::<T, N>(from.element(i, k), line, to.element(k, i), row);
            }
            for i in whole.max(done)..rows {
                let elements = *from.element(i, k).cast::<[T; N]>();
                for (d, x) in elements.into_iter().enumerate() {
                    to.element(k + d, i).write(x);
                }
            }
        }
    }
}

/// Rows of four-byte elements that are transposed in squares, of eight registers each. Made by [`transpose`], under its
/// conditions, if the processor has AVX2. Moving a float preserves its bytes, so the elements may be of any type.
struct Squares<const N: usize> {
    from: *const f32,
    line: usize,
    to: *mut f32,
    row: usize,
    /// A multiple of [`SQUARE`], as `N`.
    rows: usize,
    /// A multiple of `N`.
    columns: usize,
}

impl<const N: usize> Multiversioned for Squares<N> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::Exactly(Isa::Avx2);

    #[inline(always)]
    fn run(self) {
        let Squares { from, line, to, row, rows, columns } = self;
        for block in (0..columns).step_by(N) {
            for i in (0..rows).step_by(SQUARE) {
                for k in (block..block + N).step_by(SQUARE) {
                    let (from, to) = (from.wrapping_add(i * line + k), to.wrapping_add(k * row + i));
                    // SAFETY: the processor has the instructions; the rest is checked by `transpose`, which made this
                    // value.
                    unsafe { transpose_square(from, line, to, row) };
                }
            }
        }
    }
}

/// Transposes eight elements of eight lines: pairs of lines are interleaved, then pairs of pairs, then halves are
/// exchanged.
///
/// # Safety
/// `from` is valid for reads of eight elements in each of eight lines, `line` elements apart; `to` is valid for writes of
/// as many, `row` elements apart. They do not overlap. The processor has AVX.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx")]
unsafe fn transpose_square(from: *const f32, line: usize, to: *mut f32, row: usize) {
    // Pairs of elements of two vectors' halves: the first of each, or the second.
    const FIRST: i32 = 0x44;
    const SECOND: i32 = 0xee;
    // The low halves of two vectors, or the high ones.
    const LOW: i32 = 0x20;
    const HIGH: i32 = 0x31;
    // SAFETY: the caller's contract; loads and stores are unaligned ones.
    unsafe {
        // Loops instead of `map`: its closures are functions of their own in programs without link-time optimization.
        let mut lines = [_mm256_setzero_ps(); SQUARE];
        for (i, loaded) in lines.iter_mut().enumerate() {
            *loaded = _mm256_loadu_ps(from.wrapping_add(i * line));
        }
        let mut fours = [[_mm256_setzero_ps(); 4]; 2];
        for half in 0..2 {
            let [a, b, c, d] =
                [lines[half * 4], lines[half * 4 + 1], lines[half * 4 + 2], lines[half * 4 + 3]];
            let (low, high) = (
                [_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d)],
                [_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d)],
            );
            fours[half] = [
                _mm256_shuffle_ps::<FIRST>(low[0], low[1]),
                _mm256_shuffle_ps::<SECOND>(low[0], low[1]),
                _mm256_shuffle_ps::<FIRST>(high[0], high[1]),
                _mm256_shuffle_ps::<SECOND>(high[0], high[1]),
            ];
        }
        let [upper, lower] = fours;
        for k in 0..4 {
            let (near, far) = (to.wrapping_add(k * row), to.wrapping_add((k + 4) * row));
            _mm256_storeu_ps(near, _mm256_permute2f128_ps::<LOW>(upper[k], lower[k]));
            _mm256_storeu_ps(far, _mm256_permute2f128_ps::<HIGH>(upper[k], lower[k]));
        }
    }
}

/// Not called on other architectures, which have no AVX; implemented for completeness.
///
/// # Safety
/// As for the other architecture.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn transpose_square(from: *const f32, line: usize, to: *mut f32, row: usize) {
    for i in (0..SQUARE).step_by(LINES) {
        let (from, to) = (from.wrapping_add(i * line), to.wrapping_add(i));
        // SAFETY: the caller's contract.
        unsafe { transpose_lines::<f32, SQUARE>(from, line, to, row) };
    }
}

/// Transposes `N` elements of each of [`LINES`] lines, `line` elements apart, to columns of rows that are `row`
/// elements apart. First one element of each line in turn is collected, which is vector code for floats, then each row
/// is stored at once.
///
/// Not inlined: inside a function for a wider instruction set LLVM does not vectorize this loop.
///
/// # Safety
/// The lines are valid for reads and the columns for writes. They do not overlap.
#[inline(never)]
unsafe fn transpose_lines<T: Copy, const N: usize>(from: *const T, line: usize, to: *mut T, row: usize) {
    // SAFETY: the caller's contract; an array has the alignment of its elements.
    unsafe {
        let mut lines: [&[T; N]; LINES] = [&*from.cast(); LINES];
        for (k, elements) in lines.iter_mut().enumerate() {
            *elements = &*from.add(k * line).cast();
        }
        let mut transposed = [[lines[0][0]; LINES]; N];
        for i in 0..N {
            for k in 0..LINES {
                transposed[i][k] = lines[k][i];
            }
        }
        for (i, transposed) in transposed.iter().enumerate() {
            to.add(i * row).cast::<[T; LINES]>().write_unaligned(*transposed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::{SQUARE, strided, transpose};
    use crate::matmul::{Matrix, MatrixMut};

    /// Transposes `rows` rows of `columns` elements, with gaps behind the rows of both matrices.
    fn transposed<T: Copy + PartialEq + std::fmt::Debug>(
        rows: usize,
        columns: usize,
        value: impl Fn(usize) -> T,
    ) {
        let (line, row) = (columns + 3, rows + 1);
        let from: Vec<T> = (0..rows * line).map(&value).collect();
        let gap = value(usize::MAX);
        let mut to = vec![MaybeUninit::new(gap); columns * row];
        let mut target = MatrixMut::of(&mut to, row);
        transpose::<T, SQUARE>(
            Matrix::new(&from, [rows, columns], [line, 1]),
            target.part(0..columns, 0..rows),
        );
        for (at, x) in to.into_iter().enumerate() {
            let want = if at % row < rows { from[at % row * line + at / row] } else { gap };
            // SAFETY: all elements were initialized by `vec!`.
            assert_eq!(unsafe { x.assume_init() }, want, "{rows} rows of {columns}, element {at}");
        }
    }

    #[test]
    fn rows_become_columns() {
        for (rows, columns) in [(8, 8), (16, 32), (24, 8), (1, 8), (7, 16), (13, 24), (0, 8), (8, 0)] {
            transposed(rows, columns, |i| i as f32);
            transposed(rows, columns, |i| i as f64);
            transposed(rows, columns, |i| i as u8);
        }
    }

    #[test]
    #[should_panic(expected = "a transpose has the sizes of its matrix")]
    fn other_sizes_are_not_transposed() {
        let (from, mut to) = ([0.0f32; 64], [MaybeUninit::uninit(); 64]);
        transpose::<f32, SQUARE>(Matrix::new(&from, [8, 8], [8, 1]), MatrixMut::of(&mut to[..56], 8));
    }

    #[test]
    fn all_steps_fill_their_destination() {
        let from: Vec<i32> = (0..11).collect();
        for step in 1..4 {
            for capacity in 0..=from.len().div_ceil(step) {
                let mut to = vec![-1; capacity];
                strided(&from, step, &mut to, |t, s| *t = s);
                let want: Vec<i32> = from.iter().step_by(step).take(capacity).copied().collect();
                assert_eq!(to, want, "step {step}, {capacity} elements");
            }
        }
    }
}
