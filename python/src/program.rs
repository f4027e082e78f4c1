//! The classes `Program` and `ScriptObject`, and what runs have in common. What programs print goes to `sys.stdout`, so that notebooks
//! and tests see it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use flambeau::exec::tape::{self, BackwardOptions};
use flambeau::exec::{Host, Warning};
use flambeau::frontend::{NativeResolver, Resolver, Sugar, host_function, host_object};
use flambeau::ir::schema::Argument;
use flambeau::ir::value::{Generator, Object};
use flambeau::ir::{Origin, Source, Symbol};
use flambeau::tensor::{Device, Tensor};
use flambeau::{Error, ExportedProgram, IValue, Program, Session, Type};
use pyo3::exceptions::{PyAttributeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::errors::{misuse, raise};
use crate::extend::session;
use crate::function::PyFunction;
use crate::graph::PyGraph;
use crate::host::{Classes, Hosted, Objects};
use crate::source_map::{Segment, SourceMap};
use crate::tensor::PyTensor;
use crate::values::{Call, is_torch_imported, or_raise};

thread_local! {
    /// Whether calls of this thread record gradients.
    static GRAD_ENABLED: Cell<bool> = const { Cell::new(true) };
    /// The exceptions of the run of this thread; most runs have none.
    static KEPT: Cell<Option<Box<Kept>>> = const { Cell::new(None) };
}

/// Exceptions that Python raised during a run.
#[derive(Default)]
struct Kept {
    /// The exception of a signal handler or hook that ended the run.
    raised: Option<PyErr>,
    /// The last exception of a kernel in Python.
    of_kernel: Option<PyErr>,
}

fn keep(set: impl FnOnce(&mut Kept)) {
    let mut kept = KEPT.take().unwrap_or_default();
    set(&mut kept);
    KEPT.set(Some(kept));
}

/// Keeps an exception that ends the run of this thread: it replaces the run's error.
pub(crate) fn set_raised(error: PyErr) {
    keep(|kept| kept.raised = Some(error));
}

/// Runs a part of a program without the interpreter lock. An exception that a signal handler or hook raised during the run
/// replaces the run's error.
pub(crate) fn run<T: Send>(py: Python<'_>, part: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    // A hook calls programs as well: the exceptions of the outer run are not those of the inner one.
    let outer = KEPT.take();
    let result = py.detach(part);
    let kept = KEPT.replace(outer);
    or_raise(py, result).map_err(|error| {
        let Kept { raised, of_kernel } = kept.map(|kept| *kept).unwrap_or_default();
        // A kernel may have run, and failed, while constants were folded: only the exception that ended the run is its cause.
        let is_cause = |cause: &PyErr| error.to_string().ends_with(&cause.to_string());
        if let Some(cause) = of_kernel.filter(is_cause) {
            error.set_cause(py, Some(cause));
        }
        raised.unwrap_or(error)
    })
}

/// Keeps the exception that a kernel raised: it becomes the cause of the run's error.
pub(crate) fn set_kernel_error(error: PyErr) {
    keep(|kept| kept.of_kernel = Some(error));
}

/// Turns the recording of gradients off in this thread until it is dropped.
pub(crate) struct Ungraded(bool);

impl Ungraded {
    pub(crate) fn new() -> Ungraded {
        Ungraded(GRAD_ENABLED.replace(false))
    }
}

impl Drop for Ungraded {
    fn drop(&mut self) {
        GRAD_ENABLED.set(self.0);
    }
}

/// Returns a host for a call of this thread.
// Not inlined, so that it is constructed in the caller's place instead of being copied there.
#[inline(never)]
pub(crate) fn host(session: &Session) -> Host {
    let mut host = Host::new();
    session.limit(&mut host);
    host.set_grad_enabled(GRAD_ENABLED.get());
    host.set_receivers(|host| {
        host.set_stdout(SysStdout).set_warn(warnings_of_call());
    });
    host.set_interrupt(interrupted);
    host.set_rng_source(|| generator().clone());
    host
}

/// Returns the generator of random numbers that all calls share, as PyTorch's default generator.
fn generator() -> &'static Generator {
    static GENERATOR: OnceLock<Generator> = OnceLock::new();
    GENERATOR.get_or_init(|| Generator::new(Device::CPU, Host::SEED))
}

/// Sets the seed of the random numbers of all later calls.
#[pyfunction]
pub(crate) fn manual_seed(seed: u64) {
    generator().reseed(seed);
}

/// Sets whether calls of this thread record gradients; returns whether they did.
#[pyfunction]
pub(crate) fn set_grad_enabled(enabled: bool) -> bool {
    GRAD_ENABLED.replace(enabled)
}

/// Handles pending signals. An exception that a handler raises, such as `KeyboardInterrupt`, ends the run and replaces its error.
fn interrupted() -> bool {
    let raised = Python::attach(|py| py.check_signals()).err();
    let ends = raised.is_some();
    raised.into_iter().for_each(set_raised);
    ends
}

/// Returns a receiver that emits the warnings of one call as warnings of Python, at the lines of their statements. As in PyTorch, a
/// statement that runs several times in a call warns once, and the next call warns again: each call has its own registries, one per
/// file.
fn warnings_of_call() -> impl FnMut(Warning<'_>) + Send {
    let mut registries: BTreeMap<String, Py<PyDict>> = BTreeMap::new();
    move |warning| {
        let original = warning.at.map(|at| at.original().unwrap_or_else(|| at.clone()));
        let emit = |py: Python<'_>| -> PyResult<()> {
            let category = py.get_type::<PyUserWarning>();
            let (file, line): (String, u32) = match &original {
                Some(at) => {
                    let (line, _) = at.source.line_column(at.range.start as usize);
                    (at.source.name.clone(), line)
                }
                None => py.import("flambeau._trace")?.getattr("user_frame")?.call0()?.extract()?,
            };
            let registry = registries.entry(file.clone()).or_insert_with(|| PyDict::new(py).unbind());
            let keywords = PyDict::new(py);
            keywords.set_item("registry", registry.bind(py))?;
            let emit = py.import("warnings")?.getattr("warn_explicit")?;
            emit.call((warning.message, category, file, line), Some(&keywords)).map(|_| ())
        };
        // A warning that is turned into an exception cannot end the run: the receiver of warnings has no result.
        if let Err(error) = Python::attach(emit) {
            Python::attach(|py| error.write_unraisable(py, None));
        }
    }
}

/// Python's `sys.stdout`.
struct SysStdout;

impl Write for SysStdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let write = |py: Python<'_>| -> PyResult<()> {
            py.import("sys")?.getattr("stdout")?.call_method1("write", (text,)).map(|_| ())
        };
        Python::attach(write).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The texts of code modules by name, and the constants of these texts.
type Sources<'py> = (Vec<(String, String)>, Vec<Bound<'py, PyAny>>);

/// A loaded or compiled program.
#[pyclass(name = "Program", module = "flambeau._native", frozen)]
pub(crate) struct PyProgram(pub(crate) Hosted);

#[pymethods]
impl PyProgram {
    fn entries(&self) -> Vec<String> {
        self.0.entries()
    }

    fn function(&self, py: Python<'_>, name: &str) -> PyResult<PyFunction> {
        PyFunction::of(py, self.0.clone(), name)
    }

    /// The module of an archive, if there is one.
    fn module(&self) -> Option<ScriptObject> {
        self.0.module().map(|module| ScriptObject::new(self.0.clone(), module.object().clone()))
    }

    fn freeze(&self, py: Python<'_>, preserved: Vec<String>) -> PyResult<PyProgram> {
        let names: Vec<&str> = preserved.iter().map(String::as_str).collect();
        let frozen = or_raise(py, py.detach(|| self.0.freeze(&names)))?;
        Ok(PyProgram(self.0.with(frozen)))
    }

    /// Writes an archive, with extra files in place of those of the program.
    #[pyo3(signature = (path, extra_files=None))]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        extra_files: Option<Vec<(String, Vec<u8>)>>,
    ) -> PyResult<()> {
        let program = self.with_files(extra_files);
        or_raise(py, py.detach(|| program.save(path)))
    }

    /// Returns the bytes of an archive.
    #[pyo3(signature = (extra_files=None))]
    fn save_bytes<'py>(
        &self,
        py: Python<'py>,
        extra_files: Option<Vec<(String, Vec<u8>)>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let program = self.with_files(extra_files);
        Ok(PyBytes::new(py, &or_raise(py, py.detach(|| program.to_archive("archive")))?))
    }

    /// The extra files of an archive by name.
    fn extra_files<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        self.0.extra_files().iter().map(|(name, bytes)| (name.clone(), PyBytes::new(py, bytes))).collect()
    }

    /// The source that an archive of the program has: the texts of code modules by name, and the values of `CONSTANTS.c0` and so
    /// on.
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Sources<'py>> {
        let (files, constants) = or_raise(py, self.0.archive_sources())?;
        let call = Call::new(py).in_own_tensors();
        let constants: PyResult<_> = constants.iter().map(|value| call.result(value, &self.0, 0)).collect();
        Ok((files, constants?))
    }

    /// Functions that could not be compiled, with the errors.
    fn missing(&self) -> Vec<(String, String)> {
        self.0.missing().map(|(name, error)| (name.to_string(), error.to_string())).collect()
    }
}

impl PyProgram {
    fn with_files(&self, extra_files: Option<Vec<(String, Vec<u8>)>>) -> Program {
        match extra_files {
            Some(files) => self.0.with_extra_files(files),
            None => Program::clone(&self.0),
        }
    }
}

/// An instance of a class of a program, such as a module.
#[pyclass(name = "ScriptObject", module = "flambeau._native", frozen, weakref)]
pub(crate) struct ScriptObject {
    program: Hosted,
    object: Object,
}

impl ScriptObject {
    pub(crate) fn new(program: Hosted, object: Object) -> ScriptObject {
        ScriptObject { program, object }
    }

    pub(crate) fn object(&self) -> &Object {
        &self.object
    }
}

#[pymethods]
impl ScriptObject {
    /// The qualified name of the class.
    #[getter]
    fn class_name(&self) -> String {
        self.object.class().annotation_str()
    }

    #[getter]
    fn identity(&self) -> usize {
        self.object.id()
    }

    /// Names, kinds and types of the attributes.
    fn attributes(&self) -> Vec<(String, &'static str, String)> {
        use flambeau::ir::module::AttributeKind;
        let kind = |kind: AttributeKind| match kind {
            AttributeKind::Parameter => "parameter",
            AttributeKind::Buffer => "buffer",
            AttributeKind::Plain => "plain",
        };
        let module = self.program.object(self.object.clone());
        let attributes = module.attributes().into_iter();
        attributes.map(|(a, _)| (a.name.to_string(), kind(a.kind), a.ty.annotation_str())).collect()
    }

    /// Whether the class is one of modules.
    #[getter]
    fn is_module(&self) -> bool {
        self.program.unit().class(self.object.class()).is_some_and(|class| class.is_module)
    }

    /// Names of the constants of the class.
    fn constants(&self) -> Vec<String> {
        let module = self.program.object(self.object.clone());
        module.constants().iter().map(|(name, _)| name.to_string()).collect()
    }

    /// A copy of the object and of all that it holds.
    fn deep_clone(&self, py: Python<'_>) -> PyResult<ScriptObject> {
        let cloned = or_raise(py, self.program.object(self.object.clone()).deep_clone())?;
        Ok(ScriptObject { program: self.program.clone(), object: cloned.object().clone() })
    }

    fn methods(&self) -> Vec<String> {
        self.program.object(self.object.clone()).methods().into_iter().map(|(name, _)| name).collect()
    }

    fn method(&self, py: Python<'_>, name: &str) -> PyResult<PyFunction> {
        let entry = or_raise(py, self.program.method(&self.object, name))?;
        Ok(PyFunction::new(self.program.clone(), entry))
    }

    /// The value of an attribute or constant.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let module = self.program.object(self.object.clone());
        let found = module.attributes().into_iter().find(|(a, _)| a.name.as_str() == name);
        let constant = || module.constants().iter().find(|(n, _)| n.as_str() == name).map(|(_, v)| v.clone());
        match found.map(|(_, value)| value).or_else(constant) {
            Some(value) => Call::new(py).result(&value, &self.program, 0),
            None => {
                Err(PyAttributeError::new_err(format!("{} has no attribute `{name}`", self.class_name())))
            }
        }
    }

    fn set(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let module = self.program.object(self.object.clone());
        let Some((attribute, _)) = module.attributes().into_iter().find(|(a, _)| a.name.as_str() == name)
        else {
            return Err(PyAttributeError::new_err(format!(
                "{} has no attribute `{name}`",
                self.class_name()
            )));
        };
        let param = Argument::new(attribute.name, attribute.ty);
        let value = Call::of(py, &self.program).argument(value, &param)?;
        or_raise(py, module.set(name, value))
    }

    fn program(&self) -> PyProgram {
        PyProgram(self.program.clone())
    }

    /// The program with this object as its module, under the name of an archive.
    fn as_module(&self, py: Python<'_>, name: &str) -> PyResult<PyProgram> {
        let program = or_raise(py, self.program.with_module(self.object.clone(), name))?;
        Ok(PyProgram(self.program.with(program)))
    }

    fn train(&self, mode: bool) {
        self.program.object(self.object.clone()).train(mode);
    }
}

/// An exported program.
#[pyclass(name = "ExportedProgram", module = "flambeau._native", frozen)]
pub(crate) struct PyExported {
    exported: ExportedProgram,
    /// The program as a module, in whose terms results are converted.
    program: Hosted,
}

#[pymethods]
impl PyExported {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let any = |name: &str| Argument::new(Symbol::new(name), Type::ANY);
        let mut call = Call::new(py);
        let values: PyResult<Vec<IValue>> =
            args.iter().enumerate().map(|(i, arg)| call.argument(&arg, &any(&format!("{i}")))).collect();
        let values = values?;
        let mut named: Vec<(String, IValue)> = Vec::new();
        for (name, arg) in kwargs.into_iter().flat_map(|kwargs| kwargs.iter()) {
            let name: String = name.extract()?;
            let value = call.argument(&arg, &any(&name))?;
            named.push((name, value));
        }
        let session = session(py)?;
        let result = run(py, || {
            let named: Vec<(&str, IValue)> = named.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
            self.exported.call_on(&values, &named, &mut host(&session))
        })?;
        call.result(&result, &self.program, 0)
    }

    /// A copy of the graph.
    fn graph(&self) -> PyGraph {
        PyGraph::new(flambeau::Graph::clone(self.exported.graph()), self.program.clone())
    }

    /// The program as a TorchScript module.
    fn to_module(&self, py: Python<'_>) -> PyResult<PyProgram> {
        Ok(PyProgram(or_raise(py, self.exported.to_module())?.into()))
    }
}

/// Compiles source.
#[pyfunction]
pub(crate) fn compile(py: Python<'_>, text: &str, name: &str) -> PyResult<PyProgram> {
    let session = session(py)?;
    or_raise(py, py.detach(|| session.compile_source(text, name))).map(|program| PyProgram(program.into()))
}

/// Returns a program without functions and classes, in whose terms values are converted that no program has.
pub(crate) fn empty_program(py: Python<'_>) -> PyResult<Hosted> {
    static EMPTY: PyOnceLock<Program> = PyOnceLock::new();
    let session = session(py)?;
    let empty = EMPTY.get_or_try_init(py, || or_raise(py, session.compile_source("", "<values>")))?;
    let mut hosted = Hosted::from(empty.clone());
    hosted.of_torch = is_torch_imported(py)?;
    Ok(hosted)
}

/// The names of a program that its texts do not define.
struct Names {
    /// Objects that are left to Python, with the functions that declare the signatures of functions.
    objects: BTreeMap<String, Option<String>>,
    /// Values that have no literal: tensors that are defaults of parameters.
    constants: BTreeMap<String, IValue>,
    /// Functions and methods with several signatures, by qualified name.
    overloads: BTreeMap<String, Vec<String>>,
    /// Exception classes of Python, by name, with their qualified names.
    exceptions: BTreeMap<String, String>,
    /// Qualified names of the types of classes, by the names of the classes.
    type_names: BTreeMap<String, String>,
    /// Functions and methods that are compiled only if others call them, by qualified name.
    optional: BTreeSet<String>,
}

impl Resolver for Names {
    fn type_name(&self, class: &str) -> Symbol {
        self.type_names.get(class).map_or_else(|| NativeResolver.type_name(class), |name| Symbol::new(name))
    }

    fn is_optional(&self, function: Symbol) -> bool {
        self.optional.contains(function.as_str())
    }

    fn value(&self, name: &str) -> Option<Sugar> {
        if let Some(qualified) = self.exceptions.get(name) {
            return Some(Sugar::Exception(Symbol::new(qualified)));
        }
        if let Some(functions) = self.overloads.get(name) {
            return Some(Sugar::Overloads(functions.iter().map(|function| Symbol::new(function)).collect()));
        }
        if let Some(constant) = self.constants.get(name) {
            return Some(Sugar::Constant(constant.clone()));
        }
        self.objects.get(name).map(|declaration| match declaration {
            Some(declaration) => host_function(name, declaration),
            None => host_object(name),
        })
    }
}

/// A text of a program with the name of its file, the number of its first line there, and its segments.
type Text = (String, String, u32, Vec<Segment>);

/// Compiles a program in several texts. `originals` are the lines that their segments were made from, with file and number of the
/// first one. The names of `objects` are left to Python; `classes` are the classes of Python by the names of the types they were compiled to. Results of
/// calls without tensors are tensors of PyTorch if `of_torch`. `constants` are tensors by name, `overloads` the functions of names
/// with several signatures, `exceptions` the qualified names of exception classes, `type_names` those of the types of classes,
/// `optional` the functions that are compiled only if others call them, `declarations` those that declare the signatures of
/// functions among the objects.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one table for each kind of name")]
pub(crate) fn compile_texts(
    py: Python<'_>,
    texts: Vec<Text>,
    originals: Vec<(String, String, u32)>,
    objects: Objects,
    classes: Classes,
    of_torch: bool,
    constants: BTreeMap<String, PyRef<'_, PyTensor>>,
    overloads: BTreeMap<String, Vec<String>>,
    exceptions: BTreeMap<String, String>,
    type_names: BTreeMap<String, String>,
    optional: BTreeSet<String>,
    mut declarations: BTreeMap<String, String>,
) -> PyResult<PyProgram> {
    let session = session(py)?;
    let line = |(text, name, first_line)| Arc::new(Source { name, text, first_line, origin: None });
    let originals: Arc<[Arc<Source>]> = originals.into_iter().map(line).collect();
    let source = |(text, name, first_line, segments): Text| {
        let origin = SourceMap::new(&segments, &originals).map(|map| Arc::new(map) as Arc<dyn Origin>);
        Arc::new(Source { name, text, first_line, origin })
    };
    let sources: Vec<Arc<Source>> = texts.into_iter().map(source).collect();
    let tensor = |(name, tensor): (String, PyRef<'_, PyTensor>)| (name, IValue::Tensor(tensor.0.clone()));
    let constants = constants.into_iter().map(tensor).collect();
    let names = Names {
        objects: objects.keys().map(|name| (name.clone(), declarations.remove(name))).collect(),
        constants,
        overloads,
        exceptions,
        type_names,
        optional,
    };
    let compiled = py.detach(|| session.compile_sources(&sources, &names));
    Ok(PyProgram(Hosted::new(or_raise(py, compiled)?, objects, classes, of_torch)))
}

/// Makes an object of a class of a program, with the values of all attributes by name.
#[pyfunction]
pub(crate) fn new_object<'py>(
    py: Python<'py>,
    program: &Bound<'py, PyProgram>,
    class_name: &str,
    values: &Bound<'py, PyDict>,
) -> PyResult<ScriptObject> {
    let program = &program.get().0;
    let ty = Type::class(Symbol::new(class_name), 0);
    let class = program.unit().class(ty);
    let class = class.ok_or_else(|| misuse(py, format!("the program has no class `{class_name}`")))?;
    let mut call = Call::of(py, program);
    let mut slots = Vec::with_capacity(class.attributes.len());
    for attribute in &class.attributes {
        let value = values.get_item(attribute.name.as_str())?;
        let missing =
            || misuse(py, format!("the attribute `{}` of `{class_name}` has no value", attribute.name));
        let value = value.ok_or_else(missing)?;
        slots.push(call.argument(&value, &Argument::new(attribute.name, attribute.ty))?);
    }
    Ok(ScriptObject::new(program.clone(), Object::new(ty, slots)))
}

/// Reads a graph from IR text.
#[pyfunction]
pub(crate) fn parse_ir(py: Python<'_>, text: &str, name: &str) -> PyResult<PyProgram> {
    let session = session(py)?;
    or_raise(py, py.detach(|| session.parse_ir_named(text, name))).map(|program| PyProgram(program.into()))
}

/// Loads an archive (`.pt`), with its extra files.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<PyProgram> {
    let current = session(py)?;
    let session = with_extra_files(&current);
    loaded(py, or_raise(py, py.detach(|| session.load_archive(path)))?)
}

/// Loads an archive from its bytes, with its extra files.
#[pyfunction]
pub(crate) fn load_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<PyProgram> {
    let current = session(py)?;
    let session = with_extra_files(&current);
    loaded(py, or_raise(py, py.detach(|| session.load_archive_bytes(bytes)))?)
}

/// Wraps a loaded program: where PyTorch is imported, its modules are modules of PyTorch and return its tensors.
fn loaded(py: Python<'_>, program: Program) -> PyResult<PyProgram> {
    let mut hosted = Hosted::from(program);
    hosted.of_torch = is_torch_imported(py)?;
    Ok(PyProgram(hosted))
}

fn with_extra_files(session: &Session) -> Session {
    let mut options = session.load_options().clone();
    options.extra_files = true;
    session.with_load_options(options)
}

/// Loads an exported program (`.pt2`).
#[pyfunction]
pub(crate) fn load_exported(py: Python<'_>, path: PathBuf) -> PyResult<PyExported> {
    let session = session(py)?;
    let loaded = py.detach(|| -> Result<PyExported, Error> {
        let exported = session.load_exported(path)?;
        let program = session.program_of(flambeau::Graph::clone(exported.graph()))?;
        Ok(PyExported { exported, program: program.into() })
    });
    or_raise(py, loaded)
}

/// Whether a file is an exported program rather than an archive.
#[pyfunction]
pub(crate) fn is_exported(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    let limits = flambeau::archive::ArchiveLimits::default();
    let read = py.detach(|| flambeau::export::is_exported_file(&path, &limits));
    read.map_err(|e| raise(py, &Error::from(e)))
}

/// Returns the gradients of outputs, each multiplied by its seed, for inputs; `None` where an output does not depend on one. The
/// default of a seed is 1, for numbers.
#[pyfunction]
pub(crate) fn gradients(
    py: Python<'_>,
    outputs: Vec<PyRef<'_, PyTensor>>,
    seeds: Vec<Option<PyRef<'_, PyTensor>>>,
    inputs: Vec<PyRef<'_, PyTensor>>,
    retain_graph: bool,
    create_graph: bool,
) -> PyResult<Vec<Option<PyTensor>>> {
    let tensors = |of: &[PyRef<'_, PyTensor>]| of.iter().map(|t| t.0.clone()).collect::<Vec<_>>();
    let seeded = |(output, seed): (Tensor, &Option<PyRef<'_, PyTensor>>)| match seed {
        Some(seed) => Ok((output, seed.0.clone())),
        None => match tape::implicit_gradient(&output) {
            Ok(one) => Ok((output, one)),
            Err(error) => Err(misuse(py, error.to_string())),
        },
    };
    let pairs: PyResult<Vec<_>> = tensors(&outputs).into_iter().zip(&seeds).map(seeded).collect();
    let pairs = pairs?;
    let inputs = tensors(&inputs);
    let mode = BackwardOptions { retain_graph, create_graph };
    let session = session(py)?;
    let found = run(py, || session.gradients_with(&pairs, &inputs, mode, &mut host(&session)))?;
    Ok(found.into_iter().map(|tensor| tensor.map(PyTensor)).collect())
}

/// Returns the version of the extension.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
