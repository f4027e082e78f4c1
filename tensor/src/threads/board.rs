//! How threads come to a job and leave it again: the protocol of the pool, without what jobs are and how threads are started.
//!
//! Invariants:
//! - A job that was handed out by [`Board::serve`] is used only until `serve` has noted that its thread left; and
//!   [`Board::withdraw`] returns when all who joined have left. So a job may lie on the stack of the thread that offers it.
//! - What was written while a thread was inside a job is seen by the thread that withdrew it: both take the lock.
//! - [`Claims`] gives every number once.
//!
//! Locks, conditions and counters are those of the module `sync` beside this one: in the library parking_lot's, in
//! `tests/loom.rs`, which compiles this file too, those of a model checker that tries every order of their steps.

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

    /// A number that no other thread has. Says nothing of what other threads did before: that is the lock's business.
    pub(super) fn take(&self) -> Option<usize> {
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < self.bound)
    }

    /// Leaves nothing to take.
    pub(super) fn close(&self) {
        self.next.store(self.bound, Ordering::Relaxed);
    }
}

/// A job as the threads of the pool see it.
struct Offer<J> {
    job: J,
    /// How many more may join.
    places: usize,
    /// How many joined and have not left.
    inside: usize,
}

/// What the lock guards.
pub(super) struct State<J> {
    offers: Vec<Offer<J>>,
    /// Threads that sleep, and that look for more to do.
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
            .expect("invariant: an offer stands until its caller withdraws it")
    }
}

/// What threads may join.
pub(super) struct Board<J> {
    pub(super) state: Mutex<State<J>>,
    /// There is a new offer.
    pub(super) work: Condvar,
    /// A thread was the last to leave a job.
    pub(super) left: Condvar,
    /// How many more may join any job: read without the lock by threads that look for one.
    pub(super) places: AtomicUsize,
}

impl<J: Copy + PartialEq> Board<J> {
    /// Says how many more may join.
    fn publish(&self, state: &State<J>) {
        self.places.store(state.offers.iter().map(|offer| offer.places).sum(), Ordering::Relaxed);
    }

    /// Lets so many threads join a job, which is no other's name, until it is withdrawn; wakes as many.
    pub(super) fn offer(&self, job: J, places: usize) {
        let mut state = self.state.lock();
        state.offers.push(Offer { job, places, inside: 0 });
        self.publish(&state);
        let wake = places.saturating_sub(state.looking).min(state.idle);
        drop(state);
        (0..wake).for_each(|_| _ = self.work.notify_one());
    }

    /// Lets no more threads join a job, and waits for those who did to leave.
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

    /// Waits for a job with a place, first awake as long as there is patience, and takes part in it by `help`, which does not
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
