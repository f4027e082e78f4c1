//! Dense linear algebra in f64: factorizations, eigenvalues, and matrix functions.
//!
//! [`batches`] extracts the matrices in the last two dimensions of a tensor, [`map_batch`] maps a function over them, and
//! [`stack_matrices`] writes results to a tensor of the original dtype. Between these steps all values are a [`Matrix`] of a [`Field`].

mod balance;
mod bidiagonal;
mod exponential;
mod field;
mod general;
mod kernels;
mod ldl;
mod qr;
mod rotate;
mod schur;
mod singular;
mod solve;
mod symmetric;

pub use exponential::exponential;
pub use field::{Field, Matrix};
pub use general::eig;
pub use ldl::{Ldl, ldl, ldl_solve};
pub use qr::{Qr, qr};
pub use singular::svd;
pub use solve::{Lu, cholesky, lu, order_of, triangular};
pub use symmetric::eigh;

use crate::budget::check_budget;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::{Dims, numel_of};
use crate::tensor::Tensor;
use crate::threads;
use crate::thresholds::Threshold;

/// Block sizes of the inner loops.
pub(crate) const THRESHOLDS: &[Threshold] = &[
    Threshold::Length("linalg/kernels.rs WIDTH", kernels::WIDTH),
    Threshold::Length("linalg/kernels.rs ROWS", kernels::ROWS),
];

/// Returns the unit roundoff at which iterations on a dtype's matrices stop: that of f64 or of f32.
pub fn precision(dtype: DType) -> f64 {
    let epsilon = match dtype {
        DType::F64 | DType::C128 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    epsilon / 2.0
}

/// Returns the sizes before the last two dimensions, and the matrices.
///
/// # Errors
/// Returns an error if memory is exhausted.
pub fn batches<F: Field>(x: &Tensor) -> Result<(Dims, Vec<Matrix<F>>)> {
    let sizes = x.sizes();
    let batch_rank = sizes.len().saturating_sub(2);
    let extent = |dim: usize| sizes.get(dim).map_or(1, |n| *n as usize);
    let (rows, cols) = (extent(batch_rank), extent(batch_rank + 1));
    let count = numel_of(&sizes[..batch_rank])? as usize;
    let values = x.to_vec::<F>()?;
    let matrix_len = rows * cols;
    let matrix =
        |i: usize| Matrix { rows, cols, data: values[i * matrix_len..(i + 1) * matrix_len].to_vec() };
    Ok((Dims::from_slice(&sizes[..batch_rank]), (0..count).map(matrix).collect()))
}

/// Checks that a batch of matrices fits the budget. Callers check results that can be much larger than the operand, as
/// the square factors of a narrow matrix are: [`Matrix`] allocates without a check.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory) if it does not.
pub fn check_matrices<F: Field>(batch: &[i64], rows: usize, cols: usize) -> Result<()> {
    let count = numel_of(batch)? as usize;
    check_budget(count.saturating_mul(rows).saturating_mul(cols).saturating_mul(size_of::<F>()))
}

/// Applies `f` to the number and the value of each matrix of a batch, and returns the results. Large batches are split
/// among threads.
pub fn map_batch<F: Field, R: Send>(all: &[Matrix<F>], f: impl Fn(usize, &Matrix<F>) -> R + Sync) -> Vec<R> {
    // All matrices have the same size, and a factorization costs at least as much as a product.
    let cost = all.first().map_or(1, |a| a.data.len() * a.rank_bound().max(1));
    threads::map(all.len(), threads::rows(cost), |i| f(i, &all[i]))
}

/// Makes a tensor of matrices of one size, each column-major, as results of factorizations are in PyTorch. `rows` and
/// `cols` are the size for an empty batch.
///
/// # Errors
/// Returns an error if memory is exhausted.
pub fn stack_matrices<F: Field>(
    batch: &[i64],
    (rows, cols): (usize, usize),
    matrices: &[Matrix<F>],
    dtype: DType,
) -> Result<Tensor> {
    let columns =
        matrices.iter().flat_map(|m| (0..cols).flat_map(move |j| (0..rows).map(move |i| m[(i, j)])));
    tensor_of_values(batch, [cols, rows], columns, dtype)?.transpose(-2, -1)
}

/// As [`stack_matrices`], row-major.
///
/// # Errors
/// As for [`stack_matrices`].
pub fn stack_row_major<F: Field>(
    batch: &[i64],
    (rows, cols): (usize, usize),
    matrices: &[Matrix<F>],
    dtype: DType,
) -> Result<Tensor> {
    tensor_of_values(batch, [rows, cols], matrices.iter().flat_map(|m| m.data.iter().copied()), dtype)
}

fn tensor_of_values<F: Field>(
    batch: &[i64],
    inner: [usize; 2],
    values: impl Iterator<Item = F>,
    dtype: DType,
) -> Result<Tensor> {
    let mut sizes = Dims::from_slice(batch);
    sizes.extend(inner.map(|n| n as i64));
    Tensor::from_slice(&values.collect::<Vec<F>>(), &sizes)?.to_dtype(dtype)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{Field, Matrix};
    use num_complex::Complex;

    /// Random elements between -1 and 1.
    pub(crate) fn random<F: Field>(rows: usize, cols: usize, seed: u64) -> Matrix<F> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        Matrix::from_fn(rows, cols, |_, _| F::from_complex(Complex::new(next(), next())))
    }

    /// Asserts that elements are equal to nine places.
    pub(crate) fn close<F: Field>(a: &Matrix<F>, b: &Matrix<F>) {
        assert_eq!((a.rows, a.cols), (b.rows, b.cols));
        for (x, y) in a.data.iter().zip(&b.data) {
            assert!((*x - *y).size() < 1e-9, "{x:?} and {y:?} in\n{a:?}\n{b:?}");
        }
    }
}
