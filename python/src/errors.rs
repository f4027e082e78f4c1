//! Errors of the compiler as Python exceptions.
//!
//! The exception classes are Python's (`flambeau/errors.py`), so that programs can subclass and pickle them. This file
//! passes the parts of an [`Error`] to the function there that selects the class.

use flambeau::ir::diag::Label;
use flambeau::{Error, Fault};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// Converts an error of the compiler.
#[cold]
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    make(py, error).unwrap_or_else(|failure| failure)
}

/// An error of a tensor operation.
#[cold]
pub(crate) fn raise_tensor(py: Python<'_>, error: flambeau::tensor::TensorError) -> PyErr {
    raise(py, &Error::from(error))
}

/// An error of a call that violates the contract of a function here.
#[cold]
pub(crate) fn misuse(py: Python<'_>, message: String) -> PyErr {
    raise(py, &Error::new(Fault::Misuse, "X0003", message))
}

fn make(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = MAKE.import(py, "flambeau.errors", "_make")?;
    let fields = PyDict::new(py);
    fields.set_item("fault", fault(error.fault))?;
    fields.set_item("code", error.code)?;
    fields.set_item("message", &error.message)?;
    fields.set_item("text", error.to_string())?;
    fields.set_item("python_class", error.class.as_deref())?;
    let label = error.diagnostics.iter().find_map(|d| d.primary.as_ref());
    let raised = error.trace.iter().rev().find_map(|entry| entry.range.clone());
    let at = label.map(|Label { at, .. }| at.clone()).or(raised);
    if let Some(at) = at {
        let (line, column) = at.source.line_column(at.range.start as usize);
        fields.set_item("file", &at.source.name)?;
        fields.set_item("line", line)?;
        fields.set_item("column", column)?;
    }
    let frames = error.trace.iter().map(|entry| entry.function.to_string());
    fields.set_item("functions", frames.collect::<Vec<_>>())?;
    Ok(PyErr::from_value(make.call((), Some(&fields))?))
}

fn fault(fault: Fault) -> &'static str {
    match fault {
        Fault::Input => "input",
        Fault::Unsupported => "unsupported",
        Fault::Misuse => "misuse",
        Fault::Limit => "limit",
        _ => "internal",
    }
}
