//! The machine: runs [`Code`] on pooled registers.
//!
//! Frames are windows of two register vectors and stand on an explicit stack; calls of a program never use the
//! thread's. [`dispatch`] runs instructions inside one frame until it calls, returns or fails; this file moves between
//! frames. A machine that has run once runs again without allocating: its registers, its buffers and the memory of
//! tensors that died are kept.

mod calls;
mod dispatch;
mod steps;

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
        let bind = |buffer: &mut Vec<IValue>| {
            buffer.extend(args);
            Ok(())
        };
        self.run_bound(code, host, bind, std::mem::take)
    }

    /// Runs code on the arguments that `bind` puts into the machine's own buffer, or fails as `bind` does; `take` gets
    /// the results where they lie.
    ///
    /// # Errors
    /// As [`Vm::run`], and those of `bind`.
    #[inline]
    pub fn run_bound<E: From<ExecError>, R>(
        &mut self,
        code: &Arc<Code>,
        host: &mut Host,
        bind: impl FnOnce(&mut Vec<IValue>) -> Result<(), E>,
        take: impl FnOnce(&mut Rets) -> R,
    ) -> Result<R, E> {
        let mut args = std::mem::take(&mut self.args);
        let result = match bind(&mut args) {
            Ok(()) => self.on_thread(code, &mut args, host).map_err(|e| E::from(*e)),
            Err(error) => Err(error),
        };
        args.clear();
        self.args = args;
        match result {
            Ok(()) => Ok(take(&mut self.rets)),
            Err(error) => Err(error),
        }
    }

    /// Runs with this machine's recycler and the host's budget at work on the thread.
    fn on_thread(
        &mut self,
        code: &Arc<Code>,
        args: &mut Vec<IValue>,
        host: &mut Host,
    ) -> Result<(), Box<ExecError>> {
        // While this machine runs, its recycler is the thread's; a run inside it would find none and do without.
        let mut recycler = self.recycler.take();
        let budget = host.budget().cloned();
        let mut run = || match &budget {
            Some(budget) => budget.run(|| self.start(code, args, host)),
            None => self.start(code, args, host),
        };
        let result = match &mut recycler {
            Some(recycler) => recycler.run(run),
            None => run(),
        };
        self.recycler = recycler;
        result
    }

    #[inline(never)]
    fn start(
        &mut self,
        code: &Arc<Code>,
        args: &mut Vec<IValue>,
        host: &mut Host,
    ) -> Result<(), Box<ExecError>> {
        let failed = |e: KernelError| Box::new(ExecError::of(&e));
        let (words, values) = self.top(host.max_depth()).map_err(failed)?;
        self.bind(code, args, words, values).map_err(failed)?;
        // Most runs end without a call or an error: they need no frame.
        let (mut pc, mut fuel) = (0, 0);
        let exit = self.execute(code, &mut pc, (words, values), args, host, &mut fuel);
        if let Exit::Return(site) = exit {
            host.give_back(fuel);
            self.rets.clear();
            self.results(code, site, (words, values));
            return Ok(());
        }
        let code = Arc::clone(code);
        let frame = Frame { code, pc, words, values, entered: Vec::new(), after: After::Done };
        self.rets = self.drive(frame, Some(exit), fuel, args, host)?;
        Ok(())
    }

    /// Runs instructions of a frame until it is left.
    #[inline]
    fn execute(
        &mut self,
        code: &Code,
        pc: &mut usize,
        (words, values): (usize, usize),
        args: &mut Vec<IValue>,
        host: &mut Host,
        fuel: &mut u64,
    ) -> Exit {
        let s = &mut self.words[words..words + window(code)];
        let v = &mut self.values[values..values + code.n_values as usize];
        let callees = &self.program.callees;
        let mut env = Env { host, callees, args, rets: &mut self.rets, fuel: *fuel };
        let exit = dispatch::execute(code, pc, s, v, &mut env);
        *fuel = env.fuel;
        exit
    }

    /// Puts the results that a frame returns at a site into the buffer of results; nothing is left in its registers.
    #[inline]
    fn results(&mut self, code: &Code, site: u32, (words, values): (usize, usize)) {
        let s = &self.words[words..words + code.n_scalars as usize];
        let v = &mut self.values[values..values + code.n_values as usize];
        let range = &code.sites[site as usize].operands;
        let rets = &mut self.rets;
        match &code.operands[range.start as usize..range.end as usize] {
            &[operand] => rets.push(steps::fetch(operand, code, s, v)),
            operands => rets.extend(operands.iter().map(|&operand| steps::fetch(operand, code, s, v))),
        }
        steps::clear(v);
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
    #[inline]
    fn bind(
        &mut self,
        code: &Code,
        args: &mut Vec<IValue>,
        words: usize,
        values: usize,
    ) -> Result<(), KernelError> {
        if code.params.len() != args.len() {
            let (wanted, found) = (code.params.len(), args.len());
            return Err(KernelError::input(format!("expected {wanted} arguments but {found} were given")));
        }
        let (words_end, values_end) = (words + code.n_scalars as usize, values + code.n_values as usize);
        if self.words.len() < words + window(code) || self.values.len() < values_end {
            self.widen(code, words, values)?;
        }
        let (s, v) = (&mut self.words[words..words_end], &mut self.values[values..values_end]);
        s[..code.scalars.len()].copy_from_slice(&code.scalars);
        for (i, (arg, &param)) in args.iter_mut().zip(&code.params).enumerate() {
            steps::store(param, std::mem::take(arg), s, v)
                .map_err(|e| KernelError::input(format!("argument {i}: {}", e.message())))?;
        }
        args.clear();
        Ok(())
    }

    /// Makes room for the registers of code from these on.
    #[cold]
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
        Ok(())
    }

    /// Drops what a frame's value registers still hold.
    fn clear(&mut self, frame: &Frame) {
        steps::clear(&mut self.values[frame.values..frame.values + frame.code.n_values as usize]);
    }
}
