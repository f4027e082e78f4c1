//! Strided access: every n-th element of a row, for convolutions and pooling, and transposition of lines into columns.
#![allow(
    unsafe_code,
    reason = "reads lines and writes columns by pointers, and by instructions that were detected"
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256, _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_unpackhi_ps,
    _mm256_unpacklo_ps,
};

use crate::simd::{self, Isa, Kernel, Sets, isa};

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

/// Lines of four-byte elements, `line` elements apart, that become columns of rows that are `row` elements apart.
pub(crate) struct Squares {
    pub(crate) from: *const f32,
    pub(crate) line: isize,
    pub(crate) to: *mut f32,
    pub(crate) row: isize,
    /// Number of lines, and elements per line: both multiples of the square's side.
    pub(crate) lines: usize,
    pub(crate) length: usize,
}

impl Squares {
    /// Transposes the lines. Elements may be of any four-byte type, because moving a float preserves its bytes.
    ///
    /// # Safety
    /// The lines are valid for reads and the columns for writes. They do not overlap.
    pub(crate) unsafe fn transpose(self) {
        if isa() >= Isa::Avx2 {
            return simd::run(ByVectors(self));
        }
        for (i, k) in self.corners(LINES) {
            // SAFETY: the caller's contract, for a part of the lines.
            unsafe {
                transpose_lines::<f32, SQUARE>(self.element(i, k), self.line, self.target(i, k), self.row)
            };
        }
    }

    /// Returns the first line and element of each square of `lines` lines.
    #[inline(always)]
    fn corners(&self, lines: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let length = self.length;
        (0..self.lines).step_by(lines).flat_map(move |i| (0..length).step_by(SQUARE).map(move |k| (i, k)))
    }

    /// Returns the address of element `k` of line `i`.
    #[inline(always)]
    fn element(&self, i: usize, k: usize) -> *const f32 {
        self.from.wrapping_offset(i as isize * self.line).wrapping_add(k)
    }

    /// Returns the target of element `k` of line `i`.
    #[inline(always)]
    fn target(&self, i: usize, k: usize) -> *mut f32 {
        self.to.wrapping_offset(k as isize * self.row).wrapping_add(i)
    }
}

/// Transposes squares in eight registers each. Made only if the processor has AVX2, and under the contract of
/// [`Squares::transpose`].
struct ByVectors(Squares);

impl Kernel for ByVectors {
    type Output = ();
    const SETS: Sets = Sets::Only(Isa::Avx2);

    #[inline(always)]
    fn run(self) {
        for (i, k) in self.0.corners(SQUARE) {
            // SAFETY: the processor has the instructions; the rest is the contract under which this value was made.
            unsafe { transpose_square(self.0.element(i, k), self.0.line, self.0.target(i, k), self.0.row) };
        }
    }
}

/// Transposes eight elements of eight lines: pairs of lines are interleaved, then pairs of pairs, then halves are
/// exchanged.
///
/// # Safety
/// As [`Squares::transpose`]; the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx")]
unsafe fn transpose_square(from: *const f32, line: isize, to: *mut f32, row: isize) {
    // Pairs of elements of two vectors' halves: the first of each, or the second.
    const FIRST: i32 = 0x44;
    const SECOND: i32 = 0xee;
    // The low halves of two vectors, or the high ones.
    const LOW: i32 = 0x20;
    const HIGH: i32 = 0x31;
    // SAFETY: the caller's contract; loads and stores are unaligned ones.
    unsafe {
        let lines: [__m256; SQUARE] =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|i| _mm256_loadu_ps(from.wrapping_offset(i * line)));
        let fours = |i: usize| -> [__m256; 4] {
            let [a, b, c, d] = [lines[i], lines[i + 1], lines[i + 2], lines[i + 3]];
            let (low, high) = (
                [_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d)],
                [_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d)],
            );
            [
                _mm256_shuffle_ps::<FIRST>(low[0], low[1]),
                _mm256_shuffle_ps::<SECOND>(low[0], low[1]),
                _mm256_shuffle_ps::<FIRST>(high[0], high[1]),
                _mm256_shuffle_ps::<SECOND>(high[0], high[1]),
            ]
        };
        let (upper, lower) = (fours(0), fours(4));
        for k in 0..4 {
            let [near, far] = [k, k + 4].map(|k| to.wrapping_offset(k as isize * row));
            _mm256_storeu_ps(near, _mm256_permute2f128_ps::<LOW>(upper[k], lower[k]));
            _mm256_storeu_ps(far, _mm256_permute2f128_ps::<HIGH>(upper[k], lower[k]));
        }
    }
}

/// Not called on other architectures, which have no AVX; implemented for completeness.
///
/// # Safety
/// As [`Squares::transpose`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn transpose_square(from: *const f32, line: isize, to: *mut f32, row: isize) {
    for i in (0..SQUARE).step_by(LINES) {
        let (from, to) = (from.wrapping_offset(i as isize * line), to.wrapping_add(i));
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
pub(crate) unsafe fn transpose_lines<T: Copy, const N: usize>(
    from: *const T,
    line: isize,
    to: *mut T,
    row: isize,
) {
    // SAFETY: the caller's contract; an array has the alignment of its elements.
    unsafe {
        let lines: [&[T; N]; LINES] = [0, 1, 2, 3].map(|k| &*from.offset(k * line).cast());
        let mut transposed = [[lines[0][0]; LINES]; N];
        for i in 0..N {
            for k in 0..LINES {
                transposed[i][k] = lines[k][i];
            }
        }
        for (i, transposed) in transposed.iter().enumerate() {
            to.offset(i as isize * row).cast::<[T; LINES]>().write_unaligned(*transposed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Squares, strided};

    #[test]
    fn lines_become_columns() {
        for (lines, length) in [(8, 8), (16, 32), (24, 8)] {
            let (line, row) = (length + 3, lines + 1);
            let from: Vec<f32> = (0..lines * line).map(|i| i as f32).collect();
            let mut to = vec![-1.0; length * row];
            let squares = Squares {
                from: from.as_ptr(),
                line: line as isize,
                to: to.as_mut_ptr(),
                row: row as isize,
                lines,
                length,
            };
            // SAFETY: the vectors have exactly these sizes.
            unsafe { squares.transpose() };
            let source_at = |at: usize| (at % row < lines).then(|| from[at % row * line + at / row]);
            let want: Vec<f32> = (0..to.len()).map(|at| source_at(at).unwrap_or(-1.0)).collect();
            assert_eq!(to, want, "{lines} lines of {length}");
        }
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
