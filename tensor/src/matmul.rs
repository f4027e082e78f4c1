//! Matrix products of any strides, batched and broadcast.
//!
//! Large products of floats go to the `gemm` crate (packed panels, registers blocked for the processor found at run
//! time), complex numbers as their parts, bfloat16 as `f32`; integers have a loop of their own, exact modulo two
//! to their width. Products too small to pay for packing are direct loops. Large results are computed in parts that
//! follow from their sizes, by several threads ([`crate::threads`]).
#![allow(unsafe_code, reason = "hands pointers with strides to the gemm crate")]

use std::marker::PhantomData;
use std::ops::Range;

use num_complex::Complex;
use smallvec::SmallVec;

mod direct;

use crate::access::ReadGuards;
use crate::create::bytes_of;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::{Dims, Layout};
use crate::math::Real;
use crate::scalar::Scalar;
use crate::simd;
use crate::storage::Storage;
use crate::tensor::Tensor;
use crate::threads::{self, Apart};
use direct::{Direct, is_small};

/// Multiplications worth a part of a result.
const PART: usize = 1 << 20;
/// Parts of a result at most: each packs the operand that it shares with others by itself.
const PARTS: usize = 8;
/// Rows or columns that a part has at least, and of which it has a multiple: what kernels keep in registers.
const STRIP: usize = 48;

/// A matrix in locked memory: pointer, row step, column step.
#[derive(Clone, Copy)]
struct Matrix<T> {
    at: *mut T,
    rows: isize,
    columns: isize,
}

// SAFETY: threads work on disjoint parts of results while the caller holds the locks.
unsafe impl<T: Send> Send for Matrix<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Matrix<T> {}

impl<T> Matrix<T> {
    fn element(self, i: usize, j: usize) -> *mut T {
        self.at.wrapping_offset(i as isize * self.rows + j as isize * self.columns)
    }
}

/// `c = c * keep + a b * factor` (`c` with contiguous rows) with `a` m by k and `b` k by n. With `keep` 0, `c` is not read.
#[derive(Clone, Copy)]
pub(crate) struct Product<T> {
    m: usize,
    k: usize,
    n: usize,
    a: Matrix<T>,
    b: Matrix<T>,
    c: Matrix<T>,
    keep: T,
    factor: T,
}

/// Types that multiply: how a sum of products grows.
pub(crate) trait Multiply: Element<Raw = Self> {
    /// `self + a * b`.
    fn add_product(self, a: Self, b: Self) -> Self;
    /// `self * b`.
    fn times(self, b: Self) -> Self;
    /// How large products of it are computed: by the `gemm` crate, or by it on the parts; `None`: as small ones.
    ///
    /// The function's matrices must be valid for their sizes, and the result overlap no operand.
    const PACKED: Option<unsafe fn(Product<Self>)>;
}

macro_rules! multiply {
    (float $packed:ident, $sum:ident, $a:ident, $b:ident => $fused:expr; $($type:ty),+) => { $(impl Multiply for $type {
        #[inline(always)]
        fn add_product(self, $a: Self, $b: Self) -> Self {
            let $sum = self;
            $fused
        }
        #[inline(always)]
        fn times(self, b: Self) -> Self {
            self * b
        }
        const PACKED: Option<unsafe fn(Product<Self>)> = Some($packed);
    })+ };
    (int $($type:ty),+) => { $(impl Multiply for $type {
        #[inline(always)]
        fn add_product(self, a: Self, b: Self) -> Self {
            self.wrapping_add(a.wrapping_mul(b))
        }
        #[inline(always)]
        fn times(self, b: Self) -> Self {
            self.wrapping_mul(b)
        }
        const PACKED: Option<unsafe fn(Product<Self>)> = None;
    })+ };
}
multiply!(float packed, sum, a, b => a.mul_add(b, sum); f32, f64);
multiply!(float packed_parts, sum, a, b => sum + a * b; Complex<f32>, Complex<f64>);
multiply!(int u8, i8, i16, i32, i64);

/// # Safety
/// The matrices are valid for their sizes, and the result overlaps no operand.
unsafe fn product<T: Multiply>(p: Product<T>) {
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    match T::PACKED {
        // SAFETY: the caller's word.
        Some(packed) if p.k > 0 && !is_small(&p, work) => unsafe { shared(p, work, packed) },
        _ => simd::run(Direct(p)),
    }
}

/// Splits the longer side of a large result among threads.
///
/// # Safety
/// As [`product`].
unsafe fn shared<T: Copy + Send + Sync>(p: Product<T>, work: usize, f: unsafe fn(Product<T>)) {
    let by_rows = p.m >= p.n;
    let side = if by_rows { p.m } else { p.n };
    let parts = (work / PART).clamp(1, PARTS);
    threads::split(side, side.div_ceil(parts).next_multiple_of(STRIP), |range| {
        let mut part = p;
        if by_rows {
            part.m = range.len();
            part.a.at = p.a.element(range.start, 0);
            part.c.at = p.c.element(range.start, 0);
        } else {
            part.n = range.len();
            part.b.at = p.b.element(0, range.start);
            part.c.at = p.c.element(0, range.start);
        }
        // SAFETY: the caller's word; parts of the result are apart.
        unsafe { f(part) };
    });
}

/// A matrix within a slice: the slice from the first element on, row step, column step.
pub(crate) type Part<'a, T> = (&'a [T], usize, usize);

/// Columns of a row-major matrix, borrowed alone: what products are added to.
pub(crate) struct Columns<'a, T> {
    at: Apart<T>,
    rows: usize,
    columns: usize,
    width: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T: Send> Columns<'a, T> {
    /// All of a matrix with rows of `width` elements.
    pub(crate) fn of(matrix: &'a mut [T], width: usize) -> Self {
        let rows = matrix.len() / width.max(1);
        Columns { at: Apart(matrix.as_mut_ptr()), rows, columns: width, width, borrowed: PhantomData }
    }

    /// As [`threads::split`], of the columns.
    pub(crate) fn split(self, grain: usize, part: impl Fn(Range<usize>, Columns<'_, T>) + Sync) {
        let Columns { at, rows, columns, width, .. } = self;
        threads::split(columns, grain, |range| {
            // Ranges of a split are apart from each other, and so are the columns.
            let own = Columns {
                at: Apart(at.at(range.start)),
                rows,
                columns: range.len(),
                width,
                borrowed: PhantomData,
            };
            part(range, own);
        });
    }
}

/// `c += a b`; `a` is m by k, `b` k by n, `c` m by n.
pub(crate) fn add_product<T: Multiply>(
    (m, k, n): (usize, usize, usize),
    a: Part<'_, T>,
    b: Part<'_, T>,
    c: Columns<'_, T>,
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    let end = |rows: usize, columns: usize, (row, column): (usize, usize)| {
        (rows - 1) * row + (columns - 1) * column
    };
    assert!(end(m, k, (a.1, a.2)) < a.0.len(), "invariant: the left matrix lies within its slice");
    assert!(end(k, n, (b.1, b.2)) < b.0.len(), "invariant: the right matrix lies within its slice");
    assert!(n <= c.columns && m <= c.rows, "invariant: the result lies within its columns");
    let matrix = |part: Part<'_, T>| Matrix {
        at: part.0.as_ptr().cast_mut(),
        rows: part.1 as isize,
        columns: part.2 as isize,
    };
    let c = Matrix { at: c.at.0, rows: c.width as isize, columns: 1 };
    // SAFETY: all three were just checked against what they lie in, and the result is borrowed alone; operands are only
    // read.
    unsafe { product(Product { m, k, n, a: matrix(a), b: matrix(b), c, keep: T::ONE, factor: T::ONE }) }
}

/// Real and imaginary parts apart, as matrices of twice the steps: a product of complex matrices is four of real ones.
///
/// # Safety
/// As [`product`].
unsafe fn packed_parts<R: Real>(p: Product<Complex<R>>)
where
    Complex<R>: Multiply,
    R: Multiply,
{
    type C<R> = Complex<R>;
    let part = |m: Matrix<C<R>>, i: usize| Matrix {
        at: m.at.cast::<R>().wrapping_add(i),
        rows: 2 * m.rows,
        columns: 2 * m.columns,
    };
    for i in 0..p.m {
        for j in 0..p.n {
            let at = p.c.element(i, j);
            // SAFETY: the caller's word.
            unsafe { *at = if p.keep == C::<R>::ZERO { C::<R>::ZERO } else { (*at).times(p.keep) } };
        }
    }
    let C { re, im } = p.factor;
    // Which part of the result grows by the product of which parts, times what.
    let terms = [
        (0, 0, 0, re),
        (0, 1, 1, -re),
        (0, 0, 1, -im),
        (0, 1, 0, -im),
        (1, 0, 1, re),
        (1, 1, 0, re),
        (1, 0, 0, im),
        (1, 1, 1, -im),
    ];
    for (c, a, b, factor) in terms.into_iter().filter(|term| term.3 != R::ZERO) {
        let (a, b, c) = (part(p.a, a), part(p.b, b), part(p.c, c));
        // SAFETY: the caller's word: a complex number is its two parts, one behind the other.
        unsafe { packed(Product { m: p.m, k: p.k, n: p.n, a, b, c, keep: R::ONE, factor }) };
    }
}

/// Columns that vectors are filled by whatever their width is, so that they need not be packed.
const VECTOR: usize = 16;

/// By the `gemm` crate; columns behind the last whole strip apart, where all would be packed for them, and a single one as
/// a vector, which would take as long as a strip.
///
/// # Safety
/// As [`product`].
unsafe fn packed<T: Element>(p: Product<T>) {
    let rest = p.n % STRIP;
    let in_rows = p.b.columns == 1 && p.c.columns == 1;
    let large = p.m.saturating_mul(p.k) >= PART / STRIP;
    // SAFETY: the caller's word, for some of the columns.
    unsafe {
        if !in_rows || !large || p.n < STRIP || p.n % VECTOR == 0 {
            return whole(p);
        }
        let (n, b, c) = (p.n - rest, Matrix { at: p.b.element(0, p.n - rest), ..p.b }, p.c);
        whole(Product { n, ..p });
        let c = Matrix { at: c.element(0, n), ..c };
        if rest > 1 {
            return whole(Product { n: rest, b, c, ..p });
        }
        let column: Vec<T> = (0..p.k).map(|i| *b.element(i, 0)).collect();
        let b = Matrix { at: column.as_ptr().cast_mut(), rows: 1, columns: 1 };
        whole(Product { n: 1, b, c, ..p });
    }
}

/// All columns at once.
///
/// # Safety
/// As [`product`].
#[inline(never)]
unsafe fn whole<T: Element>(p: Product<T>) {
    // SAFETY: the caller's word; the types are those the crate has.
    unsafe {
        gemm::gemm(
            p.m,
            p.n,
            p.k,
            p.c.at,
            p.c.columns,
            p.c.rows,
            p.keep != T::ZERO,
            p.a.at.cast_const(),
            p.a.columns,
            p.a.rows,
            p.b.at.cast_const(),
            p.b.columns,
            p.b.rows,
            p.keep,
            p.factor,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// # Safety
/// As [`product`].
unsafe fn product_f16(p: Product<half::f16>) {
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    if p.k == 0 {
        for i in 0..p.m {
            for j in 0..p.n {
                // SAFETY: the caller's word.
                unsafe {
                    let at = p.c.element(i, j);
                    let kept = if p.keep == half::f16::ZERO { 0.0 } else { (*at).to_f32() * p.keep.to_f32() };
                    *at = half::f16::from_f32(kept);
                }
            }
        }
        return;
    }
    // SAFETY: the caller's word.
    unsafe { shared(p, work, |p| packed(p)) }
}

/// The last two dimensions as a matrix.
fn matrix_of<T>(start: *mut u8, layout: &Layout) -> Matrix<T> {
    let rank = layout.rank();
    let strides = layout.strides();
    Matrix { at: start.cast(), rows: strides[rank - 2] as isize, columns: strides[rank - 1] as isize }
}

/// `factor * a b` (+ `keep * c`, if given, whose memory is fresh and is overwritten), batched over broadcast leading
/// dimensions. Both have at least two dimensions and the same dtype.
fn batched(a: &Tensor, b: &Tensor, c: Option<(Tensor, Scalar)>, factor: Scalar) -> Result<Tensor> {
    if a.dtype() == DType::BF16 {
        let c = match c {
            Some((c, keep)) => Some((c.to_dtype(DType::F32)?, keep)),
            None => None,
        };
        let out = batched(&a.to_dtype(DType::F32)?, &b.to_dtype(DType::F32)?, c, factor)?;
        return out.to_dtype(DType::BF16);
    }
    let (am, bm) = (a.meta(), b.meta());
    let (x, y) = (&am.layout, &bm.layout);
    let (ra, rb) = (x.rank(), y.rank());
    let (m, k, n) = (x.sizes()[ra - 2], x.sizes()[ra - 1], y.sizes()[rb - 1]);
    if y.sizes()[rb - 2] != k {
        return Err(TensorError::MatShapes(m, k, y.sizes()[rb - 2], n));
    }
    let batch = crate::broadcast::broadcast_shapes(&x.sizes()[..ra - 2], &y.sizes()[..rb - 2])?;
    let mut sizes: Dims = batch.clone();
    sizes.push(m);
    sizes.push(n);
    let (storage, layout, keep) = match &c {
        Some((c, keep)) => (c.storage().clone(), c.layout().clone(), *keep),
        None => {
            let layout = Layout::contiguous(&sizes)?;
            let nbytes = bytes_of(&layout, a.dtype())?;
            let storage = match a.dtype() {
                // SAFETY: a product that keeps nothing writes every element.
                DType::F32 | DType::F64 => unsafe { Storage::uninit(nbytes)? },
                _ => Storage::zeroed(nbytes)?,
            };
            (storage, layout, Scalar::Int(0))
        }
    };
    let guards = ReadGuards::new(&am.storage, &bm.storage);
    let (start_a, start_b) = (Apart(guards.start(am, a.dtype())), Apart(guards.start(bm, b.dtype())));
    // SAFETY: the result's storage is fresh: nobody else reads it.
    let start_c = Apart(unsafe { storage.data() });
    let stride_in = |layout: &Layout, d: usize| -> i64 {
        let lead = batch.len() - (layout.rank() - 2);
        if d < lead || layout.sizes()[d - lead] == 1 { 0 } else { layout.strides()[d - lead] }
    };
    let steps: SmallVec<[[i64; 3]; 4]> =
        (0..batch.len()).map(|d| [stride_in(x, d), stride_in(y, d), layout.strides()[d]]).collect();
    let (m, k, n) = (m as usize, k as usize, n as usize);
    let size = a.dtype().size();
    let products = batch.iter().fold(1usize, |count, size| count.saturating_mul(*size as usize));
    let work = m.saturating_mul(n).saturating_mul(k);
    // Few large products are divided themselves.
    let divided = products < PARTS && work >= 2 * PART;
    let grain = if divided { products } else { (PART / work.max(1)).max(1) };
    let each = |f: &(dyn Fn(*mut u8, *mut u8, *mut u8) + Sync)| {
        threads::split(products, grain, |part| {
            walk_batch(&batch, &steps, part, |at| {
                let [i, j, o] = at.map(|at| at as isize * size as isize);
                f(start_a.by(i), start_b.by(j), start_c.by(o));
            });
        });
    };
    if layout.numel() > 0 {
        // SAFETY: operands are locked, positions are within their layouts; the result is fresh and apart.
        unsafe {
            if a.dtype() == DType::F16 {
                each(&|i, j, o| {
                    product_f16(Product {
                        m,
                        k,
                        n,
                        a: matrix_of(i, x),
                        b: matrix_of(j, y),
                        c: matrix_of(o, &layout),
                        keep: keep.to(),
                        factor: factor.to(),
                    });
                });
            } else {
                multiply_each(a.dtype(), &each, (m, k, n), (x, y, &layout), keep, factor)?;
            }
        }
    }
    drop(guards);
    Ok(Tensor::from_parts(storage, a.dtype(), layout))
}

type EachMatrix<'a> = &'a dyn Fn(&(dyn Fn(*mut u8, *mut u8, *mut u8) + Sync));

/// The product of every matrix of a batch, in the type of a dtype that adds and multiplies by itself.
///
/// # Safety
/// `each` gives pointers to matrices of these sizes and layouts; the result overlaps no operand.
unsafe fn multiply_each(
    dtype: DType,
    each: EachMatrix<'_>,
    (m, k, n): (usize, usize, usize),
    (x, y, z): (&Layout, &Layout, &Layout),
    keep: Scalar,
    factor: Scalar,
) -> Result<()> {
    macro_rules! arm {
        ($type:ty) => {
            // SAFETY: the caller's word.
            each(&|i, j, o| unsafe {
                product::<$type>(Product {
                    m,
                    k,
                    n,
                    a: matrix_of(i, x),
                    b: matrix_of(j, y),
                    c: matrix_of(o, z),
                    keep: keep.to(),
                    factor: factor.to(),
                });
            })
        };
    }
    match dtype {
        DType::F32 => arm!(f32),
        DType::F64 => arm!(f64),
        DType::C64 => arm!(Complex<f32>),
        DType::C128 => arm!(Complex<f64>),
        DType::U8 => arm!(u8),
        DType::I8 => arm!(i8),
        DType::I16 => arm!(i16),
        DType::I32 => arm!(i32),
        DType::I64 => arm!(i64),
        dtype => return Err(TensorError::DType { op: "addmm_impl_cpu_", dtype }),
    }
    Ok(())
}

/// Calls `f` with three positions for some of the indices of the batch dimensions.
fn walk_batch(sizes: &[i64], steps: &[[i64; 3]], part: Range<usize>, mut f: impl FnMut([i64; 3])) {
    let mut index: SmallVec<[i64; 4]> = SmallVec::from_elem(0, sizes.len());
    let mut at = [0i64; 3];
    let mut number = part.start as i64;
    for d in (0..sizes.len()).rev() {
        index[d] = number % sizes[d];
        number /= sizes[d];
        (0..3).for_each(|k| at[k] += steps[d][k] * index[d]);
    }
    for _ in part {
        f(at);
        for d in (0..sizes.len()).rev() {
            index[d] += 1;
            (0..3).for_each(|k| at[k] += steps[d][k]);
            if index[d] < sizes[d] {
                break;
            }
            (0..3).for_each(|k| at[k] -= steps[d][k] * sizes[d]);
            index[d] = 0;
        }
    }
}

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

/// Product of two matrices.
pub fn mm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    check_dtypes(a, b)?;
    for (name, t) in [("self", a), ("mat2", b)] {
        if t.rank() != 2 {
            return Err(TensorError::shape(format!("{name} must be a matrix")));
        }
    }
    batched(a, b, None, Scalar::Int(1))
}

/// Products of two batches of matrices, as many in each.
pub fn bmm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    check_dtypes(a, b)?;
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

/// Product of a matrix and a vector.
pub fn mv(a: &Tensor, v: &Tensor) -> Result<Tensor> {
    check_dtypes(a, v)?;
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

/// Product of two vectors.
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

/// `beta * bias + alpha * a b`, the bias broadcast to the result. With `beta` 0 the bias does not count, NaN or not.
pub fn addmm(bias: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    check_dtypes(a, b)?;
    for (name, t) in [("mat1", a), ("mat2", b)] {
        if t.rank() != 2 {
            return Err(TensorError::shape(format!("{name} must be a matrix, got {}-D tensor", t.rank())));
        }
    }
    add_batched(bias, a, b, beta, alpha)
}

/// As [`addmm`] over batches of matrices.
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
    batched(a, b, Some((expanded.clone_contiguous()?, beta)), alpha)
}

/// PyTorch's `matmul`: vectors, matrices and batches of matrices with broadcast leading dimensions.
pub fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    check_dtypes(a, b)?;
    match (a.rank(), b.rank()) {
        (0, _) | (_, 0) => Err(TensorError::shape(format!(
            "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
            a.rank(),
            b.rank()
        ))),
        (1, 1) => dot(a, b),
        (2, 1) => mv(a, b),
        (2, 2) => batched(a, b, None, Scalar::Int(1)),
        (1, _) => batched(&a.unsqueeze(0)?, b, None, Scalar::Int(1))?.squeeze(&[-2]),
        (_, 1) => batched(a, &b.unsqueeze(1)?, None, Scalar::Int(1))?.squeeze(&[-1]),
        (_, 2) => {
            // One large product instead of many small ones with the same right side.
            let mut sizes = Dims::from_slice(&a.sizes()[..a.rank() - 1]);
            let k = a.sizes()[a.rank() - 1];
            let rows = crate::layout::numel_of(&sizes)?;
            sizes.push(b.sizes()[1]);
            batched(&a.reshape(&[rows, k])?, b, None, Scalar::Int(1))?.view(&sizes)
        }
        _ => batched(a, b, None, Scalar::Int(1)),
    }
}
