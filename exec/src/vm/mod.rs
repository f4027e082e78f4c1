//! Virtual machine: runs [`Code`] on pooled registers.
//!
//! Frames are windows into two register vectors and are kept on an explicit stack, so calls of a program do not consume
//! native stack. [`dispatch`] executes instructions of one frame until it calls, returns or fails; this file performs
//! the transitions between frames. After its first run a machine runs again without allocations: it keeps its
//! registers, its buffers and the memory of freed tensors.

mod arguments;
mod calls;
mod common;
mod dicts;
mod dispatch;
mod fast;
mod spans;
mod steps;
mod tasks;
mod views;

pub use arguments::{ArgumentSink, Arguments};

use crate::bytecode::Code;
use crate::callees::Callees;
use crate::error::{ExecError, Fault, KernelError};
use crate::host::Host;
use crate::kernel::Rets;
use dispatch::Exit;
use flambeau_ir::Symbol;
use flambeau_ir::value::{Future, IValue};
use flambeau_tensor::Recycler;
use hashbrown::HashMap;
use parking_lot::RwLock;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

type Codes = HashMap<Symbol, Arc<Code>, FxBuildHasher>;

/// The functions of a program, compiled at their first call. Shared by the machines that run the program.
pub struct CompiledProgram {
    callees: Arc<dyn Callees>,
    codes: RwLock<Codes>,
}

impl CompiledProgram {
    /// Creates a program from functions and classes.
    pub fn new(callees: Arc<dyn Callees>) -> Arc<CompiledProgram> {
        Arc::new(CompiledProgram { callees, codes: RwLock::new(HashMap::default()) })
    }

    /// Returns the functions and classes.
    pub fn callees(&self) -> &Arc<dyn Callees> {
        &self.callees
    }

    /// Returns the code of a function.
    ///
    /// # Errors
    /// Returns an error if there is no such function or its graph does not verify.
    pub fn code(&self, name: Symbol) -> Result<Arc<Code>, KernelError> {
        if let Some(code) = self.codes.read().get(&name) {
            return Ok(Arc::clone(code));
        }
        let graph = self.callees.function(name)?;
        let graph = graph.ok_or_else(|| KernelError::input(format!("unknown function '{name}'")))?;
        let code = Arc::new(Code::compile_function(&graph, name, &*self.callees)?);
        Ok(Arc::clone(self.codes.write().entry(name).or_insert(code)))
    }
}

/// The destination of a frame's results.
enum ReturnTarget {
    /// The destinations of the caller's site.
    Results(u32),
    /// A future, which goes to the destination of the caller's site.
    Future(u32, Future),
    /// An awaitable, and the destinations of the caller's site.
    Awaited(u32, Future),
    /// The results of the run.
    Done,
}

struct Frame {
    code: Arc<Code>,
    pc: usize,
    /// Start of the frame's registers in the machine's words, and in its values.
    words: usize,
    values: usize,
    /// The entered context managers.
    entered: Vec<IValue>,
    after: ReturnTarget,
}

/// Buffers for steps, and the granted fuel.
struct StepBuffers<'e> {
    host: &'e mut Host,
    callees: &'e Arc<dyn Callees>,
    /// Argument slots of one kernel: the maximal number of the code. All are `None` between kernels.
    slots: &'e mut [IValue],
    args: &'e mut Vec<IValue>,
    rets: &'e mut Rets,
    /// Whether tasks that the machine forked have not been joined. Only at exits the machine forks and joins.
    has_tasks: bool,
    /// Number of backward jumps and calls until the next request to the host.
    fuel: u64,
}

/// Amount of fuel requested at a time: the number of backward jumps until cancellation is noticed.
const FUEL_QUANTUM: u64 = 1024;

/// Consumes one unit of the granted fuel; requests more from the host if there is none.
#[inline(always)]
fn consume_fuel(fuel: &mut u64, host: &mut Host) -> Result<(), KernelError> {
    if *fuel == 0 {
        *fuel = host.grant(FUEL_QUANTUM)?;
    }
    *fuel -= 1;
    Ok(())
}

/// Minimal number of words of a frame, so that an 8-bit index of a word needs no bounds check; words beyond the frame's own
/// are never read.
const MIN_FRAME_WORDS: usize = 256;

/// Returns the number of words that a frame of this code takes.
fn frame_words(code: &Code) -> usize {
    MIN_FRAME_WORDS.max(code.n_scalars as usize)
}

/// A virtual machine for one run at a time.
pub struct Vm {
    program: Arc<CompiledProgram>,
    cache: Codes,
    words: Vec<u64>,
    values: Vec<IValue>,
    frames: Vec<Frame>,
    slots: Vec<IValue>,
    args: Vec<IValue>,
    rets: Rets,
    recycler: Option<Recycler>,
    unwind_depth: u32,
    tasks: tasks::Tasks,
}

/// Maximal nesting of errors raised by context managers' exits during unwinding.
const MAX_UNWIND_DEPTH: u32 = 8;

impl Vm {
    /// Default limit of recycled tensor memory, in bytes.
    pub const RECYCLED: usize = 256 << 20;

    /// Creates a machine for a program.
    pub fn new(program: Arc<CompiledProgram>) -> Vm {
        Vm {
            program,
            cache: HashMap::default(),
            words: Vec::new(),
            values: Vec::new(),
            frames: Vec::new(),
            slots: Vec::new(),
            args: Vec::new(),
            rets: Rets::new(),
            recycler: Some(Recycler::new(Self::RECYCLED)),
            unwind_depth: 0,
            tasks: tasks::Tasks::default(),
        }
    }

    /// Creates a machine that recycles at most `bytes` of memory of its freed tensors, and as much again of results
    /// dropped by callers. [`Vm::new`] uses [`Vm::RECYCLED`].
    pub fn with_recycled(program: Arc<CompiledProgram>, bytes: usize) -> Vm {
        Vm { recycler: Some(Recycler::new(bytes)), ..Vm::new(program) }
    }

    /// Returns the program.
    pub fn program(&self) -> &Arc<CompiledProgram> {
        &self.program
    }

    /// Frees the memory kept for further runs.
    pub fn trim(&mut self) {
        self.words = Vec::new();
        self.values = Vec::new();
        if let Some(recycler) = &mut self.recycler {
            recycler.clear();
        }
    }

    /// Runs a function by name.
    ///
    /// # Errors
    /// Returns the errors of [`Vm::run`], and an error if there is no such function.
    pub fn call(
        &mut self,
        function: Symbol,
        args: impl IntoIterator<Item = IValue>,
        host: &mut Host,
    ) -> Result<Rets, ExecError> {
        let code = self.code(function).map_err(|e| ExecError::of(&e))?;
        self.run(&code, args, host)
    }

    /// Runs code on arguments.
    ///
    /// # Errors
    /// Returns the error that the program raises with the active calls; `Limit` for fuel, memory, cancellation and
    /// depth; `Unsupported` for operators without a kernel.
    pub fn run(
        &mut self,
        code: &Arc<Code>,
        args: impl IntoIterator<Item = IValue>,
        host: &mut Host,
    ) -> Result<Rets, ExecError> {
        let bind = |arguments: &mut Arguments<'_>| {
            args.into_iter().for_each(|arg| arguments.push(arg));
            Ok(())
        };
        Ok(match self.run_bound(code, host, bind)? {
            IValue::Tuple(values) if code.graph.outputs().len() != 1 => values.items().to_vec(),
            value => vec![value],
        })
    }

    /// Runs code on arguments supplied by `bind`. Several results are returned as a tuple.
    ///
    /// # Errors
    /// Returns the errors of [`Vm::run`] and those of `bind`.
    #[inline]
    pub fn run_bound<E: From<ExecError>>(
        &mut self,
        code: &Arc<Code>,
        host: &mut Host,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), E>,
    ) -> Result<IValue, E> {
        // During the run the machine's recycler and the host's budget are installed for the thread; a nested run finds
        // neither and does without.
        let mut recycler = self.recycler.take();
        let budget = host.take_budget();
        let mut args = std::mem::take(&mut self.args);
        let outer = host.begin_run();
        let run = || {
            let start = || self.start(code, &mut args, &mut *host, bind);
            match &budget {
                Some(budget) => budget.run(start),
                None => start(),
            }
        };
        let result = match &mut recycler {
            Some(recycler) => recycler.run(run),
            None => run(),
        };
        host.end_run(outer);
        host.return_budget(budget);
        args.clear();
        self.args = args;
        self.recycler = recycler;
        result
    }

    /// Runs code to its end.
    #[inline]
    fn start<E: From<ExecError>>(
        &mut self,
        code: &Arc<Code>,
        args: &mut Vec<IValue>,
        host: &mut Host,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), E>,
    ) -> Result<IValue, E> {
        let failed = |e: KernelError| ExecError::of(&e);
        let (words, values) = self.top(host.max_depth()).map_err(failed)?;
        self.reserve(code, words, values).map_err(failed)?;
        let (s, v, mut env) = self.frame_slices(code, (words, values), args, host);
        let mut arguments = Arguments::of_frame(code, s, v);
        if let Err(error) =
            bind(&mut arguments).and_then(|()| arguments.complete().map_err(|e| failed(e).into()))
        {
            steps::clear(v);
            return Err(error);
        }
        // Most runs end without a call or an error and need no frame.
        let mut pc = 0;
        let exit = dispatch::execute(code, &mut pc, s, v, &mut env);
        let fuel = env.fuel;
        if let Exit::Return(site) = exit {
            let value = steps::returned(code, site, s, v);
            host.return_fuel(fuel);
            return Ok(value);
        }
        let code = Arc::clone(code);
        let frame = Frame { code, pc, words, values, entered: Vec::new(), after: ReturnTarget::Done };
        Ok(self.drive(frame, Some(exit), fuel, args, host)?)
    }

    /// Returns the registers of a frame with the given start indices, which exist, and the environment of its steps.
    #[inline(always)]
    fn frame_slices<'a>(
        &'a mut self,
        code: &Code,
        (words, values): (usize, usize),
        args: &'a mut Vec<IValue>,
        host: &'a mut Host,
    ) -> (&'a mut [u64], &'a mut [IValue], StepBuffers<'a>) {
        let (words_end, values_end) = (words + frame_words(code), values + code.n_values as usize);
        let callees = &self.program.callees;
        let (has_tasks, slots, rets) = (!self.tasks.is_idle(), &mut self.slots[..], &mut self.rets);
        let env = StepBuffers { host, callees, slots, args, rets, has_tasks, fuel: 0 };
        (&mut self.words[words..words_end], &mut self.values[values..values_end], env)
    }

    /// Executes instructions of a frame until it is left.
    fn execute(
        &mut self,
        frame: &mut Frame,
        args: &mut Vec<IValue>,
        host: &mut Host,
        fuel: &mut u64,
    ) -> Result<Exit, KernelError> {
        self.reserve(&frame.code, frame.words, frame.values)?;
        let (s, v, mut env) = self.frame_slices(&frame.code, (frame.words, frame.values), args, host);
        env.fuel = *fuel;
        let exit = dispatch::execute(&frame.code, &mut frame.pc, s, v, &mut env);
        *fuel = env.fuel;
        Ok(exit)
    }

    /// Returns the code of a function from this machine's cache, or from the program.
    fn code(&mut self, name: Symbol) -> Result<Arc<Code>, KernelError> {
        if let Some(code) = self.cache.get(&name) {
            return Ok(Arc::clone(code));
        }
        let code = self.program.code(name)?;
        self.cache.insert(name, Arc::clone(&code));
        Ok(code)
    }

    /// Returns the start indices of a new top frame's registers.
    #[inline]
    fn top(&self, max_depth: usize) -> Result<(usize, usize), KernelError> {
        if self.frames.len() >= max_depth {
            return Err(KernelError::new(Fault::Limit, "RecursionError", "too many nested calls"));
        }
        Ok(self
            .frames
            .last()
            .map_or((0, 0), |f| (f.words + f.code.n_scalars as usize, f.values + f.code.n_values as usize)))
    }

    /// Creates a new top frame and binds its parameters; drains the argument buffer.
    fn frame(
        &mut self,
        code: Arc<Code>,
        args: &mut Vec<IValue>,
        after: ReturnTarget,
        max_depth: usize,
    ) -> Result<Frame, KernelError> {
        let (words, values) = self.top(max_depth)?;
        self.bind(&code, args, words, values)?;
        Ok(Frame { code, pc: 0, words, values, entered: Vec::new(), after })
    }

    /// Allocates a register window for code and stores constants and arguments.
    fn bind(
        &mut self,
        code: &Code,
        args: &mut Vec<IValue>,
        words: usize,
        values: usize,
    ) -> Result<(), KernelError> {
        self.widen(code, words, values)?;
        let s = &mut self.words[words..words + code.n_scalars as usize];
        let v = &mut self.values[values..values + code.n_values as usize];
        let mut arguments = Arguments::of_frame(code, s, v);
        args.drain(..).for_each(|arg| arguments.push(arg));
        arguments.complete()
    }

    /// Makes sure that the registers of a frame with the given start indices exist.
    #[inline(always)]
    fn reserve(&mut self, code: &Code, words: usize, values: usize) -> Result<(), KernelError> {
        let exist = self.words.len() >= words + frame_words(code)
            && self.values.len() >= values + code.n_values as usize
            && self.slots.len() >= code.n_slots as usize;
        if exist { Ok(()) } else { self.widen(code, words, values) }
    }

    /// Extends the register vectors for a window with the given start indices.
    fn widen(&mut self, code: &Code, words: usize, values: usize) -> Result<(), KernelError> {
        let (n_scalars, n_values) = (code.n_scalars as usize, code.n_values as usize);
        if self.words.len() < words + frame_words(code) {
            flambeau_tensor::check_budget(n_scalars * size_of::<u64>())?;
            self.words.resize(words + frame_words(code), 0);
        }
        if self.values.len() < values + n_values {
            flambeau_tensor::check_budget(n_values * size_of::<IValue>())?;
            self.values.resize(values + n_values, IValue::None);
        }
        if self.slots.len() < code.n_slots as usize {
            flambeau_tensor::check_budget(code.n_slots as usize * size_of::<IValue>())?;
            self.slots.resize(code.n_slots as usize, IValue::None);
        }
        Ok(())
    }

    /// Returns the registers of a frame.
    fn registers(&mut self, frame: &Frame) -> (&mut [u64], &mut [IValue]) {
        let (n_scalars, n_values) = (frame.code.n_scalars as usize, frame.code.n_values as usize);
        (&mut self.words[frame.words..][..n_scalars], &mut self.values[frame.values..][..n_values])
    }

    /// Drops the values in a frame's registers.
    fn clear(&mut self, frame: &Frame) {
        steps::clear(self.registers(frame).1);
    }
}
