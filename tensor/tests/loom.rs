//! Model check of the thread pool's protocol (`src/threads/job_queue.rs`). Locks, conditions and counters are loom's, which
//! explores the orders of their steps. Loom also checks every access to the memory that a job shares with its helpers.
//!
//! `cargo xtask loom`, or `RUSTFLAGS="--cfg loom" cargo test -p flambeau-tensor --test loom`.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]
#![allow(unsafe_code, reason = "loom watches uses of memory that threads share by raw pointers")]

#[path = "../src/threads/job_queue.rs"]
#[allow(unreachable_pub, dead_code, reason = "compiled as part of the library")]
mod job_queue;

use job_queue::{JobQueue, QueueState, WorkCounter};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use sync::{AtomicUsize, Condvar, Mutex, SpinLimit};

/// The synchronization primitives of the job queue.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicUsize, Ordering};
    pub(super) use loom::sync::{Condvar, MutexGuard};

    pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// Polls once before it sleeps, or never.
    pub(super) struct SpinLimit(bool);

    impl SpinLimit {
        pub(super) fn new() -> Self {
            SpinLimit(true)
        }

        pub(super) fn expired() -> Self {
            SpinLimit(false)
        }

        pub(super) fn may_spin(&mut self) -> bool {
            std::mem::take(&mut self.0)
        }
    }

    pub(super) fn pause() {
        loom::thread::yield_now();
    }

    pub(super) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(guard).unwrap()
    }
}

/// A job on a thread's stack: parts that are written once each, without a lock.
struct Job {
    parts: WorkCounter,
    written: Vec<UnsafeCell<usize>>,
    /// Whether the job is still on the stack of the thread that publishes it.
    alive: UnsafeCell<bool>,
}

impl Job {
    fn new(parts: usize) -> Self {
        let written = (0..parts).map(|_| UnsafeCell::new(0)).collect();
        Job { parts: WorkCounter::new(parts), written, alive: UnsafeCell::new(true) }
    }

    /// Runs parts until none is left.
    fn work(&self) {
        // SAFETY: loom's cells panic if two threads access them without synchronization and one of them writes.
        self.alive.with(|alive| assert!(unsafe { *alive }, "a job is used after its end"));
        while let Some(part) = self.parts.take() {
            // SAFETY: as above.
            self.written[part].with_mut(|times| unsafe { *times += 1 });
        }
    }

    /// Ends the job on its own thread after all others have left: reads the results and leaves the stack.
    fn end(&self) {
        for times in &self.written {
            // SAFETY: as above.
            times.with(|times| assert_eq!(unsafe { *times }, 1, "every part is done once"));
        }
        // SAFETY: as above.
        self.alive.with_mut(|alive| unsafe { *alive = false });
    }
}

/// A queue of jobs, which are named by their index; the last one only ends the helpers.
struct Pool {
    queue: JobQueue<usize>,
    jobs: Vec<Job>,
}

impl Pool {
    fn new(parts: &[usize]) -> Arc<Self> {
        let state = Mutex::new(QueueState::new());
        let (published, finished) = (Condvar::new(), Condvar::new());
        let queue = JobQueue { state, published, finished, vacancies: AtomicUsize::new(0) };
        Arc::new(Pool { queue, jobs: parts.iter().map(|parts| Job::new(*parts)).collect() })
    }

    /// Shares a loop with `helpers` helpers.
    fn share(&self, job: usize, helpers: usize) {
        self.queue.publish(job, helpers);
        self.jobs[job].work();
        self.jobs[job].parts.close();
        self.queue.remove(job);
        self.jobs[job].end();
    }

    /// The main loop of a helper, until the last job ends it.
    fn run_worker(&self, mut spin: SpinLimit) {
        let mut ended = false;
        while !ended {
            self.queue.run_next(&mut spin, |job| match self.jobs.get(job) {
                Some(job) => job.work(),
                None => ended = true,
            });
        }
    }

    /// Ends the helpers; each must be woken for that.
    fn end(&self, helpers: Vec<thread::JoinHandle<()>>) {
        let last = self.jobs.len();
        self.queue.publish(last, helpers.len());
        helpers.into_iter().for_each(|helper| helper.join().unwrap());
        self.queue.remove(last);
    }
}

/// Explores all orders of steps with at most `preemptions` preemptions.
fn explore(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(f);
}

fn helper(pool: &Arc<Pool>, spin: fn() -> SpinLimit) -> thread::JoinHandle<()> {
    let pool = Arc::clone(pool);
    thread::spawn(move || pool.run_worker(spin()))
}

#[test]
fn a_caller_and_a_helper_run_every_part_once() {
    explore(4, || {
        let pool = Pool::new(&[2]);
        let helpers = vec![helper(&pool, SpinLimit::expired)];
        pool.share(0, 1);
        pool.end(helpers);
    });
}

#[test]
fn an_idle_helper_finds_the_next_job_or_sleeps() {
    explore(3, || {
        let pool = Pool::new(&[1, 2]);
        let helpers = vec![helper(&pool, SpinLimit::new)];
        pool.share(0, 1);
        pool.share(1, 1);
        pool.end(helpers);
    });
}

#[test]
fn two_helpers_leave_before_a_job_ends() {
    explore(2, || {
        let pool = Pool::new(&[3]);
        let helpers = vec![helper(&pool, SpinLimit::expired), helper(&pool, SpinLimit::new)];
        pool.share(0, 2);
        pool.end(helpers);
    });
}

#[test]
fn two_callers_share_a_helper() {
    explore(2, || {
        let pool = Pool::new(&[2, 2]);
        let helpers = vec![helper(&pool, SpinLimit::expired)];
        let other = Arc::clone(&pool);
        let caller = thread::spawn(move || other.share(1, 1));
        pool.share(0, 1);
        caller.join().unwrap();
        pool.end(helpers);
    });
}

/// A caller that ends its job without removing it is detected: the model finds accesses to the ended job.
#[test]
#[should_panic]
fn a_caller_that_does_not_wait_is_detected() {
    explore(3, || {
        let pool = Pool::new(&[2]);
        let helpers = vec![helper(&pool, SpinLimit::expired)];
        pool.queue.publish(0, 1);
        pool.jobs[0].work();
        pool.jobs[0].parts.close();
        pool.jobs[0].end();
        pool.queue.remove(0);
        pool.end(helpers);
    });
}
