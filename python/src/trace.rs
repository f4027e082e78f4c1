//! The recorder of traces for Python: appends calls that Python made to a graph.
//!
//! Which tensors are which values is known in Python (`flambeau/_trace.py`), for tensors of every library.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flambeau::Type;
use flambeau::ir::{Source, Symbol, ValueId};
use flambeau::trace::{Recorder, TraceOperand};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::errors::misuse;
use crate::extend::session;
use crate::function::PyFunction;
use crate::graph::PyGraph;
use crate::host::Hosted;
use crate::program::PyProgram;
use crate::values::{Call, Failure, or_raise};

/// Maximum nesting of operands.
const MAX_DEPTH: usize = 64;

/// A value of the graph that a recorder builds.
#[pyclass(name = "TracedValue", module = "flambeau._native", frozen)]
pub(crate) struct PyTracedValue(ValueId);

/// A graph under construction.
#[pyclass(name = "Recorder", module = "flambeau._native", frozen)]
pub(crate) struct PyRecorder {
    /// `None` after the end of the trace.
    recorder: Mutex<Option<Recorder>>,
    sources: Mutex<BTreeMap<String, Arc<Source>>>,
    program: Hosted,
}

/// Access to a recorder that has not ended.
struct Recording<'a>(MutexGuard<'a, Option<Recorder>>);

impl Recording<'_> {
    fn get(&mut self, py: Python<'_>) -> PyResult<&mut Recorder> {
        self.0.as_mut().ok_or_else(|| misuse(py, "the trace has ended".to_owned()))
    }
}

impl PyRecorder {
    fn lock(&self) -> Recording<'_> {
        Recording(self.recorder.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self, py: Python<'_>) -> PyResult<Recorder> {
        self.lock().0.take().ok_or_else(|| misuse(py, "the trace has ended".to_owned()))
    }
}

fn operands(py: Python<'_>, items: &[Bound<'_, PyAny>]) -> PyResult<Vec<TraceOperand>> {
    items.iter().map(|item| operand(py, item, 0)).collect()
}

/// Returns the operands of a function's parameters behind the first ones, with defaults.
fn arguments(
    py: Python<'_>,
    function: &Bound<'_, PyFunction>,
    args: &[Bound<'_, PyAny>],
    kwargs: Option<&Bound<'_, PyDict>>,
    first: usize,
) -> PyResult<Vec<TraceOperand>> {
    let mut args = operands(py, args)?;
    for param in function.get().params().iter().skip(first + args.len()) {
        let given = kwargs.map(|kwargs| kwargs.get_item(param.name.as_str())).transpose()?.flatten();
        match (given, &param.default) {
            (Some(given), _) => args.push(operand(py, &given, 0)?),
            (None, Some(default)) => args.push(default.clone().into()),
            (None, None) => {
                return Err(misuse(py, format!("the call needs an argument `{}`", param.name)));
            }
        }
    }
    Ok(args)
}

/// Converts an operand: a traced value, a container of operands, or a constant.
fn operand(py: Python<'_>, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<TraceOperand> {
    if depth > MAX_DEPTH {
        return Err(misuse(
            py,
            format!("a container in a trace is nested more than {MAX_DEPTH} levels deep"),
        ));
    }
    if let Ok(value) = object.cast::<PyTracedValue>() {
        return Ok(TraceOperand::Value(value.get().0));
    }
    let next = |item: Bound<'_, PyAny>| operand(py, &item, depth + 1);
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().map(next).collect::<PyResult<_>>().map(TraceOperand::List);
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return tuple.iter().map(next).collect::<PyResult<_>>().map(TraceOperand::Tuple);
    }
    if let Ok(dict) = object.cast::<PyDict>().map(|dict| dict.iter()) {
        let entries: Vec<(TraceOperand, TraceOperand)> =
            dict.map(|(key, value)| Ok((next(key)?, next(value)?))).collect::<PyResult<_>>()?;
        if !entries.is_empty() {
            return Ok(TraceOperand::Dict(entries));
        }
    }
    // A device of any library has no other form than its text.
    let ty = if object.get_type().name()? == "device" { Type::DEVICE } else { Type::ANY };
    let constant = Call::new(py).value(object, ty, 0).map_err(|failure| match failure {
        Failure::Raised(error) => error,
        Failure::Type => misuse(py, format!("{object} cannot be a constant of a trace")),
    })?;
    Ok(TraceOperand::Constant(constant))
}

fn traced(values: Vec<ValueId>) -> Vec<PyTracedValue> {
    values.into_iter().map(PyTracedValue).collect()
}

#[pymethods]
impl PyRecorder {
    /// Records a function of a name, or with a program and the name of one of its classes a method.
    #[new]
    #[pyo3(signature = (program=None, class_name=None, of_torch=false, name="forward"))]
    fn new(
        py: Python<'_>,
        program: Option<&Bound<'_, PyProgram>>,
        class_name: Option<&str>,
        of_torch: bool,
        name: &str,
    ) -> PyResult<PyRecorder> {
        let session = session(py)?;
        let mut program: Hosted = match program {
            Some(program) => program.get().0.clone(),
            None => or_raise(py, session.parse_ir("graph():\n  return ()\n"))?.into(),
        };
        program.of_torch |= of_torch;
        let mut recorder = Recorder::with_unit(&session, Arc::clone(program.unit())).named(name);
        if let Some(name) = class_name {
            recorder.receiver(Type::class(Symbol::new(name), 0));
        }
        Ok(PyRecorder { recorder: Mutex::new(Some(recorder)), sources: Mutex::default(), program })
    }

    /// Adds an input whose type is that of an example.
    fn input(&self, py: Python<'_>, name: &str, example: &Bound<'_, PyAny>) -> PyResult<PyTracedValue> {
        let value = Call::new(py).value(example, Type::ANY, 0).map_err(|failure| match failure {
            Failure::Raised(error) => error,
            Failure::Type => misuse(py, format!("{example} cannot be an input of a trace")),
        })?;
        Ok(PyTracedValue(self.lock().get(py)?.input(name, value.type_of())))
    }

    /// Names a value after a variable.
    fn set_name(&self, py: Python<'_>, value: &Bound<'_, PyTracedValue>, name: &str) -> PyResult<()> {
        self.lock().get(py)?.set_name(value.get().0, name);
        Ok(())
    }

    /// An attribute of the module or of a module below it.
    fn attribute(&self, py: Python<'_>, path: Vec<String>) -> PyResult<PyTracedValue> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        or_raise(py, self.lock().get(py)?.attribute(&path)).map(PyTracedValue)
    }

    /// Sets file, line and scope of the next nodes.
    fn locate(&self, py: Python<'_>, file: &str, line: u32, scope: &str) -> PyResult<()> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let source = match sources.get(file) {
            Some(source) => Arc::clone(source),
            None => {
                let source = Source::new(file, std::fs::read_to_string(file).unwrap_or_default());
                sources.insert(file.to_owned(), Arc::clone(&source));
                source
            }
        };
        self.lock().get(py)?.set_location(Some((&source, line)), scope);
        Ok(())
    }

    /// Appends a call of an operator by its full name, with the operands of its schema in order.
    fn call(
        &self,
        py: Python<'_>,
        operator: &str,
        args: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<PyTracedValue>> {
        let args = operands(py, &args)?;
        or_raise(py, self.lock().get(py)?.call(operator, &args)).map(traced)
    }

    /// Appends the body of a function, with the operands of its parameters.
    fn inline(
        &self,
        py: Python<'_>,
        function: &Bound<'_, PyFunction>,
        args: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<PyTracedValue> {
        let args = arguments(py, function, &args, None, 0)?;
        let graph = or_raise(py, function.get().inlined())?;
        or_raise(py, self.lock().get(py)?.inline_operator(&graph, &args)).map(PyTracedValue)
    }

    /// Appends a call of a function, with the operands of its parameters.
    #[pyo3(signature = (name, function, args, kwargs=None))]
    fn call_function(
        &self,
        py: Python<'_>,
        name: &str,
        function: &Bound<'_, PyFunction>,
        args: Vec<Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyTracedValue> {
        let args = arguments(py, function, &args, kwargs, 0)?;
        or_raise(py, self.lock().get(py)?.call_function(function.get().entry(), name, &args))
            .map(PyTracedValue)
    }

    /// Appends a call of a method of a module in the module that is traced; `function` is the method, whose first parameter is
    /// the module.
    #[pyo3(signature = (path, name, function, args, kwargs=None))]
    fn call_method(
        &self,
        py: Python<'_>,
        path: Vec<String>,
        name: &str,
        function: &Bound<'_, PyFunction>,
        args: Vec<Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyTracedValue> {
        let args = arguments(py, function, &args, kwargs, 1)?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let object = or_raise(py, self.lock().get(py)?.attribute(&path))?;
        or_raise(py, self.lock().get(py)?.call_method(object, name, &args)).map(PyTracedValue)
    }

    /// Appends the size of a tensor in a dimension, as a tensor.
    fn size(&self, py: Python<'_>, tensor: &Bound<'_, PyAny>, dim: i64) -> PyResult<PyTracedValue> {
        let tensor = operand(py, tensor, 0)?;
        or_raise(py, self.lock().get(py)?.size(&tensor, dim)).map(PyTracedValue)
    }

    /// Appends the conversion of a number to a tensor.
    fn number(&self, py: Python<'_>, value: &Bound<'_, PyTracedValue>) -> PyResult<PyTracedValue> {
        or_raise(py, self.lock().get(py)?.number(value.get().0)).map(PyTracedValue)
    }

    /// Appends the elements of a list of known length, or of a tuple.
    fn unpack(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyTracedValue>,
        count: usize,
    ) -> PyResult<Vec<PyTracedValue>> {
        or_raise(py, self.lock().get(py)?.unpack(value.get().0, count)).map(traced)
    }

    /// A copy of the graph as recorded so far.
    fn graph(&self, py: Python<'_>) -> PyResult<PyGraph> {
        Ok(PyGraph::new(self.lock().get(py)?.graph().clone(), self.program.clone()))
    }

    /// Ends the trace; the graph is a function of the program.
    fn finish(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<PyProgram> {
        let result = operand(py, result, 0)?;
        let program = or_raise(py, self.take(py)?.finish(&result))?;
        Ok(PyProgram(self.program.with(program)))
    }

    /// Ends the trace; the graph is a method of the class.
    fn finish_method(&self, py: Python<'_>, name: &str, result: &Bound<'_, PyAny>) -> PyResult<PyProgram> {
        let result = operand(py, result, 0)?;
        let program = or_raise(py, self.take(py)?.finish_method(name, &result))?;
        Ok(PyProgram(self.program.with(program)))
    }
}
