//! Reference implementations: each operator's definition, element by element, over arrays of complex f64.
//!
//! References share no code with the kernels except reading the elements of a contiguous tensor. Elements of the
//! fuzzer's exact cases are small integers, so sums and products are exact in f64 and in the kernels' dtypes, in any
//! order.

mod index;
mod product;
mod reduce;
mod window;

use flambeau_ir::value::IValue;
use flambeau_tensor::{Complex, DType, Scalar, Tensor};

pub(super) type Number = Complex<f64>;

/// A row-major array.
#[derive(Clone)]
pub(super) struct Array {
    pub(super) sizes: Vec<usize>,
    pub(super) data: Vec<Number>,
}

impl Array {
    /// Returns the elements of a tensor.
    pub(super) fn of(tensor: &Tensor) -> Option<Array> {
        let sizes = tensor.sizes().iter().map(|&n| n as usize).collect();
        let data = tensor.to_scalars().ok()?.into_iter().map(Scalar::to_complex).collect();
        Some(Array { sizes, data })
    }

    /// Returns an array whose elements are given by a function of the index.
    pub(super) fn from_fn(sizes: &[usize], mut f: impl FnMut(&[usize]) -> Number) -> Array {
        let mut index = vec![0; sizes.len()];
        let count = sizes.iter().product();
        let mut data = Vec::with_capacity(count);
        for _ in 0..count {
            data.push(f(&index));
            for d in (0..sizes.len()).rev() {
                index[d] += 1;
                if index[d] < sizes[d] {
                    break;
                }
                index[d] = 0;
            }
        }
        Array { sizes: sizes.to_vec(), data }
    }

    /// Returns the position of an index in the data.
    pub(super) fn position(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.sizes).fold(0, |at, (i, n)| at * n + i)
    }

    /// Returns the element at an index.
    pub(super) fn at(&self, index: &[usize]) -> Number {
        self.data[self.position(index)]
    }

    /// Returns the element at an index of a shape to which this array broadcasts.
    pub(super) fn broadcast_at(&self, index: &[usize]) -> Number {
        let own = &index[index.len() - self.sizes.len()..];
        let own: Vec<usize> =
            own.iter().zip(&self.sizes).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect();
        self.at(&own)
    }
}

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(super) struct Args<'a>(pub(super) &'a [IValue]);

impl Args<'_> {
    fn tensor(&self, i: usize) -> Option<&Tensor> {
        self.0.get(i)?.as_tensor()
    }

    fn array(&self, i: usize) -> Option<Array> {
        Array::of(self.tensor(i)?)
    }

    /// Returns an optional tensor; the inner `None` means that it is omitted.
    fn optional(&self, i: usize) -> Option<Option<Array>> {
        match self.0.get(i)? {
            IValue::None => Some(None),
            value => Some(Some(Array::of(value.as_tensor()?)?)),
        }
    }

    fn int(&self, i: usize) -> Option<i64> {
        self.0.get(i)?.as_int()
    }

    fn flag(&self, i: usize) -> Option<bool> {
        self.0.get(i)?.as_bool()
    }

    fn number(&self, i: usize) -> Option<f64> {
        Some(self.0.get(i)?.as_scalar()?.to_f64())
    }

    fn ints(&self, i: usize) -> Option<Vec<i64>> {
        match self.0.get(i)? {
            IValue::List(list) => list.to_ints(),
            _ => None,
        }
    }

    /// Returns a dimension, counted from the front.
    fn dim(&self, i: usize, rank: usize) -> Option<usize> {
        let d = self.int(i)?;
        usize::try_from(if d < 0 { d + rank as i64 } else { d }).ok().filter(|&d| d < rank)
    }

    fn is_none(&self, i: usize) -> bool {
        self.0.get(i).is_none_or(IValue::is_none)
    }
}

/// Reference implementation of an operator.
pub(super) struct Reference {
    pub(super) run: fn(Args<'_>) -> Option<Vec<Array>>,
    /// Whether the results of small integers are exact.
    pub(super) exact: bool,
}

/// Returns the reference of an operator, if there is one.
pub(super) fn reference(name: &str) -> Option<Reference> {
    product::reference(name)
        .or_else(|| window::reference(name))
        .or_else(|| reduce::reference(name))
        .or_else(|| index::reference(name))
}

/// Returns how a result differs from that of the reference.
pub(super) fn difference(got: &Tensor, want: &Array, exact: bool) -> Option<String> {
    let sizes: Vec<usize> = got.sizes().iter().map(|&n| n as usize).collect();
    if sizes != want.sizes {
        return Some(format!("sizes are {sizes:?}, the reference's {:?}", want.sizes));
    }
    let dtype = got.dtype();
    let Ok(got) = got.to_scalars() else { return Some("the result cannot be read".to_owned()) };
    let relative = match dtype {
        DType::F64 | DType::C128 => 1e-9,
        DType::F32 | DType::C64 => 2e-4,
        DType::F16 => 1e-2,
        _ => 6e-2,
    };
    let half = matches!(dtype, DType::F16 | DType::BF16);
    let scale = want.data.iter().map(|v| v.norm()).filter(|v| v.is_finite()).fold(1e-2, f64::max);
    for (i, (got, want)) in got.iter().zip(&want.data).enumerate() {
        let same = if dtype.is_integral(true) {
            *got == Scalar::Int(want.re as i64).rounded(dtype)
                || dtype == DType::Bool && got.to_bool() == (want.norm() != 0.0)
        } else {
            let got = got.to_complex();
            let near = |a: f64, b: f64| {
                a == b || a.is_nan() && b.is_nan() || {
                    (!exact || half) && (a - b).abs() <= relative * (b.abs() + scale)
                }
            };
            let overflows = half && want.norm() > 6e4;
            overflows || near(got.re, want.re) && (!dtype.is_complex() || near(got.im, want.im))
        };
        if !same {
            return Some(format!("element {i} of {sizes:?} is {got:?}, the reference's {want}"));
        }
    }
    None
}
