//! The class `Tensor`: its data, its metadata and its gradient.
//!
//! Operators, indexing and printing are added in Python (`flambeau/_tensor.py`), over compiled one-line programs, so that they
//! have the semantics of programs.

use flambeau::Session;
use flambeau::exec::KernelError;
use flambeau::exec::tape::{self, BackwardOptions, HookHandle};
use flambeau::tensor::{Scalar, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyTuple};
use std::sync::{Mutex, PoisonError};

use crate::dlpack::{self, or_raise};
use crate::errors::{misuse, raise};
use crate::extend::session;
use crate::lent;
use crate::program::{host, run, set_grad_enabled, set_raised};
use crate::values::{Call, Failure};

/// A hook that `Tensor.register_hook` registered.
#[pyclass(name = "RemovableHandle", module = "flambeau", frozen)]
pub(crate) struct PyHookHandle(Mutex<Option<HookHandle>>);

#[pymethods]
impl PyHookHandle {
    /// Removes the hook.
    fn remove(&self) {
        let handle = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        handle.into_iter().for_each(HookHandle::remove);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, _class: Py<PyAny>, _raised: Py<PyAny>, _traceback: Py<PyAny>) {
        self.remove();
    }
}

/// Calls a hook; returns the gradient that replaces the given one.
fn replaced(py: Python<'_>, hook: &Py<PyAny>, grad: &Tensor) -> PyResult<Option<Tensor>> {
    let found = hook.bind(py).call1((PyTensor(grad.clone()),))?;
    if found.is_none() {
        return Ok(None);
    }
    Call::new(py).tensor(&found).map(Some).map_err(|failure| match failure {
        Failure::Raised(error) => error,
        Failure::Type => PyTypeError::new_err("a hook returns a tensor or None"),
    })
}

/// A tensor of the compiler. Two handles may refer to the same tensor: see `is_same`.
#[pyclass(name = "Tensor", module = "flambeau", frozen, weakref)]
pub(crate) struct PyTensor(pub(crate) Tensor);

#[pymethods]
impl PyTensor {
    /// The sizes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.sizes())
    }

    /// The strides, in elements.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.strides())
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.rank()
    }

    /// The element type as PyTorch's number.
    #[getter]
    fn dtype_code(&self) -> i64 {
        self.0.dtype().scalar_type()
    }

    /// The number of elements.
    fn numel(&self) -> usize {
        self.0.numel()
    }

    /// Whether the elements are in row-major order without gaps.
    fn is_contiguous(&self) -> bool {
        self.0.is_contiguous()
    }

    /// Whether two handles refer to one tensor.
    fn is_same(&self, other: &Bound<'_, PyTensor>) -> bool {
        self.0.ptr_eq(&other.get().0)
    }

    /// The number of writes to the memory so far.
    #[getter]
    fn version(&self) -> u64 {
        self.0.version()
    }

    /// The address of the first element, which is fixed from then on.
    fn data_ptr(&self, py: Python<'_>) -> PyResult<usize> {
        let (start, _) = or_raise(py, self.0.storage().pin())?;
        Ok(start.as_ptr() as usize + self.0.offset() as usize * self.0.dtype().size())
    }

    /// Identifies the tensor among those that are alive.
    #[getter]
    fn identity(&self) -> usize {
        self.0.id()
    }

    /// The elements in row-major order.
    fn flat<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let scalars = or_raise(py, self.0.to_scalars())?;
        PyList::new(py, scalars.iter().map(|s| scalar(py, s)))
    }

    /// The only element as a number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(scalar(py, &or_raise(py, self.0.item())?))
    }

    /// Whether calls record how the tensor depends on this one.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.0.requires_grad()
    }

    #[setter]
    fn set_requires_grad(&self, py: Python<'_>, wanted: bool) -> PyResult<()> {
        if wanted && !(self.0.dtype().is_floating() || self.0.dtype().is_complex()) {
            return Err(misuse(
                py,
                "only tensors of floating point and complex dtypes can require gradients".into(),
            ));
        }
        if !wanted && !tape::is_leaf(&self.0) {
            return Err(misuse(
                py,
                "only a leaf can stop to require gradients; `detach()` returns a tensor without history"
                    .into(),
            ));
        }
        self.0.set_requires_grad(wanted);
        Ok(())
    }

    /// The gradient that `backward` accumulated.
    #[getter]
    fn grad(&self) -> Option<PyTensor> {
        Session::accumulated_gradient(&self.0).map(PyTensor)
    }

    #[setter]
    fn set_grad(&self, py: Python<'_>, grad: Option<PyRef<'_, PyTensor>>) -> PyResult<()> {
        let Some(grad) = grad else {
            tape::clear_accumulated_grad(&self.0);
            return Ok(());
        };
        if grad.0.sizes() != self.0.sizes() || grad.0.dtype() != self.0.dtype() {
            return Err(misuse(py, "a gradient must have the sizes and the dtype of its tensor".into()));
        }
        if tape::set_accumulated_grad(&self.0, grad.0.clone()) {
            return Ok(());
        }
        Err(misuse(py, "only a tensor that requires a gradient can have one".into()))
    }

    /// Accumulates gradients in the leaves on which this tensor depends.
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false))]
    fn backward<'py>(
        &self,
        py: Python<'py>,
        gradient: Option<&Bound<'py, PyAny>>,
        retain_graph: Option<bool>,
        create_graph: bool,
    ) -> PyResult<()> {
        let gradient = match gradient {
            Some(gradient) => Call::new(py).tensor(gradient).map_err(|failure| match failure {
                Failure::Raised(error) => error,
                Failure::Type => misuse(py, "the gradient must be a tensor".to_owned()),
            })?,
            None => tape::implicit_gradient(&self.0).map_err(|error| misuse(py, error.to_string()))?,
        };
        let mode = BackwardOptions { retain_graph: retain_graph.unwrap_or(create_graph), create_graph };
        let outputs = [(self.0.clone(), gradient)];
        let session = session(py)?;
        run(py, || session.backward(&outputs, mode, &mut host(&session)))
    }

    /// Registers a function that backward passes call with the gradient of this tensor, which may return another gradient.
    fn register_hook(&self, py: Python<'_>, hook: Py<PyAny>) -> PyResult<PyHookHandle> {
        let handle = Session::register_hook(&self.0, move |grad, host| {
            let recording = set_grad_enabled(host.grad_enabled());
            let found = Python::attach(|py| replaced(py, &hook, grad));
            set_grad_enabled(recording);
            found.map_err(|error| {
                let message = error.to_string();
                set_raised(error);
                KernelError::input(message)
            })
        });
        match handle {
            Ok(handle) => Ok(PyHookHandle(Mutex::new(Some(handle)))),
            Err(error) => Err(raise(py, &error)),
        }
    }

    /// Lets the gradients of a tensor that is not a leaf accumulate in `grad`.
    fn retain_grad(&self, py: Python<'_>) -> PyResult<()> {
        Session::retain_gradient(&self.0).map_err(|error| raise(py, &error))
    }

    /// Returns a DLPack capsule over the memory.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let _ = stream;
        if dl_device.is_some_and(|(kind, _)| kind != dlpack::CPU) {
            return Err(PyBufferError::new_err("tensors are on the CPU only"));
        }
        if self.0.requires_grad() {
            return Err(PyBufferError::new_err("the tensor requires a gradient; use `tensor.detach()`"));
        }
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        if copy == Some(true) {
            return dlpack::export(py, &or_raise(py, self.0.clone_data())?, versioned);
        }
        dlpack::export(py, &self.0, versioned)
    }

    fn __dlpack_device__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        static DEVICE: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();
        let device = DEVICE.get_or_try_init(py, || (dlpack::CPU, 0).into_pyobject(py).map(Bound::unbind))?;
        Ok(device.bind(py).clone())
    }

    /// The memory as NumPy's array interface describes it. The stable ABI has the buffer protocol from Python 3.11 only.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dtype = self.0.dtype();
        let name = dlpack::typestr(dtype)
            .ok_or_else(|| misuse(py, format!("NumPy has no dtype for {}", dtype.name())))?;
        let (_, writable) = or_raise(py, self.0.storage().pin())?;
        let item = dtype.size() as i64;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", name)?;
        interface.set_item("data", (self.data_ptr(py)?, !writable))?;
        interface.set_item("strides", PyTuple::new(py, self.0.strides().iter().map(|s| s * item))?)?;
        Ok(interface)
    }
}

fn scalar<'py>(py: Python<'py>, scalar: &Scalar) -> Bound<'py, PyAny> {
    match *scalar {
        Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any(),
        Scalar::Int(i) => PyInt::new(py, i).into_any(),
        Scalar::Float(x) => PyFloat::new(py, x).into_any(),
        Scalar::Complex(z) => PyComplex::from_doubles(py, z.re, z.im).into_any(),
    }
}

/// Makes a tensor over the memory of an object with `__dlpack__`. As long as the handle lives, tensors of later calls within
/// that memory share its storage.
#[pyfunction]
pub(crate) fn from_dlpack<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTensor>> {
    let py = object.py();
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return Bound::new(py, PyTensor(tensor.get().0.clone()));
    }
    let tensor = Call::new(py).tensor(object).map_err(|failure| match failure {
        Failure::Raised(error) => error,
        Failure::Type => misuse(py, format!("{object} is no tensor: it has no method `__dlpack__`")),
    })?;
    let handle = Bound::new(py, PyTensor(tensor))?;
    lent::share(&handle)?;
    Ok(handle)
}

/// Makes a tensor from little-endian elements in row-major order.
#[pyfunction]
pub(crate) fn from_bytes(
    py: Python<'_>,
    bytes: &[u8],
    dtype_code: i64,
    shape: Vec<i64>,
) -> PyResult<PyTensor> {
    use flambeau::tensor::{DType, Layout};
    let dtype = DType::from_scalar_type(dtype_code);
    let dtype = dtype.ok_or_else(|| misuse(py, format!("there is no dtype {dtype_code}")))?;
    let layout = or_raise(py, Layout::contiguous(&shape))?;
    if layout.numel().checked_mul(dtype.size()) != Some(bytes.len()) {
        return Err(misuse(py, format!("{} bytes are not a tensor of sizes {shape:?}", bytes.len())));
    }
    or_raise(py, Tensor::from_bytes(bytes, dtype, layout)).map(PyTensor)
}

/// Returns the elements of a tensor in row-major order as little-endian bytes.
#[pyfunction]
pub(crate) fn to_bytes<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
    let py = tensor.py();
    let bytes = or_raise(py, tensor.get().0.to_bytes())?;
    Ok(pyo3::types::PyBytes::new(py, &bytes))
}
