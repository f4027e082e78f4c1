//! The executor of one function: profiles its first calls, then runs plans specialized to what they observed.
//!
//! ```text
//! call ── spec ── a plan fits? ── yes ── run the plan ── a guard fails ── continue unoptimized, count
//!                      │ no                                    3 times: a plan without the guard
//!                      └─ run with profiling nodes ── enough runs ── specialize ── a plan for the next call
//! ```
//!
//! Calls that differ in dtypes, ranks or the presence of optionals are profiled separately ([`ArgumentKinds`]), so a
//! record only generalizes over sizes and strides. A call that fits no plan adds a run to its record, and the plan made
//! from it covers that call too: a size that changed has become a symbol. Kinds and compilations per function are
//! bounded. Beyond the bounds, and for functions that cannot be specialized, calls run the caller's plain code.
//!
//! Results never depend on the choice: profiled runs compute the same, and a plan runs only if its precondition holds.

use crate::optimizer::{Optimizer, Stage};
use crate::plans::{HasPrecondition, Plans};
use crate::record::{ProfilingRecord, RunProfile};
use crate::spec::{ArgumentKinds, ArgumentSpec};
use crate::specialize::{ProfileIndices, annotate, has_assumptions, profile_index, profile_nodes};
use flambeau_exec::{Code, ExecError, Host, Vm};
use flambeau_ir::{Graph, IValue};
use indexmap::IndexMap;
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// Settings of an executor.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of profiled runs before a plan is made.
    pub profiled_runs: u32,
    /// Maximum number of plans of a function.
    pub max_plans: usize,
    /// Maximum number of kinds of arguments that are profiled; see [`ArgumentKinds`].
    pub max_kinds: usize,
    /// Maximum number of plans that are made for one function in its lifetime.
    pub max_compilations: u32,
    /// Number of failures after which the next plan does without a guard.
    pub max_failures: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { profiled_runs: 2, max_plans: 8, max_kinds: 8, max_compilations: 32, max_failures: 3 }
    }
}

/// Code for calls that satisfy a precondition.
pub struct Plan {
    code: Arc<Code>,
    kinds: ArgumentKinds,
    grad_enabled: bool,
}

impl Plan {
    /// Returns the specialized graph. The types of its inputs are the precondition.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        self.code.graph()
    }

    /// Returns the code, which does not check its arguments against the precondition.
    #[must_use]
    pub fn code(&self) -> &Arc<Code> {
        &self.code
    }
}

impl HasPrecondition for Plan {
    fn graph(&self) -> &Graph {
        self.code.graph()
    }

    fn grad_enabled(&self) -> bool {
        self.grad_enabled
    }
}

/// How a call was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// With profiling nodes.
    Profiled,
    /// By a plan.
    Specialized,
}

/// The reason for the failure of a stage.
#[derive(Debug)]
pub enum StageFailure<E> {
    /// A pass failed.
    Pass(E),
    /// The graph that the passes returned does not compile.
    Compile {
        /// The stage.
        stage: Stage,
        /// The error.
        error: ExecError,
    },
}

impl<E: std::fmt::Display> std::fmt::Display for StageFailure<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StageFailure::Pass(e) => e.fmt(f),
            StageFailure::Compile { error, .. } => error.fmt(f),
        }
    }
}

type StageError<O> = StageFailure<<O as Optimizer>::Error>;

/// What became of a call.
pub enum CallOutcome<E> {
    /// The executor ran it.
    Ran {
        /// The result of the call.
        result: Result<IValue, ExecError>,
        /// RunMode the call was run.
        how: RunMode,
        /// The error of a stage that failed after the call.
        failure: Option<StageFailure<E>>,
    },
    /// The caller must run its own code for the function.
    Plain {
        /// The arguments of the call.
        args: Vec<IValue>,
        /// The error of a stage that failed before the call.
        failure: Option<StageFailure<E>>,
    },
}

impl<E> CallOutcome<E> {
    /// Removes and returns the failure of a stage.
    pub fn take_failure(&mut self) -> Option<StageFailure<E>> {
        match self {
            CallOutcome::Ran { failure, .. } | CallOutcome::Plain { failure, .. } => failure.take(),
        }
    }
}

/// Runs calls of one function. See the [module](self).
pub struct Executor {
    settings: Settings,
    graph: Arc<Graph>,
    state: Mutex<State>,
}

struct State {
    plans: Plans<Plan>,
    kinds: IndexMap<ArgumentKinds, KindState, FxBuildHasher>,
    profiled: Option<Arc<Profiled>>,
    compilations: u32,
    /// Whether a call is compiling. Stages run without the lock; other calls do not wait for them.
    compiling: bool,
    /// Set when a stage failed or the function cannot be specialized.
    disabled: bool,
}

/// Calls of one kind of arguments.
#[derive(Default)]
struct KindState {
    record: ProfilingRecord,
    /// Runs that ended in an error, which are not recorded.
    failed: u32,
    /// Profiling nodes whose guards failed too often.
    disabled_guards: ProfileIndices,
}

/// The function with profiling nodes.
struct Profiled {
    code: Arc<Code>,
    /// Number of profiling nodes.
    profile_nodes: usize,
}

/// The decision about a call.
enum Choice {
    Plan(Arc<Plan>),
    Profile(Arc<Profiled>, ArgumentKinds),
    /// As [`Choice::Profile`], after compiling the function with profiling nodes.
    Begin(ArgumentKinds),
    Plain,
}

/// A plan to be made.
struct CompilationRequest {
    /// The profiled graph with the observed types.
    graph: Graph,
    kinds: ArgumentKinds,
    grad_enabled: bool,
}

impl Executor {
    /// Creates an executor for a function, as it was loaded.
    #[must_use]
    pub fn new(graph: Arc<Graph>, settings: Settings) -> Executor {
        let state = State {
            plans: Plans::new(settings.max_plans),
            kinds: IndexMap::default(),
            profiled: None,
            compilations: 0,
            compiling: false,
            disabled: has_assumptions(&graph),
        };
        Executor { settings, graph, state: Mutex::new(state) }
    }

    /// Returns the current plans, the most specific ones first.
    pub fn plans(&self) -> Vec<Arc<Plan>> {
        self.state.lock().plans.iter().cloned().collect()
    }

    /// Returns the profiled graph with the types that the calls of each kind of arguments observed, in order of the first
    /// call of the kind.
    pub fn profiles(&self) -> Vec<Graph> {
        let state = self.state.lock();
        let Some(profiled) = &state.profiled else { return Vec::new() };
        let kinds = state.kinds.values().filter(|kind| kind.record.runs() > 0);
        kinds.map(|kind| annotate(profiled.code.graph(), &kind.record, &kind.disabled_guards)).collect()
    }

    /// Runs a call on a machine. Several results are returned as a tuple. After a stage failed, no further call is
    /// profiled.
    pub fn call<O: Optimizer>(
        &self,
        args: Vec<IValue>,
        machine: &mut Vm,
        host: &mut Host,
        optimizer: &O,
    ) -> CallOutcome<O::Error> {
        let grad_enabled = host.grad_enabled();
        let spec = ArgumentSpec::of(&args, grad_enabled);
        let (profiled, kinds) = match self.choose(&spec, &args, grad_enabled) {
            Choice::Plan(plan) => {
                let result = run(machine, &plan.code, args, host);
                let failure = self.replace_failing_guards(&plan, machine, optimizer).err();
                return CallOutcome::Ran { result, how: RunMode::Specialized, failure };
            }
            Choice::Plain => return CallOutcome::Plain { args, failure: None },
            Choice::Profile(profiled, kinds) => (profiled, kinds),
            Choice::Begin(kinds) => match self.profiled(machine, optimizer) {
                Ok(profiled) => (profiled, kinds),
                Err(failure) => return CallOutcome::Plain { args, failure: Some(failure) },
            },
        };
        let (result, profile) = run_profiled(machine, &profiled, args, host);
        let request = self.record(kinds, grad_enabled, profile.filter(|_| result.is_ok()));
        let failure = request.and_then(|request| self.specialize(request, machine, optimizer).err());
        CallOutcome::Ran { result, how: RunMode::Profiled, failure }
    }

    /// Decides how a call runs.
    fn choose(&self, spec: &ArgumentSpec, args: &[IValue], grad_enabled: bool) -> Choice {
        let mut state = self.state.lock();
        if let Some(plan) = state.plans.find(spec, args, grad_enabled) {
            return Choice::Plan(plan);
        }
        if state.disabled || state.compilations >= self.settings.max_compilations {
            return Choice::Plain;
        }
        let kinds = ArgumentKinds::of(args, grad_enabled);
        let admitted = match state.kinds.get(&kinds) {
            Some(kind) => kind.failed < MAX_FAILED_RUNS,
            None => state.kinds.len() < self.settings.max_kinds,
        };
        match &state.profiled {
            _ if !admitted => Choice::Plain,
            Some(profiled) => Choice::Profile(Arc::clone(profiled), kinds),
            None if state.compiling => Choice::Plain,
            None => {
                state.compiling = true;
                Choice::Begin(kinds)
            }
        }
    }

    /// Compiles the function with profiling nodes.
    fn profiled<O: Optimizer>(&self, machine: &Vm, optimizer: &O) -> Result<Arc<Profiled>, StageError<O>> {
        let profiled = compile(&self.graph, Stage::Profiled, machine, optimizer).map(|code| {
            let profile_nodes = profile_nodes(code.graph()).len();
            Arc::new(Profiled { code: Arc::new(code), profile_nodes })
        });
        let mut state = self.state.lock();
        state.compiling = false;
        match &profiled {
            Ok(profiled) => state.profiled = Some(Arc::clone(profiled)),
            Err(_) => state.disabled = true,
        }
        profiled
    }

    /// Adds a run to the record of its kind. Returns the plan to be made if there are enough runs.
    fn record(
        &self,
        kinds: ArgumentKinds,
        grad_enabled: bool,
        profile: Option<RunProfile>,
    ) -> Option<CompilationRequest> {
        let mut state = self.state.lock();
        let kind = state.kinds.entry(kinds.clone()).or_default();
        match profile {
            Some(profile) => kind.record.add(&profile),
            None => kind.failed += 1,
        }
        let enough = kind.record.runs() >= self.settings.profiled_runs.max(1);
        if enough { self.request_compilation(&mut state, kinds, grad_enabled) } else { None }
    }

    /// Prepares a plan from the record of a kind, unless another call is compiling.
    fn request_compilation(
        &self,
        state: &mut State,
        kinds: ArgumentKinds,
        grad_enabled: bool,
    ) -> Option<CompilationRequest> {
        if state.disabled || state.compiling || state.compilations >= self.settings.max_compilations {
            return None;
        }
        let (profiled, kind) = (state.profiled.as_ref()?, state.kinds.get(&kinds)?);
        let graph = annotate(profiled.code.graph(), &kind.record, &kind.disabled_guards);
        state.compilations += 1;
        state.compiling = true;
        Some(CompilationRequest { graph, kinds, grad_enabled })
    }

    /// Makes a plan.
    fn specialize<O: Optimizer>(
        &self,
        request: CompilationRequest,
        machine: &Vm,
        optimizer: &O,
    ) -> Result<(), StageError<O>> {
        let code = compile(&request.graph, Stage::Specialized, machine, optimizer);
        let mut state = self.state.lock();
        state.compiling = false;
        let code = code.inspect_err(|_| state.disabled = true)?;
        let CompilationRequest { kinds, grad_enabled, .. } = request;
        // `Plans::find` has checked the arguments of every call that runs the plan.
        let code = Arc::new(code.without_input_checks());
        state.plans.insert(Arc::new(Plan { code, kinds, grad_enabled }));
        Ok(())
    }

    /// Replaces a plan with guards that failed too often by one without them.
    fn replace_failing_guards<O: Optimizer>(
        &self,
        plan: &Arc<Plan>,
        machine: &Vm,
        optimizer: &O,
    ) -> Result<(), StageError<O>> {
        if plan.code.most_failures() < self.settings.max_failures.max(1) {
            return Ok(());
        }
        match self.without_failing_guards(plan) {
            Some(request) => self.specialize(request, machine, optimizer),
            None => Ok(()),
        }
    }

    /// Removes a plan and prepares one without the guards that failed too often.
    fn without_failing_guards(&self, plan: &Arc<Plan>) -> Option<CompilationRequest> {
        let mut state = self.state.lock();
        if state.compiling || !state.plans.iter().any(|other| Arc::ptr_eq(other, plan)) {
            return None;
        }
        let limit = self.settings.max_failures.max(1);
        let failing = plan.code.bailouts().filter(|b| b.failures >= limit);
        let failing: Vec<usize> = failing.filter_map(|b| usize::try_from(b.index?).ok()).collect();
        state.kinds.get_mut(&plan.kinds)?.disabled_guards.extend(failing);
        state.plans.remove(plan);
        self.request_compilation(&mut state, plan.kinds.clone(), plan.grad_enabled)
    }
}

/// Runs a stage and compiles its graph.
fn compile<O: Optimizer>(
    graph: &Graph,
    stage: Stage,
    machine: &Vm,
    optimizer: &O,
) -> Result<Code, StageError<O>> {
    let graph = Arc::new(optimizer.optimize(graph, stage).map_err(StageFailure::Pass)?);
    let code = Code::compile(&graph, &**machine.program().callees());
    code.map_err(|e| StageFailure::Compile { stage, error: ExecError::of(&e) })
}

/// Number of failed runs after which a kind of arguments is not profiled any more.
const MAX_FAILED_RUNS: u32 = 8;

fn run(machine: &mut Vm, code: &Arc<Code>, args: Vec<IValue>, host: &mut Host) -> Result<IValue, ExecError> {
    machine.run_bound(code, host, |bound| {
        args.into_iter().for_each(|arg| bound.push(arg));
        Ok(())
    })
}

/// Runs the function with profiling nodes. The host's own receiver of profiled values keeps receiving those of other
/// nodes.
fn run_profiled(
    machine: &mut Vm,
    profiled: &Profiled,
    args: Vec<IValue>,
    host: &mut Host,
) -> (Result<IValue, ExecError>, Option<RunProfile>) {
    let shared = Arc::new(Mutex::new((RunProfile::new(&args, profiled.profile_nodes), host.take_observer())));
    let receiver = Arc::clone(&shared);
    let own = Arc::clone(profiled.code.graph());
    host.set_observer(Some(Box::new(move |graph, node, values| {
        let mut receiver = receiver.lock();
        let (profile, other) = &mut *receiver;
        let index = if std::ptr::eq(graph, &*own) { profile_index(graph, node) } else { None };
        match (index, values) {
            (Some(index), [value, ..]) => profile.observe(index, value),
            _ => {
                if let Some(other) = other {
                    other(graph, node, values);
                }
            }
        }
    })));
    let result = run(machine, &profiled.code, args, host);
    host.set_observer(None);
    // The receiver was disabled_guards with the observer, so this is the only reference.
    let parts = Arc::into_inner(shared).map(Mutex::into_inner);
    let (profile, other) = parts.map_or((None, None), |(profile, other)| (Some(profile), other));
    host.set_observer(other);
    (result, profile)
}
