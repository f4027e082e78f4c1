//! Recorded calls that run differentiated graphs: the plans of an entry, and how a call of one becomes a node of history.
//!
//! A plan belongs to the metadata of arguments and to the parameters that require gradients. Its forward graph runs
//! optimized and without a tape; one node of history holds the backward graph. An entry whose graph cannot be
//! differentiated (effects, branches that need gradients, operators without formulas), or whose results share memory
//! with its arguments, runs on the tape, operator by operator.

use crate::engine::Engine;
use crate::error::Error;
use crate::gradients::Library;
use crate::session::Session;
use flambeau_exec::bytecode::Code;
use flambeau_exec::tape::{self, GraphDerivative, ReadsHistory};
use flambeau_exec::{ExecError, Host};
use flambeau_executor::ArgumentSpec;
use flambeau_ir::attr::names;
use flambeau_ir::types::TensorType;
use flambeau_ir::value::Object;
use flambeau_ir::{CompilationUnit, Graph, IValue, OpId, Prim, Symbol, Type, ValueId};
use flambeau_rewrite::autodiff::{self, FormulaGraphs, Gradient, Helper, NotDifferentiable, OpDerivative};
use flambeau_tensor::Tensor;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Plans of an entry; more kinds of calls run on the tape.
const MOST_PLANS: usize = 16;

/// Rounds of expanding bodies of composite operators: their bodies may contain such operators.
const ROUNDS: usize = 4;

/// Makes writes of a function to its own values functional, and unrolls loops with constant numbers of iterations.
const PREPARE: &str = "simplify,loop_unrolling{constant},remove_mutation,simplify,remove_mutation,simplify";

/// The plans of an entry.
#[derive(Default)]
pub(crate) struct GraphPlans {
    calls: AtomicU32,
    prepared: OnceLock<Option<Arc<Prepared>>>,
    plans: Mutex<Vec<(Key, Known)>>,
}

/// A plan, or the reason why there is none.
type Known = Result<Arc<Plan>, String>;

/// The graph of an entry, with calls inlined.
struct Prepared {
    graph: Graph,
    /// Tensor attributes of the receiver that the root block reads.
    attributes: Vec<Attribute>,
}

/// A tensor attribute: the value in the graph, and the path of slots from the receiver.
struct Attribute {
    value: ValueId,
    path: Vec<Symbol>,
}

/// What a plan assumes: the metadata of the arguments, and which attributes require gradients.
#[derive(PartialEq, Eq)]
struct Key {
    spec: ArgumentSpec,
    attributes: Vec<bool>,
}

/// A differentiated graph, compiled.
pub(crate) struct Plan {
    forward: Arc<Code>,
    backward: Arc<Code>,
    gradient: Counts,
    /// Per argument, the source that it is.
    args: Vec<Option<usize>>,
}

/// The order of the forward graph's outputs: results, sources, captures.
struct Counts {
    outputs: Vec<Vec<usize>>,
    results: usize,
    sources: usize,
}

impl GraphPlans {
    /// Runs a call with a plan; `None` if it has to be recorded on the tape.
    pub(crate) fn call(
        &self,
        engine: &Arc<Engine>,
        graph: &Arc<Graph>,
        args: &[IValue],
        host: &mut Host,
    ) -> Result<Option<IValue>, Error> {
        let after = engine.session().differentiated_after();
        if after == u32::MAX || self.calls.fetch_add(1, Ordering::Relaxed) < after {
            return Ok(None);
        }
        let prepared = self.prepared.get_or_init(|| Prepared::new(engine, graph).map(Arc::new));
        let Some(prepared) = prepared else { return Ok(None) };
        let Some(plan) = self.plan(engine, prepared, args)? else { return Ok(None) };
        let Some(result) = plan.run(engine, graph, args, host)? else {
            // The results share memory with the arguments: this does not change.
            lock(&self.plans).iter_mut().for_each(|(_, known)| {
                if known.as_ref().is_ok_and(|known| Arc::ptr_eq(known, &plan)) {
                    *known = Err("a result shares memory with another value".to_owned());
                }
            });
            return Ok(None);
        };
        Ok(Some(result))
    }

    /// Returns the forward and backward graphs of all plans.
    pub(crate) fn graphs(&self) -> Vec<(Arc<Graph>, Arc<Graph>)> {
        let plans = lock(&self.plans);
        let plans = plans.iter().filter_map(|(_, plan)| plan.as_ref().ok());
        plans.map(|plan| (Arc::clone(plan.forward.graph()), Arc::clone(plan.backward.graph()))).collect()
    }

    /// Returns the reasons why calls were recorded operator by operator.
    pub(crate) fn refusals(&self) -> Vec<String> {
        lock(&self.plans).iter().filter_map(|(_, plan)| plan.as_ref().err().cloned()).collect()
    }

    fn plan(
        &self,
        engine: &Arc<Engine>,
        prepared: &Prepared,
        args: &[IValue],
    ) -> Result<Option<Arc<Plan>>, Error> {
        let Some(attributes) = prepared.requires_grad(engine, args) else { return Ok(None) };
        let key = Key { spec: ArgumentSpec::of(args, true), attributes };
        if !key.spec.is_complete() {
            return Ok(None);
        }
        let mut plans = lock(&self.plans);
        if let Some((_, plan)) = plans.iter().find(|(known, _)| *known == key) {
            return Ok(plan.clone().ok());
        }
        if plans.len() >= MOST_PLANS {
            return Ok(None);
        }
        let plan = Plan::new(engine, prepared, args, &key.attributes)?.map(Arc::new);
        plans.push((key, plan.clone()));
        Ok(plan.ok())
    }
}

/// Locks plans; a panic leaves them complete.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Prepared {
    fn new(engine: &Engine, graph: &Graph) -> Option<Prepared> {
        let graph = engine.session().apply_text(graph, engine.unit(), PREPARE).ok()?;
        let history = graph.registry().column::<ReadsHistory>();
        let reads =
            graph.nodes_deep().any(|n| graph.op(n).row().is_some_and(|row| history.get(row).is_some()));
        if reads {
            return None;
        }
        let mut attributes = Vec::new();
        for node in graph.nodes(graph.root()).filter(|n| graph.is_prim(*n, Prim::GetAttr)) {
            let value = graph.result(node, 0);
            if graph.ty(value).is_tensor() {
                attributes.push(Attribute { value, path: path_of(&graph, value)? });
            }
        }
        Some(Prepared { graph, attributes })
    }

    /// Returns which attributes require gradients; `None` if one cannot be found.
    fn requires_grad(&self, engine: &Engine, args: &[IValue]) -> Option<Vec<bool>> {
        let of = |a: &Attribute| Some(attribute(engine.unit(), args.first()?, &a.path)?.requires_grad());
        self.attributes.iter().map(of).collect()
    }
}

/// Returns the names of the attributes that lead from the first input to a value.
fn path_of(graph: &Graph, value: ValueId) -> Option<Vec<Symbol>> {
    let mut path = Vec::new();
    let mut value = value;
    while graph.is_prim(graph.def(value), Prim::GetAttr) {
        let node = graph.def(value);
        path.push(Symbol::new(graph.attr(node, names::name())?.as_str()?));
        value = graph.operand(node, 0);
    }
    path.reverse();
    (graph.inputs().next() == Some(value)).then_some(path)
}

fn attribute(unit: &CompilationUnit, receiver: &IValue, path: &[Symbol]) -> Option<Tensor> {
    let mut value = receiver.clone();
    for name in path {
        let object: &Object = value.as_object()?;
        let class = unit.class(object.class())?;
        let slot = class.attributes.iter().position(|a| a.name == *name)?;
        value = object.get(slot);
    }
    value.as_tensor().cloned()
}

impl Plan {
    /// Differentiates a graph. The inner error is the reason why that is impossible.
    fn new(
        engine: &Arc<Engine>,
        prepared: &Prepared,
        args: &[IValue],
        attributes: &[bool],
    ) -> Result<Result<Plan, String>, Error> {
        let session = engine.session();
        let library = session.gradient_library()?;
        let mut graph = prepared.graph.clone();
        let inputs: Vec<ValueId> = graph.inputs().collect();
        let mut wrt = Vec::new();
        let mut sources = vec![None; args.len()];
        for (i, (value, arg)) in inputs.iter().zip(args).enumerate() {
            match arg {
                IValue::Tensor(t) if t.requires_grad() && graph.ty(*value).is_tensor() => {
                    sources[i] = Some(wrt.len());
                    wrt.push(*value);
                }
                IValue::Object(_) if i == 0 => {}
                other if crate::recording::requires_grad(other) => {
                    return Ok(Err(format!("argument {i} is a container of tensors that require gradients")));
                }
                _ => {}
            }
        }
        let required = prepared.attributes.iter().zip(attributes).filter(|(_, required)| **required);
        wrt.extend(required.map(|(attribute, _)| attribute.value));
        specialize(&mut graph, &inputs, args);
        // Sources survive passes as outputs.
        let results = graph.outputs().len();
        wrt.iter().for_each(|v| graph.edit().add_output(*v));
        let mut graph = match expanded(session, &library, graph)? {
            Ok(graph) => graph,
            Err(reason) => return Ok(Err(reason)),
        };
        let wrt: Vec<ValueId> = graph.outputs().skip(results).collect();
        for i in (results..results + wrt.len()).rev() {
            let root = graph.root();
            graph.edit().remove_block_output(root, i);
        }
        let gradient = match autodiff::differentiate(&graph, &wrt, &*library) {
            Ok(gradient) if !gradient.outputs.is_empty() => gradient,
            Ok(_) => return Ok(Err("no result depends on a tensor that requires a gradient".to_owned())),
            Err(error) => return Ok(Err(error.to_string())),
        };
        Plan::compiled(engine, gradient, wrt.len(), sources).map(Ok)
    }

    fn compiled(
        engine: &Arc<Engine>,
        gradient: Gradient,
        sources: usize,
        args: Vec<Option<usize>>,
    ) -> Result<Plan, Error> {
        let counts = Counts { outputs: gradient.outputs, results: gradient.results, sources };
        Ok(Plan {
            forward: engine.compile(&Arc::new(gradient.forward))?,
            backward: engine.compile(&Arc::new(gradient.backward))?,
            gradient: counts,
            args,
        })
    }

    /// Runs the forward graph and records the call; `None` if a result shares memory with an argument or another result.
    fn run(
        self: &Arc<Self>,
        engine: &Arc<Engine>,
        graph: &Arc<Graph>,
        args: &[IValue],
        host: &mut Host,
    ) -> Result<Option<IValue>, Error> {
        let values = unrecorded(host, |host| engine.run_code(&self.forward, args.to_vec(), host))?;
        let IValue::Tuple(values) = values else { return Ok(None) };
        let Counts { outputs, results, sources } = &self.gradient;
        let (values, kept) = values.items().split_at(*results);
        let (source_values, captures) = kept.split_at(*sources);
        let source_tensors: Vec<Tensor> =
            source_values.iter().filter_map(|v| v.as_tensor().cloned()).collect();
        let made: Vec<Tensor> = outputs.iter().filter_map(|path| at_path(values, path)).collect();
        if source_tensors.len() != *sources
            || made.len() != outputs.len()
            || shares(&made, args, &source_tensors)
        {
            return Ok(None);
        }
        let derivative =
            Derivative { engine: Arc::clone(engine), graph: Arc::clone(graph), plan: Arc::clone(self) };
        let recorded = (args, self.args.clone());
        tape::record_graph(Arc::new(derivative), &made, &source_tensors, recorded, captures);
        Ok(Some(flambeau_exec::one_value(values.iter().cloned())))
    }
}

/// Returns the tensor at a path of positions.
fn at_path(values: &[IValue], path: &[usize]) -> Option<Tensor> {
    let (first, rest) = path.split_first()?;
    let mut value = values.get(*first)?.clone();
    for i in rest {
        value = match &value {
            IValue::Tuple(tuple) => tuple.items().get(*i)?.clone(),
            IValue::List(list) => list.read().iter().nth(*i)?,
            _ => return None,
        };
    }
    value.as_tensor().cloned()
}

/// Whether one of the results shares memory with another, with an argument or a source.
fn shares(made: &[Tensor], args: &[IValue], sources: &[Tensor]) -> bool {
    let mut others: Vec<Tensor> = sources.to_vec();
    for arg in args.iter().filter(|arg| !matches!(arg, IValue::Object(_))) {
        arg.visit_tensors(|t| others.push(t.clone()));
    }
    made.iter().enumerate().any(|(i, t)| {
        let floating = t.dtype().is_floating() || t.dtype().is_complex();
        !floating
            || others.iter().any(|other| t.shares_storage(other))
            || made[..i].iter().any(|other| t.shares_storage(other) && !t.ptr_eq(other))
    })
}

/// Runs without a tape.
fn unrecorded<R>(host: &mut Host, work: impl FnOnce(&mut Host) -> R) -> R {
    let recording = host.set_tape(None);
    let enabled = host.set_grad_enabled(false);
    let result = work(host);
    host.set_grad_enabled(enabled);
    host.set_tape(recording);
    result
}

/// Gives the inputs of a graph the dtypes and sizes of arguments.
fn specialize(graph: &mut Graph, inputs: &[ValueId], args: &[IValue]) {
    for (input, arg) in inputs.iter().zip(args) {
        if let (IValue::Tensor(t), true) = (arg, graph.ty(*input).is_tensor()) {
            let facts = TensorType { strides: None, requires_grad: None, ..TensorType::of(t) };
            graph.edit().set_type(*input, Type::tensor(facts));
        }
    }
}

/// Replaces composite operators by their bodies and simplifies. The inner error: a body needs numbers that are not
/// constant.
fn expanded(session: &Session, library: &Library, mut graph: Graph) -> Result<Result<Graph, String>, Error> {
    let none = CompilationUnit::new();
    for _ in 0..ROUNDS {
        match autodiff::expand_bodies(&mut graph, library) {
            Ok(0) => return Ok(Ok(graph)),
            Ok(_) => graph = session.apply_text(&graph, &none, "simplify,peephole,dce")?,
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    Ok(Ok(graph))
}

/// The derivative of a call.
struct Derivative {
    engine: Arc<Engine>,
    graph: Arc<Graph>,
    plan: Arc<Plan>,
}

impl GraphDerivative for Derivative {
    fn backward(
        &self,
        grads: Vec<IValue>,
        captures: Vec<IValue>,
        host: &mut Host,
    ) -> Result<Vec<IValue>, ExecError> {
        let args = grads.into_iter().chain(captures).collect();
        let found = self.engine.run_code(&self.plan.backward, args, host).map_err(|e| of_error(&e))?;
        Ok(match (found, self.plan.gradient.sources) {
            (IValue::Tuple(tuple), n) if n != 1 => tuple.items().to_vec(),
            (value, _) => vec![value],
        })
    }

    fn again(&self, args: Vec<IValue>, host: &mut Host) -> Result<Vec<Tensor>, ExecError> {
        let value = self.engine.run_again(&self.graph, args, host).map_err(|e| of_error(&e))?;
        let values = match (&value, self.plan.gradient.results) {
            (IValue::Tuple(tuple), n) if n != 1 => tuple.items().to_vec(),
            (value, _) => vec![value.clone()],
        };
        Ok(self.plan.gradient.outputs.iter().filter_map(|path| at_path(&values, path)).collect())
    }
}

fn of_error(error: &Error) -> ExecError {
    ExecError::of(&flambeau_exec::KernelError::new(error.fault, "RuntimeError", error.message.clone()))
}

const HELPERS: &str = "
def sum(a: Tensor, b: Tensor) -> Tensor:
    return a + b

def fit(grad: Tensor, like: Tensor) -> Tensor:
    return grad.sum_to_size(like.size()).to(like.dtype)

def zeros_like(like: Tensor) -> Tensor:
    return torch.zeros_like(like)

def defined(grad: Optional[Tensor], like: Tensor) -> Tensor:
    return torch.zeros_like(like) if grad is None else grad
";

impl FormulaGraphs for Library {
    fn derivative(&self, op: OpId) -> Result<OpDerivative, NotDifferentiable> {
        self.op_derivative(op)
    }

    fn helper(&self, helper: Helper) -> Result<Arc<Graph>, NotDifferentiable> {
        self.helper_graph(helper, HELPERS)
    }
}
