//! Indices of the largest and smallest elements. The first of equal elements is chosen, except that NaN takes
//! precedence over everything.

use crate::dispatch;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::lanes;
use crate::layout::wrap_dim;
use crate::rows::map_rows;
use crate::simd::{self, InstructionSets, Multiversioned};
use crate::tensor::Tensor;

/// Elements per block: the extreme value is found block by block, its index by a search afterwards.
pub(super) const BLOCK: usize = 256;

/// Finds the extreme element of a row.
struct Best<'a, T: Element, const LARGEST: bool>(&'a [T::Raw]);

impl<T: Element + PartialOrd, const LARGEST: bool> Multiversioned for Best<'_, T, LARGEST> {
    /// The element's index.
    type Output = usize;
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) -> usize {
        let Best(row) = self;
        let better = |a: T, b: T| if LARGEST { a > b } else { a < b };
        let winner = |a: T, b: T| if better(b, a) { b } else { a };
        #[allow(clippy::eq_op, reason = "detects NaN, which differs from itself, for any type")]
        let is_nan = |x: &T::Raw| T::from_raw(*x) != T::from_raw(*x);
        let Some(first) = row.first() else { return 0 };
        let (mut start, mut value) = (0, T::from_raw(*first));
        for (i, block) in row.chunks(BLOCK).enumerate() {
            if block.iter().fold(false, |any, x| any | is_nan(x)) {
                return i * BLOCK + block.iter().position(is_nan).unwrap_or(0);
            }
            let own = lanes::fold(block, value, |a, x| winner(a, T::from_raw(x)), winner);
            if better(own, value) {
                (start, value) = (i * BLOCK, own);
            }
        }
        start + row[start..].iter().position(|x| T::from_raw(*x) == value).unwrap_or(0)
    }
}

fn arg(op: &'static str, x: &Tensor, dim: Option<i64>, keepdim: bool, largest: bool) -> Result<Tensor> {
    let flat;
    let (x, d) = match dim {
        Some(dim) => (x, wrap_dim(dim, x.rank())? as i64),
        None => {
            flat = x.reshape(&[-1])?;
            (&flat, 0)
        }
    };
    if x.rank() > 0 && x.sizes()[d as usize] == 0 {
        return Err(TensorError::value(format!("{op}(): Expected reduction dim {d} to have non-zero size.")));
    }
    let indices = dispatch!(carried_real_bool, x.dtype(), op, T => map_rows::<T, i64>(x, d, Some(1), |row, out| {
        let best =
            if largest { simd::run(Best::<T, true>(row)) } else { simd::run(Best::<T, false>(row)) };
        out[0] = best as i64;
    }))?;
    if keepdim || x.rank() == 0 { Ok(indices) } else { indices.squeeze(&[d]) }
}

/// Returns the index of the largest element, in the row-major order of all elements or along a dimension.
///
/// # Errors
/// Returns an error if the dimension is out of range, there is no element, or the dtype is not supported.
pub fn argmax(x: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
    check_not_empty("argmax", x, dim)?;
    let result = arg("argmax", x, dim, keepdim, true)?;
    restore_rank(x, dim, keepdim, result)
}

/// Returns the index of the smallest element, in the row-major order of all elements or along a dimension.
///
/// # Errors
/// As for [`argmax`].
pub fn argmin(x: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
    check_not_empty("argmin", x, dim)?;
    let result = arg("argmin", x, dim, keepdim, false)?;
    restore_rank(x, dim, keepdim, result)
}

fn check_not_empty(op: &str, x: &Tensor, dim: Option<i64>) -> Result<()> {
    if dim.is_none() && x.numel() == 0 {
        let message = format!("{op}(): Expected reduction dim to be specified for input.numel() == 0.");
        return Err(TensorError::value(message));
    }
    Ok(())
}

/// Restores the rank for a reduction of all elements with `keepdim`: every dimension of size 1.
fn restore_rank(x: &Tensor, dim: Option<i64>, keepdim: bool, result: Tensor) -> Result<Tensor> {
    match (dim, keepdim) {
        (None, true) => result.reshape(&vec![1; x.rank()]),
        _ => Ok(result),
    }
}

/// Returns the largest elements along a dimension and their indices.
///
/// # Errors
/// As for [`argmax`].
pub fn max_dim(x: &Tensor, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    extreme_dim("max", x, dim, keepdim, true)
}

/// Returns the smallest elements along a dimension and their indices.
///
/// # Errors
/// As for [`argmax`].
pub fn min_dim(x: &Tensor, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    extreme_dim("min", x, dim, keepdim, false)
}

fn extreme_dim(
    op: &'static str,
    x: &Tensor,
    dim: i64,
    keepdim: bool,
    largest: bool,
) -> Result<(Tensor, Tensor)> {
    let indices = arg(op, x, Some(dim), true, largest)?;
    let values = crate::rows::gather(x, wrap_dim(dim, x.rank())?, &indices)?;
    debug_assert_eq!(indices.dtype(), DType::I64);
    if keepdim || x.rank() == 0 {
        return Ok((values, indices));
    }
    Ok((values.squeeze(&[dim])?, indices.squeeze(&[dim])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_give_the_first_of_equals_and_nan_before_all() {
        for n in [1, 7, 255, 256, 257, 600] {
            // Ties of the largest and of the smallest element, with the first of each in different blocks.
            let mut row: Vec<f32> = (0..n).map(|i| ((i * 37) % 101) as f32 - 50.0).collect();
            for (at, value) in [(n / 2, 60.0), (n - 1, 60.0), (n / 3, -60.0), (n - n / 4 - 1, -60.0)] {
                row[at] = value;
            }
            for nan in [None, Some(n / 2), Some(n - 1), Some(0)] {
                if let Some(at) = nan {
                    row[at] = f32::NAN;
                }
                let first = |better: fn(f32, f32) -> bool| {
                    let mut best = 0;
                    for (i, x) in row.iter().enumerate() {
                        if !row[best].is_nan() && (x.is_nan() || better(*x, row[best])) {
                            best = i;
                        }
                    }
                    best as i64
                };
                let wanted = [first(|a, b| a > b), first(|a, b| a < b)];
                let x = Tensor::from_vec::<f32>(row.clone(), &[n as i64]).unwrap();
                let found =
                    [argmax, argmin].map(|f| f(&x, Some(0), false).unwrap().to_vec::<i64>().unwrap()[0]);
                assert_eq!(found, wanted, "{n} elements, NaN at {nan:?}");
            }
        }
    }
}
