//! Python as the host of programs: calls and objects that a program leaves to Python.
//!
//! A name that is not compiled is an object of the host. Reading its members and calling it are `prim::PythonOp` nodes, which
//! take the interpreter lock for their duration; results are objects of the host again, until an annotation converts them with
//! `prim::CastFromPython`. An exception that Python raises ends the run like an exception of the program, with the original
//! one as its cause.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use flambeau::exec::{Fault, Host, HostCalls, KernelError, KernelResult, Rets};
use flambeau::ir::value::{Generator, HostValue};
use flambeau::ir::{HostOp, NodeId, Symbol};
use flambeau::{Graph, IValue, Program, Type};
use pyo3::exceptions::PyNameError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::rng::give_back;
use crate::values::{Call, Failure, Library, PyHost, helper};

/// Objects of Python by the names that a program gives them.
pub(crate) type Objects = BTreeMap<String, Py<PyAny>>;

/// Classes of Python by the qualified names of the types that they were compiled to.
pub(crate) type Classes = BTreeMap<String, Py<PyAny>>;

/// A program with the objects of Python to which it refers.
#[derive(Clone)]
pub(crate) struct Hosted {
    program: Program,
    objects: Arc<Objects>,
    classes: Arc<Classes>,
    /// Whether results of calls without tensors are tensors of PyTorch.
    pub(crate) of_torch: bool,
}

impl Deref for Hosted {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

impl From<Program> for Hosted {
    fn from(program: Program) -> Hosted {
        Hosted { program, objects: Arc::default(), classes: Arc::default(), of_torch: false }
    }
}

/// The first exception that Python raised during a run.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

impl Hosted {
    pub(crate) fn new(program: Program, objects: Objects, classes: Classes, of_torch: bool) -> Hosted {
        Hosted { program, objects: Arc::new(objects), classes: Arc::new(classes), of_torch }
    }

    /// Returns the class of Python that was compiled to a type.
    pub(crate) fn python_class<'py>(&self, py: Python<'py>, ty: Type) -> Option<Bound<'py, PyAny>> {
        if self.classes.is_empty() {
            return None;
        }
        self.classes.get(&ty.annotation_str()).map(|class| class.bind(py).clone())
    }

    /// Returns the type that the class of an object of Python was compiled to.
    pub(crate) fn compiled_class(&self, object: &Bound<'_, PyAny>) -> Option<Type> {
        self.type_name(object).map(|name| Type::class(Symbol::new(name), 0))
    }

    /// Returns the type of a member of an enumeration that was compiled.
    pub(crate) fn compiled_enumeration(&self, object: &Bound<'_, PyAny>) -> Option<Type> {
        let name = self.type_name(object)?;
        self.program.unit().enumerations().map(|e| e.ty).find(|ty| ty.annotation_str() == *name)
    }

    /// Returns the qualified name of the type that the class of an object of Python was compiled to.
    fn type_name(&self, object: &Bound<'_, PyAny>) -> Option<&String> {
        let class = object.get_type();
        let mut found = self.classes.iter().filter(|(_, known)| class.is(known.bind(object.py())));
        found.next().map(|(name, _)| name)
    }

    /// Returns the same objects with another form of the program.
    pub(crate) fn with(&self, program: Program) -> Hosted {
        Hosted { program, ..self.clone() }
    }

    /// Installs Python as the host of a run. Tensors are passed to Python as tensors of `library`. Returns `None` for a program
    /// that does not call Python. Calls of Python find the state of `generator` in PyTorch.
    pub(crate) fn serve(
        &self,
        host: &mut Host,
        library: Option<Library>,
        generator: Option<&Generator>,
    ) -> Option<Raised> {
        if self.objects.is_empty() {
            return None;
        }
        let raised = Raised::default();
        let generator = generator.cloned();
        host.set_calls(Calls {
            program: self.clone(),
            raised: Arc::clone(&raised),
            library,
            generator,
            is_grad_enabled: true,
        });
        Some(raised)
    }

    /// Resolves a dotted path.
    fn object<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let mut names = path.split('.');
        let first = names.next().unwrap_or_default();
        let known = match (self.objects.get(first), first) {
            (Some(known), _) => known.bind(py).clone(),
            // Operators and builtin functions on objects of Python.
            (None, "operator" | "builtins") => py.import(first)?.into_any(),
            (None, _) => return Err(PyNameError::new_err(format!("name '{first}' is not defined"))),
        };
        names.try_fold(known, |object, name| object.getattr(name))
    }
}

/// The operations of a run on objects of Python.
struct Calls {
    program: Hosted,
    raised: Raised,
    library: Option<Library>,
    generator: Option<Generator>,
    /// Whether the program records gradients where it calls Python.
    is_grad_enabled: bool,
}

impl Calls {
    fn run<'py>(&self, py: Python<'py>, op: &HostOp, args: &[IValue]) -> PyResult<Bound<'py, PyAny>> {
        if let Some(generator) = &self.generator {
            give_back(py, generator, None)?;
        }
        let call = Call::of(py, &self.program).in_library(self.library);
        let args: PyResult<Vec<_>> = args.iter().map(|arg| call.result(arg, &self.program, 0)).collect();
        let args = args?;
        let (callee, args, words) = match (op, args.as_slice()) {
            (HostOp::Object(path), _) => return self.program.object(py, path.as_str()),
            (HostOp::Member(name), [object, ..]) => return object.getattr(name.as_str()),
            (HostOp::Function(path, words), args) => (self.program.object(py, path.as_str())?, args, words),
            (HostOp::Call(words), [callee, args @ ..]) => (callee.clone(), args, words),
            _ => return Err(PyNameError::new_err("a host operation has no callee")),
        };
        let (positional, named) = args.split_at(args.len().saturating_sub(words.len()));
        let keywords = PyDict::new(py);
        for (word, value) in words.iter().zip(named) {
            keywords.set_item(word.as_str(), value)?;
        }
        let positional = PyTuple::new(py, positional)?;
        if self.is_grad_enabled {
            return callee.call(positional, Some(&keywords));
        }
        helper(py, "without_gradients")?.call1((callee, positional, keywords))
    }

    /// Keeps an exception as the cause of the run's error.
    fn error(&self, py: Python<'_>, error: PyErr) -> KernelError {
        let class = error.get_type(py).name().map_or_else(|_| "RuntimeError".to_owned(), |n| n.to_string());
        let message = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string());
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        KernelError::new(Fault::Input, class, message)
    }
}

impl HostCalls for Calls {
    fn call(&mut self, graph: &Graph, node: NodeId, args: &mut [IValue], rets: &mut Rets) -> KernelResult {
        let op =
            HostOp::of(graph, node).ok_or_else(|| KernelError::misuse("a host operation without a name"))?;
        Python::attach(|py| match self.run(py, &op, args) {
            Ok(object) => {
                rets.push(IValue::Host(HostValue::new(PyHost(object.unbind()))));
                Ok(())
            }
            Err(error) => Err(self.error(py, error)),
        })
    }

    fn set_grad_enabled(&mut self, enabled: bool) {
        self.is_grad_enabled = enabled;
    }

    fn cast(&mut self, value: IValue, ty: Type) -> Result<IValue, KernelError> {
        let IValue::Host(host) = &value else {
            return Err(KernelError::new(Fault::Input, "ValueError", mismatch(value.tag(), ty)));
        };
        let object =
            host.downcast::<PyHost>().ok_or_else(|| KernelError::misuse("an object of another host"))?;
        Python::attach(|py| {
            let object = object.0.bind(py);
            Call::of(py, &self.program).value(object, ty, 0).map_err(|failure| match failure {
                Failure::Raised(error) => self.error(py, error),
                Failure::Type => {
                    let name = object.get_type().name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
                    let shown = object.repr().map_or_else(|_| String::new(), |text| text.to_string());
                    let shown: String = shown.chars().take(100).collect();
                    let text = format!("{}.\nValue: {shown}", mismatch(&name, ty));
                    KernelError::new(Fault::Input, "ValueError", text)
                }
            })
        })
    }
}

fn mismatch(found: &str, ty: Type) -> String {
    format!(
        "expected value of type {} for return value but instead got value of type {found}",
        ty.annotation()
    )
}

/// Makes the exception that Python raised the cause of the run's error.
pub(crate) fn with_cause(py: Python<'_>, error: PyErr, raised: Option<Raised>) -> PyErr {
    let cause = raised.and_then(|raised| raised.lock().unwrap_or_else(PoisonError::into_inner).take());
    if cause.is_some() {
        error.set_cause(py, cause);
    }
    error
}
