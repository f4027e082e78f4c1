//! Tensors of PyTorch, by the functions of its libraries.
//!
//! Most are from the C interface that PyTorch has for compiled models. It refers to a tensor by a pointer to an `at::Tensor`, which is
//! nothing but a pointer to a `c10::TensorImpl`; Python has that pointer as `_cdata`. The others are functions of C++ without
//! exceptions that ask what the interface does not. All take a few nanoseconds, where the same question takes 50 to 100 in Python and an
//! exchange by DLPack 300 to 650: it is left for the tensors that these functions do not take.
#![allow(unsafe_code, reason = "the C interface of PyTorch")]

use std::ffi::c_void;
use std::mem::{MaybeUninit, transmute};
use std::ptr::NonNull;

use flambeau::tensor::{DType, Layout, Tensor, TensorError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::dlpack::or_raise;
use crate::errors::misuse;
use crate::lent::{ALIGNMENT, Bytes, Loans};

/// An `at::Tensor`, or a pointer to one that the interface made.
type Handle = *const *mut c_void;

/// Status of success.
const SUCCESS: i32 = 0;

/// `c10::DeviceType::CPU`
const CPU: i32 = 0;

type Ask = unsafe extern "C" fn(Handle) -> bool;
type AskImpl = unsafe extern "C" fn(*mut c_void) -> bool;
type AskMode = unsafe extern "C" fn() -> bool;
type AskDevice = unsafe extern "C" fn(i8) -> bool;
type Get<T> = unsafe extern "C" fn(Handle, *mut T) -> i32;
type View = unsafe extern "C" fn(Handle, i64, *const i64, *const i64, i64, *mut *mut c_void) -> i32;
type Delete = unsafe extern "C" fn(*mut c_void) -> i32;

/// The functions of PyTorch's libraries.
struct Functions {
    get_data: Get<*mut c_void>,
    get_device: Get<i32>,
    get_dim: Get<i64>,
    get_dtype: Get<i32>,
    get_sizes: Get<*const i64>,
    get_strides: Get<*const i64>,
    get_offset: Get<i64>,
    /// In bytes.
    get_storage_size: Get<i64>,
    /// Makes a tensor over the same storage.
    view: View,
    delete: Delete,
    is_grad_enabled: AskMode,
    has_storage: AskImpl,
    requires_grad: AskImpl,
    is_neg: Ask,
    is_conj: Ask,
    is_autocast: AskDevice,
}

/// The names of the functions in the libraries, in the order of the fields of [`Functions`].
const NAMES: [&str; 16] = [
    "aoti_torch_get_data_ptr",
    "aoti_torch_get_device_type",
    "aoti_torch_get_dim",
    "aoti_torch_get_dtype",
    "aoti_torch_get_sizes",
    "aoti_torch_get_strides",
    "aoti_torch_get_storage_offset",
    "aoti_torch_get_storage_size",
    "aoti_torch__reinterpret_tensor",
    "aoti_torch_delete_tensor_object",
    "aoti_torch_grad_mode_is_enabled",
    // c10::TensorImpl::has_storage() const
    "_ZNK3c1010TensorImpl11has_storageEv",
    // c10::TensorImpl::requires_grad() const
    "_ZNK3c1010TensorImpl13requires_gradEv",
    // at::native::is_neg(const at::Tensor &)
    "_ZN2at6native6is_negERKNS_6TensorE",
    // at::native::is_conj(const at::Tensor &)
    "_ZN2at6native7is_conjERKNS_6TensorE",
    // at::autocast::is_autocast_enabled(c10::DeviceType)
    "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE",
];

impl Functions {
    /// # Safety
    /// The addresses are those of the functions [`NAMES`], of a version of PyTorch in which they have the types of the fields.
    unsafe fn of(addresses: [usize; NAMES.len()]) -> Functions {
        let [
            data,
            device,
            dim,
            dtype,
            sizes,
            strides,
            offset,
            storage_size,
            view,
            delete,
            grad_mode,
            storage,
            grad,
            neg,
            conj,
            autocast,
        ] = addresses;
        // SAFETY: the caller's contract; a function pointer has the size of an address, and no function is at address 0.
        unsafe {
            Functions {
                get_data: transmute::<usize, Get<*mut c_void>>(data),
                get_device: transmute::<usize, Get<i32>>(device),
                get_dim: transmute::<usize, Get<i64>>(dim),
                get_dtype: transmute::<usize, Get<i32>>(dtype),
                get_sizes: transmute::<usize, Get<*const i64>>(sizes),
                get_strides: transmute::<usize, Get<*const i64>>(strides),
                get_offset: transmute::<usize, Get<i64>>(offset),
                get_storage_size: transmute::<usize, Get<i64>>(storage_size),
                view: transmute::<usize, View>(view),
                delete: transmute::<usize, Delete>(delete),
                is_grad_enabled: transmute::<usize, AskMode>(grad_mode),
                has_storage: transmute::<usize, AskImpl>(storage),
                requires_grad: transmute::<usize, AskImpl>(grad),
                is_neg: transmute::<usize, Ask>(neg),
                is_conj: transmute::<usize, Ask>(conj),
                is_autocast: transmute::<usize, AskDevice>(autocast),
            }
        }
    }
}

/// PyTorch's libraries.
pub(super) struct Aten {
    functions: Functions,
    /// Classes of tensors without behaviour of their own.
    classes: [Py<PyType>; 2],
}

/// A tensor of PyTorch that keeps the storage of another one, whatever becomes of that.
struct Owner {
    tensor: NonNull<c_void>,
    delete: Delete,
}

// SAFETY: PyTorch counts the references to tensors and storages by atomic operations. A thread may free a tensor without the interpreter
// lock; what PyTorch does with objects of Python for that, it does under the lock.
unsafe impl Send for Owner {}
// SAFETY: a shared reference allows nothing.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the interface made the tensor, which only this owner refers to.
        unsafe { (self.delete)(self.tensor.as_ptr()) };
    }
}

impl Aten {
    /// Returns the functions of PyTorch; `None` if its version is not known to have them.
    ///
    /// # Errors
    /// The exception of a module of PyTorch without its classes.
    pub(super) fn of(torch: &Bound<'_, PyAny>) -> PyResult<Option<Aten>> {
        let symbols = torch.py().import("flambeau._torch_symbols")?;
        let addresses = symbols.getattr("addresses")?.call1((NAMES,))?;
        let Some(addresses) = addresses.extract::<Option<[usize; NAMES.len()]>>()? else { return Ok(None) };
        // SAFETY: the addresses are of the functions with these names. In the versions that `_torch_symbols` knows they have these types:
        // names of C++ contain those of the parameters, and the C interface is fixed. The libraries stay loaded.
        let functions = unsafe { Functions::of(addresses) };
        let class = |module: Bound<'_, PyAny>, name| -> PyResult<Py<PyType>> {
            Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind())
        };
        let classes = [class(torch.clone(), "Tensor")?, class(torch.getattr("nn")?, "Parameter")?];
        Ok(Some(Aten { functions, classes }))
    }

    /// Whether gradients are recorded on this thread.
    pub(super) fn is_grad_enabled(&self) -> bool {
        // SAFETY: the function reads a variable of the thread.
        unsafe { (self.functions.is_grad_enabled)() }
    }

    /// Whether this thread is in a context of `torch.autocast` for the CPU.
    pub(super) fn is_autocast(&self) -> bool {
        // SAFETY: as above.
        unsafe { (self.functions.is_autocast)(CPU as i8) }
    }

    /// Returns the tensor of an object; `None` for an object of a class with behaviour of its own.
    ///
    /// # Errors
    /// The exception of PyTorch.
    pub(super) fn tensor<'a, 'py>(
        &'a self,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Option<AtenTensor<'a, 'py>>> {
        let class = object.get_type_ptr();
        if !self.classes.iter().any(|known| known.as_ptr().cast() == class) {
            return Ok(None);
        }
        let address = object.getattr(intern!(object.py(), "_cdata"))?;
        // SAFETY: the object lives, and the interpreter lock is held. A failure, which raises, returns null.
        let pointer = NonNull::new(unsafe { ffi::PyLong_AsVoidPtr(address.as_ptr()) });
        if pointer.is_none()
            && let Some(error) = PyErr::take(object.py())
        {
            return Err(error);
        }
        Ok(pointer.map(|pointer| AtenTensor { functions: &self.functions, pointer, object }))
    }
}

/// The tensor of an object, which keeps it.
pub(super) struct AtenTensor<'a, 'py> {
    functions: &'a Functions,
    /// The `c10::TensorImpl`.
    pointer: NonNull<c_void>,
    object: &'a Bound<'py, PyAny>,
}

impl AtenTensor<'_, '_> {
    /// Returns a pointer to an `at::Tensor`.
    fn handle(&self) -> Handle {
        std::ptr::from_ref(&self.pointer).cast()
    }

    pub(super) fn requires_grad(&self) -> bool {
        // SAFETY: the object keeps the tensor.
        unsafe { (self.functions.requires_grad)(self.pointer.as_ptr()) }
    }

    /// Whether elements stand for others: those of negative or conjugate views.
    fn is_lazy(&self) -> bool {
        // SAFETY: the object keeps the tensor; the functions read its flags.
        unsafe { (self.functions.is_neg)(self.handle()) || (self.functions.is_conj)(self.handle()) }
    }

    /// Returns what a function of the interface reads, `None` if it fails.
    fn read<T>(&self, get: Get<T>) -> Option<T> {
        let mut found = MaybeUninit::uninit();
        // SAFETY: the object keeps the tensor; the function writes a `T` if it succeeds.
        unsafe { (get(self.handle(), found.as_mut_ptr()) == SUCCESS).then(|| found.assume_init()) }
    }

    /// Makes a tensor over its memory. Returns `None` for a tensor that is taken, or refused with a reason, by DLPack: one without
    /// memory of the processor, as sparse tensors and those of transformations are, one of another element type, and a lazy one.
    ///
    /// # Errors
    /// The exception for memory that is not taken.
    pub(super) fn take(&self, loans: &mut Loans) -> PyResult<Option<Tensor>> {
        let py = self.object.py();
        let get = self.functions;
        // SAFETY: the object keeps the tensor.
        let has_memory = unsafe { (get.has_storage)(self.pointer.as_ptr()) };
        if !has_memory || self.is_lazy() || self.read(get.get_device) != Some(CPU) {
            return Ok(None);
        }
        let dtype = self.read(get.get_dtype).and_then(|number| DType::from_scalar_type(number.into()));
        let rank = self.read(get.get_dim).and_then(|rank| usize::try_from(rank).ok());
        let numbers = self.read(get.get_sizes).zip(self.read(get.get_strides));
        let (Some(dtype), Some(rank), Some((sizes, strides))) = (dtype, rank, numbers) else {
            return Ok(None);
        };
        // SAFETY: the tensor has `rank` sizes and strides, which it keeps until its layout changes; no code of PyTorch runs that does.
        let (sizes, strides) = unsafe {
            let slice = |numbers: *const i64| match rank {
                0 => &[][..],
                _ => std::slice::from_raw_parts(numbers, rank),
            };
            (slice(sizes), slice(strides))
        };
        let place = self.read(get.get_offset).zip(self.read(get.get_storage_size));
        let (Some(start), Some((offset, storage_size))) = (self.read(get.get_data), place) else {
            return Ok(None);
        };
        // The tensor may begin within its storage, where no storage of ours can; elements before it belong to its own.
        let item = dtype.size();
        let before = (start.addr() % ALIGNMENT / item) as i64;
        let before = if before <= offset { before } else { 0 };
        let Ok(layout) = Layout::new(sizes, strides, before) else { return Ok(None) };
        let end = ((offset - before) as usize).saturating_add(layout.storage_end()).saturating_mul(item);
        if layout.numel() != 0 && end > storage_size as usize {
            let text = format!("the tensor ends at byte {end} of a storage of {storage_size} bytes");
            return Err(misuse(py, text));
        }
        let start = start.cast::<u8>().wrapping_sub(before as usize * item);
        let start = match NonNull::new(start) {
            Some(start) => start,
            None if layout.numel() == 0 => NonNull::dangling(),
            None => return Ok(None),
        };
        let owner = || self.owner(sizes, strides);
        let bytes = Bytes { start, writable: true, owner };
        // SAFETY: the owner keeps the storage, which contains the elements: their end was compared with its size, and `before` elements
        // precede them. Calls hold the arguments, and documentation forbids access by other threads during a call.
        or_raise(py, unsafe { loans.tensor(py, bytes, dtype, layout) }).map(Some)
    }

    /// Returns a tensor over the same storage.
    fn owner(&self, sizes: &[i64], strides: &[i64]) -> Result<Owner, TensorError> {
        let mut made = std::ptr::null_mut();
        // SAFETY: the object keeps the tensor; the function reads as many sizes and strides as it is given, and writes the pointer to a new
        // tensor if it succeeds.
        let status = unsafe {
            let rank = sizes.len() as i64;
            (self.functions.view)(self.handle(), rank, sizes.as_ptr(), strides.as_ptr(), 0, &raw mut made)
        };
        let tensor = NonNull::new(made).filter(|_| status == SUCCESS);
        tensor
            .map(|tensor| Owner { tensor, delete: self.functions.delete })
            .ok_or_else(|| TensorError::Unsupported("PyTorch makes no view of the tensor".to_owned()))
    }
}
