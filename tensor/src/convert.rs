//! Copies: to another dtype, to row-major, into an existing tensor; and fills with one value.

use std::borrow::Cow;

use crate::access;
use crate::device::MemoryFormat;
use crate::dispatch;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::{Layout, Overlap, channels_last_strides, contiguous_strides};
use crate::loops;
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::threads::{self, GRAIN};

impl Tensor {
    /// Returns a copy with its own storage; a dense tensor's strides are kept (`clone`).
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn clone_data(&self) -> Result<Tensor> {
        self.cast_copy(self.dtype())
    }

    /// Returns a row-major copy with its own storage.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn clone_contiguous(&self) -> Result<Tensor> {
        loops::copied(self, self.layout().to_contiguous(), self.dtype())
    }

    /// Returns a copy with the same strides, including gaps between elements, unless elements overlap.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn clone_spread(&self) -> Result<Tensor> {
        let layout = self.layout();
        if layout.is_non_overlapping_and_dense() || layout.internal_overlap() == Overlap::Yes {
            return self.clone_data();
        }
        let span = layout.storage_end() as i64 - layout.offset();
        self.as_strided(&[span], &[1], None)?.clone_data()?.as_strided(layout.sizes(), layout.strides(), None)
    }

    /// Returns a copy in a memory format.
    ///
    /// # Errors
    /// Returns [`TensorError::Shape`] if the rank does not fit the format, and an error if memory is exhausted.
    pub fn clone_format(&self, format: MemoryFormat) -> Result<Tensor> {
        let wanted = match format {
            MemoryFormat::Preserve => return self.clone_data(),
            MemoryFormat::Contiguous => return self.clone_contiguous(),
            MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d => {
                self.check_rank_of(format)?;
                channels_last_strides(self.sizes())?
            }
        };
        let out = Tensor::empty_strided(self.sizes(), &wanted, self.dtype())?;
        out.copy_no_bump(self)?;
        Ok(out)
    }

    fn check_rank_of(&self, format: MemoryFormat) -> Result<()> {
        match format {
            MemoryFormat::ChannelsLast if self.rank() != 4 => {
                Err(TensorError::shape("required rank 4 tensor to use channels_last format"))
            }
            MemoryFormat::ChannelsLast3d if self.rank() != 5 => {
                Err(TensorError::shape("required rank 5 tensor to use channels_last_3d format"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the tensor itself if it is row-major, else a row-major copy.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.clone_contiguous() }
    }

    /// Returns the format that the strides suggest, also if the elements are not in its order.
    pub fn suggested_format(&self) -> MemoryFormat {
        match self.rank() {
            4 if self.layout().is_channels_last_strides() => MemoryFormat::ChannelsLast,
            5 if self.layout().is_channels_last_strides() => MemoryFormat::ChannelsLast3d,
            _ => MemoryFormat::Contiguous,
        }
    }

    /// Returns the tensor itself if it has the format, else a copy in that format.
    ///
    /// # Errors
    /// As for [`Tensor::clone_format`].
    pub fn contiguous_format(&self, format: MemoryFormat) -> Result<Tensor> {
        self.check_rank_of(format)?;
        let there = match format {
            MemoryFormat::Contiguous => self.is_contiguous(),
            MemoryFormat::Preserve => true,
            _ => self.layout().is_channels_last(),
        };
        if there { Ok(self.clone()) } else { self.clone_format(format) }
    }

    /// Returns the tensor itself if it has the dtype, else a converted copy.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self.clone()) } else { self.cast_copy(dtype) }
    }

    /// As [`Tensor::to_dtype`] by value, for a tensor that is not used afterwards.
    ///
    /// # Errors
    /// As for [`Tensor::to_dtype`].
    pub fn into_dtype(self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self) } else { self.cast_copy(dtype) }
    }

    /// As [`Tensor::contiguous`], borrowing the tensor if it is row-major.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn as_contiguous(&self) -> Result<Cow<'_, Tensor>> {
        Ok(if self.is_contiguous() { Cow::Borrowed(self) } else { Cow::Owned(self.clone_contiguous()?) })
    }

    /// Returns a converted copy with its own storage; strides are kept if dense.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn cast_copy(&self, dtype: DType) -> Result<Tensor> {
        loops::copied(self, self.preserved()?, dtype)
    }

    /// Returns the layout of a copy: the same strides if they are dense, else dense strides in the same order.
    ///
    /// # Errors
    /// Returns an error if the layout cannot be represented.
    pub fn preserved(&self) -> Result<Layout> {
        let layout = self.layout();
        match layout.is_contiguous() || layout.is_non_overlapping_and_dense() {
            true => Layout::new(layout.sizes(), layout.strides(), 0),
            false => loops::like(self),
        }
    }

    /// Overwrites the elements with another tensor's, broadcast and converted. An overlapping source is read before the
    /// write.
    ///
    /// # Errors
    /// Returns an error if the sizes do not broadcast, elements of this tensor overlap, its storage is protected, or
    /// memory is exhausted.
    pub fn copy_(&self, source: &Tensor) -> Result<()> {
        if self.ptr_eq(source) {
            return Ok(());
        }
        if self.shares_storage(source) && (self.layout() != source.layout() || self.dtype() != source.dtype())
        {
            return loops::copy(self, &source.copy_contiguous()?);
        }
        loops::copy(self, source)
    }

    /// As [`Tensor::copy_`] without incrementing the version, for a tensor that has no other handle yet.
    fn copy_no_bump(&self, source: &Tensor) -> Result<()> {
        loops::copy_fresh(self, source)
    }

    /// Overwrites all elements with one value.
    ///
    /// # Errors
    /// As for [`Tensor::copy_`].
    pub fn fill_(&self, value: Scalar) -> Result<()> {
        if self.dtype() == DType::C32 {
            return self.copy_(&Tensor::scalar(value, DType::C64)?);
        }
        dispatch!(all, self.dtype(), "fill_", T => {
            let value = value.to::<T>();
            if self.is_contiguous() {
                return access::edit::<T, _>(self, |mut out| {
                    threads::chunks(out.data(), GRAIN, |_, part| part.fill(value.to_raw()));
                });
            }
            // Elements that share one memory location are written once.
            let mut target = self.alias();
            for d in 0..target.rank() {
                if target.strides()[d] == 0 && target.sizes()[d] > 1 {
                    target = target.narrow(d as i64, 0, 1)?;
                }
            }
            loops::copy(&target, &Tensor::from_element(value)?)
        })
    }

    /// Returns zeros of the same sizes in the layout of a copy.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn empty_like(&self, dtype: DType) -> Result<Tensor> {
        let layout = self.preserved()?;
        Tensor::empty_strided(layout.sizes(), layout.strides(), dtype)
    }

    /// Returns zeros of the same sizes, row-major.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn zeros_contiguous_like(&self, dtype: DType) -> Result<Tensor> {
        Tensor::empty_strided(self.sizes(), &contiguous_strides(self.sizes()), dtype)
    }
}

#[cfg(test)]
mod tests {
    use crate::{DType, Scalar, Tensor};

    #[test]
    fn complex_numbers_are_rounded_to_bf16_once() {
        // Above the middle between two bf16, by less than f16 can express.
        let above = 1.113_281_25 + f64::from(f32::EPSILON);
        for dtype in [DType::C64, DType::C128, DType::F64, DType::F32] {
            let x = Tensor::scalar(Scalar::Float(above), dtype).unwrap().to_dtype(DType::BF16).unwrap();
            assert_eq!(x.to_vec::<f64>().unwrap(), [1.117_187_5], "{dtype}");
        }
    }

    /// Passes replace copies of tensors that were made of numbers by writes of the numbers.
    #[test]
    fn a_written_number_is_a_converted_one() {
        let written = |number: Scalar, dtype: DType| {
            let target = Tensor::zeros(&[1], dtype).unwrap();
            target.fill_(number).unwrap();
            target.to_bytes().unwrap()
        };
        let converted = |number: Scalar, from: DType, dtype: DType| {
            let target = Tensor::zeros(&[1], dtype).unwrap();
            target.copy_(&Tensor::scalar(number, from).unwrap().to_dtype(dtype).unwrap()).unwrap();
            target.to_bytes().unwrap()
        };
        let check = |number: Scalar, from: DType| {
            for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
                if number.is_in_range_of(dtype) {
                    assert_eq!(
                        written(number, dtype),
                        converted(number, from, dtype),
                        "{number:?} as {dtype:?}"
                    );
                }
            }
        };
        let mut state = 1_u64;
        for _ in 0..400 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // All exponents, and the numbers that have few digits.
            let x = f64::from_bits(state);
            for x in [x, x % 1e5, f64::from((state >> 40) as u32) / 128.0] {
                check(Scalar::Float(x), DType::F64);
            }
            for n in [state as i64, (state >> 20) as i64, (state >> 50) as i64] {
                check(Scalar::Int(n), DType::I64);
            }
        }
    }
}
