//! Preparation of functions for execution: cached plans and reusable machines.
//!
//! Each loaded program has one [`Engine`]. The engine compiles a function at its first call, according to the session's
//! [`Execution`], and keeps its machines between calls: the second run on a machine does not allocate.

use crate::error::Error;
use crate::session::{Execution, Session};
use flambeau_exec::tape::RequestsGradients;
use flambeau_exec::vm::{Arguments, Program as Functions, Vm};
use flambeau_exec::{Callees, Host, KernelError, TryCell, bytecode::Code, one_value, reference};
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
    asks: OnceLock<bool>,
}

impl Prepared {
    fn new(session: &Session, unit: &Arc<CompilationUnit>) -> Prepared {
        Prepared { session: session.clone(), unit: Arc::clone(unit), asks: OnceLock::new() }
    }

    /// Returns whether a graph, or any function that it may call, requests gradients.
    fn requests_gradients(&self, graph: &Graph) -> bool {
        let asks = |g: &Graph| {
            let column = g.registry().column::<RequestsGradients>();
            g.nodes_deep().any(|node| g.op(node).row().is_some_and(|row| column.get(row).is_some()))
        };
        asks(graph) || *self.asks.get_or_init(|| self.unit.functions().any(|f| asks(&f.graph)))
    }

    /// Returns the graph that the machine runs for a function: as loaded, or optimized if the session's settings
    /// require it.
    ///
    /// # Errors
    /// The error of a failed optimization, in a session that checks its passes. Other sessions record the failure and
    /// return the loaded graph.
    fn prepare(&self, graph: &Arc<Graph>, name: Option<Symbol>) -> Result<Arc<Graph>, Error> {
        if self.session.execution() != Execution::Optimized {
            return Ok(Arc::clone(graph));
        }
        self.session.optimized(graph, &self.unit).map(Arc::new).or_else(|error| {
            self.session.report(name, graph, &self.unit, &error);
            if self.session.checks() == Checks::Off { Ok(Arc::clone(graph)) } else { Err(error) }
        })
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

/// Runs the functions of one program.
pub(crate) struct Engine {
    unit: Arc<CompilationUnit>,
    execution: Execution,
    /// Bytes of freed tensors that each machine keeps for reuse.
    recycled: usize,
    /// Number of threads that may work on a loop of a run; 0 selects the number of processors.
    threads: usize,
    /// Prepares graphs that the embedder calls.
    entry: Prepared,
    functions: Arc<Functions>,
    /// Code of graphs that the embedder calls, by the address of the graph. The code keeps the graph alive.
    codes: Mutex<BTreeMap<usize, Arc<Code>>>,
    /// The machine for calls while no other call runs, created by the first call.
    machine: TryCell<Option<Vm>>,
    /// Further machines, for concurrent calls.
    others: Mutex<Vec<Vm>>,
}

impl Engine {
    pub(crate) fn new(session: &Session, unit: &Arc<CompilationUnit>) -> Arc<Engine> {
        Arc::new(Engine {
            unit: Arc::clone(unit),
            execution: session.execution(),
            recycled: session.recycled(),
            threads: session.threads(),
            entry: Prepared::new(session, unit),
            functions: Functions::new(Arc::new(Prepared::new(session, unit))),
            codes: Mutex::default(),
            machine: TryCell::new(None),
            others: Mutex::default(),
        })
    }

    /// Returns the unit of the program.
    pub(crate) fn unit(&self) -> &CompilationUnit {
        &self.unit
    }

    /// Returns the code for calls of `graph`, and compiles it at the first call.
    pub(crate) fn code(&self, graph: &Arc<Graph>) -> Result<Arc<Code>, Error> {
        let key = Arc::as_ptr(graph) as usize;
        if let Some(code) = lock(&self.codes).get(&key).cloned() {
            return Ok(code);
        }
        let prepared = self.entry.prepare(graph, None)?;
        let code = Code::compile(&prepared, &**self.functions.callees());
        let code = Arc::new(code.map_err(|e| Error::from(flambeau_exec::ExecError::of(&e)))?);
        Ok(Arc::clone(lock(&self.codes).entry(key).or_insert(code)))
    }

    /// Runs `graph` on the arguments that `bind` returns: complete, in order. Caches the code in `plan`. Several
    /// results are returned as a tuple.
    pub(crate) fn run(
        &self,
        graph: &Arc<Graph>,
        plan: &OnceLock<Arc<Code>>,
        host: &mut Host,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), Error>,
    ) -> Result<IValue, Error> {
        threads::with(self.threads, || self.run_here(graph, plan, host, bind))
    }

    #[inline]
    fn run_here(
        &self,
        graph: &Arc<Graph>,
        plan: &OnceLock<Arc<Code>>,
        host: &mut Host,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), Error>,
    ) -> Result<IValue, Error> {
        if self.execution == Execution::Reference || host.tape().is_some() {
            return self.run_reference(graph, host, bind);
        }
        let code = match plan.get() {
            Some(code) => code,
            None if self.entry.requests_gradients(graph) => return self.run_reference(graph, host, bind),
            None => {
                let code = self.code(graph)?;
                plan.get_or_init(|| code)
            }
        };
        self.on_machine(|machine| machine.run_bound(code, host, bind))
    }

    /// Runs `graph` as it was loaded, with the reference evaluator. The evaluator records its operations if gradients
    /// are requested; the machine cannot record.
    fn run_reference(
        &self,
        graph: &Arc<Graph>,
        host: &mut Host,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), Error>,
    ) -> Result<IValue, Error> {
        let mut args = Vec::new();
        bind(&mut Arguments::of_list(&mut args))?;
        let records = host.tape().is_none() && self.entry.requests_gradients(graph);
        if records {
            host.set_tape(Some(self.entry.session.tape()?));
        }
        let results = reference::run(graph, args, &*self.unit, host);
        if records {
            host.set_tape(None);
        }
        Ok(one_value(results?.into_iter()))
    }

    /// Runs a closure with an idle machine, or with a new one if none is idle.
    #[inline]
    fn on_machine<R>(&self, work: impl FnOnce(&mut Vm) -> R) -> R {
        let new = || Vm::with_recycled(Arc::clone(&self.functions), self.recycled);
        let mut first = self.machine.take();
        let mut other = None;
        let result = work(match &mut first {
            Some(first) => first.get_or_insert_with(new),
            None => other.insert(lock(&self.others).pop().unwrap_or_else(new)),
        });
        if let Some(other) = other {
            lock(&self.others).push(other);
        }
        result
    }
}

/// Locks a mutex and ignores poisoning: each of these tables is changed by single insertions, so a panic leaves it
/// consistent.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
