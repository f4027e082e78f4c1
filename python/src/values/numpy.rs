//! Arrays of NumPy, by its C API.
//!
//! NumPy's headers compile reads of the fields of arrays, and positions in a table of functions, into all extension modules. A version
//! of NumPy's binary interface, of which [`INTERFACES`] has those known here, therefore never changes them. An exchange by DLPack takes
//! several times as long, with its capsules, methods and keywords: it is left for the arrays that these functions do not take.
#![allow(unsafe_code, reason = "the C API of NumPy")]

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::ptr::NonNull;

use flambeau::tensor::{DType, Layout, Tensor};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use smallvec::SmallVec;

use super::imported;
use crate::dlpack::{or_raise, strided};
use crate::lent::{Bytes, Loans};
use crate::tensor::PyTensor;

/// The versions of the binary interface of NumPy 1 and 2.
const INTERFACES: [c_uint; 2] = [0x0100_0009, 0x0200_0000];

const C_CONTIGUOUS: c_int = 1;
const WRITEABLE: c_int = 0x400;

/// Bound of the rank of arrays in all versions.
const MAX_RANK: usize = 32;

/// The beginning of `PyArrayObject_fields`.
#[repr(C)]
struct Array {
    head: ffi::PyObject,
    data: *mut u8,
    rank: c_int,
    sizes: *const isize,
    strides: *const isize,
    base: *mut ffi::PyObject,
    dtype: *const Descr,
    flags: c_int,
}

/// The beginning of `PyArray_Descr`.
#[repr(C)]
struct Descr {
    head: ffi::PyObject,
    class: *mut ffi::PyTypeObject,
    kind: c_char,
    code: c_char,
    order: c_char,
    flags: c_char,
    number: c_int,
}

/// Returns the element type with a number of NumPy.
fn dtype_of(number: c_int) -> Option<DType> {
    Some(match number {
        0 => DType::Bool,
        1 => DType::I8,
        2 => DType::U8,
        3 => DType::I16,
        5 => DType::I32,
        // `long`, which has a number besides those of `int` and `long long`.
        7 if size_of::<c_long>() == 8 => DType::I64,
        7 => DType::I32,
        9 => DType::I64,
        11 => DType::F32,
        12 => DType::F64,
        14 => DType::C64,
        15 => DType::C128,
        23 => DType::F16,
        _ => return None,
    })
}

/// Returns NumPy's number of an element type; `None` if NumPy has no such type.
fn number_of(dtype: DType) -> Option<c_int> {
    Some(match dtype {
        DType::Bool => 0,
        DType::I8 => 1,
        DType::U8 => 2,
        DType::I16 => 3,
        // Of two types with 64 bits NumPy prefers `long`: its arrays of integers have that one by default.
        DType::I64 if size_of::<c_long>() == 8 => 7,
        DType::I64 => 9,
        DType::I32 if size_of::<c_long>() == 4 => 7,
        DType::I32 => 5,
        DType::F32 => 11,
        DType::F64 => 12,
        DType::C64 => 14,
        DType::C128 => 15,
        DType::F16 => 23,
        DType::BF16 | DType::C32 => return None,
    })
}

/// NumPy, which the program imported.
pub(super) struct Numpy {
    array: Py<PyType>,
    /// `None` if the version of the binary interface is not known.
    functions: Option<Functions>,
}

/// `PyArray_GetNDArrayCVersion`
type Interface = unsafe extern "C" fn() -> c_uint;
/// `PyArray_DescrFromType`
type MakeDtype = unsafe extern "C" fn(c_int) -> *mut ffi::PyObject;
/// `PyArray_NewFromDescr`
type MakeArray = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    *mut ffi::PyObject,
    c_int,
    *const isize,
    *const isize,
    *mut c_void,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;
/// `PyArray_SetBaseObject`
type SetBase = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int;

struct Functions {
    make_dtype: MakeDtype,
    make_array: MakeArray,
    set_base: SetBase,
}

impl Functions {
    /// Returns the functions of a table.
    ///
    /// # Safety
    /// `table` is the table of NumPy.
    unsafe fn of(table: NonNull<*const c_void>) -> Option<Functions> {
        // SAFETY: the caller's contract: the table has functions of these types at these positions if the version is known, and that of
        // the version in any case. A function pointer has the size of a pointer.
        unsafe {
            let at = |position| table.add(position).read();
            let interface = std::mem::transmute::<*const c_void, Interface>(at(0));
            INTERFACES.contains(&interface()).then(|| Functions {
                make_dtype: std::mem::transmute::<*const c_void, MakeDtype>(at(45)),
                make_array: std::mem::transmute::<*const c_void, MakeArray>(at(94)),
                set_base: std::mem::transmute::<*const c_void, SetBase>(at(282)),
            })
        }
    }
}

impl Numpy {
    /// Returns NumPy if the program imported it.
    pub(super) fn imported(py: Python<'_>) -> PyResult<Option<&'static Numpy>> {
        static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();
        if let Some(numpy) = NUMPY.get(py) {
            return Ok(Some(numpy));
        }
        let Some(module) = imported(intern!(py, "numpy"))? else { return Ok(None) };
        let array = module.getattr("ndarray")?.cast_into::<PyType>()?.unbind();
        // The module was renamed in NumPy 2.
        let module = py.import("numpy._core.multiarray").or_else(|_| py.import("numpy.core.multiarray"));
        let table = module.and_then(|module| module.getattr("_ARRAY_API")).ok();
        let functions = table.and_then(|table| {
            let raw = table.as_ptr();
            // SAFETY: `raw` is a live object; `PyCapsule_IsValid` checks that it is a capsule without a name. The pointer of the one with
            // this name in this module is the table, which lives as long as the process.
            unsafe {
                if ffi::PyCapsule_IsValid(raw, std::ptr::null()) != 1 {
                    return None;
                }
                Functions::of(NonNull::new(ffi::PyCapsule_GetPointer(raw, std::ptr::null()))?.cast())
            }
        });
        Ok(Some(NUMPY.get_or_init(py, || Numpy { array, functions })))
    }

    /// Whether an object is an array, of this class or of a derived one.
    pub(super) fn is_array(&self, object: &Bound<'_, PyAny>) -> bool {
        object.is_instance(self.array.bind(object.py())).unwrap_or(false)
    }

    /// Makes a tensor over the memory of an array. Returns `None` for objects of other classes, and for arrays that are taken, or
    /// refused with a reason, by DLPack.
    ///
    /// # Errors
    /// The exception for memory that is not taken.
    pub(super) fn take(&self, object: &Bound<'_, PyAny>, loans: &mut Loans) -> PyResult<Option<Tensor>> {
        let py = object.py();
        if self.functions.is_none() || object.get_type_ptr() != self.array.as_ptr().cast() {
            return Ok(None);
        }
        let array = object.as_ptr().cast::<Array>();
        // SAFETY: the object is an array, whose fields begin as stated, because the version of the interface is known. Its dtype lives
        // as long as it does.
        let (data, rank, flags, order, number) = unsafe {
            let dtype = (*array).dtype;
            ((*array).data, (*array).rank, (*array).flags, (*dtype).order, (*dtype).number)
        };
        let Some(dtype) = dtype_of(number).filter(|_| matches!(order as u8, b'=' | b'|')) else {
            return Ok(None);
        };
        let rank = usize::try_from(rank).unwrap_or(0);
        // SAFETY: as above; both fields have one number per dimension, and may be null if there are none.
        let (sizes, steps) = unsafe {
            let slice = |numbers: *const isize| match rank {
                0 => &[][..],
                _ => std::slice::from_raw_parts(numbers, rank),
            };
            (slice((*array).sizes), slice((*array).strides))
        };
        let sizes: SmallVec<[i64; 8]> = sizes.iter().map(|&size| size as i64).collect();
        let layout = if flags & C_CONTIGUOUS != 0 {
            Layout::contiguous(&sizes)
        } else {
            let item = dtype.size() as isize;
            let stride = |&step: &isize| (step >= 0 && step % item == 0).then_some((step / item) as i64);
            let strides: Option<SmallVec<[i64; 8]>> = steps.iter().map(stride).collect();
            let Some(strides) = strides else { return Ok(None) };
            strided(&sizes, &strides)
        };
        // Not as a pair: that would copy the layout.
        let Ok(layout) = layout else { return Ok(None) };
        let Some(start) = NonNull::new(data) else { return Ok(None) };
        let owner = || Ok(object.clone().unbind());
        let bytes = Bytes { start, writable: flags & WRITEABLE != 0, owner };
        // SAFETY: the array keeps its elements as long as it is referred to; calls hold the arguments, and documentation forbids access by
        // other threads during a call.
        or_raise(py, unsafe { loans.tensor(py, bytes, dtype, layout) }).map(Some)
    }

    /// Makes an array over the memory of a tensor, whose address is fixed from then on. Returns `None` for a tensor that NumPy must
    /// refuse with a reason, and if the version of NumPy is not known.
    ///
    /// # Errors
    /// The exception of NumPy.
    pub(super) fn give<'py>(&self, py: Python<'py>, tensor: &Tensor) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (Some(functions), Some(number)) = (&self.functions, number_of(tensor.dtype())) else {
            return Ok(None);
        };
        if tensor.rank() > MAX_RANK {
            return Ok(None);
        }
        let (start, writable) = or_raise(py, tensor.storage().pin())?;
        let owner = Bound::new(py, PyTensor(tensor.clone()))?;
        let item = tensor.dtype().size();
        let sizes: SmallVec<[isize; 8]> = tensor.sizes().iter().map(|&size| size as isize).collect();
        let steps: SmallVec<[isize; 8]> =
            tensor.strides().iter().map(|&stride| (stride as isize).wrapping_mul(item as isize)).collect();
        let data = start.as_ptr().wrapping_add(tensor.offset() as usize * item);
        let flags = if writable { WRITEABLE } else { 0 };
        // SAFETY: the interpreter lock is held. The functions return new references, or null with an exception. That which makes the array
        // owns its dtype from then on, and reads `rank` sizes and strides; the array does not free its data. The base, which the array
        // owns from then on, keeps the data: a tensor keeps each memory that it had.
        unsafe {
            let dtype = Bound::from_owned_ptr_or_err(py, (functions.make_dtype)(number))?;
            let array = (functions.make_array)(
                self.array.as_ptr().cast(),
                dtype.into_ptr(),
                sizes.len() as c_int,
                sizes.as_ptr(),
                steps.as_ptr(),
                data.cast(),
                flags,
                std::ptr::null_mut(),
            );
            let array = Bound::from_owned_ptr_or_err(py, array)?;
            match (functions.set_base)(array.as_ptr(), owner.into_ptr()) {
                0 => Ok(Some(array)),
                _ => Err(PyErr::fetch(py)),
            }
        }
    }
}
