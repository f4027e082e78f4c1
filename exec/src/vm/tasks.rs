//! Concurrent tasks of a run: fork, suspension, join.
//!
//! A task that the emitter found isolated (`emit/tasks.rs`) is a [`ScheduledTask`]: a machine of its own with one suspended frame.
//! Ready tasks are in a [`TaskQueue`], which belongs to the machine of a run and is shared by the machines of its tasks.
//! Worker threads of the process run them in the order of their forks, at most one worker less than the number of threads
//! of the run; the thread of the run takes tasks itself whenever it has to wait. A task that waits for an incomplete
//! future leaves its thread, and the future's completion puts it back into the queue. So no worker ever blocks, and no
//! task waits for a task that no thread runs.
//!
//! The results are those of the reference, which runs a task at its fork:
//! - A frame joins its tasks before it does anything that a task could observe, and before it returns, fails or bails
//!   out.
//! - The errors of a task are those of its future. A limit that ends a task ends the run: it is raised at the fork, once
//!   the frame joins the task. Nothing observable happened in between.
//! - A task inherits the limits, the cancellation, the gradient mode and the budget of its frame. The fuel that it used is
//!   taken from the frame at the join, and its write protections are added to those of the frame. If the fuel of all does
//!   not suffice, that is an error as in the reference, but its location is the join.
//! - Memory is the exception: tasks that run concurrently hold their memory at the same time.
//!
//! Tests force interleavings: with a seed, tasks are never run by workers, the next task is chosen at random, and tasks are
//! suspended at random calls.

use super::dispatch::Exit;
use super::{Frame, ReturnTarget, Vm, steps};
use crate::bytecode::SiteOp;
use crate::error::{ExecError, Fault, KernelError};
use crate::host::Host;
use crate::kernel::{Rets, panic_message};
use crate::protections::Protections;
use flambeau_ir::value::{Future, IValue};
use flambeau_tensor::{MemoryBudget, threads};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Maximal number of queued tasks of a run; further tasks run at their forks. Bounds the memory of programs that fork in
/// loops.
const MAX_QUEUED: usize = 1024;

/// Bytes of freed tensors that the machine of a task keeps.
const RECYCLED: usize = 16 << 20;

/// The tasks of one machine.
#[derive(Default)]
pub(super) struct Tasks {
    /// Tasks that were started and not joined, in the order of their forks: the depth of their frames ascends.
    pending: VecDeque<PendingTask>,
    task_queue: Option<Arc<TaskQueue>>,
    /// Whether this machine belongs to a task and may be suspended.
    may_suspend: bool,
    /// The limit that ended a joined task, with its fork.
    limit: Option<(ForkSite, ExecError)>,
    /// Seed of a forced interleaving.
    seed: Option<u64>,
}

/// A task that was started by a frame of this machine.
struct PendingTask {
    fork: ForkSite,
    future: Future,
    end: Arc<Mutex<Option<End>>>,
}

/// The position of a fork: the number of frames below its frame, and its instruction.
#[derive(Clone, Copy)]
struct ForkSite {
    depth: usize,
    pc: usize,
}

/// The state, besides its result, that a finished task passes to the frame that joins it.
struct End {
    fuel: u64,
    protections: Protections,
    limit: Option<ExecError>,
}

/// A frame that was left; `left` is the exit to continue from, or `None` to execute the instruction again.
pub(super) struct SuspendedFrame {
    frame: Frame,
    left: Option<Exit>,
}

/// The end of [`Vm::drive_until`].
pub(super) enum DriveEnd {
    /// The run has ended with this value.
    Value(IValue),
    /// The run continues when the future is complete.
    Suspended(Box<SuspendedFrame>, Future),
}

/// The decision about an exit of a frame while there are tasks.
pub(super) enum ExitDecision {
    /// The exit takes place.
    Go(Exit),
    /// The next instruction follows.
    Next,
    /// The run must be suspended; the exit is repeated if it is given.
    Suspend(Option<Exit>, Future),
}

/// A task that is ready to run or suspended.
struct ScheduledTask {
    vm: Vm,
    host: Host,
    budget: Option<MemoryBudget>,
    next: Option<Box<SuspendedFrame>>,
    future: Future,
    end: Arc<Mutex<Option<End>>>,
    /// The fuel at its start.
    fuel: u64,
}

/// The queue of ready tasks of one run.
pub(super) struct TaskQueue {
    /// Number of threads of the run.
    threads: usize,
    ready: Mutex<ReadyTasks>,
    changed: Condvar,
}

#[derive(Default)]
struct ReadyTasks {
    tasks: VecDeque<Box<ScheduledTask>>,
    /// Number of workers that run tasks of this queue or were requested to.
    workers: usize,
    /// Number of threads that wait for a change.
    waiting: usize,
    /// Machines of finished tasks.
    idle: Vec<Vm>,
    /// State of the generator that forces an interleaving.
    random: Option<u64>,
}

impl Tasks {
    /// Whether no task is pending.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Forces an interleaving of tasks, or ends that.
    pub(super) fn force(&mut self, seed: Option<u64>) {
        self.seed = seed;
        self.task_queue = None;
    }

    /// Whether a forced interleaving suspends this machine now.
    #[inline]
    pub(super) fn yields(&self) -> bool {
        self.may_suspend && self.task_queue.as_ref().is_some_and(|task_queue| task_queue.draws_suspension())
    }

    /// Forbids suspension until [`Tasks::restore`]; returns the previous state.
    pub(super) fn forbid_suspension(&mut self) -> bool {
        std::mem::replace(&mut self.may_suspend, false)
    }

    /// Restores the state that [`Tasks::forbid_suspension`] returned.
    pub(super) fn restore(&mut self, may_suspend: bool) {
        self.may_suspend = may_suspend;
    }

    /// Takes over the write protections of a complete task and the error of an exceeded limit; returns the fuel that it used.
    fn join_task(&mut self, task: Option<PendingTask>, host: &mut Host) -> u64 {
        let Some(PendingTask { fork, end, .. }) = task else { return 0 };
        let Some(end) = end.lock().take() else { return 0 };
        host.add_protections(end.protections);
        if let Some(error) = end.limit {
            self.limit = Some((fork, error));
        }
        end.fuel
    }
}

impl Vm {
    /// Forces an interleaving of concurrent tasks that follows from the seed, on the calling thread; `None` ends that.
    /// For tests: results do not depend on the interleaving.
    pub fn force_interleaving(&mut self, seed: Option<u64>) {
        self.tasks.force(seed);
    }

    /// Whether the call of a site starts a concurrent task.
    pub(super) fn starts_task(&self, frame: &Frame, at: u32, host: &Host) -> bool {
        let SiteOp::Fork(forked) = &frame.code.sites[at as usize].work else { return false };
        forked.concurrent
            && (self.tasks.seed.is_some() || threads::count() > 1)
            && host.is_unobserved()
            && !host.counts_instructions()
            && self.frames.len() + 1 < host.max_depth()
            && self
                .tasks
                .task_queue
                .as_ref()
                .is_none_or(|task_queue| task_queue.ready.lock().tasks.len() < MAX_QUEUED)
    }

    /// Starts the task of a fork and continues the frame. The arguments of the task are in the buffer.
    pub(super) fn start_task(
        &mut self,
        mut frame: Frame,
        at: u32,
        args: &mut Vec<IValue>,
        host: &mut Host,
        fuel: &mut u64,
    ) -> Result<Frame, (Frame, KernelError)> {
        let code = Arc::clone(&frame.code);
        let SiteOp::Fork(forked) = &code.sites[at as usize].work else {
            return Err((frame, KernelError::internal("a site without a task")));
        };
        let target = match self.subgraph(&forked.body, &forked.code, code.function) {
            Ok(target) => target,
            Err(error) => return Err((frame, error)),
        };
        host.return_fuel(std::mem::take(fuel));
        let task_queue = self.task_queue();
        let mut vm = task_queue
            .ready
            .lock()
            .idle
            .pop()
            .unwrap_or_else(|| Vm::with_recycled(Arc::clone(&self.program), RECYCLED));
        let task_host = host.for_task(host.max_depth() - self.frames.len() - 1);
        let first = match vm.frame(target, args, ReturnTarget::Done, task_host.max_depth()) {
            Ok(first) => first,
            Err(error) => return Err((frame, error)),
        };
        vm.tasks.may_suspend = true;
        vm.tasks.seed = self.tasks.seed;
        vm.tasks.task_queue = Some(Arc::clone(&task_queue));
        let (future, end) = (Future::new(forked.elem), Arc::new(Mutex::new(None)));
        let fork = ForkSite { depth: self.frames.len(), pc: frame.pc };
        self.tasks.pending.push_back(PendingTask { fork, future: future.clone(), end: Arc::clone(&end) });
        task_queue.push(Box::new(ScheduledTask {
            vm,
            fuel: task_host.fuel(),
            host: task_host,
            budget: MemoryBudget::active(),
            next: Some(Box::new(SuspendedFrame { frame: first, left: None })),
            future: future.clone(),
            end,
        }));
        let mut rets = Rets::new();
        rets.push(IValue::Future(future));
        let (s, v) = self.registers(&frame);
        match steps::scatter(&code, &code.sites[at as usize], &mut rets, s, v) {
            Ok(()) => {
                frame.pc += 1;
                Ok(frame)
            }
            Err(error) => Err((frame, error)),
        }
    }

    /// Returns the task queue of this machine, with the number of threads of the current run.
    fn task_queue(&mut self) -> Arc<TaskQueue> {
        let count = threads::count();
        match &self.tasks.task_queue {
            Some(task_queue) if task_queue.threads == count || self.tasks.may_suspend => {
                Arc::clone(task_queue)
            }
            _ => {
                let ready = ReadyTasks { random: self.tasks.seed, ..ReadyTasks::default() };
                let task_queue =
                    TaskQueue { threads: count, ready: Mutex::new(ready), changed: Condvar::new() };
                Arc::clone(self.tasks.task_queue.insert(Arc::new(task_queue)))
            }
        }
    }

    /// Joins the tasks that an exit requires to be complete.
    pub(super) fn join_required(
        &mut self,
        frame: &mut Frame,
        exit: Exit,
        fuel: &mut u64,
        host: &mut Host,
    ) -> ExitDecision {
        let first = match &exit {
            Exit::Join(operand) => {
                let (_, v) = self.registers(frame);
                let future = steps::pending(*operand, &frame.code, v).cloned();
                return match future {
                    Some(future) if self.tasks.may_suspend => ExitDecision::Suspend(None, future),
                    Some(future) => {
                        // A future of the host is left to the operator that waits for it.
                        if let Some(task_queue) = &self.tasks.task_queue {
                            task_queue.help(&future);
                        }
                        self.join_completed(frame, fuel, host)
                    }
                    None => self.join_completed(frame, fuel, host),
                };
            }
            Exit::Sync | Exit::Fail(_) | Exit::BailOut(_) => 0,
            Exit::Return(_) => {
                let depth = self.frames.len();
                self.tasks.pending.partition_point(|task| task.fork.depth < depth)
            }
            _ => return ExitDecision::Go(exit),
        };
        let mut used = 0_u64;
        while self.tasks.pending.len() > first {
            if let Some(task) = self.tasks.pending.back()
                && !task.future.is_done()
            {
                let future = task.future.clone();
                if self.tasks.may_suspend {
                    // The fuel of the tasks joined so far is paid before the frame is left.
                    return match self.charge_fuel(frame, used, fuel, host) {
                        Some(failed) => ExitDecision::Suspend(Some(failed), future),
                        None => ExitDecision::Suspend(Some(exit), future),
                    };
                }
                if let Some(task_queue) = &self.tasks.task_queue {
                    task_queue.help(&future);
                }
            }
            let task = self.tasks.pending.pop_back();
            used = used.saturating_add(self.tasks.join_task(task, host));
        }
        match (self.charge_fuel(frame, used, fuel, host), exit) {
            (Some(failed), _) => ExitDecision::Go(failed),
            (None, Exit::Sync) => ExitDecision::Next,
            (None, exit) => ExitDecision::Go(exit),
        }
    }

    /// Removes the first pending tasks that are complete.
    fn join_completed(&mut self, frame: &mut Frame, fuel: &mut u64, host: &mut Host) -> ExitDecision {
        let mut used = 0_u64;
        while self.tasks.limit.is_none()
            && self.tasks.pending.front().is_some_and(|task| task.future.is_done())
        {
            let task = self.tasks.pending.pop_front();
            used = used.saturating_add(self.tasks.join_task(task, host));
        }
        self.charge_fuel(frame, used, fuel, host)
            .map_or(ExitDecision::Next, |failed| self.join_required(frame, failed, fuel, host))
    }

    /// Takes the fuel that joined tasks used from the run; returns the failure of the frame if there is not enough, or if
    /// a limit ended a task.
    fn charge_fuel(&mut self, frame: &mut Frame, used: u64, fuel: &mut u64, host: &mut Host) -> Option<Exit> {
        if let Some((fork, error)) = self.tasks.limit.take() {
            // The error is raised at the fork, as if the task had run there.
            while self.frames.len() > fork.depth {
                self.clear(frame);
                *frame = self.frames.pop().expect("invariant: more frames than below the fork");
            }
            frame.pc = fork.pc;
            return Some(Exit::Fail(KernelError::again(&error)));
        }
        if used == 0 {
            return None;
        }
        host.return_fuel(std::mem::take(fuel));
        host.tick(used).err().map(Exit::Fail)
    }

    /// Suspends a frame that this machine drives.
    pub(super) fn suspend(&mut self, frame: Frame, left: Option<Exit>, future: Future) -> DriveEnd {
        DriveEnd::Suspended(Box::new(SuspendedFrame { frame, left }), future)
    }
}

impl TaskQueue {
    /// Adds a task to the queue and requests a worker if the run may use another.
    fn push(self: &Arc<Self>, scheduled: Box<ScheduledTask>) {
        let mut ready = self.ready.lock();
        ready.tasks.push_back(scheduled);
        let needs_worker = ready.random.is_none() && ready.workers + 1 < self.threads;
        ready.workers += usize::from(needs_worker);
        if ready.waiting > 0 {
            self.changed.notify_one();
        }
        drop(ready);
        if needs_worker {
            pool::wake_workers(Arc::clone(self));
        }
    }

    /// Returns the next task: the first, or a random one.
    fn pop(ready: &mut ReadyTasks) -> Option<Box<ScheduledTask>> {
        if let Some(state) = &mut ready.random
            && !ready.tasks.is_empty()
        {
            let at = (next_random(state) % ready.tasks.len() as u64) as usize;
            return ready.tasks.remove(at);
        }
        ready.tasks.pop_front()
    }

    /// Whether a forced interleaving suspends the current task.
    fn draws_suspension(&self) -> bool {
        self.ready.lock().random.as_mut().is_some_and(|state| next_random(state).is_multiple_of(2))
    }

    /// Runs tasks on a thread of the pool until none is ready.
    fn work(self: &Arc<Self>) {
        loop {
            let mut ready = self.ready.lock();
            let Some(scheduled) = TaskQueue::pop(&mut ready) else {
                ready.workers -= 1;
                return;
            };
            drop(ready);
            self.run(scheduled);
        }
    }

    /// Runs tasks on the calling thread until a future is complete.
    fn help(self: &Arc<Self>, future: &Future) {
        let mut registered = false;
        loop {
            if future.is_done() {
                return;
            }
            let mut ready = self.ready.lock();
            if let Some(scheduled) = TaskQueue::pop(&mut ready) {
                drop(ready);
                self.run(scheduled);
                continue;
            }
            if !registered {
                drop(ready);
                registered = true;
                let task_queue = Arc::clone(self);
                future.on_done(move |_| {
                    let ready = task_queue.ready.lock();
                    if ready.waiting > 0 {
                        task_queue.changed.notify_all();
                    }
                });
                continue;
            }
            // The callback takes the lock after completion, so a completion after this test wakes the thread.
            if !future.is_done() {
                ready.waiting += 1;
                self.changed.wait(&mut ready);
                ready.waiting -= 1;
            }
        }
    }

    /// Runs a task until it ends or waits.
    fn run(self: &Arc<Self>, mut scheduled: Box<ScheduledTask>) {
        match threads::with(self.threads, || scheduled.advance()) {
            Ok(DriveEnd::Suspended(suspended, future)) => {
                scheduled.next = Some(suspended);
                let task_queue = Arc::clone(self);
                future.on_done(move |_| task_queue.push(scheduled));
            }
            Ok(DriveEnd::Value(value)) => self.finish(scheduled, Ok(value)),
            Err(error) => self.finish(scheduled, Err(error)),
        }
    }

    /// Completes the future of a task.
    fn finish(&self, scheduled: Box<ScheduledTask>, result: Result<IValue, ExecError>) {
        let ScheduledTask { mut vm, mut host, future, end, fuel, .. } = *scheduled;
        let limit = result.as_ref().err().filter(|error| error.fault == Fault::Limit).cloned();
        let used = if fuel == u64::MAX { 0 } else { fuel.saturating_sub(host.fuel()) };
        *end.lock() = Some(End { fuel: used, protections: host.take_protections(), limit });
        // A machine whose task failed may hold values of its frames.
        if result.is_ok() {
            vm.tasks = Tasks::default();
            let mut ready = self.ready.lock();
            if ready.idle.len() < 2 * self.threads {
                ready.idle.push(vm);
            }
        }
        future.complete(result.map_err(|error| Arc::new(error) as _));
    }
}

impl ScheduledTask {
    /// Drives the task's frames until they end or wait.
    fn advance(&mut self) -> Result<DriveEnd, ExecError> {
        let Some(SuspendedFrame { frame, left }) = self.next.take().map(|next| *next) else {
            return Err(ExecError::of(&KernelError::internal("a task without a frame")));
        };
        let (vm, host, budget) = (&mut self.vm, &mut self.host, &self.budget);
        let mut recycler = vm.recycler.take();
        let mut args = std::mem::take(&mut vm.args);
        // The machine belongs to the task, so all of its frames do.
        let drive = || vm.drive_until(frame, left, 0, 0, &mut args, host);
        let run = || match budget {
            Some(budget) => budget.run(drive),
            None => drive(),
        };
        let ended = catch_unwind(AssertUnwindSafe(|| match &mut recycler {
            Some(recycler) => recycler.run(run),
            None => run(),
        }));
        args.clear();
        self.vm.args = args;
        self.vm.recycler = recycler;
        ended.unwrap_or_else(|panic| {
            let message = panic_message(&*panic);
            Err(ExecError::of(&KernelError::internal(format!("a task panicked: {message}"))))
        })
    }
}

/// One step of the generator SplitMix64.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The worker threads of the process. A worker starts when a queue requests one and none is idle; workers run until the
/// process ends.
mod pool {
    use super::TaskQueue;
    use parking_lot::{Condvar, Mutex};
    use std::collections::VecDeque;
    use std::sync::Arc;

    /// Maximal number of threads.
    const MAX_WORKERS: usize = 256;

    struct Pool {
        requests: VecDeque<Arc<TaskQueue>>,
        idle: usize,
        workers: usize,
    }

    static POOL: Mutex<Pool> = Mutex::new(Pool { requests: VecDeque::new(), idle: 0, workers: 0 });
    static WAKE_WORKERS: Condvar = Condvar::new();

    /// Requests a worker for a queue. If no thread can be started, the thread of the run runs the tasks.
    pub(super) fn wake_workers(task_queue: Arc<TaskQueue>) {
        let mut pool = POOL.lock();
        pool.requests.push_back(task_queue);
        if pool.idle >= pool.requests.len() || pool.workers == MAX_WORKERS {
            WAKE_WORKERS.notify_one();
            return;
        }
        let started = std::thread::Builder::new().name("flambeau-task".to_owned()).spawn(run_worker);
        pool.workers += usize::from(started.is_ok());
    }

    fn run_worker() {
        loop {
            let mut pool = POOL.lock();
            let task_queue = loop {
                match pool.requests.pop_front() {
                    Some(task_queue) => break task_queue,
                    None => {
                        pool.idle += 1;
                        WAKE_WORKERS.wait(&mut pool);
                        pool.idle -= 1;
                    }
                }
            };
            drop(pool);
            task_queue.work();
        }
    }
}
