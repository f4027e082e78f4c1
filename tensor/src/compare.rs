//! Whether two tensors are the same: bit for bit, as values with NaN equal to itself, or within a tolerance.

use num_complex::Complex;

use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// Same dtype, sizes and bits of every element (strides do not count).
pub fn bitwise_equal(a: &Tensor, b: &Tensor) -> Result<bool> {
    Ok(a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.to_bytes()? == b.to_bytes()?)
}

/// Same dtype, sizes and values; NaN equals NaN, the zeros equal each other.
pub fn equal_nan(a: &Tensor, b: &Tensor) -> Result<bool> {
    if a.dtype() != b.dtype() || a.sizes() != b.sizes() {
        return Ok(false);
    }
    Ok(mismatch(a, b, 0.0, 0.0)?.is_none())
}

/// Same sizes and values by `==` (NaN equals nothing), as PyTorch's `equal`.
pub fn equal(a: &Tensor, b: &Tensor) -> Result<bool> {
    if a.sizes() != b.sizes() || a.dtype() != b.dtype() {
        return Ok(false);
    }
    if a.dtype() == DType::C32 {
        return equal(&a.view_as_real()?, &b.view_as_real()?);
    }
    dispatch!(all, a.dtype(), "equal", T => Ok(a.to_vec::<T>()? == b.to_vec::<T>()?))
}

/// Same dtype and sizes, and every element within `atol + rtol * |want|`; NaN equals NaN, infinities equal themselves.
pub fn close(got: &Tensor, want: &Tensor, rtol: f64, atol: f64) -> Result<bool> {
    Ok(got.dtype() == want.dtype()
        && got.sizes() == want.sizes()
        && mismatch(got, want, rtol, atol)?.is_none())
}

/// Two elements that are not close enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Place in row-major order.
    pub position: usize,
    /// How many elements mismatch.
    pub count: usize,
    /// The element got, as text.
    pub got: String,
    /// The element wanted, as text.
    pub want: String,
    /// The largest difference.
    pub max_abs_diff: f64,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} elements differ, first at {}: got {}, want {}; largest difference {:e}",
            self.count, self.position, self.got, self.want, self.max_abs_diff
        )
    }
}

/// The first pair that is not close, if any. Sizes are the same.
pub fn mismatch(got: &Tensor, want: &Tensor, rtol: f64, atol: f64) -> Result<Option<Mismatch>> {
    let mut found: Option<Mismatch> = None;
    each_pair(got, want, &mut |position, pair| {
        let difference = pair.difference();
        if difference == 0.0 || difference <= atol + rtol * pair.want_magnitude() {
            return;
        }
        match &mut found {
            Some(found) => {
                found.count += 1;
                found.max_abs_diff = larger(found.max_abs_diff, difference);
            }
            None => {
                found = Some(Mismatch {
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

/// The largest difference of elements: 0 where both are NaN or the same infinity, NaN where one is NaN.
pub fn max_abs_diff(a: &Tensor, b: &Tensor) -> Result<f64> {
    let mut largest = 0.0;
    each_pair(a, b, &mut |_, pair| largest = larger(largest, pair.difference()))?;
    Ok(largest)
}

fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// Two elements, as integers where both are, so that large ones are told apart.
enum Pair {
    Ints(i64, i64),
    Numbers(Complex<f64>, Complex<f64>),
}

impl Pair {
    /// 0 for equal values, NaNs and infinities; NaN where only one is NaN.
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

    fn want_magnitude(&self) -> f64 {
        match *self {
            Pair::Ints(_, b) => b.unsigned_abs() as f64,
            // An infinite bound would let everything pass.
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
    // Both in row-major order; a broadcast or conversion would hide what is compared.
    if a.sizes() != b.sizes() {
        return Err(crate::error::TensorError::shape(format!(
            "cannot compare sizes {} and {}",
            crate::error::Shape::from(a.sizes()),
            crate::error::Shape::from(b.sizes())
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
