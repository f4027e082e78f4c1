//! DLPack: tensors from and to other libraries without a copy.
//!
//! The structures are those of `dlpack.h`: the legacy `DLManagedTensor` and the versioned `DLManagedTensorVersioned`, which
//! adds flags. A capsule is consumed by renaming it; a capsule that is dropped without a consumer calls the deleter.
#![allow(unsafe_code, reason = "the C structures of DLPack, and capsules")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use flambeau::tensor::{DType, Layout, Tensor, TensorError};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;

use crate::errors::{misuse, raise_tensor};
use crate::lent::{Bytes, Loans};

const LEGACY: &CStr = c"dltensor";
const LEGACY_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
/// The name of the capsule of an [`ExchangeTable`].
const EXCHANGE: &CStr = c"dlpack_exchange_api";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// The device type of memory of the processor.
pub(crate) const CPU: i32 = 1;
const READ_ONLY: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Legacy {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Legacy)>,
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// A tensor taken from a capsule. Dropping it gives the memory back.
enum Taken {
    Legacy(NonNull<Legacy>),
    Versioned(NonNull<Versioned>),
}

// SAFETY: the specification lets the deleter be called from any thread, and the structure is not changed.
unsafe impl Send for Taken {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: the pointers come from a capsule that was renamed, so this is the only consumer, which calls the deleter
        // once.
        unsafe {
            match self {
                Taken::Legacy(t) => t.as_ref().deleter.map(|delete| delete(t.as_ptr())),
                Taken::Versioned(t) => t.as_ref().deleter.map(|delete| delete(t.as_ptr())),
            };
        }
    }
}

/// Makes a tensor over the memory of a capsule, which is consumed.
pub(crate) fn import(capsule: &Bound<'_, PyAny>, loans: &mut Loans, access: Access) -> PyResult<Tensor> {
    let py = capsule.py();
    let raw = capsule.as_ptr();
    // Without an interpreter lock another thread may import the same capsule at the same time.
    let taken = with_critical_section(capsule, || {
        // SAFETY: `raw` is a live object; `PyCapsule_IsValid` checks that it is a capsule of that name, and the capsule's
        // pointer is a structure of that kind by the protocol. Renaming, in a critical section, makes this function the only
        // consumer.
        unsafe {
            if ffi::PyCapsule_IsValid(raw, VERSIONED.as_ptr()) == 1 {
                let pointer = ffi::PyCapsule_GetPointer(raw, VERSIONED.as_ptr());
                ffi::PyCapsule_SetName(raw, VERSIONED_USED.as_ptr());
                NonNull::new(pointer.cast()).map(Taken::Versioned)
            } else if ffi::PyCapsule_IsValid(raw, LEGACY.as_ptr()) == 1 {
                let pointer = ffi::PyCapsule_GetPointer(raw, LEGACY.as_ptr());
                ffi::PyCapsule_SetName(raw, LEGACY_USED.as_ptr());
                NonNull::new(pointer.cast()).map(Taken::Legacy)
            } else {
                None
            }
        }
    });
    let taken =
        taken.ok_or_else(|| misuse(py, "expected a DLPack capsule that was not used before".to_owned()))?;
    tensor_of(py, taken, loans, access)
}

/// The access of a program to memory that is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The access that its owner allows.
    AsLent,
    /// Read it.
    ReadOnly,
}

/// Makes a tensor over memory that was taken.
fn tensor_of(py: Python<'_>, taken: Taken, loans: &mut Loans, access: Access) -> PyResult<Tensor> {
    // SAFETY: the structure is valid until the deleter is called, which `taken` does when it is dropped.
    let (tensor, writable) = unsafe {
        match &taken {
            Taken::Legacy(t) => (&(*t.as_ptr()).tensor, true),
            Taken::Versioned(t) if t.as_ref().major != 1 => {
                let major = t.as_ref().major;
                return Err(misuse(py, format!("DLPack version {major} is not supported; version 1 is")));
            }
            Taken::Versioned(t) => (&(*t.as_ptr()).tensor, t.as_ref().flags & READ_ONLY == 0),
        }
    };
    let (dtype, layout) = describe(py, tensor)?;
    // The structure is that of the producer: its pointer may be null only if there are no elements.
    let start = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    let start = match NonNull::new(start) {
        Some(start) => start,
        None if layout.numel() == 0 => NonNull::dangling(),
        None => return Err(misuse(py, "the DLPack tensor has no data".to_owned())),
    };
    let writable = writable && access == Access::AsLent;
    let bytes = Bytes { start, writable, owner: || Ok(taken) };
    // SAFETY: the producer guarantees that the elements are valid until the deleter is called; calls hold the arguments, and
    // documentation forbids access by other threads during a call.
    or_raise(py, unsafe { loans.tensor(py, bytes, dtype, layout) })
}

/// Returns dtype and layout, relative to the first element.
fn describe(py: Python<'_>, tensor: &DlTensor) -> PyResult<(DType, Layout)> {
    let device = tensor.device.kind;
    if device != CPU {
        return Err(misuse(
            py,
            format!("tensors of DLPack device type {device} are not on the CPU; move them there"),
        ));
    }
    let DataType { code, bits, lanes } = tensor.dtype;
    let dtype = dtype_of(code, bits).filter(|_| lanes == 1).ok_or_else(|| {
        misuse(py, format!("DLPack dtype (code {code}, {bits} bits, {lanes} lanes) is not supported"))
    })?;
    let rank = usize::try_from(tensor.ndim).map_err(|_| misuse(py, "negative rank".to_owned()))?;
    // SAFETY: `shape` and, unless null, `strides` have one number per dimension, by the protocol.
    let (sizes, strides) = unsafe {
        let slice = |numbers: *mut i64| match rank {
            0 => &[][..],
            _ => std::slice::from_raw_parts(numbers.cast_const(), rank),
        };
        (slice(tensor.shape), (!tensor.strides.is_null()).then(|| slice(tensor.strides)))
    };
    if strides.is_some_and(|strides| strides.iter().any(|&s| s < 0)) {
        return Err(misuse(py, "negative strides are not supported; pass a copy".to_owned()));
    }
    let layout = match strides {
        Some(strides) => strided(sizes, strides),
        None => Layout::contiguous(sizes),
    };
    Ok((dtype, or_raise(py, layout)?))
}

/// Returns the layout of memory with the strides. Libraries set those of dimensions of size 1 to any number, PyTorch to 1. Those of a
/// contiguous layout are restored, because saved strides decide in which memory format PyTorch computes.
pub(crate) fn strided(sizes: &[i64], strides: &[i64]) -> Result<Layout, TensorError> {
    let mut step = 1_i64;
    let is_row_major = sizes.iter().zip(strides).rev().all(|(&size, &stride)| {
        let fits = size == 1 || stride == step;
        step = step.saturating_mul(size);
        fits
    });
    if is_row_major {
        return Layout::contiguous(sizes);
    }
    match Layout::new(sizes, strides, 0)? {
        layout if layout.is_contiguous() => Layout::contiguous(sizes),
        layout => Ok(layout),
    }
}

fn dtype_of(code: u8, bits: u8) -> Option<DType> {
    Some(match (code, bits) {
        (0, 8) => DType::I8,
        (0, 16) => DType::I16,
        (0, 32) => DType::I32,
        (0, 64) => DType::I64,
        (1, 8) => DType::U8,
        (2, 16) => DType::F16,
        (2, 32) => DType::F32,
        (2, 64) => DType::F64,
        (4, 16) => DType::BF16,
        (5, 32) => DType::C32,
        (5, 64) => DType::C64,
        (5, 128) => DType::C128,
        (6, 8) => DType::Bool,
        _ => return None,
    })
}

fn code_of(dtype: DType) -> DataType {
    let code = match dtype {
        DType::Bool => 6,
        DType::U8 => 1,
        DType::BF16 => 4,
        _ if dtype.is_complex() => 5,
        _ if dtype.is_floating() => 2,
        _ => 0,
    };
    DataType { code, bits: (dtype.size() * 8) as u8, lanes: 1 }
}

/// The contents of a capsule made here: the structure, which is first so that a pointer to it is one to the whole, the tensor, and
/// the numbers that the structure points to.
#[repr(C)]
struct Exported<S> {
    managed: S,
    _tensor: Tensor,
    _numbers: Box<[i64]>,
}

fn dl_tensor(tensor: &Tensor, start: NonNull<u8>, numbers: &mut [i64]) -> DlTensor {
    let rank = tensor.rank();
    numbers[..rank].copy_from_slice(tensor.sizes());
    numbers[rank..].copy_from_slice(tensor.strides());
    let data = start.as_ptr().wrapping_add(tensor.offset() as usize * tensor.dtype().size());
    DlTensor {
        data: data.cast(),
        device: Device { kind: CPU, id: 0 },
        ndim: rank as i32,
        dtype: code_of(tensor.dtype()),
        shape: numbers.as_mut_ptr(),
        strides: numbers.as_mut_ptr().wrapping_add(rank),
        byte_offset: 0,
    }
}

/// Returns a capsule over the memory of a tensor, whose address is fixed from then on.
pub(crate) fn export(py: Python<'_>, tensor: &Tensor, versioned: bool) -> PyResult<Py<PyAny>> {
    let (start, writable) = or_raise(py, tensor.storage().pin())?;
    if !versioned && !writable {
        return Err(PyBufferError::new_err("the memory is read-only, which needs DLPack version 1"));
    }
    let (pointer, name, destructor): (*mut c_void, _, ffi::PyCapsule_Destructor) = if versioned {
        (lent_versioned(tensor, start, writable).as_ptr().cast(), VERSIONED, drop_versioned)
    } else {
        let deleter = Some(delete::<Legacy> as unsafe extern "C" fn(_));
        let context = std::ptr::null_mut();
        let pointer = lent(tensor, start, |tensor| Legacy { tensor, context, deleter });
        (pointer.as_ptr().cast(), LEGACY, drop_legacy)
    };
    // SAFETY: the pointer is valid and not null, and the name is static. The result is a new reference, or null with an
    // exception.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destructor));
        Bound::from_owned_ptr_or_err(py, capsule).map(Bound::unbind)
    }
}

/// Allocates a structure with what it refers to; its deleter frees all.
fn lent<S>(tensor: &Tensor, start: NonNull<u8>, managed: impl FnOnce(DlTensor) -> S) -> NonNull<S> {
    let mut numbers = vec![0_i64; 2 * tensor.rank()].into_boxed_slice();
    let managed = managed(dl_tensor(tensor, start, &mut numbers));
    NonNull::from(Box::leak(Box::new(Exported { managed, _tensor: tensor.clone(), _numbers: numbers })))
        .cast()
}

fn lent_versioned(tensor: &Tensor, start: NonNull<u8>, writable: bool) -> NonNull<Versioned> {
    let flags = if writable { 0 } else { READ_ONLY };
    let deleter = Some(delete::<Versioned> as unsafe extern "C" fn(_));
    let context = std::ptr::null_mut();
    lent(tensor, start, |tensor| Versioned { major: 1, minor: 0, context, deleter, flags, tensor })
}

/// The C functions with which a library exchanges tensors without capsules. PyTorch has them since version 2.10.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    from_object: unsafe extern "C" fn(*mut c_void, *mut *mut Versioned) -> i32,
    to_object: unsafe extern "C" fn(*mut Versioned, *mut *mut c_void) -> i32,
}

/// The beginning of `DLPackExchangeAPI`.
#[repr(C)]
struct ExchangeTable {
    major: u32,
    minor: u32,
    previous: *const ExchangeTable,
    allocator: Option<unsafe extern "C" fn()>,
    from_object: Option<unsafe extern "C" fn(*mut c_void, *mut *mut Versioned) -> i32>,
    to_object: Option<unsafe extern "C" fn(*mut Versioned, *mut *mut c_void) -> i32>,
}

impl Exchange {
    /// Returns the functions of a class of tensors, `None` if it has none of version 1.
    pub(crate) fn of(class: &Bound<'_, PyAny>) -> Option<Exchange> {
        let capsule = class.getattr("__dlpack_c_exchange_api__").ok()?;
        let raw = capsule.as_ptr();
        // SAFETY: `raw` is a live object; `PyCapsule_IsValid` checks that it is a capsule of that name. By the protocol its pointer is a
        // table that lives as long as the process, and each table begins with its version, so that the fields of a table of version 1
        // are read from such a table only.
        let table = unsafe {
            if ffi::PyCapsule_IsValid(raw, EXCHANGE.as_ptr()) != 1 {
                return None;
            }
            let mut table =
                ffi::PyCapsule_GetPointer(raw, EXCHANGE.as_ptr()).cast_const().cast::<ExchangeTable>();
            while table.as_ref()?.major != 1 {
                table = (*table).previous;
            }
            &*table
        };
        Some(Exchange { from_object: table.from_object?, to_object: table.to_object? })
    }

    /// Makes a tensor over the memory of an object of the class.
    ///
    /// # Errors
    /// The exception of the library, or that of memory that is not taken.
    pub(crate) fn take(
        &self,
        object: &Bound<'_, PyAny>,
        loans: &mut Loans,
        access: Access,
    ) -> PyResult<Tensor> {
        let mut managed = std::ptr::null_mut();
        // SAFETY: the function takes an object of its class and a place for the result; the interpreter lock is held. What it returns
        // is consumed here only.
        let status = unsafe { (self.from_object)(object.as_ptr().cast(), &raw mut managed) };
        match NonNull::new(managed) {
            Some(managed) if status == 0 => tensor_of(object.py(), Taken::Versioned(managed), loans, access),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    /// Makes an object of the class over the memory of a tensor, whose address is fixed from then on.
    ///
    /// # Errors
    /// The exception of the library, or an error for memory that may not be written: libraries do not respect the flag.
    pub(crate) fn give<'py>(&self, py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
        let (start, writable) = or_raise(py, tensor.storage().pin())?;
        if !writable {
            return Err(PyBufferError::new_err("the memory is read-only"));
        }
        let managed = lent_versioned(tensor, start, writable);
        let mut object = std::ptr::null_mut();
        // SAFETY: the structure is valid and given to the function, which returns a new reference or an exception; the interpreter lock
        // is held. It owns the structure from then on, also if it fails: libraries that do not free it then leak it.
        unsafe {
            let status = (self.to_object)(managed.as_ptr(), &raw mut object);
            if status != 0 {
                return Err(PyErr::fetch(py));
            }
            Bound::from_owned_ptr_or_err(py, object.cast())
        }
    }
}

/// Frees an allocation of [`lent`], which begins with the structure.
///
/// PyTorch releases the interpreter lock while it frees a tensor. PyO3 does not see that: if code of this package is a caller, it
/// would drop the handles of Python that the storage keeps as if the thread had the lock. So a thread of Python takes the lock.
/// On other threads PyO3 defers what needs it.
///
/// # Safety
/// `managed` was made by [`lent`] with this type and is not used afterwards.
unsafe extern "C" fn delete<S>(managed: *mut S) {
    // SAFETY: the caller's contract. A thread may ask for its state at any time; one that has a state may take the lock, and
    // the state of the lock from before is restored after the handles are dropped.
    unsafe {
        let is_of_python = !ffi::PyGILState_GetThisThreadState().is_null();
        let before = is_of_python.then(|| ffi::PyGILState_Ensure());
        drop(Box::from_raw(managed.cast::<Exported<S>>()));
        before.into_iter().for_each(|before| ffi::PyGILState_Release(before));
    }
}

/// # Safety
/// `capsule` is a capsule made by [`export`]; Python calls its destructor once.
unsafe extern "C" fn drop_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule with the first name was not consumed, so its structure is still owned by it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, LEGACY.as_ptr()) == 1 {
            delete::<Legacy>(ffi::PyCapsule_GetPointer(capsule, LEGACY.as_ptr()).cast());
        }
    }
}

/// # Safety
/// As [`drop_legacy`].
unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule with the first name was not consumed, so its structure is still owned by it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete::<Versioned>(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// Returns the name of an element type in NumPy's array interface; `None` if NumPy has no such type.
pub(crate) fn typestr(dtype: DType) -> Option<String> {
    let kind = match dtype {
        DType::Bool => 'b',
        DType::U8 => 'u',
        DType::BF16 | DType::C32 => return None,
        _ if dtype.is_complex() => 'c',
        _ if dtype.is_floating() => 'f',
        _ => 'i',
    };
    let order = if dtype.size() == 1 { '|' } else { '<' };
    Some(format!("{order}{kind}{}", dtype.size()))
}

/// Forgets the type of [`TensorError`] in results of functions that raise.
pub(crate) fn or_raise<T>(py: Python<'_>, result: Result<T, TensorError>) -> PyResult<T> {
    result.map_err(|e| raise_tensor(py, e))
}
