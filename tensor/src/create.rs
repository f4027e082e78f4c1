//! Making tensors, and taking their elements out.

use crate::access;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::Layout;
use crate::scalar::Scalar;
use crate::storage::Storage;
use crate::tensor::Tensor;

/// Bytes of a row-major tensor; an error if they do not fit.
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
    /// Zeros, row-major. (PyTorch's `empty` promises nothing about the elements; here they are zeros.)
    pub fn empty(sizes: &[i64], dtype: DType) -> Result<Tensor> {
        Tensor::zeros(sizes, dtype)
    }

    /// Zeros, row-major.
    pub fn zeros(sizes: &[i64], dtype: DType) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        let storage = Storage::zeroed(bytes_of(&layout, dtype)?)?;
        Ok(Tensor::from_parts(storage, dtype, layout))
    }

    /// Zeros with given strides.
    pub fn empty_strided(sizes: &[i64], strides: &[i64], dtype: DType) -> Result<Tensor> {
        let layout = Layout::new(sizes, strides, 0)?;
        let bytes = layout.storage_end().checked_mul(dtype.size());
        let bytes = bytes.ok_or_else(|| TensorError::SizeOverflow(sizes.into()))?;
        Ok(Tensor::from_parts(Storage::zeroed(bytes)?, dtype, layout))
    }

    /// One value throughout, row-major.
    pub fn full(sizes: &[i64], value: Scalar, dtype: DType) -> Result<Tensor> {
        if dtype == DType::C32 {
            return Tensor::full(sizes, value, DType::C64)?.to_dtype(dtype);
        }
        let layout = Layout::contiguous(sizes)?;
        let bytes = bytes_of(&layout, dtype)?;
        let storage: Result<Storage> = dispatch!(all, dtype, "full", T => {
            let raw = value.to::<T>().to_raw();
            // By bits: there is a zero that is negative.
            let zero = bytemuck::bytes_of(&raw).iter().all(|byte| *byte == 0);
            if zero { Storage::zeroed(bytes) } else { Storage::repeated(raw, layout.numel()) }
        });
        Ok(Tensor::from_parts(storage?, dtype, layout))
    }

    /// A tensor of no dimension.
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

    /// A tensor of no dimension, of an element's own type.
    pub fn from_element<T: Element>(value: T) -> Result<Tensor> {
        Tensor::from_slice(&[value], &[])
    }

    /// The elements of a vector, row-major.
    pub fn from_vec<T: Element>(values: Vec<T>, sizes: &[i64]) -> Result<Tensor> {
        Tensor::from_slice(&values, sizes)
    }

    /// A copy of elements, row-major.
    pub fn from_slice<T: Element>(values: &[T], sizes: &[i64]) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        if layout.numel() != values.len() {
            return Err(TensorError::ShapeInvalid { shape: sizes.into(), numel: values.len() as i64 });
        }
        let raw: Vec<T::Raw> = values.iter().map(|value| value.to_raw()).collect();
        let storage = Storage::from_bytes(bytemuck::cast_slice(&raw))?;
        Ok(Tensor::from_parts(storage, T::DTYPE, layout))
    }

    /// A tensor made of scalars, each converted to the dtype.
    pub fn from_scalars(values: &[Scalar], sizes: &[i64], dtype: DType) -> Result<Tensor> {
        if dtype == DType::C32 {
            return Tensor::from_scalars(values, sizes, DType::C64)?.to_dtype(dtype);
        }
        dispatch!(all, dtype, "tensor", T => {
            let values: Vec<T> = values.iter().map(|value| value.to::<T>()).collect();
            Tensor::from_slice(&values, sizes)
        })
    }

    /// A copy of little-endian bytes, laid out as given. An error if the layout reaches outside the bytes.
    pub fn from_bytes(bytes: &[u8], dtype: DType, layout: Layout) -> Result<Tensor> {
        Tensor::from_storage(Storage::from_bytes(bytes)?, dtype, layout)
    }

    /// `start, start + step, ...` up to before `end`.
    pub fn arange(start: Scalar, end: Scalar, step: Scalar, dtype: DType) -> Result<Tensor> {
        dispatch!(real, dtype, "arange", T => {
            let count = range_count(start, end, step)?;
            crate::budget::check_budget(count.saturating_mul(dtype.size()))?;
            let mut values: Vec<T> = Vec::new();
            values.try_reserve_exact(count).map_err(|_| TensorError::OutOfMemory {
                requested: count.saturating_mul(dtype.size()),
                limit: usize::MAX,
            })?;
            if dtype.is_floating() {
                let (start, step) = (start.to_f64(), step.to_f64());
                values.extend((0..count).map(|i| T::from_f64(start + step * i as f64)));
            } else {
                let (start, step) = (start.to_i64(), step.to_i64());
                values.extend((0..count as i64).map(|i| T::from_i64(start.wrapping_add(step.wrapping_mul(i)))));
            }
            Tensor::from_slice(&values, &[count as i64])
        })
    }

    /// The elements in row-major order, each converted to `T`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        crate::budget::check_budget(self.numel().saturating_mul(size_of::<T>()))?;
        // Conversion and order are the copier's work, so that this is compiled per type, not per pair of types.
        let copy;
        let rows = if self.dtype() == T::DTYPE && self.layout().is_contiguous() {
            self
        } else {
            copy = crate::loops::copied(self, self.layout().to_contiguous(), T::DTYPE)?;
            &copy
        };
        access::read::<T, _>(rows, |view| view.data().iter().map(|raw| T::from_raw(*raw)).collect())
    }

    /// The elements in row-major order as scalars of their category.
    pub fn to_scalars(&self) -> Result<Vec<Scalar>> {
        if self.dtype() == DType::C32 {
            return self.to_dtype(DType::C64)?.to_scalars();
        }
        dispatch!(all, self.dtype(), "to_scalars", T => {
            Ok(self.to_vec::<T>()?.into_iter().map(Element::to_scalar).collect())
        })
    }

    /// The elements in row-major order as little-endian bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.dtype() == DType::C32 {
            return self.view_as_real()?.to_bytes();
        }
        dispatch!(all, self.dtype(), "to_bytes", T => {
            let raw: Vec<_> = self.to_vec::<T>()?.into_iter().map(Element::to_raw).collect();
            Ok(bytemuck::cast_slice(&raw).to_vec())
        })
    }

    /// A row-major copy.
    pub(crate) fn copy_contiguous(&self) -> Result<Tensor> {
        crate::loops::copied(self, self.layout().to_contiguous(), self.dtype())
    }

    /// The only element.
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

    /// An element of a tensor of one dimension, by its index, which counts from the end if it is negative. `None` for
    /// other tensors, and where there is no such element.
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

/// How many numbers a range has; PyTorch's errors for a step of zero, a wrong direction, infinities.
fn range_count(start: Scalar, end: Scalar, step: Scalar) -> Result<usize> {
    let integral = [start, end, step].iter().all(|s| s.is_integral(true));
    let (lo, hi, by) = (start.to_f64(), end.to_f64(), step.to_f64());
    if by == 0.0 || by.is_nan() {
        return Err(TensorError::value("step must be nonzero"));
    }
    if !lo.is_finite() || !hi.is_finite() {
        return Err(TensorError::value(format!("unsupported range: {lo} -> {hi}")));
    }
    if (by > 0.0 && hi < lo) || (by < 0.0 && hi > lo) {
        return Err(TensorError::value("upper bound and lower bound inconsistent with step sign"));
    }
    let count = if integral {
        let (lo, hi, by) = (start.to_i64() as i128, end.to_i64() as i128, step.to_i64() as i128);
        let distance = (hi - lo) * by.signum();
        ((distance + by.abs() - 1) / by.abs()) as f64
    } else {
        ((hi - lo) / by).ceil()
    };
    if count > (1u64 << 58) as f64 {
        return Err(TensorError::value("invalid size, possible overflow?"));
    }
    Ok(count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_and_taken_out() {
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
