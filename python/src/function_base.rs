//! The base of `flambeau.jit.ScriptFunction`: its calls pass through no code of Python.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::program::PyFunction;
use crate::values::gradient_required;

/// Whether a trace records the calls of some thread.
static IS_TRACING: AtomicBool = AtomicBool::new(false);

/// States whether a trace records the calls of some thread.
#[pyfunction]
pub(crate) fn set_tracing(is_tracing: bool) {
    IS_TRACING.store(is_tracing, Ordering::Relaxed);
}

/// A function that is called as the program's, except in traces and with tensors of PyTorch that require gradients.
#[pyclass(module = "flambeau._native", frozen, subclass)]
pub(crate) struct FunctionBase {
    function: Py<PyFunction>,
}

#[pymethods]
impl FunctionBase {
    /// Creates the base of an object; the other arguments are those of the derived class.
    #[new]
    #[pyo3(signature = (function, *_args, **_kwargs))]
    fn new(
        function: Py<PyFunction>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> FunctionBase {
        FunctionBase { function }
    }

    #[getter]
    fn _function(&self, py: Python<'_>) -> Py<PyFunction> {
        self.function.clone_ref(py)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let given = || kwargs.map_or_else(|| PyDict::new(py), Clone::clone);
        if IS_TRACING.load(Ordering::Relaxed) {
            let result = slf.call_method1("_call_in_trace", (args, given()))?;
            if !result.is(py.NotImplemented()) {
                return Ok(result);
            }
        }
        let function = slf.get().function.bind(py);
        match function.get().call(py, args, kwargs) {
            Err(error) if error.is_instance(py, gradient_required(py)?) => {
                py.import("flambeau._torch_autograd")?.getattr("call")?.call1((function, args, given()))
            }
            result => result,
        }
    }
}
