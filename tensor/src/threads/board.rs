//! The protocol by which threads join and leave jobs, independent of the kind of jobs and of starting threads.
//!
//! Invariants:
//! - A job that [`Board::serve`] passes to a thread is used only until `serve` has recorded that the thread left, and
//!   [`Board::withdraw`] returns after all threads that joined have left. So a job may be on the stack of the thread
//!   that offers it.
//! - Writes of a thread inside a job are visible to the thread that withdrew it, because both take the lock.
//! - [`Claims`] yields every number once.
//!
//! Locks, conditions and counters are those of the module `sync` beside this one. In the library these are
//! parking_lot's; in `tests/loom.rs`, which compiles this file too, those of a model checker that explores the orders
//! of their steps.

use super::sync::{AtomicUsize, Condvar, Mutex, Ordering, Patience, pause, wait};

/// The numbers below a bound, each to be taken by one thread.
pub(super) struct Claims {
    /// The first number that is not taken.
    next: AtomicUsize,
    bound: usize,
}

impl Claims {
    pub(super) fn new(bound: usize) -> Self {
        Claims { next: AtomicUsize::new(0), bound }
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

/// A job with its bookkeeping.
struct Offer<J> {
    job: J,
    /// Number of threads that may still join.
    places: usize,
    /// Number of threads that joined and have not left.
    inside: usize,
}

/// The state behind the lock.
pub(super) struct State<J> {
    offers: Vec<Offer<J>>,
    /// Number of threads that sleep, and of threads that poll for work.
    idle: usize,
    looking: usize,
}

impl<J: PartialEq> State<J> {
    pub(super) const fn new() -> Self {
        State { offers: Vec::new(), idle: 0, looking: 0 }
    }

    fn offer(&mut self, job: &J) -> &mut Offer<J> {
        let mut offers = self.offers.iter_mut();
        offers
            .find(|offer| offer.job == *job)
            .expect("invariant: an offer is listed until its caller withdraws it")
    }
}

/// The jobs that threads may join.
pub(super) struct Board<J> {
    pub(super) state: Mutex<State<J>>,
    /// Notified of new offers.
    pub(super) work: Condvar,
    /// Notified when the last thread leaves a job.
    pub(super) left: Condvar,
    /// Number of threads that may still join any job: polled without the lock.
    pub(super) places: AtomicUsize,
}

impl<J: Copy + PartialEq> Board<J> {
    /// Updates the polled number.
    fn publish(&self, state: &State<J>) {
        self.places.store(state.offers.iter().map(|offer| offer.places).sum(), Ordering::Relaxed);
    }

    /// Lets `places` threads join a job until it is withdrawn, and wakes sleeping threads for it. No other offered job
    /// equals `job`.
    pub(super) fn offer(&self, job: J, places: usize) {
        let mut state = self.state.lock();
        state.offers.push(Offer { job, places, inside: 0 });
        self.publish(&state);
        let wake = places.saturating_sub(state.looking).min(state.idle);
        drop(state);
        (0..wake).for_each(|_| _ = self.work.notify_one());
    }

    /// Closes a job for further threads, and waits until those that joined have left.
    pub(super) fn withdraw(&self, job: J) {
        let mut state = self.state.lock();
        state.offer(&job).places = 0;
        self.publish(&state);
        let mut patience = None;
        while state.offer(&job).inside > 0 {
            if patience.get_or_insert_with(Patience::new).is_left() {
                drop(state);
                pause();
                state = self.state.lock();
            } else {
                state = wait(&self.left, state);
            }
        }
        state.offers.retain(|offer| offer.job != job);
    }

    /// Waits for a job that can be joined, polling at first and then sleeping, and runs `help` on it. `help` must not
    /// panic.
    pub(super) fn serve(&self, patience: &mut Patience, help: impl FnOnce(J)) {
        let mut state = self.state.lock();
        let job = loop {
            if let Some(offer) = state.offers.iter_mut().find(|offer| offer.places > 0) {
                offer.places -= 1;
                offer.inside += 1;
                break offer.job;
            }
            if patience.is_left() {
                state.looking += 1;
                drop(state);
                while self.places.load(Ordering::Relaxed) == 0 && patience.is_left() {
                    pause();
                }
                state = self.state.lock();
                state.looking -= 1;
            } else {
                state.idle += 1;
                state = wait(&self.work, state);
                state.idle -= 1;
            }
        };
        self.publish(&state);
        drop(state);
        help(job);
        let mut state = self.state.lock();
        let offer = state.offer(&job);
        offer.inside -= 1;
        if offer.inside == 0 {
            self.left.notify_all();
        }
        drop(state);
        *patience = Patience::new();
    }
}
