//! The classes `Function` and `FunctionBase`: calls of programs.
//!
//! A call converts its arguments, releases the interpreter lock, runs, and converts the result. It passes through no code of Python
//! unless a trace records it or a tensor of PyTorch requires a gradient.

use std::sync::atomic::{AtomicBool, Ordering};

use flambeau::ir::Symbol;
use flambeau::ir::schema::Argument;
use flambeau::ir::types::TypeKind;
use flambeau::{Entry, Error, IValue, Type};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::brief::{self, Brief};
use crate::errors::misuse;
use crate::graph::PyGraph;
use crate::host::{Hosted, with_cause};
use crate::program::{PyProgram, host, run};
use crate::rng;
use crate::values::{Call, Library, gradient_required, or_raise};

/// A function or method that can be called.
#[pyclass(name = "Function", module = "flambeau._native", frozen, weakref)]
pub(crate) struct PyFunction {
    program: Hosted,
    entry: Entry,
    brief: Option<Brief>,
    /// Whether a call has ended, so that the next one compiles nothing.
    has_run: AtomicBool,
}

#[pymethods]
impl PyFunction {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call(py, args, kwargs)
    }

    /// A call whose results are tensors of this package, of whichever library the arguments are.
    fn call_own<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.run(Call::of(py, &self.program).in_own_tensors(), args, Some(kwargs))
    }

    /// A module whose method `forward` is this function.
    fn to_module(&self, py: Python<'_>) -> PyResult<PyProgram> {
        let module = or_raise(py, self.program.function_as_module(self.entry.name()))?;
        Ok(PyProgram(self.program.with(module)))
    }

    #[getter]
    fn name(&self) -> &str {
        self.entry.name()
    }

    /// The signature, with the last part of the name.
    #[getter]
    fn schema(&self) -> String {
        self.declaration()
    }

    /// Names, types and defaults of the parameters.
    fn parameters(&self) -> Vec<(String, String, bool)> {
        let text = |p: &Argument| (p.name.to_string(), p.ty.annotation_str(), p.default.is_some());
        self.entry.params().iter().map(text).collect()
    }

    /// A copy of the graph.
    #[pyo3(signature = (pipeline=None))]
    fn graph(&self, py: Python<'_>, pipeline: Option<&str>) -> PyResult<PyGraph> {
        let graph = match pipeline {
            Some(pipeline) => or_raise(py, py.detach(|| self.entry.optimized(pipeline)))?,
            None => flambeau::Graph::clone(self.entry.graph()),
        };
        Ok(PyGraph::new(graph, self.program.clone()))
    }

    /// The body as source.
    #[getter]
    fn code(&self, py: Python<'_>) -> PyResult<String> {
        or_raise(py, self.entry.code())
    }

    /// The body as source, and the values of `CONSTANTS.c0` and those behind it.
    fn code_with_constants<'py>(&self, py: Python<'py>) -> PyResult<(String, Vec<Bound<'py, PyAny>>)> {
        let (text, constants) = or_raise(py, self.entry.code_with_constants())?;
        let call = Call::of(py, &self.program);
        let values: PyResult<Vec<_>> =
            constants.iter().map(|value| call.result(value, &self.program, 0)).collect();
        Ok((text, values?))
    }

    /// The instructions of the machine, as text.
    fn bytecode(&self, py: Python<'_>) -> PyResult<String> {
        or_raise(py, self.entry.bytecode())
    }
}

impl PyFunction {
    /// Calls the function. Results are tensors of the library of the first tensor among the arguments.
    pub(crate) fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.brief == Some(Brief::Numbers)
            && self.has_run.load(Ordering::Relaxed)
            && kwargs.is_none()
            && let Some(result) = brief::call(&self.entry, args)
        {
            return Ok(result);
        }
        self.run(Call::of(py, &self.program), args, kwargs)
    }

    fn run<'py>(
        &self,
        mut call: Call<'_, 'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let params = self.entry.params();
        if args.len() > params.len() {
            return Err(self.too_many(py, args.len()));
        }
        let mut given = Arguments::default();
        let may_be_brief = self.brief == Some(Brief::Tensors) && self.has_run.load(Ordering::Relaxed);
        if may_be_brief {
            call.copy_few();
        }
        self.convert(&mut call, args, kwargs, &mut given)?;
        while call.restart() {
            // Dropped first, so that their memory is given back.
            given.clear();
            self.convert(&mut call, args, kwargs, &mut given)?;
        }
        let Arguments { values, named } = given;
        if args.len() + named.len() < params.len() || kwargs.is_some_and(|given| given.len() > named.len()) {
            self.check_names(py, args.len(), kwargs)?;
        }
        call.check_modes()?;
        if may_be_brief && named.is_empty() && brief::are_small(&values) {
            let result = brief::with_host(|host| self.entry.call_on(&values, &[], host));
            return call.result(&or_raise(py, result)?, &self.program, 0);
        }
        let is_under_no_grad = call.is_under_no_grad()?;
        if is_under_no_grad {
            call.mark_required()?;
        }
        let session = self.program.session();
        let library = call.library();
        let is_torch = self.program.of_torch || library == Some(Library::Torch);
        let generator = is_torch.then(rng::torch_generator);
        let mut raised = None;
        let part = || {
            let named: Vec<(&str, IValue)> = named.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
            let mut host = host(session);
            if is_under_no_grad {
                host.set_grad_enabled(false);
            }
            if let Some(generator) = &generator {
                host.set_rng(generator.clone());
            }
            raised = self.program.serve(&mut host, library, generator.as_ref());
            self.entry.call_on(&values, &named, &mut host)
        };
        let result = run(py, part);
        if !self.has_run.load(Ordering::Relaxed) {
            self.has_run.store(true, Ordering::Relaxed);
        }
        if let Some(generator) = &generator {
            rng::give_back(py, generator, None)?;
        }
        call.give_back_generators()?;
        call.tell_torch()?;
        let result = result.map_err(|error| with_cause(py, error, raised))?;
        call.result(&result, &self.program, 0)
    }

    /// Converts the arguments, in place: moving values that were just written in parts would stall on store forwarding.
    fn convert<'py>(
        &self,
        call: &mut Call<'_, 'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        Arguments { values, named }: &mut Arguments,
    ) -> PyResult<()> {
        let params = self.entry.params();
        values.reserve(args.len());
        for (i, (arg, param)) in args.iter_borrowed().zip(params).enumerate() {
            values.push(call.argument_or(&arg, param, |found| self.mismatch(i, &arg, found))?);
        }
        for (name, arg) in kwargs.into_iter().flat_map(|kwargs| kwargs.iter()) {
            let name: String = name.extract()?;
            let Some(i) = params.iter().position(|p| p.name.as_str() == name) else {
                continue;
            };
            if i < args.len() {
                return Err(self.given_twice(args.py(), &name));
            }
            named.push((name, call.argument_or(&arg, &params[i], |found| self.mismatch(i, &arg, found))?));
        }
        Ok(())
    }

    /// Returns an entry of a program.
    pub(crate) fn of(py: Python<'_>, program: Hosted, name: &str) -> PyResult<PyFunction> {
        let entry = or_raise(py, program.entry(name))?;
        Ok(PyFunction::new(program, entry))
    }

    pub(crate) fn new(program: Hosted, entry: Entry) -> PyFunction {
        let brief = Brief::of(entry.graph());
        PyFunction { program, entry, brief, has_run: AtomicBool::new(false) }
    }

    /// Returns the function.
    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns the parameters.
    pub(crate) fn params(&self) -> &[Argument] {
        self.entry.params()
    }

    /// Returns the graph with all calls inlined.
    pub(crate) fn inlined(&self) -> Result<flambeau::Graph, Error> {
        self.entry.optimized("inline")
    }

    /// The last part of the name.
    fn short_name(&self) -> &str {
        let name = self.entry.schema().name.as_str();
        name.rsplit_once('.').map_or(name, |(_, last)| last)
    }

    /// The signature as PyTorch writes it in messages.
    fn declaration(&self) -> String {
        let mut schema = self.entry.schema().clone();
        let name = schema.name.as_str();
        schema.name = Symbol::new(name.rsplit_once('.').map_or(name, |(_, last)| last));
        schema.to_string()
    }

    /// The number of parameters before those that a call passes: `self` of a method.
    fn receivers(&self) -> usize {
        self.entry.schema().args.len() - self.entry.params().len()
    }

    #[cold]
    fn mismatch(&self, position: usize, value: &Bound<'_, PyAny>, found: &str) -> String {
        let ty = self.entry.params()[position].ty;
        let is_union = matches!(ty.optional_elem().unwrap_or(ty).kind(), TypeKind::Union(_));
        let inferred = is_union.then(|| Call::of(value.py(), &self.program).value(value, Type::ANY, 0));
        let why = match inferred {
            Some(Ok(inferred)) => format!(
                "\nExpected a member of {} but instead found type {}.",
                ty.annotation(),
                inferred.type_of().annotation()
            ),
            _ => self.missing_attribute(ty, value).or_else(|| wrong_device(ty, value)).unwrap_or_default(),
        };
        let shown = value.repr().map_or_else(|_| String::new(), |text| text.to_string());
        let shown: String = shown.chars().take(100).collect();
        let param = &self.entry.params()[position];
        format!(
            "{}() Expected a value of type '{}' for argument '{}' but instead found type '{found}'.{}\nPosition: {}\nValue: \
             {shown}\nDeclaration: {}{why}",
            self.short_name(),
            param.described_type(),
            param.name,
            param.why_inferred(),
            position + self.receivers(),
            self.declaration()
        )
    }

    /// States which attribute of a class an argument in the place of an object lacks.
    #[cold]
    fn missing_attribute(&self, ty: Type, value: &Bound<'_, PyAny>) -> Option<String> {
        let class = self.program.unit().class(ty)?;
        let has = |name: &str| value.hasattr(name).unwrap_or(true);
        let missing = class.attributes.iter().find(|attribute| !has(attribute.name.as_str()))?;
        Some(format!(
            "\nCast error details: Tried to cast object to type {} but object was missing attribute {}",
            ty.annotation(),
            missing.name
        ))
    }

    /// Checks that every argument by name has a parameter and every parameter an argument or a default.
    #[cold]
    fn check_names(&self, py: Python<'_>, given: usize, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let params = self.entry.params();
        for param in params.iter().skip(given).filter(|param| param.default.is_none()) {
            let name = param.name.as_str();
            if !kwargs.map_or(Ok(false), |kwargs| kwargs.contains(name))? {
                let (function, all) = (self.short_name(), self.declaration());
                let text = format!("{function}() is missing value for argument '{name}'. Declaration: {all}");
                return Err(misuse(py, text));
            }
        }
        for (name, _) in kwargs.into_iter().flat_map(|kwargs| kwargs.iter()) {
            let name: String = name.extract()?;
            if !params.iter().any(|param| param.name.as_str() == name) {
                let (function, all) = (self.short_name(), self.declaration());
                let text =
                    format!("Unknown keyword argument '{name}' for operator '{function}'. Schema: {all}");
                return Err(misuse(py, text));
            }
        }
        Ok(())
    }

    #[cold]
    fn too_many(&self, py: Python<'_>, given: usize) -> PyErr {
        let (name, all, hidden) = (self.short_name(), self.declaration(), self.receivers());
        let (takes, given) = (self.entry.params().len() + hidden, given + hidden);
        let text = format!("{name}() expected at most {takes} argument(s) but received {given} argument(s)");
        misuse(py, format!("{text}. Declaration: {all}"))
    }

    #[cold]
    fn given_twice(&self, py: Python<'_>, name: &str) -> PyErr {
        let all = self.declaration();
        let text =
            format!("Argument '{name}' specified both as positional and keyword argument. Schema: {all}");
        misuse(py, text)
    }
}

/// Arguments of a call.
#[derive(Default)]
struct Arguments {
    /// By position.
    values: SmallVec<[IValue; 4]>,
    /// By name.
    named: Vec<(String, IValue)>,
}

impl Arguments {
    fn clear(&mut self) {
        self.values.clear();
        self.named.clear();
    }
}

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

/// States why a text names no device.
#[cold]
fn wrong_device(ty: Type, value: &Bound<'_, PyAny>) -> Option<String> {
    let text: String = value.extract().ok().filter(|_| ty.optional_elem().unwrap_or(ty) == Type::DEVICE)?;
    let error = flambeau::tensor::Device::parse(&text).err()?;
    Some(format!("\nCast error details: {error}"))
}
