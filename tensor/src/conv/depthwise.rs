//! Convolutions of one input channel: planes are scaled and added up, element of the kernel by element.
//!
//! The channel is copied once into a plane ([`super::planes`]), the rows of which may be run through as one, which counts
//! where rows are short. Positions behind the ends of rows are computed and dropped.

use std::mem::MaybeUninit;

use super::planes::{BEHIND, Taps};
use crate::lanes::Stored;
use crate::matmul::Multiply;
use crate::simd::{self, Isa, Kernel, Sets, isa};

/// Bytes of the positions computed together, in registers: eight vectors, as many as fused steps may be under way at once.
pub(super) const WIDTH: usize = 256;
/// As many vectors of AVX-512.
pub(super) const WIDE: usize = 512;
const _: () = assert!(WIDE / 4 <= BEHIND);

/// One channel with its kernels, and perhaps what each adds.
pub(super) struct Depthwise<'a, T> {
    pub(super) x: &'a [T],
    pub(super) w: &'a [T],
    pub(super) bias: Option<&'a [T]>,
    pub(super) out: &'a mut [MaybeUninit<T>],
    /// A plane, the same for all channels: what is beyond the borders stays what it is.
    pub(super) scratch: &'a mut [T],
    pub(super) taps: &'a Taps<'a>,
}

impl<T: Multiply> Depthwise<'_, T> {
    /// Does it, on whatever processor.
    pub(super) fn put(self) {
        if const { matches!(Sets::of(&[T::DTYPE]), Sets::All) } && isa() == Isa::Avx512 {
            simd::run(By::<T, WIDE>(self));
        } else {
            simd::run(By::<T, WIDTH>(self));
        }
    }
}

/// A channel by so many bytes of positions at a time.
struct By<'a, T, const WIDTH: usize>(Depthwise<'a, T>);

impl<T: Multiply, const WIDTH: usize> Kernel for By<'_, T, WIDTH> {
    type Output = ();
    const SETS: Sets = if WIDTH == WIDE { Sets::Only(Isa::Avx512) } else { Sets::two(T::DTYPE) };

    #[inline(always)]
    fn run(self) {
        match (WIDTH, size_of::<T>()) {
            (WIDE, 4) => self.0.by::<{ WIDE / 4 }>(),
            (WIDE, _) => self.0.by::<{ WIDE / 8 }>(),
            (_, 8..) => self.0.by::<{ self::WIDTH / 8 }>(),
            _ => self.0.by::<{ self::WIDTH / 4 }>(),
        }
    }
}

impl<T: Multiply> Depthwise<'_, T> {
    /// So many positions at a time.
    #[inline(always)]
    fn by<const LANES: usize>(self) {
        let Depthwise { x, w, bias, out, scratch, taps } = self;
        let vector = const { LANES / 8 };
        taps.fill(x, scratch, vector);
        let [_, height, width] = taps.g.output;
        let [_, rows, pitch] = taps.plane;
        // Rows run through as one where little is dropped between them.
        let at_once = if pitch <= 2 * width { height } else { 1 };
        let mut turns = [Stored([T::ZERO; LANES]); 2];
        let layers = out.chunks_exact_mut(height * width).enumerate();
        for (layer, out) in layers {
            let number = layer / taps.g.output[0];
            let kernel = &w[number * taps.offsets.len()..][..taps.offsets.len()];
            let bias = bias.map_or(T::ZERO, |bias| bias[number]);
            let z = layer % taps.g.output[0];
            for (part, out) in out.chunks_mut(at_once * width).enumerate() {
                let start = (z * rows + part * at_once) * pitch;
                let length = (out.len() / width - 1) * pitch + width;
                let mut column = 0;
                let mut out = out;
                // Sums are put after the next ones are computed: rows cross what was stored at once, and would wait for it.
                let mut before = 0;
                for (k, i) in (0..length).step_by(LANES).enumerate() {
                    sums(bias, &scratch[start + i..], kernel, &taps.offsets, &mut turns[k % 2]);
                    (out, column) = put(&turns[(k + 1) % 2].0[..before], column, [pitch, width, vector], out);
                    before = LANES.min(length - i);
                }
                let last = (length.div_ceil(LANES) + 1) % 2;
                put(&turns[last].0[..before], column, [pitch, width, vector], out);
            }
        }
    }
}

/// What a kernel and a bias give at `LANES` positions side by side.
#[inline(always)]
fn sums<T: Multiply, const LANES: usize>(
    bias: T,
    from: &[T],
    kernel: &[T],
    offsets: &[usize],
    to: &mut Stored<[T; LANES]>,
) {
    let mut sums = [bias; LANES];
    for (&factor, &offset) in kernel.iter().zip(offsets) {
        let Some(operands) = from[offset..].first_chunk::<LANES>() else {
            unreachable!("invariant: planes end with room for all positions")
        };
        for l in 0..LANES {
            sums[l] = sums[l].add_product(operands[l], factor);
        }
    }
    *to = Stored(sums);
}

/// Puts sums from a column of rows of `pitch` on, by vectors, to what is left of rows of `width`. Gives what is left then, and
/// its column.
#[inline(always)]
fn put<'a, T: Multiply>(
    mut sums: &[T],
    mut column: usize,
    [pitch, width, vector]: [usize; 3],
    mut out: &'a mut [MaybeUninit<T>],
) -> (&'a mut [MaybeUninit<T>], usize) {
    while !sums.is_empty() {
        let here = sums.len().min(pitch - column);
        let kept = here.min(width.saturating_sub(column)).min(out.len());
        // Whole vectors: what is written behind the end of a row is written again.
        let whole = kept.next_multiple_of(vector);
        if whole <= out.len().min(sums.len()) {
            for (t, s) in out[..whole].chunks_exact_mut(vector).zip(sums.chunks_exact(vector)) {
                t.write_copy_of_slice(s);
            }
        } else {
            out[..kept].write_copy_of_slice(&sums[..kept]);
        }
        (out, sums) = (&mut out[kept..], &sums[here..]);
        column += here;
        if column == pitch {
            column = 0;
        }
    }
    (out, column)
}
