//! Recorded calls that run differentiated graphs: the plans of an entry, and how a call of one becomes one node of the autograd
//! graph of the tape (its *history*).
//!
//! A plan belongs to the metadata of arguments and to the parameters that require gradients. Its forward graph runs
//! optimized and without a tape; one node of history holds the backward graph. The first calls of an entry
//! (`SessionBuilder::differentiated_after`), calls of more than [`MAX_PLANS`] kinds, those that take a branch which cannot be
//! differentiated, and all calls of an entry whose graph cannot be (effects, operators without formulas) run on the tape,
//! operator by operator. Results that are views of arguments get their history from the layouts, as on the tape.

use super::memory::{Memory, Outside, Role, of_tensor, reached_once, unpacked, unpacked_entries, write_all};
use super::preparation::{
    LEFT_GRAPH, MAX_BRANCHES, Prepared, Required, SPECIALIZE, expanded, leave_branch, prints, resolved,
    specialize, unknown_attribute,
};
use crate::engine::Engine;
use crate::error::Error;
use flambeau_exec::bytecode::Code;
use flambeau_exec::tape::{self, ArgSources, GraphDerivative, RecordedCall};
use flambeau_exec::{ExecError, Host, KernelError};
use flambeau_executor::CompleteArgumentSpec;
use flambeau_ir::value::Generator;
use flambeau_ir::{At, CompilationUnit, Effects, Fault, Graph, IValue, NodeId, Type, ValueId};
use flambeau_rewrite::autodiff::{self, FormulaGraphs, Gradient, Helper, NotDifferentiable};
use flambeau_tensor::{DType, Tensor};
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Plans of an entry; more kinds of calls run on the tape.
const MAX_PLANS: usize = 16;

/// Reason: more kinds of calls than plans.
const TOO_MANY_KINDS: &str =
    "there are plans for as many other kinds of arguments (sizes, dtypes, strides) as an entry may have";

/// Reason: the arguments and attributes of a call are not described completely.
const NO_KEY: &str = "a container among the attributes, other than a list, holds tensors that require gradients, or the arguments are nested too deeply";

/// Limit of the kinds of recorded calls that are remembered.
const MAX_RECORDED_KINDS: usize = 2 * MAX_PLANS;

/// The beginning of the reason why the derivative of a derivative was recorded operator by operator.
pub(crate) const SECOND_ORDER: &str = "second derivative: ";

/// The plans of an entry.
#[derive(Default)]
pub(crate) struct GraphPlans {
    calls: AtomicU32,
    /// The reasons why kinds of calls have no plan, apart from those in `plans`.
    without_plan: Mutex<BTreeSet<&'static str>>,
    /// The graph of the entry, or the reason why none of its calls can run a differentiated graph.
    prepared: OnceLock<Result<Arc<Prepared>, String>>,
    plans: Mutex<Vec<(Key, PlanResult)>>,
    /// The arguments of calls that were recorded on the tape, oldest first, at most [`MAX_RECORDED_KINDS`]. A plan is made for
    /// arguments that are known: operators have checked their dtypes and sizes, which the parts of composite operators need not do.
    recorded: Mutex<VecDeque<CompleteArgumentSpec>>,
    /// Whether a plan may assume the values of integer arguments if no plan for all values exists: the trip counts of loops then
    /// become constants, and the loops are unrolled.
    may_assume_numbers: bool,
}

/// A plan, or the reason why there is none.
type PlanResult = Result<Arc<GradientPlan>, String>;

/// The assumptions of a plan: the metadata of the arguments, and which attributes require gradients.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    spec: CompleteArgumentSpec,
    /// The keys of dictionaries, as text.
    entries: Vec<String>,
    attributes: Vec<Required>,
    /// The values of integer and boolean arguments, by position, if the plan assumes them.
    numbers: Vec<(usize, i64)>,
}

/// A differentiated graph, compiled.
pub(crate) struct GradientPlan {
    forward: Arc<Code>,
    backward: Arc<Code>,
    gradient: OutputCounts,
    /// For each argument, the indices of the differentiable inputs (*sources*) among its tensors.
    args: Vec<ArgSources>,
    /// Positions of differentiable results that this plan does not compute gradients of: they are arguments, or views
    /// of arguments, whose gradients follow from layouts.
    shared: Vec<Vec<usize>>,
    /// Whether the forward graph draws random numbers.
    draws: bool,
    /// Whether the forward graph prints, so that no call may run twice.
    prints: bool,
    /// Forward and backward graph as one: from the arguments and the gradients of the outputs to the
    /// gradients of the differentiable inputs.
    whole: Arc<Graph>,
    /// The plans of the derivative of `whole`.
    second: GraphPlans,
    /// The tensors that a call writes when it has succeeded: their new elements are the last results of the forward graph.
    written: Vec<Outside>,
}

/// The outcome of a call with a plan.
enum Outcome {
    Returned(IValue),
    /// The forward graph raised an error.
    Raised,
    /// The plan's assumption about its results does not hold: exactly the results at these positions are constants, arguments,
    /// or views of arguments.
    Shares(Vec<Vec<usize>>),
    /// The reason why calls of this kind are recorded operator by operator.
    Refused(Cow<'static, str>),
}

/// The order of the forward graph's outputs: results, whether conditional outputs depend on a differentiable input,
/// differentiable inputs (*sources*), captures.
struct OutputCounts {
    outputs: Vec<Vec<usize>>,
    conditional: Vec<bool>,
    results: usize,
    sources: usize,
}

/// The outputs of a forward graph.
struct ForwardOutputs<'v> {
    /// The results of the function.
    values: &'v [IValue],
    /// The new elements of the tensors that the call writes.
    finals: &'v [IValue],
    /// Whether each output of the derivative depends on a differentiable input.
    depends: Vec<bool>,
    sources: &'v [IValue],
    captures: &'v [IValue],
}

impl OutputCounts {
    /// Divides the outputs of a forward graph, the last `written` results of which are new elements.
    fn split<'v>(&self, outputs: &'v [IValue], written: usize) -> ForwardOutputs<'v> {
        let (results, kept) = outputs.split_at(self.results.min(outputs.len()));
        let (values, finals) = results.split_at(results.len().saturating_sub(written));
        let flags = self.conditional.iter().filter(|c| **c).count();
        let (flags, kept) = kept.split_at(flags.min(kept.len()));
        let (sources, captures) = kept.split_at(self.sources.min(kept.len()));
        let mut flags = flags.iter();
        let depends =
            |is_conditional: &bool| !is_conditional || flags.next().and_then(IValue::as_bool) == Some(true);
        let depends = self.conditional.iter().map(depends).collect();
        ForwardOutputs { values, finals, depends, sources, captures }
    }
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
        self.run(engine, graph, args, host)
    }

    /// Runs a call with a plan, also the first one.
    fn run(
        &self,
        engine: &Arc<Engine>,
        graph: &Arc<Graph>,
        args: &[IValue],
        host: &mut Host,
    ) -> Result<Option<IValue>, Error> {
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
                Outcome::Returned(value) => return Ok(Some(value)),
                Outcome::Raised => return Ok(None),
                Outcome::Shares(shared) => {
                    let key = lock(&self.plans)
                        .iter()
                        .find(|(_, known)| is_plan(known, &plan))
                        .map(|(k, _)| k.clone());
                    let Some(key) = key else { return Ok(None) };
                    GradientPlan::new(engine, prepared, args, &key, shared)?.map(Arc::new)
                }
                Outcome::Refused(reason) => Err(reason.into_owned()),
            };
            self.replace(&plan, &known);
            let Ok(next) = known else { return Ok(None) };
            plan = next;
        }
        let reason = "which results share memory depends on values of tensors";
        self.replace(&plan, &Err(reason.to_owned()));
        Ok(None)
    }

    fn replace(&self, plan: &Arc<GradientPlan>, by: &PlanResult) {
        for (_, known) in lock(&self.plans).iter_mut() {
            if is_plan(known, plan) {
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

    /// Returns the reasons why calls were recorded operator by operator, also those of derivatives of derivatives, which
    /// begin with [`SECOND_ORDER`].
    pub(crate) fn refusals(&self) -> Vec<String> {
        let whole = self.prepared.get().and_then(|prepared| prepared.as_ref().err());
        let mut found: Vec<String> = whole.into_iter().cloned().collect();
        let plans = lock(&self.plans);
        for (key, plan) in plans.iter() {
            let is_assuming = |(other, plan): &(Key, PlanResult)| {
                plan.is_ok()
                    && !other.numbers.is_empty()
                    && Key { numbers: Vec::new(), ..other.clone() } == *key
            };
            if plans.iter().any(is_assuming) {
                continue;
            }
            match plan {
                Ok(plan) => {
                    found.extend(plan.second.refusals().iter().map(|why| format!("{SECOND_ORDER}{why}")))
                }
                Err(reason) => found.push(reason.clone()),
            }
        }
        found.extend(lock(&self.without_plan).iter().map(|reason| (*reason).to_owned()));
        found
    }

    fn plan(
        &self,
        engine: &Arc<Engine>,
        prepared: &Prepared,
        args: &[IValue],
    ) -> Result<Option<Arc<GradientPlan>>, Error> {
        let Some(key) = prepared.key(engine, args) else {
            lock(&self.without_plan).insert(NO_KEY);
            return Ok(None);
        };
        let of_numbers = |(i, arg): (usize, &IValue)| match arg {
            IValue::Int(n) => Some((i, *n)),
            IValue::Bool(b) => Some((i, i64::from(*b))),
            _ => None,
        };
        let numbers: Vec<(usize, i64)> = args.iter().enumerate().filter_map(of_numbers).collect();
        let has_numbers = self.may_assume_numbers && !numbers.is_empty();
        let assuming = has_numbers.then(|| Key { numbers, ..key.clone() });
        for key in std::iter::once(key).chain(assuming) {
            if let Some(plan) = self.plan_for(engine, prepared, args, key)? {
                return Ok(Some(plan));
            }
        }
        Ok(None)
    }

    fn plan_for(
        &self,
        engine: &Arc<Engine>,
        prepared: &Prepared,
        args: &[IValue],
        key: Key,
    ) -> Result<Option<Arc<GradientPlan>>, Error> {
        {
            let plans = lock(&self.plans);
            if let Some((_, plan)) = plans.iter().find(|(known, _)| *known == key) {
                return Ok(plan.clone().ok());
            }
            if plans.len() >= MAX_PLANS {
                lock(&self.without_plan).insert(TOO_MANY_KINDS);
                return Ok(None);
            }
        }
        let is_checked = self.may_assume_numbers || engine.session().differentiated_after() == 0;
        if !is_checked && !lock(&self.recorded).contains(&key.spec) {
            return Ok(None);
        }
        // Without the lock, so that calls of other threads run meanwhile.
        let plan = GradientPlan::new(engine, prepared, args, &key, Vec::new())?.map(Arc::new);
        let mut plans = lock(&self.plans);
        if let Some((_, of_other_thread)) = plans.iter().find(|(known, _)| *known == key) {
            return Ok(of_other_thread.clone().ok());
        }
        plans.push((key, plan.clone()));
        Ok(plan.ok())
    }

    /// Returns the kind of a call that will be recorded on the tape, if no such call has been recorded.
    pub(crate) fn unknown_kind(&self, engine: &Engine, args: &[IValue]) -> Option<CompleteArgumentSpec> {
        let has_plans = engine.session().differentiated_after() != u32::MAX;
        has_plans.then(|| spec_of(args)).filter(|spec| !lock(&self.recorded).contains(spec))
    }

    /// Notes that a call of a kind was recorded on the tape without an error.
    pub(crate) fn note_recorded(&self, kind: Option<CompleteArgumentSpec>) {
        let Some(spec) = kind else { return };
        let mut recorded = lock(&self.recorded);
        if recorded.len() >= MAX_RECORDED_KINDS {
            recorded.pop_front();
        }
        recorded.push_back(spec);
    }
}

fn is_plan(known: &PlanResult, plan: &Arc<GradientPlan>) -> bool {
    known.as_ref().is_ok_and(|known| Arc::ptr_eq(known, plan))
}

/// Locks plans; a panic leaves them complete.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Prepared {
    /// Returns the assumptions of a plan for these arguments; `None` if their metadata are not complete.
    fn key(&self, engine: &Engine, args: &[IValue]) -> Option<Key> {
        let keys = |arg: &IValue| match arg {
            IValue::Dict(dict) => dict.read().iter().map(|(key, _)| format!("{key:?}")).collect(),
            _ => Vec::new(),
        };
        let key = Key {
            spec: spec_of(args),
            entries: args.iter().flat_map(keys).collect(),
            attributes: self.requires_grad(engine, args)?,
            numbers: Vec::new(),
        };
        (!key.spec.is_truncated()).then_some(key)
    }

    /// Makes the attributes that require gradients sources: tensors, and the elements of lists.
    fn attribute_sources(
        &self,
        engine: &Engine,
        args: &[IValue],
        attributes: &[Required],
        graph: &mut Graph,
        wrt: &mut Vec<ValueId>,
    ) -> Result<(), NotDifferentiable> {
        let required = self.attributes.iter().zip(attributes);
        for (attribute, _) in required.filter(|(_, required)| required.contains(&true)) {
            match args.first().and_then(|receiver| attribute.elements(engine, graph, receiver)) {
                None => wrt.push(attribute.value),
                Some(items) => drop(unpacked(graph, attribute.value, &items, wrt)?),
            }
        }
        Ok(())
    }
}

/// Returns the metadata of arguments. The elements of lists and dictionaries are described like those of tuples.
fn spec_of(args: &[IValue]) -> CompleteArgumentSpec {
    let has_containers = args.iter().any(|arg| matches!(arg, IValue::List(_) | IValue::Dict(_)));
    let described: Cow<'_, [IValue]> = match has_containers {
        true => args.iter().map(described).collect(),
        false => args.into(),
    };
    CompleteArgumentSpec::of(&described, true)
}

/// Returns a list or dictionary of tensors as a tuple of these.
fn described(arg: &IValue) -> IValue {
    match arg {
        IValue::List(list) if list.read().iter().any(|item| item.is_tensor()) => {
            IValue::tuple(list.read().iter().collect())
        }
        IValue::Dict(dict) => IValue::tuple(dict.read().iter().map(|(_, value)| value.clone()).collect()),
        other => other.clone(),
    }
}

/// Replaces the uses of an input by a number.
fn assume_constant(graph: &mut Graph, input: ValueId, number: &IValue) {
    let root = graph.root();
    let mut editor = graph.edit();
    let value = editor.at(At::start(root)).constant(number.clone());
    editor.replace_all_uses(input, value);
}

/// For each argument, the indices of the differentiable inputs among its tensors, and these inputs.
type Sources = (Vec<ArgSources>, Vec<ValueId>);

/// Finds the differentiable inputs among the arguments, and unpacks containers that have some. The error is the reason why that is
/// impossible.
fn argument_sources(graph: &mut Graph, inputs: &[ValueId], args: &[IValue]) -> Result<Sources, String> {
    let mut wrt = Vec::new();
    let mut sources = vec![vec![None]; args.len()];
    for (i, (value, arg)) in inputs.iter().zip(args).enumerate() {
        match arg {
            IValue::Tensor(t) if t.requires_grad() && graph.ty(*value).unwrap_optional().is_tensor() => {
                // A plan assumes which optional arguments there are.
                graph.edit().set_type(*value, Type::TENSOR);
                sources[i] = vec![Some(wrt.len())];
                wrt.push(*value);
            }
            IValue::Object(_) if i == 0 => {}
            IValue::List(list) if crate::recording::requires_grad(arg) => {
                let items: Vec<IValue> = list.read().iter().collect();
                sources[i] = unpacked(graph, *value, &items, &mut wrt).map_err(|error| error.to_string())?;
            }
            IValue::Dict(dict) if crate::recording::requires_grad(arg) => {
                let entries: Vec<(IValue, IValue)> = dict.to_vec();
                sources[i] =
                    unpacked_entries(graph, *value, &entries, &mut wrt).map_err(|error| error.to_string())?;
            }
            other if crate::recording::requires_grad(other) => {
                return Err(format!("argument {i} is a container of tensors that require gradients"));
            }
            _ => {}
        }
    }
    Ok((sources, wrt))
}

impl GradientPlan {
    /// Differentiates a graph. The inner error is the reason why that is impossible.
    fn new(
        engine: &Arc<Engine>,
        prepared: &Prepared,
        args: &[IValue],
        key: &Key,
        shared: Vec<Vec<usize>>,
    ) -> Result<Result<GradientPlan, String>, Error> {
        let attributes = &key.attributes[..];
        if let Some(reason) = prepared.modified(args, attributes) {
            return Ok(Err(reason.to_owned()));
        }
        let session = engine.session();
        let library = session.gradient_library()?;
        let mut graph = prepared.graph.clone();
        let inputs: Vec<ValueId> = graph.inputs().collect();
        let (sources, mut wrt) = match argument_sources(&mut graph, &inputs, args) {
            Ok(found) => found,
            Err(reason) => return Ok(Err(reason)),
        };
        if let Err(error) = prepared.attribute_sources(engine, args, attributes, &mut graph, &mut wrt) {
            return Ok(Err(error.to_string()));
        }
        specialize(&mut graph, &inputs, args);
        key.numbers.iter().for_each(|(i, _)| assume_constant(&mut graph, inputs[*i], &args[*i]));
        // Sources survive passes as outputs.
        let results = graph.outputs().len();
        wrt.iter().for_each(|v| graph.edit().add_output(*v));
        let graph = session.apply_text(&graph, &CompilationUnit::new(), SPECIALIZE)?;
        let sources_count = wrt.len();
        let wrt = |g: &Graph| g.outputs().skip(results).take(sources_count).collect::<Vec<_>>();
        let is_outside = |g: &Graph, value: ValueId| prepared.may_write(g, value, args, attributes);
        let (mut graph, written) = match expanded(session, &library, graph, &wrt, &is_outside)? {
            Ok(expanded) => expanded,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut branches = match resolved(session, &library, &mut graph, results, sources_count)? {
            Ok(branches) => branches,
            Err(reason) => return Ok(Err(reason)),
        };
        let wrt = wrt(&graph);
        let root = graph.root();
        let added = results..results + wrt.len();
        graph.edit().retain_block_outputs(root, |i| !added.contains(&i));
        if let Some(node) = unknown_attribute(&graph) {
            let reason = "an attribute of an object that is not a part of the first argument";
            return Ok(Err(NotDifferentiable::at(&graph, node, reason).to_string()));
        }
        autodiff::unpack_results(&mut graph);
        let draws = graph.nodes_deep().any(|node| graph.effects(node).contains(Effects::RANDOM));
        let differentiated = loop {
            match autodiff::differentiate(&graph, &wrt, &shared, &*library) {
                Err(error) if branches < MAX_BRANCHES && leave_branch(&mut graph, &error) => branches += 1,
                differentiated => break differentiated,
            }
        };
        let gradient = match differentiated {
            Ok(gradient) if gradient.outputs.iter().any(|path| path[0] >= results) => {
                return Ok(Err("writes a tensor with a history to memory from outside".to_owned()));
            }
            Ok(gradient) if !gradient.outputs.is_empty() || !shared.is_empty() => gradient.specialized(),
            Ok(_) => return Ok(Err("no result depends on a tensor that requires a gradient".to_owned())),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let counts = OutputCounts {
            outputs: gradient.outputs,
            conditional: gradient.conditional,
            results: gradient.results,
            sources: wrt.len(),
        };
        let copy = library.helper(Helper::Copy).map_err(|e| Error::misuse(e.to_string()))?;
        let prints = prints(&graph);
        if prints && (counts.outputs.len() > 1 || !shared.is_empty()) {
            return Ok(Err("the function prints, and a walk may have to call it again".to_owned()));
        }
        let whole = whole(&gradient.forward, &gradient.backward, &counts, &copy);
        let whole = match whole {
            Ok(whole) => Arc::new(whole),
            Err(error) => return Ok(Err(error.to_string())),
        };
        Ok(Ok(GradientPlan {
            whole,
            second: GraphPlans { may_assume_numbers: true, ..GraphPlans::default() },
            forward: engine.compile(&Arc::new(gradient.forward))?,
            backward: engine.compile(&Arc::new(gradient.backward))?,
            gradient: counts,
            args: sources,
            shared,
            draws,
            prints,
            written,
        }))
    }

    /// Runs the forward graph and records the call. If the call must run in another way, the random state is that from
    /// before.
    fn run(
        self: &Arc<Self>,
        engine: &Arc<Engine>,
        graph: &Arc<Graph>,
        args: &[IValue],
        host: &mut Host,
    ) -> Result<Outcome, Error> {
        let before = self.draws.then(|| host.rng().fork());
        let outcome = self.run_forward(engine, graph, args, before.as_ref().map(Generator::fork), host)?;
        if let Some(before) = before.filter(|_| !matches!(outcome, Outcome::Returned(_))) {
            host.set_rng(before);
        }
        Ok(outcome)
    }

    fn run_forward(
        self: &Arc<Self>,
        engine: &Arc<Engine>,
        graph: &Arc<Graph>,
        args: &[IValue],
        generator: Option<Generator>,
        host: &mut Host,
    ) -> Result<Outcome, Error> {
        let Some(written) = self.written_tensors(engine, args) else {
            return Ok(Outcome::Refused("memory that is written is shared".into()));
        };
        let values = match unrecorded(host, |host| engine.run_code(&self.forward, args.to_vec(), host)) {
            Ok(values) => values,
            Err(error) if error.message.starts_with(LEFT_GRAPH) => {
                return Ok(Outcome::Refused(error.message.into()));
            }
            // The graph as it was loaded raises the error that names its own nodes. Nothing was written.
            Err(error) if error.fault == Fault::Input && !self.prints => return Ok(Outcome::Raised),
            Err(error) => return Err(error),
        };
        let OutputCounts { outputs, conditional, sources, .. } = &self.gradient;
        let values = match &values {
            IValue::Tuple(values) => values.items(),
            _ => std::slice::from_ref(&values),
        };
        let ForwardOutputs { values, finals, depends, sources: source_values, captures } =
            self.gradient.split(values, written.len());
        let source_tensors: Vec<Tensor> =
            source_values.iter().filter_map(|v| v.as_tensor().cloned()).collect();
        if source_tensors.len() != *sources {
            return Ok(Outcome::Refused("a source is not a tensor".into()));
        }
        let mut known = Memory::new(args, &source_tensors);
        let paths: Vec<&Vec<usize>> = outputs.iter().chain(&self.shared).collect();
        let mut made = Vec::with_capacity(paths.len());
        for (i, path) in paths.iter().enumerate() {
            let depends = depends.get(i).copied().unwrap_or(true);
            match Gradient::tensor_at(values, path) {
                None if depends => return Ok(Outcome::Refused("a result is not where its type says".into())),
                found => made.push(found.filter(|tensor| depends && has_gradients(tensor.dtype()))),
            }
        }
        // No kernel converts gradients of this dtype.
        if made.iter().flatten().any(|tensor| tensor.dtype() == DType::C32) {
            return Ok(Outcome::Refused("a result is complex with parts of half precision".into()));
        }
        let mut roles = Vec::with_capacity(made.len());
        for tensor in &made {
            match tensor.as_ref().map(|tensor| known.role(tensor)).transpose() {
                Ok(role) => roles.push(role),
                Err(reason) => return Ok(Outcome::Refused(reason.into())),
            }
        }
        let (own, shared) = roles.split_at(outputs.len());
        let is_own = |role: &Option<Role>| role.as_ref().is_none_or(Role::is_own);
        // A result that depends in some runs only may be an argument in others, which then has its own history.
        let stays = |(role, conditional): (&Option<Role>, &bool)| *conditional || is_own(role);
        if !own.iter().zip(conditional).all(stays) || shared.iter().flatten().any(Role::is_own) {
            let mut is_conditional = conditional.iter().copied().chain(std::iter::repeat(false));
            let shared = paths.iter().zip(&roles).filter(|(_, role)| {
                let is_conditional = is_conditional.next() == Some(true);
                !is_own(role) && !is_conditional
            });
            return Ok(Outcome::Shares(shared.map(|(path, _)| (*path).clone()).collect()));
        }
        let views = made.iter().zip(&roles).filter_map(|(tensor, role)| match (tensor, role) {
            (Some(tensor), Some(Role::View(of))) => Some((tensor, of)),
            _ => None,
        });
        if !views.clone().all(|(_, of)| tape::has_views_by_layout(of)) {
            return Ok(Outcome::Refused("a result is a view of a tensor whose elements share memory".into()));
        }
        views.for_each(|(view, of)| tape::record_view(view, of));
        // The elements that the backward graph reads are those from before the writes.
        let before: Vec<Tensor> =
            written.iter().map(Tensor::clone_data).collect::<Result<_, _>>().map_err(of_tensor)?;
        let is_written = |t: &Tensor| written.iter().any(|w| w.shares_storage(t));
        let captures: Vec<IValue> = captures
            .iter()
            .map(|value| match value {
                IValue::Tensor(t) if is_written(t) => t.clone_data().map(IValue::Tensor).map_err(of_tensor),
                other => Ok(other.clone()),
            })
            .collect::<Result<_, _>>()?;
        write_all(&written, finals.iter().filter_map(|v| v.as_tensor().cloned()))?;
        let of_graph = made.iter().zip(own).map(|(tensor, role)| tensor.clone().filter(|_| is_own(role)));
        let of_graph: Vec<Option<Tensor>> = of_graph.collect();
        let derivative = Derivative {
            engine: Arc::clone(engine),
            graph: Arc::clone(graph),
            plan: Arc::clone(self),
            before,
        };
        let call = RecordedCall { args, arg_sources: self.args.clone(), captures: &captures, generator };
        tape::record_graph(Arc::new(derivative), &of_graph, &source_tensors, call);
        Ok(Outcome::Returned(flambeau_exec::one_value(values.iter().cloned())))
    }

    /// Returns the tensors that a call writes; `None` if other tensors of the call share memory with one of them.
    fn written_tensors(&self, engine: &Engine, args: &[IValue]) -> Option<Vec<Tensor>> {
        if self.written.is_empty() {
            return Some(Vec::new());
        }
        let written: Vec<Tensor> =
            self.written.iter().map(|w| w.tensor(engine.unit(), args)).collect::<Option<_>>()?;
        reached_once(&written, args).then_some(written)
    }

    /// Returns the number of results of the function.
    fn own_results(&self) -> usize {
        self.gradient.results - self.written.len()
    }
}

/// Returns the forward and the backward graph as one graph, whose inputs are the arguments and the gradients of the
/// outputs, and whose outputs are the gradients of the differentiable inputs.
fn whole(
    forward: &Graph,
    backward: &Graph,
    counts: &OutputCounts,
    copy: &Graph,
) -> Result<Graph, NotDifferentiable> {
    let mut graph = forward.clone();
    let root = graph.root();
    let flags = counts.conditional.iter().filter(|c| **c).count();
    let kept: Vec<ValueId> = graph.outputs().skip(counts.results + flags + counts.sources).collect();
    let all = graph.outputs().len();
    let seeds = backward.inputs().take(counts.outputs.len()).map(|v| backward.ty(v));
    let seeds: Vec<Type> = seeds.collect();
    // The output of the call has been printed.
    let prints: Vec<NodeId> =
        graph.nodes_deep().filter(|n| graph.effects(*n).contains(Effects::IO)).collect();
    if let Some(node) = prints.iter().find(|n| graph.results(**n).any(|v| graph.use_count(v) > 0)) {
        return Err(NotDifferentiable::at(&graph, *node, "prints and returns a value"));
    }
    let mut editor = graph.edit();
    prints
        .into_iter()
        .filter(|n| editor.graph().block_count(*n) == 0)
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|n| editor.erase(n));
    let mut inputs: Vec<ValueId> = seeds.into_iter().map(|ty| editor.add_input(ty)).collect();
    inputs.extend(kept);
    editor.at(At::end(root));
    let Ok(found) = editor.inline_graph(backward, &inputs, None) else {
        let reason = "its backward graph cannot be inlined";
        return Err(NotDifferentiable::at(forward, forward.ret(root), reason));
    };
    editor.retain_block_outputs(root, |i| i >= all);
    for value in found {
        // Gradients must not share memory with each other.
        let g = editor.graph();
        let is_view = g.ty(value).is_tensor() && g.effects(g.def(value)).result_aliases();
        let copied = if is_view { editor.inline_graph(copy, &[value], None).ok() } else { None };
        let output = copied.and_then(|v| v.first().copied()).unwrap_or(value);
        editor.add_output(output);
    }
    Ok(graph)
}

/// Whether tensors of a dtype can require gradients. The dtype of a result may depend on a branch.
fn has_gradients(dtype: DType) -> bool {
    dtype.is_floating() || dtype.is_complex()
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

/// The derivative of a call.
struct Derivative {
    engine: Arc<Engine>,
    graph: Arc<Graph>,
    plan: Arc<GradientPlan>,
    /// The elements of [`GradientPlan::written`] before the call.
    before: Vec<Tensor>,
}

impl Derivative {
    /// Runs the function again on tensors that have the elements which the written tensors had before the call.
    fn replay<R>(
        &self,
        args: &[IValue],
        work: impl FnOnce(Vec<IValue>) -> Result<R, ExecError>,
    ) -> Result<R, ExecError> {
        let mut args = args.to_vec();
        for (written, before) in self.plan.written.iter().zip(&self.before) {
            // The function writes to it again, and may be called again after that.
            let before = before.clone_data().map_err(KernelError::from).map_err(|e| ExecError::of(&e))?;
            written.replace(self.engine.unit(), &mut args, before);
        }
        work(args)
    }
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

    fn recorded_backward(
        &self,
        args: &[IValue],
        grads: &[IValue],
        host: &mut Host,
    ) -> Result<Option<Vec<IValue>>, ExecError> {
        let GradientPlan { whole, second, gradient, .. } = &*self.plan;
        let found = self.replay(args, |mut args| {
            args.extend(grads.iter().cloned());
            second.run(&self.engine, whole, &args, host).map_err(|e| of_error(&e))
        })?;
        Ok(found.map(|found| match (found, gradient.sources) {
            (IValue::Tuple(tuple), n) if n != 1 => tuple.items().to_vec(),
            (value, _) => vec![value],
        }))
    }

    fn rerun_recorded(&self, args: Vec<IValue>, host: &mut Host) -> Result<Vec<Option<Tensor>>, ExecError> {
        let value = self.replay(&args, |args| {
            self.engine.replay_on_tape(&self.graph, args, host).map_err(|e| of_error(&e))
        })?;
        let values = match (&value, self.plan.own_results()) {
            (IValue::Tuple(tuple), n) if n != 1 => tuple.items().to_vec(),
            (value, _) => vec![value.clone()],
        };
        Ok(self.plan.gradient.outputs.iter().map(|path| Gradient::tensor_at(&values, path)).collect())
    }
}

fn of_error(error: &Error) -> ExecError {
    ExecError::of(&KernelError::new(error.fault, "RuntimeError", error.message.clone()))
}
