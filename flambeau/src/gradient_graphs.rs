//! Recorded calls that run differentiated graphs: the plans of an entry, and how a call of one becomes a node of history.
//!
//! A plan belongs to the metadata of arguments and to the parameters that require gradients. Its forward graph runs
//! optimized and without a tape; one node of history holds the backward graph. An entry whose graph cannot be
//! differentiated (effects, branches that need gradients, operators without formulas) runs on the tape, operator by
//! operator. Results that are views of arguments get their history from the layouts, as on the tape.

use crate::engine::Engine;
use crate::error::Error;
use crate::gradients::Library;
use crate::session::Session;
use flambeau_exec::bytecode::Code;
use flambeau_exec::tape::{self, ArgSources, GraphDerivative, ReadsHistory, RecordedCall};
use flambeau_exec::{ExecError, Host};
use flambeau_executor::CompleteArgumentSpec;
use flambeau_ir::attr::names;
use flambeau_ir::types::TensorType;
use flambeau_ir::value::Object;
use flambeau_ir::{
    At, CompilationUnit, Effects, Fault, Graph, IValue, NodeId, OpId, Prim, Symbol, Type, ValueId,
};
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

/// Answers questions about metadata that a plan assumes, writes out the loops whose numbers of iterations these determine,
/// and makes the writes functional that remain.
const SPECIALIZE: &str = "fix{4}(peephole,constant_propagation),loop_unrolling{constant},lower_simple_tuples,\
                          remove_mutation,fix{2}(peephole,constant_propagation),remove_mutation,cse,dce";

/// The plans of an entry.
#[derive(Default)]
pub(crate) struct GraphPlans {
    calls: AtomicU32,
    /// The graph of the entry, or the reason why none of its calls can run a differentiated graph.
    prepared: OnceLock<Result<Arc<Prepared>, String>>,
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

/// The assumptions of a plan: the metadata of the arguments, and which attributes require gradients.
#[derive(PartialEq, Eq)]
struct Key {
    spec: CompleteArgumentSpec,
    attributes: Vec<bool>,
}

/// A differentiated graph, compiled.
pub(crate) struct Plan {
    forward: Arc<Code>,
    backward: Arc<Code>,
    gradient: Counts,
    /// Per argument, the sources that its tensors are.
    args: Vec<ArgSources>,
    /// Positions of differentiable results that this plan does not compute gradients of: they are arguments, or views
    /// of arguments, whose gradients follow from layouts.
    shared: Vec<Vec<usize>>,
    /// Whether the forward graph draws random numbers.
    draws: bool,
}

/// The end of a call with a plan.
enum Ran {
    Returned(IValue),
    /// The results at these positions are constants, arguments or views of arguments, other than the plan assumes.
    Shares(Vec<Vec<usize>>),
    /// The reason why calls of this kind are recorded operator by operator.
    Refused(&'static str),
}

/// The order of the forward graph's outputs: results, whether conditional outputs depend on a source, sources, captures.
struct Counts {
    outputs: Vec<Vec<usize>>,
    conditional: Vec<bool>,
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
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(_) => return Ok(None),
        };
        let Some(mut plan) = self.plan(engine, prepared, args)? else { return Ok(None) };
        // The second plan knows which results share memory with arguments: as long as the metadata are the same, the
        // same results do.
        for _ in 0..2 {
            let known = match plan.run(engine, graph, args, host)? {
                Ran::Returned(value) => return Ok(Some(value)),
                Ran::Shares(shared) => {
                    let Some(key) = prepared.key(engine, args) else { return Ok(None) };
                    Plan::new(engine, prepared, args, &key.attributes, shared)?.map(Arc::new)
                }
                Ran::Refused(reason) => Err(reason.to_owned()),
            };
            self.replace(&plan, &known);
            let Ok(next) = known else { return Ok(None) };
            plan = next;
        }
        let reason = "which results share memory depends on values of tensors";
        self.replace(&plan, &Err(reason.to_owned()));
        Ok(None)
    }

    fn replace(&self, plan: &Arc<Plan>, by: &Known) {
        for (_, known) in lock(&self.plans).iter_mut() {
            if known.as_ref().is_ok_and(|known| Arc::ptr_eq(known, plan)) {
                *known = by.clone();
            }
        }
    }

    /// Returns the forward and backward graphs of all plans.
    pub(crate) fn graphs(&self) -> Vec<(Arc<Graph>, Arc<Graph>)> {
        let plans = lock(&self.plans);
        let plans = plans.iter().filter_map(|(_, plan)| plan.as_ref().ok());
        plans.map(|plan| (Arc::clone(plan.forward.graph()), Arc::clone(plan.backward.graph()))).collect()
    }

    /// Returns the reasons why calls were recorded operator by operator.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let whole = self.prepared.get().and_then(|prepared| prepared.as_ref().err());
        let plans = lock(&self.plans);
        whole.into_iter().chain(plans.iter().filter_map(|(_, plan)| plan.as_ref().err())).cloned().collect()
    }

    fn plan(
        &self,
        engine: &Arc<Engine>,
        prepared: &Prepared,
        args: &[IValue],
    ) -> Result<Option<Arc<Plan>>, Error> {
        let Some(key) = prepared.key(engine, args) else { return Ok(None) };
        let mut plans = lock(&self.plans);
        if let Some((_, plan)) = plans.iter().find(|(known, _)| *known == key) {
            return Ok(plan.clone().ok());
        }
        if plans.len() >= MOST_PLANS {
            return Ok(None);
        }
        let plan = Plan::new(engine, prepared, args, &key.attributes, Vec::new())?.map(Arc::new);
        plans.push((key, plan.clone()));
        Ok(plan.ok())
    }
}

/// Locks plans; a panic leaves them complete.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Prepared {
    fn new(engine: &Engine, graph: &Graph) -> Result<Prepared, String> {
        let prepared = engine.session().apply_text(graph, engine.unit(), PREPARE);
        let graph = prepared.map_err(|error| error.to_string())?;
        let history = graph.registry().column::<ReadsHistory>();
        let reads = |n: &NodeId| graph.op(*n).row().is_some_and(|row| history.get(row).is_some());
        if let Some(node) = graph.nodes_deep().find(reads) {
            return Err(
                NotDifferentiable::at(&graph, node, "depends on how its operand was recorded").to_string()
            );
        }
        let mut attributes = Vec::new();
        for node in graph.nodes(graph.root()).filter(|n| graph.is_prim(*n, Prim::GetAttr)) {
            let value = graph.result(node, 0);
            if graph.ty(value).is_tensor() {
                let path = path_of(&graph, value);
                let path =
                    path.ok_or("an attribute of an object that is not a part of the first argument")?;
                attributes.push(Attribute { value, path });
            }
        }
        Ok(Prepared { graph, attributes })
    }

    /// Returns what a plan for these arguments assumes; `None` if their metadata are not complete.
    fn key(&self, engine: &Engine, args: &[IValue]) -> Option<Key> {
        let key =
            Key { spec: CompleteArgumentSpec::of(args, true), attributes: self.requires_grad(engine, args)? };
        key.spec.is_complete().then_some(key)
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
        shared: Vec<Vec<usize>>,
    ) -> Result<Result<Plan, String>, Error> {
        let session = engine.session();
        let library = session.gradient_library()?;
        let mut graph = prepared.graph.clone();
        let inputs: Vec<ValueId> = graph.inputs().collect();
        let mut wrt = Vec::new();
        let mut sources = vec![vec![None]; args.len()];
        for (i, (value, arg)) in inputs.iter().zip(args).enumerate() {
            match arg {
                IValue::Tensor(t) if t.requires_grad() && graph.ty(*value).is_tensor() => {
                    sources[i] = vec![Some(wrt.len())];
                    wrt.push(*value);
                }
                IValue::Object(_) if i == 0 => {}
                IValue::List(list) if crate::recording::requires_grad(arg) => {
                    let items: Vec<IValue> = list.read().iter().collect();
                    match unpacked(&mut graph, *value, &items, &mut wrt) {
                        Ok(found) => sources[i] = found,
                        Err(error) => return Ok(Err(error.to_string())),
                    }
                }
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
        let graph = session.apply_text(&graph, &CompilationUnit::new(), SPECIALIZE)?;
        let mut graph = match expanded(session, &library, graph)? {
            Ok(graph) => graph,
            Err(reason) => return Ok(Err(reason)),
        };
        let wrt: Vec<ValueId> = graph.outputs().skip(results).collect();
        for i in (results..results + wrt.len()).rev() {
            let root = graph.root();
            graph.edit().remove_block_output(root, i);
        }
        let draws = graph.nodes_deep().any(|node| graph.effects(node).contains(Effects::RANDOM));
        let gradient = match autodiff::differentiate(&graph, &wrt, &shared, &*library) {
            Ok(gradient) if !gradient.outputs.is_empty() || !shared.is_empty() => gradient,
            Ok(_) => return Ok(Err("no result depends on a tensor that requires a gradient".to_owned())),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let counts = Counts {
            outputs: gradient.outputs,
            conditional: gradient.conditional,
            results: gradient.results,
            sources: wrt.len(),
        };
        Ok(Ok(Plan {
            forward: engine.compile(&Arc::new(gradient.forward))?,
            backward: engine.compile(&Arc::new(gradient.backward))?,
            gradient: counts,
            args: sources,
            shared,
            draws,
        }))
    }

    /// Runs the forward graph and records the call.
    fn run(
        self: &Arc<Self>,
        engine: &Arc<Engine>,
        graph: &Arc<Graph>,
        args: &[IValue],
        host: &mut Host,
    ) -> Result<Ran, Error> {
        let generator = self.draws.then(|| host.rng().fork());
        let values = unrecorded(host, |host| engine.run_code(&self.forward, args.to_vec(), host))?;
        let Counts { outputs, conditional, results, sources } = &self.gradient;
        let values = match &values {
            IValue::Tuple(values) => values.items(),
            _ => std::slice::from_ref(&values),
        };
        let (values, kept) = values.split_at((*results).min(values.len()));
        let flags = conditional.iter().filter(|c| **c).count();
        let (flags, kept) = kept.split_at(flags.min(kept.len()));
        let (source_values, captures) = kept.split_at((*sources).min(kept.len()));
        let source_tensors: Vec<Tensor> =
            source_values.iter().filter_map(|v| v.as_tensor().cloned()).collect();
        if source_tensors.len() != *sources {
            return Ok(Ran::Refused("a source is not a tensor"));
        }
        let mut flags = flags.iter();
        let depends = conditional.iter().map(|c| !c || flags.next().and_then(IValue::as_bool) == Some(true));
        let depends: Vec<bool> = depends.collect();
        let mut known = Memory::new(args, &source_tensors);
        let paths: Vec<&Vec<usize>> = outputs.iter().chain(&self.shared).collect();
        let mut made = Vec::with_capacity(paths.len());
        for (i, path) in paths.iter().enumerate() {
            let depends = depends.get(i).copied().unwrap_or(true);
            match Gradient::tensor_at(values, path) {
                None if depends => return Ok(Ran::Refused("a result is not where its type says")),
                found => made.push(found.filter(|_| depends)),
            }
        }
        let mut roles = Vec::with_capacity(made.len());
        for tensor in &made {
            let role = tensor.as_ref().map(|tensor| known.role(tensor));
            match role {
                Some(None) => return Ok(Ran::Refused("two results share memory")),
                role => roles.push(role.flatten()),
            }
        }
        let (own, shared) = roles.split_at(outputs.len());
        let is_own = |role: &Option<Role>| role.as_ref().is_none_or(Role::is_own);
        if !own.iter().all(is_own) || shared.iter().flatten().any(Role::is_own) {
            if let Some(generator) = generator {
                host.set_rng(generator);
            }
            if own.iter().zip(conditional).any(|(role, conditional)| *conditional && !is_own(role)) {
                return Ok(Ran::Refused(
                    "a result depends in some runs only, and shares memory with an argument",
                ));
            }
            let shared = paths.iter().zip(&roles).filter(|(_, role)| !is_own(role));
            return Ok(Ran::Shares(shared.map(|(path, _)| (*path).clone()).collect()));
        }
        for (tensor, role) in made.iter().zip(&roles) {
            if let (Some(tensor), Some(Role::View(of))) = (tensor, role) {
                tape::record_view(tensor, of);
            }
        }
        let derivative =
            Derivative { engine: Arc::clone(engine), graph: Arc::clone(graph), plan: Arc::clone(self) };
        let call = RecordedCall { args, arg_sources: self.args.clone(), captures, generator };
        tape::record_graph(Arc::new(derivative), &made[..outputs.len()], &source_tensors, call);
        Ok(Ran::Returned(flambeau_exec::one_value(values.iter().cloned())))
    }
}

/// How a result of a call gets its history.
enum Role {
    /// From the differentiated graph.
    Own,
    /// From the layout: it is a view of a tensor that existed before the call.
    View(Tensor),
    /// It has its history already, or none: it is an argument, another result, or not differentiable.
    Known,
}

impl Role {
    fn is_own(&self) -> bool {
        matches!(self, Role::Own)
    }
}

/// The tensors that results may share memory with.
struct Memory {
    before: Vec<Tensor>,
    made: Vec<Tensor>,
}

impl Memory {
    fn new(args: &[IValue], sources: &[Tensor]) -> Memory {
        let mut before = sources.to_vec();
        for arg in args.iter().filter(|arg| !matches!(arg, IValue::Object(_))) {
            arg.visit_tensors(|t| before.push(t.clone()));
        }
        Memory { before, made: Vec::new() }
    }

    /// Returns the role of the next result; `None` if it is a view of another result, whose writes would not be seen.
    fn role(&mut self, result: &Tensor) -> Option<Role> {
        let floating = result.dtype().is_floating() || result.dtype().is_complex();
        if !floating || self.before.iter().chain(&self.made).any(|t| t.ptr_eq(result)) {
            return Some(Role::Known);
        }
        let has_memory = result.numel() > 0;
        let shared = |t: &&Tensor| has_memory && t.shares_storage(result);
        if let Some(of) = self.before.iter().find(shared) {
            return Some(Role::View(of.clone()));
        }
        if self.made.iter().any(|t| shared(&t)) {
            return None;
        }
        self.made.push(result.clone());
        Some(Role::Own)
    }
}

/// Lets a graph read a list argument as a list of its elements, which are then sources if they require gradients;
/// returns the source that each element is.
fn unpacked(
    graph: &mut Graph,
    list: ValueId,
    items: &[IValue],
    wrt: &mut Vec<ValueId>,
) -> Result<ArgSources, NotDifferentiable> {
    let ty = graph.ty(list);
    let elem = ty.list_elem().unwrap_or(Type::TENSOR);
    let root = graph.root();
    let mut editor = graph.edit();
    editor.at(At::start(root));
    let types = vec![elem; items.len()];
    let node = editor.node(Prim::ListUnpack, &[list], &types);
    let values: Vec<ValueId> = editor.graph().results(node).collect();
    let made = editor.value(Prim::ListConstruct, &values, ty);
    let def = editor.graph().def(made);
    editor.replace_uses_after(def, list, made);
    let mut sources = Vec::new();
    for (item, value) in items.iter().zip(values) {
        let source = item.as_tensor().filter(|t| t.requires_grad());
        if source.is_some() && !elem.is_tensor() {
            return Err(NotDifferentiable::at(graph, node, "an argument is a list of optional tensors"));
        }
        sources.push(source.map(|_| wrt.len()));
        wrt.extend(source.map(|_| value));
    }
    Ok(sources)
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
            Ok(_) => {
                graph = session.apply_text(&graph, &none, "simplify")?;
                graph = session.apply_text(&graph, &none, SPECIALIZE)?;
            }
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

    fn again(&self, args: Vec<IValue>, host: &mut Host) -> Result<Vec<Option<Tensor>>, ExecError> {
        let value = self.engine.run_again(&self.graph, args, host).map_err(|e| of_error(&e))?;
        let values = match (&value, self.plan.gradient.results) {
            (IValue::Tuple(tuple), n) if n != 1 => tuple.items().to_vec(),
            (value, _) => vec![value.clone()],
        };
        Ok(self.plan.gradient.outputs.iter().map(|path| Gradient::tensor_at(&values, path)).collect())
    }
}

fn of_error(error: &Error) -> ExecError {
    ExecError::of(&flambeau_exec::KernelError::new(error.fault, "RuntimeError", error.message.clone()))
}

impl Session {
    /// Differentiates a graph with respect to inputs. Writes to values of the graph's own are made functional and
    /// composite operators are expanded before; forward and backward graph are simplified.
    ///
    /// # Errors
    /// `X0002` with the node that prevents it; the error of a pass.
    pub fn differentiate(&self, graph: &Graph, inputs: &[usize]) -> Result<Gradient, Error> {
        let none = CompilationUnit::new();
        let library = self.gradient_library()?;
        let refused = |what: String| Error::new(Fault::Unsupported, "X0002", what);
        let graph = expanded(self, &library, self.apply_text(graph, &none, PREPARE)?)?.map_err(refused)?;
        let all: Vec<ValueId> = graph.inputs().collect();
        let wrt = inputs.iter().map(|&i| {
            let input = all.get(i).copied();
            input.ok_or_else(|| Error::misuse(format!("the graph has {} inputs, not input {i}", all.len())))
        });
        let wrt: Vec<ValueId> = wrt.collect::<Result<_, _>>()?;
        let gradient =
            autodiff::differentiate(&graph, &wrt, &[], &*library).map_err(|e| refused(e.to_string()))?;
        Ok(Gradient {
            forward: self.apply_text(&gradient.forward, &none, SIMPLE)?,
            backward: self.apply_text(&gradient.backward, &none, SIMPLE)?,
            ..gradient
        })
    }
}

/// Simplifies a forward or backward graph.
const SIMPLE: &str = "simplify,peephole,simplify";

const HELPERS: &str = "
def sum(a: Tensor, b: Tensor) -> Tensor:
    return a + b

def fit(grad: Tensor, like: Tensor) -> Tensor:
    return grad.sum_to_size(like.size()).to(like.dtype)

def zeros_like(like: Tensor) -> Tensor:
    return torch.zeros_like(like)

def defined(grad: Optional[Tensor], like: Tensor) -> Tensor:
    return torch.zeros_like(like) if grad is None else grad

def sum_defined(a: Tensor, b: Optional[Tensor]) -> Tensor:
    return a if b is None else a + b

def sum_optional(a: Optional[Tensor], b: Optional[Tensor]) -> Optional[Tensor]:
    if a is None:
        return b
    return a if b is None else a + b

def fit_optional(grad: Optional[Tensor], like: Tensor) -> Optional[Tensor]:
    return None if grad is None else grad.sum_to_size(like.size()).to(like.dtype)

def present(grad: Optional[Tensor]) -> bool:
    return grad is not None

def either(a: bool, b: bool) -> bool:
    return a | b

def if_any(count: int, grad: Tensor) -> Optional[Tensor]:
    return grad if count > 0 else None

def next_index(i: int) -> int:
    return i + 1

def mirror(count: int, i: int) -> int:
    return count - 1 - i

def float_of(i: int) -> float:
    return float(i)

def push(list: List[Tensor], element: Tensor) -> List[Tensor]:
    list.append(element)
    return list

def element(list: List[Tensor], i: int) -> Tensor:
    return list[i]
";

impl FormulaGraphs for Library {
    fn derivative(&self, op: OpId) -> Result<OpDerivative, NotDifferentiable> {
        self.op_derivative(op)
    }

    fn helper(&self, helper: Helper) -> Result<Arc<Graph>, NotDifferentiable> {
        self.helper_graph(helper, HELPERS)
    }
}
