//! Pooling by rows: maximum and mean of windows, one row of results at a time.
//!
//! Most windows along a dimension are evenly spaced: all whole windows have one size and one distance ([`Even`]). The
//! loop runs over the input rows under a row of results, and for each of them over the elements of a window. The
//! innermost loop runs along the results. Windows at the borders are computed one by one. Sums are added in the order
//! of the elements.

use super::{Window, Windows, output_sizes, planes};
use crate::access;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::{Element, cast};
use crate::error::Result;
use crate::math::{Float, Real};
use crate::simd::{self, InstructionSets, Multiversioned};
use crate::strided::strided;
use crate::tensor::Tensor;
use crate::threads;

/// The windows `from..to` of a dimension, which have `count` elements each and start `stride` apart.
#[derive(Clone, Copy)]
struct Even {
    from: usize,
    to: usize,
    start: usize,
    stride: usize,
    count: usize,
}

impl Even {
    /// Returns the longest uniform sequence from the first of the largest windows on.
    fn of(windows: &[Window]) -> Even {
        let count = windows.iter().map(|w| w.count).max().unwrap_or(0);
        let from = windows.iter().position(|w| w.count == count).unwrap_or(0);
        let start = windows.get(from).map_or(0, |w| w.start);
        let stride = windows.get(from + 1).map_or(1, |w| w.start.saturating_sub(start)).max(1);
        let alike = |(i, w): (usize, &Window)| w.count == count && w.start == start + i * stride;
        let run = windows[from..].iter().enumerate().take_while(|(i, w)| alike((*i, w))).count();
        Even { from, to: from + run, start, stride, count }
    }

    /// Calls `f(result, element)` for the elements of the even windows in a row: for the first element of every window,
    /// then for the second, and so on.
    #[inline(always)]
    fn each<A, T: Copy>(self, row: &[T], step: usize, out: &mut [A], f: impl Fn(&mut A, T) + Copy) {
        let out = &mut out[self.from..self.to];
        for k in 0..self.count {
            strided(&row[self.start + k * step..], self.stride, out, f);
        }
    }
}

/// Accumulates a row of the input into a row of results.
struct IntoRow<'a, T, A, F> {
    row: &'a [T],
    out: &'a mut [A],
    windows: &'a [Window],
    even: Even,
    step: usize,
    f: F,
}

/// How an element is accumulated into the result of a window.
trait Take<T, A>: Copy + Sync {
    /// The instruction sets that the loops are compiled for.
    const SETS: InstructionSets;
    fn take(self, result: &mut A, element: T);
}

impl<T: Copy, A, F: Take<T, A>> Multiversioned for IntoRow<'_, T, A, F> {
    type Output = ();
    const SETS: InstructionSets = F::SETS;

    #[inline(always)]
    fn run(self) {
        let IntoRow { row, out, windows, even, step, f } = self;
        even.each(row, step, out, |result, x| f.take(result, x));
        for i in (0..even.from).chain(even.to..windows.len()) {
            for k in 0..windows[i].count {
                f.take(&mut out[i], row[windows[i].start + k * step]);
            }
        }
    }
}

/// Returns the larger value; NaN is larger than any number. `or_nan` is used because a selection alone would become a
/// masked store, which is slow.
#[inline(always)]
fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }.or_nan(b.is_nan())
}

/// Accumulates the maximum.
#[derive(Clone, Copy)]
struct Largest;

impl<T: Real> Take<T, T> for Largest {
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);
    #[inline(always)]
    fn take(self, result: &mut T, element: T) {
        *result = larger(*result, element);
    }
}

/// Elementwise maximum of two rows.
struct LargerRow<'a, T> {
    out: &'a mut [T],
    row: &'a [T],
}

impl<T: Real> Multiversioned for LargerRow<'_, T> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        self.out.iter_mut().zip(self.row).for_each(|(out, x)| *out = larger(*out, *x));
    }
}

/// Returns the largest element of every window, for f32 and f64: rows are compared with each other first, then windows
/// along the resulting row.
pub(super) fn largest<T: Real>(x: &Tensor, space: usize, windows: &Windows) -> Result<Tensor> {
    let sizes = output_sizes(x, space, windows);
    let x = x.contiguous()?;
    let [_, d, h, w] = planes(&x, space);
    let out = Tensor::full(&sizes, crate::Scalar::Float(f64::NEG_INFINITY), x.dtype())?;
    let (along, step, even) = (&windows.along[2], windows.step[2], Even::of(&windows.along[2]));
    let top = || vec![-T::INFINITY; w];
    let beside = &mut vec![(); out.numel()];
    each_row::<T, _, _>(&out, beside, &x, windows, [d, h, w], top, |top, at, rows, out, _| {
        let mut rows = rows.of(at);
        let Some(row) = rows.next() else { return };
        top.copy_from_slice(row);
        rows.for_each(|row| simd::run(LargerRow { out: top, row }));
        simd::run(IntoRow { row: top, out, windows: along, even, step, f: Largest });
    })?;
    Ok(out)
}

/// Takes the elements of a row, one per window, that are larger than the largest ones so far, or NaN.
struct LargestAt<'a, T> {
    elements: &'a [T],
    /// The positions of the elements, less `offset`.
    positions: &'a [i32],
    offset: i32,
    largest: &'a mut [T],
    at: &'a mut [i32],
}

impl<T: Real> Multiversioned for LargestAt<'_, T> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        let results = self.largest.iter_mut().zip(self.at);
        for ((largest, at), (x, position)) in results.zip(self.elements.iter().zip(self.positions)) {
            // A mask, because a selection would become a masked store, which is slow.
            let taken = -i32::from(*x > *largest || x.is_nan());
            *at = (position + self.offset) & taken | *at & !taken;
            *largest = larger(*largest, *x);
        }
    }
}

/// Returns the largest element of every window, for f32 and f64, and its index in its plane, which has fewer elements than
/// `i32::MAX`: the elements of windows are compared position by position, for all windows of a row at a time.
pub(super) fn largest_with_indices<T: Real>(
    x: &Tensor,
    space: usize,
    windows: &Windows,
) -> Result<(Tensor, Tensor)> {
    let sizes = output_sizes(x, space, windows);
    let x = x.contiguous()?;
    let [_, d, h, w] = planes(&x, space);
    let out = Tensor::full(&sizes, crate::Scalar::Float(f64::NEG_INFINITY), x.dtype())?;
    let mut found = vec![0_i64; out.numel()];
    let (along, step, even) = (&windows.along[2], windows.step[2], Even::of(&windows.along[2]));
    let starts: Vec<i32> = along.iter().map(|window| window.start as i32).collect();
    let scratch = || (vec![T::ZERO; even.to - even.from], vec![0; along.len()]);
    each_row::<T, _, _>(
        &out,
        &mut found,
        &x,
        windows,
        [d, h, w],
        scratch,
        |(elements, at), zy, rows, out, found| {
            let (z, y) = (windows.along[0][zy.0].start, windows.along[1][zy.1].start);
            let first = ((z * h + y) * w) as i32;
            at.iter_mut().zip(&starts).for_each(|(at, start)| *at = first + start);
            for (offset, row) in rows.offsets(zy) {
                for k in 0..even.count {
                    strided(&row[even.start + k * step..], even.stride, elements, |to, x| *to = x);
                    simd::run(LargestAt {
                        elements,
                        positions: &starts[even.from..even.to],
                        offset: (offset + k * step) as i32,
                        largest: &mut out[even.from..even.to],
                        at: &mut at[even.from..even.to],
                    });
                }
                for i in (0..even.from).chain(even.to..along.len()) {
                    for position in (0..along[i].count).map(|k| along[i].start + k * step) {
                        if super::replaces_maximum(row[position], out[i]) {
                            (out[i], at[i]) = (row[position], (offset + position) as i32);
                        }
                    }
                }
            }
            found.iter_mut().zip(at).for_each(|(found, at)| *found = i64::from(*at));
        },
    )?;
    Ok((out, Tensor::from_vec(found, &sizes)?))
}

/// The rows of the input under rows of results.
#[derive(Clone, Copy)]
struct Rows<'a, T> {
    windows: &'a Windows,
    plane: &'a [T],
    height: usize,
    width: usize,
}

impl<'a, T> Rows<'a, T> {
    /// Returns the input rows that row (z, y) of windows covers.
    fn of(self, zy: (usize, usize)) -> impl Iterator<Item = &'a [T]> {
        self.offsets(zy).map(|(_, row)| row)
    }

    /// Returns these rows with the indices of their first elements in the plane.
    fn offsets(self, (z, y): (usize, usize)) -> impl Iterator<Item = (usize, &'a [T])> {
        let (z, y, step) = (self.windows.along[0][z], self.windows.along[1][y], self.windows.step);
        (0..z.count * y.count).map(move |i| {
            let (dz, dy) = (i / y.count * step[0], i % y.count * step[1]);
            let offset = ((z.start + dz) * self.height + y.start + dy) * self.width;
            (offset, &self.plane[offset..][..self.width])
        })
    }
}

/// Calls `row` for every row of results, with the scratch value that `scratch` makes once per thread's part, the row
/// (z, y) of windows, the input rows, and the results to write: elements of `out` and `beside`.
fn each_row<T: Element, B: Send, S>(
    out: &Tensor,
    beside: &mut [B],
    x: &Tensor,
    windows: &Windows,
    [d, height, width]: [usize; 3],
    scratch: impl Fn() -> S + Sync,
    row: impl Fn(&mut S, (usize, usize), Rows<'_, T::Raw>, &mut [T::Raw], &mut [B]) + Sync,
) -> Result<()> {
    access::edit_with::<T, T, _>(out, &[x], |mut out, ins| {
        let (count, cost) = windows.per_plane();
        if count == 0 {
            return;
        }
        let data = ins[0].data();
        threads::chunks_of_two(out.data(), beside, [count; 2], threads::rows(cost), |first, own, beside| {
            let mut scratch = scratch();
            let length = windows.along[2].len();
            let mut results = own.chunks_exact_mut(length).zip(beside.chunks_exact_mut(length));
            for plane in data.chunks_exact((d * height * width).max(1)).skip(first) {
                let rows = Rows { windows, plane, height, width };
                for at in rows_of(windows) {
                    let Some((out, beside)) = results.next() else { return };
                    row(&mut scratch, at, rows, out, beside);
                }
            }
        });
    })
}

/// Returns the rows of windows of a plane.
fn rows_of(windows: &Windows) -> impl Iterator<Item = (usize, usize)> {
    let height = windows.along[1].len();
    (0..windows.along[0].len() * height).map(move |i| (i / height, i % height))
}

/// The divisor of the sums of windows.
#[derive(Clone, Copy)]
pub enum Divisor<'a> {
    /// One divisor for all windows.
    Fixed(i64),
    /// The number of positions of a window: the product over the dimensions, at least one.
    Counts(&'a [Vec<i64>; 3]),
}

impl Divisor<'_> {
    /// Returns the factor that the results of row (z, y) of windows share.
    fn row(self, z: usize, y: usize) -> i64 {
        match self {
            Divisor::Fixed(n) => n,
            Divisor::Counts(counts) => counts[0][z] * counts[1][y],
        }
    }

    /// Returns the divisor of one result of a row.
    fn of(self, row: i64, v: usize) -> i64 {
        match self {
            Divisor::Fixed(n) => n,
            Divisor::Counts(counts) => (row * counts[2][v]).max(1),
        }
    }
}

/// Returns the sum of every window, divided. The last `space` dimensions are spatial.
///
/// # Errors
/// Returns an error if the dtype is not supported or memory is exhausted.
pub fn average(x: &Tensor, space: usize, windows: &Windows, divisor: Divisor<'_>) -> Result<Tensor> {
    let sizes = output_sizes(x, space, windows);
    let x = x.contiguous()?;
    let [_, d, h, w] = planes(&x, space);
    let out = Tensor::zeros(&sizes, x.dtype())?;
    match x.dtype() {
        DType::I64 => averages::<i64, i64, _>(&out, &x, windows, [d, h, w], divisor, IntegerPooling),
        dtype => dispatch!(floats, dtype, "avg_pool2d", T => {
            averages::<T, <T as Float>::Acc, _>(&out, &x, windows, [d, h, w], divisor, FloatPooling)
        }),
    }?;
    Ok(out)
}

/// How elements `T` are summed as `A`, and converted to results.
trait Mean<T: Element, A>: Take<T::Raw, A> {
    /// Divides the sums.
    fn finish(self, sums: &[A], by: &[A], out: &mut [T::Raw]);
}

/// Integers; quotients are truncated.
#[derive(Clone, Copy)]
struct IntegerPooling;
/// Floats, in the type that they compute in.
#[derive(Clone, Copy)]
struct FloatPooling;

impl Take<i64, i64> for IntegerPooling {
    const SETS: InstructionSets = InstructionSets::Baseline;
    #[inline(always)]
    fn take(self, result: &mut i64, element: i64) {
        *result = result.wrapping_add(element);
    }
}

impl Mean<i64, i64> for IntegerPooling {
    fn finish(self, sums: &[i64], by: &[i64], out: &mut [i64]) {
        out.iter_mut()
            .zip(sums.iter().zip(by))
            .for_each(|(out, (s, n))| *out = s.checked_div(*n).unwrap_or(0));
    }
}

impl<R: Copy, A: Real> Take<R, A> for FloatPooling
where
    R: WidenRaw<A>,
{
    const SETS: InstructionSets = InstructionSets::at_most_avx2(A::DTYPE);
    #[inline(always)]
    fn take(self, result: &mut A, element: R) {
        *result = *result + element.widen();
    }
}

/// Widens the raw form of a float to the type that it computes in.
trait WidenRaw<A> {
    fn widen(self) -> A;
}

impl<R: Element<Raw = R> + Float<Acc = A>, A: Real> WidenRaw<A> for R {
    #[inline(always)]
    fn widen(self) -> A {
        self.acc()
    }
}

impl<T: Float<Acc = A> + Element<Raw = T>, A: Real> Mean<T, A> for FloatPooling {
    fn finish(self, sums: &[A], by: &[A], out: &mut [T]) {
        out.iter_mut().zip(sums.iter().zip(by)).for_each(|(out, (sum, n))| *out = T::from_acc(*sum / *n));
    }
}

fn averages<T: Element, A: Element, M: Mean<T, A>>(
    out: &Tensor,
    x: &Tensor,
    windows: &Windows,
    planes: [usize; 3],
    divisor: Divisor<'_>,
    mean: M,
) -> Result<()> {
    let (along, step, even) = (&windows.along[2], windows.step[2], Even::of(&windows.along[2]));
    let scratch = || (vec![A::ZERO; along.len()], vec![A::ZERO; along.len()], None);
    let beside = &mut vec![(); out.numel()];
    each_row::<T, _, _>(
        out,
        beside,
        x,
        windows,
        planes,
        scratch,
        |(sums, by, shared), (z, y), rows, out, _| {
            let here = divisor.row(z, y);
            if shared.replace(here) != Some(here) {
                by.iter_mut().enumerate().for_each(|(v, by)| *by = cast::<i64, A>(divisor.of(here, v)));
            }
            sums.fill(A::ZERO);
            for row in rows.of((z, y)) {
                simd::run(IntoRow { row, out: &mut sums[..], windows: along, even, step, f: mean });
            }
            mean.finish(sums, by, out);
        },
    )
}
