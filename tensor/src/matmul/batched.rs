//! Products of tensors, batch by batch.
#![allow(unsafe_code, reason = "hands pointers into locked storages to products")]

use std::ops::Range;

use num_complex::Complex;
use smallvec::SmallVec;

use super::packed::{self, Cut, Shape, is_remembered};
use super::product::{Matrix, Multiply, PART, PARTS, Product, Target, product};
use super::tile::Side;
use crate::access::{ReadGuards, ReadThree, start_of};
use crate::create::bytes_of;
use crate::dtype::DType;
use crate::error::{Result, TensorError};
use crate::layout::{Dims, Layout, dims};
use crate::scalar::Scalar;
use crate::storage::Storage;
use crate::tensor::Tensor;
use crate::threads::{self, Apart};

/// The last two dimensions as a matrix.
fn matrix_of<T>(start: *mut u8, layout: &Layout) -> Matrix<T> {
    let rank = layout.rank();
    let strides = layout.strides();
    Matrix { at: start.cast(), rows: strides[rank - 2] as isize, columns: strides[rank - 1] as isize }
}

/// `factor * a b` (+ `keep * start`, if given, with the sizes of the result), batched over broadcast leading dimensions. Both
/// have at least two dimensions and the same dtype.
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
    // SAFETY: a product writes every element, and reads none before.
    let storage = unsafe { Storage::uninit(bytes_of(&layout, a.dtype())?)? };
    // SAFETY: the storage is fresh.
    let start_c = Apart(unsafe { storage.data() });
    let keep = start.as_ref().map_or(Scalar::Int(0), |(_, keep)| *keep);
    let start = start.as_ref().map(|(start, _)| start.meta());
    let guards = match start {
        None => (Some(ReadGuards::new(&am.storage, &bm.storage)), None),
        Some(start) => (None, Some(ReadThree::new([am, bm, start].map(|meta| &meta.storage)))),
    };
    let [start_a, start_b] = [am, bm].map(|meta| Apart(start_of(meta, a.dtype())));
    let z = start.map_or(&layout, |start| &start.layout);
    let start_z = start.map_or(start_c, |start| Apart(start_of(start, a.dtype())));
    let stride_in = |layout: &Layout, d: usize| -> i64 {
        let lead = batch.len() - (layout.rank() - 2);
        if d < lead || layout.sizes()[d - lead] == 1 { 0 } else { layout.strides()[d - lead] }
    };
    let steps: SmallVec<[[i64; 4]; 4]> = (0..batch.len())
        .map(|d| [stride_in(x, d), stride_in(y, d), layout.strides()[d], z.strides()[d]])
        .collect();
    let (m, k, n) = (m as usize, k as usize, n as usize);
    let size = a.dtype().size();
    let products = batch.iter().fold(1usize, |count, size| count.saturating_mul(*size as usize));
    let work = m.saturating_mul(n).saturating_mul(k);
    // Few large products are divided themselves.
    let divided = products < PARTS && work >= 2 * PART;
    let grain = if divided { products } else { (PART / work.max(1)).max(1) };
    let each = |f: &(dyn Fn([*mut u8; 4]) + Sync)| {
        if products == 1 {
            // Whatever their steps are, none is made.
            return f([start_a, start_b, start_c, start_z].map(|start| start.by(0)));
        }
        threads::split(products, grain, |part| {
            walk_batch(&batch, &steps, part, |at| {
                let [i, j, o, s] = at.map(|at| at as isize * size as isize);
                f([start_a.by(i), start_b.by(j), start_c.by(o), start_z.by(s)]);
            });
        });
    };
    if layout.numel() > 0 {
        let multiply_each = multiply_each_of(a.dtype())?;
        let single = (products == 1).then_some([&am.storage, &bm.storage]);
        // SAFETY: operands are locked, positions are within their layouts; the result is fresh and apart.
        unsafe { multiply_each(&each, (m, k, n), [x, y, &layout, z], [keep, factor], single) };
    }
    drop(guards);
    Ok(Tensor::from_parts(storage, a.dtype(), layout))
}

type EachMatrix<'a> = &'a dyn Fn(&(dyn Fn([*mut u8; 4]) + Sync));

/// [`multiply_each`] in some type.
type MultiplyEach =
    unsafe fn(EachMatrix<'_>, (usize, usize, usize), [&Layout; 4], [Scalar; 2], Option<[&Storage; 2]>);

/// That of the type of a dtype that adds and multiplies by itself.
fn multiply_each_of(dtype: DType) -> Result<MultiplyEach> {
    Ok(match dtype {
        DType::F32 => multiply_each::<f32>,
        DType::F64 => multiply_each::<f64>,
        DType::C64 => multiply_each::<Complex<f32>>,
        DType::C128 => multiply_each::<Complex<f64>>,
        DType::U8 => multiply_each::<u8>,
        DType::I8 => multiply_each::<i8>,
        DType::I16 => multiply_each::<i16>,
        DType::I32 => multiply_each::<i32>,
        DType::I64 => multiply_each::<i64>,
        dtype => return Err(TensorError::DType { op: "addmm_impl_cpu_", dtype }),
    })
}

/// The product of every matrix of a batch. Of a single one, operands that were multiplied before may be cut already.
///
/// # Safety
/// `each` gives pointers to matrices of these sizes and layouts, of `T`; the result overlaps no operand. The storages of a
/// single product are locked for reading.
unsafe fn multiply_each<T: Multiply>(
    each: EachMatrix<'_>,
    (m, k, n): (usize, usize, usize),
    [x, y, c, z]: [&Layout; 4],
    [keep, factor]: [Scalar; 2],
    single: Option<[&Storage; 2]>,
) {
    // SAFETY: the caller's word.
    each(&|[i, j, o, s]| unsafe {
        let (a, b, c, start) = (matrix_of(i, x), matrix_of(j, y), matrix_of(o, c), matrix_of(s, z));
        let to = Target { c, start, keep: keep.to(), factor: factor.to() };
        let p = Product::<T> { m, k, n, a, b, to };
        match single {
            Some(storages) if is_remembered(&p) => remembered(p, storages, [x, y]),
            _ => product(p, &Cut::NONE),
        }
    });
}

/// A product of which either operand may be cut already.
///
/// # Safety
/// As [`product`]; the operands are these layouts of these storages, which are locked for reading.
unsafe fn remembered<T: Multiply>(p: Product<T>, storages: [&Storage; 2], layouts: [&Layout; 2]) {
    let kept = |i: usize, side, lanes, m: Matrix<T>| {
        let shape = Shape { side, count: 1, lanes, depth: p.k, steps: [m.rows, m.columns] };
        // SAFETY: the caller's word.
        unsafe { packed::kept(storages[i], layouts[i], shape) }
    };
    let left = kept(0, Side::Left, p.m, p.a);
    let right = kept(1, Side::Right, p.n, p.b.turned());
    let cut = Cut {
        left: left.as_ref().and_then(|all| all.first()),
        right: right.as_ref().and_then(|all| all.first()),
        made: None,
    };
    // SAFETY: the caller's word.
    unsafe { product(p, &cut) };
}

/// Calls `f` with four positions for some of the indices of the batch dimensions.
fn walk_batch(sizes: &[i64], steps: &[[i64; 4]], part: Range<usize>, mut f: impl FnMut([i64; 4])) {
    let mut index: SmallVec<[i64; 4]> = SmallVec::from_elem(0, sizes.len());
    let mut at = [0i64; 4];
    let mut number = part.start as i64;
    for d in (0..sizes.len()).rev() {
        index[d] = number % sizes[d];
        number /= sizes[d];
        (0..4).for_each(|k| at[k] += steps[d][k] * index[d]);
    }
    for _ in part {
        f(at);
        for d in (0..sizes.len()).rev() {
            index[d] += 1;
            (0..4).for_each(|k| at[k] += steps[d][k]);
            if index[d] < sizes[d] {
                break;
            }
            (0..4).for_each(|k| at[k] -= steps[d][k] * sizes[d]);
            index[d] = 0;
        }
    }
}
