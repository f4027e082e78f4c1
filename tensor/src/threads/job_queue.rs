//! The job queue of the thread pool: the protocol by which workers attach to jobs and detach from them, independent of the kind of jobs and
//! of starting threads.
//!
//! Invariants:
//! - A job that [`JobQueue::run_next`] passes to a worker is used only until `run_next` has recorded that the worker
//!   detached, and [`JobQueue::remove`] returns after all attached workers have detached. So a job may be on the stack of the thread
//!   that publishes it.
//! - Writes of a worker within a job are visible to the thread that removed the job, because both take the lock.
//! - [`WorkCounter`] yields every number once.
//!
//! Locks, conditions and counters are those of the module `sync` beside this one. In the library these are
//! parking_lot's; in `tests/loom.rs`, which compiles this file too, those of a model checker that explores the orders
//! of their steps.

use super::sync::{AtomicUsize, Condvar, Mutex, Ordering, SpinLimit, pause, wait};

/// The numbers of the parts of a job; [`take`](WorkCounter::take) returns each to one thread.
pub(super) struct WorkCounter {
    /// The first number that is not taken.
    next: AtomicUsize,
    bound: usize,
}

impl WorkCounter {
    pub(super) fn new(bound: usize) -> Self {
        WorkCounter { next: AtomicUsize::new(0), bound }
    }

    /// Takes a number that no other thread has. Relaxed: the lock orders memory accesses, not this counter.
    pub(super) fn take(&self) -> Option<usize> {
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < self.bound)
    }

    /// Removes all remaining numbers.
    pub(super) fn close(&self) {
        self.next.store(self.bound, Ordering::Relaxed);
    }
}

/// An entry of the queue: a published job with the counts of its workers.
struct QueuedJob<J> {
    job: J,
    /// Number of workers that may still attach.
    vacancies: usize,
    /// Number of attached workers.
    workers: usize,
}

/// The part of the queue that its lock protects.
pub(super) struct QueueState<J> {
    jobs: Vec<QueuedJob<J>>,
    /// Number of workers that sleep.
    sleeping: usize,
    /// Number of workers that poll for jobs.
    spinning: usize,
}

impl<J: PartialEq> QueueState<J> {
    pub(super) const fn new() -> Self {
        QueueState { jobs: Vec::new(), sleeping: 0, spinning: 0 }
    }

    fn entry(&mut self, job: &J) -> &mut QueuedJob<J> {
        let mut jobs = self.jobs.iter_mut();
        jobs.find(|entry| entry.job == *job)
            .expect("invariant: a published job is in the queue until its publisher removes it")
    }
}

/// The published jobs, to which workers may attach.
pub(super) struct JobQueue<J> {
    pub(super) state: Mutex<QueueState<J>>,
    /// Notified when a job is published.
    pub(super) published: Condvar,
    /// Notified when the last worker detaches from a job.
    pub(super) finished: Condvar,
    /// Number of workers that may still attach to any job: polled without the lock.
    pub(super) vacancies: AtomicUsize,
}

impl<J: Copy + PartialEq> JobQueue<J> {
    /// Updates the number that workers poll.
    fn update_vacancies(&self, state: &QueueState<J>) {
        self.vacancies.store(state.jobs.iter().map(|entry| entry.vacancies).sum(), Ordering::Relaxed);
    }

    /// Adds a job, to which `vacancies` workers may attach until it is removed, and wakes sleeping workers. No other published
    /// job equals `job`.
    pub(super) fn publish(&self, job: J, vacancies: usize) {
        let mut state = self.state.lock();
        state.jobs.push(QueuedJob { job, vacancies, workers: 0 });
        self.update_vacancies(&state);
        let wake = vacancies.saturating_sub(state.spinning).min(state.sleeping);
        drop(state);
        (0..wake).for_each(|_| _ = self.published.notify_one());
    }

    /// Removes a job: no further worker attaches, and the call returns after the attached workers have detached.
    pub(super) fn remove(&self, job: J) {
        let mut state = self.state.lock();
        state.entry(&job).vacancies = 0;
        self.update_vacancies(&state);
        let mut spin = None;
        while state.entry(&job).workers > 0 {
            if spin.get_or_insert_with(SpinLimit::new).may_spin() {
                drop(state);
                pause();
                state = self.state.lock();
            } else {
                state = wait(&self.finished, state);
            }
        }
        state.jobs.retain(|entry| entry.job != job);
    }

    /// Waits for a job with vacancies, polling until the spin limit and then sleeping, and calls `run` with it. `run` must
    /// not panic.
    pub(super) fn run_next(&self, spin: &mut SpinLimit, run: impl FnOnce(J)) {
        let mut state = self.state.lock();
        let job = loop {
            if let Some(entry) = state.jobs.iter_mut().find(|entry| entry.vacancies > 0) {
                entry.vacancies -= 1;
                entry.workers += 1;
                break entry.job;
            }
            if spin.may_spin() {
                state.spinning += 1;
                drop(state);
                while self.vacancies.load(Ordering::Relaxed) == 0 && spin.may_spin() {
                    pause();
                }
                state = self.state.lock();
                state.spinning -= 1;
            } else {
                state.sleeping += 1;
                state = wait(&self.published, state);
                state.sleeping -= 1;
            }
        };
        self.update_vacancies(&state);
        drop(state);
        run(job);
        let mut state = self.state.lock();
        let entry = state.entry(&job);
        entry.workers -= 1;
        if entry.workers == 0 {
            self.finished.notify_all();
        }
        drop(state);
        *spin = SpinLimit::new();
    }
}
