//! Fourier transforms: of one dimension, of two, of any; frequencies and shifts; short-time transforms.
//!
//! Every transform over several dimensions is a chain of transforms over one (`flambeau_tensor::fft`); the last (of
//! real input) or first half (of real output) is the one that makes numbers real or complex.

mod low;
mod order;
mod short;

use crate::shape::rolled;
use crate::support::{Computed, op};
use flambeau_analysis::shape::{Dims, ShapeCx, wrap};
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::sample::{self, Elements};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::fft::{self, FftKind};
use flambeau_tensor::promote::{DEFAULT_FLOAT, to_float};
use flambeau_tensor::{Complex, DType, Tensor, wrap_dim};
use order::{Order, Step, strides_read};

/// What lies on the two sides of a transform.
#[derive(Clone, Copy, PartialEq)]
enum Sides {
    /// Complex numbers on both.
    Complex,
    /// Real numbers to the first half of complex ones.
    RealIn,
    /// The first half of complex numbers to real ones.
    RealOut,
}

/// A transform over some dimensions.
#[derive(Clone, Copy)]
struct Transform {
    name: &'static str,
    sides: Sides,
    inverse: bool,
    /// The Hermitian transforms are the real ones with the directions exchanged.
    hermitian: bool,
}

/// The dtype of complex numbers that a transform of `x` has; halves have none here.
fn complex_dtype(x: &Tensor) -> Result<DType, KernelError> {
    match to_float(x.dtype()) {
        d @ (DType::F16 | DType::BF16) => {
            Err(KernelError::input(format!("Unsupported dtype {}", d.ir_name())))
        }
        d => Ok(d.to_complex()),
    }
}

/// How results are scaled: by nothing, by the length or by its root, depending on the direction.
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

/// Over one dimension, complex to complex, scaled.
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

/// The dimensions of a transform with the lengths transformed.
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

/// A dimension that is there: a tensor without any has none to transform.
fn existing(x: &Tensor, dim: i64) -> Result<usize, KernelError> {
    if x.rank() == 0 {
        let message = format!("Dimension specified as {dim} but tensor has no dimensions");
        return Err(KernelError::new(flambeau_exec::Fault::Input, "IndexError", message));
    }
    Ok(wrap_dim(dim, x.rank())?)
}

/// A transform as a chain of those over one dimension each.
struct Chain {
    sides: Sides,
    /// Of all dimensions but the last one, and of that.
    kinds: [FftKind; 2],
    onesided: bool,
    /// Of the complex numbers.
    dtype: DType,
}

impl Chain {
    fn run(&self, x: &Tensor, lengths: &Lengths, order: &Order) -> Computed {
        let [plain, scaled] = self.kinds;
        let last = lengths.dims.len() - 1;
        let (end, n) = (order.place(lengths.dims[last]), lengths.sizes[last]);
        // Between the steps everything is in f64.
        let (dtype, wide) = (self.dtype, DType::C128);
        let mut t = order.arrange(x)?;
        if self.sides == Sides::RealIn {
            t = real(&t, end, n, scaled, if last == 0 { dtype } else { wide }, self.onesided)?;
        }
        for (i, (&d, &n)) in lengths.dims.iter().zip(&lengths.sizes).take(last).enumerate() {
            let ends = self.sides == Sides::RealIn && i + 1 == last;
            t = complex(&t, order.place(d), n, plain, if ends { dtype } else { wide })?;
        }
        let t = match self.sides {
            Sides::Complex => complex(&t, end, n, scaled, dtype)?,
            Sides::RealIn => t,
            Sides::RealOut => hermitian(&t, end, n, scaled, dtype)?,
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
            Sides::RealOut => 2 * (size - 1),
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
        if dims.is_empty() && self.sides != Sides::Complex {
            return Err(KernelError::input(format!("{} must transform at least one axis", self.name)));
        }
        let mut sizes = Vec::with_capacity(dims.len());
        for (i, &d) in dims.iter().enumerate() {
            let own = x.sizes()[d as usize];
            let last = i + 1 == dims.len();
            let own = if last && self.sides == Sides::RealOut { 2 * (own - 1) } else { own };
            let asked = s.as_ref().map(|s| s[i]).filter(|&n| n != -1);
            sizes.push(points(asked.unwrap_or(own))?);
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
        if self.sides == Sides::RealIn && x.dtype().is_complex() {
            return Err(KernelError::input(format!(
                "{} expects a real input tensor, but got {}",
                self.name,
                x.dtype().ir_name()
            )));
        }
        // The inverse of a Hermitian transform is the conjugate of a real one: the positive exponent.
        let inverse = match self.sides {
            Sides::Complex => self.inverse,
            Sides::RealIn => self.hermitian,
            Sides::RealOut => !self.hermitian,
        };
        let kinds = [FftKind { inverse: self.inverse, scale: 1.0 }, FftKind { inverse, scale }];
        let chain = Chain { sides: self.sides, kinds, onesided: true, dtype };
        chain.run(x, lengths, &self.order(x, lengths)?)
    }

    /// The order in which results lie.
    fn order(self, x: &Tensor, lengths: &Lengths) -> Result<Order, KernelError> {
        let dtype = complex_dtype(x)?;
        let last = lengths.dims.len() - 1;
        // Real numbers are read as they are, except by transforms of complex numbers over several dimensions; the
        // conjugate that a Hermitian transform begins with is a copy.
        let real = self.sides == Sides::RealIn || self.sides == Sides::Complex && last == 0;
        let conjugated = self.hermitian && self.sides == Sides::RealOut && last == 0;
        let read = if real && !x.dtype().is_complex() { dtype.to_real() } else { dtype };
        let sizes = lengths.dims.iter().zip(&lengths.sizes).enumerate().map(|(i, (&d, &n))| {
            (d, if i == last && self.sides == Sides::RealOut { n / 2 + 1 } else { n } as i64)
        });
        let strides = strides_read(x, conjugated || x.dtype() != read, sizes)?;
        let (others, end) = lengths.dims.split_at(last);
        Ok(match self.sides {
            // The inverse of a Hermitian transform begins with its last dimension alone.
            Sides::RealIn if self.hermitian => Order::after(&strides, &[Step::free(end), Step::free(others)]),
            sides => Order::of(sides, &strides, &lengths.dims),
        })
    }
}

const fn transform(name: &'static str, sides: Sides, inverse: bool, hermitian: bool) -> Transform {
    Transform { name, sides, inverse, hermitian }
}

const TRANSFORMS: &[(&str, &str, Transform)] = &[
    ("fft", "The discrete Fourier transform", transform("fft", Sides::Complex, false, false)),
    ("ifft", "Its inverse", transform("ifft", Sides::Complex, true, false)),
    (
        "rfft",
        "Of real numbers, without the half that is conjugate",
        transform("rfft", Sides::RealIn, false, false),
    ),
    ("irfft", "The inverse of that, to real numbers", transform("irfft", Sides::RealOut, true, false)),
    ("hfft", "Of numbers conjugate about zero, to real ones", transform("hfft", Sides::RealOut, false, true)),
    ("ihfft", "The inverse of that, of real numbers", transform("ihfft", Sides::RealIn, true, true)),
];

fn facts(d: OpDef, sides: Sides) -> OpDef {
    let dtype = match sides {
        Sides::RealOut => Dtype::from(|cx| cx.dtype(0).map(|d| to_float(d).to_complex().to_real())),
        _ => Dtype::from(|cx| cx.dtype(0).map(|d| to_float(d).to_complex())),
    };
    let sample = Sample::args(|g| {
        let sizes = [g.int(2, 4), g.int(2, 5)];
        let kind = *g.pick(sample::FLOATS);
        vec![IValue::Tensor(sample::tensor(g, &sizes, kind, &Elements::default()))]
    });
    d.with(dtype).with(sample.tolerance(1e-4, 1e-5))
}

/// Half of a transform's numbers, that in the middle included: the others are conjugate.
fn half(cx: &mut ShapeCx<'_>, n: Dim) -> Dim {
    let half = cx.symbols.floor_div(n, Dim::Known(2));
    cx.symbols.add(half, Dim::Known(1))
}

/// How many numbers a dimension of `size` has after a transform of `asked` points, or as many as there are: `last` is
/// the dimension that makes numbers real or complex.
fn transformed(cx: &mut ShapeCx<'_>, sides: Sides, size: Dim, asked: Option<Dim>, last: bool) -> Dim {
    match sides {
        Sides::RealIn if last => half(cx, asked.unwrap_or(size)),
        Sides::RealOut if last => asked.unwrap_or_else(|| {
            let inner = cx.symbols.sub(size, Dim::Known(1));
            cx.symbols.mul(inner, Dim::Known(2))
        }),
        _ => asked.unwrap_or(size),
    }
}

/// The sizes after a transform over one dimension: `(self, n, dim, norm)`.
fn shape_over_one(sides: Sides) -> Shape {
    Shape::dims(move |cx| {
        let mut dims = cx.take_dims(0)?;
        let at = cx.wrap(2, dims.len());
        let (Some(at), Some(default)) = (at.filter(|&at| at < dims.len()), cx.is_none(1)) else {
            return Some(Dims::from_elem(Dim::Unknown, dims.len()));
        };
        let asked = (!default).then(|| cx.number(1));
        dims[at] = transformed(cx, sides, dims[at], asked, true);
        Some(dims)
    })
}

/// The sizes after a transform over several dimensions: `(self, s, dim, norm)`.
fn shape_over_many(sides: Sides) -> Shape {
    Shape::dims(move |cx| {
        let mut dims = cx.take_dims(0)?;
        let rank = dims.len();
        let Some((which, asked)) = lengths(cx, rank) else {
            return Some(Dims::from_elem(Dim::Unknown, rank));
        };
        for (i, &at) in which.iter().enumerate() {
            let asked = asked.get(i).copied().filter(|&n| n != Dim::Known(-1));
            // What may be -1 may stand for the size.
            let asked = asked.map(|n| if cx.symbols.range(n).min < 0 { Dim::Unknown } else { n });
            *dims.get_mut(at)? = transformed(cx, sides, *dims.get(at)?, asked, i + 1 == which.len());
        }
        Some(dims)
    })
}

/// The dimensions that arguments 1 (lengths) and 2 (dimensions) name, and the lengths if they are given.
fn lengths(cx: &ShapeCx<'_>, rank: usize) -> Option<(Vec<usize>, Dims)> {
    let asked = if cx.is_none(1)? { Dims::new() } else { cx.ints(1)? };
    let which = match (cx.is_none(2)?, cx.is_none(1)?) {
        (false, _) => cx.known_ints(2)?.iter().map(|&d| wrap(d, rank)).collect::<Option<_>>()?,
        (true, false) => (rank.checked_sub(asked.len())?..rank).collect(),
        (true, true) => (0..rank).collect(),
    };
    Some((which, asked))
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

/// The frequencies of a transform's results: `(n, d, dtype, layout, device, pin_memory)`.
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

/// Dimensions turned around by half their length, forth or back.
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
            let shape = Shape::dims(move |cx| {
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
            d.with(Shape::like(0)).with(Dtype::same_as(0)).with(Sample::tensors(1).floats().rank(1, 3))
        };
        let doc = "Dimensions turned by half their length: zero frequency to the middle, or back.";
        defs.extend(op(name, "", doc).facts(facts).one(move |cx| shift(cx, back)));
    }
    defs.extend(short::family());
    defs
}
