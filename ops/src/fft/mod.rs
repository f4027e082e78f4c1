//! Fourier transforms over one, two or more dimensions; frequencies and shifts; short-time transforms.
//!
//! A transform over several dimensions is a chain of one-dimensional transforms (`flambeau_tensor::fft`). The last
//! dimension is the one that converts between real and complex numbers: first for real input, last for real output.

mod low;
mod order;
mod short;

use crate::shape::rolled;
use crate::support::{Computed, op};
use flambeau_analysis::shape::{Dims, ShapeCx, wrap};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::{self, ElementDistribution};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::fft::{self, FftKind};
use flambeau_tensor::promote::{DEFAULT_FLOAT, to_float};
use flambeau_tensor::{Complex, DType, Tensor, wrap_dim};
use order::{Order, Step, strides_read};

/// Number types of input and output.
#[derive(Clone, Copy, PartialEq)]
enum FftTypes {
    /// Complex to complex.
    Complex,
    /// Real to complex (only the nonredundant half).
    RealIn,
    /// Complex (only the nonredundant half) to real.
    RealOut,
}

/// A transform over some dimensions.
#[derive(Clone, Copy)]
struct Transform {
    name: &'static str,
    sides: FftTypes,
    inverse: bool,
    /// Hermitian transforms are real ones with the directions exchanged.
    hermitian: bool,
}

/// Returns the complex dtype for a transform of `x`; an error for f16 and bf16.
fn complex_dtype(x: &Tensor) -> Result<DType, KernelError> {
    match to_float(x.dtype()) {
        d @ (DType::F16 | DType::BF16) => {
            Err(KernelError::input(format!("Unsupported dtype {}", d.ir_name())))
        }
        d => Ok(d.to_complex()),
    }
}

/// Returns the scale factor: 1, 1/n or 1/sqrt(n), depending on normalization and direction.
pub(super) fn scale(norm: Option<&[u8]>, inverse: bool, n: usize) -> Result<f64, KernelError> {
    let n = n as f64;
    match norm.unwrap_or(b"backward") {
        b"ortho" => Ok(1.0 / n.sqrt()),
        b"backward" => Ok(if inverse { 1.0 / n } else { 1.0 }),
        b"forward" => Ok(if inverse { 1.0 } else { 1.0 / n }),
        other => {
            let other = String::from_utf8_lossy(other);
            Err(KernelError::input(format!("Invalid normalization mode: \"{other}\"")))
        }
    }
}

/// One-dimensional complex-to-complex transform.
fn complex(x: &Tensor, dim: i64, n: usize, kind: FftKind, dtype: DType) -> Computed {
    Ok(match dtype {
        DType::C128 => fft::complex::<Complex<f64>>(x, dim, n, kind)?,
        _ => fft::complex::<Complex<f32>>(x, dim, n, kind)?,
    })
}

pub(super) fn real(x: &Tensor, dim: i64, n: usize, kind: FftKind, dtype: DType, onesided: bool) -> Computed {
    Ok(match dtype {
        DType::C128 => fft::real::<Complex<f64>>(x, dim, n, kind, onesided)?,
        _ => fft::real::<Complex<f32>>(x, dim, n, kind, onesided)?,
    })
}

pub(super) fn hermitian(x: &Tensor, dim: i64, n: usize, kind: FftKind, dtype: DType) -> Computed {
    Ok(match dtype {
        DType::C128 => fft::hermitian::<f64>(x, dim, n, kind)?,
        _ => fft::hermitian::<f32>(x, dim, n, kind)?,
    })
}

/// The transformed dimensions and their lengths.
struct Lengths {
    dims: Vec<i64>,
    sizes: Vec<usize>,
}

fn points(n: i64) -> Result<usize, KernelError> {
    usize::try_from(n)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| KernelError::input(format!("Invalid number of data points ({n}) specified")))
}

/// Resolves a dimension; an error for tensors of rank 0.
fn existing(x: &Tensor, dim: i64) -> Result<usize, KernelError> {
    if x.rank() == 0 {
        let message = format!("Dimension specified as {dim} but tensor has no dimensions");
        return Err(KernelError::new(flambeau_exec::Fault::Input, "IndexError", message));
    }
    Ok(wrap_dim(dim, x.rank())?)
}

/// A transform as a chain of one-dimensional ones.
struct Chain {
    sides: FftTypes,
    /// Direction and scale for all dimensions but the last, and for the last.
    kinds: [FftKind; 2],
    onesided: bool,
    /// The complex dtype.
    dtype: DType,
}

impl Chain {
    fn run(&self, x: &Tensor, lengths: &Lengths, order: &Order) -> Computed {
        let [plain, scaled] = self.kinds;
        let last = lengths.dims.len() - 1;
        let (end, n) = (order.place(lengths.dims[last]), lengths.sizes[last]);
        // Intermediate results are f64.
        let (dtype, wide) = (self.dtype, DType::C128);
        let mut t = order.arrange(x)?;
        if self.sides == FftTypes::RealIn {
            t = real(&t, end, n, scaled, if last == 0 { dtype } else { wide }, self.onesided)?;
        }
        for (i, (&d, &n)) in lengths.dims.iter().zip(&lengths.sizes).take(last).enumerate() {
            let ends = self.sides == FftTypes::RealIn && i + 1 == last;
            t = complex(&t, order.place(d), n, plain, if ends { dtype } else { wide })?;
        }
        let t = match self.sides {
            FftTypes::Complex => complex(&t, end, n, scaled, dtype)?,
            FftTypes::RealIn => t,
            FftTypes::RealOut => hermitian(&t, end, n, scaled, dtype)?,
        };
        order.restore(&t)
    }
}

impl Transform {
    /// `(self, n, dim, norm)`.
    fn over_one(self, cx: &KernelCx<'_>) -> Computed {
        let (x, n, dim) = (cx.tensor(0)?, cx.opt_int(1)?, cx.int(2)?);
        let d = existing(x, dim)?;
        let size = x.sizes()[d];
        let given = match self.sides {
            FftTypes::RealOut => 2 * (size - 1),
            _ => size,
        };
        let lengths = Lengths { dims: vec![d as i64], sizes: vec![points(n.unwrap_or(given))?] };
        self.run(x, &lengths, cx.opt_string(3)?.map(|s| s.as_bytes()))
    }

    /// `(self, s, dim, norm)`.
    fn over_many(self, cx: &KernelCx<'_>) -> Computed {
        let x = cx.tensor(0)?;
        let (s, dims) = (cx.opt_ints(1)?, cx.opt_ints(2)?);
        let rank = x.rank() as i64;
        if let Some(&dim) = dims.as_ref().and_then(|dims| dims.first()).filter(|_| rank == 0) {
            return Err(KernelError::input(format!(
                "Dimension specified as {dim} but tensor has no dimensions"
            )));
        }
        let dims: Vec<i64> = match (&dims, &s) {
            (Some(dims), _) => {
                dims.iter().map(|&d| existing(x, d).map(|d| d as i64)).collect::<Result<_, _>>()?
            }
            (None, Some(s)) if s.len() as i64 > rank => {
                return Err(KernelError::input(format!(
                    "Got shape with {} values but input tensor only has {rank} dimensions.",
                    s.len()
                )));
            }
            (None, Some(s)) => (rank - s.len() as i64..rank).collect(),
            (None, None) => (0..rank).collect(),
        };
        if (1..dims.len()).any(|i| dims[..i].contains(&dims[i])) {
            return Err(KernelError::input("FFT dims must be unique"));
        }
        if s.as_ref().is_some_and(|s| s.len() != dims.len()) {
            return Err(KernelError::input("When given, dim and shape arguments must have the same length"));
        }
        if dims.is_empty() && self.sides != FftTypes::Complex {
            return Err(KernelError::input(format!("{} must transform at least one axis", self.name)));
        }
        let mut sizes = Vec::with_capacity(dims.len());
        for (i, &d) in dims.iter().enumerate() {
            let own = x.sizes()[d as usize];
            let last = i + 1 == dims.len();
            let own = if last && self.sides == FftTypes::RealOut { 2 * (own - 1) } else { own };
            let requested = s.as_ref().map(|s| s[i]).filter(|&n| n != -1);
            sizes.push(points(requested.unwrap_or(own))?);
        }
        self.run(x, &Lengths { dims, sizes }, cx.opt_string(3)?.map(|s| s.as_bytes()))
    }

    fn run(self, x: &Tensor, lengths: &Lengths, norm: Option<&[u8]>) -> Computed {
        let dtype = complex_dtype(x)?;
        let total = lengths.sizes.iter().fold(1_usize, |all, &n| all.saturating_mul(n));
        if lengths.dims.is_empty() {
            return Ok(x.cast_copy(dtype)?);
        }
        let scale = scale(norm, self.inverse, total)?;
        let kept = |d: &usize| !lengths.dims.contains(&(*d as i64));
        if (0..x.rank()).filter(kept).any(|d| x.sizes()[d] == 0) {
            return Err(KernelError::input(format!(
                "{}: there is no configuration for zero transforms",
                self.name
            )));
        }
        if self.sides == FftTypes::RealIn && x.dtype().is_complex() {
            return Err(KernelError::input(format!(
                "{} expects a real input tensor, but got {}",
                self.name,
                x.dtype().ir_name()
            )));
        }
        // The inverse Hermitian transform is the conjugate of a real one, so its exponent is positive.
        let inverse = match self.sides {
            FftTypes::Complex => self.inverse,
            FftTypes::RealIn => self.hermitian,
            FftTypes::RealOut => !self.hermitian,
        };
        let kinds = [FftKind { inverse: self.inverse, scale: 1.0 }, FftKind { inverse, scale }];
        let chain = Chain { sides: self.sides, kinds, onesided: true, dtype };
        chain.run(x, lengths, &self.order(x, lengths)?)
    }

    /// Returns the order of dimensions in memory for the result.
    fn order(self, x: &Tensor, lengths: &Lengths) -> Result<Order, KernelError> {
        let dtype = complex_dtype(x)?;
        let last = lengths.dims.len() - 1;
        // Real input is read without a copy, except by complex transforms over several dimensions. A Hermitian
        // transform begins with a conjugated copy.
        let real = self.sides == FftTypes::RealIn || self.sides == FftTypes::Complex && last == 0;
        let conjugated = self.hermitian && self.sides == FftTypes::RealOut && last == 0;
        let read = if real && !x.dtype().is_complex() { dtype.to_real() } else { dtype };
        let sizes = lengths.dims.iter().zip(&lengths.sizes).enumerate().map(|(i, (&d, &n))| {
            (d, if i == last && self.sides == FftTypes::RealOut { n / 2 + 1 } else { n } as i64)
        });
        let strides = strides_read(x, conjugated || x.dtype() != read, sizes)?;
        let (others, end) = lengths.dims.split_at(last);
        Ok(match self.sides {
            // The inverse Hermitian transform begins with its last dimension alone.
            FftTypes::RealIn if self.hermitian => {
                Order::after(&strides, &[Step::free(end), Step::free(others)])
            }
            sides => Order::of(sides, &strides, &lengths.dims),
        })
    }
}

const fn transform(name: &'static str, sides: FftTypes, inverse: bool, hermitian: bool) -> Transform {
    Transform { name, sides, inverse, hermitian }
}

const TRANSFORMS: &[(&str, &str, Transform)] = &[
    ("fft", "The discrete Fourier transform", transform("fft", FftTypes::Complex, false, false)),
    ("ifft", "Its inverse", transform("ifft", FftTypes::Complex, true, false)),
    (
        "rfft",
        "Of real numbers, without the half that is conjugate",
        transform("rfft", FftTypes::RealIn, false, false),
    ),
    ("irfft", "The inverse of that, to real numbers", transform("irfft", FftTypes::RealOut, true, false)),
    (
        "hfft",
        "Of numbers conjugate about zero, to real ones",
        transform("hfft", FftTypes::RealOut, false, true),
    ),
    ("ihfft", "The inverse of that, of real numbers", transform("ihfft", FftTypes::RealIn, true, true)),
];

fn facts(d: OpDef, sides: FftTypes) -> OpDef {
    let dtype = match sides {
        FftTypes::RealOut => Dtype::from(|cx| cx.dtype(0).map(|d| to_float(d).to_complex().to_real())),
        _ => Dtype::from(|cx| cx.dtype(0).map(|d| to_float(d).to_complex())),
    };
    let sample = Sample::args(|g| {
        let sizes = [g.int(2, 4), g.int(2, 5)];
        let kind = *g.pick(sample::FLOATS);
        vec![IValue::Tensor(sample::tensor(g, &sizes, kind, &ElementDistribution::default()))]
    });
    d.with(dtype).with(sample.tolerance(1e-4, 1e-5))
}

/// Returns the size of the nonredundant half, including the middle: the other numbers are conjugates.
fn half(cx: &mut ShapeCx<'_>, n: Dim) -> Dim {
    let half = cx.symbols.floor_div(n, Dim::Known(2));
    cx.symbols.add(half, Dim::Known(1))
}

/// Returns the size of a transformed dimension of `size`, for `requested` points (default: the size). `last` is the
/// dimension that converts between real and complex.
fn transformed(cx: &mut ShapeCx<'_>, sides: FftTypes, size: Dim, requested: Option<Dim>, last: bool) -> Dim {
    match sides {
        FftTypes::RealIn if last => half(cx, requested.unwrap_or(size)),
        FftTypes::RealOut if last => requested.unwrap_or_else(|| {
            let inner = cx.symbols.sub(size, Dim::Known(1));
            cx.symbols.mul(inner, Dim::Known(2))
        }),
        _ => requested.unwrap_or(size),
    }
}

/// Shape of a transform over one dimension: `(self, n, dim, norm)`.
fn shape_over_one(sides: FftTypes) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let mut dims = cx.dims_or_fresh(0)?;
        let at = cx.wrap(2, dims.len());
        let (Some(at), Some(default)) = (at.filter(|&at| at < dims.len()), cx.is_none(1)) else {
            return Some(Dims::from_elem(Dim::Unknown, dims.len()));
        };
        let requested = (!default).then(|| cx.number(1));
        dims[at] = transformed(cx, sides, dims[at], requested, true);
        Some(dims)
    })
}

/// Shape of a transform over several dimensions: `(self, s, dim, norm)`.
fn shape_over_many(sides: FftTypes) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let mut dims = cx.dims_or_fresh(0)?;
        let rank = dims.len();
        let Some((which, requested)) = lengths(cx, rank) else {
            return Some(Dims::from_elem(Dim::Unknown, rank));
        };
        for (i, &at) in which.iter().enumerate() {
            let requested = requested.get(i).copied().filter(|&n| n != Dim::Known(-1));
            // -1 means the size of the dimension.
            let requested = requested.map(|n| if cx.symbols.range(n).min < 0 { Dim::Unknown } else { n });
            *dims.get_mut(at)? = transformed(cx, sides, *dims.get(at)?, requested, i + 1 == which.len());
        }
        Some(dims)
    })
}

/// Returns the dimensions from arguments 1 (lengths) and 2 (dimensions), and the lengths if they are given.
fn lengths(cx: &ShapeCx<'_>, rank: usize) -> Option<(Vec<usize>, Dims)> {
    let requested = if cx.is_none(1)? { Dims::new() } else { cx.ints(1)? };
    let which = match (cx.is_none(2)?, cx.is_none(1)?) {
        (false, _) => cx.known_ints(2)?.iter().map(|&d| wrap(d, rank)).collect::<Option<_>>()?,
        (true, false) => (rank.checked_sub(requested.len())?..rank).collect(),
        (true, true) => (0..rank).collect(),
    };
    Some((which, requested))
}

fn transforms() -> Vec<OpDef> {
    let mut defs = Vec::new();
    for &(name, _, t) in TRANSFORMS {
        let doc = "A discrete Fourier transform over one dimension.";
        let one = format!("fft_{name}");
        let known = move |d| facts(d, t.sides).with(shape_over_one(t.sides));
        defs.extend(op(&one, "", doc).facts(known).one(move |cx| t.over_one(cx)));
        let doc = "A discrete Fourier transform over several dimensions.";
        let many = format!("fft_{name}2 fft_{name}n");
        let known = move |d| facts(d, t.sides).with(shape_over_many(t.sides));
        defs.extend(op(&many, "", doc).facts(known).one(move |cx| t.over_many(cx)));
    }
    defs
}

/// Returns the frequencies of a transform's results: `(n, d, dtype, layout, device, pin_memory)`.
fn frequencies(cx: &KernelCx<'_>, onesided: bool) -> Computed {
    let (n, step) = (cx.int(0)?, cx.float(1)?);
    if n < 0 {
        return Err(KernelError::input(format!("Trying to create tensor with negative dimension {n}")));
    }
    let dtype = cx.opt_dtype(2)?.unwrap_or(DEFAULT_FLOAT);
    flambeau_tensor::check_budget((n as usize).saturating_mul(8))?;
    let unit = 1.0 / (n as f64 * step);
    let count = if onesided { n / 2 + 1 } else { n };
    let at = |k: i64| if onesided || k < (n + 1) / 2 { k } else { k - n };
    let values: Vec<f64> = (0..count).map(|k| at(k) as f64 * unit).collect();
    Ok(Tensor::from_slice(&values, &[count])?.to_dtype(dtype)?)
}

/// Rotates dimensions by half of their length (`fftshift`, `ifftshift`).
fn shift(cx: &KernelCx<'_>, back: bool) -> Computed {
    let x = cx.tensor(0)?;
    let dims = match cx.opt_ints(1)? {
        Some(dims) => dims.to_vec(),
        None => (0..x.rank() as i64).collect(),
    };
    if dims.is_empty() {
        return Err(KernelError::input("`shifts` required"));
    }
    let by = |&d: &i64| Ok(if back { (x.size(d)? + 1) / 2 } else { x.size(d)? / 2 });
    let shifts: Vec<i64> = dims.iter().map(by).collect::<Result<_, KernelError>>()?;
    rolled(x, &dims, &shifts)
}

pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = transforms();
    defs.extend(low::family());
    for (name, onesided) in [("fft_fftfreq", false), ("fft_rfftfreq", true)] {
        let facts = |d: OpDef| {
            let shape = ResultShapes::dims(move |cx| {
                let n = cx.number(0);
                Some([if onesided { half(cx, n) } else { n }])
            });
            d.with(shape)
                .with(Dtype::named_or(2, Dtype::fixed(DEFAULT_FLOAT)))
                .with(Sample::args(|g| vec![IValue::Int(g.int(1, 9)), IValue::Float(0.5)]))
        };
        let doc = "The frequencies of a transform's results.";
        defs.extend(op(name, "", doc).options_at(2).facts(facts).one(move |cx| frequencies(cx, onesided)));
    }
    for (name, back) in [("fft_fftshift", false), ("fft_ifftshift", true)] {
        let facts = |d: OpDef| {
            d.with(ResultShapes::like(0)).with(Dtype::same_as(0)).with(Sample::tensors(1).floats().rank(1, 3))
        };
        let doc = "Dimensions rotated by half their length: zero frequency moved to the center, or back.";
        defs.extend(op(name, "", doc).facts(facts).one(move |cx| shift(cx, back)));
    }
    defs.extend(short::family());
    defs
}
