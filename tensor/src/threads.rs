//! One pool of threads for the loops of kernels: what a loop does is cut into parts, and threads take parts until none
//! is left.
//!
//! Invariants:
//! - **Results do not depend on the number of threads.** Parts follow from a loop's length and grain alone, whoever
//!   runs them: a kernel whose parts write apart from each other, or leave partial results that are put together in
//!   their order, gives the same bits with one thread as with eight.
//! - The calling thread works too, and waits for those who joined, never for those who have not come: on a busy machine
//!   a loop takes at most as long as it would alone.
//! - A part runs with one thread: loops within parts are not shared again.
//! - Locks of storages are taken by the caller before the loop; threads of the pool take none and ask for no memory of
//!   a program's budget.
//!
//! How many threads may work is a scope of the calling thread ([`with`]), as budgets are: programs of different
//! sessions run beside each other in one process, each with its own number, and share the threads there are. Threads
//! start when a loop is first worth it; loops of one part cost a comparison.
#![allow(unsafe_code, reason = "threads work on what lies on the stack of another, which waits for them")]

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::Result;

/// Elements worth a part, where an element is one operation or a few.
pub const GRAIN: usize = 1 << 15;
/// Threads the pool has at most.
const MOST: usize = 256;
/// How long a thread looks for more before it sleeps, and how long a caller for the last to leave. Loops of programs
/// follow each other in less; to be woken takes about as long, and on a busy machine much longer.
const PATIENCE: Duration = Duration::from_micros(50);

thread_local! {
    /// How many threads may work on a loop of this thread; 0: as many as the machine has.
    static COUNT: Cell<usize> = const { Cell::new(1) };
}

/// Runs `f`, in whose loops on this thread at most `count` threads work at a time: 1 for this one alone, 0 for as many
/// as the machine has for this process. Runs nest, the innermost counts. Outside of any, a thread works alone.
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

/// How many threads may work on a loop of this thread.
pub fn count() -> usize {
    static MACHINE: OnceLock<usize> = OnceLock::new();
    match COUNT.get() {
        // Asking the system takes as long as a short loop.
        0 => *MACHINE.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)),
        count => count,
    }
}

/// Calls `part` for ranges of `grain` (the last may be shorter) that make up `0..len`, on several threads if there
/// is more than one range.
#[inline]
pub fn split(len: usize, grain: usize, part: impl Fn(Range<usize>) + Sync) {
    split_by(len, grain, &part);
}

/// [`split`]: compiled once, so that what calls it has one copy of the part.
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

/// As [`split`], of parts that can fail: gives the error of the first one that did.
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

/// As [`split`], of a slice: calls `part` with the position of the first element and `grain` elements, or what is left.
#[inline]
pub fn chunks<T: Send>(slice: &mut [T], grain: usize, part: impl Fn(usize, &mut [T]) + Sync) {
    let all = Apart(slice.as_mut_ptr());
    split(slice.len(), grain, |range| {
        // SAFETY: ranges of a split lie within the slice, which is borrowed alone, and apart from each other.
        let own = unsafe { std::slice::from_raw_parts_mut(all.at(range.start), range.len()) };
        part(range.start, own);
    });
}

/// As [`chunks`], of two slices that have `sizes` elements for each of some rows; `grain` counts rows, and so does the
/// position.
pub fn chunks_of_two<A: Send, B: Send>(
    a: &mut [A],
    b: &mut [B],
    sizes: [usize; 2],
    grain: usize,
    part: impl Fn(usize, &mut [A], &mut [B]) + Sync,
) {
    let rows = (a.len() / sizes[0].max(1)).min(b.len() / sizes[1].max(1));
    let (a, b) = (Apart(a.as_mut_ptr()), Apart(b.as_mut_ptr()));
    split(rows, grain, |range| {
        // SAFETY: as for `chunks`, in either slice: both have as many rows.
        let (a, b) = unsafe {
            (
                std::slice::from_raw_parts_mut(a.at(range.start * sizes[0]), range.len() * sizes[0]),
                std::slice::from_raw_parts_mut(b.at(range.start * sizes[1]), range.len() * sizes[1]),
            )
        };
        part(range.start, a, b);
    });
}

/// What `f` gives for every number below `len`, in their order; `grain` of them are worth a part.
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

/// Sorts; how equal elements come to stand is not said, so there should be none, or no telling them apart.
pub fn sort_by_key<T: Send + Copy, K: Ord>(slice: &mut [T], key: impl Fn(&T) -> K + Sync) {
    chunks(slice, GRAIN, |_, own| own.sort_unstable_by_key(&key));
    if slice.len() > GRAIN {
        // A sort by merging finds what is in order already.
        slice.sort_by_key(key);
    }
}

/// A grain for rows of `cost` operations each.
#[inline]
pub fn rows(cost: usize) -> usize {
    (GRAIN / cost.max(1)).max(1)
}

/// Memory in which parts of a loop reach places apart from each other, or only read.
pub(crate) struct Apart<T>(pub(crate) *mut T);

impl<T> Clone for Apart<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Apart<T> {}

// SAFETY: whoever reaches memory through it answers for that; threads do not outlive the loop they take part in.
unsafe impl<T: Send> Send for Apart<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Apart<T> {}

impl<T> Apart<T> {
    /// The place `i` elements on.
    #[inline(always)]
    pub(crate) fn at(self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }

    /// The place `i` elements on, or back.
    #[inline(always)]
    pub(crate) fn by(self, i: isize) -> *mut T {
        self.0.wrapping_offset(i)
    }
}

/// Runs `part` for every number below `parts`.
fn share(parts: usize, part: &(dyn Fn(usize) + Sync)) {
    let helpers = count().min(parts).min(MOST) - 1;
    if helpers == 0 {
        return (0..parts).for_each(part);
    }
    let job = Job { part, parts, next: AtomicUsize::new(0), panicked: Mutex::new(None) };
    let offer = Offered::new(&job, helpers);
    with(1, || job.work());
    drop(offer);
    if let Some(panic) = job.panicked.into_inner() {
        resume_unwind(panic);
    }
}

/// A loop that threads take parts of.
struct Job<'a> {
    part: &'a (dyn Fn(usize) + Sync),
    parts: usize,
    /// The first part nobody has taken.
    next: AtomicUsize,
    /// What a helper's part panicked with.
    panicked: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job<'_> {
    /// Takes parts until there are none.
    fn work(&self) {
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= self.parts {
                return;
            }
            (self.part)(part);
        }
    }

    /// As a thread of the pool: a panic is the caller's.
    fn help(&self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.work())) {
            self.close();
            self.panicked.lock().get_or_insert(panic);
        }
    }

    /// Leaves nothing to take.
    fn close(&self) {
        self.next.store(self.parts, Ordering::Relaxed);
    }
}

/// A job as threads of the pool see it.
struct Offer {
    job: NonNull<Job<'static>>,
    /// How many more may join.
    places: usize,
    /// How many joined and have not left.
    inside: usize,
}

// SAFETY: the job's caller keeps it until the offer is withdrawn and nobody is inside; what it holds may be shared.
unsafe impl Send for Offer {}

/// The threads, and what they may join.
struct Pool {
    state: Mutex<State>,
    /// There is a new offer.
    work: Condvar,
    /// Somebody was the last to leave a job.
    left: Condvar,
    /// How many more may join any job: read without the lock by those who look for one.
    places: AtomicUsize,
}

struct State {
    offers: Vec<Offer>,
    threads: usize,
    /// Threads that sleep, and that look for more to do.
    idle: usize,
    looking: usize,
}

static POOL: Pool = Pool {
    state: Mutex::new(State { offers: Vec::new(), threads: 0, idle: 0, looking: 0 }),
    work: Condvar::new(),
    left: Condvar::new(),
    places: AtomicUsize::new(0),
};

impl State {
    fn offer(&mut self, job: NonNull<Job<'static>>) -> &mut Offer {
        let mut offers = self.offers.iter_mut();
        offers
            .find(|offer| offer.job == job)
            .expect("invariant: an offer stands until its caller withdraws it")
    }

    /// Says how many more may join.
    fn publish(&self) {
        POOL.places.store(self.offers.iter().map(|offer| offer.places).sum(), Ordering::Relaxed);
    }

    /// Starts threads until there are as many. Fewer are enough: the caller does what nobody takes.
    fn start(&mut self, threads: usize) {
        while self.threads < threads {
            let started = std::thread::Builder::new().name("flambeau".to_owned()).spawn(serve);
            if started.is_err() {
                return;
            }
            self.threads += 1;
        }
    }
}

/// A job offered to the pool; withdrawn on drop, when those who joined have left.
struct Offered<'a, 'j>(&'a Job<'j>);

impl<'a, 'j> Offered<'a, 'j> {
    fn new(job: &'a Job<'j>, places: usize) -> Self {
        let mut state = POOL.state.lock();
        state.offers.push(Offer { job: NonNull::from(job).cast(), places, inside: 0 });
        state.publish();
        state.start(places);
        let wake = places.saturating_sub(state.looking).min(state.idle);
        drop(state);
        (0..wake).for_each(|_| {
            POOL.work.notify_one();
        });
        Offered(job)
    }
}

impl Drop for Offered<'_, '_> {
    fn drop(&mut self) {
        // Where the caller's part panicked, there may be parts left.
        self.0.close();
        let job = NonNull::from(self.0).cast();
        let mut state = POOL.state.lock();
        state.offer(job).places = 0;
        state.publish();
        if state.offer(job).inside > 0 {
            let until = Instant::now() + PATIENCE;
            while state.offer(job).inside > 0 {
                if Instant::now() < until {
                    MutexGuard::unlocked(&mut state, pause);
                } else {
                    POOL.left.wait(&mut state);
                }
            }
        }
        state.offers.retain(|offer| offer.job != job);
    }
}

/// What a thread of the pool does, for as long as the process lives.
fn serve() {
    let mut until = Instant::now();
    let mut state = POOL.state.lock();
    loop {
        let Some(offer) = state.offers.iter_mut().find(|offer| offer.places > 0) else {
            if Instant::now() < until {
                state.looking += 1;
                MutexGuard::unlocked(&mut state, || while_none_is_open(until));
                state.looking -= 1;
            } else {
                state.idle += 1;
                POOL.work.wait(&mut state);
                state.idle -= 1;
            }
            continue;
        };
        offer.places -= 1;
        offer.inside += 1;
        let job = offer.job;
        state.publish();
        // SAFETY: the offer stood under the lock, and counts this thread as inside: whoever offers the job does not
        // return before it leaves.
        MutexGuard::unlocked(&mut state, || unsafe { job.as_ref() }.help());
        let offer = state.offer(job);
        offer.inside -= 1;
        if offer.inside == 0 {
            POOL.left.notify_all();
        }
        until = Instant::now() + PATIENCE;
    }
}

/// Waits for a place in a job.
fn while_none_is_open(until: Instant) {
    while POOL.places.load(Ordering::Relaxed) == 0 && Instant::now() < until {
        pause();
    }
}

/// A moment, in which whoever else wants this core has it: that may be the very caller.
fn pause() {
    (0..16).for_each(|_| std::hint::spin_loop());
    std::thread::yield_now();
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
    fn parts_do_not_share_again() {
        with(4, || {
            split(64, 1, |_| {
                assert_eq!(count(), 1);
                split(8, 1, |_| {});
            });
            assert_eq!(count(), 4);
        });
        assert_eq!(count(), 1);
    }

    #[test]
    fn a_panic_comes_back_and_the_pool_lives() {
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
    fn callers_with_different_counts_work_at_once() {
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
    fn the_first_error_is_the_one() {
        let fails = |range: Range<usize>| {
            if range.start >= 40 { Err(crate::TensorError::value(range.start.to_string())) } else { Ok(()) }
        };
        for count in [1, 4] {
            let error = with(count, || try_split(100, 10, fails)).unwrap_err();
            assert!(error.to_string().contains("40"), "{error}");
        }
    }
}
