//! Reductions over any set of dimensions.
//!
//! A [`Reducer`] defines the start, the step for an element, and the merge of partial results; [`fold`] iterates. Only
//! two kernels over contiguous memory ([`kernel`]) are generic over the reducer. One folds a run into one value, in
//! many lanes that are merged as a tree; the other folds rows into a row of values.
//!
//! Both merge partial results pairwise, so the error of a sum grows with the logarithm of its length. The order depends
//! on shapes only. Threads compute partial results that are merged in a fixed order, so results are the same on every
//! machine and for any number of threads. Sums of f16 and bf16 are accumulated in `f32`, sums of integers in `i64`.

mod arg;
mod kernel;
mod walk;

use crate::access;
use crate::dispatch;
use crate::dtype::{Category, DType};
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::{Dims, wrap_dim};
use crate::loops;
use crate::math::Real;
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::thresholds::Threshold::{self, Length};

pub use arg::{argmax, argmin, max_dim, min_dim};
pub use walk::fold;

/// Sizes at which the loops of this module change their method, for tests of the sizes around them.
pub(crate) const THRESHOLDS: &[Threshold] = &[
    Length("reduce/kernel.rs CHUNK", kernel::CHUNK),
    Length("reduce/kernel.rs SHORT_ROW", kernel::SHORT_ROW),
    Length("reduce/kernel.rs COLUMNS", kernel::COLUMNS),
    Length("reduce/walk.rs BLOCK", walk::BLOCK),
    Length("reduce/walk.rs ROWS", walk::ROWS),
    Length("reduce/walk.rs AT_ONCE", walk::AT_ONCE),
    Length("reduce/walk.rs MANY", walk::MANY),
    Length("reduce/arg.rs BLOCK", arg::BLOCK),
];

/// The operations of a reduction. Merging must be associative, or nearly so, as the addition of floats is.
pub trait Reducer<T: Element>: Copy + Sync {
    /// The running result.
    type Acc: Copy + Send + Sync;
    /// Returns the result of no elements.
    fn identity(self) -> Self::Acc;
    /// Returns the running result with one more element.
    fn step(self, acc: Self::Acc, x: T) -> Self::Acc;
    /// Merges two partial results.
    fn merge(self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

/// A reducer whose running result is an element: an identity and a binary function.
#[derive(Clone, Copy)]
pub struct Binary<T, F> {
    /// The result of no elements.
    pub identity: T,
    /// The function.
    pub f: F,
}

impl<T: Element, F: Fn(T, T) -> T + Copy + Sync> Reducer<T> for Binary<T, F> {
    type Acc = T;

    #[inline(always)]
    fn identity(self) -> T {
        self.identity
    }
    #[inline(always)]
    fn step(self, acc: T, x: T) -> T {
        (self.f)(acc, x)
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        (self.f)(a, b)
    }
}

/// Returns dimensions as a bit mask; all of them if none is given.
///
/// # Errors
/// Returns an error if a dimension is out of range or given twice.
pub fn dim_mask(dims: Option<&[i64]>, rank: usize) -> Result<u64> {
    let all = if rank == 64 { u64::MAX } else { (1 << rank) - 1 };
    let Some(dims) = dims.filter(|dims| !dims.is_empty()) else {
        return Ok(all);
    };
    let mut mask = 0u64;
    for &dim in dims {
        let d = wrap_dim(dim, rank)?;
        if mask >> d & 1 == 1 {
            return Err(TensorError::shape(format!("dim {d} appears multiple times in the list of dims")));
        }
        mask |= 1 << d;
    }
    Ok(mask & all)
}

/// Returns the sizes after a reduction.
pub fn reduced_sizes(sizes: &[i64], mask: u64, keepdim: bool) -> Dims {
    let mut out = Dims::new();
    for (d, &size) in sizes.iter().enumerate() {
        match (mask >> d & 1 == 1, keepdim) {
            (true, true) => out.push(1),
            (true, false) => {}
            (false, _) => out.push(size),
        }
    }
    out
}

/// Returns the number of elements per result.
fn count(x: &Tensor, mask: u64) -> i64 {
    x.sizes().iter().enumerate().filter(|(d, _)| mask >> d & 1 == 1).map(|(_, size)| *size).product()
}

/// Returns the dtype of sums and products of a dtype: integers become `int64`.
pub fn sum_dtype(dtype: DType) -> DType {
    if dtype.is_integral(true) { DType::I64 } else { dtype }
}

/// Returns the dtype in which sums of a dtype are accumulated.
fn acc_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => sum_dtype(other),
    }
}

/// Returns the sum in a result dtype (`None`: [`sum_dtype`] of the input's).
///
/// # Errors
/// Returns an error if `dims` is invalid ([`dim_mask`]), the dtype is not supported, or memory is exhausted.
pub fn sum(x: &Tensor, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| sum_dtype(x.dtype()));
    let mask = dim_mask(dims, x.rank())?;
    match acc_dtype(dtype) {
        DType::F32 => fold(x, mask, keepdim, add::<f32>(|a, b| a + b), |v| v),
        DType::F64 => fold(x, mask, keepdim, add::<f64>(|a, b| a + b), |v| v),
        DType::C64 => fold(x, mask, keepdim, add::<crate::Complex<f32>>(|a, b| a + b), |v| v),
        DType::C128 => fold(x, mask, keepdim, add::<crate::Complex<f64>>(|a, b| a + b), |v| v),
        _ => fold(x, mask, keepdim, add::<i64>(i64::wrapping_add), |v| v),
    }?
    .into_dtype(dtype)
}

fn add<T: Element>(f: impl Fn(T, T) -> T + Copy + Sync) -> Binary<T, impl Fn(T, T) -> T + Copy + Sync> {
    Binary { identity: T::ZERO, f }
}

/// Returns the product in a result dtype (`None`: [`sum_dtype`] of the input's).
///
/// # Errors
/// As for [`sum`].
pub fn prod(x: &Tensor, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| sum_dtype(x.dtype()));
    let mask = dim_mask(dims, x.rank())?;
    fn times<T: Element>(f: impl Fn(T, T) -> T + Copy + Sync) -> Binary<T, impl Fn(T, T) -> T + Copy + Sync> {
        Binary { identity: T::ONE, f }
    }
    match acc_dtype(dtype) {
        DType::F32 => fold(x, mask, keepdim, times::<f32>(|a, b| a * b), |v| v),
        DType::F64 => fold(x, mask, keepdim, times::<f64>(|a, b| a * b), |v| v),
        DType::C64 => fold(x, mask, keepdim, times::<crate::Complex<f32>>(|a, b| a * b), |v| v),
        DType::C128 => fold(x, mask, keepdim, times::<crate::Complex<f64>>(|a, b| a * b), |v| v),
        _ => fold(x, mask, keepdim, times::<i64>(i64::wrapping_mul), |v| v),
    }?
    .into_dtype(dtype)
}

/// Returns the mean; the input's dtype, or the requested one, is floating or complex.
///
/// # Errors
/// As for [`sum`]; also if the dtype is an integer type.
pub fn mean(x: &Tensor, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let which = if dtype.is_some() { "Optional" } else { "Input" };
    let dtype = dtype.unwrap_or(x.dtype());
    let mask = dim_mask(dims, x.rank())?;
    let n = count(x, mask) as f64;
    match acc_dtype(dtype) {
        DType::F32 => fold(x, mask, keepdim, add::<f32>(|a, b| a + b), |v| v / n as f32),
        DType::F64 => fold(x, mask, keepdim, add::<f64>(|a, b| a + b), |v| v / n),
        DType::C64 => fold(x, mask, keepdim, add::<crate::Complex<f32>>(|a, b| a + b), |v| v / n as f32),
        DType::C128 => fold(x, mask, keepdim, add::<crate::Complex<f64>>(|a, b| a + b), |v| v / n),
        _ => Err(TensorError::value(format!(
            "mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. \
             Got: {}",
            dtype.ir_name()
        ))),
    }?
    .into_dtype(dtype)
}

/// Returns an error if a reduction without an identity has no elements, or reduces an empty dimension.
fn check_not_empty(op: &'static str, x: &Tensor, dims: Option<&[i64]>) -> Result<()> {
    if x.numel() > 0 {
        return Ok(());
    }
    let Some(dims) = dims.filter(|dims| !dims.is_empty()) else {
        return Err(TensorError::value(format!(
            "{op}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with \
             the 'dim' argument."
        )));
    };
    for &dim in dims {
        if x.sizes().get(wrap_dim(dim, x.rank())?) == Some(&0) {
            return Err(TensorError::value(format!(
                "{op}(): Expected reduction dim {dim} to have non-zero size."
            )));
        }
    }
    Ok(())
}

/// Returns the largest elements; NaN takes precedence.
///
/// # Errors
/// As for [`sum`]; also if there are no elements.
pub fn amax(x: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    extreme("amax", x, dims, keepdim, true)
}

/// Returns the smallest elements; NaN takes precedence.
///
/// # Errors
/// As for [`amax`].
pub fn amin(x: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    extreme("amin", x, dims, keepdim, false)
}

fn extreme(
    op: &'static str,
    x: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    largest: bool,
) -> Result<Tensor> {
    let mask = dim_mask(dims, x.rank())?;
    check_not_empty(op, x, dims)?;
    fn floats<T: Real>(x: &Tensor, mask: u64, keepdim: bool, largest: bool) -> Result<Tensor> {
        // A comparison with NaN is false, so a running NaN stays; a new NaN is inserted by `or_nan`.
        let found = if largest {
            let f = |a: T, b: T| if b > a { b } else { a }.or_nan(b.is_nan());
            fold(x, mask, keepdim, Binary { identity: -T::INFINITY, f }, |v| v)?
        } else {
            let f = |a: T, b: T| if b < a { b } else { a }.or_nan(b.is_nan());
            fold(x, mask, keepdim, Binary { identity: T::INFINITY, f }, |v| v)?
        };
        let may_be_other_zero = |v: &T| *v == T::ZERO && v.to_f64().is_sign_negative() == largest;
        let has_ambiguous_zero = access::read::<T, _>(&found, |view| {
            view.data().iter().any(|raw| may_be_other_zero(&T::from_raw(*raw)))
        })?;
        if has_ambiguous_zero { order_zeros(x, &found, mask, keepdim, largest) } else { Ok(found) }
    }
    match (x.dtype(), x.dtype().category()) {
        (DType::F64, _) => floats::<f64>(x, mask, keepdim, largest),
        (_, Category::Floating) => floats::<f32>(x, mask, keepdim, largest)?.into_dtype(x.dtype()),
        (_, Category::Integral | Category::Bool) => {
            extreme_int(x, mask, keepdim, largest)?.to_dtype(x.dtype())
        }
        (dtype, Category::Complex) => Err(TensorError::DType { op, dtype }),
    }
}

fn extreme_int(x: &Tensor, mask: u64, keepdim: bool, largest: bool) -> Result<Tensor> {
    if largest {
        fold(x, mask, keepdim, Binary { identity: i64::MIN, f: |a: i64, b: i64| a.max(b) }, |v| v)
    } else {
        fold(x, mask, keepdim, Binary { identity: i64::MAX, f: |a: i64, b: i64| a.min(b) }, |v| v)
    }
}

/// Returns the largest or smallest elements `found` of `x` with 0 larger than -0: which one of several zeros was found depends on
/// the order of comparisons, and so on strides. Takes a second reduction, of the bits of all elements.
///
/// Read as integers, -0 is the least, other negative numbers are negative, and 0 is zero. So if the largest number is -0, there is a 0
/// exactly if the largest integer is zero; if the smallest number is 0, there is a -0 exactly if the smallest integer is the least.
fn order_zeros(x: &Tensor, found: &Tensor, mask: u64, keepdim: bool, largest: bool) -> Result<Tensor> {
    let bits = |x: &Tensor| {
        let (dtype, negative_zero) = match x.dtype().size() {
            2 => (DType::I16, i64::from(i16::MIN)),
            4 => (DType::I32, i64::from(i32::MIN)),
            _ => (DType::I64, i64::MIN),
        };
        Ok::<_, TensorError>((
            x.view_dtype(dtype)?,
            if largest { [negative_zero, 0] } else { [0, negative_zero] },
        ))
    };
    let (found_bits, [found_zero, replacement]) = bits(found)?;
    let (all_bits, [_, other_zero]) = bits(x)?;
    let extremes = extreme_int(&all_bits, mask, keepdim, largest)?;
    let ordered = loops::binary(&found_bits, &extremes, move |found: i64, extreme: i64| {
        if found == found_zero && extreme == other_zero { replacement } else { found }
    })?;
    ordered.to_dtype(found_bits.dtype())?.view_dtype(found.dtype())
}

/// Returns whether any element is not zero (`uint8` results for `uint8`, as in PyTorch).
///
/// # Errors
/// As for [`sum`].
pub fn any(x: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    let mask = dim_mask(dims, x.rank())?;
    truth(x, fold(x, mask, keepdim, Binary { identity: false, f: |a: bool, b: bool| a | b }, |v| v)?)
}

/// Returns whether all elements are not zero (`uint8` results for `uint8`, as in PyTorch).
///
/// # Errors
/// As for [`sum`].
pub fn all(x: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    let mask = dim_mask(dims, x.rank())?;
    truth(x, fold(x, mask, keepdim, Binary { identity: true, f: |a: bool, b: bool| a & b }, |v| v)?)
}

fn truth(x: &Tensor, result: Tensor) -> Result<Tensor> {
    if x.dtype() == DType::U8 { result.to_dtype(DType::U8) } else { Ok(result) }
}

/// Computes `out[.., i, ..] = f(out[.., i - 1, ..], x[.., i, ..])` along a dimension, from `start`; `A` is the type of
/// the running value.
///
/// # Errors
/// Returns an error if the dimension is out of range or memory is exhausted.
pub fn scan<A: Element>(
    x: &Tensor,
    dim: i64,
    start: A,
    f: impl Fn(A, A) -> A + Copy + Sync,
) -> Result<Tensor> {
    crate::rows::map_rows::<A, A>(x, dim, None, |row, out| {
        let mut acc = start;
        for (x, out) in row.iter().zip(out) {
            acc = f(acc, A::from_raw(*x));
            *out = acc.to_raw();
        }
    })
}

/// Returns the cumulative sums along a dimension, in a dtype.
///
/// # Errors
/// As for [`scan`]; also if the dtype is not supported.
pub fn cumsum(x: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    cumulative(x, dim, dtype, Scalar::Int(0), false)
}

/// Returns the cumulative products along a dimension, in a dtype.
///
/// # Errors
/// As for [`cumsum`].
pub fn cumprod(x: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    cumulative(x, dim, dtype, Scalar::Int(1), true)
}

fn cumulative(x: &Tensor, dim: i64, dtype: Option<DType>, start: Scalar, times: bool) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| sum_dtype(x.dtype()));
    // PyTorch converts every input to the result's dtype first and accumulates f32 in f64.
    let x = &x.to_dtype(dtype)?;
    match (dtype.category(), dtype) {
        (Category::Integral | Category::Bool, _) => {
            let f = if times { i64::wrapping_mul } else { i64::wrapping_add };
            scan::<i64>(x, dim, start.to(), f)
        }
        (_, DType::C64 | DType::C128) => {
            scan::<crate::Complex<f64>>(x, dim, start.to(), move |a, b| if times { a * b } else { a + b })
        }
        _ => scan::<f64>(x, dim, start.to(), move |a, b| if times { a * b } else { a + b }),
    }?
    .into_dtype(dtype)
}

/// Returns the number of elements that are not zero, along some dimensions or all.
///
/// # Errors
/// As for [`sum`].
pub fn count_nonzero(x: &Tensor, dims: Option<&[i64]>) -> Result<Tensor> {
    #[derive(Clone, Copy)]
    struct Count;
    impl<T: Element> Reducer<T> for Count {
        type Acc = i64;
        #[inline(always)]
        fn identity(self) -> i64 {
            0
        }
        #[inline(always)]
        fn step(self, acc: i64, x: T) -> i64 {
            acc + i64::from(x.is_nonzero())
        }
        #[inline(always)]
        fn merge(self, a: i64, b: i64) -> i64 {
            a + b
        }
    }
    let mask = dim_mask(dims, x.rank())?;
    dispatch!(carried_all, x.dtype(), "count_nonzero", T => fold::<T, _, i64>(x, mask, false, Count, |n| n))
}
