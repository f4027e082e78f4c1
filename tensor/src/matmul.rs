//! Matrix products of any strides, batched and broadcast.
//!
//! Large products of floats are computed by strips of both operands ([`packed`]), complex numbers as their parts, halves
//! as `f32`; integers have a loop of their own, exact modulo two to their width. Products too small to pay for cutting
//! strips are direct loops. Large results are computed in parts that follow from their sizes, by several threads
//! ([`crate::threads`]).
#![allow(unsafe_code, reason = "walks matrices by pointers")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex;
use smallvec::SmallVec;

mod direct;
mod packed;
mod tile;

use crate::access::{LockSet, ReadGuards, start_of};
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
use direct::{Direct, TINY, is_small};
pub(crate) use packed::{Cut, Made, Panels, Shape};
use packed::{is_remembered, packed};
pub(crate) use tile::{Job, Side, Tiling};

/// Multiplications worth a part of a result.
const PART: usize = 1 << 20;
/// Parts of a result at most.
const PARTS: usize = 8;

/// A matrix in locked memory: pointer, row step, column step.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<T> {
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

    /// Rows as columns.
    fn turned(self) -> Self {
        Matrix { rows: self.columns, columns: self.rows, ..self }
    }
}

/// Where a product goes: `c = start * keep + product * factor`.
#[derive(Clone, Copy)]
pub(crate) struct Target<T> {
    /// With contiguous rows.
    c: Matrix<T>,
    /// The result itself or something else, of any steps (0 where it repeats); not read where `keep` is 0.
    start: Matrix<T>,
    keep: T,
    factor: T,
}

impl<T: Multiply> Target<T> {
    /// A result without a start.
    fn fresh(c: Matrix<T>) -> Self {
        Target { c, start: c, keep: T::ZERO, factor: T::ONE }
    }

    /// The part from (i, j) on.
    fn part(self, i: usize, j: usize) -> Self {
        let (c, start) = (self.c.element(i, j), self.start.element(i, j));
        Target { c: Matrix { at: c, ..self.c }, start: Matrix { at: start, ..self.start }, ..self }
    }

    /// The same place, where the product of what comes before is already.
    fn onward(self) -> Self {
        Target { start: self.c, keep: T::ONE, ..self }
    }

    /// Puts sums into a row of the result, from (i, j) on.
    ///
    /// # Safety
    /// So many elements from there on are the result's, and the start's if it is read.
    #[inline(always)]
    unsafe fn put<const N: usize>(&self, i: usize, j: usize, sums: &[T; N]) {
        let to = self.c.element(i, j).cast::<[T; N]>();
        // SAFETY: the caller's word.
        unsafe {
            if self.factor != T::ONE {
                return self.put_some(i, j, sums);
            }
            if self.keep == T::ZERO {
                *to = *sums;
                return;
            }
            let start = self.start.element(i, j);
            let start = match (self.keep == T::ONE, self.start.columns) {
                (true, 0) => [*start; N],
                (true, 1) => *start.cast::<[T; N]>(),
                _ => return self.put_some(i, j, sums),
            };
            let mut row = start;
            for (x, sum) in row.iter_mut().zip(sums) {
                *x = x.add_product(*sum, T::ONE);
            }
            *to = row;
        }
    }

    /// As [`Target::put`], of any number, and whatever the start and the factors are.
    ///
    /// # Safety
    /// As [`Target::put`].
    #[inline(never)]
    unsafe fn put_some(&self, i: usize, j: usize, sums: &[T]) {
        for (q, sum) in sums.iter().enumerate() {
            // SAFETY: the caller's word.
            unsafe {
                let value = if self.keep == T::ZERO {
                    sum.times(self.factor)
                } else {
                    (*self.start.element(i, j + q)).times(self.keep).add_product(*sum, self.factor)
                };
                *self.c.element(i, j + q) = value;
            }
        }
    }
}

/// The product of `a`, m by k, and `b`, k by n.
#[derive(Clone, Copy)]
pub(crate) struct Product<T> {
    m: usize,
    k: usize,
    n: usize,
    a: Matrix<T>,
    b: Matrix<T>,
    to: Target<T>,
}

/// Types that multiply: how a sum of products grows.
pub(crate) trait Multiply: Element<Raw = Self> {
    /// `self + a * b`.
    fn add_product(self, a: Self, b: Self) -> Self;
    /// `self * b`.
    fn times(self, b: Self) -> Self;
    /// How large products of it are computed by strips.
    const TILING: Option<Tiling<Self>>;
    /// How large products of it are computed, if as those of its parts.
    ///
    /// The function's matrices must be valid for their sizes, and the result overlap no operand.
    const BY_PARTS: Option<unsafe fn(Product<Self>)>;
}

macro_rules! multiply {
    (float $tiling:expr, $parts:expr, $sum:ident, $a:ident, $b:ident => $fused:expr; $($type:ty),+) => { $(impl Multiply for $type {
        #[inline(always)]
        fn add_product(self, $a: Self, $b: Self) -> Self {
            let $sum = self;
            $fused
        }
        #[inline(always)]
        fn times(self, b: Self) -> Self {
            self * b
        }
        const TILING: Option<Tiling<Self>> = $tiling;
        const BY_PARTS: Option<unsafe fn(Product<Self>)> = $parts;
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
        const TILING: Option<Tiling<Self>> = None;
        const BY_PARTS: Option<unsafe fn(Product<Self>)> = None;
    })+ };
}
multiply!(float Some(tile::SINGLES), None, sum, a, b => a.mul_add(b, sum); f32);
multiply!(float Some(tile::DOUBLES), None, sum, a, b => a.mul_add(b, sum); f64);
multiply!(float None, Some(by_parts), sum, a, b => sum + a * b; Complex<f32>, Complex<f64>);
multiply!(int u8, i8, i16, i32, i64);

/// # Safety
/// The matrices are valid for their sizes, and the result overlaps no operand; what is cut was cut from the operands.
unsafe fn product<T: Multiply>(p: Product<T>, cut: &Cut<'_, T>) {
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    // A vector is a row.
    let p = if p.n == 1 && p.to.c.rows == 1 {
        let to = Target { c: p.to.c.turned(), start: p.to.start.turned(), ..p.to };
        Product { m: 1, n: p.m, a: p.b.turned(), b: p.a.turned(), to, ..p }
    } else {
        p
    };
    let large = p.k > 0 && p.m > 1 && !is_small(&p, work);
    match (T::TILING, T::BY_PARTS) {
        // SAFETY: the caller's word.
        (Some(tiling), _) if large || cut.made.is_some() => unsafe { packed(tiling, p, cut) },
        // SAFETY: the caller's word.
        (_, Some(by_parts)) if large => unsafe { by_parts(p) },
        _ if p.m == 1 => threads::split(p.n, (PART / p.k.max(1)).max(1).next_multiple_of(64), |own| {
            let b = Matrix { at: p.b.element(0, own.start), ..p.b };
            simd::run(Direct(Product { n: own.len(), b, to: p.to.part(0, own.start), ..p }));
        }),
        _ => simd::run(Direct(p)),
    }
}

/// How a product of such sizes is computed by strips, if it should be where the right operand is made for it.
pub(crate) fn tiling<T: Multiply>((m, k, n): (usize, usize, usize)) -> Option<Tiling<T>> {
    T::TILING.filter(|_| m > 1 && m.saturating_mul(k).saturating_mul(n) > TINY)
}

/// What a product is of on the right.
pub(crate) enum Right<'a, T> {
    Part(Part<'a, T>),
    Made(&'a dyn Made<T>),
}

/// A matrix within a slice: the slice from the first element on, row step, column step.
pub(crate) type Part<'a, T> = (&'a [T], usize, usize);

/// Columns of a row-major matrix, borrowed alone: where products go.
pub(crate) struct Columns<'a, T> {
    at: Apart<T>,
    rows: usize,
    columns: usize,
    width: usize,
    borrowed: PhantomData<&'a mut [MaybeUninit<T>]>,
}

impl<'a, T: Send> Columns<'a, T> {
    /// All of a matrix with rows of `width` elements.
    pub(crate) fn of(matrix: &'a mut [MaybeUninit<T>], width: usize) -> Self {
        let rows = matrix.len() / width.max(1);
        Columns { at: Apart(matrix.as_mut_ptr().cast()), rows, columns: width, width, borrowed: PhantomData }
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

/// `c = start + a b`; `a` is m by k, which may be cut already, `b` k by n, `c` m by n. The start is one element for each
/// row, or nothing.
pub(crate) fn put_product<T: Multiply>(
    (m, k, n): (usize, usize, usize),
    (a, left): (Part<'_, T>, Option<&Panels<T>>),
    b: Right<'_, T>,
    start: Option<&[T]>,
    c: Columns<'_, T>,
) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(k > 0, "invariant: there is something to multiply");
    let end = |rows: usize, columns: usize, (row, column): (usize, usize)| {
        (rows - 1) * row + (columns - 1) * column
    };
    assert!(end(m, k, (a.1, a.2)) < a.0.len(), "invariant: the left matrix lies within its slice");
    let (b, made) = match b {
        Right::Part(b) => (b, None),
        Right::Made(made) => ((&[] as &[T], 0, 0), Some(made)),
    };
    let inside = made.is_some() || end(k, n, (b.1, b.2)) < b.0.len();
    assert!(inside, "invariant: the right matrix lies within its slice");
    assert!(n <= c.columns && m <= c.rows, "invariant: the result lies within its columns");
    let matrix = |part: Part<'_, T>| Matrix {
        at: part.0.as_ptr().cast_mut(),
        rows: part.1 as isize,
        columns: part.2 as isize,
    };
    assert!(start.is_none_or(|start| start.len() >= m), "invariant: every row has its start");
    let c = Target::fresh(Matrix { at: c.at.0, rows: c.width as isize, columns: 1 });
    let to = start.map_or(c, |start| {
        let start = Matrix { at: start.as_ptr().cast_mut(), rows: 1, columns: 0 };
        Target { start, keep: T::ONE, ..c }
    });
    // SAFETY: all were just checked against what they lie in, and the result is borrowed alone; what else there is is only
    // read.
    unsafe { product(Product { m, k, n, a: matrix(a), b: matrix(b), to }, &Cut { left, right: None, made }) }
}

/// Real and imaginary parts apart, as matrices of twice the steps: a product of complex matrices is four of real ones.
///
/// # Safety
/// As [`product`].
unsafe fn by_parts<R: Real + Multiply>(p: Product<Complex<R>>)
where
    Complex<R>: Multiply,
{
    type C<R> = Complex<R>;
    let part = |m: Matrix<C<R>>, i: usize| Matrix {
        at: m.at.cast::<R>().wrapping_add(i),
        rows: 2 * m.rows,
        columns: 2 * m.columns,
    };
    let nothing = vec![C::<R>::ZERO; p.n];
    let before = Target { factor: C::<R>::ONE, ..p.to };
    for i in 0..p.m {
        // SAFETY: the caller's word.
        unsafe { before.put_some(i, 0, &nothing) };
    }
    let C { re, im } = p.to.factor;
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
        let (a, b, c) = (part(p.a, a), part(p.b, b), part(p.to.c, c));
        let to = Target { factor, ..Target::fresh(c).onward() };
        // SAFETY: the caller's word: a complex number is its two parts, one behind the other.
        unsafe { product(Product { m: p.m, k: p.k, n: p.n, a, b, to }, &Cut::NONE) };
    }
}

/// The last two dimensions as a matrix.
fn matrix_of<T>(start: *mut u8, layout: &Layout) -> Matrix<T> {
    let rank = layout.rank();
    let strides = layout.strides();
    Matrix { at: start.cast(), rows: strides[rank - 2] as isize, columns: strides[rank - 1] as isize }
}

/// `factor * a b` (+ `keep * start`, if given, with the sizes of the result), batched over broadcast leading dimensions. Both
/// have at least two dimensions and the same dtype.
fn batched(a: &Tensor, b: &Tensor, start: Option<(Tensor, Scalar)>, factor: Scalar) -> Result<Tensor> {
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
    let batch = crate::broadcast::broadcast_shapes(&x.sizes()[..ra - 2], &y.sizes()[..rb - 2])?;
    let mut sizes: Dims = batch.clone();
    sizes.push(m);
    sizes.push(n);
    let layout = Layout::contiguous(&sizes)?;
    // SAFETY: a product writes every element, and reads none before.
    let storage = unsafe { Storage::uninit(bytes_of(&layout, a.dtype())?)? };
    // SAFETY: the storage is fresh.
    let start_c = Apart(unsafe { storage.data() });
    let keep = start.as_ref().map_or(Scalar::Int(0), |(_, keep)| *keep);
    let start = start.as_ref().map(|(start, _)| start.meta());
    let (mut pair, mut all) = (None, None);
    match start {
        None => pair = Some(ReadGuards::new(&am.storage, &bm.storage)),
        Some(start) => {
            let mut set = LockSet::new();
            for meta in [am, bm, start] {
                set.read(&meta.storage);
            }
            all = Some(set.lock()?);
        }
    }
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
        threads::split(products, grain, |part| {
            walk_batch(&batch, &steps, part, |at| {
                let [i, j, o, s] = at.map(|at| at as isize * size as isize);
                f([start_a.by(i), start_b.by(j), start_c.by(o), start_z.by(s)]);
            });
        });
    };
    if layout.numel() > 0 {
        // SAFETY: operands are locked, positions are within their layouts; the result is fresh and apart.
        unsafe {
            let single = (products == 1).then_some([&am.storage, &bm.storage]);
            multiply_each(a.dtype(), &each, (m, k, n), [x, y, &layout, z], [keep, factor], single)?;
        }
    }
    drop((pair, all));
    Ok(Tensor::from_parts(storage, a.dtype(), layout))
}

type EachMatrix<'a> = &'a dyn Fn(&(dyn Fn([*mut u8; 4]) + Sync));

/// The product of every matrix of a batch, in the type of a dtype that adds and multiplies by itself. Of a single one,
/// operands that were multiplied before may be cut already.
///
/// # Safety
/// `each` gives pointers to matrices of these sizes and layouts; the result overlaps no operand. The storages of a single
/// product are locked for reading.
unsafe fn multiply_each(
    dtype: DType,
    each: EachMatrix<'_>,
    (m, k, n): (usize, usize, usize),
    [x, y, c, z]: [&Layout; 4],
    [keep, factor]: [Scalar; 2],
    single: Option<[&Storage; 2]>,
) -> Result<()> {
    macro_rules! arm {
        ($type:ty) => {
            // SAFETY: the caller's word.
            each(&|[i, j, o, s]| unsafe {
                let (a, b, c, start) = (matrix_of(i, x), matrix_of(j, y), matrix_of(o, c), matrix_of(s, z));
                let to = Target { c, start, keep: keep.to(), factor: factor.to() };
                let p = Product::<$type> { m, k, n, a, b, to };
                match single {
                    Some(storages) if is_remembered(&p) => remembered(p, storages, [x, y]),
                    _ => product(p, &Cut::NONE),
                }
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

/// The strips of `count` matrices that lie in a row-major tensor one behind the other, a row of each a lane, if they were
/// asked for before and have not changed since.
pub(crate) fn kept<T: Multiply>(t: &Tensor, side: Side, count: usize) -> Option<Arc<Vec<Panels<T>>>> {
    let meta = t.meta();
    let rows = *meta.layout.sizes().first()? as usize / count.max(1);
    let lanes = rows * usize::from(meta.layout.is_contiguous() && t.dtype() == T::DTYPE);
    let depth = meta.layout.numel().checked_div(lanes * count)?;
    let shape = Shape { side, count, lanes, depth, steps: [depth as isize, 1] };
    let _guards = ReadGuards::one(&meta.storage);
    // SAFETY: locked; the layout holds the matrices, one behind the other.
    unsafe { packed::kept(&meta.storage, &meta.layout, shape) }
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
    batched(a, b, Some((expanded, beta)), alpha)
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
