//! Errors of the compiler as Python exceptions.
//!
//! The exception classes are Python's (`flambeau/errors.py`), so that programs can subclass and pickle them. This file
//! passes the parts of an [`Error`] to the function there that selects the class.

use std::sync::Arc;

use flambeau::ir::diag::Label;
use flambeau::ir::{Diagnostic, Source, SourceRange};
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

/// A range of one line: file, number of the line, column from 1 and number of characters, the line, and a remark.
type Range = (String, u32, usize, usize, String, String);

/// Makes the exception for an error that Python finds, in the form of those that the compiler finds. A definition that is wrong
/// or not supported is so at the first range; the others are the calls because of which it is compiled.
#[pyfunction]
pub(crate) fn error(py: Python<'_>, kind: &str, message: String, ranges: Vec<Range>) -> PyResult<Py<PyAny>> {
    let (fault, code) = match kind {
        "unsupported" => (Fault::Unsupported, "F0101"),
        "annotation" => (Fault::Unsupported, "F0110"),
        "input" => (Fault::Input, "F0100"),
        _ => (Fault::Misuse, "X0003"),
    };
    if ranges.is_empty() {
        return Ok(make(py, &Error::new(fault, code, message))?.into_value(py).into_any());
    }
    let mut diagnostic = Diagnostic::new(fault, code, message);
    for (index, (name, first_line, column, width, text, remark)) in ranges.into_iter().enumerate() {
        let start: usize = text.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
        let length: usize = text[start..].chars().take(width).map(char::len_utf8).sum();
        let source = Arc::new(Source { name, text, first_line, origin: None });
        // Lines are lines of files that Python read; a longer one has no position in the error.
        let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(start + length)) else { continue };
        let at = SourceRange { source, range: start..end };
        diagnostic = if index == 0 { diagnostic.at(at).label(remark) } else { diagnostic.also(at, remark) };
    }
    Ok(make(py, &Error::from(diagnostic))?.into_value(py).into_any())
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
    // The innermost statement of the user: functions of the library that are written in TorchScript are not.
    let ranges = || error.trace.iter().rev().filter_map(|entry| entry.range.clone());
    let raised = ranges().find(|at| !is_of_library(&at.source.name)).or_else(|| ranges().next());
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

/// Whether a text is one of the library's definitions.
fn is_of_library(name: &str) -> bool {
    name == "<builtin>" || name.starts_with("torch/")
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
