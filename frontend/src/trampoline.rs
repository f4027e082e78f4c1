//! A trampoline: recursion with its stack on the heap.
//!
//! The emitter is recursive: an expression compiles its operands, a statement its blocks, a call the definition of its
//! callee. Sources may nest 100,000 levels deep, which would overflow the native stack. Each recursive call is
//! therefore a future. Up to `MAX_DIRECT` levels are polled directly by their callers. At the next level,
//! [`Trampoline::call`] passes the callee to the driver ([`run`]) and suspends the caller until the callee is done. The
//! driver keeps the suspended futures in a vector and polls only the last. No future waits for anything but its callee,
//! so no executor is needed, and recursive functions stay plain `async` code.
//!
//! Invariant: a future that returns `Pending` has left exactly one callee in `spawned`. [`run`] relies on it.

use std::cell::Cell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

pub(crate) type Task<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Number of nested calls that are polled directly by their callers before one is passed to the driver. Most sources
/// nest less deeply; a call through the driver costs two allocations.
const MAX_DIRECT: u32 = 12;

/// The slot through which a suspended caller passes its callee to the driver.
pub(crate) struct Trampoline<'a> {
    // `ManuallyDrop` removes the drop glue, so that tasks may borrow the `Trampoline` that holds them. Nothing
    // leaks: the driver empties the slot after every poll that returns `Pending`.
    spawned: Cell<ManuallyDrop<Option<Task<'a, ()>>>>,
    /// Number of directly polled calls below the task that the driver polls.
    level: Cell<u32>,
}

impl<'a> Trampoline<'a> {
    pub(crate) fn new() -> Self {
        Trampoline { spawned: Cell::new(ManuallyDrop::new(None)), level: Cell::new(0) }
    }

    fn take(&self) -> Option<Task<'a, ()>> {
        ManuallyDrop::into_inner(self.spawned.replace(ManuallyDrop::new(None)))
    }

    /// Runs `task` to completion, one level deeper.
    pub(crate) fn call<T: 'a>(&'a self, task: Task<'a, T>) -> Call<'a, T> {
        Call { trampoline: self, state: State::New(task) }
    }

    /// Passes `task` to the driver; returns the slot that receives its result.
    fn spawn<T: 'a>(&self, task: Task<'a, T>) -> Rc<Cell<Option<T>>> {
        let slot = Rc::new(Cell::new(None));
        let result = Rc::clone(&slot);
        let callee: Task<'a, ()> = Box::pin(async move { result.set(Some(task.await)) });
        self.spawned.set(ManuallyDrop::new(Some(callee)));
        slot
    }
}

/// A callee that its caller awaits.
pub(crate) struct Call<'a, T> {
    trampoline: &'a Trampoline<'a>,
    state: State<'a, T>,
}

enum State<'a, T> {
    New(Task<'a, T>),
    /// Polled by its caller.
    Direct(Task<'a, T>),
    /// Polled by the driver.
    Spawned(Rc<Cell<Option<T>>>),
    Done,
}

impl<'a, T: 'a> Future for Call<'a, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let trampoline = self.trampoline;
        let level = trampoline.level.get();
        let (poll, state) = match std::mem::replace(&mut self.state, State::Done) {
            State::New(task) if level >= MAX_DIRECT => {
                (Poll::Pending, State::Spawned(trampoline.spawn(task)))
            }
            State::New(mut task) | State::Direct(mut task) => {
                trampoline.level.set(level + 1);
                let poll = task.as_mut().poll(context);
                trampoline.level.set(level);
                (poll, State::Direct(task))
            }
            State::Spawned(slot) => (slot.take().map_or(Poll::Pending, Poll::Ready), State::Spawned(slot)),
            State::Done => (Poll::Pending, State::Done),
        };
        if poll.is_pending() {
            self.state = state;
        }
        poll
    }
}

/// Runs `main` and all its callees to completion and returns the result of `main`.
pub(crate) fn run<'a, T: 'a>(trampoline: &Trampoline<'a>, main: impl Future<Output = T> + 'a) -> T {
    let slot = Rc::new(Cell::new(None));
    let result = Rc::clone(&slot);
    let mut stack: Vec<Task<'a, ()>> = vec![Box::pin(async move { result.set(Some(main.await)) })];
    let mut context = Context::from_waker(Waker::noop());
    while let Some(top) = stack.last_mut() {
        match top.as_mut().poll(&mut context) {
            Poll::Ready(()) => {
                stack.pop();
            }
            Poll::Pending => {
                let callee = trampoline.take().expect("invariant: a suspended task has named its callee");
                stack.push(callee);
            }
        }
    }
    slot.take().expect("invariant: the first task ran to its end")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed<'a>(trampoline: &'a Trampoline<'a>, n: u32) -> Task<'a, u64> {
        Box::pin(async move { if n == 0 { 0 } else { 1 + trampoline.call(boxed(trampoline, n - 1)).await } })
    }

    #[test]
    fn a_million_levels() {
        let trampoline = Trampoline::new();
        assert_eq!(run(&trampoline, boxed(&trampoline, 1_000_000)), 1_000_000);
    }
}
