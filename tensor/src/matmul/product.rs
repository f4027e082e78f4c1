//! A product of two matrices, and which way it is computed.
#![allow(unsafe_code, reason = "walks matrices by pointers")]

use num_complex::Complex;

use super::direct::{TINY, direct, is_small};
use super::packed::{Cut, packed};
use super::tile::{self, Tiling};
use super::vector::Vector;
use crate::element::Element;
use crate::math::Real;
use crate::threads;

/// Multiplications worth a part of a result.
pub(super) const PART: usize = 1 << 20;
/// Parts of a result at most.
pub(super) const PARTS: usize = 8;

/// A matrix in locked memory: pointer, row step, column step.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<T> {
    pub(super) at: *mut T,
    pub(super) rows: isize,
    pub(super) columns: isize,
}

// SAFETY: threads work on disjoint parts of results while the caller holds the locks.
unsafe impl<T: Send> Send for Matrix<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Matrix<T> {}

impl<T> Matrix<T> {
    pub(super) fn element(self, i: usize, j: usize) -> *mut T {
        self.at.wrapping_offset(i as isize * self.rows + j as isize * self.columns)
    }

    /// Rows as columns.
    pub(super) fn turned(self) -> Self {
        Matrix { rows: self.columns, columns: self.rows, ..self }
    }
}

/// What a product is added to, vector by vector.
#[derive(Clone, Copy)]
enum Start {
    None,
    /// The same element for a whole row.
    One,
    Row,
}

/// Where a product goes: `c = start * keep + product * factor`.
#[derive(Clone, Copy)]
pub(crate) struct Target<T> {
    /// With contiguous rows.
    pub(super) c: Matrix<T>,
    /// The result itself or something else, of any steps (0 where it repeats); not read where `keep` is 0.
    pub(super) start: Matrix<T>,
    pub(super) keep: T,
    pub(super) factor: T,
}

impl<T: Multiply> Target<T> {
    /// A result without a start.
    pub(super) fn fresh(c: Matrix<T>) -> Self {
        Target { c, start: c, keep: T::ZERO, factor: T::ONE }
    }

    /// Whether the product is all that goes there.
    #[inline(always)]
    pub(super) fn is_fresh(&self) -> bool {
        self.keep == T::ZERO && self.factor == T::ONE
    }

    /// The part from (i, j) on.
    pub(super) fn part(self, i: usize, j: usize) -> Self {
        let (c, start) = (self.c.element(i, j), self.start.element(i, j));
        Target { c: Matrix { at: c, ..self.c }, start: Matrix { at: start, ..self.start }, ..self }
    }

    /// The same place, where the product of what comes before is already.
    pub(super) fn onward(self) -> Self {
        Target { start: self.c, keep: T::ONE, ..self }
    }

    /// Puts sums into a row of the result, from (i, j) on.
    ///
    /// # Safety
    /// So many elements from there on are the result's, and the start's if it is read.
    #[inline(always)]
    pub(super) unsafe fn put<const N: usize>(&self, i: usize, j: usize, sums: &[T; N]) {
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

    /// Puts the first of some sums into a row of the result, from (i, j) on.
    ///
    /// # Safety
    /// As [`Target::put`]; the processor has the vectors' instruction set.
    #[inline(always)]
    pub(super) unsafe fn put_vectors<V: Vector<Element = T>>(
        &self,
        i: usize,
        j: usize,
        sums: &[V],
        count: usize,
    ) {
        // SAFETY: the caller's word; vectors are their elements.
        unsafe {
            let start = self.start.element(i, j);
            let kind = match (self.keep == T::ZERO, self.keep == T::ONE, self.start.columns) {
                _ if self.factor != T::ONE => None,
                (true, ..) => Some(Start::None),
                (_, true, 0) => Some(Start::One),
                (_, true, 1) => Some(Start::Row),
                _ => None,
            };
            for (v, sum) in sums.iter().enumerate() {
                let at = v * V::LANES;
                let Some(kind) = kind.filter(|_| at + V::LANES <= count) else {
                    let left = count.saturating_sub(at).min(V::LANES);
                    let sums = std::slice::from_raw_parts(std::ptr::from_ref(sum).cast::<T>(), left);
                    self.put_some(i, j + at, sums);
                    continue;
                };
                let one = V::splat(T::ONE);
                let sum = match kind {
                    Start::None => *sum,
                    Start::One => V::splat(*start).add_product(*sum, one),
                    Start::Row => start.add(at).cast::<V>().read_unaligned().add_product(*sum, one),
                };
                self.c.element(i, j + at).cast::<V>().write_unaligned(sum);
            }
        }
    }

    /// As [`Target::put`], of any number, and whatever the start and the factors are.
    ///
    /// # Safety
    /// As [`Target::put`].
    #[inline(never)]
    pub(super) unsafe fn put_some(&self, i: usize, j: usize, sums: &[T]) {
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
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) a: Matrix<T>,
    pub(super) b: Matrix<T>,
    pub(super) to: Target<T>,
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
pub(super) unsafe fn product<T: Multiply>(p: Product<T>, cut: &Cut<'_, T>) {
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
            // SAFETY: the caller's word.
            unsafe { direct(Product { n: own.len(), b, to: p.to.part(0, own.start), ..p }) };
        }),
        // SAFETY: the caller's word.
        (Some(tiling), _) => unsafe { (tiling.small)(p) },
        // SAFETY: the caller's word.
        _ => unsafe { direct(p) },
    }
}

/// How a product of such sizes is computed by strips, if it should be where the right operand is made for it.
pub(crate) fn tiling<T: Multiply>((m, k, n): (usize, usize, usize)) -> Option<Tiling<T>> {
    T::TILING.filter(|_| m > 1 && m.saturating_mul(k).saturating_mul(n) > TINY)
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
