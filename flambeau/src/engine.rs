//! How a program's functions become something that runs: plans made once, machines kept warm.
//!
//! One [`Engine`] belongs to one loaded program. It compiles a function when it is first called, in the way the
//! session's [`Execution`] says, and lends its machines to the calls that come: a machine that has run once runs again
//! without allocating.

use crate::error::Error;
use crate::session::{Execution, Session};
use flambeau_exec::tape::AsksForGradients;
use flambeau_exec::vm::{Arguments, Program as Functions, Vm};
use flambeau_exec::{Callees, Host, KernelError, TryCell, bytecode::Code, one_value, reference};
use flambeau_ir::types::ClassEnv;
use flambeau_ir::{CompilationUnit, Graph, IValue, Symbol, Type};
use flambeau_rewrite::Checks;
use flambeau_tensor::threads;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Functions of a unit, prepared as the session says.
struct Prepared {
    session: Session,
    unit: Arc<CompilationUnit>,
    /// Whether anything in the unit asks for gradients.
    asks: OnceLock<bool>,
}

impl Prepared {
    fn new(session: &Session, unit: &Arc<CompilationUnit>) -> Prepared {
        Prepared { session: session.clone(), unit: Arc::clone(unit), asks: OnceLock::new() }
    }

    /// Whether a graph, or any function it may call, asks for gradients of what it does.
    fn asks_for_gradients(&self, graph: &Graph) -> bool {
        let asks = |g: &Graph| {
            let column = g.registry().column::<AsksForGradients>();
            g.nodes_deep().any(|node| g.op(node).row().is_some_and(|row| column.get(row).is_some()))
        };
        asks(graph) || *self.asks.get_or_init(|| self.unit.functions().any(|f| asks(&f.graph)))
    }

    /// The graph that the machine runs for a function: as loaded, or optimized if the session says so.
    ///
    /// # Errors
    /// What an optimization fails with, in a session that checks its passes. In others the failure is reported and the
    /// graph is the loaded one.
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

/// That a called function can't be made ready, as an error of the call.
fn of_callee(error: &Error) -> KernelError {
    KernelError::new(error.fault, "RuntimeError", error.message.clone())
}

/// Runs the functions of one program.
pub(crate) struct Engine {
    unit: Arc<CompilationUnit>,
    execution: Execution,
    /// Bytes of freed tensors that each machine keeps.
    recycled: usize,
    /// How many threads may work on a loop of a run; 0: as many as the machine has.
    threads: usize,
    /// Prepares graphs called from outside.
    entry: Prepared,
    functions: Arc<Functions>,
    /// Code of graphs called from outside, by the address of the graph, which the code keeps alive.
    codes: Mutex<BTreeMap<usize, Arc<Code>>>,
    /// The machine that calls use when no other is at work, made by the first.
    machine: TryCell<Option<Vm>>,
    /// Machines for calls beside others.
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

    /// What the program defines.
    pub(crate) fn unit(&self) -> &CompilationUnit {
        &self.unit
    }

    /// The code that a call of `graph` runs.
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

    /// Runs `graph` on the arguments that `bind` gives: complete, in order. Its code is kept in `plan`. Several results come
    /// as a tuple.
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
            None if self.entry.asks_for_gradients(graph) => return self.run_reference(graph, host, bind),
            None => {
                let code = self.code(graph)?;
                plan.get_or_init(|| code)
            }
        };
        self.on_machine(|machine| machine.run_bound(code, host, bind))
    }

    /// Runs `graph` as it was loaded, by the reference evaluator, which records what it does if gradients are asked for;
    /// the machine does not.
    fn run_reference(
        &self,
        graph: &Arc<Graph>,
        host: &mut Host,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), Error>,
    ) -> Result<IValue, Error> {
        let mut args = Vec::new();
        bind(&mut Arguments::of_list(&mut args))?;
        let records = host.tape().is_none() && self.entry.asks_for_gradients(graph);
        if records {
            host.set_tape(Some(self.entry.session.tape()?));
        }
        let results = reference::run(graph, args, &*self.unit, host);
        if records {
            host.set_tape(None);
        }
        Ok(one_value(results?.into_iter()))
    }

    /// Does something on a machine that is at rest, or on one more.
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

/// A panic elsewhere leaves these tables whole: each is changed by one insertion at a time.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
