//! im2col: the patches under a kernel as the columns of a matrix, which a convolution multiplies with its weights.
//!
//! The matrix is several times as large as the input. Every element is written once, including zeros beyond the
//! borders.
#![allow(unsafe_code, reason = "writes uninitialized memory")]

use std::mem::MaybeUninit;

use super::{Geometry, volume};
use crate::matmul::Multiply;
use crate::scratch::Scratch;
use crate::simd::{self, InstructionSets, Multiversioned};
use crate::strided::strided;
use crate::threads;

/// A matrix with a line per element of a patch and a column per position.
pub(super) struct PatchMatrix<T>(Scratch<MaybeUninit<T>>);

impl<T: Multiply> PatchMatrix<T> {
    /// Gathers the patches under `rows` rows of positions from `first` on, with several threads.
    pub(super) fn gather(x: &[T], first: usize, rows: usize, g: &Geometry) -> Self {
        let (depth, n) = (g.channels * volume(g.kernel), rows * g.output[2]);
        let mut scratch = Scratch::<MaybeUninit<T>>::new(depth.saturating_mul(n));
        threads::chunks(scratch.elements_mut(), threads::rows(n) * n, |start, to| {
            simd::run(Gather { x, to, line: start / n, first, rows, g });
        });
        PatchMatrix(scratch)
    }

    /// Returns the elements, line by line.
    pub(super) fn elements(&self) -> &[T] {
        // SAFETY: the chunks cover all lines, whole, and `Gather` writes each of their elements.
        unsafe { self.0.elements().assume_init_ref() }
    }
}

/// Fills some lines of the matrix.
struct Gather<'a, T> {
    x: &'a [T],
    to: &'a mut [MaybeUninit<T>],
    /// The first line: an index into the elements of a patch.
    line: usize,
    /// The first row of positions.
    first: usize,
    rows: usize,
    g: &'a Geometry,
}

impl<T: Multiply> Multiversioned for Gather<'_, T> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        let Gather { x, to, line: from, first, rows, g } = self;
        let [_, kh, kw] = g.kernel;
        let [d, h, w] = g.input;
        let width = g.output[2];
        let nothing = MaybeUninit::new(T::ZERO);
        let flat = d == 1 && g.output[0] == 1 && g.kernel[0] == 1 && g.padding[0] == 0;
        let shifted = flat && g.stride[1..] == [1, 1] && width == w;
        for (i, line) in to.chunks_exact_mut(rows * width).enumerate() {
            let k = from + i;
            let (channel, kd) = (k / volume(g.kernel), k / (kh * kw) % g.kernel[0]);
            let at = (k % kw * g.dilation[2]) as i64 - g.padding[2];
            let (lo, hi) = inside(at, g.stride[2], w, width);
            if shifted {
                let down = (k / kw % kh * g.dilation[1]) as i64 - g.padding[1];
                shift(&x[channel * h * w..][..h * w], [first as i64 + down, at], [lo, hi], w, line);
                continue;
            }
            let (mut z, mut y) = (first / g.output[1], first % g.output[1]);
            for target in line.chunks_exact_mut(width) {
                let from_z = (z * g.stride[0] + kd * g.dilation[0]) as i64 - g.padding[0];
                let from_y = (y * g.stride[1] + k / kw % kh * g.dilation[1]) as i64 - g.padding[1];
                y += 1;
                if y == g.output[1] {
                    (z, y) = (z + 1, 0);
                }
                if lo == hi || from_z < 0 || from_z >= d as i64 || from_y < 0 || from_y >= h as i64 {
                    target.fill(nothing);
                    continue;
                }
                let source = &x[((channel * d + from_z as usize) * h + from_y as usize) * w..][..w];
                let start = (at + (lo * g.stride[2]) as i64) as usize;
                target[..lo].fill(nothing);
                target[hi..].fill(nothing);
                strided(&source[start..], g.stride[2], &mut target[lo..hi], |t, x| _ = t.write(x));
            }
        }
    }
}

/// Fills a line with the rows of a plane from a given row on, shifted by some columns; the columns `lo..hi` exist in
/// the plane. Rows are adjacent on both sides, so one copy moves all of them. Elements that come from neighbouring rows
/// are then overwritten with zeros.
#[inline(always)]
fn shift<T: Multiply>(
    plane: &[T],
    [row, column]: [i64; 2],
    [lo, hi]: [usize; 2],
    width: usize,
    line: &mut [MaybeUninit<T>],
) {
    let nothing = MaybeUninit::new(T::ZERO);
    let (rows, height) = ((line.len() / width) as i64, (plane.len() / width) as i64);
    let top = (-row).clamp(0, rows) as usize;
    let end = (height - row).clamp(top as i64, rows) as usize;
    if lo >= hi || top == end {
        return line.fill(nothing);
    }
    line[..top * width].fill(nothing);
    line[end * width..].fill(nothing);
    let line = &mut line[top * width..end * width];
    let kept = line.len() - lo - (width - hi);
    let from = (row + top as i64) * width as i64 + lo as i64 + column;
    let source = &plane[from as usize..][..kept];
    line[lo..lo + kept].iter_mut().zip(source).for_each(|(t, s)| _ = t.write(*s));
    for row in line.chunks_exact_mut(width) {
        row[..lo].fill(nothing);
        row[hi..].fill(nothing);
    }
}

/// Returns the range of positions `o` of a row whose source `o * stride + at` is in `0..size`.
#[inline(always)]
pub(super) fn inside(at: i64, stride: usize, size: usize, count: usize) -> (usize, usize) {
    let stride_ = stride as i64;
    let lo = if at >= 0 { 0 } else { (-at).div_euclid(stride_) + i64::from((-at).rem_euclid(stride_) != 0) };
    let left = size as i64 - at;
    let hi = if left <= 0 { 0 } else { (left - 1) / stride_ + 1 };
    let hi = hi.clamp(0, count as i64);
    (lo.clamp(0, hi) as usize, hi as usize)
}
