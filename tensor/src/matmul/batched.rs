//! Products of tensors, batch by batch.
#![allow(unsafe_code, reason = "writes uninitialized memory of results")]

use std::mem::MaybeUninit;
use std::ops::Range;

use num_complex::Complex;
use smallvec::SmallVec;

use super::direct::TINY;
use super::matrix::{Matrix, MatrixMut};
use super::packed::{self, PackedShape, PrepackedOperands, is_worth_prepacking};
use super::product::{Multiply, PART, PARTS, Product, product, tiny_product};
use super::target::Target;
use super::tile::Side;
use crate::access::{self, Locked, ReadThree};
use crate::dtype::DType;
use crate::error::{Result, TensorError};
use crate::layout::{Dims, Layout, dims};
use crate::scalar::Scalar;
use crate::tensor::{Meta, Tensor};
use crate::threads;

/// Returns `factor * a b`, plus `keep * start` if given, batched over broadcast leading dimensions. Both operands have
/// at least two dimensions and the same dtype; `start` has the sizes of the result.
///
/// # Errors
/// Returns [`TensorError::MatShapes`] if the matrices do not match, and an error if batches do not broadcast or memory
/// is exhausted.
pub(super) fn batched(
    a: &Tensor,
    b: &Tensor,
    start: Option<(Tensor, Scalar)>,
    factor: Scalar,
) -> Result<Tensor> {
    if matches!(a.dtype(), DType::F16 | DType::BF16) {
        let wide = |t: &Tensor| t.to_dtype(DType::F32);
        let start = start.map(|(start, keep)| Ok((wide(&start)?, keep))).transpose()?;
        let out = batched(&wide(a)?, &wide(b)?, start, factor)?;
        return out.to_dtype(a.dtype());
    }
    let (am, bm) = (a.meta(), b.meta());
    let (x, y) = (&am.layout, &bm.layout);
    let (ra, rb) = (x.rank(), y.rank());
    let (m, k, n) = (x.sizes()[ra - 2], x.sizes()[ra - 1], y.sizes()[rb - 1]);
    if y.sizes()[rb - 2] != k {
        return Err(TensorError::MatShapes(m, k, y.sizes()[rb - 2], n));
    }
    let (batch, layout) = if ra.max(rb) == 2 {
        (Dims::new(), Layout::contiguous(&[m, n])?)
    } else {
        let batch = crate::broadcast::broadcast_shapes(&x.sizes()[..ra - 2], &y.sizes()[..rb - 2])?;
        let mut sizes = dims(&batch);
        sizes.push(m);
        sizes.push(n);
        (batch, Layout::contiguous(&sizes)?)
    };
    if layout.numel() == 0 {
        return Tensor::empty(layout.sizes(), a.dtype());
    }
    if k == 0 && start.is_none() {
        return Tensor::zeros(layout.sizes(), a.dtype());
    }
    let multiply = multiply_of(a.dtype())?;
    let keep = start.as_ref().map_or(Scalar::Int(0), |(_, keep)| *keep);
    let start = start.as_ref().map(|(start, _)| start.meta());
    multiply(Batch { a: am, b: bm, start, keep, factor, sizes: [m, k, n].map(|n| n as usize), batch, layout })
}

/// An operand of [`tiny`]: a tensor of two dimensions, with its sizes and steps, possibly exchanged.
pub(super) struct TinyOperand<'a> {
    meta: &'a Meta,
    dtype: DType,
    sizes: [i64; 2],
    steps: [i64; 2],
}

impl<'a> TinyOperand<'a> {
    /// Returns the operand of a tensor; `None` if it is no matrix.
    #[inline(always)]
    pub(super) fn of(tensor: &'a Tensor) -> Option<Self> {
        let meta = tensor.meta();
        let (&[rows, columns], &[down, right]) = (meta.layout.sizes(), meta.layout.strides()) else {
            return None;
        };
        Some(TinyOperand { meta, dtype: tensor.dtype(), sizes: [rows, columns], steps: [down, right] })
    }

    /// Returns the transposed matrix, for which no tensor is made.
    #[inline(always)]
    pub(super) fn transposed(mut self) -> Self {
        self.sizes.reverse();
        self.steps.reverse();
        self
    }

    #[inline(always)]
    fn matrix<T: Multiply>(&self, elements: &'a [T]) -> Matrix<'a, T> {
        Matrix::new(elements, self.sizes.map(|size| size as usize), self.steps.map(|step| step as usize))
    }
}

/// Returns the product of two matrices, as [`batched`], if it has few multiplications; `start` need only broadcast to
/// the result. Such a product takes less time than the preparations for batches, threads and packing.
///
/// Returns `None` for other products, and for operands that [`batched`] converts or refuses.
#[inline]
pub(super) fn tiny(
    a: TinyOperand<'_>,
    b: TinyOperand<'_>,
    start: Option<(&Tensor, Scalar)>,
    factor: Scalar,
) -> Option<Result<Tensor>> {
    let ([m, k], [rows, n]) = (a.sizes, b.sizes);
    let few = |size: i64| (1..=TINY as i64).contains(&size);
    if rows != k || !(few(m) && few(k) && few(n)) || m * k * n > TINY as i64 || a.dtype != b.dtype {
        return None;
    }
    let start = match start {
        None => None,
        Some((tensor, keep)) => {
            let meta = tensor.meta();
            Some((meta, steps_of_broadcast(&meta.layout, [m, n])?, keep))
        }
    };
    match a.dtype {
        DType::F32 => Some(multiply_tiny_f32([a, b], start, factor)),
        DType::F64 => Some(multiply_tiny_f64([a, b], start, factor)),
        _ => None,
    }
}

/// What the result of a small product starts from: a tensor, its steps and its factor.
type Start<'a> = Option<(&'a Meta, [usize; 2], Scalar)>;

// Not generic, so that the kernels of products are not compiled again in crates in which `tiny` is inlined.
fn multiply_tiny_f32(operands: [TinyOperand<'_>; 2], start: Start<'_>, factor: Scalar) -> Result<Tensor> {
    multiply_tiny::<f32>(operands, start, factor)
}

fn multiply_tiny_f64(operands: [TinyOperand<'_>; 2], start: Start<'_>, factor: Scalar) -> Result<Tensor> {
    multiply_tiny::<f64>(operands, start, factor)
}

/// Returns the steps of a tensor that is broadcast to a matrix of these sizes; `None` if it has more dimensions or does
/// not broadcast.
fn steps_of_broadcast(layout: &Layout, to: [i64; 2]) -> Option<[usize; 2]> {
    let mut steps = [0; 2];
    let first = to.len().checked_sub(layout.rank())?;
    for (d, (&size, &stride)) in layout.sizes().iter().zip(layout.strides()).enumerate() {
        match size {
            1 => {}
            size if size == to[first + d] => steps[first + d] = stride as usize,
            _ => return None,
        }
    }
    Some(steps)
}

/// Computes [`tiny`] for a dtype.
fn multiply_tiny<T: Multiply>(
    [a, b]: [TinyOperand<'_>; 2],
    start: Start<'_>,
    factor: Scalar,
) -> Result<Tensor> {
    let guards =
        ReadThree::new([&a.meta.storage, &b.meta.storage, &start.map_or(a.meta, |start| start.0).storage]);
    let left = a.matrix(guards.elements::<T>(a.meta));
    let right = b.matrix(guards.elements::<T>(b.meta));
    let (m, n) = (left.rows(), right.columns());
    let fill = |out: &mut [MaybeUninit<T>]| {
        let c = MatrixMut::of(out, n);
        let to = match start {
            None => Target::fresh(c, factor.to()),
            Some((meta, steps, keep)) => {
                let start = Matrix::new(guards.elements::<T>(meta), [m, n], steps);
                Target::added_to(c, start, keep.to(), factor.to())
            }
        };
        tiny_product(Product::new(left, right, to));
    };
    // SAFETY: a product writes every element of its matrix, which is the whole result.
    unsafe { access::make::<T>(Layout::small_matrix([m, n]), fill) }
}

/// Products of matrices of the same sizes, batch by batch.
struct Batch<'a> {
    a: &'a Meta,
    b: &'a Meta,
    /// The addend, scaled by `keep`, with the sizes of the result.
    start: Option<&'a Meta>,
    keep: Scalar,
    factor: Scalar,
    /// Rows of the left operand, its columns, columns of the right one.
    sizes: [usize; 3],
    /// Leading dimensions of the result, to which those of the operands are broadcast.
    batch: Dims,
    /// Layout of the result, row-major.
    layout: Layout,
}

impl Batch<'_> {
    /// Returns the distance to a tensor's next matrix in a leading dimension of the result, in elements.
    fn step_in(&self, layout: &Layout, d: usize) -> usize {
        let lead = self.batch.len() - (layout.rank() - 2);
        if d < lead || layout.sizes()[d - lead] == 1 { 0 } else { layout.strides()[d - lead] as usize }
    }

    /// Returns these distances for the left operand, the right one and the start.
    fn steps(&self) -> SmallVec<[[usize; 3]; 4]> {
        let start = |d: usize| self.start.map_or(0, |start| self.step_in(&start.layout, d));
        (0..self.batch.len())
            .map(|d| [self.step_in(&self.a.layout, d), self.step_in(&self.b.layout, d), start(d)])
            .collect()
    }
}

/// Returns [`multiply`] for a dtype that is multiplied without conversion.
///
/// # Errors
/// Returns [`TensorError::DType`] for other dtypes.
fn multiply_of(dtype: DType) -> Result<fn(Batch<'_>) -> Result<Tensor>> {
    Ok(match dtype {
        DType::F32 => multiply::<f32>,
        DType::F64 => multiply::<f64>,
        DType::C64 => multiply::<Complex<f32>>,
        DType::C128 => multiply::<Complex<f64>>,
        DType::U8 => multiply::<u8>,
        DType::I8 => multiply::<i8>,
        DType::I16 => multiply::<i16>,
        DType::I32 => multiply::<i32>,
        DType::I64 => multiply::<i64>,
        dtype => return Err(TensorError::DType { op: "addmm_impl_cpu_", dtype }),
    })
}

/// Returns the matrix of a tensor's last two dimensions that begins at element `at`.
fn matrix_at<'a, T>(elements: &'a [T], layout: &Layout, at: usize, sizes: [usize; 2]) -> Matrix<'a, T> {
    let (strides, rank) = (layout.strides(), layout.rank());
    // An empty matrix may begin outside of the elements.
    let from = elements.get(at..).unwrap_or_default();
    Matrix::new(from, sizes, [strides[rank - 2] as usize, strides[rank - 1] as usize])
}

/// Computes all products of a batch. A single product uses prepacked operands if they were multiplied before.
fn multiply<T: Multiply>(p: Batch<'_>) -> Result<Tensor> {
    let guards = ReadThree::new([p.a, p.b, p.start.unwrap_or(p.a)].map(|meta| &meta.storage));
    let [a, b] = [p.a, p.b].map(|meta| guards.elements::<T>(meta));
    let start = p.start.map(|start| (guards.elements::<T>(start), &start.layout));
    let ([m, k, n], keep, factor) = (p.sizes, p.keep.to(), p.factor.to());
    let multiply_one = |[i, j, s]: [usize; 3], c: &mut [MaybeUninit<T>], single: bool| {
        let c = MatrixMut::of(c, n);
        let to = match start {
            None => Target::fresh(c, factor),
            Some((start, layout)) => Target::added_to(c, matrix_at(start, layout, s, [m, n]), keep, factor),
        };
        let left = matrix_at(a, &p.a.layout, i, [m, k]);
        let product_of = Product::new(left, matrix_at(b, &p.b.layout, j, [k, n]), to);
        if single && is_worth_prepacking(&product_of) {
            product_of_prepacked(product_of, &guards, [(p.a, a), (p.b, b)]);
        } else {
            product(product_of, &PrepackedOperands::NONE);
        }
    };
    let products = p.batch.iter().fold(1usize, |count, size| count.saturating_mul(*size as usize));
    let fill = |out: &mut [MaybeUninit<T>]| {
        if products == 1 {
            // The steps are not used for a single product.
            return multiply_one([0; 3], out, true);
        }
        let work = m.saturating_mul(n).saturating_mul(k);
        // A few large products are divided themselves.
        let divided = products < PARTS && work >= 2 * PART;
        let grain = if divided { products } else { (PART / work.max(1)).max(1) };
        let steps = p.steps();
        threads::chunks(out, grain.saturating_mul(m * n), |first, own| {
            let (first, count) = (first / (m * n), own.len() / (m * n));
            let mut own = own.chunks_exact_mut(m * n);
            walk_batch(&p.batch, &steps, first..first + count, &mut |at| {
                if let Some(c) = own.next() {
                    multiply_one(at, c, false);
                }
            });
        });
    };
    // SAFETY: a product writes every element of its matrix, and the matrices of the batch cover the result.
    unsafe { access::make::<T>(p.layout.clone(), fill) }
}

/// Computes a product, with prepacked operands if available. `of` are the operands' tensors, which are locked by
/// `guards`.
fn product_of_prepacked<T: Multiply>(p: Product<'_, T>, guards: &ReadThree<'_>, of: [(&Meta, &[T]); 2]) {
    let prepacked = |i: usize, side, m: Matrix<'_, T>| {
        let steps = [m.row_step(), m.column_step()];
        packed::prepacked(
            guards,
            of[i],
            PackedShape { side, count: 1, lanes: m.rows(), depth: m.columns(), steps },
        )
    };
    let (left, right) = (prepacked(0, Side::Left, p.a()), prepacked(1, Side::Right, p.b().transpose()));
    let prepacked = PrepackedOperands {
        left: left.as_ref().and_then(|all| all.first()),
        right: right.as_ref().and_then(|all| all.first()),
    };
    product(p, &prepacked);
}

/// Calls `f` with the three positions of each batch index in `part`.
fn walk_batch(sizes: &[i64], steps: &[[usize; 3]], part: Range<usize>, f: &mut dyn FnMut([usize; 3])) {
    let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, sizes.len());
    let mut at = [0; 3];
    let mut number = part.start;
    for d in (0..sizes.len()).rev() {
        index[d] = number % sizes[d] as usize;
        number /= sizes[d] as usize;
        (0..3).for_each(|k| at[k] += steps[d][k] * index[d]);
    }
    for _ in part {
        f(at);
        for d in (0..sizes.len()).rev() {
            index[d] += 1;
            (0..3).for_each(|k| at[k] += steps[d][k]);
            if index[d] < sizes[d] as usize {
                break;
            }
            (0..3).for_each(|k| at[k] -= steps[d][k] * sizes[d] as usize);
            index[d] = 0;
        }
    }
}
