//! Window functions of signal processing: `hann_window` and others.

use super::{check_device, fixed_args};
use crate::compute::computing;
use crate::support::{Computed, cpp_name, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::promote::DEFAULT_FLOAT;
use flambeau_tensor::{DType, Scalar, Tensor, TensorError, check_budget};
use std::f64::consts::PI;

/// Creates a window from a function of the relative position, from 0 at the start to 1 at the end; periodic windows
/// omit the last position.
fn window(
    cx: &KernelCx<'_>,
    name: &str,
    periodic: bool,
    dtype_at: usize,
    f: impl Fn(f64) -> f64,
) -> Computed {
    check_device(cx, dtype_at + 2)?;
    let n = cx.int(0)?;
    let dtype = cx.opt_dtype(dtype_at)?.unwrap_or(DEFAULT_FLOAT);
    if dtype.is_integral(true) {
        let given = |i: usize| Ok::<_, KernelError>(if cx.arg(i)?.is_none() { " (default)" } else { "" });
        let (layout, device, pinned) = (given(dtype_at + 1)?, given(dtype_at + 2)?, given(dtype_at + 3)?);
        return Err(KernelError::input(format!(
            "{name} expects floating point dtypes, got: TensorOptions(dtype={}, device=cpu{device}, \
             layout=Strided{layout}, requires_grad=false (default), pinned_memory=false{pinned}, \
             memory_format=(nullopt))",
            cpp_name(dtype)
        )));
    }
    if n < 0 {
        return Err(KernelError::input(format!(
            "{name} requires non-negative window_length, got window_length={n}"
        )));
    }
    if n <= 1 {
        return Ok(Tensor::full(&[n], Scalar::Int(1), dtype)?);
    }
    if dtype.is_complex() {
        return Err(TensorError::DType { op: "arange_cpu", dtype }.into());
    }
    check_budget((n as usize).saturating_mul(16))?;
    let last = if periodic { n } else { n - 1 } as f64;
    let values: Vec<f64> = (0..n).map(|i| f(i as f64 / last)).collect();
    Ok(Tensor::from_vec(values, &[n])?.to_dtype(dtype)?)
}

fn hamming(alpha: f64, beta: f64) -> impl Fn(f64) -> f64 {
    move |x| alpha - beta * libm::cos(2.0 * PI * x)
}

fn blackman(x: f64) -> f64 {
    0.42 - 0.5 * libm::cos(2.0 * PI * x) + 0.08 * libm::cos(4.0 * PI * x)
}

fn bartlett(x: f64) -> f64 {
    1.0 - (2.0 * x - 1.0).abs()
}

/// The modified Bessel function of order 0, by its power series.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-17 && k < 1e4 {
        term *= quarter / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}

fn kaiser(beta: f64) -> impl Fn(f64) -> f64 {
    let top = bessel_i0(beta);
    move |x| {
        let apart = 2.0 * x - 1.0;
        bessel_i0(beta * (1.0 - apart * apart).max(0.0).sqrt()) / top
    }
}

#[derive(Clone, Copy)]
struct WindowRow {
    name: &'static str,
    overload: &'static str,
    doc: &'static str,
    /// Number of arguments between the length and the options.
    more: usize,
    run: fn(&KernelCx<'_>) -> Computed,
}

/// Whether a window is periodic: argument 1 if there is one, else true.
fn periodic(cx: &KernelCx<'_>, more: usize) -> Result<bool, KernelError> {
    if more == 0 { Ok(true) } else { cx.boolean(1) }
}

const HANN: &str = "A Hann window: a raised cosine.";
const HAMMING: &str = "A Hamming window: a raised cosine that does not reach zero.";
const BLACKMAN: &str = "A Blackman window: a sum of two cosines.";
const BARTLETT: &str = "A Bartlett window: a triangle.";
const KAISER: &str = "A Kaiser window, by the modified Bessel function.";

const ROWS: &[WindowRow] = &[
    WindowRow {
        name: "hann_window",
        overload: "",
        doc: HANN,
        more: 0,
        run: |cx| window(cx, "hann_window", true, 1, hamming(0.5, 0.5)),
    },
    WindowRow {
        name: "hann_window",
        overload: "periodic",
        doc: HANN,
        more: 1,
        run: |cx| window(cx, "hann_window", periodic(cx, 1)?, 2, hamming(0.5, 0.5)),
    },
    WindowRow {
        name: "hamming_window",
        overload: "",
        doc: HAMMING,
        more: 0,
        run: |cx| window(cx, "hamming_window", true, 1, hamming(0.54, 0.46)),
    },
    WindowRow {
        name: "hamming_window",
        overload: "periodic",
        doc: HAMMING,
        more: 1,
        run: |cx| window(cx, "hamming_window", periodic(cx, 1)?, 2, hamming(0.54, 0.46)),
    },
    WindowRow {
        name: "hamming_window",
        overload: "periodic_alpha",
        doc: HAMMING,
        more: 2,
        run: |cx| window(cx, "hamming_window", periodic(cx, 2)?, 3, hamming(cx.float(2)?, 0.46)),
    },
    WindowRow {
        name: "hamming_window",
        overload: "periodic_alpha_beta",
        doc: HAMMING,
        more: 3,
        run: |cx| window(cx, "hamming_window", periodic(cx, 3)?, 4, hamming(cx.float(2)?, cx.float(3)?)),
    },
    WindowRow {
        name: "blackman_window",
        overload: "",
        doc: BLACKMAN,
        more: 0,
        run: |cx| window(cx, "blackman_window", true, 1, blackman),
    },
    WindowRow {
        name: "blackman_window",
        overload: "periodic",
        doc: BLACKMAN,
        more: 1,
        run: |cx| window(cx, "blackman_window", periodic(cx, 1)?, 2, blackman),
    },
    WindowRow {
        name: "bartlett_window",
        overload: "",
        doc: BARTLETT,
        more: 0,
        run: |cx| window(cx, "bartlett_window", true, 1, bartlett),
    },
    WindowRow {
        name: "bartlett_window",
        overload: "periodic",
        doc: BARTLETT,
        more: 1,
        run: |cx| window(cx, "bartlett_window", periodic(cx, 1)?, 2, bartlett),
    },
    WindowRow {
        name: "kaiser_window",
        overload: "",
        doc: KAISER,
        more: 0,
        run: |cx| window(cx, "kaiser_window", true, 1, kaiser(12.0)),
    },
    WindowRow {
        name: "kaiser_window",
        overload: "periodic",
        doc: KAISER,
        more: 1,
        run: |cx| window(cx, "kaiser_window", periodic(cx, 1)?, 2, kaiser(12.0)),
    },
    WindowRow {
        name: "kaiser_window",
        overload: "beta",
        doc: KAISER,
        more: 2,
        run: |cx| window(cx, "kaiser_window", periodic(cx, 2)?, 3, kaiser(cx.float(2)?)),
    },
];

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    for row in computing!(ROWS.run) {
        let more = row.more;
        let args = move || {
            let all = [IValue::Int(5), IValue::Bool(false), IValue::Float(0.6), IValue::Float(0.4)];
            all[..=more].to_vec()
        };
        let facts = |d: OpDef| {
            d.with(ResultShapes::of_size(0))
                .with(Dtype::named_or(more + 1, Dtype::fixed(DType::F32)))
                .with(fixed_args(args).tolerance(1e-6, 1e-7))
        };
        defs.extend(op(row.name, row.overload, row.doc).options_at(more + 1).facts(facts).one(row.run));
    }
    defs
}
