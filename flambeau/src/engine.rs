//! Preparation of functions for execution: cached code, executors and reusable machines.
//!
//! Each loaded program has one [`Engine`]. The engine compiles a function at its first call, according to the session's
//! [`Execution`], and keeps its machines between calls: the second run on a machine does not allocate. With
//! [`Execution::Profiling`] each entry has an [`Executor`], which runs its calls unless it cannot specialize them. While
//! a background thread compiles, calls run the function as it was loaded.

use crate::background;
use crate::error::Error;
use crate::gradients::graphs::GraphPlans;
use crate::recording::requests_gradients;
use crate::session::{Execution, Session};
use flambeau_exec::vm::{Arguments, CompiledProgram, Vm};
use flambeau_exec::{Callees, Host, KernelError, TryCell, bytecode::Code, one_value, reference};
use flambeau_executor::{
    CallOutcome, CompileJob, CompileStage, Deoptimization, ExecutionPlan, Executor, PlanCache, SavedProfile,
    StageFailure, StageRunner,
};
use flambeau_ir::types::ClassEnv;
use flambeau_ir::{CompilationUnit, Graph, IValue, Symbol, Type};
use flambeau_rewrite::Checks;
use flambeau_tensor::threads;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Functions of a unit, prepared according to the session's settings.
struct Prepared {
    session: Session,
    unit: Arc<CompilationUnit>,
    /// Whether any function in the unit requests gradients.
    requests_gradients: OnceLock<bool>,
}

impl Prepared {
    fn new(session: &Session, unit: &Arc<CompilationUnit>) -> Prepared {
        Prepared { session: session.clone(), unit: Arc::clone(unit), requests_gradients: OnceLock::new() }
    }

    /// Returns whether a graph, or any function that it may call, requests gradients or makes tensors that require
    /// them.
    fn requests_gradients(&self, graph: &Graph) -> bool {
        requests_gradients(graph)
            || *self
                .requests_gradients
                .get_or_init(|| self.unit.functions().any(|f| requests_gradients(&f.graph)))
    }

    /// Returns the graph that the machine runs for a function: as loaded, or optimized if the session's settings
    /// require it.
    ///
    /// # Errors
    /// The error of a failed optimization, in a session that checks its passes. Other sessions record the failure and
    /// return the loaded graph.
    fn prepare(&self, graph: &Arc<Graph>, name: Option<Symbol>) -> Result<Arc<Graph>, Error> {
        if matches!(self.session.execution(), Execution::Reference | Execution::Machine) {
            return Ok(Arc::clone(graph));
        }
        self.session.optimized(graph, &self.unit).map(Arc::new).or_else(|error| {
            self.session.report(name, None, graph, &self.unit, &error);
            if self.session.checks() == Checks::Off { Ok(Arc::clone(graph)) } else { Err(error) }
        })
    }

    /// Returns the error of a failed stage of the executor of `graph`. A failed pass is already recorded.
    fn report_stage(&self, graph: &Graph, failure: StageFailure<Error>) -> Error {
        match failure {
            StageFailure::Pass(error) => error,
            StageFailure::Compile { stage, error } => {
                let error = Error::from(error);
                self.session.report(None, Some(stage), graph, &self.unit, &error);
                error
            }
        }
    }
}

/// Compiles functions for executors: on the calling thread, or on the session's background thread, which shares the
/// functions.
#[derive(Clone)]
struct Compiler(Arc<Prepared>);

impl std::ops::Deref for Compiler {
    type Target = Prepared;

    fn deref(&self) -> &Prepared {
        &self.0
    }
}

/// A failed stage is recorded, as a failed optimization is.
impl StageRunner for Compiler {
    type Error = Error;

    fn optimize(&self, graph: &Graph, stage: CompileStage) -> Result<Graph, Error> {
        self.session
            .staged(graph, &self.unit, stage)
            .inspect_err(|error| self.session.report(None, Some(stage), graph, &self.unit, error))
    }

    fn defer(&self, job: CompileJob) -> Option<CompileJob> {
        if !self.session.compiles_in_background() {
            return Some(job);
        }
        let compiler = self.clone();
        self.session.background().submit(Box::new(move || compiler.run_job(job)));
        None
    }
}

impl Compiler {
    /// Runs a job on the background thread. A failed stage is recorded, and so is a panic.
    fn run_job(&self, job: CompileJob) {
        let Some(graph) = job.function() else { return };
        let stage = job.stage();
        match background::contain(|| job.run(self)) {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => drop(self.report_stage(&graph, failure)),
            Err(panic) => self.session.report(None, Some(stage), &graph, &self.unit, &panic),
        }
    }
}

impl Callees for Prepared {
    fn function(&self, name: Symbol) -> Result<Option<Arc<Graph>>, KernelError> {
        let function = self.unit.function(name);
        function.map(|f| self.prepare(&f.graph, Some(name))).transpose().map_err(|e| of_callee(&e))
    }

    fn method(&self, class: Type, name: Symbol) -> Option<Symbol> {
        Callees::method(&*self.unit, class, name)
    }

    fn slot(&self, class: Type, name: Symbol) -> Option<usize> {
        Callees::slot(&*self.unit, class, name)
    }

    fn slots(&self, class: Type) -> Option<usize> {
        Callees::slots(&*self.unit, class)
    }

    fn classes(&self) -> &dyn ClassEnv {
        &*self.unit
    }
}

/// Converts the failed preparation of a called function into an error of the call.
fn of_callee(error: &Error) -> KernelError {
    KernelError::new(error.fault, "RuntimeError", error.message.clone())
}

/// The state that an entry keeps between calls, so that it needs no lookup by graph.
#[derive(Clone, Default)]
pub(crate) struct EntryCache {
    code: OnceLock<Arc<Code>>,
    /// The code of the graph as it was loaded, for calls while a stage is compiled.
    loaded: OnceLock<Arc<Code>>,
    executor: OnceLock<Arc<Executor>>,
    /// Code for recorded calls.
    recorded: OnceLock<Arc<Code>>,
    /// Whether every call is recorded, because the program requests gradients.
    requests_gradients: OnceLock<bool>,
    /// Differentiated graphs for recorded calls.
    graphs: OnceLock<Arc<GraphPlans>>,
}

impl EntryCache {
    /// Returns the differentiated graphs of the entry.
    pub(crate) fn gradient_graphs(&self) -> Vec<(Arc<Graph>, Arc<Graph>)> {
        self.graphs.get().map(|plans| plans.graphs()).unwrap_or_default()
    }

    pub(crate) fn gradient_refusals(&self) -> Vec<String> {
        self.graphs.get().map(|plans| plans.refusals()).unwrap_or_default()
    }
}

/// A machine, with the buffers and caches that calls on it reuse.
struct Machine {
    vm: Vm,
    /// The arguments of a call; empty between calls.
    args: Vec<IValue>,
    /// The recent plans of executors, by the address of the executor, which the engine keeps alive.
    caches: Vec<(usize, PlanCache)>,
}

impl Machine {
    fn new(functions: &Arc<CompiledProgram>, recycled: usize) -> Machine {
        let vm = Vm::with_recycled(Arc::clone(functions), recycled);
        Machine { vm, args: Vec::new(), caches: Vec::new() }
    }
}

/// Returns the cache of an executor; it becomes the first in the list.
#[inline]
fn cache_of<'c>(caches: &'c mut Vec<(usize, PlanCache)>, executor: &Arc<Executor>) -> &'c mut PlanCache {
    let key = Arc::as_ptr(executor) as usize;
    if caches.first().is_none_or(|(first, _)| *first != key) {
        match caches.iter().position(|(other, _)| *other == key) {
            Some(at) => caches.swap(0, at),
            None => caches.insert(0, (key, PlanCache::new())),
        }
    }
    &mut caches[0].1
}

/// Runs the functions of one program.
pub(crate) struct Engine {
    unit: Arc<CompilationUnit>,
    execution: Execution,
    /// Bytes of freed tensors that each machine keeps for reuse.
    recycled: usize,
    /// Number of threads that may work on a loop of a run; 0 selects the number of processors.
    threads: usize,
    /// Prepares graphs that the embedder calls.
    entry: Compiler,
    functions: Arc<CompiledProgram>,
    /// The functions as they were loaded, and idle machines for them.
    loaded: (Arc<CompiledProgram>, Mutex<Vec<Vm>>),
    /// Code of graphs that the embedder calls, by the address of the graph. The code keeps the graph alive.
    codes: Mutex<BTreeMap<usize, Arc<Code>>>,
    /// Executors of graphs that the embedder calls, by the address of the graph, which the executor keeps alive.
    executors: Mutex<BTreeMap<usize, Arc<Executor>>>,
    /// The machine for calls while no other call runs, created by the first call.
    machine: TryCell<Option<Machine>>,
    /// Further machines, for concurrent calls.
    others: Mutex<Vec<Machine>>,
    /// Runs recorded calls: graphs as they were loaded, since a history consists of the program's own operators.
    recording: OnceLock<Arc<Engine>>,
}

impl Engine {
    pub(crate) fn new(session: &Session, unit: &Arc<CompilationUnit>) -> Arc<Engine> {
        Arc::new(Engine {
            unit: Arc::clone(unit),
            execution: session.execution(),
            recycled: session.recycled(),
            threads: session.threads(),
            entry: Compiler(Arc::new(Prepared::new(session, unit))),
            functions: CompiledProgram::new(Arc::new(Prepared::new(session, unit))),
            loaded: (CompiledProgram::new(Arc::clone(unit) as _), Mutex::default()),
            codes: Mutex::default(),
            executors: Mutex::default(),
            machine: TryCell::new(None),
            others: Mutex::default(),
            recording: OnceLock::new(),
        })
    }

    pub(crate) fn session(&self) -> &Session {
        &self.entry.session
    }

    /// Returns the unit of the program.
    pub(crate) fn unit(&self) -> &Arc<CompilationUnit> {
        &self.unit
    }

    /// Returns the code for calls of `graph`, and compiles it at the first call.
    pub(crate) fn code(&self, graph: &Arc<Graph>) -> Result<Arc<Code>, Error> {
        let key = Arc::as_ptr(graph) as usize;
        if let Some(code) = lock(&self.codes).get(&key).cloned() {
            return Ok(code);
        }
        let code = self.compile(graph)?;
        Ok(Arc::clone(lock(&self.codes).entry(key).or_insert(code)))
    }

    /// Optimizes and compiles a graph that its caller keeps.
    pub(crate) fn compile(&self, graph: &Arc<Graph>) -> Result<Arc<Code>, Error> {
        let prepared = self.entry.prepare(graph, None)?;
        let code = Code::compile(&prepared, &**self.functions.callees());
        Ok(Arc::new(code.map_err(|e| Error::from(flambeau_exec::ExecError::of(&e)))?))
    }

    /// Returns the executor for calls of `graph`.
    fn executor(&self, graph: &Arc<Graph>) -> Arc<Executor> {
        let key = Arc::as_ptr(graph) as usize;
        let new = || Arc::new(Executor::new(Arc::clone(graph), self.entry.session.executor_settings()));
        Arc::clone(lock(&self.executors).entry(key).or_insert_with(new))
    }

    /// Returns the executor of `graph`, if there is one yet.
    fn known_executor(&self, graph: &Arc<Graph>) -> Option<Arc<Executor>> {
        lock(&self.executors).get(&(Arc::as_ptr(graph) as usize)).cloned()
    }

    /// Returns the plans that the executor of `graph` has made, the most specific ones first.
    pub(crate) fn plans(&self, graph: &Arc<Graph>) -> Vec<Arc<ExecutionPlan>> {
        self.known_executor(graph).map(|executor| executor.plans()).unwrap_or_default()
    }

    /// Returns the profiles of the executor of `graph`; see [`Executor::profiles`].
    pub(crate) fn profiles(&self, graph: &Arc<Graph>) -> Vec<Graph> {
        self.known_executor(graph).map(|executor| executor.profiles()).unwrap_or_default()
    }

    /// Returns the failed guards of `graph`; see [`Executor::deoptimizations`].
    pub(crate) fn deoptimizations(&self, graph: &Arc<Graph>) -> Vec<Deoptimization> {
        self.known_executor(graph).map(|executor| executor.deoptimizations()).unwrap_or_default()
    }

    /// Returns the profiles of calls of `graph`, serializable; see [`Executor::saved_profiles`].
    pub(crate) fn saved_profiles(&self, graph: &Arc<Graph>) -> Vec<SavedProfile> {
        self.known_executor(graph).map(|executor| executor.saved_profiles()).unwrap_or_default()
    }

    /// Uses profiles of an earlier process for calls of `graph`; see [`Executor::restore`].
    pub(crate) fn restore(&self, graph: &Arc<Graph>, profiles: Vec<SavedProfile>) {
        self.executor(graph).restore(profiles);
    }

    /// Runs `graph` on the arguments that `bind` supplies: complete, in order. `bind` may be called twice. Several results
    /// are returned as a tuple. `requires_grad` states whether an argument requires a gradient, so that the call is
    /// recorded.
    pub(crate) fn run(
        self: &Arc<Self>,
        graph: &Arc<Graph>,
        cache: &EntryCache,
        host: &mut Host,
        requires_grad: bool,
        bind: impl Fn(&mut Arguments<'_>) -> Result<(), Error>,
    ) -> Result<IValue, Error> {
        // Passed by reference: moving what was just written in parts would stall on store forwarding.
        let bind = &bind;
        threads::with(self.threads, || {
            let requests_gradients =
                *cache.requests_gradients.get_or_init(|| self.entry.requests_gradients(graph));
            if !requires_grad && !requests_gradients && host.tape().is_none() {
                return self.run_unrecorded(graph, cache, host, bind);
            }
            let optimized = matches!(self.execution, Execution::Optimized | Execution::Profiling);
            if requests_gradients || !requires_grad || !optimized {
                return self.run_recorded(graph, cache, host, bind);
            }
            let mut args = Vec::new();
            bind(&mut Arguments::of_list(&mut args))?;
            let plans = cache.graphs.get_or_init(Arc::default);
            if let Some(result) = plans.call(self, graph, &args, host)? {
                return Ok(result);
            }
            let kind = plans.unknown_kind(self, &args);
            let result = self.run_recorded(graph, cache, host, |bound| {
                args.into_iter().for_each(|arg| bound.push(arg));
                Ok(())
            })?;
            plans.note_recorded(kind);
            Ok(result)
        })
    }

    #[inline]
    fn run_unrecorded(
        &self,
        graph: &Arc<Graph>,
        cache: &EntryCache,
        host: &mut Host,
        bind: impl Fn(&mut Arguments<'_>) -> Result<(), Error>,
    ) -> Result<IValue, Error> {
        if self.execution == Execution::Reference {
            return self.run_reference(graph, host, bind);
        }
        if let Some(executor) = cache.executor.get() {
            return self.run_specialized(executor, graph, cache, host, bind);
        }
        let code = match cache.code.get() {
            Some(code) => code,
            None if self.execution == Execution::Profiling => {
                let executor = cache.executor.get_or_init(|| self.executor(graph));
                return self.run_specialized(executor, graph, cache, host, bind);
            }
            None => {
                let code = self.code(graph)?;
                cache.code.get_or_init(|| code)
            }
        };
        self.on_machine(|machine| machine.vm.run_bound(code, host, bind))
    }

    /// Runs `graph` with its executor, or as optimized code if the executor declines the call. A failed stage is an
    /// error of the call in a session that checks its passes.
    #[inline]
    fn run_specialized(
        &self,
        executor: &Arc<Executor>,
        graph: &Arc<Graph>,
        cache: &EntryCache,
        host: &mut Host,
        bind: impl Fn(&mut Arguments<'_>) -> Result<(), Error>,
    ) -> Result<IValue, Error> {
        self.on_machine(|machine| {
            let Machine { vm, args, caches } = machine;
            let recent = cache_of(caches, executor);
            let outcome = match executor.call_expected(recent, vm, host, &self.entry, &bind)? {
                Some(outcome) => outcome,
                None => {
                    args.clear();
                    bind(&mut Arguments::of_list(args))?;
                    executor.call(args, recent, vm, host, &self.entry)
                }
            };
            match outcome {
                CallOutcome::Ran { result, failure: None, .. } => Ok(result?),
                outcome => self.finish(outcome, graph, cache, args, vm, host),
            }
        })
    }

    /// Ends a call that the executor declined, or after which a stage failed.
    #[cold]
    fn finish(
        &self,
        mut outcome: CallOutcome<Error>,
        graph: &Arc<Graph>,
        cache: &EntryCache,
        args: &mut Vec<IValue>,
        vm: &mut Vm,
        host: &mut Host,
    ) -> Result<IValue, Error> {
        let failure = outcome.take_failure().map(|failure| self.entry.report_stage(graph, *failure));
        let push = |bound: &mut Arguments<'_>| {
            args.drain(..).for_each(|arg| bound.push(arg));
            Ok(())
        };
        match (outcome, failure) {
            (_, Some(failure)) if self.entry.session.checks() != Checks::Off => {
                args.clear();
                Err(failure)
            }
            (CallOutcome::Ran { result, .. }, _) => Ok(result?),
            (CallOutcome::Declined { pending: true, .. }, _) => {
                let code = match cache.loaded.get() {
                    Some(code) => code,
                    None => {
                        let code = Code::compile(graph, &**self.loaded.0.callees());
                        let code = code.map_err(|e| Error::from(flambeau_exec::ExecError::of(&e)))?;
                        cache.loaded.get_or_init(|| Arc::new(code))
                    }
                };
                let idle = lock(&self.loaded.1).pop();
                let mut vm =
                    idle.unwrap_or_else(|| Vm::with_recycled(Arc::clone(&self.loaded.0), self.recycled));
                let result = vm.run_bound(code, host, push);
                lock(&self.loaded.1).push(vm);
                result
            }
            (CallOutcome::Declined { .. }, _) => {
                let code = match cache.code.get() {
                    Some(code) => code,
                    None => {
                        let code = self.code(graph)?;
                        cache.code.get_or_init(|| code)
                    }
                };
                vm.run_bound(code, host, push)
            }
        }
    }

    /// Runs `graph` with the session's tape, or with that of the host if there is one.
    fn run_recorded(
        &self,
        graph: &Arc<Graph>,
        cache: &EntryCache,
        host: &mut Host,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), Error>,
    ) -> Result<IValue, Error> {
        let own = if host.tape().is_none() { Some(self.entry.session.tape()?) } else { None };
        let sets = own.is_some();
        if sets {
            host.set_tape(own);
        }
        let result = self.run_on_tape(graph, cache, host, bind);
        if sets {
            host.set_tape(None);
        }
        result
    }

    fn run_on_tape(
        &self,
        graph: &Arc<Graph>,
        cache: &EntryCache,
        host: &mut Host,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), Error>,
    ) -> Result<IValue, Error> {
        if self.execution == Execution::Reference {
            return self.run_reference(graph, host, bind);
        }
        let engine = match self.execution {
            Execution::Machine => self,
            _ => self.recording.get_or_init(|| {
                Engine::new(&self.entry.session.with_execution(Execution::Machine), &self.entry.unit)
            }),
        };
        let code = match cache.recorded.get() {
            Some(code) => code,
            None => {
                let code = engine.code(graph)?;
                cache.recorded.get_or_init(|| code)
            }
        };
        engine.on_machine(|machine| machine.vm.run_bound(code, host, bind))
    }

    /// Runs compiled code on complete arguments.
    pub(crate) fn run_code(
        &self,
        code: &Arc<Code>,
        args: Vec<IValue>,
        host: &mut Host,
    ) -> Result<IValue, Error> {
        self.on_machine(|machine| {
            machine.vm.run_bound(code, host, |bound| {
                args.into_iter().for_each(|arg| bound.push(arg));
                Ok(())
            })
        })
    }

    /// Runs `graph` with the host's tape, operator by operator.
    pub(crate) fn replay_on_tape(
        &self,
        graph: &Arc<Graph>,
        args: Vec<IValue>,
        host: &mut Host,
    ) -> Result<IValue, Error> {
        self.run_on_tape(graph, &EntryCache::default(), host, |bound| {
            args.into_iter().for_each(|arg| bound.push(arg));
            Ok(())
        })
    }

    /// Runs `graph` as it was loaded, with the reference evaluator.
    fn run_reference(
        &self,
        graph: &Arc<Graph>,
        host: &mut Host,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), Error>,
    ) -> Result<IValue, Error> {
        let mut args = Vec::new();
        bind(&mut Arguments::of_list(&mut args))?;
        let results = reference::run(graph, args, &*self.unit, host);
        Ok(one_value(results?.into_iter()))
    }

    /// Runs a closure with an idle machine, or with a new one if none is idle.
    #[inline]
    fn on_machine<R>(&self, work: impl FnOnce(&mut Machine) -> R) -> R {
        let new = || Machine::new(&self.functions, self.recycled);
        // The results of `work` are constructed in place, since nothing follows it.
        match self.machine.take() {
            Some(mut first) => work(first.get_or_insert_with(new)),
            None => {
                let machine = lock(&self.others).pop().unwrap_or_else(new);
                let mut other = OtherMachine { engine: self, machine: Some(machine) };
                work(other.machine.get_or_insert_with(new))
            }
        }
    }
}

/// A machine of a call that runs beside another one.
struct OtherMachine<'a> {
    engine: &'a Engine,
    machine: Option<Machine>,
}

impl Drop for OtherMachine<'_> {
    /// Gives the machine back, unless the call panicked.
    fn drop(&mut self) {
        let machine = self.machine.take().filter(|_| !std::thread::panicking());
        lock(&self.engine.others).extend(machine);
    }
}

/// Locks a mutex and ignores poisoning: each of these tables is changed by single insertions, so a panic leaves it
/// consistent.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
