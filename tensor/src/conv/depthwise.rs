//! Depthwise convolutions (one input channel per group): for each element of the kernel, a shifted channel is scaled and
//! added.
//!
//! The channel is copied once into a padded buffer ([`super::phases`]). Its rows can be processed as one long row, which
//! helps if rows are short. Positions behind the ends of rows are computed and dropped.

use std::mem::MaybeUninit;

use super::phases::{TAIL, Taps};
use crate::lanes::Spilled;
use crate::matmul::Multiply;
use crate::simd::{self, InstructionSets, Isa, Multiversioned, isa};

/// Bytes of the positions that are computed together in registers: eight AVX2 vectors, as many fused multiply-adds as
/// can be in flight.
pub(super) const WIDTH: usize = 256;
/// The same number of AVX-512 vectors, in bytes.
pub(super) const WIDE_BYTES: usize = 512;
const _: () = assert!(WIDE_BYTES / 4 <= TAIL);

/// One input channel with its kernels and optionally the bias of each.
pub(super) struct Depthwise<'a, T> {
    pub(super) x: &'a [T],
    pub(super) w: &'a [T],
    pub(super) bias: Option<&'a [T]>,
    pub(super) out: &'a mut [MaybeUninit<T>],
    /// A padded channel, reused for all channels: its border is zeroed once and never written.
    pub(super) scratch: &'a mut [T],
    pub(super) taps: &'a Taps<'a>,
}

impl<T: Multiply> Depthwise<'_, T> {
    /// Computes the results with the widest vectors of the processor.
    pub(super) fn put(self) {
        if const { matches!(InstructionSets::of(&[T::DTYPE]), InstructionSets::UpToAvx512) }
            && isa() == Isa::Avx512
        {
            simd::run(By::<T, WIDE_BYTES>(self));
        } else {
            simd::run(By::<T, WIDTH>(self));
        }
    }
}

/// Computes a channel, `WIDTH` bytes of positions at a time.
struct By<'a, T, const WIDTH: usize>(Depthwise<'a, T>);

impl<T: Multiply, const WIDTH: usize> Multiversioned for By<'_, T, WIDTH> {
    type Output = ();
    const SETS: InstructionSets = if WIDTH == WIDE_BYTES {
        InstructionSets::Exactly(Isa::Avx512)
    } else {
        InstructionSets::at_most_avx2(T::DTYPE)
    };

    #[inline(always)]
    fn run(self) {
        match (WIDTH, size_of::<T>()) {
            (WIDE_BYTES, 4) => self.0.by::<{ WIDE_BYTES / 4 }>(),
            (WIDE_BYTES, _) => self.0.by::<{ WIDE_BYTES / 8 }>(),
            (_, 8..) => self.0.by::<{ self::WIDTH / 8 }>(),
            _ => self.0.by::<{ self::WIDTH / 4 }>(),
        }
    }
}

impl<T: Multiply> Depthwise<'_, T> {
    /// Computes the results, `LANES` positions at a time.
    #[inline(always)]
    fn by<const LANES: usize>(self) {
        let Depthwise { x, w, bias, out, scratch, taps } = self;
        let vector = const { LANES / 8 };
        taps.fill(x, scratch, vector);
        let [_, height, width] = taps.g.output;
        let [_, rows, pitch] = taps.phase;
        // Rows are processed as one if few positions are dropped between them.
        let at_once = if pitch <= 2 * width { height } else { 1 };
        let mut turns = [Spilled([T::ZERO; LANES]); 2];
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
                // Sums are stored after the next ones are computed. Result rows read across vectors that were just
                // stored, and would stall on store forwarding.
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

/// Returns the sums of a kernel and a bias at `LANES` adjacent positions.
#[inline(always)]
fn sums<T: Multiply, const LANES: usize>(
    bias: T,
    from: &[T],
    kernel: &[T],
    offsets: &[usize],
    to: &mut Spilled<[T; LANES]>,
) {
    let mut sums = [bias; LANES];
    for (&factor, &offset) in kernel.iter().zip(offsets) {
        let Some(operands) = from[offset..].first_chunk::<LANES>() else {
            unreachable!("invariant: channels have elements behind all positions")
        };
        for l in 0..LANES {
            sums[l] = sums[l].add_product(operands[l], factor);
        }
    }
    *to = Spilled(sums);
}

/// Stores sums, which start at `column` of rows of `pitch`, by vectors to the remainder of rows of `width`. Returns the
/// rest of the output and the next column.
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
        // Whole vectors: elements written behind the end of a row are overwritten by the next row.
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
