//! Pooling: reductions of windows that slide over one to three spatial dimensions.
//!
//! Windows are given per dimension as lists of ranges in the input, so sliding, adaptive and fractional pooling share
//! one loop. All loops are three-dimensional; the dimensions before the spatial ones are planes.

mod rows;

use crate::access;
use crate::budget::check_budget;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::tensor::Tensor;
use crate::threads;
pub use rows::{Divisor, average};

/// A window along one dimension: the first position and the number of elements, which are [`Windows::step`] apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first position.
    pub start: usize,
    /// The number of positions.
    pub count: usize,
}

/// All windows of a pooling, dimension by dimension, and the step between the elements of a window.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Windows along depth, height and width.
    pub along: [Vec<Window>; 3],
    /// Distance between a window's elements, per dimension.
    pub step: [usize; 3],
}

/// Parameters of sliding windows: one entry per spatial dimension.
#[derive(Clone, Debug)]
pub struct Slide {
    /// Elements per window.
    pub kernel: Vec<i64>,
    /// Distance between windows.
    pub stride: Vec<i64>,
    /// Implicit positions on both sides.
    pub padding: Vec<i64>,
    /// Distance between a window's elements.
    pub dilation: Vec<i64>,
    /// Whether a window that is partly outside is included.
    pub ceil: bool,
}

impl Slide {
    /// Returns the number of windows along dimension `d` of size `n`; none or a negative number if no window fits.
    ///
    /// # Errors
    /// Returns an error, with PyTorch's message, if the parameters or the resulting size are invalid.
    pub fn count(&self, d: usize, n: i64) -> Result<i64> {
        let [k, s, p, l] = self.of(d);
        for (what, value) in [("kernel size", k), ("stride", s), ("dilation", l)] {
            if value <= 0 {
                return Err(TensorError::shape(format!(
                    "{what} should be greater than zero, but got {value}"
                )));
            }
        }
        let reach = (k - 1) * l + 1;
        if p < 0 {
            return Err(TensorError::shape(format!("pad must be non-negative, but got pad: {p}")));
        }
        if p > reach / 2 {
            return Err(TensorError::shape(format!(
                "pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={l}"
            )));
        }
        let n = i128::from(n);
        let available = n + 2 * p - reach + if self.ceil { s - 1 } else { 0 };
        let mut count = available.div_euclid(s) + 1;
        // The last window must start within the input or the padding before it.
        if self.ceil && (count - 1) * s >= n + p {
            count -= 1;
        }
        // At most `n + 1`, because the padding is at most the window; only a negative number can be out of range.
        Ok(i64::try_from(count).unwrap_or(i64::MIN))
    }

    /// Returns kernel size, stride, padding and dilation of a dimension as numbers whose products do not overflow.
    fn of(&self, d: usize) -> [i128; 4] {
        [self.kernel[d], self.stride[d], self.padding[d], self.dilation[d]].map(i128::from)
    }

    /// Returns the windows of dimension `d`, clipped to the input; the positions of a clipped window's elements do not
    /// shift.
    ///
    /// # Errors
    /// As for [`Slide::count`].
    pub fn windows(&self, d: usize, n: i64) -> Result<Vec<Window>> {
        let [k, s, p, l] = self.of(d);
        let cut = |i: i64| {
            let mut start = i128::from(i) * s - p;
            let end = (start + (k - 1) * l + 1).min(n.into());
            if start < 0 {
                start += (-start + l - 1) / l * l;
            }
            let count = if end > start { (end - start - 1) / l + 1 } else { 0 };
            Window { start: start as usize, count: count as usize }
        };
        Ok((0..self.count(d, n)?).map(cut).collect())
    }
}

/// Returns the windows that divide `n` positions into `count`, which overlap if necessary.
///
/// # Errors
/// Returns an error if memory or the budget is exhausted.
pub fn adaptive(n: i64, count: i64) -> Result<Vec<Window>> {
    check_budget(usize::try_from(count).unwrap_or(0).saturating_mul(size_of::<Window>()))?;
    let (n, all) = (i128::from(n), i128::from(count));
    let cut = |i: i64| {
        let i = i128::from(i);
        let (start, end) = (i * n / all, ((i + 1) * n + all - 1) / all);
        Window { start: start as usize, count: (end - start) as usize }
    };
    Ok((0..count).map(cut).collect())
}

/// Returns the sizes of the input with three spatial dimensions: planes, depth, height, width.
fn planes(x: &Tensor, space: usize) -> [usize; 4] {
    let (lead, rest) = x.sizes().split_at(x.rank() - space);
    let mut all = [1; 4];
    all[0] = lead.iter().map(|n| *n as usize).product();
    for (slot, n) in all[4 - space..].iter_mut().zip(rest) {
        *slot = *n as usize;
    }
    all
}

fn output_sizes(x: &Tensor, space: usize, windows: &Windows) -> Vec<i64> {
    let mut sizes = x.sizes()[..x.rank() - space].to_vec();
    sizes.extend(windows.along[3 - space..].iter().map(|w| w.len() as i64));
    sizes
}

impl Windows {
    /// Returns the numbers of elements of the windows of each dimension.
    pub fn counts(&self) -> [Vec<i64>; 3] {
        self.along.each_ref().map(|along| along.iter().map(|w| w.count as i64).collect())
    }

    /// Returns the number of windows, and the cost of one plane of results.
    fn per_plane(&self) -> (usize, usize) {
        let count = self.along.iter().map(Vec::len).product();
        let largest = |along: &Vec<Window>| along.iter().map(|w| w.count).max().unwrap_or(0);
        (count, self.along.iter().map(largest).fold(count, usize::saturating_mul))
    }
}

/// The smallest value of the element type.
#[inline(always)]
fn least<T: Element>() -> T {
    match T::DTYPE {
        DType::U8 => T::ZERO,
        DType::I8 => T::from_i64(i8::MIN.into()),
        DType::I16 => T::from_i64(i16::MIN.into()),
        DType::I32 => T::from_i64(i32::MIN.into()),
        DType::I64 => T::from_i64(i64::MIN),
        _ => T::from_f64(f64::NEG_INFINITY),
    }
}

/// Whether an element takes the place of the largest so far: it is larger, or NaN.
#[inline(always)]
#[expect(clippy::eq_op, reason = "NaN is the one value that differs from itself")]
fn replaces_maximum<T: Element + PartialOrd>(x: T, largest: T) -> bool {
    x > largest || x != x
}

/// Returns the largest element of every window, and its index in its plane. The last `space` dimensions are spatial.
///
/// # Errors
/// Returns an error if the dtype is not supported or memory is exhausted.
pub fn max_with_indices(x: &Tensor, space: usize, windows: &Windows) -> Result<(Tensor, Tensor)> {
    let is_small = planes(x, space)[1..].iter().product::<usize>() < i32::MAX as usize;
    match x.dtype() {
        DType::F32 if is_small => rows::largest_with_indices::<f32>(x, space, windows),
        DType::F64 if is_small => rows::largest_with_indices::<f64>(x, space, windows),
        _ => largest_by_window(x, space, windows),
    }
}

/// As [`max_with_indices`], window by window.
fn largest_by_window(x: &Tensor, space: usize, windows: &Windows) -> Result<(Tensor, Tensor)> {
    let sizes = output_sizes(x, space, windows);
    let x = x.contiguous()?;
    let [_, d, h, w] = planes(&x, space);
    let values = Tensor::zeros(&sizes, x.dtype())?;
    let indices = Tensor::zeros(&sizes, DType::I64)?;
    let mut found = vec![0_i64; values.numel()];
    let (count, cost) = windows.per_plane();
    dispatch!(real, x.dtype(), "max_pool2d", T => access::edit_with::<T, T, _>(&values, &[&x], |mut out, ins| {
        let (data, out) = (ins[0].data(), out.data());
        threads::chunks_of_two(out, &mut found, [count; 2], threads::rows(cost), |first, out, found| {
        let mut out = out.iter_mut().zip(found);
        let planes = data.chunks_exact((d * h * w).max(1)).skip(first).take(out.len() / count);
        for plane in planes {
            each_window(windows, |[z, y, v]| {
                let mut best = least::<T>();
                let mut at = (z.start * h + y.start) * w + v.start;
                for i in 0..z.count {
                    for j in 0..y.count {
                        let row = ((z.start + i * windows.step[0]) * h + y.start + j * windows.step[1]) * w + v.start;
                        for k in 0..v.count {
                            let here = row + k * windows.step[2];
                            let value = T::from_raw(plane[here]);
                            if replaces_maximum(value, best) {
                                (best, at) = (value, here);
                            }
                        }
                    }
                }
                if let Some((out, found)) = out.next() {
                    *out = best.to_raw();
                    *found = at as i64;
                }
            });
        }
        });
    }))?;
    access::edit::<i64, _>(&indices, |mut out| out.data().copy_from_slice(&found))?;
    Ok((values, indices))
}

/// Calls `f` for every window in row-major order.
fn each_window(windows: &Windows, mut f: impl FnMut([Window; 3])) {
    for z in &windows.along[0] {
        for y in &windows.along[1] {
            for v in &windows.along[2] {
                f([*z, *y, *v]);
            }
        }
    }
}

/// Returns the largest element of every window. The last `space` dimensions are spatial.
///
/// # Errors
/// As for [`max_with_indices`].
pub fn max_values(x: &Tensor, space: usize, windows: &Windows) -> Result<Tensor> {
    match x.dtype() {
        DType::F32 => rows::largest::<f32>(x, space, windows),
        DType::F64 => rows::largest::<f64>(x, space, windows),
        _ => Ok(max_with_indices(x, space, windows)?.0),
    }
}

/// Writes every element to its index in the plane; other elements are zero. `sizes` are the spatial sizes of the
/// result.
///
/// # Errors
/// Returns an error if an index is out of range, the dtype is not supported, or memory is exhausted.
pub fn unpool(x: &Tensor, indices: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    let space = sizes.len();
    let mut whole = x.sizes()[..x.rank() - space].to_vec();
    whole.extend_from_slice(sizes);
    let out = Tensor::zeros(&whole, x.dtype())?;
    let plane: i64 = sizes.iter().product();
    let per_plane: usize = x.sizes()[x.rank() - space..].iter().product::<i64>() as usize;
    let wanted = indices.to_vec::<i64>()?;
    if let Some(bad) = wanted.iter().find(|i| !(0..plane).contains(*i)) {
        // PyTorch does not close the parenthesis.
        let volume = sizes.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        return Err(TensorError::value(format!(
            "Found an invalid max index: {bad} (output volumes are of size {volume}"
        )));
    }
    let x = x.contiguous()?;
    dispatch!(real, x.dtype(), "max_unpool2d", T => access::edit_with::<T, T, _>(&out, &[&x], |mut out, ins| {
        if per_plane == 0 {
            return;
        }
        let (values, plane) = (ins[0].data(), plane as usize);
        let indices = values.chunks_exact(per_plane).zip(wanted.chunks_exact(per_plane));
        threads::chunks(out.data(), threads::rows(per_plane.max(plane)) * plane, |first, own| {
            let planes = own.chunks_exact_mut(plane).zip(indices.clone().skip(first / plane));
            for (out, (values, indices)) in planes {
                values.iter().zip(indices).for_each(|(value, index)| out[*index as usize] = *value);
            }
        });
    }))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(n: i64) -> Tensor {
        Tensor::from_vec((0..n * n).map(|i| ((i * 7) % 11) as f32).collect(), &[1, n, n]).unwrap()
    }

    #[test]
    fn rows_at_once_agree_with_single_windows() {
        for (n, kernel, stride, padding, dilation) in
            [(9, 3, 2, 1, 1), (8, 2, 2, 0, 1), (9, 3, 1, 1, 2), (5, 5, 1, 2, 1), (7, 2, 3, 1, 1)]
        {
            let slide = Slide {
                kernel: vec![kernel; 2],
                stride: vec![stride; 2],
                padding: vec![padding; 2],
                dilation: vec![dilation; 2],
                ceil: n % 2 == 0,
            };
            let one = vec![Window { start: 0, count: 1 }];
            let along = [one, slide.windows(0, n).unwrap(), slide.windows(1, n).unwrap()];
            let windows = Windows { along, step: [1, dilation as usize, dilation as usize] };
            let x = square(n);
            let (values, indices) = max_with_indices(&x, 2, &windows).unwrap();
            let fast = max_values(&x, 2, &windows).unwrap();
            assert_eq!(values.to_vec::<f32>().unwrap(), fast.to_vec::<f32>().unwrap());
            let flat = x.to_vec::<f32>().unwrap();
            let picked: Vec<f32> =
                indices.to_vec::<i64>().unwrap().iter().map(|i| flat[*i as usize]).collect();
            assert_eq!(picked, values.to_vec::<f32>().unwrap());
            // Equal elements, infinities and NaN: the first of the largest elements, or the last NaN.
            for dtype in [DType::F32, DType::F64] {
                let special = [1.0, f64::NEG_INFINITY, f64::NEG_INFINITY, 1.0, f64::NAN, 0.0, f64::NAN];
                let elements: Vec<f64> = special.iter().cycle().take((n * n) as usize).copied().collect();
                let x = Tensor::from_vec(elements, &[1, n, n]).unwrap().to_dtype(dtype).unwrap();
                let (_, at) = max_with_indices(&x, 2, &windows).unwrap();
                let (_, want) = largest_by_window(&x, 2, &windows).unwrap();
                assert_eq!(
                    at.to_vec::<i64>().unwrap(),
                    want.to_vec::<i64>().unwrap(),
                    "{n} {kernel} {dtype}"
                );
            }
        }
    }

    #[test]
    fn no_parameter_overflows() {
        let of = |kernel, stride, padding, dilation, ceil| Slide {
            kernel: vec![kernel],
            stride: vec![stride],
            padding: vec![padding],
            dilation: vec![dilation],
            ceil,
        };
        let max = i64::MAX;
        for ceil in [false, true] {
            assert!(of(max, 1, 0, max, ceil).count(0, 5).unwrap() < 1);
            assert!(of(max, max, max / 2, 1, ceil).count(0, max).unwrap() >= 1);
            assert_eq!(of(1, 1, 0, 1, ceil).count(0, max - 1).unwrap(), max - 1);
            assert!(
                of(max, 1, max, 1, ceil).count(0, 5).is_err(),
                "the padding is more than half of the window"
            );
        }
        let rest = of(max, max, 0, max, true);
        assert!(rest.count(0, 5).unwrap() < 1 && rest.windows(0, 5).unwrap().is_empty());
        let wide = of(max / 2, max / 2, max / 4, 1, true);
        assert_eq!(wide.windows(0, 5).unwrap(), [Window { start: 0, count: 5 }]);
    }

    #[test]
    fn adaptive_windows_cover_everything() {
        assert_eq!(adaptive(5, 2).unwrap(), [Window { start: 0, count: 3 }, Window { start: 2, count: 3 }]);
        assert_eq!(adaptive(3, 3).unwrap(), [0, 1, 2].map(|start| Window { start, count: 1 }));
    }
}
