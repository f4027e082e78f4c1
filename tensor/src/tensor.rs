//! The tensor: one pointer to dtype, layout, storage and the state of autograd.
//!
//! In-place changes of metadata (`t_`, `unsqueeze_`, `resize_`, `set_`) take `&Tensor`, while readers hold `&Layout`.
//! So a change publishes a new record by an atomic store, and keeps the old records until the tensor is dropped. A
//! change back to a recent record reuses that record, so alternating changes use constant memory.
//!
//! Invariant: every record's layout is within its storage (a storage never shrinks).
#![allow(unsafe_code, reason = "publishes metadata records by an atomic pointer")]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Result, TensorError};
use crate::layout::Layout;
use crate::shared::Shared;
use crate::storage::Storage;

/// Autograd's state of a tensor; mostly opaque to this crate.
pub trait AutogradState: Any + Send + Sync {
    /// Whether the tensor is a view of a tensor that requires a gradient.
    fn base_requires_grad(&self) -> bool;
}

/// A shared [`AutogradState`].
pub type AutogradSlot = Arc<dyn AutogradState>;

/// One state of a tensor's metadata.
pub(crate) struct Meta {
    pub(crate) layout: Layout,
    pub(crate) storage: Storage,
}

/// State that few tensors have.
#[derive(Default)]
struct Extra {
    /// Later records, kept while the tensor lives. Each is a leaked box, freed on drop.
    records: Mutex<Vec<NonNull<Meta>>>,
    autograd: Mutex<Option<AutogradSlot>>,
}

impl Extra {
    #[cold]
    fn base_requires_grad(&self) -> bool {
        let state = self.autograd.lock().clone();
        state.is_some_and(|state| state.base_requires_grad())
    }
}

struct TensorImpl {
    first: Meta,
    /// The current record; null if it is `first`.
    current: AtomicPtr<Meta>,
    extra: OnceLock<Box<Extra>>,
    dtype: DType,
    requires_grad: AtomicBool,
}

// SAFETY: the raw pointers are boxes owned by this struct, immutable once published.
unsafe impl Send for TensorImpl {}
// SAFETY: as above; all changes go through atomics and mutexes.
unsafe impl Sync for TensorImpl {}

impl Drop for TensorImpl {
    #[inline]
    fn drop(&mut self) {
        if let Some(extra) = self.extra.get_mut() {
            for record in extra.records.get_mut().drain(..) {
                // SAFETY: made by `Box::leak` in `publish`, listed once; no reference to it outlives the tensor.
                drop(unsafe { Box::from_raw(record.as_ptr()) });
            }
        }
    }
}

/// A strided view of typed elements in a shared storage. Clones are the same tensor ([`Tensor::ptr_eq`]).
#[derive(Clone)]
pub struct Tensor(Shared<TensorImpl>);

/// Number of recent records that are checked for reuse.
const CHECKED_RECORDS: usize = 8;

impl Tensor {
    /// Makes a tensor over a storage.
    ///
    /// # Errors
    /// Returns [`TensorError::OutOfBounds`] if the layout reaches outside the storage.
    pub fn from_storage(storage: Storage, dtype: DType, layout: Layout) -> Result<Tensor> {
        check_bounds(&storage, dtype, &layout)?;
        Ok(Tensor::from_parts(storage, dtype, layout))
    }

    /// As [`Tensor::from_storage`] for a layout that is known to fit.
    #[inline(never)]
    pub(crate) fn from_parts(storage: Storage, dtype: DType, layout: Layout) -> Tensor {
        Tensor::constructed(storage, dtype, layout)
    }

    /// As [`Tensor::from_parts`], compiled into the caller, which constructs the layout.
    #[inline(always)]
    pub(crate) fn constructed(storage: Storage, dtype: DType, layout: Layout) -> Tensor {
        debug_assert!(layout.storage_end() * dtype.size() <= storage.nbytes());
        Tensor(Shared::new(TensorImpl {
            first: Meta { layout, storage },
            current: AtomicPtr::new(std::ptr::null_mut()),
            extra: OnceLock::new(),
            dtype,
            requires_grad: AtomicBool::new(false),
        }))
    }

    /// Returns a consistent state of layout and storage; kernels read it once and use it throughout.
    #[inline]
    pub(crate) fn meta(&self) -> &Meta {
        let current = self.0.current.load(Ordering::Acquire);
        if current.is_null() {
            return &self.0.first;
        }
        // SAFETY: published records live as long as the tensor and are never changed.
        unsafe { &*current }
    }

    /// Replaces layout and storage.
    fn publish(&self, meta: Meta) {
        let extra = self.0.extra.get_or_init(Box::default);
        let mut records = extra.records.lock();
        let same = |record: &Meta| record.layout == meta.layout && record.storage.ptr_eq(&meta.storage);
        if same(&self.0.first) {
            self.0.current.store(std::ptr::null_mut(), Ordering::Release);
            return;
        }
        // SAFETY: listed records are live boxes, freed only on drop of the tensor.
        let recent = records
            .iter()
            .rev()
            .take(CHECKED_RECORDS)
            .copied()
            .find(|record| same(unsafe { record.as_ref() }));
        let record = recent.unwrap_or_else(|| {
            let record = NonNull::from(Box::leak(Box::new(meta)));
            records.push(record);
            record
        });
        self.0.current.store(record.as_ptr(), Ordering::Release);
    }

    /// Replaces the layout in place, for all clones.
    ///
    /// # Errors
    /// Returns [`TensorError::OutOfBounds`] if the layout reaches outside the storage.
    pub fn set_layout(&self, layout: Layout) -> Result<()> {
        let storage = self.storage().clone();
        check_bounds(&storage, self.dtype(), &layout)?;
        self.publish(Meta { layout, storage });
        Ok(())
    }

    /// Replaces storage and layout in place, for all clones, as `set_` does.
    ///
    /// # Errors
    /// Returns [`TensorError::OutOfBounds`] if the layout reaches outside the storage.
    pub fn set_storage(&self, storage: Storage, layout: Layout) -> Result<()> {
        check_bounds(&storage, self.dtype(), &layout)?;
        self.publish(Meta { layout, storage });
        Ok(())
    }

    /// Changes the sizes in place, with row-major strides; the storage grows if necessary (new bytes are zero).
    ///
    /// # Errors
    /// Returns an error if the sizes are invalid, or memory or the budget is exhausted.
    pub fn resize_(&self, sizes: &[i64]) -> Result<()> {
        let meta = self.meta();
        if meta.layout.sizes() == sizes {
            return Ok(());
        }
        self.resize_strided_(sizes, Layout::contiguous(sizes)?.strides())
    }

    /// As [`resize_`](Tensor::resize_), with the given strides.
    ///
    /// # Errors
    /// As for [`resize_`](Tensor::resize_).
    pub fn resize_strided_(&self, sizes: &[i64], strides: &[i64]) -> Result<()> {
        let meta = self.meta();
        let layout = Layout::new(sizes, strides, meta.layout.offset())?;
        let needed = layout.storage_end().checked_mul(self.dtype().size());
        let storage = meta.storage.clone();
        storage.grow(needed.ok_or_else(|| TensorError::SizeOverflow(sizes.into()))?)?;
        self.publish(Meta { layout, storage });
        Ok(())
    }

    /// Returns the element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Returns sizes, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.meta().layout
    }

    /// Returns the storage.
    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.meta().storage
    }

    /// Returns the sizes.
    #[inline]
    pub fn sizes(&self) -> &[i64] {
        self.layout().sizes()
    }

    /// Returns the strides, in elements.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        self.layout().strides()
    }

    /// Returns the offset of the first element in the storage, in elements.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.layout().offset()
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.layout().rank()
    }

    /// Returns the number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.layout().numel()
    }

    /// Returns the size of a dimension (negative: from the end).
    ///
    /// # Errors
    /// Returns [`TensorError::DimRange`] if there is no such dimension.
    pub fn size(&self, dim: i64) -> Result<i64> {
        let layout = self.layout();
        if layout.rank() == 0 {
            return Err(TensorError::DimRange { dim, lo: -1, hi: 0 });
        }
        Ok(layout.sizes()[crate::layout::wrap_dim(dim, layout.rank())?])
    }

    /// Returns whether the layout is row-major without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.layout().is_contiguous()
    }

    /// Returns the device, which is always the CPU.
    pub fn device(&self) -> Device {
        Device::CPU
    }

    /// Returns the version of the storage: the number of writes so far.
    #[inline]
    pub fn version(&self) -> u64 {
        self.storage().version()
    }

    /// Returns whether two handles are the same tensor (not merely views of the same memory).
    #[inline]
    pub fn ptr_eq(&self, other: &Tensor) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }

    /// Returns the tensor's identity: equal for handles of the same tensor, stable while it lives.
    #[inline]
    pub fn id(&self) -> usize {
        self.0.address()
    }

    /// Returns whether two tensors share storage.
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        self.storage().ptr_eq(other.storage())
    }

    /// Returns whether this handle is the only one of the tensor, and the tensor the only one of its storage: then
    /// reuse of the memory is not observable.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.0.is_unique() && self.0.extra.get().is_none() && self.storage().ref_count() == 1
    }

    /// Returns whether gradients are computed for the tensor: it is marked, or a view of a tensor that requires a gradient.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.is_marked_required() || self.0.extra.get().is_some_and(|extra| extra.base_requires_grad())
    }

    /// Returns whether the tensor itself is marked by [`Tensor::set_requires_grad`].
    #[inline]
    pub fn is_marked_required(&self) -> bool {
        self.0.requires_grad.load(Ordering::Relaxed)
    }

    /// Returns whether this handle is the only one of the tensor: dropping it drops the tensor.
    #[inline]
    pub fn is_only_handle(&self) -> bool {
        self.0.is_unique()
    }

    /// Marks the tensor as one for which gradients are computed, or removes the mark.
    #[inline]
    pub fn set_requires_grad(&self, wanted: bool) {
        self.0.requires_grad.store(wanted, Ordering::Relaxed);
    }

    /// Returns autograd's state of the tensor.
    pub fn autograd(&self) -> Option<AutogradSlot> {
        self.0.extra.get().and_then(|extra| extra.autograd.lock().clone())
    }

    /// Replaces autograd's state of the tensor, and returns the old one.
    pub fn set_autograd(&self, slot: Option<AutogradSlot>) -> Option<AutogradSlot> {
        if slot.is_none() && self.0.extra.get().is_none() {
            return None;
        }
        std::mem::replace(&mut *self.0.extra.get_or_init(Box::default).autograd.lock(), slot)
    }
}

/// Returns [`TensorError::OutOfBounds`] if a layout reaches outside a storage.
fn check_bounds(storage: &Storage, dtype: DType, layout: &Layout) -> Result<()> {
    let needed = layout.storage_end().checked_mul(dtype.size());
    let available = storage.nbytes();
    if needed.is_some_and(|needed| needed <= available) {
        return Ok(());
    }
    Err(TensorError::OutOfBounds {
        sizes: layout.sizes().into(),
        strides: layout.strides().into(),
        offset: layout.offset(),
        itemsize: dtype.size(),
        needed: needed.unwrap_or(usize::MAX),
        available,
    })
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({}, {:?}", self.dtype(), self.sizes())?;
        if self.numel() <= 16 {
            let values = self.to_scalars().map_err(|_| std::fmt::Error)?;
            f.write_str(", [")?;
            for (i, value) in values.iter().enumerate() {
                write!(f, "{}{value}", if i > 0 { ", " } else { "" })?;
            }
            f.write_str("]")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_is_one_pointer() {
        assert_eq!(size_of::<Tensor>(), 8);
        assert_eq!(size_of::<Option<Tensor>>(), 8);
    }

    #[test]
    fn metadata_changes_in_place_and_does_not_grow() {
        let t = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
        let clone = t.clone();
        let before = t.layout();
        let transposed = Layout::new(&[3, 2], &[1, 3], 0).unwrap();
        for _ in 0..1000 {
            t.set_layout(transposed.clone()).unwrap();
            assert_eq!(clone.sizes(), [3, 2]);
            t.set_layout(Layout::contiguous(&[2, 3]).unwrap()).unwrap();
            t.set_layout(Layout::contiguous(&[6]).unwrap()).unwrap();
        }
        assert_eq!(before.sizes(), [2, 3]);
        assert_eq!(t.0.extra.get().unwrap().records.lock().len(), 2);
        assert!(t.set_layout(Layout::contiguous(&[7]).unwrap()).is_err());
        t.resize_(&[2, 4]).unwrap();
        assert_eq!(clone.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0]);
    }
}
