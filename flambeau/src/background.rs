//! Compilation on a background thread.
//!
//! All programs of a session share one queue. A thread exists only while there are jobs: the first job starts it, and it
//! ends with the last one, so that an idle session has no thread and a dropped one has none to stop. A job refers weakly
//! to what it compiles; the job of a dropped program ends at once. A panic in a job is contained.

use crate::error::Error;
use flambeau_exec::panic_message;
use flambeau_ir::Fault;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A compilation.
type Job = Box<dyn FnOnce() + Send>;

/// The jobs of a session.
#[derive(Clone, Default)]
pub(crate) struct Background(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signalled when the queue is empty and the last job has ended.
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Whether a thread runs jobs.
    running: bool,
}

impl Background {
    /// Adds a job. If the system refuses a thread, the calling thread runs the jobs.
    pub(crate) fn submit(&self, job: Job) {
        {
            let mut queue = self.0.lock();
            queue.jobs.push_back(job);
            if std::mem::replace(&mut queue.running, true) {
                return;
            }
        }
        let shared = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("flambeau-compile".to_owned());
        if thread.spawn(move || shared.run_jobs()).is_err() {
            self.0.run_jobs();
        }
    }

    /// Waits until there is no job.
    pub(crate) fn wait(&self) {
        let mut queue = self.0.lock();
        while queue.running {
            queue = self.0.idle.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    /// A panic never happens under the lock, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_jobs(&self) {
        loop {
            let Some(job) = self.next() else { return };
            // Jobs report their own panics; this keeps the others running.
            drop(contain(job));
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        let job = queue.jobs.pop_front();
        if job.is_none() {
            queue.running = false;
            self.idle.notify_all();
        }
        job
    }
}

/// Runs a closure and returns its panic as an error. What the closure uses must be dropped or left unused afterwards.
pub(crate) fn contain<R>(work: impl FnOnce() -> R) -> Result<R, Error> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        Error::new(Fault::Internal, "P0001", format!("a compilation panicked: {}", panic_message(&*panic)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn jobs_run_in_order_and_panics_are_contained() {
        let background = Background::default();
        let count = Arc::new(AtomicU32::new(0));
        for round in 0..3 {
            for number in 0..20u32 {
                let count = Arc::clone(&count);
                background.submit(Box::new(move || {
                    assert_eq!(count.fetch_add(1, Ordering::Relaxed), round * 20 + number);
                    assert!(number != 7, "this job panics");
                }));
            }
            background.wait();
            assert_eq!(count.load(Ordering::Relaxed), (round + 1) * 20);
        }
    }

    #[test]
    fn an_idle_queue_has_no_thread() {
        let background = Background::default();
        background.wait();
        background.submit(Box::new(|| {}));
        background.wait();
        // The thread drops its reference right after the last job.
        let ended = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            Arc::strong_count(&background.0) == 1
        });
        assert!(ended);
    }
}
