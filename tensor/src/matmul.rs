//! Matrix products of any strides, batched and broadcast.
//!
//! Large floating-point products pack both operands into strips ([`packed`]). Complex products are computed from their
//! real and imaginary parts, f16 and bf16 as `f32`. Integers have loops of their own and wrap modulo two to their
//! width. Products that are too small for packing are direct loops ([`direct`]). Large results are split into parts,
//! whose bounds depend on the sizes only, for several threads ([`crate::threads`]).

mod batched;
mod direct;
mod matrix;
mod packed;
mod product;
mod slices;
mod target;
mod tile;
mod vector;

use crate::error::{Result, TensorError};
use crate::layout::Dims;
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::thresholds::Threshold::{self, Length, Product};
use batched::{TinyOperand, batched, tiny};
pub(crate) use matrix::{Matrix, MatrixMut};
pub(crate) use packed::{PackedPanels, StripSource};
pub(crate) use product::{Multiply, tiling};
pub(crate) use slices::{ProductSum, RightOperand, pack_now, prepacked, put_product};
pub(crate) use tile::{Offsets, Side, Tiling};

/// Sizes at which the loops of this module change their method, for tests of the sizes around them.
pub(crate) const THRESHOLDS: &[Threshold] = &[
    Product("matmul/direct.rs TINY", direct::TINY),
    Product("matmul/direct.rs SMALL_CONTIGUOUS", direct::SMALL_CONTIGUOUS),
    Length("matmul/direct.rs ROWS", direct::ROWS),
    Length("matmul/direct.rs FEW_LANES_FROM", direct::FEW_LANES_FROM),
    Length("matmul/direct.rs SEPARATE_LOOPS_FROM", direct::SEPARATE_LOOPS_FROM),
    Length("matmul/direct.rs ROW_TILE_COLUMNS", direct::ROW_TILE_COLUMNS),
    Length("matmul/direct.rs DEPTH", direct::DEPTH),
    Length("matmul/packed.rs DEPTH", packed::DEPTH),
    Length("matmul/packed.rs ROWS", packed::ROWS),
    Length("matmul/packed.rs COLUMNS", packed::COLUMNS),
    Length("matmul/packed.rs PART_MULTIPLE", packed::PART_MULTIPLE),
    Product("matmul/packed.rs PREPACK_WORK", packed::PREPACK_WORK),
    Product("matmul/product.rs PART", product::PART),
];

fn check_dtypes(a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    Err(TensorError::value(format!(
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        a.dtype().ir_name(),
        b.dtype().ir_name()
    )))
}

/// Converts operands of different dtypes, at least one of them without elements, to the dtype of PyTorch's result.
///
/// Products of operands that have elements require equal dtypes. If an operand has none, PyTorch calls no kernel, so it does not
/// check the dtypes; the result has the right operand's dtype. For a product of a vector and a batch of matrices PyTorch exchanges
/// the operands, so the result has the left operand's dtype.
///
/// # Errors
/// Returns an error if both operands have elements, or for ranks for which PyTorch checks the dtypes of empty operands.
#[cold]
fn convert_empty_operands(a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    if a.numel() > 0 && b.numel() > 0 {
        check_dtypes(a, b)?;
    }
    let dtype = match (a.rank(), b.rank()) {
        (1, 3..) => a.dtype(),
        (2.., 1) | (2.., 3..) => b.dtype(),
        _ => return check_dtypes(a, b).map(|()| (a.clone(), b.clone())),
    };
    Ok((a.to_dtype(dtype)?, b.to_dtype(dtype)?))
}

/// Returns the product of two matrices with few multiplications, as [`tiny`].
#[inline]
fn small_product(
    a: &Tensor,
    b: &Tensor,
    start: Option<(&Tensor, Scalar)>,
    factor: Scalar,
) -> Option<Result<Tensor>> {
    tiny(TinyOperand::of(a)?, TinyOperand::of(b)?, start, factor)
}

/// Returns the product of matrices `a` and transposed `b`, plus the bias if given, if it has few multiplications: the
/// same elements as of [`mm`] or [`addmm`] with a view of `b`, without the time for that view.
///
/// Returns `None` for other products, and for operands that [`addmm`] converts or refuses.
#[inline]
pub fn small_transposed_product(a: &Tensor, b: &Tensor, bias: Option<&Tensor>) -> Option<Result<Tensor>> {
    let one = Scalar::Int(1);
    if bias.is_some_and(|bias| bias.dtype() != a.dtype()) {
        return None;
    }
    tiny(TinyOperand::of(a)?, TinyOperand::of(b)?.transposed(), bias.map(|bias| (bias, one)), one)
}

/// Returns the product of two matrices.
///
/// # Errors
/// Returns an error if dtypes differ or are not supported, shapes do not match, or memory is exhausted.
pub fn mm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    check_dtypes(a, b)?;
    if let Some(product) = small_product(a, b, None, Scalar::Int(1)) {
        return product;
    }
    for (name, t) in [("self", a), ("mat2", b)] {
        if t.rank() != 2 {
            return Err(TensorError::shape(format!("{name} must be a matrix")));
        }
    }
    batched(a, b, None, Scalar::Int(1))
}

/// Returns the products of two batches with equal numbers of matrices.
///
/// # Errors
/// As for [`mm`].
pub fn bmm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.dtype() != b.dtype() {
        let (a, b) = convert_empty_operands(a, b)?;
        return bmm(&a, &b);
    }
    for (name, t) in [("batch1", a), ("batch2", b)] {
        if t.rank() != 3 {
            return Err(TensorError::shape(format!("{name} must be a 3D tensor")));
        }
    }
    let (x, y) = (a.sizes(), b.sizes());
    if x[0] != y[0] || x[2] != y[1] {
        return Err(TensorError::shape(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            x[0], x[2], y[0], y[1]
        )));
    }
    batched(a, b, None, Scalar::Int(1))
}

/// Returns the product of a matrix and a vector.
///
/// # Errors
/// As for [`mm`].
pub fn mv(a: &Tensor, v: &Tensor) -> Result<Tensor> {
    if a.dtype() != v.dtype() {
        let (a, v) = convert_empty_operands(a, v)?;
        return mv(&a, &v);
    }
    if a.rank() != 2 || v.rank() != 1 {
        return Err(TensorError::shape(format!(
            "vector + matrix @ vector expected, got 1, {}, {}",
            a.rank(),
            v.rank()
        )));
    }
    if a.sizes()[1] != v.sizes()[0] {
        return Err(TensorError::shape(format!(
            "size mismatch, got input ({}), mat ({}x{}), vec ({})",
            a.sizes()[0],
            a.sizes()[0],
            a.sizes()[1],
            v.sizes()[0]
        )));
    }
    batched(a, &v.unsqueeze(1)?, None, Scalar::Int(1))?.squeeze(&[1])
}

/// Returns the inner product of two vectors.
///
/// # Errors
/// As for [`mm`].
pub fn dot(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.rank() != 1 || b.rank() != 1 {
        return Err(TensorError::shape(format!(
            "1D tensors expected, but got {}D and {}D tensors",
            a.rank(),
            b.rank()
        )));
    }
    if a.dtype() != b.dtype() {
        return Err(TensorError::value(format!(
            "dot : expected both vectors to have same dtype, but found {} and {}",
            a.dtype().ir_name(),
            b.dtype().ir_name()
        )));
    }
    let (n, other) = (a.sizes()[0], b.sizes()[0]);
    if n != other {
        return Err(TensorError::shape(format!(
            "inconsistent tensor size, expected tensor [{n}] and src [{other}] to have the same number of elements, \
             but got {n} and {other} elements respectively"
        )));
    }
    batched(&a.unsqueeze(0)?, &b.unsqueeze(1)?, None, Scalar::Int(1))?.view(&[])
}

/// Returns `beta * bias + alpha * a b`, with the bias broadcast to the result. If `beta` is 0 the bias is ignored,
/// including NaN.
///
/// # Errors
/// As for [`mm`]; also if the bias does not broadcast to the result.
pub fn addmm(bias: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    check_dtypes(a, b)?;
    for (name, t) in [("mat1", a), ("mat2", b)] {
        if t.rank() != 2 {
            return Err(TensorError::shape(format!("{name} must be a matrix, got {}-D tensor", t.rank())));
        }
    }
    add_batched(bias, a, b, beta, alpha)
}

/// As [`addmm`] for batches of matrices.
///
/// # Errors
/// As for [`addmm`].
pub fn baddbmm(bias: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    check_dtypes(a, b)?;
    if a.rank() != 3 || b.rank() != 3 || a.sizes()[0] != b.sizes()[0] {
        return Err(TensorError::shape("batch1 and batch2 must be 3D tensors of the same batch size"));
    }
    add_batched(bias, a, b, beta, alpha)
}

fn add_batched(bias: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    if bias.dtype() != a.dtype() {
        return Err(TensorError::value(format!(
            "self and mat2 must have the same dtype, but got {} and {}",
            bias.dtype().ir_name(),
            a.dtype().ir_name()
        )));
    }
    if let Some(product) = small_product(a, b, Some((bias, beta)), alpha) {
        return product;
    }
    let (ra, rb) = (a.rank(), b.rank());
    let (m, k, n) = (a.sizes()[ra - 2], a.sizes()[ra - 1], b.sizes()[rb - 1]);
    if k != b.sizes()[rb - 2] {
        return Err(TensorError::MatShapes(m, k, b.sizes()[rb - 2], n));
    }
    let mut sizes = Dims::from_slice(&a.sizes()[..ra - 2]);
    sizes.push(m);
    sizes.push(n);
    let expanded = bias.expand(&sizes)?;
    if beta == Scalar::Int(0) {
        return batched(a, b, None, alpha);
    }
    batched(a, b, Some((expanded, beta)), alpha)
}

/// PyTorch's `matmul`: products of vectors, matrices and batches of matrices with broadcast leading dimensions.
///
/// # Errors
/// As for [`mm`]; also if the leading dimensions do not broadcast.
pub fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.dtype() != b.dtype() {
        let (a, b) = convert_empty_operands(a, b)?;
        return matmul(&a, &b);
    }
    match (a.rank(), b.rank()) {
        (0, _) | (_, 0) => Err(TensorError::shape(format!(
            "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
            a.rank(),
            b.rank()
        ))),
        (1, 1) => dot(a, b),
        (2, 1) => mv(a, b),
        (2, 2) => match small_product(a, b, None, Scalar::Int(1)) {
            Some(product) => product,
            None => batched(a, b, None, Scalar::Int(1)),
        },
        (1, _) => batched(&a.unsqueeze(0)?, b, None, Scalar::Int(1))?.squeeze(&[-2]),
        (_, 1) => batched(a, &b.unsqueeze(1)?, None, Scalar::Int(1))?.squeeze(&[-1]),
        (_, 2) => {
            // One large product instead of many small ones with the same right operand.
            let mut sizes = Dims::from_slice(&a.sizes()[..a.rank() - 1]);
            let k = a.sizes()[a.rank() - 1];
            let rows = crate::layout::numel_of(&sizes)?;
            sizes.push(b.sizes()[1]);
            batched(&a.reshape(&[rows, k])?, b, None, Scalar::Int(1))?.view(&sizes)
        }
        _ => batched(a, b, None, Scalar::Int(1)),
    }
}
