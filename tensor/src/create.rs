//! Creation of tensors, and extraction of their elements.

use crate::access;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::Layout;
use crate::scalar::Scalar;
use crate::storage::Storage;
use crate::tensor::Tensor;

/// Returns the bytes of a row-major tensor.
///
/// # Errors
/// Returns [`TensorError::SizeOverflow`] if they exceed half the address space.
#[inline]
pub(crate) fn bytes_of(layout: &Layout, dtype: DType) -> Result<usize> {
    match layout.numel().checked_mul(dtype.size()) {
        Some(bytes) if bytes <= isize::MAX as usize / 2 => Ok(bytes),
        _ => Err(too_many(layout)),
    }
}

#[cold]
fn too_many(layout: &Layout) -> TensorError {
    TensorError::SizeOverflow(layout.sizes().into())
}

impl Tensor {
    /// Returns a row-major tensor of zeros. (PyTorch's `empty` guarantees nothing about the elements; here they are
    /// zeros.)
    ///
    /// # Errors
    /// Returns an error if a size is negative, or memory is exhausted.
    pub fn empty(sizes: &[i64], dtype: DType) -> Result<Tensor> {
        Tensor::zeros(sizes, dtype)
    }

    /// Returns a row-major tensor of zeros.
    ///
    /// # Errors
    /// As for [`Tensor::empty`].
    pub fn zeros(sizes: &[i64], dtype: DType) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        let storage = Storage::zeroed(bytes_of(&layout, dtype)?)?;
        Ok(Tensor::from_parts(storage, dtype, layout))
    }

    /// Returns a tensor of zeros with the given strides.
    ///
    /// # Errors
    /// As for [`Tensor::empty`]; also if a stride is negative.
    pub fn empty_strided(sizes: &[i64], strides: &[i64], dtype: DType) -> Result<Tensor> {
        let layout = Layout::new(sizes, strides, 0)?;
        let bytes = layout.storage_end().checked_mul(dtype.size());
        let bytes = bytes.ok_or_else(|| TensorError::SizeOverflow(sizes.into()))?;
        Ok(Tensor::from_parts(Storage::zeroed(bytes)?, dtype, layout))
    }

    /// Returns a row-major tensor of one value.
    ///
    /// # Errors
    /// As for [`Tensor::empty`].
    pub fn full(sizes: &[i64], value: Scalar, dtype: DType) -> Result<Tensor> {
        if dtype == DType::C32 {
            return Tensor::full(sizes, value, DType::C64)?.to_dtype(dtype);
        }
        let layout = Layout::contiguous(sizes)?;
        let bytes = bytes_of(&layout, dtype)?;
        let storage: Result<Storage> = dispatch!(all, dtype, "full", T => {
            let raw = value.to::<T>().to_raw();
            // Compared by bits, because -0.0 is not stored as zero bytes.
            let zero = bytemuck::bytes_of(&raw).iter().all(|byte| *byte == 0);
            if zero { Storage::zeroed(bytes) } else { Storage::repeated(raw, layout.numel()) }
        });
        Ok(Tensor::from_parts(storage?, dtype, layout))
    }

    /// Returns a zero-dimensional tensor of a scalar, converted to the dtype.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn scalar(value: Scalar, dtype: DType) -> Result<Tensor> {
        if dtype == DType::C32 {
            return Tensor::scalar(value, DType::C64)?.to_dtype(dtype);
        }
        dispatch!(all, dtype, "scalar", T => {
            let raw = [value.to::<T>().to_raw()];
            let storage = Storage::from_bytes(bytemuck::cast_slice(&raw))?;
            Ok(Tensor::from_parts(storage, dtype, Layout::scalar()))
        })
    }

    /// Returns a zero-dimensional tensor of an element, with the element's dtype.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn from_element<T: Element>(value: T) -> Result<Tensor> {
        Tensor::from_slice(&[value], &[])
    }

    /// Returns a row-major tensor of a vector's elements.
    ///
    /// # Errors
    /// As for [`Tensor::from_slice`].
    pub fn from_vec<T: Element>(values: Vec<T>, sizes: &[i64]) -> Result<Tensor> {
        Tensor::from_slice(&values, sizes)
    }

    /// Returns a row-major tensor with a copy of the elements.
    ///
    /// # Errors
    /// Returns [`TensorError::ShapeInvalid`] if the sizes do not hold as many elements, and an error if memory is
    /// exhausted.
    pub fn from_slice<T: Element>(values: &[T], sizes: &[i64]) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        if layout.numel() != values.len() {
            return Err(TensorError::ShapeInvalid { shape: sizes.into(), numel: values.len() as i64 });
        }
        let raw: Vec<T::Raw> = values.iter().map(|value| value.to_raw()).collect();
        let storage = Storage::from_bytes(bytemuck::cast_slice(&raw))?;
        Ok(Tensor::from_parts(storage, T::DTYPE, layout))
    }

    /// Returns a row-major tensor of scalars, each converted to the dtype.
    ///
    /// # Errors
    /// As for [`Tensor::from_slice`].
    pub fn from_scalars(values: &[Scalar], sizes: &[i64], dtype: DType) -> Result<Tensor> {
        if dtype == DType::C32 {
            return Tensor::from_scalars(values, sizes, DType::C64)?.to_dtype(dtype);
        }
        dispatch!(all, dtype, "tensor", T => {
            let values: Vec<T> = values.iter().map(|value| value.to::<T>()).collect();
            Tensor::from_slice(&values, sizes)
        })
    }

    /// Returns a tensor with a copy of little-endian bytes and the given layout.
    ///
    /// # Errors
    /// Returns [`TensorError::OutOfBounds`] if the layout reaches outside the bytes, and an error if memory is
    /// exhausted.
    pub fn from_bytes(bytes: &[u8], dtype: DType, layout: Layout) -> Result<Tensor> {
        Tensor::from_storage(Storage::from_bytes(bytes)?, dtype, layout)
    }

    /// Returns the values `start, start + step, ...`, up to but not including `end`. Bounds and step of a range of integers are
    /// truncated.
    ///
    /// # Errors
    /// Returns PyTorch's errors for a step of zero, a step of the wrong sign and infinite bounds, and an error if the
    /// dtype is not real or memory is exhausted.
    pub fn arange(start: Scalar, end: Scalar, step: Scalar, dtype: DType) -> Result<Tensor> {
        let used = range_numbers([start, end, step], dtype, "arange_cpu", "larger")?;
        // As in PyTorch, the steps of a range of narrow integers are counted before bounds and step are truncated.
        let [lo, hi, by] = if dtype == DType::I64 { used } else { [start, end, step] };
        let count = match [lo, hi, by] {
            [Scalar::Int(lo), Scalar::Int(hi), Scalar::Int(by)] => {
                let (lo, hi, by) = (i128::from(lo), i128::from(hi), i128::from(by));
                (((hi - lo) * by.signum() + by.abs() - 1) / by.abs()) as f64
            }
            _ => ((hi.to_f64() - lo.to_f64()) / by.to_f64()).ceil(),
        };
        range_of(used[0], used[2], count, dtype)
    }

    /// Returns the values `start, start + step, ...`, up to and including `end`, as [`Tensor::arange`].
    ///
    /// # Errors
    /// As for [`Tensor::arange`].
    pub fn range(start: Scalar, end: Scalar, step: Scalar, dtype: DType) -> Result<Tensor> {
        let [lo, hi, by] = range_numbers([start, end, step], dtype, "range_cpu", "lower")?;
        let count = match [lo, hi, by] {
            [Scalar::Int(lo), Scalar::Int(hi), Scalar::Int(by)] => {
                ((i128::from(hi) - i128::from(lo)) / i128::from(by) + 1) as f64
            }
            _ => ((hi.to_f64() - lo.to_f64()) / by.to_f64() + 1.0).floor(),
        };
        range_of(lo, by, count, dtype)
    }

    /// Returns the elements in row-major order, each converted to `T`.
    ///
    /// # Errors
    /// Returns an error if memory or the budget is exhausted.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        crate::budget::check_budget(self.numel().saturating_mul(size_of::<T>()))?;
        // The copy loops convert and reorder, so this function is instantiated per type, not per pair of types.
        let copy;
        let rows = if self.dtype() == T::DTYPE && self.layout().is_contiguous() {
            self
        } else {
            copy = crate::loops::copied(self, self.layout().to_contiguous(), T::DTYPE)?;
            &copy
        };
        access::read::<T, _>(rows, |view| view.data().iter().map(|raw| T::from_raw(*raw)).collect())
    }

    /// Returns the elements in row-major order as scalars of their category.
    ///
    /// # Errors
    /// Returns an error if memory or the budget is exhausted.
    pub fn to_scalars(&self) -> Result<Vec<Scalar>> {
        if self.dtype() == DType::C32 {
            return self.to_dtype(DType::C64)?.to_scalars();
        }
        dispatch!(all, self.dtype(), "to_scalars", T => {
            Ok(self.to_vec::<T>()?.into_iter().map(Element::to_scalar).collect())
        })
    }

    /// Returns the elements in row-major order as little-endian bytes.
    ///
    /// # Errors
    /// Returns an error if memory or the budget is exhausted.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.dtype() == DType::C32 {
            return self.view_as_real()?.to_bytes();
        }
        dispatch!(all, self.dtype(), "to_bytes", T => {
            let raw: Vec<_> = self.to_vec::<T>()?.into_iter().map(Element::to_raw).collect();
            Ok(bytemuck::cast_slice(&raw).to_vec())
        })
    }

    /// Returns a row-major copy.
    pub(crate) fn copy_contiguous(&self) -> Result<Tensor> {
        crate::loops::copied(self, self.layout().to_contiguous(), self.dtype())
    }

    /// Returns the only element.
    ///
    /// # Errors
    /// Returns [`TensorError::Value`] if the tensor does not have exactly one element.
    pub fn item(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            let n = self.numel();
            return Err(TensorError::value(format!(
                "a Tensor with {n} elements cannot be converted to Scalar"
            )));
        }
        if self.dtype() == DType::C32 {
            return self.to_dtype(DType::C64)?.item();
        }
        dispatch!(all, self.dtype(), "item", T => {
            Ok(access::first::<T>(self).to_scalar())
        })
    }

    /// Returns an element of a one-dimensional tensor; a negative index counts from the end. Returns `None` for other
    /// ranks, complex f16, and an index out of range.
    pub fn element_of_row(&self, index: i64) -> Option<Scalar> {
        if self.dtype() == DType::C32 {
            return None;
        }
        let read = || -> Result<Option<Scalar>> {
            dispatch!(all, self.dtype(), "item", T => {
                Ok(access::element_of_row::<T>(self, index).map(Element::to_scalar))
            })
        };
        read().ok().flatten()
    }
}

/// Returns start, end and step of a range as the numbers in which its elements are computed: 64-bit integers or floats. `end_name`
/// is the name of the end in the error of a step of the wrong sign.
fn range_numbers(
    numbers: [Scalar; 3],
    dtype: DType,
    op: &'static str,
    end_name: &str,
) -> Result<[Scalar; 3]> {
    if dtype == DType::Bool || dtype.is_complex() {
        return Err(TensorError::DType { op, dtype });
    }
    let computed = if dtype.is_floating() { DType::F64 } else { DType::I64 };
    let used = numbers.map(|number| {
        let number = number.in_range_of(computed)?;
        Ok(match computed {
            DType::F64 => Scalar::Float(number.to_f64()),
            _ => Scalar::Int(number.to_i64()),
        })
    });
    let [start, end, step] = used;
    let used = [start?, end?, step?];
    let [lo, hi, by] = used.map(Scalar::to_f64);
    if by == 0.0 || by.is_nan() {
        return Err(TensorError::value("step must be nonzero"));
    }
    if !lo.is_finite() || !hi.is_finite() {
        return Err(TensorError::value(format!("unsupported range: {lo} -> {hi}").to_lowercase()));
    }
    let is_backward = match used {
        [Scalar::Int(lo), Scalar::Int(hi), Scalar::Int(by)] => by > 0 && hi < lo || by < 0 && hi > lo,
        _ => by > 0.0 && hi < lo || by < 0.0 && hi > lo,
    };
    if is_backward {
        return Err(TensorError::value(format!(
            "upper bound and {end_name} bound inconsistent with step sign"
        )));
    }
    Ok(used)
}

/// Returns a number of values `start, start + step, ...`, computed in 64-bit integers or floats.
fn range_of(start: Scalar, step: Scalar, count: f64, dtype: DType) -> Result<Tensor> {
    if !(0.0..=(1u64 << 58) as f64).contains(&count) {
        return Err(TensorError::value("invalid size, possible overflow?"));
    }
    let count = count as usize;
    dispatch!(real, dtype, "arange_cpu", T => {
        crate::budget::check_budget(count.saturating_mul(dtype.size()))?;
        let mut values: Vec<T> = Vec::new();
        values.try_reserve_exact(count).map_err(|_| TensorError::OutOfMemory {
            requested: count.saturating_mul(dtype.size()),
            limit: usize::MAX,
        })?;
        match (start, step) {
            (Scalar::Int(start), Scalar::Int(step)) => {
                values.extend((0..count as i64).map(|i| T::from_i64(start.wrapping_add(step.wrapping_mul(i)))));
            }
            _ => {
                let (start, step) = (start.to_f64(), step.to_f64());
                values.extend((0..count).map(|i| T::from_f64(start + step * i as f64)));
            }
        }
        Tensor::from_slice(&values, &[count as i64])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_read_back_in_row_major_order() {
        let t = Tensor::from_bytes(
            &[1, 0, 2, 0, 3, 0, 4, 0],
            DType::I16,
            Layout::new(&[2, 2], &[1, 2], 0).unwrap(),
        )
        .unwrap();
        assert_eq!(t.to_vec::<i64>().unwrap(), [1, 3, 2, 4]);
        assert_eq!(t.to_bytes().unwrap(), [1, 0, 3, 0, 2, 0, 4, 0]);
        assert_eq!(
            Tensor::full(&[3], Scalar::Float(1.5), DType::F16).unwrap().to_vec::<f32>().unwrap(),
            [1.5; 3]
        );
        assert_eq!(Tensor::scalar(Scalar::Int(7), DType::F32).unwrap().item().unwrap(), Scalar::Float(7.0));
        let bools = Tensor::from_bytes(&[0, 1, 2], DType::Bool, Layout::contiguous(&[3]).unwrap()).unwrap();
        assert_eq!(bools.to_vec::<bool>().unwrap(), [false, true, true]);
        assert_eq!(bools.to_bytes().unwrap(), [0, 1, 1]);
        assert!(Tensor::from_bytes(&[0; 7], DType::F32, Layout::contiguous(&[2]).unwrap()).is_err());
        assert!(t.item().is_err());
    }

    #[test]
    fn ranges() {
        let ints = |a, b, c| {
            Tensor::arange(Scalar::Int(a), Scalar::Int(b), Scalar::Int(c), DType::I64)
                .and_then(|t| t.to_vec::<i64>())
        };
        assert_eq!(ints(0, 5, 2).unwrap(), [0, 2, 4]);
        assert_eq!(ints(5, 0, -2).unwrap(), [5, 3, 1]);
        assert_eq!(ints(3, 3, 1).unwrap(), []);
        assert!(ints(0, 5, 0).is_err() && ints(0, 5, -1).is_err());
        assert!(ints(0, i64::MAX, 1).is_err());
        let t =
            Tensor::arange(Scalar::Float(0.0), Scalar::Float(1.0), Scalar::Float(0.3), DType::F32).unwrap();
        assert_eq!(t.sizes(), [4]);
    }
}
