//! The machine: runs [`Code`] on pooled registers.
//!
//! Frames are windows of two register vectors and stand on an explicit stack; calls of a program never use the
//! thread's. [`dispatch`] runs instructions inside one frame until it calls, returns or fails; this file moves between
//! frames. A machine that has run once runs again without allocating: its registers, its buffers and the memory of
//! tensors that died are kept.

mod arguments;
mod calls;
mod dispatch;
mod steps;

pub use arguments::Arguments;

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

/// The functions of a program, compiled when first called. Shared by the machines that run it.
pub struct Program {
    callees: Arc<dyn Callees>,
    codes: RwLock<Codes>,
}

impl Program {
    /// A program over functions and classes.
    pub fn new(callees: Arc<dyn Callees>) -> Arc<Program> {
        Arc::new(Program { callees, codes: RwLock::new(HashMap::default()) })
    }

    /// The functions and classes.
    pub fn callees(&self) -> &Arc<dyn Callees> {
        &self.callees
    }

    /// The code of a function.
    ///
    /// # Errors
    /// If there is no such function, or its graph does not verify.
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

/// What becomes of a frame's results.
enum After {
    /// They go where the caller's site says.
    Results(u32),
    /// They complete a future, which goes where the caller's site says.
    Future(u32, Future),
    /// They complete an awaitable, and go where the caller's site says.
    Awaited(u32, Future),
    /// They are the results of the run.
    Done,
}

struct Frame {
    code: Arc<Code>,
    pc: usize,
    words: usize,
    values: usize,
    entered: Vec<IValue>,
    after: After,
}

/// Buffers that steps use, and the fuel at hand.
struct Env<'e> {
    host: &'e mut Host,
    callees: &'e Arc<dyn Callees>,
    /// Places for the arguments of one kernel: as many as any of the code has. Nothing is in them between kernels.
    slots: &'e mut [IValue],
    args: &'e mut Vec<IValue>,
    rets: &'e mut Rets,
    /// Backward jumps and calls until the host is asked again.
    fuel: u64,
}

/// Fuel taken from the host at a time: how many backward jumps pass until cancellation is noticed.
const SLICE: u64 = 1024;

/// Takes one unit of the fuel at hand, or of more that the host grants.
fn burn(fuel: &mut u64, host: &mut Host) -> Result<(), KernelError> {
    if *fuel == 0 {
        *fuel = host.grant(SLICE)?;
    }
    *fuel -= 1;
    Ok(())
}

/// Words that a frame can reach at least; those beyond its own are never looked at.
const WINDOW: usize = 256;

/// Words that the frame of some code can reach.
fn window(code: &Code) -> usize {
    WINDOW.max(code.n_scalars as usize)
}

/// A machine for one run at a time.
pub struct Vm {
    program: Arc<Program>,
    cache: Codes,
    words: Vec<u64>,
    values: Vec<IValue>,
    frames: Vec<Frame>,
    slots: Vec<IValue>,
    args: Vec<IValue>,
    rets: Rets,
    recycler: Option<Recycler>,
    unwinding: u32,
}

/// Errors in context managers' exits inside unwinding inside exits … end here.
const MAX_UNWINDING: u32 = 8;

impl Vm {
    /// Bytes of freed tensors that a machine keeps unless told otherwise.
    pub const RECYCLED: usize = 256 << 20;

    /// A machine for a program.
    pub fn new(program: Arc<Program>) -> Vm {
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
            unwinding: 0,
        }
    }

    /// A machine that keeps at most `bytes` of its freed tensors for the next ones, and as much again of the results
    /// that its callers drop. [`Vm::new`] makes one with [`Vm::RECYCLED`].
    pub fn with_recycled(program: Arc<Program>, bytes: usize) -> Vm {
        Vm { recycler: Some(Recycler::new(bytes)), ..Vm::new(program) }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Gives back the memory kept for further runs.
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
    /// As [`Vm::run`], and if there is no such function.
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
    /// What the program raises, with the calls that were active; `Limit` for fuel, memory, cancellation, depth;
    /// `Unsupported` for operators without a kernel.
    pub fn run(
        &mut self,
        code: &Arc<Code>,
        args: impl IntoIterator<Item = IValue>,
        host: &mut Host,
    ) -> Result<Rets, ExecError> {
        let bind = |given: &mut Arguments<'_>| {
            args.into_iter().for_each(|arg| given.push(arg));
            Ok(())
        };
        Ok(match self.run_bound(code, host, bind)? {
            IValue::Tuple(values) if code.graph.outputs().len() != 1 => values.items().to_vec(),
            value => vec![value],
        })
    }

    /// Runs code on the arguments that `bind` gives, or fails as `bind` does. Several results come as a tuple.
    ///
    /// # Errors
    /// As [`Vm::run`], and those of `bind`.
    #[inline]
    pub fn run_bound<E: From<ExecError>>(
        &mut self,
        code: &Arc<Code>,
        host: &mut Host,
        bind: impl FnOnce(&mut Arguments<'_>) -> Result<(), E>,
    ) -> Result<IValue, E> {
        // While this machine runs, its recycler and the host's budget are those of the thread; a run inside it finds
        // neither and does without.
        let mut recycler = self.recycler.take();
        let budget = host.lend_budget();
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

    /// Runs code from its beginning to its end.
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
        let (s, v, mut env) = self.window(code, (words, values), args, host).map_err(failed)?;
        let mut given = Arguments::of_frame(code, s, v);
        if let Err(error) = bind(&mut given).and_then(|()| given.complete().map_err(|e| failed(e).into())) {
            steps::clear(v);
            return Err(error);
        }
        // Most runs end without a call or an error: they need no frame.
        let mut pc = 0;
        let exit = dispatch::execute(code, &mut pc, s, v, &mut env);
        let fuel = env.fuel;
        if let Exit::Return(site) = exit {
            let value = steps::returned(code, site, s, v);
            host.give_back(fuel);
            return Ok(value);
        }
        let code = Arc::clone(code);
        let frame = Frame { code, pc, words, values, entered: Vec::new(), after: After::Done };
        Ok(self.drive(frame, Some(exit), fuel, args, host)?)
    }

    /// The registers of a frame of code, which begin there, and what its steps use.
    #[inline(always)]
    fn window<'a>(
        &'a mut self,
        code: &Code,
        (words, values): (usize, usize),
        args: &'a mut Vec<IValue>,
        host: &'a mut Host,
    ) -> Result<(&'a mut [u64], &'a mut [IValue], Env<'a>), KernelError> {
        let (words_end, values_end) = (words + window(code), values + code.n_values as usize);
        if self.words.len() < words_end
            || self.values.len() < values_end
            || self.slots.len() < code.n_slots as usize
        {
            self.widen(code, words, values)?;
        }
        let callees = &self.program.callees;
        let env = Env { host, callees, slots: &mut self.slots, args, rets: &mut self.rets, fuel: 0 };
        Ok((&mut self.words[words..words_end], &mut self.values[values..values_end], env))
    }

    /// Runs instructions of a frame until it is left.
    fn execute(
        &mut self,
        frame: &mut Frame,
        args: &mut Vec<IValue>,
        host: &mut Host,
        fuel: &mut u64,
    ) -> Result<Exit, KernelError> {
        let (s, v, mut env) = self.window(&frame.code, (frame.words, frame.values), args, host)?;
        env.fuel = *fuel;
        let exit = dispatch::execute(&frame.code, &mut frame.pc, s, v, &mut env);
        *fuel = env.fuel;
        Ok(exit)
    }

    /// The code of a function, from this machine's own table if it was called before.
    fn code(&mut self, name: Symbol) -> Result<Arc<Code>, KernelError> {
        if let Some(code) = self.cache.get(&name) {
            return Ok(Arc::clone(code));
        }
        let code = self.program.code(name)?;
        self.cache.insert(name, Arc::clone(&code));
        Ok(code)
    }

    /// Where the registers of a frame above all others begin.
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

    /// A frame above all others, its parameters bound. Takes the arguments out of the buffer.
    fn frame(
        &mut self,
        code: Arc<Code>,
        args: &mut Vec<IValue>,
        after: After,
        max_depth: usize,
    ) -> Result<Frame, KernelError> {
        let (words, values) = self.top(max_depth)?;
        self.bind(&code, args, words, values)?;
        Ok(Frame { code, pc: 0, words, values, entered: Vec::new(), after })
    }

    /// Makes a window of registers for code and puts constants and arguments into it.
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
        let mut given = Arguments::of_frame(code, s, v);
        args.drain(..).for_each(|arg| given.push(arg));
        given.complete()
    }

    /// Makes room for the registers of code from these on.
    fn widen(&mut self, code: &Code, words: usize, values: usize) -> Result<(), KernelError> {
        let (n_scalars, n_values) = (code.n_scalars as usize, code.n_values as usize);
        if self.words.len() < words + window(code) {
            flambeau_tensor::check_budget(n_scalars * size_of::<u64>())?;
            self.words.resize(words + window(code), 0);
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

    /// The registers of a frame.
    fn registers(&mut self, frame: &Frame) -> (&mut [u64], &mut [IValue]) {
        let (n_scalars, n_values) = (frame.code.n_scalars as usize, frame.code.n_values as usize);
        (&mut self.words[frame.words..][..n_scalars], &mut self.values[frame.values..][..n_values])
    }

    /// Drops what a frame's value registers still hold.
    fn clear(&mut self, frame: &Frame) {
        steps::clear(self.registers(frame).1);
    }
}
