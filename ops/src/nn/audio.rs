//! Operators of `torchaudio`: recursive filters, computed sample by sample.
//!
//! The schemas additionally declare which arguments are written.

use crate::support::{Computed, fresh, kernel};
use flambeau_exec::{Gen, Kernel, KernelCx, KernelError, Sample};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::{DType, Element, Tensor, dispatch};

fn wrong(text: &str) -> KernelError {
    KernelError::input(text)
}

/// `(waveform, a_coeffs, b_coeffs)`: filters `[batch, channels, time]` with one filter per channel. The coefficients of
/// output and input are `[channels, order]`.
fn lfilter(cx: &KernelCx<'_>) -> Computed {
    let (x, a, b) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let [_, channels, time] = *x.sizes() else {
        return Err(wrong("lfilter: expected batch, channels and time"));
    };
    let order = a.sizes().get(1).copied().unwrap_or(0);
    if a.sizes() != [channels, order] || b.sizes() != a.sizes() || order == 0 {
        return Err(wrong(
            "lfilter: expected as many coefficients of inputs as of outputs, for each channel",
        ));
    }
    if x.dtype() != a.dtype() || x.dtype() != b.dtype() {
        return Err(wrong("lfilter: expected waveform and coefficients of one dtype"));
    }
    let (time, order, channels) = (time as usize, order as usize, channels as usize);
    dispatch!(floats, x.dtype(), "lfilter", T => {
        let (x_data, a, b) = (x.to_vec::<T>()?, a.to_vec::<T>()?, b.to_vec::<T>()?);
        // Rounded to the dtype after every step: the recursion amplifies extra precision.
        let r = |v: f64| T::from_f64(v).to_f64();
        let mut out: Vec<T> = Vec::with_capacity(x_data.len());
        for (row, x) in x_data.chunks_exact(time.max(1)).enumerate() {
            let channel = row % channels;
            let of = |v: &[T]| -> Vec<f64> {
                let lead = a[channel * order].to_f64();
                v[channel * order..][..order].iter().map(|c| r(c.to_f64() / lead)).collect()
            };
            let (a, b) = (of(&a), of(&b));
            let start = out.len();
            for t in 0..time {
                let taps = 0..order.min(t + 1);
                let direct = r(taps.clone().map(|k| x[t - k].to_f64() * b[k]).sum::<f64>());
                let y = taps.skip(1).rev().fold(direct, |y, k| r(y - r(out[start + t - k].to_f64() * a[k])));
                out.push(T::from_f64(y));
            }
        }
        Ok(Tensor::from_vec(out, x.sizes())?)
    })
}

/// `(input, flipped a_coeffs, padded output)`: the recursive part only; the output tensor starts with the filter's
/// past.
fn lfilter_core(cx: &KernelCx<'_>) -> Result<(), KernelError> {
    let (x, a, out) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let [batch, channels, time] = *x.sizes() else {
        return Err(wrong("lfilter: expected batch, channels and time"));
    };
    let order = a.sizes().get(1).copied().unwrap_or(0);
    if order == 0 || a.sizes() != [channels, order] || out.sizes() != [batch, channels, time + order - 1] {
        return Err(wrong("lfilter: sizes of input, coefficients and padded output do not match"));
    }
    let (time, order, channels) = (time as usize, order as usize, channels as usize);
    let result = dispatch!(floats, out.dtype(), "lfilter", T => {
        let (x, a, mut y) = (x.to_vec::<f64>()?, a.to_vec::<f64>()?, out.to_vec::<T>()?);
        for (row, y) in y.chunks_exact_mut(time + order - 1).enumerate() {
            let a = &a[row % channels * order..][..order];
            for t in 0..time {
                let r = |v: f64| T::from_f64(v).to_f64();
                let sum = (0..order).fold(x[row * time + t], |sum, k| r(sum - r(y[t + k].to_f64() * a[k])));
                y[t + order - 1] = T::from_f64(sum);
            }
        }
        Ok::<_, KernelError>(Tensor::from_vec(y, out.sizes())?)
    })?;
    out.copy_(&result)?;
    Ok(())
}

/// `(waveform, distorted, last_in, last_out, output)`; the last three arguments are written.
fn overdrive_core(cx: &KernelCx<'_>) -> Result<(), KernelError> {
    let (x, distorted) = (cx.tensor(0)?, cx.tensor(1)?);
    let [channels, time] = *x.sizes() else { return Err(wrong("overdrive: expected channels and time")) };
    let state = |i: usize, sizes: &[i64]| -> Result<Vec<f64>, KernelError> {
        let t = cx.tensor(i)?;
        if t.sizes() == sizes {
            Ok(t.to_vec::<f64>()?)
        } else {
            Err(wrong("overdrive: sizes of the arguments do not match"))
        }
    };
    let (wave, bent) = (x.to_vec::<f64>()?, state(1, x.sizes())?);
    let (mut last_in, mut last_out) = (state(2, &[channels])?, state(3, &[channels])?);
    let mut out = state(4, x.sizes())?;
    let dtype = distorted.dtype();
    let r = |v: f64| if dtype == DType::F64 { v } else { f64::from(v as f32) };
    for c in 0..channels as usize {
        for i in c * time as usize..(c + 1) * time as usize {
            last_out[c] = r(r(bent[i] - last_in[c]) + 0.995 * last_out[c]);
            last_in[c] = bent[i];
            out[i] = r(r(wave[i] * 0.5) + r(last_out[c] * 0.75));
        }
    }
    for (i, values) in [(2, last_in), (3, last_out), (4, out)] {
        let target = cx.tensor(i)?;
        target.copy_(&Tensor::from_vec(values, target.sizes())?)?;
    }
    Ok(())
}

/// Creates the kernel of an operator that writes its arguments and returns nothing.
fn changing(f: impl Fn(&KernelCx<'_>) -> Result<(), KernelError> + Send + Sync + 'static) -> Kernel {
    kernel(move |cx| f(cx))
}

fn sample(sizes: &'static [&'static [i64]]) -> Sample {
    Sample::args(move |g: &mut Gen<'_>| {
        let elements = flambeau_exec::sample::ElementDistribution { lo: 0.5, hi: 1.0, ..Default::default() };
        sizes
            .iter()
            .map(|s| IValue::Tensor(flambeau_exec::sample::tensor(g, s, DType::F32, &elements)))
            .collect()
    })
    .tolerance(1e-4, 1e-4)
    .not_differentiable()
}

pub(super) fn family() -> Vec<OpDef> {
    vec![
        OpDef::new("torchaudio::_lfilter(Tensor waveform, Tensor a_coeffs, Tensor b_coeffs) -> Tensor")
            .with(Doc("Waveforms filtered by recursive (IIR) filters, one per channel."))
            .with(flambeau_analysis::ResultShapes::same_as(0))
            .with(flambeau_analysis::Dtype::same_as(0))
            .with(sample(&[&[2, 2, 6], &[2, 3], &[2, 3]]))
            .with(fresh(lfilter)),
        OpDef::new("torchaudio::_lfilter_core_loop(Tensor _0, Tensor _1, Tensor(a!) _2) -> ()")
            .with(Doc("The recursive part of a filter, written into a padded output."))
            .with(sample(&[&[2, 2, 4], &[2, 3], &[2, 2, 6]]))
            .with(changing(lfilter_core)),
        OpDef::new(
            "torchaudio::_overdrive_core_loop(Tensor _0, Tensor _1, Tensor(a!) _2, Tensor(b!) _3, Tensor(c!) _4) -> ()",
        )
        .with(Doc("The recursion of the overdrive effect, which writes its last three arguments."))
        .with(sample(&[&[2, 4], &[2, 4], &[2], &[2], &[2, 4]]))
        .with(changing(overdrive_core)),
    ]
}
