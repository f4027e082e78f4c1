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
use crate::plans::{Guarded, Plans};
use crate::record::{ProfilingRecord, RunProfile};
use crate::spec::{ArgumentKinds, ArgumentSpec};
use crate::specialize::{Places, annotate, has_assumptions, place, places};
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

impl Guarded for Plan {
    fn graph(&self) -> &Graph {
        self.code.graph()
    }

    fn grad_enabled(&self) -> bool {
        self.grad_enabled
    }
}

/// How a call was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With profiling nodes.
    Profiled,
    /// By a plan.
    Specialized,
}

/// What became of a call.
pub enum Called<E> {
    /// The executor ran it.
    Ran {
        /// The result of the call.
        result: Result<IValue, ExecError>,
        /// How the call was run.
        how: How,
        /// The error of a stage that failed after the call.
        failure: Option<E>,
    },
    /// The caller must run its own code for the function.
    Plain {
        /// The arguments of the call.
        args: Vec<IValue>,
        /// The error of a stage that failed before the call.
        failure: Option<E>,
    },
}

/// Runs calls of one function. See the [module](self).
pub struct Executor {
    settings: Settings,
    graph: Arc<Graph>,
    state: Mutex<State>,
}

struct State {
    plans: Plans<Plan>,
    kinds: IndexMap<ArgumentKinds, Kind, FxBuildHasher>,
    profiled: Option<Arc<Profiled>>,
    compilations: u32,
    /// Whether a call is compiling. Stages run without the lock; other calls do not wait for them.
    compiling: bool,
    /// Set when a stage failed or the function cannot be specialized.
    disabled: bool,
}

/// Calls of one kind of arguments.
#[derive(Default)]
struct Kind {
    record: ProfilingRecord,
    /// Runs that ended in an error, which are not recorded.
    failed: u32,
    /// Profiling nodes whose guards failed too often.
    dropped: Places,
}

/// The function with profiling nodes.
struct Profiled {
    code: Arc<Code>,
    places: usize,
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
struct Order {
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

    /// Returns the current plans, the most special ones first.
    pub fn plans(&self) -> Vec<Arc<Plan>> {
        self.state.lock().plans.iter().cloned().collect()
    }

    /// Returns the profiled graph with the types that the calls of each kind of arguments observed, in order of the first
    /// call of the kind.
    pub fn profiles(&self) -> Vec<Graph> {
        let state = self.state.lock();
        let Some(profiled) = &state.profiled else { return Vec::new() };
        let kinds = state.kinds.values().filter(|kind| kind.record.runs() > 0);
        kinds.map(|kind| annotate(profiled.code.graph(), &kind.record, &kind.dropped)).collect()
    }

    /// Runs a call on a machine. Several results are returned as a tuple. After a stage failed, no further call is
    /// profiled.
    pub fn call<O: Optimizer>(
        &self,
        args: Vec<IValue>,
        machine: &mut Vm,
        host: &mut Host,
        optimizer: &O,
    ) -> Called<O::Error> {
        let grad_enabled = host.grad_enabled();
        let spec = ArgumentSpec::of(&args, grad_enabled);
        let (profiled, kinds) = match self.choose(&spec, &args, grad_enabled) {
            Choice::Plan(plan) => {
                let result = run(machine, &plan.code, args, host);
                let failure = self.check_guards(&plan, machine, optimizer).err();
                return Called::Ran { result, how: How::Specialized, failure };
            }
            Choice::Plain => return Called::Plain { args, failure: None },
            Choice::Profile(profiled, kinds) => (profiled, kinds),
            Choice::Begin(kinds) => match self.profiled(machine, optimizer) {
                Ok(Some(profiled)) => (profiled, kinds),
                Ok(None) => return Called::Plain { args, failure: None },
                Err(failure) => return Called::Plain { args, failure: Some(failure) },
            },
        };
        let (result, profile) = run_profiled(machine, &profiled, args, host);
        let order = self.record(kinds, grad_enabled, profile.filter(|_| result.is_ok()));
        let failure = order.and_then(|order| self.specialize(order, machine, optimizer).err());
        Called::Ran { result, how: How::Profiled, failure }
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

    /// Compiles the function with profiling nodes; `None` if the result does not verify.
    fn profiled<O: Optimizer>(&self, machine: &Vm, optimizer: &O) -> Result<Option<Arc<Profiled>>, O::Error> {
        let graph = optimizer.optimize(&self.graph, Stage::Profiled).map(Arc::new);
        let profiled = graph.map(|graph| {
            let code = Code::compile(&graph, &**machine.program().callees());
            code.ok().map(|code| Arc::new(Profiled { code: Arc::new(code), places: places(&graph).len() }))
        });
        let mut state = self.state.lock();
        state.compiling = false;
        match &profiled {
            Ok(Some(profiled)) => state.profiled = Some(Arc::clone(profiled)),
            _ => state.disabled = true,
        }
        profiled
    }

    /// Adds a run to the record of its kind. Returns the plan to be made if there are enough runs.
    fn record(&self, kinds: ArgumentKinds, grad_enabled: bool, profile: Option<RunProfile>) -> Option<Order> {
        let mut state = self.state.lock();
        let kind = state.kinds.entry(kinds.clone()).or_default();
        match profile {
            Some(profile) => kind.record.add(&profile),
            None => kind.failed += 1,
        }
        let enough = kind.record.runs() >= self.settings.profiled_runs.max(1);
        if enough { self.order(&mut state, kinds, grad_enabled) } else { None }
    }

    /// Prepares a plan from the record of a kind, unless another call is compiling.
    fn order(&self, state: &mut State, kinds: ArgumentKinds, grad_enabled: bool) -> Option<Order> {
        if state.disabled || state.compiling || state.compilations >= self.settings.max_compilations {
            return None;
        }
        let (profiled, kind) = (state.profiled.as_ref()?, state.kinds.get(&kinds)?);
        let graph = annotate(profiled.code.graph(), &kind.record, &kind.dropped);
        state.compilations += 1;
        state.compiling = true;
        Some(Order { graph, kinds, grad_enabled })
    }

    /// Makes a plan.
    fn specialize<O: Optimizer>(&self, order: Order, machine: &Vm, optimizer: &O) -> Result<(), O::Error> {
        let graph = optimizer.optimize(&order.graph, Stage::Specialized).map(Arc::new);
        let code = graph.map(|graph| Code::compile(&graph, &**machine.program().callees()));
        let mut state = self.state.lock();
        state.compiling = false;
        match code {
            Ok(Ok(code)) => {
                let Order { kinds, grad_enabled, .. } = order;
                // A plan is found only for arguments that fit.
                let code = Arc::new(code.with_checked_inputs());
                state.plans.insert(Arc::new(Plan { code, kinds, grad_enabled }));
                Ok(())
            }
            other => {
                state.disabled = true;
                other.map(|_| ())
            }
        }
    }

    /// Replaces a plan with guards that failed too often by one without them.
    fn check_guards<O: Optimizer>(
        &self,
        plan: &Arc<Plan>,
        machine: &Vm,
        optimizer: &O,
    ) -> Result<(), O::Error> {
        if plan.code.most_failures() < self.settings.max_failures.max(1) {
            return Ok(());
        }
        match self.without_failing_guards(plan) {
            Some(order) => self.specialize(order, machine, optimizer),
            None => Ok(()),
        }
    }

    /// Removes a plan and prepares one without the guards that failed too often.
    fn without_failing_guards(&self, plan: &Arc<Plan>) -> Option<Order> {
        let mut state = self.state.lock();
        if state.compiling || !state.plans.iter().any(|other| Arc::ptr_eq(other, plan)) {
            return None;
        }
        let limit = self.settings.max_failures.max(1);
        let failing = plan.code.bailouts().filter(|b| b.failures >= limit);
        let failing: Vec<usize> = failing.filter_map(|b| usize::try_from(b.index?).ok()).collect();
        state.kinds.get_mut(&plan.kinds)?.dropped.extend(failing);
        state.plans.remove(plan);
        self.order(&mut state, plan.kinds.clone(), plan.grad_enabled)
    }
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
    let shared = Arc::new(Mutex::new((RunProfile::new(&args, profiled.places), host.take_observer())));
    let receiver = Arc::clone(&shared);
    let own = Arc::clone(profiled.code.graph());
    host.set_observer(Some(Box::new(move |graph, node, values| {
        let mut receiver = receiver.lock();
        let (profile, other) = &mut *receiver;
        let place = if std::ptr::eq(graph, &*own) { place(graph, node) } else { None };
        match (place, values) {
            (Some(place), [value, ..]) => profile.observe(place, value),
            _ => {
                if let Some(other) = other {
                    other(graph, node, values);
                }
            }
        }
    })));
    let result = run(machine, &profiled.code, args, host);
    host.set_observer(None);
    // The receiver was dropped with the observer, so this is the only reference.
    let parts = Arc::into_inner(shared).map(Mutex::into_inner);
    let (profile, other) = parts.map_or((None, None), |(profile, other)| (Some(profile), other));
    host.set_observer(other);
    (result, profile)
}
