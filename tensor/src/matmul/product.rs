//! A product of two matrices, and the choice of the method.

use num_complex::Complex;

use super::direct::{TINY, direct, is_small};
use super::matrix::Matrix;
use super::packed::{Operand, PrepackedOperands, packed};
use super::target::Target;
use super::tile::{self, Side, Tiling};
#[cfg(target_arch = "x86_64")]
use super::vector::merge_lanes;
use crate::element::Element;
use crate::math::Real;

/// Multiplications per part of a result.
pub(super) const PART: usize = 1 << 20;
/// Maximum number of parts of a result.
pub(super) const PARTS: usize = 8;

/// The product of `a`, m by k, and `b`, k by n, and its target. The sizes agree.
pub(crate) struct Product<'a, T> {
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    to: Target<'a, T>,
}

impl<'a, T: Multiply> Product<'a, T> {
    /// Makes a product.
    ///
    /// # Panics
    /// Panics if the sizes do not agree.
    #[inline]
    pub(super) fn new(a: Matrix<'a, T>, b: Matrix<'a, T>, to: Target<'a, T>) -> Self {
        assert!(
            a.rows() == to.rows() && a.columns() == b.rows() && b.columns() == to.columns(),
            "invariant: the sizes of a product agree"
        );
        Product { a, b, to }
    }

    /// Returns the rows of the left operand and of the result.
    #[inline(always)]
    pub(super) fn m(&self) -> usize {
        self.a.rows()
    }

    /// Returns the number of products per sum.
    #[inline(always)]
    pub(super) fn k(&self) -> usize {
        self.b.rows()
    }

    /// Returns the columns of the right operand and of the result.
    #[inline(always)]
    pub(super) fn n(&self) -> usize {
        self.b.columns()
    }

    #[inline(always)]
    pub(super) fn a(&self) -> Matrix<'a, T> {
        self.a
    }

    #[inline(always)]
    pub(super) fn b(&self) -> Matrix<'a, T> {
        self.b
    }

    #[inline(always)]
    pub(super) fn to(&self) -> &Target<'a, T> {
        &self.to
    }

    pub(super) fn into_parts(self) -> (Matrix<'a, T>, Matrix<'a, T>, Target<'a, T>) {
        (self.a, self.b, self.to)
    }

    /// Returns the number of multiplications.
    #[inline(always)]
    pub(super) fn work(&self) -> usize {
        self.m().saturating_mul(self.n()).saturating_mul(self.k())
    }

    /// Returns the transposed product, with exchanged operands.
    #[inline(always)]
    fn transpose(self) -> Self {
        Product { a: self.b.transpose(), b: self.a.transpose(), to: self.to.transpose() }
    }
}

/// Types that multiply: how a sum of products grows. The provided methods are those of integers; they wrap.
pub(crate) trait Multiply: Element<Raw = Self> {
    /// Sizes of tiles and strips for large products; `None` for types without a strip kernel.
    const TILING: Option<Tiling<Self>> = None;
    /// Computes large products of a complex type as products of real and imaginary parts; `None` for real types.
    const BY_PARTS: Option<fn(Product<'_, Self>)> = None;

    /// `self + a * b`.
    #[inline(always)]
    fn add_product(self, a: Self, b: Self) -> Self {
        Self::from_i64(self.to_i64().wrapping_add(a.to_i64().wrapping_mul(b.to_i64())))
    }

    /// `self * b`.
    #[inline(always)]
    fn times(self, b: Self) -> Self {
        Self::from_i64(self.to_i64().wrapping_mul(b.to_i64()))
    }

    /// Returns the sums of the lanes of some dot products. There are a multiple of four lanes.
    #[inline(always)]
    fn merge_lanes<const LANES: usize>(lanes: &[[Self; LANES]; DOTS]) -> [Self; DOTS] {
        let plus = |a: Self, b: Self| a.add_product(b, Self::ONE);
        let mut sums = [Self::ZERO; DOTS];
        for n in 0..DOTS {
            let (fours, _) = lanes[n].as_chunks::<4>();
            let mut few = fours[0];
            for four in &fours[1..] {
                for l in 0..4 {
                    few[l] = plus(few[l], four[l]);
                }
            }
            let [x, y, z, w] = few;
            sums[n] = plus(plus(x, z), plus(y, w));
        }
        sums
    }
}

/// Dot products whose lanes are merged together.
pub(super) const DOTS: usize = 4;

impl Multiply for u8 {}
impl Multiply for i8 {}
impl Multiply for i16 {}
impl Multiply for i32 {}
impl Multiply for i64 {}

impl Multiply for f32 {
    const TILING: Option<Tiling<Self>> = Some(tile::F32_TILING);

    #[inline(always)]
    fn add_product(self, a: Self, b: Self) -> Self {
        a.mul_add(b, self)
    }

    #[inline(always)]
    fn times(self, b: Self) -> Self {
        self * b
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn merge_lanes<const LANES: usize>(lanes: &[[Self; LANES]; DOTS]) -> [Self; DOTS] {
        merge_lanes(lanes)
    }
}

impl Multiply for f64 {
    const TILING: Option<Tiling<Self>> = Some(tile::F64_TILING);

    #[inline(always)]
    fn add_product(self, a: Self, b: Self) -> Self {
        a.mul_add(b, self)
    }

    #[inline(always)]
    fn times(self, b: Self) -> Self {
        self * b
    }
}

impl<R: Real + Multiply> Multiply for Complex<R> {
    const BY_PARTS: Option<fn(Product<'_, Self>)> = Some(by_parts);

    #[inline(always)]
    fn add_product(self, a: Self, b: Self) -> Self {
        let product = a.times(b);
        Complex::new(self.re + product.re, self.im + product.im)
    }

    #[inline(always)]
    fn times(self, b: Self) -> Self {
        Complex::new(self.re * b.re - self.im * b.im, self.re * b.im + self.im * b.re)
    }
}

/// Computes a product. Both operands are matrices in memory, so they may be exchanged; packed operands were packed from
/// them.
///
/// An operand without a matrix in memory cannot be passed here: [`packed`] accepts it, and exchanges nothing.
pub(super) fn product<T: Multiply>(p: Product<'_, T>, prepacked: &PrepackedOperands<'_, T>) {
    let work = p.work();
    // A vector is treated as a row.
    let p = if p.to.is_column() { p.transpose() } else { p };
    let large = p.k() > 0 && p.m() > 1 && !is_small(&p, work);
    match (T::TILING, T::BY_PARTS) {
        (Some(tiling), _) if large => {
            let (a, b, to) = p.into_parts();
            packed(tiling, [Operand::Strided(a), Operand::Strided(b.transpose())], to, prepacked);
        }
        (_, Some(by_parts)) if large => by_parts(p),
        _ if p.m() == 1 => {
            let (a, b, to) = p.into_parts();
            let grain = (PART / b.rows().max(1)).max(1).next_multiple_of(64);
            to.split(Side::Right, grain, |own, to| {
                direct(Product::new(a, b.part(0..b.rows(), own), to));
            });
        }
        (Some(tiling), _) => (tiling.small)(p),
        _ => direct(p),
    }
}

/// As [`product`], for at most [`TINY`] multiplications: they are neither packed nor divided among threads.
#[inline]
pub(super) fn tiny_product<T: Multiply>(p: Product<'_, T>) {
    debug_assert!(p.work() <= TINY, "invariant: larger products may be packed");
    let p = if p.to.is_column() { p.transpose() } else { p };
    match T::TILING {
        Some(tiling) if p.m() > 1 => (tiling.small)(p),
        _ => direct(p),
    }
}

/// Returns the tiling for a product of these sizes if the right operand should be packed. Products with a vector on
/// either side are not packed: packing pays only for operands that are read more than once.
pub(crate) fn tiling<T: Multiply>((m, k, n): (usize, usize, usize)) -> Option<Tiling<T>> {
    T::TILING.filter(|_| m > 1 && n > 1 && m.saturating_mul(k).saturating_mul(n) > TINY)
}

/// Real and imaginary parts apart, as matrices of twice the steps: a product of complex matrices is four of real ones.
fn by_parts<R: Real + Multiply>(p: Product<'_, Complex<R>>) {
    type C<R> = Complex<R>;
    let Product { a, b, to } = p;
    let (mut to, C { re, im }) = to.write_addend();
    // Each entry: the part of the result, the parts of the operands, and the factor of their product.
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
    for (which, x, y, factor) in terms.into_iter().filter(|term| term.3 != R::ZERO) {
        let to = to.component(which, factor);
        product(Product::new(a.component(x), b.component(y), to), &PrepackedOperands::NONE);
    }
}
