//! Linear algebra: factorizations, systems of equations, eigenvalues, norms.
//!
//! Kernels take the matrices of a batch out of a tensor, compute in f64 (`flambeau_tensor::linalg`) and put results
//! back in the tensor's dtype. What PyTorch returns is unique up to the signs of vectors; where LAPACK's conventions
//! decide (Householder vectors, pivots) they are kept.

mod factor;
mod functions;
mod least_squares;
mod norm;
mod solve;
mod spectrum;
mod triangle;

use crate::support::Computed;
use flambeau_analysis::shape::{Dims, ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::sample::{self, Elements};
use flambeau_exec::{Gen, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::linalg::{Field, Matrix};
use flambeau_tensor::{DType, Tensor};

/// What an operator takes of types it cannot compute in, as long as there is no element: PyTorch returns before it looks
/// for a kernel, and only some operators ask for the type first.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Empty {
    /// Nothing.
    Refused,
    /// Floats of less than single precision.
    Halves,
    /// Whatever it is.
    Any,
}

/// The dtype that factorizations of a tensor compute in: `F64` or `C128`, for `dispatch!(wide, …)`.
///
/// # Errors
/// If nothing is computed in the tensor's dtype; of dtypes that `empty` names, only where there are elements.
pub(crate) fn wide_dtype(x: &Tensor, empty: Empty, op: &str) -> Result<DType, KernelError> {
    let dtype = x.dtype();
    let idle = match empty {
        Empty::Refused => false,
        Empty::Halves => x.numel() == 0 && dtype.is_floating(),
        Empty::Any => x.numel() == 0,
    };
    match dtype {
        DType::C64 | DType::C128 => Ok(DType::C128),
        DType::F32 | DType::F64 => Ok(DType::F64),
        _ if idle => Ok(DType::F64),
        other => Err(refuse(op, other)),
    }
}

/// Why a dtype has no linear algebra.
fn refuse(op: &str, dtype: DType) -> KernelError {
    let name = dtype.ir_name();
    KernelError::input(if dtype.is_floating() {
        format!("{op}: Low precision dtypes not supported. Got {name}")
    } else {
        format!("{op}: Expected a floating point or complex tensor as input. Got {name}")
    })
}

/// The sizes of the matrices in the last two dimensions.
fn matrix_sizes(x: &Tensor, op: &str) -> Result<(usize, usize), KernelError> {
    match x.sizes() {
        [.., m, n] => Ok((*m as usize, *n as usize)),
        _ => Err(KernelError::input(format!("{op}: The input tensor A must have at least 2 dimensions."))),
    }
}

/// The size of square matrices.
fn square(x: &Tensor, op: &str) -> Result<usize, KernelError> {
    let (m, n) = matrix_sizes(x, op)?;
    if m != n {
        return Err(KernelError::input(format!(
            "{op}: A must be batches of square matrices, but they are {m} by {n} matrices"
        )));
    }
    Ok(n)
}

/// An error unless there is a row of exchanges for each matrix of factors, one for each of its rows.
fn check_exchanges(packed: &Tensor, pivots: &Tensor, op: &str) -> Result<(), KernelError> {
    if pivots.sizes() == &packed.sizes()[..packed.rank() - 1] {
        return Ok(());
    }
    Err(KernelError::input(format!(
        "{op}: Expected the factors' shape[:-1] and pivots.shape to be the same, but got pivots with shape {:?}",
        pivots.sizes()
    )))
}

/// One integer per matrix, or several in a last dimension.
fn integers(lead: &[i64], width: Option<usize>, values: &[i32]) -> Result<Tensor, KernelError> {
    let mut sizes = lead.to_vec();
    sizes.extend(width.map(|n| n as i64));
    Ok(Tensor::from_slice(values, &sizes)?)
}

/// One number per matrix, or several in a last dimension, in a dtype.
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

/// Which element of a batch an error is about; nothing where there is one matrix.
fn element(lead: &[i64], i: usize) -> String {
    if lead.is_empty() { String::new() } else { format!("(Batch element {i}): ") }
}

/// A batch's sizes and an operand expanded to them.
fn expanded(x: &Tensor, lead: &[i64]) -> Result<Tensor, KernelError> {
    let mut sizes = lead.to_vec();
    sizes.extend(&x.sizes()[x.rank() - 2..]);
    Ok(x.expand(&sizes)?)
}

/// The batch that two operands' matrices broadcast to, and both expanded to it.
fn together(a: &Tensor, b: &Tensor) -> Result<(Vec<i64>, Tensor, Tensor), KernelError> {
    let lead = |x: &Tensor| x.sizes()[..x.rank() - 2].to_vec();
    let all = flambeau_tensor::broadcast_shapes(&lead(a), &lead(b))?.to_vec();
    let (x, y) = (expanded(a, &all)?, expanded(b, &all)?);
    Ok((all, x, y))
}

/// A matrix with the lower triangle of another, or the transposed conjugate of its upper one.
fn lower_of<F: Field>(a: &Matrix<F>, upper: bool) -> Matrix<F> {
    if upper { a.adjoint() } else { a.clone() }
}

/// What is known of one result.
type Known = (Shape, Dtype);

/// States what is known of each result.
fn results<const N: usize>(def: OpDef, all: [Known; N]) -> OpDef {
    let (shapes, dtypes): (Vec<Shape>, Vec<Dtype>) = all.into_iter().unzip();
    def.with(Shape::results(shapes)).with(Dtype::results(dtypes))
}

/// A matrix for each of argument 0, as large.
fn matrix() -> Known {
    (as_large(), Dtype::same_as(0))
}

/// The sizes of argument 0. How matrices lie that are computed column by column, rules don't say.
fn as_large() -> Shape {
    Shape::from(|cx| Some(TensorFact::of_dims(cx.take_dims(0)?)))
}

/// A number for each matrix of argument 0.
fn number(dtype: Dtype) -> Known {
    (Shape::per_matrix(0, |_, _, _| []), dtype)
}

/// A code for each matrix of argument 0: whether and where its factorization failed.
fn code() -> Known {
    number(Dtype::fixed(DType::I32))
}

/// Numbers for each matrix of argument 0, as many as its smaller side.
fn diagonal(dtype: Dtype) -> Known {
    (Shape::per_matrix(0, |cx, m, n| [cx.symbols.min(m, n)]), dtype)
}

/// Matrices that lie column by column.
fn by_columns(x: &Tensor) -> Computed {
    match x.rank() {
        0 | 1 => Ok(x.clone()),
        _ => Ok(x.transpose(-2, -1)?.contiguous()?.transpose(-2, -1)?),
    }
}

/// Numbers for each square matrix of argument 0, as many as its columns.
fn columns(dtype: Dtype) -> Known {
    (Shape::per_matrix(0, |_, _, n| [n]), dtype)
}

/// Whether argument 1 is vectors, one for each matrix of argument 0, rather than matrices.
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

/// The batch that the equations of argument 0 and the right sides of argument 1 broadcast to.
fn batch_of_system(cx: &mut ShapeCx<'_>) -> Option<Dims> {
    let (a, b) = (cx.lead(0, 2)?, cx.lead(1, if is_vector(cx)? { 1 } else { 2 })?);
    cx.broadcast(&[&a, &b])
}

/// The solutions of systems of equations; `rows` says how many unknowns each has.
fn solutions(rows: fn(&ShapeCx<'_>, bool) -> Dim) -> Shape {
    Shape::dims(move |cx| {
        let vector = is_vector(cx)?;
        let mut dims = batch_of_system(cx)?;
        dims.push(rows(cx, vector));
        dims.extend((!vector).then(|| cx.size(1, -1)));
        Some(dims)
    })
}

/// A drawn matrix, symmetric and positive if asked for.
fn drawn(g: &mut Gen<'_>, sizes: &[i64], positive: bool) -> IValue {
    let dtype = *g.pick(sample::FLOATS);
    let x = sample::tensor(g, sizes, dtype, &Elements { lo: -1.0, hi: 1.0, ..Elements::default() });
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

/// Samples of positive matrices of a size.
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
