//! Services of the session for a run: output, warnings, random numbers, limits, cancellation.
//!
//! A [`Host`] serves one run at a time. All limits are counted here, so the reference and the machine stop for the same
//! reasons.

use crate::error::KernelError;
use crate::instruction_counts::InstructionCounts;
use crate::kernel::{KernelResult, Rets};
use crate::protections::Protections;
use crate::resident;
use crate::tape::Tape;
use crate::timing::NodeTimes;
use flambeau_ir::value::{Generator, IValue};
use flambeau_ir::{Graph, NodeId, SourceRange, Type};
use flambeau_tensor::{Device, MemoryBudget, Storage, Tensor};
use std::any::{Any, TypeId};
use std::cell::{Cell, OnceCell, RefCell};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Cancels a run from another thread, a signal handler or a timer. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the end of all runs that use this token.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Clears the request, so that the token can be used for another run.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether cancellation was requested.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns whether the run that calls it must end. Called on the thread of the run, about every [`INTERRUPT_INTERVAL`].
pub type Interrupt = fn() -> bool;

/// Interval of the calls of an [`Interrupt`].
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// A warning of a program.
#[derive(Clone, Copy, Debug)]
pub struct Warning<'a> {
    /// The text.
    pub message: &'a str,
    /// The statement, if it is known.
    pub at: Option<&'a SourceRange>,
}

/// Receiver of warnings.
pub type WarnSink = Box<dyn FnMut(Warning<'_>) + Send>;

/// Operators of the embedding program, called by `prim::PythonOp` and similar nodes. An operator of the language on a value
/// of the host is a call of the function of Python's module `operator`, such as `operator.__add__`.
pub trait HostCalls: Send {
    /// Calls the host function that a node names; appends one value per result of the node.
    ///
    /// # Errors
    /// Returns the error that the host function raises.
    fn call(&mut self, graph: &Graph, node: NodeId, args: &mut [IValue], rets: &mut Rets) -> KernelResult;

    /// States whether operators that the next called function calls are recorded for differentiation, as those of the program are.
    fn set_grad_enabled(&mut self, enabled: bool) {
        let _ = enabled;
    }

    /// Converts a host object to a value of a type. Not called for values that already fit the type.
    ///
    /// # Errors
    /// Returns an error if the object cannot be converted.
    fn cast(&mut self, value: IValue, ty: Type) -> Result<IValue, KernelError>;
}

/// Receiver of the values that pass through profiling nodes. A closure of these parameters is one.
pub trait ProfileReceiver: Any + Send {
    /// Receives the operands of a profiling node of a graph.
    fn observe(&mut self, graph: &Graph, node: NodeId, values: &[IValue]);
}

impl<F: FnMut(&Graph, NodeId, &[IValue]) + Send + 'static> ProfileReceiver for F {
    fn observe(&mut self, graph: &Graph, node: NodeId, values: &[IValue]) {
        self(graph, node, values);
    }
}

/// Formatter of printed tensors.
pub type TensorText = fn(&mut dyn std::fmt::Write, &Tensor) -> std::fmt::Result;

/// Services available to a run.
///
/// Rarely used services are allocated at first use, because a host is created for every call.
pub struct Host {
    services: Option<Box<Services>>,
    /// Installs the receivers of text and warnings when a run first needs services.
    receivers: Option<fn(&mut Host)>,
    cancel: Option<CancelToken>,
    interrupt: Option<Interrupt>,
    fuel: u64,
    budget: Option<MemoryBudget>,
    /// The limit of the budget in bytes; the budget itself is moved out during a run.
    memory: Option<usize>,
    generator: OnceCell<Generator>,
    /// Returns the default generator when a run first needs one.
    make_generator: fn() -> Generator,
    tape: Option<Tape>,
    tensor_text: TensorText,
    max_depth: usize,
    time: Option<Duration>,
    clock: Cell<Clock>,
    /// Number of polls until the clock is read again.
    polls: Cell<u32>,
    /// Number of active runs; gradient formulas run nested in others.
    runs: u32,
    grad_enabled: bool,
    protected: RefCell<Protections>,
}

/// Start of the time limit, and the last reading of the clock.
#[derive(Clone, Copy, Default)]
struct Clock {
    start: Option<Instant>,
    last: Option<Instant>,
    /// The last reading of the process's memory, and the bytes of the first, which is [`resident::FIRST_READING`] after the
    /// start.
    resident: Option<(Instant, usize)>,
    /// The last call of the [`Interrupt`].
    interrupt: Option<Instant>,
    /// Number of polls between two readings.
    pace: u32,
}

/// Number of polls before the clock is read first: a run with fewer polls ends before a reading pays off.
const FREE: u32 = 8;

/// Target interval of clock readings. If more time has passed, the clock is read more often.
const TICK: Duration = Duration::from_millis(1);
/// Maximal number of polls between two readings of the clock: about 64,000 loop iterations of the machine.
const MAX_POLLS_PER_READING: u32 = 63;

/// Services that few runs use.
#[derive(Default)]
struct Services {
    /// Receiver of printed text; `None` is standard output.
    stdout: Option<Box<dyn Write + Send>>,
    /// Receiver of warnings; `None` drops them.
    warn: Option<WarnSink>,
    states: Vec<(TypeId, Box<dyn Any + Send>)>,
    calls: Option<Box<dyn HostCalls>>,
    observer: Option<Box<dyn ProfileReceiver>>,
    timing: Option<NodeTimes>,
    counts: Option<InstructionCounts>,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// Default limit of simultaneously active calls.
    pub const MAX_DEPTH: usize = 10_000;

    /// Seed of the default generator.
    pub const SEED: u64 = 67_280_421_310_721;

    /// Creates a host that prints to standard output, drops warnings, and has no limits.
    #[inline]
    pub fn new() -> Self {
        Host {
            services: None,
            receivers: None,
            cancel: None,
            interrupt: None,
            fuel: u64::MAX,
            budget: None,
            memory: None,
            generator: OnceCell::new(),
            make_generator: || Generator::new(Device::CPU, Self::SEED),
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

    /// Creates a host that discards printed text, for trials and tests.
    pub fn quiet() -> Self {
        let mut host = Self::new();
        host.set_stdout(std::io::sink());
        host
    }

    fn services(&mut self) -> &mut Services {
        if let Some(install) = self.receivers.take() {
            install(self);
        }
        self.services.get_or_insert_default()
    }

    /// Sets the function that installs the receivers of text and warnings, called at most once, when a run first needs services. Most
    /// runs need none, so that their hosts stay small.
    pub fn set_receivers(&mut self, install: fn(&mut Host)) -> &mut Self {
        self.receivers = Some(install);
        self
    }

    /// Sets the receiver of printed text.
    pub fn set_stdout(&mut self, sink: impl Write + Send + 'static) -> &mut Self {
        self.services().stdout = Some(Box::new(sink));
        self
    }

    /// Sets the receiver of warnings.
    pub fn set_warn(&mut self, sink: impl FnMut(Warning<'_>) + Send + 'static) -> &mut Self {
        self.services().warn = Some(Box::new(sink));
        self
    }

    /// Sets the token that can cancel runs.
    pub fn set_cancel(&mut self, token: CancelToken) -> &mut Self {
        self.cancel = Some(token);
        self
    }

    /// Sets the function that can end runs from their own thread, such as one that handles pending signals of an interpreter.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) -> &mut Self {
        self.interrupt = Some(interrupt);
        self
    }

    /// Sets the fuel: one unit per call, and per iteration of a loop after the first. `u64::MAX` means unlimited.
    pub fn set_fuel(&mut self, units: u64) -> &mut Self {
        self.fuel = units;
        self
    }

    /// Limits the bytes held simultaneously by tensors and large containers that runs create.
    pub fn set_budget(&mut self, budget: Option<MemoryBudget>) -> &mut Self {
        self.memory = budget.as_ref().map(MemoryBudget::limit);
        self.budget = budget;
        self
    }

    /// Limits the time of each run, measured from the run's first clock reading. A run polls between operators and, in
    /// loops, about every millisecond; a single operator is not interrupted. Nested runs count as part of the outer
    /// run.
    pub fn set_time(&mut self, time: Option<Duration>) -> &mut Self {
        self.time = time;
        self.restart_clock();
        self
    }

    /// Limits the number of simultaneously active calls.
    pub fn set_max_depth(&mut self, frames: usize) -> &mut Self {
        self.max_depth = frames;
        self
    }

    /// Returns the limit of simultaneously active calls.
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// Returns the remaining fuel.
    pub fn fuel(&self) -> u64 {
        self.fuel
    }

    /// Returns the memory limit.
    pub fn budget(&self) -> Option<&MemoryBudget> {
        self.budget.as_ref()
    }

    /// Moves the memory limit out for a run that installs it on this thread; a clone would cost each call two atomic
    /// operations.
    pub(crate) fn take_budget(&mut self) -> Option<MemoryBudget> {
        self.budget.take()
    }

    /// Restores the memory limit after the run.
    pub(crate) fn return_budget(&mut self, budget: Option<MemoryBudget>) {
        if budget.is_some() {
            self.budget = budget;
        }
    }

    /// Rejects writes to a storage until the current run ends.
    pub fn protect(&self, storage: &Storage) {
        self.protected.borrow_mut().add(storage);
    }

    /// Begins a run and returns the protections of the enclosing run. Without an enclosing run, resets the clock: the time
    /// limit counts from its first reading.
    pub(crate) fn begin_run(&mut self) -> Protections {
        if self.runs == 0 {
            self.restart_clock();
        }
        self.runs += 1;
        std::mem::take(self.protected.get_mut())
    }

    /// Ends a run: replaces its protections by those of the enclosing run.
    pub(crate) fn end_run(&mut self, outer: Protections) {
        self.runs -= 1;
        *self.protected.get_mut() = outer;
    }

    /// Consumes fuel and polls for the end of the run.
    ///
    /// # Errors
    /// Returns `Limit` if there is not enough fuel, or for the reasons of [`Host::poll`].
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
                Err(KernelError::limit(
                    "out of fuel: the run reached its bound on loop iterations and calls (`run.fuel` of the \
                     limits, `--fuel` of the command)",
                ))
            }
        }
    }

    /// Consumes as much fuel as available, up to `units`, polls, and returns the consumed amount.
    ///
    /// # Errors
    /// Returns `Limit` if there is no fuel, or for the reasons of [`Host::poll`].
    pub fn grant(&mut self, units: u64) -> Result<u64, KernelError> {
        let granted = units.min(self.fuel).max(1);
        self.tick(granted)?;
        Ok(granted)
    }

    /// Returns unused fuel that [`Host::grant`] consumed.
    pub fn return_fuel(&mut self, units: u64) {
        if self.fuel != u64::MAX {
            self.fuel = self.fuel.saturating_add(units);
        }
    }

    /// Checks whether the run must end.
    ///
    /// # Errors
    /// Returns `Limit` if the run was cancelled or interrupted, exceeded its time limit, or the memory of the process grew far
    /// beyond the run's memory limit. Memory is only checked in runs with a time limit.
    #[inline]
    pub fn poll(&self) -> Result<(), KernelError> {
        if self.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(KernelError::limit("the run was cancelled"));
        }
        if self.time.is_none() && self.interrupt.is_none() {
            return Ok(());
        }
        match self.polls.get().checked_sub(1) {
            Some(left) => {
                self.polls.set(left);
                Ok(())
            }
            None => self.check_time(),
        }
    }

    /// Whether neither a tape nor an observer nor timing sees each node, so that nodes may run concurrently, or as instructions
    /// without a call of their kernels.
    #[inline]
    pub(crate) fn is_unobserved(&self) -> bool {
        let observed = |services: &Services| services.observer.is_some() || services.timing.is_some();
        self.tape.is_none() && !self.services.as_deref().is_some_and(observed)
    }

    /// Creates the host of a task that uses no service: it has the limits, cancellation and gradient mode of this host,
    /// and all of its fuel.
    pub(crate) fn for_task(&self, max_depth: usize) -> Host {
        let start = self.clock.get().start;
        Host {
            cancel: self.cancel.clone(),
            fuel: self.fuel,
            memory: self.memory,
            tensor_text: self.tensor_text,
            max_depth,
            time: self.time,
            clock: Cell::new(Clock { start, ..Clock::default() }),
            runs: self.runs,
            grad_enabled: self.grad_enabled,
            ..Host::new()
        }
    }

    /// Adds the protections of a task.
    pub(crate) fn add_protections(&mut self, protections: Protections) {
        self.protected.get_mut().extend(protections);
    }

    /// Returns the protections of this run and leaves none.
    pub(crate) fn take_protections(&mut self) -> Protections {
        std::mem::take(self.protected.get_mut())
    }

    fn restart_clock(&mut self) {
        *self.clock.get_mut() = Clock::default();
        *self.polls.get_mut() = FREE;
    }

    /// Reads the clock, and at longer intervals the memory of the process; calls the [`Interrupt`].
    ///
    /// # Errors
    /// Returns `Limit` if the run was interrupted or has exceeded its time limit, or for the reason of [`Host::check_resident`].
    #[cold]
    fn check_time(&self) -> Result<(), KernelError> {
        let mut clock = self.clock.get();
        let now = Instant::now();
        let start = *clock.start.get_or_insert(now);
        let since = now - clock.last.unwrap_or(now);
        clock.last = Some(now);
        // Reading the clock costs as much as a small operator, so it is read only about every millisecond.
        clock.pace = match since {
            _ if since < TICK / 16 => (4 * clock.pace + 3).min(MAX_POLLS_PER_READING),
            _ if since < TICK => (2 * clock.pace + 1).min(MAX_POLLS_PER_READING),
            _ => clock.pace / 4,
        };
        self.polls.set(clock.pace);
        let interrupt =
            self.interrupt.filter(|_| now - clock.interrupt.unwrap_or(start) >= INTERRUPT_INTERVAL);
        if interrupt.is_some() {
            clock.interrupt = Some(now);
        }
        self.clock.set(clock);
        if interrupt.is_some_and(|interrupted| interrupted()) {
            return Err(KernelError::limit("the run was interrupted"));
        }
        let Some(time) = self.time else { return Ok(()) };
        if now - start <= time {
            return if now - start < resident::FIRST_READING { Ok(()) } else { self.check_resident(now) };
        }
        let text = format!("out of time: the limit of {:.3} seconds was reached", time.as_secs_f64());
        Err(KernelError::limit(text))
    }

    /// Compares the memory of the process with that at the first reading; see [`resident`].
    ///
    /// # Errors
    /// Returns `Limit` if it has grown beyond the run's memory limit and an allowance.
    fn check_resident(&self, now: Instant) -> Result<(), KernelError> {
        let mut clock = self.clock.get();
        let (Some(limit), false) =
            (self.memory, clock.resident.is_some_and(|(last, _)| now - last < resident::INTERVAL))
        else {
            return Ok(());
        };
        let Some(bytes) = resident::resident_bytes() else { return Ok(()) };
        let first = clock.resident.map_or(bytes, |(_, first)| first);
        clock.resident = Some((now, first));
        self.clock.set(clock);
        let growth = bytes.saturating_sub(first);
        if growth <= resident::bound(limit) {
            return Ok(());
        }
        Err(KernelError::limit(format!(
            "out of memory: the process grew by {growth} bytes during the call, `run.memory` is {limit} bytes"
        )))
    }

    fn out(&mut self) -> &mut (dyn Write + Send) {
        self.services().stdout.get_or_insert_with(|| Box::new(std::io::stdout()))
    }

    /// Prints bytes without any addition.
    ///
    /// # Errors
    /// Returns an error if the receiver fails.
    pub fn print(&mut self, bytes: &[u8]) -> Result<(), KernelError> {
        self.out()
            .write_all(bytes)
            .map_err(|e| KernelError::misuse(format!("writing the output failed: {e}")))
    }

    /// Flushes printed text.
    ///
    /// # Errors
    /// Returns an error if the receiver fails.
    pub fn flush(&mut self) -> Result<(), KernelError> {
        self.out().flush().map_err(|e| KernelError::misuse(format!("writing the output failed: {e}")))
    }

    /// Emits a warning.
    pub fn warn(&mut self, warning: Warning<'_>) {
        if self.receivers.is_some() {
            self.services();
        }
        if let Some(warn) = self.services.as_mut().and_then(|services| services.warn.as_mut()) {
            warn(warning);
        }
    }

    /// Sets the formatter of printed tensors.
    pub fn set_tensor_text(&mut self, text: TensorText) -> &mut Self {
        self.tensor_text = text;
        self
    }

    /// Formats a tensor as `print` does.
    ///
    /// # Errors
    /// Returns an error if the formatter or `out` fails.
    pub fn tensor_text(&self, out: &mut dyn std::fmt::Write, tensor: &Tensor) -> std::fmt::Result {
        (self.tensor_text)(out, tensor)
    }

    /// Sets the implementation of host functions.
    pub fn set_calls(&mut self, calls: impl HostCalls + 'static) -> &mut Self {
        self.services().calls = Some(Box::new(calls));
        self
    }

    /// Calls a host function.
    ///
    /// # Errors
    /// Returns `Unsupported` if no implementation is set, else the error of the function.
    pub fn call(
        &mut self,
        graph: &Graph,
        node: NodeId,
        args: &mut [IValue],
        rets: &mut Rets,
    ) -> KernelResult {
        let enabled = self.grad_enabled;
        match &mut self.services().calls {
            Some(calls) => {
                calls.set_grad_enabled(enabled);
                calls.call(graph, node, args, rets)
            }
            None => Err(KernelError::unsupported(format!(
                "`{}`: this host cannot call functions",
                graph.op_name(node)
            ))),
        }
    }

    /// Converts a host object to a value of a type; returns a value that already fits unchanged.
    ///
    /// # Errors
    /// Returns an error if the object cannot be converted.
    pub fn cast(&mut self, value: IValue, ty: Type) -> Result<IValue, KernelError> {
        if value.fits(ty.erase_shapes()) {
            return Ok(value);
        }
        match &mut self.services().calls {
            Some(calls) => calls.cast(value, ty),
            None => Err(KernelError::input(format!("a host value has type {}; expected {ty}", value.tag()))),
        }
    }

    /// Sets the receiver of profiled values; returns the old one.
    pub fn set_observer(
        &mut self,
        observer: Option<Box<dyn ProfileReceiver>>,
    ) -> Option<Box<dyn ProfileReceiver>> {
        std::mem::replace(&mut self.services().observer, observer)
    }

    /// Passes values to the observer, if one is set.
    pub fn observe(&mut self, graph: &Graph, node: NodeId, values: &[IValue]) {
        if let Some(observer) = self.services.as_mut().and_then(|services| services.observer.as_mut()) {
            observer.observe(graph, node, values);
        }
    }

    /// Sets the table that receives the times of nodes that the machine executes; returns the old one.
    pub fn set_timing(&mut self, timing: Option<NodeTimes>) -> Option<NodeTimes> {
        match (&mut self.services, timing) {
            (None, None) => None,
            (services, timing) => std::mem::replace(&mut services.get_or_insert_default().timing, timing),
        }
    }

    /// Sets the table that receives the numbers of executions of instructions; returns the old one.
    pub fn set_instruction_counts(&mut self, counts: Option<InstructionCounts>) -> Option<InstructionCounts> {
        match (&mut self.services, counts) {
            (None, None) => None,
            (services, counts) => std::mem::replace(&mut services.get_or_insert_default().counts, counts),
        }
    }

    /// Returns the table that receives the numbers of executions of instructions.
    #[inline]
    pub(crate) fn instruction_counts(&mut self) -> Option<&mut InstructionCounts> {
        self.services.as_mut()?.counts.as_mut()
    }

    /// Whether instructions are counted.
    #[inline]
    pub(crate) fn counts_instructions(&self) -> bool {
        self.services.as_ref().is_some_and(|services| services.counts.is_some())
    }

    /// Returns the start of the execution of a node, if nodes are timed.
    #[inline]
    pub(crate) fn start_timing(&self) -> Option<Instant> {
        self.services.as_ref()?.timing.as_ref().map(|_| Instant::now())
    }

    /// Adds the execution of a node.
    #[cold]
    pub(crate) fn add_timing(&mut self, graph: &Arc<Graph>, node: NodeId, start: Instant) {
        if let Some(timing) = self.services.as_mut().and_then(|services| services.timing.as_mut()) {
            timing.add(graph, node, start);
        }
    }

    /// Returns the default generator, used by operators without an explicit one.
    pub fn rng(&self) -> &Generator {
        self.generator.get_or_init(self.make_generator)
    }

    /// Replaces the default generator.
    pub fn set_rng(&mut self, generator: Generator) -> &mut Self {
        self.generator = OnceCell::from(generator);
        self
    }

    /// Replaces the default generator by one that `make` returns when a run first needs it.
    pub fn set_rng_source(&mut self, make: fn() -> Generator) -> &mut Self {
        (self.generator, self.make_generator) = (OnceCell::new(), make);
        self
    }

    /// Whether gradient recording is enabled.
    pub fn grad_enabled(&self) -> bool {
        self.grad_enabled
    }

    /// Enables or disables gradient recording; returns the previous state.
    pub fn set_grad_enabled(&mut self, enabled: bool) -> bool {
        std::mem::replace(&mut self.grad_enabled, enabled)
    }

    /// Returns the tape that records operators, if one is set.
    pub fn tape(&self) -> Option<&Tape> {
        self.tape.as_ref()
    }

    /// Sets the tape that records operators; returns the previous one.
    pub fn set_tape(&mut self, tape: Option<Tape>) -> Option<Tape> {
        std::mem::replace(&mut self.tape, tape)
    }

    /// Returns the session state of an extension. There is one state per type, created at first use.
    #[expect(clippy::missing_panics_doc, reason = "a state is stored under its own type")]
    pub fn state<T: Any + Send + Default>(&mut self) -> &mut T {
        let id = TypeId::of::<T>();
        let states = &mut self.services().states;
        let at = states.iter().position(|(t, _)| *t == id).unwrap_or_else(|| {
            states.push((id, Box::new(T::default())));
            states.len() - 1
        });
        states[at].1.downcast_mut().expect("invariant: stored under its own type")
    }
}
