//! Primitive transforms that the others are composed of: `(self, dim, normalization, …)`, with a numeric normalization.
//! The last argument is the direction, whether the conjugate half is omitted, or the size of the last dimension.

use super::{Chain, FftTypes, Lengths, Order, complex_dtype, existing, facts, half, points};
use crate::support::{Computed, op};
use flambeau_analysis::ResultShapes;
use flambeau_analysis::shape::{Dims, wrap};
use flambeau_exec::sample::{self, ElementDistribution};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::DType;
use flambeau_tensor::fft::FftKind;

/// Shape: the sizes of argument 0, with a different last transformed dimension.
fn shape(sides: FftTypes) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let (mut dims, which) = (cx.dims_or_fresh(0)?, cx.known_ints(1));
        let Some(which) = which else { return Some(Dims::from_elem(Dim::Unknown, dims.len())) };
        let Some(&last) = which.last() else { return Some(dims) };
        let at = wrap(last, dims.len()).filter(|&at| at < dims.len())?;
        dims[at] = match sides {
            FftTypes::Complex => dims[at],
            FftTypes::RealIn => {
                let half = half(cx, dims[at]);
                cx.either(3, half, dims[at])
            }
            FftTypes::RealOut => cx.number(3),
        };
        Some(dims)
    })
}

fn low(cx: &KernelCx<'_>, sides: FftTypes) -> Computed {
    let (x, dims, normalization) = (cx.tensor(0)?, cx.ints(1)?, cx.int(2)?);
    let dtype = complex_dtype(x)?;
    if sides == FftTypes::RealOut && !x.dtype().is_complex() {
        return Err(KernelError::input("Expected self.is_complex() to be true, but got false."));
    }
    let dims: Vec<i64> = dims.iter().map(|&d| existing(x, d).map(|d| d as i64)).collect::<Result<_, _>>()?;
    if dims.is_empty() {
        return match sides {
            FftTypes::Complex => Ok(x.cast_copy(dtype)?),
            _ => Err(KernelError::input(
                "a transform between real and complex numbers requires at least one dimension",
            )),
        };
    }
    let size = |d: &i64| -> Result<usize, KernelError> { points(x.size(*d)?) };
    let mut sizes: Vec<usize> = dims.iter().map(size).collect::<Result<_, _>>()?;
    if sides == FftTypes::RealOut {
        sizes[dims.len() - 1] = points(cx.int(3)?)?;
    }
    let total = sizes.iter().fold(1_usize, |all, &n| all.saturating_mul(n));
    let scale = match normalization {
        0 => 1.0,
        1 => 1.0 / (total as f64).sqrt(),
        2 => 1.0 / total as f64,
        other => return Err(KernelError::input(format!("Unsupported normalization mode {other}"))),
    };
    let (inverse, onesided) = match sides {
        FftTypes::Complex => (!cx.boolean(3)?, true),
        FftTypes::RealIn => (false, cx.boolean(3)?),
        FftTypes::RealOut => (true, true),
    };
    let kinds = [FftKind { inverse, scale: 1.0 }, FftKind { inverse, scale }];
    let order = Order::of(sides, x.strides(), &dims);
    Chain { sides, kinds, onesided, dtype }.run(x, &Lengths { dims, sizes }, &order)
}

pub(super) fn family() -> Vec<OpDef> {
    let rows =
        [("_fft_c2c", FftTypes::Complex), ("_fft_r2c", FftTypes::RealIn), ("_fft_c2r", FftTypes::RealOut)];
    let def = |(name, sides): (&'static str, FftTypes)| {
        let facts = move |d: OpDef| {
            let dtype = if sides == FftTypes::RealIn { DType::F32 } else { DType::C64 };
            let sample = Sample::args(move |g| {
                let x = IValue::Tensor(sample::tensor(g, &[3, 4], dtype, &ElementDistribution::default()));
                let last = match sides {
                    FftTypes::RealOut => IValue::Int(6),
                    _ => IValue::Bool(g.flag()),
                };
                vec![x, IValue::ints(vec![0, 1]), IValue::Int(g.int(0, 2)), last]
            });
            facts(d, sides).with(shape(sides)).with(sample.tolerance(1e-4, 1e-5))
        };
        op(name, "", "A discrete Fourier transform.").facts(facts).one(move |cx| low(cx, sides))
    };
    rows.into_iter().flat_map(def).collect()
}
