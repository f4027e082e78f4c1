//! The thread pool for the loops of kernels: a loop is split into parts, and threads take parts until none is left.
//!
//! Invariants:
//! - **Results do not depend on the number of threads.** Parts depend on a loop's length and grain only. A kernel whose
//!   parts write disjoint memory, or produce partial results that are merged in order, computes the same bits with any
//!   number of threads.
//! - The calling thread works too. It waits for threads that have attached to the loop, but never for threads that have
//!   not: on a busy machine a loop takes at most as long as on one thread.
//! - A part runs on one thread: loops within parts are not split again.
//! - The caller takes the locks of storages before the loop. Pool threads take no locks of storages, and allocate no
//!   memory that is charged to a program's budget.
//!
//! The maximum number of threads is a scope of the calling thread ([`with`]), as budgets are. Programs of different
//! sessions run concurrently in one process, each with its own number, and share the pool. Threads start when a loop
//! first has several parts; a loop of one part costs one comparison. They attach to jobs and detach from them by the
//! protocol of [`job_queue`].
#![allow(unsafe_code, reason = "threads access the stack of another thread, which waits for them")]

mod job_queue;

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::OnceLock;

use job_queue::{JobQueue, QueueState, WorkCounter};
use smallvec::SmallVec;
use sync::{AtomicUsize, Condvar, Mutex, Ordering, SpinLimit};

use crate::error::Result;
use crate::switches;

/// Minimum elements per part, for one operation or a few per element.
pub const GRAIN: usize = 1 << 15;
/// Maximum number of threads in the pool.
const MAX_THREADS: usize = 256;

/// The value of [`COUNT`] if no caller has set a number.
const COUNT_UNSET: usize = usize::MAX;

thread_local! {
    /// Maximum number of threads for a loop of this thread; 0: the number of the machine; [`COUNT_UNSET`]: outside of
    /// [`with`].
    static COUNT: Cell<usize> = const { Cell::new(COUNT_UNSET) };
}

/// Runs `f` with at most `count` threads for its loops on this thread: 1 for this thread only, 0 for the number that
/// the machine has for this process. Calls nest; the innermost applies. Outside of `with` a thread works alone.
///
/// `FLAMBEAU_THREADS` replaces the numbers that no caller has set: the machine's, and that of a thread outside of
/// `with`.
#[inline]
pub fn with<R>(count: usize, f: impl FnOnce() -> R) -> R {
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            COUNT.set(self.0);
        }
    }
    let _restore = Restore(COUNT.replace(count));
    f()
}

/// Returns the maximum number of threads for a loop of this thread.
pub fn count() -> usize {
    static MACHINE: OnceLock<usize> = OnceLock::new();
    static DEFAULT: OnceLock<usize> = OnceLock::new();
    let from_environment = || switches::get().threads;
    match COUNT.get() {
        // Cached, because the system call takes as long as a short loop.
        0 => *MACHINE.get_or_init(|| {
            from_environment().unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
        }),
        COUNT_UNSET => *DEFAULT.get_or_init(|| from_environment().unwrap_or(1)),
        count => count,
    }
}

/// Calls `part` for ranges of `grain` (the last may be shorter) that partition `0..len`, on several threads if there is
/// more than one range.
#[inline]
pub fn split(len: usize, grain: usize, part: impl Fn(Range<usize>) + Sync) {
    split_by(len, grain, &part);
}

/// [`split`] without a type parameter, so that each caller instantiates its part only once.
fn split_by(len: usize, grain: usize, part: &(dyn Fn(Range<usize>) + Sync)) {
    if len <= grain {
        if len > 0 {
            part(0..len);
        }
        return;
    }
    let grain = grain.max(1);
    share(len.div_ceil(grain), &|i| part(i * grain..len.min((i + 1) * grain)));
}

/// As [`split`] for parts that can fail.
///
/// # Errors
/// Returns the error of the first range whose part failed.
pub fn try_split(len: usize, grain: usize, part: impl Fn(Range<usize>) -> Result<()> + Sync) -> Result<()> {
    let failed = Mutex::new(None);
    split(len, grain, |range| {
        let start = range.start;
        if let Err(error) = part(range) {
            let mut failed = failed.lock();
            if failed.as_ref().is_none_or(|(first, _)| start < *first) {
                *failed = Some((start, error));
            }
        }
    });
    failed.into_inner().map_or(Ok(()), |(_, error)| Err(error))
}

/// As [`split`] for a slice: calls `part` with the index of the first element and `grain` elements, or the remaining
/// ones.
#[inline]
pub fn chunks<T: Send>(slice: &mut [T], grain: usize, part: impl Fn(usize, &mut [T]) + Sync) {
    let all = SendPtr(slice.as_mut_ptr());
    split(slice.len(), grain, |range| {
        // SAFETY: ranges of a split are within the slice, which is borrowed exclusively, and disjoint.
        let own = unsafe { std::slice::from_raw_parts_mut(all.at(range.start), range.len()) };
        part(range.start, own);
    });
}

/// As [`chunks`] for two slices that have `sizes` elements per row; `grain` and the index count rows.
pub fn chunks_of_two<A: Send, B: Send>(
    a: &mut [A],
    b: &mut [B],
    sizes: [usize; 2],
    grain: usize,
    part: impl Fn(usize, &mut [A], &mut [B]) + Sync,
) {
    let rows = (a.len() / sizes[0].max(1)).min(b.len() / sizes[1].max(1));
    let (a, b) = (SendPtr(a.as_mut_ptr()), SendPtr(b.as_mut_ptr()));
    split(rows, grain, |range| {
        // SAFETY: as for `chunks`, in each of the slices: both have `rows` rows.
        let (a, b) = unsafe {
            (
                std::slice::from_raw_parts_mut(a.at(range.start * sizes[0]), range.len() * sizes[0]),
                std::slice::from_raw_parts_mut(b.at(range.start * sizes[1]), range.len() * sizes[1]),
            )
        };
        part(range.start, a, b);
    });
}

/// As [`chunks`] for any number of slices of `len` elements: `part` gets the chunks of all slices.
///
/// # Panics
/// Panics if a slice has another length.
pub(crate) fn chunks_of_each<T: Send>(
    len: usize,
    slices: &mut [&mut [T]],
    grain: usize,
    part: impl Fn(Range<usize>, &mut [&mut [T]]) + Sync,
) {
    assert!(slices.iter().all(|slice| slice.len() == len), "invariant: slices have one length");
    let starts: SmallVec<[SendPtr<T>; 4]> =
        slices.iter_mut().map(|slice| SendPtr(slice.as_mut_ptr())).collect();
    split(len, grain, |range| {
        // SAFETY: as for `chunks`, in each of the slices.
        let own = |start: &SendPtr<T>| unsafe {
            std::slice::from_raw_parts_mut(start.at(range.start), range.len())
        };
        let mut own: SmallVec<[&mut [T]; 4]> = starts.iter().map(own).collect();
        part(range.clone(), &mut own);
    });
}

/// Returns the values of `f` for the numbers below `len`, in their order; `grain` of them are a part.
pub fn map<R: Send>(len: usize, grain: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    if len <= grain {
        return (0..len).map(f).collect();
    }
    let mut results: Vec<Option<R>> = Vec::new();
    results.resize_with(len, || None);
    chunks(&mut results, grain, |first, own| {
        own.iter_mut().enumerate().for_each(|(i, to)| *to = Some(f(first + i)));
    });
    results.into_iter().flatten().collect()
}

/// Sorts. The order of equal elements is unspecified, so keys should be unique, or equal elements indistinguishable.
pub fn sort_by_key<T: Send + Copy, K: Ord>(slice: &mut [T], key: impl Fn(&T) -> K + Sync) {
    chunks(slice, GRAIN, |_, own| own.sort_unstable_by_key(&key));
    if slice.len() > GRAIN {
        // A merge sort detects the sorted runs.
        slice.sort_by_key(key);
    }
}

/// Returns a grain for rows of `cost` operations each.
#[inline]
pub fn rows(cost: usize) -> usize {
    (GRAIN / cost.max(1)).max(1)
}

/// A pointer that is sent to other threads. The parts of a loop access disjoint memory through it, or only read.
pub(crate) struct SendPtr<T>(pub(crate) *mut T);

impl<T> Clone for SendPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SendPtr<T> {}

// SAFETY: dereferences carry their own argument. Pool threads outlive a loop, but use the pointer only within its parts, and
// `share` returns after every pool thread has detached from the job.
unsafe impl<T: Send> Send for SendPtr<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SendPtr<T> {}

impl<T> SendPtr<T> {
    /// Returns the pointer advanced by `i` elements.
    #[inline(always)]
    pub(crate) fn at(self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }
}

/// Runs `part` for every number below `parts`.
fn share(parts: usize, part: &(dyn Fn(usize) + Sync)) {
    let helpers = count().min(parts).min(MAX_THREADS) - 1;
    if helpers == 0 {
        return (0..parts).for_each(part);
    }
    let job = Job { part, parts: WorkCounter::new(parts), panicked: Mutex::new(None) };
    let published = PublishedJob::new(&job, helpers);
    with(1, || job.work());
    drop(published);
    if let Some(panic) = job.panicked.into_inner() {
        resume_unwind(panic);
    }
}

/// A loop whose parts are taken by threads.
struct Job<'a> {
    part: &'a (dyn Fn(usize) + Sync),
    parts: WorkCounter,
    /// The first panic of a part that ran on a pool thread.
    panicked: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job<'_> {
    /// Runs parts until none is left.
    fn work(&self) {
        while let Some(part) = self.parts.take() {
            (self.part)(part);
        }
    }

    /// Runs parts on a pool thread; a panic is passed to the caller.
    fn work_in_pool(&self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.work())) {
            self.parts.close();
            self.panicked.lock().get_or_insert(panic);
        }
    }
}

/// A reference to a job on the stack of the thread that published it.
#[derive(Clone, Copy, PartialEq)]
struct JobRef(NonNull<Job<'static>>);

impl JobRef {
    /// Erases the lifetime: the job is removed from the queue before its lifetime ends.
    fn of(job: &Job<'_>) -> Self {
        JobRef(NonNull::from(job).cast())
    }
}

// SAFETY: a job may be shared between threads (`Sync` parts), and workers use it only until `JobQueue::remove` returns on the
// thread that owns it.
unsafe impl Send for JobRef {}

static JOBS: JobQueue<JobRef> = JobQueue {
    state: Mutex::new(QueueState::new()),
    published: Condvar::new(),
    finished: Condvar::new(),
    vacancies: AtomicUsize::new(0),
};

/// Starts threads until there are `threads` of them. Fewer are sufficient, because the caller runs the remaining parts.
fn start(threads: usize) {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    static STARTING: Mutex<()> = Mutex::new(());
    if STARTED.load(Ordering::Relaxed) >= threads {
        return;
    }
    let _starting = STARTING.lock();
    for started in STARTED.load(Ordering::Relaxed)..threads {
        if std::thread::Builder::new().name("flambeau".to_owned()).spawn(run_worker).is_err() {
            return;
        }
        STARTED.store(started + 1, Ordering::Relaxed);
    }
}

/// A job in the pool's queue; removed on drop, which waits until the attached threads have detached.
struct PublishedJob<'a, 'j>(&'a Job<'j>);

impl<'a, 'j> PublishedJob<'a, 'j> {
    fn new(job: &'a Job<'j>, workers: usize) -> Self {
        start(workers);
        JOBS.publish(JobRef::of(job), workers);
        PublishedJob(job)
    }
}

impl Drop for PublishedJob<'_, '_> {
    fn drop(&mut self) {
        // If the caller's part panicked, parts may be left.
        self.0.parts.close();
        JOBS.remove(JobRef::of(self.0));
    }
}

/// The main loop of a pool thread, which runs as long as the process. Loops of parts run on this thread, whatever
/// `FLAMBEAU_THREADS` is.
fn run_worker() {
    let mut spin = SpinLimit::expired();
    with(1, || {
        loop {
            // SAFETY: pointer and lifetime: the queue passes a job only while it is published, and counts this thread as a
            // worker of it until `work_in_pool` returns; `remove`, on the thread that owns the job, waits for that.
            // Aliasing: the job is accessed by shared references only.
            JOBS.run_next(&mut spin, |JobRef(job)| unsafe { job.as_ref() }.work_in_pool());
        }
    })
}

/// The synchronization primitives of the job queue.
mod sync {
    pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    pub(super) use parking_lot::{Condvar, Mutex, MutexGuard};

    /// Time that a worker polls for jobs before it sleeps, and that a caller polls for the last worker to leave. Loops
    /// of programs follow each other at shorter intervals. Waking a thread takes about as long, and on a busy machine
    /// much longer.
    const SPIN_TIME: Duration = Duration::from_micros(50);

    /// The time until which a thread polls before it sleeps.
    pub(super) struct SpinLimit(Instant);

    impl SpinLimit {
        pub(super) fn new() -> Self {
            SpinLimit(Instant::now() + SPIN_TIME)
        }

        pub(super) fn expired() -> Self {
            SpinLimit(Instant::now())
        }

        pub(super) fn may_spin(&mut self) -> bool {
            Instant::now() < self.0
        }
    }

    /// Pauses, and yields the core to other threads, of which one may be the caller.
    pub(super) fn pause() {
        (0..16).for_each(|_| std::hint::spin_loop());
        std::thread::yield_now();
    }

    /// Sleeps until the condition is notified; the lock is released meanwhile.
    pub(super) fn wait<'a, T>(condition: &Condvar, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(&mut guard);
        guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_one_part() {
        for count in [1, 2, 3, 8] {
            for (len, grain) in [(0, 4), (1, 4), (4, 4), (5, 4), (1000, 7), (3, 0)] {
                let mut seen = vec![0u8; len];
                with(count, || {
                    chunks(&mut seen, grain, |first, own| {
                        assert!(first % grain.max(1) == 0 && own.len() <= grain.max(1));
                        own.iter_mut().for_each(|n| *n += 1);
                    });
                });
                assert!(seen.iter().all(|n| *n == 1));
            }
        }
    }

    #[test]
    fn nested_loops_run_on_one_thread() {
        let outside = count();
        with(4, || {
            split(64, 1, |_| {
                // Set, whatever `FLAMBEAU_THREADS` is.
                assert_eq!(COUNT.get(), 1);
                split(8, 1, |_| {});
            });
            assert_eq!(count(), 4);
        });
        assert_eq!(count(), outside);
    }

    #[test]
    fn panics_propagate_and_the_pool_stays_usable() {
        for at in [0, 17, 63] {
            let caught = catch_unwind(|| {
                with(3, || {
                    split(64, 1, |part| {
                        assert!(part.start != at, "part {at}");
                        std::thread::yield_now();
                    });
                });
            });
            let panic = caught.unwrap_err();
            assert_eq!(*panic.downcast::<String>().unwrap(), format!("part {at}"));
        }
        let total = AtomicUsize::new(0);
        with(3, || split(1000, 1, |part| _ = total.fetch_add(part.start, Ordering::Relaxed)));
        assert_eq!(total.into_inner(), 499_500);
    }

    #[test]
    fn callers_with_different_thread_counts_run_concurrently() {
        std::thread::scope(|scope| {
            for count in [1, 2, 5, 8] {
                scope.spawn(move || {
                    with(count, || {
                        for len in 1..200 {
                            assert_eq!(super::count(), count);
                            let mut squares = vec![0; len];
                            chunks(&mut squares, 3, |first, own| {
                                own.iter_mut().enumerate().for_each(|(i, n)| *n = (first + i) * (first + i));
                            });
                            assert!(squares.iter().enumerate().all(|(i, n)| *n == i * i));
                        }
                    });
                });
            }
        });
    }

    #[test]
    fn the_first_error_is_returned() {
        let fails = |range: Range<usize>| {
            if range.start >= 40 { Err(crate::TensorError::value(range.start.to_string())) } else { Ok(()) }
        };
        for count in [1, 4] {
            let error = with(count, || try_split(100, 10, fails)).unwrap_err();
            assert!(error.to_string().contains("40"), "{error}");
        }
    }
}
