//! Linear algebra: factorizations, linear systems, eigenvalues, norms.
//!
//! Kernels copy the matrices of a batch out of a tensor, compute in f64 (`flambeau_tensor::linalg`) and store results
//! in the tensor's dtype. The vectors of a decomposition are determined up to their signs only; where LAPACK's conventions
//! determine the signs and the order (Householder vectors, pivots), the kernels follow these conventions.

mod factor;
mod functions;
mod least_squares;
mod norm;
mod solve;
mod spectrum;
mod triangle;

use crate::support::Computed;
use flambeau_analysis::shape::{Dims, ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::{self, ElementDistribution};
use flambeau_exec::{Gen, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::linalg::{Field, Matrix};
use flambeau_tensor::{DType, Tensor};

/// Unsupported dtypes that an operator accepts for empty tensors: PyTorch returns before it selects a kernel, and only
/// some operators check the dtype first.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Empty {
    /// None.
    Refused,
    /// f16 and bf16.
    HalfPrecision,
    /// All dtypes.
    Any,
}

/// Returns the dtype in which factorizations of a tensor are computed: `F64` or `C128`, for `dispatch!(wide, …)`.
///
/// # Errors
/// Returns an error for a dtype without linear algebra; for those that `empty` permits, only if there are elements.
pub(crate) fn wide_dtype(x: &Tensor, empty: Empty, op: &str) -> Result<DType, KernelError> {
    let dtype = x.dtype();
    let idle = match empty {
        Empty::Refused => false,
        Empty::HalfPrecision => x.numel() == 0 && dtype.is_floating(),
        Empty::Any => x.numel() == 0,
    };
    match dtype {
        DType::C64 | DType::C128 => Ok(DType::C128),
        DType::F32 | DType::F64 => Ok(DType::F64),
        _ if idle => Ok(DType::F64),
        other => Err(refuse(op, other)),
    }
}

/// Returns the error for a dtype without linear algebra.
fn refuse(op: &str, dtype: DType) -> KernelError {
    let name = dtype.ir_name();
    KernelError::input(if dtype.is_floating() {
        format!("{op}: Low precision dtypes not supported. Got {name}")
    } else {
        format!("{op}: Expected a floating point or complex tensor as input. Got {name}")
    })
}

/// Returns the sizes of the matrices in the last two dimensions.
fn matrix_sizes(x: &Tensor, op: &str) -> Result<(usize, usize), KernelError> {
    match x.sizes() {
        [.., m, n] => Ok((*m as usize, *n as usize)),
        _ => Err(KernelError::input(format!("{op}: The input tensor A must have at least 2 dimensions."))),
    }
}

/// Returns the size of square matrices.
fn square(x: &Tensor, op: &str) -> Result<usize, KernelError> {
    let (m, n) = matrix_sizes(x, op)?;
    if m != n {
        return Err(KernelError::input(format!(
            "{op}: A must be batches of square matrices, but they are {m} by {n} matrices"
        )));
    }
    Ok(n)
}

/// Returns an error unless the pivots have one entry per row of each matrix of factors.
fn check_exchanges(packed: &Tensor, pivots: &Tensor, op: &str) -> Result<(), KernelError> {
    if pivots.sizes() == &packed.sizes()[..packed.rank() - 1] {
        return Ok(());
    }
    Err(KernelError::input(format!(
        "{op}: Expected the factors' shape[:-1] and pivots.shape to be the same, but got pivots with shape {:?}",
        pivots.sizes()
    )))
}

/// Returns a tensor with one integer per matrix, or several in a last dimension.
fn integers(lead: &[i64], width: Option<usize>, values: &[i32]) -> Result<Tensor, KernelError> {
    let mut sizes = lead.to_vec();
    sizes.extend(width.map(|n| n as i64));
    Ok(Tensor::from_slice(values, &sizes)?)
}

/// Returns a tensor with one number per matrix, or several in a last dimension, in a dtype.
fn numbers<F: Field>(
    lead: &[i64],
    width: Option<usize>,
    values: &[F],
    dtype: DType,
) -> Result<Tensor, KernelError> {
    let mut sizes = lead.to_vec();
    sizes.extend(width.map(|n| n as i64));
    Ok(Tensor::from_slice(values, &sizes)?.to_dtype(dtype)?)
}

/// Names the batch element for an error; empty if there is no batch.
fn element(lead: &[i64], i: usize) -> String {
    if lead.is_empty() { String::new() } else { format!("(Batch element {i}): ") }
}

/// Expands an operand to batch sizes.
fn expanded(x: &Tensor, lead: &[i64]) -> Result<Tensor, KernelError> {
    let mut sizes = lead.to_vec();
    sizes.extend(&x.sizes()[x.rank() - 2..]);
    Ok(x.expand(&sizes)?)
}

/// Returns the broadcast batch sizes of two operands, and both expanded to them.
fn together(a: &Tensor, b: &Tensor) -> Result<(Vec<i64>, Tensor, Tensor), KernelError> {
    let lead = |x: &Tensor| x.sizes()[..x.rank() - 2].to_vec();
    let all = flambeau_tensor::broadcast_shapes(&lead(a), &lead(b))?.to_vec();
    let (x, y) = (expanded(a, &all)?, expanded(b, &all)?);
    Ok((all, x, y))
}

/// Returns a matrix with the lower triangle of another, or with the adjoint of its upper triangle.
fn lower_of<F: Field>(a: &Matrix<F>, upper: bool) -> Matrix<F> {
    if upper { a.adjoint() } else { a.clone() }
}

/// Facts of one result.
type Known = (ResultShapes, Dtype);

/// Adds the facts of all results.
fn results<const N: usize>(def: OpDef, all: [Known; N]) -> OpDef {
    let (shapes, dtypes): (Vec<ResultShapes>, Vec<Dtype>) = all.into_iter().unzip();
    def.with(ResultShapes::results(shapes)).with(Dtype::results(dtypes))
}

/// Facts: a matrix of the same size for each one of argument 0.
fn matrix() -> Known {
    (as_large(), Dtype::same_as(0))
}

/// The sizes of argument 0; strides are unknown, because results may be column-major.
fn as_large() -> ResultShapes {
    ResultShapes::from(|cx| Some(TensorFact::of_dims(cx.dims_or_fresh(0)?)))
}

/// Facts: a number for each matrix of argument 0.
fn number(dtype: Dtype) -> Known {
    (ResultShapes::per_matrix(0, |_, _, _| []), dtype)
}

/// Facts: an error code (`info`) for each matrix of argument 0.
fn code() -> Known {
    number(Dtype::fixed(DType::I32))
}

/// Facts: `min(m, n)` numbers for each matrix of argument 0.
fn diagonal(dtype: Dtype) -> Known {
    (ResultShapes::per_matrix(0, |cx, m, n| [cx.symbols.min(m, n)]), dtype)
}

/// Converts matrices to column-major layout.
fn by_columns(x: &Tensor) -> Computed {
    match x.rank() {
        0 | 1 => Ok(x.clone()),
        _ => Ok(x.transpose(-2, -1)?.contiguous()?.transpose(-2, -1)?),
    }
}

/// Facts: a number per column for each square matrix of argument 0.
fn columns(dtype: Dtype) -> Known {
    (ResultShapes::per_matrix(0, |_, _, n| [n]), dtype)
}

/// Whether argument 1 is a batch of vectors instead of matrices.
fn is_vector(cx: &ShapeCx<'_>) -> Option<bool> {
    let (a, b) = (cx.dims(0)?, cx.dims(1)?);
    if b.len() == 1 || b.len() + 1 != a.len() {
        return Some(b.len() == 1);
    }
    let differ = |(x, y): (&Dim, &Dim)| x.known().zip(y.known()).is_some_and(|(x, y)| x != y);
    if a.iter().zip(b).any(differ) {
        return Some(false);
    }
    a.iter().zip(b).all(|(&x, &y)| cx.symbols.same(x, y)).then_some(true)
}

/// Returns the broadcast batch sizes of the matrices in argument 0 and the right sides in argument 1.
fn batch_of_system(cx: &mut ShapeCx<'_>) -> Option<Dims> {
    let (a, b) = (cx.lead(0, 2)?, cx.lead(1, if is_vector(cx)? { 1 } else { 2 })?);
    cx.broadcast(&[&a, &b])
}

/// Shape of the solutions of linear systems; `rows` returns the number of unknowns.
fn solutions(rows: fn(&ShapeCx<'_>, bool) -> Dim) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let vector = is_vector(cx)?;
        let mut dims = batch_of_system(cx)?;
        dims.push(rows(cx, vector));
        dims.extend((!vector).then(|| cx.size(1, -1)));
        Some(dims)
    })
}

/// Draws a matrix; symmetric positive definite if `positive`.
fn drawn(g: &mut Gen<'_>, sizes: &[i64], positive: bool) -> IValue {
    let dtype = *g.pick(sample::FLOATS);
    let x = sample::tensor(
        g,
        sizes,
        dtype,
        &ElementDistribution { lo: -1.0, hi: 1.0, ..ElementDistribution::default() },
    );
    if !positive {
        return IValue::Tensor(x);
    }
    let n = sizes[sizes.len() - 1];
    let made = x.transpose(-2, -1).and_then(|t| flambeau_tensor::matmul::matmul(&x, &t)).and_then(|p| {
        let ones = Tensor::zeros(&[n, n], dtype)?;
        ones.diagonal(0, 0, 1)?.fill_(1.0.into())?;
        flambeau_tensor::loops::binary::<f64, f64, f64>(&p, &ones, |a, b| a + b)?.to_dtype(dtype)
    });
    IValue::Tensor(made.expect("invariant: sample matrices are small and well formed"))
}

/// Samples of matrices; the first is positive definite if `positive`.
fn matrices(sizes: &'static [&'static [i64]], positive: bool) -> Sample {
    Sample::args(move |g| sizes.iter().enumerate().map(|(i, s)| drawn(g, s, positive && i == 0)).collect())
        .tolerance(1e-3, 1e-4)
}

pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = factor::family();
    defs.extend(triangle::family());
    defs.extend(solve::family());
    defs.extend(spectrum::family());
    defs.extend(least_squares::family());
    defs.extend(norm::family());
    defs.extend(functions::family());
    defs
}
