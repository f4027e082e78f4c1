//! The formulas of operators, compiled at their first use.
//!
//! An operator states its derivative as expressions (`flambeau_rewrite::autodiff`). This file compiles each expression
//! as a TorchScript function, which the tape of `flambeau_exec` calls.

use crate::error::Error;
use crate::program::{Entry, Program};
use crate::session::{Execution, Session};
use flambeau_exec::tape::{Derivative, Derivatives, Formula, FormulaInput, Keeping, Refusals, ViewRecord};
use flambeau_exec::{ExecError, Host, Kernel, KernelError};
use flambeau_frontend::{CompileSession, NativeResolver, SourceFile};
use flambeau_ir::{
    CompilationUnit, Effects, Fault, FunctionSchema, Graph, IValue, OpId, Registry, Source, Symbol,
};
use flambeau_rewrite::autodiff::{
    self, ArgGradient, BodyDependence, FormulaGraph, FormulaSource, GradientTable, Helper, InputFact, Named,
    NotDifferentiable, OpDerivative, concrete_value,
};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// An operator's derivative, and its formulas as text.
struct KnownDerivative {
    derivative: Arc<Derivative>,
    stated: autodiff::GradientEntry,
    refusals: Option<Arc<Refusals>>,
}

impl KnownDerivative {
    /// Returns the number of formulas; a body counts as one.
    fn len(&self) -> usize {
        match &self.stated {
            autodiff::GradientEntry::Constant | autodiff::GradientEntry::Layout => 0,
            autodiff::GradientEntry::Formulas(gradients) | autodiff::GradientEntry::View(gradients) => {
                gradients.len()
            }
            autodiff::GradientEntry::Body(_) => 1,
        }
    }

    /// Returns the source of formula `index` as a function, or `None` if there is nothing to compute.
    fn source(&self, schema: &FunctionSchema, index: usize, complex: bool) -> Option<FormulaSource> {
        match &self.stated {
            autodiff::GradientEntry::Constant | autodiff::GradientEntry::Layout => None,
            autodiff::GradientEntry::Formulas(all) | autodiff::GradientEntry::View(all) => {
                FormulaSource::of_gradient(schema, all.get(index)?, complex)
            }
            autodiff::GradientEntry::Body(body) => Some(FormulaSource::of_body(schema, body, complex)),
        }
    }

    /// Returns the inputs of formula `index`.
    fn inputs(&self, index: usize) -> &[FormulaInput] {
        match &*self.derivative {
            Derivative::Constant | Derivative::Layout => &[],
            Derivative::Formulas(all) => all.get(index).and_then(|f| f.inputs.as_deref()).unwrap_or_default(),
            Derivative::Body { inputs, .. } => inputs,
        }
    }
}

/// Operator, index of the formula, and whether it is compiled for complex numbers.
type Key = (OpId, usize, bool);

/// The derivatives of a session's operators.
pub(crate) struct FormulaLibrary {
    pub(super) session: Session,
    table: GradientTable,
    /// The functions that formulas call. They are parsed when the first formula is compiled: a call that is recorded, but not
    /// differentiated, needs none.
    helpers: OnceLock<Arc<SourceFile>>,
    known: Mutex<BTreeMap<OpId, Option<Arc<KnownDerivative>>>>,
    compiled: Mutex<BTreeMap<Key, Entry>>,
    /// Derivatives as graphs, and the helpers of differentiation.
    graphs: Mutex<BTreeMap<OpId, OpDerivative>>,
    helper_graphs: Mutex<BTreeMap<Helper, Arc<Graph>>>,
    pub(super) body_dependence: Mutex<BTreeMap<OpId, Arc<BodyDependence>>>,
    /// The same for arguments on which loops and branches of the body depend, by a text of them.
    pub(super) dependence_of_args: Mutex<HashMap<(OpId, String), Arc<BodyDependence>, FxBuildHasher>>,
    simplified: Mutex<Simplified>,
}

/// Formulas for inputs of which something is known, by the address of the general graph. The key's graph is retained, so that no
/// other graph gets its address.
type Simplified = HashMap<(usize, Vec<InputFact>), (Arc<Graph>, Arc<Graph>), FxBuildHasher>;

/// Limit of retained simplified formulas; all are released when it is reached.
const MAX_SIMPLIFIED: usize = 4096;

/// Simplifies a formula for what is known of its inputs, and states the types of its values.
const FORMULA: &str = "fix{3}(peephole,constant_propagation,dce),propagate_shapes";

impl FormulaLibrary {
    /// Creates the library of a session.
    ///
    /// # Errors
    /// `S0002` if stated derivatives are invalid.
    pub(crate) fn new(session: &Session) -> Result<FormulaLibrary, Error> {
        let table = GradientTable::from_registry(session.registry())
            .map_err(|e| Error::new(Fault::Misuse, "S0002", e.to_string()))?;
        let session = session.with_execution(Execution::Machine);
        Ok(FormulaLibrary {
            session,
            table,
            helpers: OnceLock::new(),
            known: Mutex::default(),
            compiled: Mutex::default(),
            graphs: Mutex::default(),
            helper_graphs: Mutex::default(),
            body_dependence: Mutex::default(),
            dependence_of_args: Mutex::default(),
            simplified: Mutex::default(),
        })
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        self.session.registry()
    }

    fn helpers(&self) -> &Arc<SourceFile> {
        self.helpers.get_or_init(|| {
            let source = Source::new("<gradients>", self.table.helpers());
            SourceFile::new(source, &self.session.source_limits())
        })
    }

    /// Whether an in-place operator overwrites its operand by a constant, with a history of its own.
    pub(crate) fn overwrites(&self, op: OpId) -> bool {
        self.table.overwrites(self.registry(), op)
    }

    /// Whether an in-place operator changes its operand without a history of its own.
    pub(crate) fn keeps_history(&self, op: OpId) -> bool {
        self.table.keeps_history(self.registry(), op)
    }

    fn known(&self, op: OpId) -> Option<Arc<KnownDerivative>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(op).or_insert_with(|| self.look_up(op).map(Arc::new)).clone()
    }

    fn look_up(&self, op: OpId) -> Option<KnownDerivative> {
        let schema = self.registry().schema(op);
        let stated = self.table.of(self.registry(), op)?;
        let derivative = match &stated {
            autodiff::GradientEntry::Constant => Derivative::Constant,
            autodiff::GradientEntry::Layout => Derivative::Layout,
            autodiff::GradientEntry::Formulas(gradients) | autodiff::GradientEntry::View(gradients) => {
                let formula = |gradient: &ArgGradient| {
                    let args: Option<Vec<usize>> =
                        gradient.args.iter().map(|arg| schema.arg_index(arg)).collect();
                    let source = FormulaSource::of_gradient(schema, gradient, false);
                    let inputs = source.map(|source| inputs_of(&source, schema));
                    Some(Formula { args: args?, inputs, is_piecewise: gradient.is_piecewise })
                };
                Derivative::Formulas(gradients.iter().map(formula).collect::<Option<_>>()?)
            }
            autodiff::GradientEntry::Body(body) => {
                let effects = self.registry().effects(op);
                Derivative::Body {
                    inputs: inputs_of(&FormulaSource::of_body(schema, body, false), schema),
                    draws: effects.contains(Effects::RANDOM),
                }
            }
        };
        let refusals = self.table.refusals(self.registry(), op).map(Arc::new);
        Some(KnownDerivative { derivative: Arc::new(derivative), stated, refusals })
    }

    /// Returns the compiled function of a formula.
    fn compiled(&self, key: Key, source: impl FnOnce() -> Option<FormulaSource>) -> Result<Entry, Error> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = compiled.get(&key) {
            return Ok(entry.clone());
        }
        let schema = self.registry().schema(key.0);
        let text = source().map(|source| source.text).unwrap_or_default();
        let source = Source::new(format!("<gradient of {}>", schema.full_name()).as_str(), text);
        let file = SourceFile::new(source, &self.session.source_limits());
        let compilation =
            CompileSession::new(Arc::clone(self.registry()), &NativeResolver, self.session.source_limits());
        compilation.declare_source(self.helpers())?;
        compilation.declare_source(&file)?;
        let name = Symbol::new("gradient");
        compilation.compile(name).map_err(|problem| vec![*problem])?;
        let entry = Program::of_unit(&self.session, compilation.into_unit()).entry(name.as_str())?;
        compiled.insert(key, entry.clone());
        Ok(entry)
    }

    /// Returns the derivative of an operator as graphs.
    pub(crate) fn op_derivative(&self, op: OpId) -> Result<OpDerivative, NotDifferentiable> {
        if let Some(known) = self.graphs.lock().unwrap_or_else(PoisonError::into_inner).get(&op) {
            return Ok(known.clone());
        }
        let schema = self.registry().schema(op);
        let fail =
            |e: Error| NotDifferentiable { operator: schema.full_name(), reason: e.message, node: None };
        let graph_of = |index: usize, source: FormulaSource| {
            let entry = self.compiled((op, index, false), || Some(source)).map_err(fail)?;
            self.session.apply_text(entry.graph(), entry.unit(), "simplify").map(Arc::new).map_err(fail)
        };
        let derivative = match self.table.of(self.registry(), op) {
            None | Some(autodiff::GradientEntry::Layout) => OpDerivative::Unknown,
            Some(autodiff::GradientEntry::Constant) => OpDerivative::Constant,
            Some(autodiff::GradientEntry::Body(body)) => {
                let source = FormulaSource::of_body(schema, body, false);
                let params = source.params.clone();
                let graph = Some(graph_of(0, source)?);
                OpDerivative::Body(Arc::new(FormulaGraph { args: Vec::new(), params, graph }))
            }
            Some(autodiff::GradientEntry::Formulas(all) | autodiff::GradientEntry::View(all)) => {
                let formula = |(index, gradient): (usize, &ArgGradient)| {
                    let args = gradient.args.iter().filter_map(|arg| schema.arg_index(arg)).collect();
                    let source = FormulaSource::of_gradient(schema, gradient, false);
                    let params = source.as_ref().map(|source| source.params.clone()).unwrap_or_default();
                    let graph = source.map(|source| graph_of(index, source)).transpose()?;
                    Ok(FormulaGraph { args, params, graph })
                };
                OpDerivative::Formulas(all.iter().enumerate().map(formula).collect::<Result<_, _>>()?)
            }
        };
        let mut graphs = self.graphs.lock().unwrap_or_else(PoisonError::into_inner);
        graphs.insert(op, derivative.clone());
        Ok(derivative)
    }

    /// Returns the adjoint of a view operator.
    pub(crate) fn view_adjoint(&self, op: OpId) -> Result<Option<FormulaGraph>, NotDifferentiable> {
        if !matches!(self.table.of(self.registry(), op), Some(autodiff::GradientEntry::View(_))) {
            return Ok(None);
        }
        let OpDerivative::Formulas(formulas) = self.op_derivative(op)? else { return Ok(None) };
        Ok(formulas.iter().find(|formula| formula.args == [0]).cloned())
    }

    /// Returns the graph of a helper, which `source` defines.
    pub(crate) fn helper_graph(&self, helper: Helper, source: &str) -> Result<Arc<Graph>, NotDifferentiable> {
        let mut graphs = self.helper_graphs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(graph) = graphs.get(&helper) {
            return Ok(Arc::clone(graph));
        }
        let name = match helper {
            Helper::Sum => "sum",
            Helper::Fit => "fit",
            Helper::ZerosLike => "zeros_like",
            Helper::Defined => "defined",
            Helper::SumDefined => "sum_defined",
            Helper::SumOptional => "sum_optional",
            Helper::FitOptional => "fit_optional",
            Helper::Present => "present",
            Helper::Either => "either",
            Helper::IfAny => "if_any",
            Helper::Next => "next_index",
            Helper::Mirror => "mirror",
            Helper::Float => "float_of",
            Helper::Push => "push",
            Helper::Element => "element",
            Helper::Detach => "detach",
            Helper::ElementGrad => "element_grad",
            Helper::SumElements => "sum_elements",
            Helper::DefinedElements => "defined_elements",
            Helper::Written => "written",
            Helper::Copy => "copy",
            Helper::OnesLike => "ones_like",
            Helper::Replace => "replace",
            Helper::CopyInto => "copy_into",
        };
        let fail = |e: Error| NotDifferentiable { operator: name.to_owned(), reason: e.message, node: None };
        let entry =
            self.session.compile_source(source, "<helpers>").and_then(|p| p.entry(name)).map_err(fail)?;
        let graph = self.session.apply_text(entry.graph(), entry.unit(), "simplify").map_err(fail)?;
        let graph = Arc::new(graph);
        graphs.insert(helper, Arc::clone(&graph));
        Ok(graph)
    }

    /// Returns a formula or helper for inputs of which something is known.
    pub(crate) fn simplified_graph(&self, graph: &Arc<Graph>, facts: Vec<InputFact>) -> Arc<Graph> {
        let known = || self.simplified.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (Arc::as_ptr(graph).addr(), facts);
        if let Some((_, found)) = known().get(&key) {
            return Arc::clone(found);
        }
        let assumed = InputFact::assume(graph, &key.1);
        let found = self.session.apply_text(&assumed, &CompilationUnit::new(), FORMULA);
        let found = found.map_or_else(|_| Arc::clone(graph), Arc::new);
        let mut known = known();
        if known.len() >= MAX_SIMPLIFIED {
            known.clear();
        }
        known.insert(key, (Arc::clone(graph), Arc::clone(&found)));
        found
    }

    /// Compiles the formulas of those operators that have a kernel.
    ///
    /// # Errors
    /// The errors of all formulas that do not compile.
    pub(super) fn check(&self, ops: impl IntoIterator<Item = OpId>) -> Result<(), Vec<Error>> {
        let mut problems = Vec::new();
        for op in ops {
            let runs = self.registry().facet::<Kernel>(op).is_some();
            let Some(known) = self.known(op).filter(|_| runs) else { continue };
            let schema = self.registry().schema(op);
            for index in 0..known.len() {
                let Some(source) = known.source(schema, index, false) else { continue };
                problems.extend(self.compiled((op, index, false), || Some(source)).err());
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

impl Derivatives for FormulaLibrary {
    fn of(&self, op: OpId) -> Option<Arc<Derivative>> {
        // The gradients of recorded views follow from their layouts.
        let is_view = |known: &KnownDerivative| matches!(known.stated, autodiff::GradientEntry::View(_));
        self.known(op).filter(|known| !is_view(known)).map(|known| Arc::clone(&known.derivative))
    }

    fn of_copy(&self, op: OpId) -> Option<Arc<Derivative>> {
        self.known(op).map(|known| Arc::clone(&known.derivative))
    }

    fn refusals(&self, op: OpId) -> Option<Arc<Refusals>> {
        self.known(op).and_then(|known| known.refusals.clone())
    }

    fn view_record(&self, op: OpId) -> Option<ViewRecord> {
        self.registry().facet::<ViewRecord>(op).copied()
    }

    fn may_depend_on(&self, op: OpId, arg: usize) -> bool {
        !self.dependence_of_body(op).is_constant_arg(arg)
    }

    fn is_constant_result(&self, op: OpId, result: usize) -> bool {
        self.dependence_of_body(op).is_constant_result(result)
    }

    fn keeping(&self, op: OpId, args: &[IValue], arg: usize, requires: &dyn Fn(usize) -> bool) -> Keeping {
        self.dependence_of_args(op, args).keeping(arg, requires)
    }

    fn saves_result(
        &self,
        op: OpId,
        args: &[IValue],
        result: usize,
        requires: &dyn Fn(usize) -> bool,
    ) -> bool {
        self.dependence_of_args(op, args).saves_result(result, requires)
    }

    fn apply(
        &self,
        op: OpId,
        index: usize,
        inputs: Vec<IValue>,
        host: &mut Host,
    ) -> Result<IValue, ExecError> {
        let fail = |message: String| ExecError::of(&KernelError::internal(message));
        let schema = self.registry().schema(op);
        let known =
            self.known(op).ok_or_else(|| fail(format!("no derivative of `{}`", schema.full_name())))?;
        let complex = inputs.iter().any(|v| matches!(v, IValue::Complex(_)));
        let source = || known.source(schema, index, complex);
        let entry = self.compiled((op, index, complex), source).map_err(|e| fail(e.to_string()))?;
        let of = known.inputs(index).iter().zip(inputs).map(|(input, value)| match input {
            FormulaInput::Arg(i) | FormulaInput::Copy(i) => {
                concrete_value(value, schema.args[*i].ty, complex)
            }
            _ => value,
        });
        let args: Vec<IValue> = of.collect();
        entry.call_on(&args, &[], host).map_err(|error| {
            let message = format!("the gradient of `{}`: {}", schema.full_name(), error.message);
            // Formulas raise `NotImplementedError` for unsupported cases.
            let missing = error.class.as_deref().is_some_and(|class| class.ends_with("NotImplementedError"));
            let fault = if missing { Fault::Unsupported } else { error.fault };
            ExecError::of(&KernelError::new(fault, "RuntimeError", message))
        })
    }
}

/// Converts the inputs of a formula to those of a tape.
fn inputs_of(source: &FormulaSource, schema: &FunctionSchema) -> Vec<FormulaInput> {
    let inputs = source.params.iter().map(|named| match named {
        Named::Grad(i) if schema.returns[*i].ty.list_elem().is_some() => FormulaInput::Grads(*i),
        Named::Grad(i) => FormulaInput::Grad(*i),
        Named::Arg(i) => FormulaInput::Arg(*i),
        Named::Copy(i) => FormulaInput::Copy(*i),
        Named::Like(i) => FormulaInput::Like(*i),
        Named::Result(i) => FormulaInput::Result(*i),
    });
    inputs.collect()
}
