//! The services a run gets from the session around it: output, warnings, random numbers, limits, the way out.
//!
//! One [`Host`] belongs to one run at a time. Limits are counted here and nowhere else, so that the reference and the
//! machine stop for the same reasons.

use crate::error::KernelError;
use crate::kernel::{KernelResult, Rets};
use crate::protections::Protections;
use crate::tape::Tape;
use flambeau_ir::value::{Generator, IValue};
use flambeau_ir::{Graph, NodeId, Type};
use flambeau_tensor::{Budget, Device, Storage, Tensor};
use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Stops a run from outside: from another thread, a signal handler, a timer. Clones are one token.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that has not been used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks runs holding this token to end.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Makes the token fit for another run.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether an end was asked for.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where warnings go.
pub type WarnSink = Box<dyn FnMut(&str) + Send>;

/// Operators of the embedding program: what `prim::PythonOp` and its like call.
pub trait HostCalls: Send {
    /// Calls the host function a node names; appends as many results as the node has.
    fn call(&mut self, graph: &Graph, node: NodeId, args: &mut [IValue], rets: &mut Rets) -> KernelResult;

    /// Brings a host object back as a value of a type. A value that already fits is passed on before this is asked.
    fn cast(&mut self, value: IValue, ty: Type) -> Result<IValue, KernelError>;
}

/// What sees the values that pass profiling nodes.
pub type Observer = Box<dyn FnMut(&Graph, NodeId, &[IValue]) + Send>;

/// How printed tensors are written.
pub type TensorText = fn(&mut dyn std::fmt::Write, &Tensor) -> std::fmt::Result;

/// What a run may ask of the session.
///
/// What most runs never use is made when it is first asked for: a host is made for every call.
pub struct Host {
    rare: Option<Box<Rare>>,
    cancel: Option<CancelToken>,
    fuel: u64,
    budget: Option<Budget>,
    generator: OnceLock<Generator>,
    tape: Option<Tape>,
    tensor_text: TensorText,
    max_depth: usize,
    time: Option<Duration>,
    clock: Cell<Clock>,
    /// Polls until the clock is read.
    polls: Cell<u32>,
    /// Runs that are active: formulas of gradients run within others.
    runs: u32,
    grad_enabled: bool,
    protected: RefCell<Protections>,
}

/// When the time of a run began and when the clock was last read.
#[derive(Clone, Copy, Default)]
struct Clock {
    start: Option<Instant>,
    last: Option<Instant>,
    /// Polls between two readings.
    pace: u32,
}

/// Polls of a run before the first reading of the clock: a shorter run ends before the time of a reading would matter.
const FREE: u32 = 8;

/// The clock is read more often where more time than this lies between readings.
const TICK: Duration = Duration::from_millis(1);
/// Most questions between two readings of the clock: those of 64,000 iterations of a loop on the machine.
const MAX_PACE: u32 = 63;

/// Services that few runs use.
#[derive(Default)]
struct Rare {
    /// Where prints go; standard output if it is not set.
    stdout: Option<Box<dyn Write + Send>>,
    /// Where warnings go; nowhere if it is not set.
    warn: Option<WarnSink>,
    states: Vec<(TypeId, Box<dyn Any + Send>)>,
    calls: Option<Box<dyn HostCalls>>,
    observer: Option<Observer>,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// Calls that may be active at a time unless told otherwise.
    pub const MAX_DEPTH: usize = 10_000;

    /// The seed of the default generator.
    pub const SEED: u64 = 67_280_421_310_721;

    /// A host that prints to standard output, drops warnings, and sets no limits.
    #[inline]
    pub fn new() -> Self {
        Host {
            rare: None,
            cancel: None,
            fuel: u64::MAX,
            budget: None,
            generator: OnceLock::new(),
            grad_enabled: true,
            tape: None,
            tensor_text: |out, tensor| {
                let text = flambeau_tensor::print::to_text(tensor).map_err(|_| std::fmt::Error)?;
                out.write_str(&text)
            },
            max_depth: Self::MAX_DEPTH,
            time: None,
            clock: Cell::default(),
            polls: Cell::new(FREE),
            runs: 0,
            protected: RefCell::default(),
        }
    }

    /// A host whose prints go nowhere: for trials and tests.
    pub fn quiet() -> Self {
        let mut host = Self::new();
        host.set_stdout(std::io::sink());
        host
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Sends prints to `sink`.
    pub fn set_stdout(&mut self, sink: impl Write + Send + 'static) -> &mut Self {
        self.rare().stdout = Some(Box::new(sink));
        self
    }

    /// Sends warnings to `sink`.
    pub fn set_warn(&mut self, sink: impl FnMut(&str) + Send + 'static) -> &mut Self {
        self.rare().warn = Some(Box::new(sink));
        self
    }

    /// Lets `token` stop runs.
    pub fn set_cancel(&mut self, token: CancelToken) -> &mut Self {
        self.cancel = Some(token);
        self
    }

    /// Gives this many units of fuel: one for each loop iteration and each call. `u64::MAX` is no limit.
    pub fn set_fuel(&mut self, units: u64) -> &mut Self {
        self.fuel = units;
        self
    }

    /// Limits the bytes that tensors and large containers made by runs hold at a time.
    pub fn set_budget(&mut self, budget: Option<Budget>) -> &mut Self {
        self.budget = budget;
        self
    }

    /// Limits the time of each run on this host, from the first time that it asks whether it should end. A run asks between
    /// operators and, in loops, about every millisecond; a single operator is not interrupted. Runs within a run count as
    /// part of it.
    pub fn set_time(&mut self, time: Option<Duration>) -> &mut Self {
        self.time = time;
        self.restart_clock();
        self
    }

    /// Limits the number of calls active at a time.
    pub fn set_max_depth(&mut self, frames: usize) -> &mut Self {
        self.max_depth = frames;
        self
    }

    /// The number of calls that may be active at a time.
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// Fuel left.
    pub fn fuel(&self) -> u64 {
        self.fuel
    }

    /// The memory limit.
    pub fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// Takes the memory limit out for a run that puts it to work on this thread: counting references to it would cost each
    /// call two atomic operations.
    pub(crate) fn lend_budget(&mut self) -> Option<Budget> {
        self.budget.take()
    }

    /// Puts the memory limit of the ended run back.
    pub(crate) fn return_budget(&mut self, budget: Option<Budget>) {
        if budget.is_some() {
            self.budget = budget;
        }
    }

    /// Refuses writes to a storage until the current run ends.
    pub fn protect(&self, storage: &Storage) {
        self.protected.borrow_mut().add(storage);
    }

    /// Begins a run: sets the protections of the surrounding one aside, or starts the clock if there is none.
    pub(crate) fn begin_run(&mut self) -> Protections {
        if self.runs == 0 {
            self.restart_clock();
        }
        self.runs += 1;
        std::mem::take(self.protected.get_mut())
    }

    /// Ends a run: its protections, for those of the surrounding one.
    pub(crate) fn end_run(&mut self, outer: Protections) {
        self.runs -= 1;
        *self.protected.get_mut() = outer;
    }

    /// Takes fuel, and looks whether the run should end.
    #[inline]
    pub fn tick(&mut self, units: u64) -> Result<(), KernelError> {
        self.poll()?;
        if self.fuel == u64::MAX {
            return Ok(());
        }
        match self.fuel.checked_sub(units) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => {
                self.fuel = 0;
                Err(KernelError::limit("out of fuel: the limit on loop iterations and calls was reached"))
            }
        }
    }

    /// Takes as much fuel as there is, up to `units`, and looks whether the run should end. An error if there is none.
    pub fn grant(&mut self, units: u64) -> Result<u64, KernelError> {
        let granted = units.min(self.fuel).max(1);
        self.tick(granted)?;
        Ok(granted)
    }

    /// Gives back fuel that was granted and not used.
    pub fn give_back(&mut self, units: u64) {
        if self.fuel != u64::MAX {
            self.fuel = self.fuel.saturating_add(units);
        }
    }

    /// Looks whether the run should end.
    #[inline]
    pub fn poll(&self) -> Result<(), KernelError> {
        if self.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(KernelError::limit("the run was cancelled"));
        }
        let Some(time) = self.time else { return Ok(()) };
        match self.polls.get().checked_sub(1) {
            Some(left) => {
                self.polls.set(left);
                Ok(())
            }
            None => self.check_time(time),
        }
    }

    fn restart_clock(&mut self) {
        *self.clock.get_mut() = Clock::default();
        *self.polls.get_mut() = FREE;
    }

    /// Reads the clock; an error if the run has had its time.
    #[cold]
    fn check_time(&self, time: Duration) -> Result<(), KernelError> {
        let mut clock = self.clock.get();
        let now = Instant::now();
        let start = *clock.start.get_or_insert(now);
        let since = now - clock.last.unwrap_or(now);
        clock.last = Some(now);
        // Reading the clock costs as much as a small operator: it is read about every millisecond.
        clock.pace = if since < TICK { (2 * clock.pace + 1).min(MAX_PACE) } else { clock.pace / 4 };
        self.polls.set(clock.pace);
        self.clock.set(clock);
        if now - start <= time {
            return Ok(());
        }
        let text = format!("out of time: the limit of {:.3} seconds was reached", time.as_secs_f64());
        Err(KernelError::limit(text))
    }

    fn out(&mut self) -> &mut (dyn Write + Send) {
        self.rare().stdout.get_or_insert_with(|| Box::new(std::io::stdout()))
    }

    /// Writes what a program prints. Nothing is added.
    pub fn print(&mut self, bytes: &[u8]) -> Result<(), KernelError> {
        self.out()
            .write_all(bytes)
            .map_err(|e| KernelError::misuse(format!("writing the output failed: {e}")))
    }

    /// Flushes what was printed.
    pub fn flush(&mut self) -> Result<(), KernelError> {
        self.out().flush().map_err(|e| KernelError::misuse(format!("writing the output failed: {e}")))
    }

    /// Passes on a warning.
    pub fn warn(&mut self, message: &str) {
        if let Some(warn) = self.rare.as_mut().and_then(|rare| rare.warn.as_mut()) {
            warn(message);
        }
    }

    /// Sets how printed tensors are written.
    pub fn set_tensor_text(&mut self, text: TensorText) -> &mut Self {
        self.tensor_text = text;
        self
    }

    /// Writes a tensor as `print` shows it.
    pub fn tensor_text(&self, out: &mut dyn std::fmt::Write, tensor: &Tensor) -> std::fmt::Result {
        (self.tensor_text)(out, tensor)
    }

    /// Sets what answers calls of the host.
    pub fn set_calls(&mut self, calls: impl HostCalls + 'static) -> &mut Self {
        self.rare().calls = Some(Box::new(calls));
        self
    }

    /// Calls a host function.
    pub fn call(
        &mut self,
        graph: &Graph,
        node: NodeId,
        args: &mut [IValue],
        rets: &mut Rets,
    ) -> KernelResult {
        match &mut self.rare().calls {
            Some(calls) => calls.call(graph, node, args, rets),
            None => Err(KernelError::unsupported(format!(
                "`{}`: this host has no functions",
                graph.op_name(node)
            ))),
        }
    }

    /// Brings a host object back as a value of a type.
    pub fn cast(&mut self, value: IValue, ty: Type) -> Result<IValue, KernelError> {
        if value.fits(ty.erase_shapes()) {
            return Ok(value);
        }
        match &mut self.rare().calls {
            Some(calls) => calls.cast(value, ty),
            None => {
                Err(KernelError::input(format!("a host value is {} where {ty} is expected", value.tag())))
            }
        }
    }

    /// Sets what sees the values that pass profiling nodes.
    pub fn set_observer(&mut self, observer: Option<Observer>) -> &mut Self {
        self.rare().observer = observer;
        self
    }

    /// Shows values to the observer.
    pub fn observe(&mut self, graph: &Graph, node: NodeId, values: &[IValue]) {
        if let Some(observer) = self.rare.as_mut().and_then(|rare| rare.observer.as_mut()) {
            observer(graph, node, values);
        }
    }

    /// The generator operators draw from when a program names none.
    pub fn rng(&self) -> &Generator {
        self.generator.get_or_init(|| Generator::new(Device::CPU, Self::SEED))
    }

    /// Replaces the default generator.
    pub fn set_rng(&mut self, generator: Generator) -> &mut Self {
        self.generator = OnceLock::from(generator);
        self
    }

    /// Whether results of operators take part in differentiation.
    pub fn grad_enabled(&self) -> bool {
        self.grad_enabled
    }

    /// Sets whether results take part in differentiation; gives back what was set.
    pub fn set_grad_enabled(&mut self, enabled: bool) -> bool {
        std::mem::replace(&mut self.grad_enabled, enabled)
    }

    /// Where operators are recorded for differentiation.
    pub fn tape(&self) -> Option<&Tape> {
        self.tape.as_ref()
    }

    /// Sets where operators are recorded for differentiation; gives back what was set.
    pub fn set_tape(&mut self, tape: Option<Tape>) -> Option<Tape> {
        std::mem::replace(&mut self.tape, tape)
    }

    /// The state that an extension keeps with the session, one per type, made at first use.
    pub fn state<T: Any + Send + Default>(&mut self) -> &mut T {
        let id = TypeId::of::<T>();
        let states = &mut self.rare().states;
        let at = states.iter().position(|(t, _)| *t == id).unwrap_or_else(|| {
            states.push((id, Box::new(T::default())));
            states.len() - 1
        });
        states[at].1.downcast_mut().expect("invariant: stored under its own type")
    }
}
