//! Conversion of f16 and bf16 to and from f32 in plain integer arithmetic.
//!
//! The `half` crate checks the processor's features at each conversion, which prevents vectorization. These functions
//! are branch-free, round to nearest even, and map NaN to NaN.

use half::{bf16, f16};

/// Converts exactly.
#[inline(always)]
pub(crate) fn bf16_to_f32(value: bf16) -> f32 {
    f32::from_bits((value.to_bits() as u32) << 16)
}

/// Rounds to nearest, ties to even; every NaN becomes the quiet NaN that PyTorch stores.
#[inline(always)]
pub(crate) fn bf16_from_f32(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = (bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16;
    bf16::from_bits(if value.is_nan() { 0x7fc0 } else { rounded })
}

/// Converts exactly.
#[inline(always)]
pub(crate) fn f16_to_f32(value: f16) -> f32 {
    let bits = value.to_bits() as u32;
    let sign = (bits & 0x8000) << 16;
    let rest = bits & 0x7fff;
    // Normal numbers: shift the bits and adjust the exponent. The multiplication scales exactly, also for denormals.
    let scaled = f32::from_bits(rest << 13) * f32::from_bits(0x7780_0000); // 2^112
    let special = (rest << 13) | 0x7f80_0000;
    let magnitude = if rest >= 0x7c00 { special } else { scaled.to_bits() };
    f32::from_bits(sign | magnitude)
}

/// Rounds to nearest, ties to even; overflow yields infinity.
#[inline(always)]
pub(crate) fn f16_from_f32(value: f32) -> f16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    // Normal result: adjust the exponent and round on the 13 dropped bits; a carry into the exponent is correct.
    let normal =
        (magnitude.wrapping_sub(0x3800_0000).wrapping_add(0x0fff + ((magnitude >> 13) & 1)) >> 13) as u16;
    // Denormal result: adding 0.5 shifts the right bits to the bottom, and the addition rounds them.
    let denormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits()) as u16;
    let finite = if magnitude < 0x3880_0000 { denormal } else { normal };
    let overflow = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    f16::from_bits(sign | if magnitude >= 0x477f_f000 { overflow } else { finite })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_round_trips() {
        for bits in 0..=u16::MAX {
            let h = f16::from_bits(bits);
            let b = bf16::from_bits(bits);
            if h.is_nan() {
                assert!(f16_to_f32(h).is_nan() && f16_from_f32(f16_to_f32(h)).is_nan());
            } else {
                assert_eq!(f16_to_f32(h).to_bits(), h.to_f32_const().to_bits());
                assert_eq!(f16_from_f32(f16_to_f32(h)).to_bits(), bits);
            }
            if b.is_nan() {
                assert!(bf16_to_f32(b).is_nan());
            } else {
                assert_eq!(bf16_from_f32(bf16_to_f32(b)).to_bits(), bits);
            }
        }
    }

    #[test]
    fn rounding_is_that_of_the_half_crate() {
        let mut bits = 0u32;
        while bits < 0xffff_f000 {
            let x = f32::from_bits(bits);
            if !x.is_nan() {
                assert_eq!(f16_from_f32(x).to_bits(), f16::from_f32_const(x).to_bits(), "{x:e}");
                assert_eq!(bf16_from_f32(x).to_bits(), bf16::from_f32_const(x).to_bits(), "{x:e}");
            }
            bits += 977;
        }
    }
}
