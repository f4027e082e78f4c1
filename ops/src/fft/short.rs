//! Short-time Fourier transform of overlapping frames of a signal, and its inverse.

use super::{Order, Step, half, hermitian, real};
use crate::support::{Computed, op};
use flambeau_analysis::shape::ShapeCx;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::{self, ElementDistribution};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::fft::{self, FftKind};
use flambeau_tensor::loops::binary;
use flambeau_tensor::promote::promote;
use flambeau_tensor::{Complex, DType, Tensor, check_budget, dispatch};

/// Arguments common to both directions.
struct Frames {
    n_fft: usize,
    hop_length: usize,
    window: Tensor,
}

impl Frames {
    /// Reads `n_fft`, `hop_length`, `win_length`, `window` from position 1; pads the window to the transform's size.
    fn of(cx: &KernelCx<'_>, name: &str, dtype: DType) -> Result<Frames, KernelError> {
        let wrong = |what: String| KernelError::input(format!("{name}: {what}"));
        let n_fft = cx.int(1)?;
        let hop_length = cx.opt_int(2)?.unwrap_or(n_fft / 4);
        let width = cx.opt_int(3)?.unwrap_or(n_fft);
        if n_fft <= 0 {
            return Err(wrong(format!("expected n_fft > 0, but got n_fft={n_fft}")));
        }
        if hop_length <= 0 {
            return Err(wrong(format!("expected hop_length > 0, but got hop_length={hop_length}")));
        }
        if width <= 0 || width > n_fft {
            return Err(wrong(format!("expected 0 < win_length <= n_fft, but got win_length={width}")));
        }
        let given = cx.opt_tensor(4)?;
        if let Some(w) = given
            && (w.rank() != 1 || w.sizes()[0] != width)
        {
            return Err(wrong(format!(
                "expected a 1D window tensor of size equal to win_length={width}, but got window with size {:?}",
                w.sizes()
            )));
        }
        let window = match given {
            Some(w) if width == n_fft => w.clone(),
            None if width == n_fft => Tensor::full(&[n_fft], 1.0.into(), dtype)?,
            _ => {
                let dtype = given.map_or(dtype, Tensor::dtype);
                let wide = Tensor::zeros(&[n_fft], dtype)?;
                let middle = wide.narrow(0, (n_fft - width) / 2, width)?;
                match given {
                    Some(w) => middle.copy_(w)?,
                    None => middle.fill_(1.0.into())?,
                }
                wide
            }
        };
        Ok(Frames { n_fft: n_fft as usize, hop_length: hop_length as usize, window })
    }
}

/// Pads rows on both sides, by reflection or zeros.
fn padded(x: &Tensor, by: i64, mode: &[u8]) -> Computed {
    let n = x.size(-1)?;
    let reach = n + 2 * by;
    let source: Vec<Option<i64>> = match mode {
        b"constant" => (-by..reach - by).map(|i| (0..n).contains(&i).then_some(i)).collect(),
        b"reflect" if by >= n => {
            return Err(KernelError::input(format!(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({by}, {by}) at dimension 2 of input {:?}",
                x.sizes()
            )));
        }
        b"reflect" => (-by..reach - by)
            .map(|i| {
                Some(if i < 0 {
                    -i
                } else if i >= n {
                    2 * (n - 1) - i
                } else {
                    i
                })
            })
            .collect(),
        b"replicate" => (-by..reach - by).map(|i| Some(i.clamp(0, n - 1))).collect(),
        b"circular" => (-by..reach - by).map(|i| Some(i.rem_euclid(n))).collect(),
        other => {
            let name = String::from_utf8_lossy(other);
            return Err(KernelError::input(format!("Unrecognised padding mode {name}")));
        }
    };
    dispatch!(all, x.dtype(), "pad", T => {
        Ok(flambeau_tensor::rows::map_rows::<T, T>(x, -1, Some(reach as usize), |row, out| {
            for (o, from) in out.iter_mut().zip(&source) {
                if let Some(i) = from {
                    *o = row[*i as usize];
                }
            }
        })?)
    })
}

fn product(x: &Tensor, window: &Tensor) -> Computed {
    if x.dtype().is_complex() || window.dtype().is_complex() {
        return Ok(binary::<Complex<f64>, Complex<f64>, Complex<f64>>(x, window, |a, b| a * b)?);
    }
    Ok(binary::<f64, f64, f64>(x, window, |a, b| a * b)?)
}

/// `padding` is the padding mode of the signal, if any; the flags start at `at`: normalized, onesided, return_complex.
fn stft_of(cx: &KernelCx<'_>, padding: Option<&[u8]>, at: usize) -> Computed {
    let x = cx.tensor(0)?;
    if !x.dtype().is_floating() && !x.dtype().is_complex() {
        return Err(KernelError::input("stft: expected a tensor of floating point or complex values"));
    }
    if x.rank() != 1 && x.rank() != 2 {
        return Err(KernelError::input("stft: expected a 1D or 2D tensor"));
    }
    let frames = Frames::of(cx, "stft", x.dtype().to_real())?;
    let complex = x.dtype().is_complex() || frames.window.dtype().is_complex();
    let normalized = cx.boolean(at)?;
    let onesided = cx.opt_boolean(at + 1)?.unwrap_or(!complex);
    let Some(return_complex) = cx.opt_boolean(at + 2)?.or(complex.then_some(true)) else {
        return Err(KernelError::input(
            "stft requires the return_complex parameter be given for real inputs",
        ));
    };
    if complex && onesided {
        return Err(KernelError::input("Cannot have onesided output if window or input is complex"));
    }
    let signal = if x.rank() == 1 { x.unsqueeze(0)? } else { x.clone() };
    if x.rank() == 2 && x.numel() == 0 {
        return Err(KernelError::input(match padding {
            Some(b"reflect") => format!(
                "Expected 2D or 3D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for \
                 input, but got: [1, {}, {}]",
                x.sizes()[0],
                x.sizes()[1]
            ),
            _ => "MKL FFT error: Intel oneMKL DFTI ERROR: Inconsistent configuration parameters".to_owned(),
        }));
    }
    let signal = match padding {
        Some(mode) => padded(&signal, (frames.n_fft / 2) as i64, mode)?,
        None => signal,
    };
    let length = signal.size(1)? as usize;
    if length < frames.n_fft {
        return Err(KernelError::input(format!(
            "stft: expected 0 < n_fft < {length}, but got n_fft={}",
            frames.n_fft
        )));
    }
    let pieces = signal.unfold(1, frames.n_fft as i64, frames.hop_length as i64)?;
    let cut = product(&pieces, &frames.window)?;
    let scale = if normalized { 1.0 / (frames.n_fft as f64).sqrt() } else { 1.0 };
    let real_dtype = promote(x.dtype().to_real(), frames.window.dtype().to_real());
    if real_dtype.size() == 2 {
        return Err(KernelError::input(format!(
            "MKL FFT doesn't support tensors of type: {}",
            real_dtype.ir_name()
        )));
    }
    let (kind, dtype) = (FftKind { inverse: false, scale }, real_dtype.to_complex());
    // Without a window argument there is no multiplication, hence no copy.
    let windowed = cx.opt_tensor(4)?.is_some() || cx.opt_int(3)?.is_some_and(|n| n != frames.n_fft as i64);
    let order = Order::after(if windowed { &cut } else { &pieces }.strides(), &[Step::free(&[2])]);
    let (cut, end) = (order.arrange(&cut)?, order.place(2));
    let spectrum = if complex {
        super::complex(&cut, end, frames.n_fft, kind, dtype)?
    } else {
        real(&cut, end, frames.n_fft, kind, dtype, onesided)?
    };
    let mut out = order.restore(&spectrum)?.transpose(1, 2)?;
    if x.rank() == 1 {
        out = out.squeeze(&[0])?;
    }
    if return_complex { Ok(out) } else { Ok(out.view_as_real()?) }
}

fn stft(cx: &KernelCx<'_>) -> Computed {
    stft_of(cx, None, 5)
}

fn stft_center(cx: &KernelCx<'_>) -> Computed {
    let mode = cx.str_bytes(6)?;
    stft_of(cx, cx.boolean(5)?.then_some(mode), 7)
}

/// `(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex)`.
fn istft(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let (center, normalized, length) = (cx.boolean(5)?, cx.boolean(6)?, cx.opt_int(8)?);
    let return_complex = cx.boolean(9)?;
    if !x.dtype().is_complex() {
        return Err(KernelError::input(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.",
        ));
    }
    if x.rank() != 2 && x.rank() != 3 {
        return Err(KernelError::input(format!(
            "istft: expected a tensor with 3 or 4 dimensions, but got {}",
            x.rank() + 1
        )));
    }
    if x.numel() == 0 {
        return Err(KernelError::input("istft(..., ) input tensor cannot be empty."));
    }
    let real_dtype = x.dtype().to_real();
    let frames = Frames::of(cx, "istft", real_dtype)?;
    if cx.opt_tensor(4)?.is_some_and(|window| window.dtype().is_complex()) && !return_complex {
        return Err(KernelError::input("Complex windows are incompatible with return_complex=False"));
    }
    let n_fft = frames.n_fft;
    let spectrum = if x.rank() == 2 { x.unsqueeze(0)? } else { x.clone() };
    let bins = spectrum.size(1)? as usize;
    let onesided = cx.opt_boolean(7)?.unwrap_or(bins != n_fft);
    let wanted = if onesided { n_fft / 2 + 1 } else { n_fft };
    if bins != wanted {
        return Err(KernelError::input(format!(
            "istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when \
             onesided={onesided}, but got {bins}"
        )));
    }
    let scale = if normalized { 1.0 / (n_fft as f64).sqrt() } else { 1.0 / n_fft as f64 };
    let kind = FftKind { inverse: true, scale };
    let pieces = spectrum.transpose(1, 2)?;
    let pieces = if return_complex {
        fft::complex::<Complex<f64>>(&pieces, -1, n_fft, kind)?
    } else {
        // Only the nonredundant half is used, even if all frequencies are given.
        hermitian(&pieces, -1, n_fft, kind, DType::C128)?
    };
    let pieces = product(&pieces, &frames.window)?;
    let summed = overlapped(&pieces, &frames, center, length)?;
    let summed = if x.rank() == 2 { summed.squeeze(&[0])? } else { summed };
    let wide = promote(real_dtype, frames.window.dtype().to_real());
    let dtype = if return_complex { wide.to_complex() } else { wide };
    Ok(summed.to_dtype(dtype)?)
}

/// Adds overlapping frames, divides by the sum of the squared windows, and removes the padding.
fn overlapped(pieces: &Tensor, frames: &Frames, center: bool, length: Option<i64>) -> Computed {
    let (batch, count) = (pieces.size(0)? as usize, pieces.size(1)? as usize);
    let (n, hop_length) = (frames.n_fft, frames.hop_length);
    let full = hop_length.saturating_mul(count.saturating_sub(1)).saturating_add(n);
    check_budget(full.saturating_mul(2 * size_of::<Complex<f64>>()))?;
    let window = frames.window.to_vec::<Complex<f64>>()?;
    let values = pieces.to_vec::<Complex<f64>>()?;
    let mut weights = vec![Complex::new(0.0, 0.0); full];
    for f in 0..count {
        (0..n).for_each(|i| weights[f * hop_length + i] += window[i] * window[i]);
    }
    let start = if center { n / 2 } else { 0 };
    let end = match length {
        Some(length) => start.saturating_add(usize::try_from(length).unwrap_or(0)),
        None if center => full - n / 2,
        None => full,
    };
    check_budget(batch.saturating_mul(end.saturating_sub(start)).saturating_mul(size_of::<Complex<f64>>()))?;
    let inside = end.min(full);
    if weights[start..inside.max(start)].iter().any(|w| w.norm() < 1e-11) {
        return Err(KernelError::input("window overlap add min: 1"));
    }
    let mut out = vec![Complex::new(0.0, 0.0); batch * (end - start)];
    for b in 0..batch {
        let mut sums = vec![Complex::new(0.0, 0.0); full];
        for f in 0..count {
            let piece = &values[(b * count + f) * n..][..n];
            (0..n).for_each(|i| sums[f * hop_length + i] += piece[i]);
        }
        (start..inside).for_each(|i| out[b * (end - start) + i - start] = sums[i] / weights[i]);
    }
    Ok(Tensor::from_slice(&out, &[batch as i64, (end - start) as i64])?)
}

/// Returns the promoted real dtype of a signal and its window.
fn real_dtype(cx: &ShapeCx<'_>) -> Option<DType> {
    let signal = cx.dtype(0)?.to_real();
    if cx.is_none(4)? { Some(signal) } else { Some(promote(signal, cx.dtype(4)?.to_real())) }
}

/// Returns the distance of frames: argument 2, or a quarter of the transform's size.
fn hop_length(cx: &mut ShapeCx<'_>) -> Dim {
    match cx.is_none(2) {
        Some(true) => {
            let n = cx.number(1);
            cx.symbols.floor_div(n, Dim::Known(4))
        }
        Some(false) => cx.number(2),
        None => Dim::Unknown,
    }
}

/// Returns the value of a flag, or its default, which depends on whether the operands are complex.
fn flag_or_complex(cx: &ShapeCx<'_>, flag: usize, of_complex: bool) -> Option<bool> {
    if !cx.is_none(flag)? {
        return cx.bool(flag);
    }
    let complex = cx.dtype(0)?.is_complex() || (!cx.is_none(4)? && cx.dtype(4)?.is_complex());
    Some(complex == of_complex)
}

/// Facts of a short-time transform: argument `center` determines whether the signal is padded; the flags start at `at`.
fn stft_facts(d: OpDef, center: Option<usize>, at: usize) -> OpDef {
    let shape = ResultShapes::dims(move |cx| {
        // One row of frames per signal, without batch for a single signal.
        let mut dims = cx.lead(0, 1)?;
        let (n, step, one) = (cx.number(1), hop_length(cx), Dim::Known(1));
        let (length, half_window) = (cx.size(0, -1), cx.symbols.floor_div(n, Dim::Known(2)));
        let padding = center.map_or(Dim::Known(0), |flag| cx.either(flag, half_window, Dim::Known(0)));
        let bins = match flag_or_complex(cx, at + 1, false) {
            Some(true) => half(cx, n),
            Some(false) => n,
            None => Dim::Unknown,
        };
        dims.extend([bins, cx.symbols.windows(length, n, step, padding, one)]);
        dims.extend((!flag_or_complex(cx, at + 2, true)?).then_some(Dim::Known(2)));
        Some(dims)
    });
    let dtype = Dtype::from(move |cx| {
        let real = real_dtype(cx)?;
        Some(if flag_or_complex(cx, at + 2, true)? { real.to_complex() } else { real })
    });
    d.with(shape).with(dtype)
}

/// Facts of an inverse short-time transform.
fn istft_facts(d: OpDef) -> OpDef {
    let shape = ResultShapes::dims(|cx| {
        let mut dims = cx.lead(0, 2)?;
        let (n, step, count) = (cx.number(1), hop_length(cx), cx.size(0, -1));
        dims.push(match cx.is_none(8)? {
            false if cx.symbols.range(cx.number(8)).min < 0 => Dim::Unknown,
            false => cx.number(8),
            true => {
                let half_window = cx.symbols.floor_div(n, Dim::Known(2));
                let ends = cx.either(5, half_window, Dim::Known(0));
                cx.symbols.spread(count, n, step, ends, Dim::Known(1))
            }
        });
        Some(dims)
    });
    let dtype = Dtype::from(|cx| {
        let real = real_dtype(cx)?;
        Some(if cx.bool(9)? { real.to_complex() } else { real })
    });
    d.with(shape).with(dtype)
}

pub(super) fn family() -> Vec<OpDef> {
    let doc = "The short-time Fourier transform: Fourier transforms of overlapping windows of a signal.";
    // No window; then the padding arguments, if any; for real input, `return_complex` must be given.
    let sampled = |d: OpDef, widened: Vec<IValue>| {
        let args = move |g: &mut flambeau_exec::Gen<'_>| {
            let x = sample::tensor(g, &[2, 24], DType::F32, &ElementDistribution::default());
            let mut args = vec![IValue::Tensor(x), IValue::Int(8), IValue::None, IValue::None, IValue::None];
            args.extend(widened.iter().cloned());
            args.extend([IValue::Bool(false), IValue::None, IValue::Bool(false)]);
            args
        };
        d.with(Sample::args(args).tolerance(1e-4, 1e-5))
    };
    let center = || vec![IValue::Bool(true), IValue::str("reflect")];
    let mut defs = op("stft", "", doc).facts(|d| stft_facts(sampled(d, Vec::new()), None, 5)).one(stft);
    let centered = |d: OpDef| stft_facts(sampled(d, center()), Some(5), 7);
    defs.extend(op("stft", "center", doc).facts(centered).one(stft_center));
    let doc = "The inverse short-time Fourier transform.";
    let spectrum = |g: &mut flambeau_exec::Gen<'_>| {
        let x = sample::tensor(g, &[2, 5, 7], DType::C64, &ElementDistribution::default());
        vec![IValue::Tensor(x), IValue::Int(8)]
    };
    defs.extend(
        op("istft", "", doc)
            .facts(|d| istft_facts(d.with(Sample::args(spectrum).tolerance(1e-4, 1e-5))))
            .one(istft),
    );
    defs
}
