//! Comparison of two tensors: bit for bit, as values with NaN equal to itself, or within a tolerance.

use num_complex::Complex;

use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// Returns whether dtypes, sizes and the bits of all elements are equal (strides are not compared).
///
/// # Errors
/// Returns an error if memory is exhausted.
pub fn bitwise_equal(a: &Tensor, b: &Tensor) -> Result<bool> {
    Ok(a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.to_bytes()? == b.to_bytes()?)
}

/// Returns whether dtypes, sizes and values are equal; NaN equals NaN, and -0.0 equals 0.0.
///
/// # Errors
/// Returns an error if memory is exhausted.
pub fn equal_nan(a: &Tensor, b: &Tensor) -> Result<bool> {
    if a.dtype() != b.dtype() || a.sizes() != b.sizes() {
        return Ok(false);
    }
    Ok(mismatch(a, b, 0.0, 0.0)?.is_none())
}

/// Returns whether sizes, dtypes and values are equal by `==` (NaN equals nothing), as PyTorch's `equal`.
///
/// # Errors
/// Returns an error if memory is exhausted.
pub fn equal(a: &Tensor, b: &Tensor) -> Result<bool> {
    if a.sizes() != b.sizes() || a.dtype() != b.dtype() {
        return Ok(false);
    }
    if a.dtype() == DType::C32 {
        return equal(&a.view_as_real()?, &b.view_as_real()?);
    }
    dispatch!(all, a.dtype(), "equal", T => Ok(a.to_vec::<T>()? == b.to_vec::<T>()?))
}

/// Returns whether dtypes and sizes are equal, and every element is within `atol + rtol * |want|`. NaN equals NaN, and
/// an infinity equals itself.
///
/// # Errors
/// Returns an error if memory is exhausted.
pub fn close(got: &Tensor, want: &Tensor, rtol: f64, atol: f64) -> Result<bool> {
    Ok(got.dtype() == want.dtype()
        && got.sizes() == want.sizes()
        && mismatch(got, want, rtol, atol)?.is_none())
}

/// The first pair of elements that are not close, with a summary of all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementMismatch {
    /// Position in row-major order.
    pub position: usize,
    /// Number of pairs that are not close.
    pub count: usize,
    /// The element of `got`, as text.
    pub got: String,
    /// The element of `want`, as text.
    pub want: String,
    /// The largest absolute difference.
    pub max_abs_diff: f64,
}

impl std::fmt::Display for ElementMismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} elements differ, first at {}: got {}, want {}; largest difference {:e}",
            self.count, self.position, self.got, self.want, self.max_abs_diff
        )
    }
}

/// Returns the first pair of elements that is not close, if there is one.
///
/// # Errors
/// Returns [`TensorError::Shape`](crate::TensorError::Shape) if the sizes differ, and an error if memory is exhausted.
pub fn mismatch(got: &Tensor, want: &Tensor, rtol: f64, atol: f64) -> Result<Option<ElementMismatch>> {
    let mut found: Option<ElementMismatch> = None;
    each_pair(got, want, &mut |position, pair| {
        let difference = pair.difference();
        if difference == 0.0 || difference <= atol + rtol * pair.expected_magnitude() {
            return;
        }
        match &mut found {
            Some(found) => {
                found.count += 1;
                found.max_abs_diff = larger(found.max_abs_diff, difference);
            }
            None => {
                found = Some(ElementMismatch {
                    position,
                    count: 1,
                    got: pair.text(true),
                    want: pair.text(false),
                    max_abs_diff: difference,
                });
            }
        }
    })?;
    Ok(found)
}

/// Returns the largest absolute difference: 0 for two NaNs or equal infinities, NaN if only one element is NaN.
///
/// # Errors
/// As for [`mismatch`].
pub fn max_abs_diff(a: &Tensor, b: &Tensor) -> Result<f64> {
    let mut largest = 0.0;
    each_pair(a, b, &mut |_, pair| largest = larger(largest, pair.difference()))?;
    Ok(largest)
}

fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// Two elements: as integers if both are, because large integers are not exact as f64.
enum Pair {
    Ints(i64, i64),
    Numbers(Complex<f64>, Complex<f64>),
}

impl Pair {
    /// Returns 0 for equal values, two NaNs and equal infinities; NaN if only one is NaN.
    fn difference(&self) -> f64 {
        fn part(a: f64, b: f64) -> f64 {
            if a == b || (a.is_nan() && b.is_nan()) { 0.0 } else { (a - b).abs() }
        }
        match *self {
            Pair::Ints(a, b) => a.abs_diff(b) as f64,
            Pair::Numbers(a, b) => {
                let (re, im) = (part(a.re, b.re), part(a.im, b.im));
                if im == 0.0 { re } else { re.hypot(im) }
            }
        }
    }

    fn expected_magnitude(&self) -> f64 {
        match *self {
            Pair::Ints(_, b) => b.unsigned_abs() as f64,
            // An infinite tolerance would accept everything.
            Pair::Numbers(_, b) => Some(b.re.hypot(b.im)).filter(|m| m.is_finite()).unwrap_or(0.0),
        }
    }

    fn text(&self, got: bool) -> String {
        match self {
            Pair::Ints(a, b) => (if got { a } else { b }).to_string(),
            Pair::Numbers(a, b) => {
                let z = if got { a } else { b };
                if z.im == 0.0 { format!("{:e}", z.re) } else { format!("{:e}+{:e}j", z.re, z.im) }
            }
        }
    }
}

fn each_pair(a: &Tensor, b: &Tensor, f: &mut dyn FnMut(usize, Pair)) -> Result<()> {
    // Both in row-major order. Broadcasting or conversion would hide differences.
    if a.sizes() != b.sizes() {
        return Err(crate::error::TensorError::shape(format!(
            "cannot compare sizes {} and {}",
            crate::error::SizesText::from(a.sizes()),
            crate::error::SizesText::from(b.sizes())
        )));
    }
    if a.dtype().is_integral(true) && b.dtype().is_integral(true) {
        let pairs = a.to_vec::<i64>()?.into_iter().zip(b.to_vec::<i64>()?);
        pairs.enumerate().for_each(|(i, (x, y))| f(i, Pair::Ints(x, y)));
    } else {
        let (x, y) = (a.to_vec::<Complex<f64>>()?, b.to_vec::<Complex<f64>>()?);
        x.into_iter().zip(y).enumerate().for_each(|(i, (x, y))| f(i, Pair::Numbers(x, y)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(values: &[f64]) -> Tensor {
        Tensor::from_slice(values, &[values.len() as i64]).unwrap()
    }

    #[test]
    fn special_values() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert!(equal_nan(&t(&[nan, inf, 0.0]), &t(&[nan, inf, -0.0])).unwrap());
        assert!(!bitwise_equal(&t(&[0.0]), &t(&[-0.0])).unwrap());
        assert!(!close(&t(&[inf]), &t(&[-inf]), 0.1, 0.1).unwrap());
        assert!(!close(&t(&[1.0]), &t(&[inf]), 0.1, 0.1).unwrap());
        assert!(!close(&t(&[nan]), &t(&[1.0]), 1.0, 1.0).unwrap());
        assert!(close(&t(&[1.0001]), &t(&[1.0]), 1e-3, 0.0).unwrap());
        assert!(max_abs_diff(&t(&[nan]), &t(&[1.0])).unwrap().is_nan());
        let big = Tensor::from_slice(&[i64::MAX], &[1]).unwrap();
        let less = Tensor::from_slice(&[i64::MAX - 1], &[1]).unwrap();
        assert_eq!(mismatch(&big, &less, 0.0, 0.0).unwrap().unwrap().max_abs_diff, 1.0);
    }
}
