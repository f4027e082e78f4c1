//! The executor of one function: profiles its first calls, then runs plans specialized to what they observed.
//!
//! ```text
//! call ── a plan fits? ── yes ── run the plan ── a guard fails ── continue unoptimized, count
//!              │ no                                    often: a plan without the guard
//!              └─ run with profiling nodes ── enough runs ── specialize ── a plan for the next call
//! ```
//!
//! Calls with equal [`ArgumentSpec`] have arguments of the same dtypes, ranks and presence of optionals, and agree in whether
//! gradients are enabled.
//! Each spec is profiled separately, so a record only generalizes over sizes and strides. A call that fits no plan adds a run
//! to its record, and the plan made from it covers that call too: a size that changed has become a symbol. Specs and
//! compilations per function are bounded. Beyond the bounds, and for functions that cannot be specialized, the executor declines
//! calls ([`CallOutcome::Declined`]), and the caller runs its own code.
//!
//! Compilations are jobs ([`CompileJob`]). The [`StageRunner`] may defer a job to another thread; meanwhile calls run the
//! code there is. Otherwise the job runs on the calling thread, at the same calls of every run of a program.
//!
//! Results never depend on the choice: profiled runs compute the same, and a plan runs only if its precondition holds.

use crate::attributes::{AttributePath, append};
use crate::guard_failures::{Deoptimization, GuardFailures};
use crate::inline_cache::{FallbackReason, bind_expected};
use crate::job::{CompileJob, JobKind, StageFailure};
use crate::optimizer::StageRunner;
use crate::plan::{ExecutionPlan, PlanCache};
use crate::plans::Plans;
use crate::record::{ProfilingRecord, RunProfile};
use crate::saved::SavedProfile;
use crate::settings::{ExecutorSettings, MAX_FAILED_RUNS};
use crate::spec::{ArgumentSpec, CompleteArgumentSpec};
use crate::specialize::{Blocks, ProfileIndices, annotate, has_assumptions, profile_index, profile_nodes};
use flambeau_exec::vm::Arguments;
use flambeau_exec::{Code, ExecError, Host, ProfileReceiver, Vm, fits_inputs};
use flambeau_ir::{Graph, IValue, NodeId, NodeMap};
use indexmap::IndexMap;
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// How a call was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// With profiling nodes.
    Profiled,
    /// By a plan.
    Specialized,
}

/// The outcome of a call.
pub enum CallOutcome<E> {
    /// The executor ran it.
    Ran {
        /// The result of the call.
        result: Result<IValue, ExecError>,
        /// How the call was run.
        how: RunMode,
        /// The error of a stage that failed after the call.
        failure: Option<Box<StageFailure<E>>>,
    },
    /// The caller must run its own code for the function, on the arguments, which were not used.
    Declined {
        /// Whether a deferred compilation will provide code for later calls of this spec.
        pending: bool,
        /// The error of a stage that failed before the call.
        failure: Option<Box<StageFailure<E>>>,
    },
}

impl<E> CallOutcome<E> {
    /// Removes and returns the failure of a stage.
    pub fn take_failure(&mut self) -> Option<Box<StageFailure<E>>> {
        match self {
            CallOutcome::Ran { failure, .. } | CallOutcome::Declined { failure, .. } => failure.take(),
        }
    }
}

/// Runs calls of one function. See the [module](self).
pub struct Executor {
    settings: ExecutorSettings,
    graph: Arc<Graph>,
    /// Whether the function states ranges of the sizes of its arguments.
    states_ranges: bool,
    /// Changes with the plans, so that caches notice. Starts at 1; a new cache has version 0.
    version: AtomicU64,
    /// The attributes that the profiled graph, and so every plan, has as further inputs. Set before that graph.
    attributes: OnceLock<Vec<AttributePath>>,
    state: Mutex<State>,
}

struct State {
    plans: Plans<ExecutionPlan>,
    specs: IndexMap<ArgumentSpec, SpecState, FxBuildHasher>,
    profiled: Option<Arc<Profiled>>,
    /// Profiles of earlier processes whose plans are not made yet, the next one last.
    saved: Vec<SavedProfile>,
    compilations: u32,
    /// Number of plans so far.
    made: u32,
    /// Whether there is a job. Jobs run without the lock; calls do not wait for them.
    compiling: bool,
    /// Set when a stage failed or the function cannot be specialized.
    disabled: bool,
    /// Failures of plans that were replaced, oldest first.
    past: Vec<Deoptimization>,
}

/// Maximum number of failures of replaced plans that are kept.
const MAX_PAST_FAILURES: usize = 256;

/// The calls with equal specs.
#[derive(Default)]
struct SpecState {
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
    /// The index of each profiling node.
    indices: NodeMap<Option<usize>>,
    blocks: Blocks,
}

impl Profiled {
    /// Returns the graph with what the calls of one spec observed.
    fn annotated(&self, known: &SpecState) -> Graph {
        annotate(self.code.graph(), &self.blocks, &known.record, &known.disabled_guards)
    }
}

/// The decision about a call that no cache answers.
enum CallDecision {
    Plan(Arc<ExecutionPlan>),
    Profile(Arc<Profiled>, ArgumentSpec),
    /// Run the code with profiling nodes, but do not record: there are enough runs, and a plan is being made.
    RunWithoutProfile(Arc<Profiled>),
    /// Compile the function with profiling nodes.
    Begin,
    /// Decide again with the lifted attributes, which are known since the call began.
    RetryWithAttributes,
    /// Run the caller's code.
    Decline {
        /// Whether a deferred compilation will provide code for later calls.
        pending: bool,
    },
}

impl Executor {
    /// Creates an executor for a function, as it was loaded.
    #[must_use]
    pub fn new(graph: Arc<Graph>, settings: ExecutorSettings) -> Executor {
        let state = State {
            plans: Plans::new(settings.max_plans),
            specs: IndexMap::default(),
            profiled: None,
            saved: Vec::new(),
            compilations: 0,
            made: 0,
            compiling: false,
            disabled: has_assumptions(&graph),
            past: Vec::new(),
        };
        let states_ranges = graph.size_ranges().next().is_some();
        Executor {
            settings,
            graph,
            states_ranges,
            version: AtomicU64::new(1),
            attributes: OnceLock::new(),
            state: Mutex::new(state),
        }
    }

    /// Returns the function, as it was loaded.
    #[must_use]
    pub fn function(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Returns the current plans, the most specific ones first.
    pub fn plans(&self) -> Vec<Arc<ExecutionPlan>> {
        self.state.lock().plans.iter().cloned().collect()
    }

    /// Returns the profiled graph with the types that the calls of each spec observed, in order of the first
    /// call of the spec.
    pub fn profiles(&self) -> Vec<Graph> {
        let state = self.state.lock();
        let Some(profiled) = &state.profiled else { return Vec::new() };
        let known = state.specs.values().filter(|known| known.record.runs() > 0);
        known.map(|known| profiled.annotated(known)).collect()
    }

    /// Returns the guards that failed, of replaced plans and of the current ones, oldest plan first.
    pub fn deoptimizations(&self) -> Vec<Deoptimization> {
        let state = self.state.lock();
        let mut current: Vec<&Arc<ExecutionPlan>> = state.plans.iter().collect();
        current.sort_by_key(|plan| plan.number);
        let current =
            current.into_iter().flat_map(|plan| plan.failures.report(plan.number, &plan.code, None));
        state.past.iter().cloned().chain(current).collect()
    }

    /// Returns what calls observed, so that an executor of another process needs no profiled runs ([`Executor::restore`]).
    pub fn saved_profiles(&self) -> Vec<SavedProfile> {
        let state = self.state.lock();
        let Some(profiled) = &state.profiled else { return state.saved.iter().rev().cloned().collect() };
        let specs =
            state.specs.iter().filter(|(_, known)| known.record.runs() >= self.settings.profiled_runs.max(1));
        let save = |(spec, known): (&ArgumentSpec, &SpecState)| {
            SavedProfile::new(spec, &known.record, &known.disabled_guards, profiled.profile_nodes)
        };
        specs.map(save).collect()
    }

    /// Uses profiles of an earlier process. Their plans are made with the first compilation. Has no effect after the
    /// first call. Profiles beyond the bounds of the settings are ignored, and so are those of another graph.
    pub fn restore(&self, profiles: Vec<SavedProfile>) {
        let mut state = self.state.lock();
        if state.profiled.is_none() && !state.compiling {
            state.saved = profiles;
            state.saved.truncate(self.settings.max_specs);
            state.saved.reverse();
        }
    }

    /// Runs a call by the plan of the calls before, if the arguments that `bind` supplies have the same metadata.
    /// Otherwise returns `None`, and the caller binds them again, for [`Executor::call`].
    ///
    /// # Errors
    /// Returns the error of `bind`.
    #[inline]
    pub fn call_expected<O: StageRunner, E>(
        self: &Arc<Self>,
        cache: &PlanCache,
        machine: &mut Vm,
        host: &mut Host,
        optimizer: &O,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), E>,
    ) -> Result<Option<CallOutcome<O::Error>>, E> {
        let Some((spec, plan)) = cache.expected(self.version.load(Ordering::Acquire)) else {
            return Ok(None);
        };
        let Some(words) = spec.argument_words(host.grad_enabled()) else { return Ok(None) };
        let attributes = self.attributes.get().map_or(&[][..], Vec::as_slice);
        let result = match machine
            .run_bound(&plan.code, host, |bound| bind_expected(bound, words, attributes, bind))
        {
            Ok(value) => Ok(value),
            Err(FallbackReason::Run(error)) => Err(*error),
            Err(FallbackReason::Bind(error)) => return Err(*error),
            Err(FallbackReason::Arguments) => return Ok(None),
        };
        plan.count_run();
        let failure = if plan.has_new_failures() { self.examine(plan, machine, optimizer) } else { None };
        Ok(Some(CallOutcome::Ran { result, how: RunMode::Specialized, failure }))
    }

    /// Runs a call on a machine and drains the arguments. Several results are returned as a tuple. `cache` belongs to
    /// this executor and this machine. After a stage failed, no further call is profiled.
    #[inline]
    pub fn call<O: StageRunner>(
        self: &Arc<Self>,
        args: &mut Vec<IValue>,
        cache: &mut PlanCache,
        machine: &mut Vm,
        host: &mut Host,
        optimizer: &O,
    ) -> CallOutcome<O::Error> {
        // Plans have the sizes that were observed instead of the stated ranges; the function as loaded raises.
        if self.states_ranges && !fits_inputs(&self.graph, args) {
            return CallOutcome::Declined { pending: false, failure: None };
        }
        let own = args.len();
        if let Some(attributes) = self.attributes.get()
            && !append(attributes, args)
        {
            return CallOutcome::Declined { pending: false, failure: None };
        }
        match cache.find(self.version.load(Ordering::Acquire), args, host.grad_enabled()) {
            Some(plan) => self.run_plan(plan, args, machine, host, optimizer),
            None => self.call_uncached(own, args, cache, machine, host, optimizer),
        }
    }

    #[inline]
    fn run_plan<O: StageRunner>(
        self: &Arc<Self>,
        plan: &Arc<ExecutionPlan>,
        args: &mut Vec<IValue>,
        machine: &mut Vm,
        host: &mut Host,
        optimizer: &O,
    ) -> CallOutcome<O::Error> {
        plan.count_run();
        let result = run(machine, &plan.code, args, host);
        let failure = if plan.has_new_failures() { self.examine(plan, machine, optimizer) } else { None };
        CallOutcome::Ran { result, how: RunMode::Specialized, failure }
    }

    /// Runs a call that no cache answers. `own` is the number of arguments without lifted attributes.
    #[inline(never)]
    fn call_uncached<O: StageRunner>(
        self: &Arc<Self>,
        own: usize,
        args: &mut Vec<IValue>,
        cache: &mut PlanCache,
        machine: &mut Vm,
        host: &mut Host,
        optimizer: &O,
    ) -> CallOutcome<O::Error> {
        let grad_enabled = host.grad_enabled();
        let mut spec = CompleteArgumentSpec::of(args, grad_enabled);
        let (mut choice, mut version) = self.choose(own, &spec, args, grad_enabled);
        if let CallDecision::Begin | CallDecision::RetryWithAttributes = choice {
            let begun = match choice {
                CallDecision::Begin => self.submit(JobKind::Profiled, machine, optimizer),
                _ => Ok(false),
            };
            match begun {
                Ok(true) => return CallOutcome::Declined { pending: true, failure: None },
                Ok(false) => {
                    if !append(self.attributes.get().map_or(&[], Vec::as_slice), args) {
                        return CallOutcome::Declined { pending: false, failure: None };
                    }
                    spec = CompleteArgumentSpec::of(args, grad_enabled);
                    (choice, version) = self.choose(own, &spec, args, grad_enabled);
                }
                Err(failure) => return CallOutcome::Declined { pending: false, failure: Some(failure) },
            }
        }
        match choice {
            CallDecision::Plan(plan) => {
                let outcome = self.run_plan(&plan, args, machine, host, optimizer);
                cache.add_plan(version, spec, plan);
                outcome
            }
            CallDecision::Profile(profiled, spec) => {
                let (result, profile) = run_profiled(machine, &profiled, args, host);
                let work = self.record(spec, profile.filter(|_| result.is_ok()));
                let failure = work.and_then(|work| self.submit(work, machine, optimizer).err());
                CallOutcome::Ran { result, how: RunMode::Profiled, failure }
            }
            CallDecision::RunWithoutProfile(profiled) => {
                let result = run(machine, &profiled.code, args, host);
                CallOutcome::Ran { result, how: RunMode::Profiled, failure: None }
            }
            CallDecision::Begin | CallDecision::RetryWithAttributes | CallDecision::Decline { .. } => {
                args.truncate(own);
                let pending = matches!(choice, CallDecision::Decline { pending: true });
                CallOutcome::Declined { pending, failure: None }
            }
        }
    }

    /// Runs a job or lets the optimizer defer it; returns whether it was deferred.
    fn submit<O: StageRunner>(
        self: &Arc<Self>,
        work: JobKind,
        machine: &Vm,
        optimizer: &O,
    ) -> Result<bool, Box<StageFailure<O::Error>>> {
        match optimizer.defer(CompileJob::new(self, machine.program().callees(), work)) {
            None => Ok(true),
            Some(job) => job.run(optimizer).map(|()| false).map_err(Box::new),
        }
    }

    /// Decides how a call runs. Also returns the version of the plans.
    fn choose(
        &self,
        own: usize,
        spec: &CompleteArgumentSpec,
        args: &[IValue],
        grad_enabled: bool,
    ) -> (CallDecision, u64) {
        let mut state = self.state.lock();
        let version = self.version.load(Ordering::Relaxed);
        if self.attributes.get().is_some_and(|attributes| own + attributes.len() != args.len()) {
            return (CallDecision::RetryWithAttributes, version);
        }
        if let Some(plan) = state.plans.find(spec, args, grad_enabled) {
            return (CallDecision::Plan(plan), version);
        }
        (self.without_plan(&mut state, args, grad_enabled), version)
    }

    /// Decides how a call runs that fits no plan.
    fn without_plan(&self, state: &mut State, args: &[IValue], grad_enabled: bool) -> CallDecision {
        if state.disabled || state.compilations >= self.settings.max_compilations {
            return CallDecision::Decline { pending: false };
        }
        let spec = ArgumentSpec::of(args, grad_enabled);
        let known = state.specs.get(&spec);
        let admitted = match known {
            Some(known) => known.failed < MAX_FAILED_RUNS,
            None => state.specs.len() < self.settings.max_specs,
        };
        match &state.profiled {
            _ if !admitted => CallDecision::Decline { pending: false },
            Some(profiled) if state.compiling && known.is_some_and(|known| self.has_enough_runs(known)) => {
                CallDecision::RunWithoutProfile(Arc::clone(profiled))
            }
            Some(profiled) => CallDecision::Profile(Arc::clone(profiled), spec),
            None if state.compiling => CallDecision::Decline { pending: true },
            None => {
                // The bound on compilations is one on plans.
                state.compiling = true;
                CallDecision::Begin
            }
        }
    }

    fn has_enough_runs(&self, known: &SpecState) -> bool {
        known.record.runs() >= self.settings.profiled_runs.max(1)
    }

    /// Adds a run to the record of its spec. Returns the plan to be made if there are enough runs.
    fn record(&self, spec: ArgumentSpec, profile: Option<RunProfile>) -> Option<JobKind> {
        let mut state = self.state.lock();
        // Other calls may have added specs while this one ran.
        if state.specs.len() >= self.settings.max_specs && !state.specs.contains_key(&spec) {
            return None;
        }
        let known = state.specs.entry(spec.clone()).or_default();
        match profile {
            Some(profile) => known.record.add(&profile),
            None => known.failed += 1,
        }
        if self.has_enough_runs(known) { self.request_plan(&mut state, spec) } else { None }
    }

    /// Prepares a plan from the record of a spec, unless there is a job already.
    fn request_plan(&self, state: &mut State, spec: ArgumentSpec) -> Option<JobKind> {
        if !self.may_compile(state) {
            return None;
        }
        let (profiled, known) = (state.profiled.as_ref()?, state.specs.get(&spec)?);
        let graph = profiled.annotated(known);
        begin_job(state);
        Some(JobKind::Plan { graph, spec })
    }

    fn may_compile(&self, state: &State) -> bool {
        !state.disabled && !state.compiling && state.compilations < self.settings.max_compilations
    }

    /// Examines the failures of a plan's guards: replaces the plan if a guard failed too often, and specializes
    /// continuations that are entered often.
    #[cold]
    fn examine<O: StageRunner>(
        self: &Arc<Self>,
        plan: &Arc<ExecutionPlan>,
        machine: &Vm,
        optimizer: &O,
    ) -> Option<Box<StageFailure<O::Error>>> {
        plan.examined.store(plan.code.failures(), Ordering::Relaxed);
        let work = self.without_failing_guards(plan).or_else(|| self.hot_continuation(plan))?;
        self.submit(work, machine, optimizer).err()
    }

    /// Removes a plan and prepares one without the guards that failed too often.
    fn without_failing_guards(&self, plan: &Arc<ExecutionPlan>) -> Option<JobKind> {
        let limit = self.settings.max_failures.max(1);
        let failing = plan.frequent_failures(limit);
        let failing: Vec<usize> = failing.filter_map(|b| usize::try_from(b.index?).ok()).collect();
        if failing.is_empty() {
            return None;
        }
        let mut state = self.state.lock();
        if !self.may_compile(&state) || !state.plans.iter().any(|other| Arc::ptr_eq(other, plan)) {
            return None;
        }
        state.specs.get_mut(&plan.spec)?.disabled_guards.extend(failing);
        state.plans.remove(plan);
        self.version.fetch_add(1, Ordering::Release);
        let next = state.made + 1;
        let report = plan.failures.report(plan.number, &plan.code, Some(next));
        state.past.extend(report);
        let surplus = state.past.len().saturating_sub(MAX_PAST_FAILURES);
        state.past.drain(..surplus);
        self.request_plan(&mut state, plan.spec.clone())
    }

    /// Prepares the specialization of a continuation that is entered often.
    fn hot_continuation(&self, plan: &Arc<ExecutionPlan>) -> Option<JobKind> {
        let mut state = self.state.lock();
        if !self.may_compile(&state) {
            return None;
        }
        let (position, graph) = plan.failures.take_hot(&plan.code)?;
        begin_job(&mut state);
        Some(JobKind::Continuation { plan: Arc::clone(plan), position, graph })
    }

    /// Sets the code with profiling nodes, and prepares the saved profiles that fit it.
    pub(crate) fn set_profiled(&self, code: Code, attributes: Vec<AttributePath>) {
        let (nodes, blocks) = (profile_nodes(code.graph()), Blocks::of(&code));
        let (profile_nodes, counted) = (nodes.len(), blocks.len());
        let mut indices = NodeMap::for_nodes(code.graph(), None);
        nodes.into_iter().for_each(|node| indices[node] = profile_index(code.graph(), node));
        let inputs = code.graph().inputs().len();
        let mut state = self.state.lock();
        // A function is profiled at most once, so it is not set yet.
        let _ = self.attributes.set(attributes);
        state.profiled = Some(Arc::new(Profiled { code: Arc::new(code), profile_nodes, indices, blocks }));
        state.saved.retain(|saved| saved.fits(inputs, profile_nodes, counted));
    }

    /// Returns the graph of the plan of the next saved profile.
    pub(crate) fn next_saved(&self) -> Option<(Graph, ArgumentSpec)> {
        let mut state = self.state.lock();
        if state.disabled || state.compilations >= self.settings.max_compilations {
            return None;
        }
        let saved = state.saved.pop()?;
        let (spec, record, disabled_guards) = saved.into_parts();
        let known = SpecState { record, failed: 0, disabled_guards };
        let graph = state.profiled.as_ref()?.annotated(&known);
        state.specs.insert(spec.clone(), known);
        state.compilations += 1;
        Some((graph, spec))
    }

    /// Adds a plan.
    pub(crate) fn add_plan(&self, code: Code, spec: &ArgumentSpec) {
        // `Plans::find` has checked the arguments of every call that runs the plan.
        let code = Arc::new(code.without_input_checks());
        let failures = Arc::new(GuardFailures::new(code.bailouts().len(), self.settings.hot_continuation));
        code.set_bailout_handler(Arc::clone(&failures) as _);
        if let Some(deopt) = self.settings.deopt {
            deopt.apply(&code);
        }
        let mut state = self.state.lock();
        state.made += 1;
        let plan = ExecutionPlan::new(state.made, code, spec.clone(), failures);
        state.plans.insert(Arc::new(plan));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Ends the job. If it did not succeed, the function is not specialized any further.
    pub(crate) fn end_job(&self, succeeded: bool) {
        let mut state = self.state.lock();
        state.compiling = false;
        state.disabled |= !succeeded;
    }
}

fn begin_job(state: &mut State) {
    state.compilations += 1;
    state.compiling = true;
}

#[inline]
fn run(
    machine: &mut Vm,
    code: &Arc<Code>,
    args: &mut Vec<IValue>,
    host: &mut Host,
) -> Result<IValue, ExecError> {
    machine.run_bound(code, host, |bound| {
        args.drain(..).for_each(|arg| bound.push(arg));
        Ok(())
    })
}

/// The receiver of the values of a profiled run.
struct RunObserver {
    profiled: Arc<Profiled>,
    profile: RunProfile,
    /// The host's own receiver, which keeps receiving the values of other nodes.
    other: Option<Box<dyn ProfileReceiver>>,
}

impl ProfileReceiver for RunObserver {
    fn observe(&mut self, graph: &Graph, node: NodeId, values: &[IValue]) {
        let is_own = std::ptr::eq(graph, &raw const **self.profiled.code.graph());
        match (is_own.then(|| self.profiled.indices[node]).flatten(), values) {
            (Some(index), [value, ..]) => self.profile.observe(index, value),
            _ => self.other.iter_mut().for_each(|other| other.observe(graph, node, values)),
        }
    }
}

/// Runs the function with profiling nodes.
fn run_profiled(
    machine: &mut Vm,
    profiled: &Arc<Profiled>,
    args: &mut Vec<IValue>,
    host: &mut Host,
) -> (Result<IValue, ExecError>, Option<RunProfile>) {
    let observer = RunObserver {
        profiled: Arc::clone(profiled),
        profile: RunProfile::new(args, profiled.profile_nodes),
        other: host.set_observer(None),
    };
    host.set_observer(Some(Box::new(observer)));
    let before: Vec<u64> = profiled.code.counts().map(|(_, count)| count).collect();
    let result = run(machine, &profiled.code, args, host);
    let observer = host.set_observer(None);
    if !observer.as_deref().is_some_and(|receiver| (receiver as &dyn Any).is::<RunObserver>()) {
        // Code of the embedder that set another receiver keeps it, and there is no profile.
        host.set_observer(observer);
        return (result, None);
    }
    let own = observer.and_then(|receiver| (receiver as Box<dyn Any>).downcast::<RunObserver>().ok());
    let Some(RunObserver { mut profile, other, .. }) = own.map(|own| *own) else { return (result, None) };
    profile.set_blocks(profiled.blocks.runs(&before, &profiled.code));
    host.set_observer(other);
    (result, Some(profile))
}

#[cfg(test)]
mod tests;
