//! Shape functions that are written in Python.
//!
//! A shape function has the parameters of an operator, with a list of sizes in place of each tensor, and returns the sizes of each
//! result. While a program is compiled the function runs where all sizes and numbers are known; otherwise nothing is stated about
//! the results. An exception of the function states nothing either: the kernel raises the error of such operands.

use std::sync::Arc;

use flambeau::analysis::ResultShapes;
use flambeau::analysis::shape::{Fact, ShapeCx, TensorFact};
use flambeau::ir::types::Dim;
use flambeau::{FunctionSchema, IValue, Type};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::host::Hosted;
use crate::program::empty_program;
use crate::values::Call;

/// The shape function of an operator.
pub(crate) struct ShapeFunction {
    function: Py<PyAny>,
    args: Vec<Type>,
    results: usize,
}

/// The rules of the results.
pub(crate) fn shape_rules(function: &Arc<ShapeFunction>) -> Vec<ResultShapes> {
    let rule = |result: usize| {
        let function = Arc::clone(function);
        ResultShapes::from(move |cx: &mut ShapeCx<'_>| {
            let sizes = Python::attach(|py| function.of_facts(py, cx))?;
            Some(TensorFact::of_dims(sizes.get(result)?.iter().copied().map(Dim::Known)))
        })
    };
    (0..function.results).map(rule).collect()
}

impl ShapeFunction {
    pub(crate) fn new(function: Py<PyAny>, schema: &FunctionSchema) -> ShapeFunction {
        ShapeFunction {
            function,
            args: schema.args.iter().map(|arg| arg.ty).collect(),
            results: schema.returns.len(),
        }
    }

    /// Returns the sizes of all results of a call.
    ///
    /// # Errors
    /// The exception that the function raises.
    pub(crate) fn of_values(
        &self,
        py: Python<'_>,
        args: &[IValue],
        program: &Hosted,
    ) -> PyResult<Vec<Vec<i64>>> {
        let given: Vec<Bound<'_, PyAny>> =
            args.iter().map(|arg| sizes_of_value(py, arg, program)).collect::<PyResult<_>>()?;
        self.call(py, given)
    }

    /// Returns the sizes of all results of a node if everything that the function needs is known.
    fn of_facts(&self, py: Python<'_>, cx: &ShapeCx<'_>) -> Option<Vec<Vec<i64>>> {
        let program = empty_program(py).ok()?;
        let given: Option<Vec<Bound<'_, PyAny>>> =
            self.args.iter().enumerate().map(|(i, ty)| known_operand(py, cx, i, *ty, &program)).collect();
        self.call(py, given?).ok()
    }

    fn call(&self, py: Python<'_>, given: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Vec<i64>>> {
        let found = self.function.bind(py).call1(PyTuple::new(py, given)?)?;
        if self.results == 1 { Ok(vec![found.extract()?]) } else { found.extract() }
    }
}

/// Returns the operand of a call of a shape function.
fn sizes_of_value<'py>(py: Python<'py>, value: &IValue, program: &Hosted) -> PyResult<Bound<'py, PyAny>> {
    match value {
        IValue::Tensor(tensor) => Ok(PyList::new(py, tensor.sizes())?.into_any()),
        IValue::List(list) if list.elem_type().unwrap_optional().is_tensor() => {
            let sizes: PyResult<Vec<_>> =
                list.to_vec().iter().map(|item| sizes_of_value(py, item, program)).collect();
            Ok(PyList::new(py, sizes?)?.into_any())
        }
        other => Call::new(py).in_own_tensors().result(other, program, 0),
    }
}

/// Returns the argument of a shape function that the facts about a node's operand determine.
fn known_operand<'py>(
    py: Python<'py>,
    cx: &ShapeCx<'_>,
    at: usize,
    ty: Type,
    program: &Hosted,
) -> Option<Bound<'py, PyAny>> {
    if cx.is_none(at) == Some(true) {
        return Some(py.None().into_bound(py));
    }
    let sizes = |fact: &TensorFact| -> Option<Bound<'py, PyAny>> {
        let known: Option<Vec<i64>> = fact.dims.as_ref()?.iter().map(|dim| dim.known()).collect();
        Some(PyList::new(py, known?).ok()?.into_any())
    };
    let ty = ty.unwrap_optional();
    if ty.is_tensor() {
        return sizes(cx.tensor(at)?);
    }
    if ty.list_elem().is_some_and(|elem| elem.unwrap_optional().is_tensor()) {
        let elements = cx.elements(at)?.iter().map(|element: &Fact| sizes(element.as_tensor()?));
        return Some(PyList::new(py, elements.collect::<Option<Vec<_>>>()?).ok()?.into_any());
    }
    if let Some(number) = cx.known_int(at) {
        return number.into_pyobject(py).ok().map(Bound::into_any);
    }
    if let Some(numbers) = cx.known_ints(at) {
        return Some(PyList::new(py, numbers.as_slice()).ok()?.into_any());
    }
    Call::new(py).in_own_tensors().result(cx.constant(at)?, program, 0).ok()
}
