//! Extensions of the compiler from Python: operators with kernels, shape functions and gradients in Python, and rules as text.
//!
//! The registry of a session is immutable, so each registration builds a new session of all extensions so far
//! ([`Extensions::build`]). Programs keep the session that they were compiled with. Operators are only appended, so the numbers of
//! operators of an older session denote the same operators in a newer one.
//!
//! A shape function states facts that passes rely on. The kernel's results are compared with the function after every call
//! ([`Operator::check`]), so that a wrong function is an error and not a wrong program.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use flambeau::analysis::{Dtype, ResultShapes};
use flambeau::exec::{Fault, Kernel, KernelCx, KernelError, KernelResult};
use flambeau::ir::{Doc, Effects, OpDef};
use flambeau::rewrite::autodiff::Gradients;
use flambeau::rewrite::rules::trial::{TrialLimits, try_rules};
use flambeau::tensor::{DType, Tensor};
use flambeau::{FunctionSchema, IValue, Session, Type};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::errors::misuse;
use crate::graph::PyGraph;
use crate::host::Hosted;
use crate::program::{Ungraded, empty_program, set_kernel_error, set_raised};
use crate::shape_functions::{ShapeFunction, shape_rules};
use crate::values::{Call, Failure, or_raise};

/// The dtype of the results of an operator.
#[derive(Clone, Copy)]
enum ResultDtype {
    /// That of an operand.
    SameAs(usize),
    Fixed(DType),
}

/// An operator that is defined in Python.
struct Operator {
    text: String,
    schema: FunctionSchema,
    kernel: Py<PyAny>,
    shapes: Option<Arc<ShapeFunction>>,
    dtype: Option<ResultDtype>,
    gradients: Option<Gradients>,
    has_side_effects: bool,
    doc: Option<&'static str>,
}

/// The qualified names of all operators with kernels, without those of overloads, in alphabetical order; and whether they are
/// methods of tensors.
#[pyfunction]
pub(crate) fn operators(py: Python<'_>) -> PyResult<BTreeMap<String, bool>> {
    let session = session(py)?;
    let registry = session.registry();
    let mut names = BTreeMap::new();
    for id in registry.ids().filter(|&id| registry.facet::<Kernel>(id).is_some()) {
        let schema = registry.schema(id);
        let receiver = schema.args.first().filter(|arg| arg.name.as_str() == "self");
        let is_method = receiver.is_some_and(|arg| arg.ty == Type::TENSOR);
        *names.entry(schema.name.to_string()).or_default() |= is_method;
    }
    Ok(names)
}

/// The effects of an operator whose runs all count, in their order. What it writes is stated by its schema.
const SIDE_EFFECTS: [Effects; 5] =
    [Effects::HOST, Effects::IO, Effects::READS_STATE, Effects::WRITES_STATE, Effects::RAISES];

impl Operator {
    /// Returns the definition for a registry.
    fn definition(self: &Arc<Self>) -> OpDef {
        let kernel = Arc::clone(self);
        let mut def = OpDef::new(&self.text).with(Kernel::new(move |cx| kernel.run(cx)));
        if let Some(doc) = self.doc {
            def = def.with(Doc(doc));
        }
        if let Some(shapes) = &self.shapes {
            def = def.with(ResultShapes::results(shape_rules(shapes)));
        }
        match self.dtype {
            Some(ResultDtype::SameAs(at)) => def = def.with(Dtype::same_as(at)),
            Some(ResultDtype::Fixed(dtype)) => def = def.with(Dtype::fixed(dtype)),
            None => {}
        }
        if let Some(gradients) = self.gradients {
            def = def.with(gradients);
        }
        if self.has_side_effects {
            def = def.with(SIDE_EFFECTS.into_iter().fold(Effects::PURE, |all, effect| all | effect));
        }
        def
    }

    /// Calls the kernel. Gradients are those that the operator states, so the kernel's own calls record none.
    fn run(&self, cx: &mut KernelCx<'_>) -> KernelResult {
        let args: Vec<IValue> = cx.args().to_vec();
        let results = Python::attach(|py| {
            let _ungraded = Ungraded::new();
            self.call(py, &args).map_err(|error| kernel_error(py, error))
        })?;
        results.into_iter().for_each(|value| cx.ret(value));
        Ok(())
    }

    fn call(&self, py: Python<'_>, args: &[IValue]) -> PyResult<Vec<IValue>> {
        let program = empty_program(py)?;
        let own = Call::new(py).in_own_tensors();
        let given: Vec<Bound<'_, PyAny>> =
            args.iter().map(|arg| own.result(arg, &program, 0)).collect::<PyResult<_>>()?;
        let given = PyTuple::new(py, given)?;
        let result = self.kernel.bind(py).call1(&given)?;
        self.note_writes(args);
        let results = self.results(py, &result, args)?;
        self.check(py, args, &results, &program)?;
        Ok(results)
    }

    /// Writes of NumPy and PyTorch through shared memory do not count in versions.
    fn note_writes(&self, args: &[IValue]) {
        for (param, arg) in self.schema.args.iter().zip(args) {
            let is_written = param.is_write();
            if let (true, IValue::Tensor(tensor)) = (is_written, arg) {
                tensor.storage().bump_version();
            }
        }
    }

    /// Converts the result of the kernel.
    fn results(&self, py: Python<'_>, result: &Bound<'_, PyAny>, args: &[IValue]) -> PyResult<Vec<IValue>> {
        let returns = &self.schema.returns;
        let parts: Vec<Bound<'_, PyAny>> = match returns.as_slice() {
            [] => Vec::new(),
            [_] => vec![result.clone()],
            _ => result.try_iter()?.collect::<PyResult<_>>()?,
        };
        if parts.len() != returns.len() {
            let (name, stated, found) = (self.schema.full_name(), returns.len(), parts.len());
            return Err(misuse(
                py,
                format!("the kernel of {name} returned {found} results instead of {stated}"),
            ));
        }
        let mut call = Call::new(py);
        let mut results = Vec::with_capacity(parts.len());
        for (part, stated) in parts.iter().zip(returns) {
            let value = call.value(part, stated.ty, 0).map_err(|failure| match failure {
                Failure::Raised(error) => error,
                Failure::Type => {
                    let (name, found) = (self.schema.full_name(), part.get_type());
                    misuse(
                        py,
                        format!("the kernel of {name} returned a {found}, not a value of type {}", stated.ty),
                    )
                }
            })?;
            let may_alias = stated.alias.is_some();
            results.push(if may_alias { value } else { distinct(py, value, args)? });
        }
        Ok(results)
    }

    /// Compares results with the sizes of the shape function and the stated dtype.
    fn check(&self, py: Python<'_>, args: &[IValue], results: &[IValue], program: &Hosted) -> PyResult<()> {
        let tensors = || results.iter().filter_map(IValue::as_tensor);
        let name = self.schema.full_name();
        if let Some(dtype) = self.dtype {
            let stated = match dtype {
                ResultDtype::Fixed(dtype) => Some(dtype),
                ResultDtype::SameAs(at) => args.get(at).and_then(IValue::as_tensor).map(Tensor::dtype),
            };
            let wrong = stated.and_then(|stated| Some((stated, tensors().find(|t| t.dtype() != stated)?)));
            if let Some((stated, found)) = wrong {
                let found = found.dtype();
                return Err(misuse(
                    py,
                    format!("the kernel of {name} returned a tensor of {found:?}, not of {stated:?}"),
                ));
            }
        }
        let Some(shapes) = &self.shapes else { return Ok(()) };
        let stated = shapes.of_values(py, args, program)?;
        for (i, (sizes, found)) in stated.iter().zip(tensors()).enumerate() {
            if sizes.as_slice() != found.sizes() {
                let found = found.sizes();
                return Err(misuse(
                    py,
                    format!(
                        "result {i} of the kernel of {name} has the sizes {found:?}, its shape function states {sizes:?}"
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// Returns a value that shares no memory with an argument.
fn distinct(py: Python<'_>, value: IValue, args: &[IValue]) -> PyResult<IValue> {
    let IValue::Tensor(tensor) = &value else { return Ok(value) };
    let is_shared = args.iter().filter_map(IValue::as_tensor).any(|arg| arg.shares_storage(tensor));
    if !is_shared {
        return Ok(value);
    }
    let copied = tensor.clone_data().map_err(|error| crate::errors::raise_tensor(py, error))?;
    Ok(IValue::Tensor(copied))
}

fn kernel_error(py: Python<'_>, error: PyErr) -> KernelError {
    let class = error.get_type(py).name().map_or_else(|_| "RuntimeError".to_owned(), |n| n.to_string());
    let message = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string());
    if error.is_instance_of::<PyException>(py) {
        set_kernel_error(error);
    } else {
        // `KeyboardInterrupt` and `SystemExit` end the run as themselves.
        set_raised(error);
    }
    KernelError::new(Fault::Input, class, message)
}

/// The operators and rules registered so far.
#[derive(Default)]
struct Extensions {
    operators: Vec<Arc<Operator>>,
    rules: Vec<(String, String)>,
}

impl Extensions {
    fn build(&self, rules: Option<(&str, &str)>) -> Result<Session, flambeau::Error> {
        let mut builder = Session::builder().standard().ops(self.operators.iter().map(Operator::definition));
        for (name, text) in self.rules.iter().map(|(name, text)| (name.as_str(), text.as_str())).chain(rules)
        {
            builder = builder.rules(name, text);
        }
        builder.build()
    }
}

fn extensions() -> MutexGuard<'static, Extensions> {
    static EXTENSIONS: Mutex<Extensions> =
        Mutex::new(Extensions { operators: Vec::new(), rules: Vec::new() });
    EXTENSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

static CURRENT: RwLock<Option<Arc<Session>>> = RwLock::new(None);

/// Returns the session of new programs.
pub(crate) fn session(py: Python<'_>) -> PyResult<Arc<Session>> {
    if let Some(session) = &*CURRENT.read().unwrap_or_else(PoisonError::into_inner) {
        return Ok(Arc::clone(session));
    }
    let session = Arc::new(or_raise(py, Session::standard())?);
    let mut current = CURRENT.write().unwrap_or_else(PoisonError::into_inner);
    Ok(Arc::clone(current.get_or_insert(session)))
}

/// Builds the session of the extensions so far and of those that `add` appends. They are removed again if it cannot be built.
fn extend(py: Python<'_>, add: impl FnOnce(&mut Extensions) + Send) -> PyResult<()> {
    // Shape functions may run while gradients are compiled, so the interpreter lock is not held.
    let built = py.detach(|| {
        let mut extensions = extensions();
        let before = (extensions.operators.len(), extensions.rules.len());
        add(&mut extensions);
        let built = extensions.build(None);
        if built.is_err() {
            extensions.operators.truncate(before.0);
            extensions.rules.truncate(before.1);
        }
        built.map(|session| {
            *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(session));
        })
    });
    or_raise(py, built)
}

/// Registers an operator. `dtype` is the position of the operand whose dtype the results have, or, if `dtype_is_fixed`, the
/// number of a dtype. `gradients` are the entries and functions of a `.grads` text.
#[pyfunction]
#[pyo3(signature = (schema, kernel, shapes=None, dtype=None, dtype_is_fixed=false, gradients=None, has_side_effects=false, doc=None))]
#[expect(clippy::too_many_arguments, reason = "one for each fact about an operator")]
pub(crate) fn register_operator(
    py: Python<'_>,
    schema: &str,
    kernel: Py<PyAny>,
    shapes: Option<Py<PyAny>>,
    dtype: Option<i64>,
    dtype_is_fixed: bool,
    gradients: Option<(String, String)>,
    has_side_effects: bool,
    doc: Option<String>,
) -> PyResult<()> {
    let parsed = FunctionSchema::parse(schema).map_err(|error| misuse(py, error.to_string()))?;
    let dtype = match dtype {
        None => None,
        Some(code) if dtype_is_fixed => {
            let found = DType::from_scalar_type(code);
            Some(ResultDtype::Fixed(found.ok_or_else(|| misuse(py, format!("there is no dtype {code}")))?))
        }
        Some(at) => Some(ResultDtype::SameAs(usize::try_from(at).unwrap_or(usize::MAX))),
    };
    // Facets have the lifetime of the process, and so have registrations.
    let kept = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let gradients = gradients.map(|(entries, helpers)| {
        Gradients::file(kept(format!("<gradients of {}>", parsed.full_name())), kept(entries))
            .helpers(kept(helpers))
    });
    let shapes = shapes.map(|function| Arc::new(ShapeFunction::new(function, &parsed)));
    let operator = Operator {
        text: schema.to_owned(),
        schema: parsed,
        kernel,
        shapes,
        dtype,
        gradients,
        has_side_effects,
        doc: doc.map(kept),
    };
    extend(py, move |extensions| extensions.operators.push(Arc::new(operator)))
}

/// Name, overload, arguments and number of results: see [`parse_schema`].
type SchemaParts = (String, String, Vec<(String, String, bool)>, usize);

/// Names, types and kinds of the arguments of a schema, and the number of its results: `(name, overload, [(argument, type, is
/// tensor)], results)`.
#[pyfunction]
pub(crate) fn parse_schema(py: Python<'_>, schema: &str) -> PyResult<SchemaParts> {
    let parsed = FunctionSchema::parse(schema).map_err(|error| misuse(py, error.to_string()))?;
    let is_tensor = |ty: Type| {
        let ty = ty.unwrap_optional();
        ty.list_elem().unwrap_or(ty).unwrap_optional().is_tensor()
    };
    let args = parsed.args.iter();
    let args = args.map(|arg| (arg.name.to_string(), arg.ty.annotation_str(), is_tensor(arg.ty))).collect();
    Ok((parsed.name.to_string(), parsed.overload.to_string(), args, parsed.returns.len()))
}

/// Registers the rules of a text, which later programs are optimized with.
#[pyfunction]
pub(crate) fn register_rules(py: Python<'_>, name: String, text: String) -> PyResult<()> {
    extend(py, move |extensions| extensions.rules.push((name, text)))
}

/// The rules of a text that is not registered.
#[pyclass(name = "RuleText", module = "flambeau._native", frozen)]
pub(crate) struct PyRuleText {
    session: Session,
    name: String,
    rules: Vec<String>,
}

#[pymethods]
impl PyRuleText {
    #[new]
    fn new(py: Python<'_>, name: String, text: String) -> PyResult<PyRuleText> {
        let known = or_raise(py, session(py)?.rules())?;
        let session = or_raise(py, py.detach(|| extensions().build(Some((&name, &text)))))?;
        let all = or_raise(py, session.rules())?;
        let is_new = |rule: &&String| !known.rules().iter().any(|other| other.name == **rule);
        let rules: Vec<String> =
            all.rules().iter().map(|r| &r.name).filter(is_new).map(ToString::to_string).collect();
        Ok(PyRuleText { session, name, rules })
    }

    /// The names of the rules.
    fn rules(&self) -> Vec<String> {
        self.rules.clone()
    }

    /// Applies the rules, and no others, to a graph until none matches, and removes dead nodes. `accept` is a class of rules.
    fn apply(&self, py: Python<'_>, graph: &Bound<'_, PyGraph>, accept: &str) -> PyResult<()> {
        let only = self.rules.join("|");
        let pipeline = format!("rewrite{{only={only}, accept={accept}}},dce");
        graph.get().run_in(py, &self.session, &pipeline)
    }

    /// Compares both sides of every rule on generated arguments: `(rule, number of trials, the reason of a failure or why there
    /// was not a trial)`.
    fn trials<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rules = or_raise(py, self.session.rules())?.filtered(|rule| self.rules.contains(&rule.name));
        let registry = self.session.registry();
        let trials = py.detach(|| try_rules(registry, &rules, TrialLimits::default()));
        let shown = trials.into_iter().map(|trial| {
            let failure = trial.failure.map(|failure| failure.to_string());
            (trial.rule, trial.tried, failure, trial.refused)
        });
        PyList::new(py, shown.collect::<Vec<_>>())
    }

    fn __repr__(&self) -> String {
        format!("<RuleText {}: {}>", self.name, self.rules.join(", "))
    }
}
