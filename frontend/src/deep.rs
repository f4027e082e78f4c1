//! Recursion with its stack on the heap.
//!
//! The emitter is recursive: an expression compiles its operands, a statement its blocks, a call the definition of its
//! callee. Sources may nest 100,000 levels deep, which would overflow the native stack. Each recursive call is
//! therefore a future. Up to `WITHIN` levels are polled directly by their callers. At the next level, [`Deep::call`]
//! passes the callee to the driver ([`run`]) and suspends the caller until the callee is done. The driver keeps the
//! suspended futures in a vector and polls only the last. No future waits for anything but its callee, so no executor
//! is needed, and recursive functions stay plain `async` code.
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
const WITHIN: u32 = 12;

/// The slot through which a suspended caller passes its callee to the driver.
pub(crate) struct Deep<'a> {
    // `ManuallyDrop` removes the drop glue, so that tasks may borrow the `Deep` that holds them. Nothing leaks: the
    // driver empties the slot after every poll.
    spawned: Cell<ManuallyDrop<Option<Task<'a, ()>>>>,
    /// Number of directly polled calls below the task that the driver polls.
    within: Cell<u32>,
}

impl<'a> Deep<'a> {
    pub(crate) fn new() -> Self {
        Deep { spawned: Cell::new(ManuallyDrop::new(None)), within: Cell::new(0) }
    }

    fn take(&self) -> Option<Task<'a, ()>> {
        ManuallyDrop::into_inner(self.spawned.replace(ManuallyDrop::new(None)))
    }

    /// Runs `task` to completion, one level deeper.
    pub(crate) fn call<T: 'a>(&'a self, task: Task<'a, T>) -> Call<'a, T> {
        Call { deep: self, state: State::New(task) }
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
    deep: &'a Deep<'a>,
    state: State<'a, T>,
}

enum State<'a, T> {
    New(Task<'a, T>),
    /// Polled by its caller.
    Within(Task<'a, T>),
    /// Polled by the driver.
    Beyond(Rc<Cell<Option<T>>>),
    Done,
}

impl<'a, T: 'a> Future for Call<'a, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let deep = self.deep;
        let within = deep.within.get();
        let (poll, state) = match std::mem::replace(&mut self.state, State::Done) {
            State::New(task) if within >= WITHIN => (Poll::Pending, State::Beyond(deep.spawn(task))),
            State::New(mut task) | State::Within(mut task) => {
                deep.within.set(within + 1);
                let poll = task.as_mut().poll(context);
                deep.within.set(within);
                (poll, State::Within(task))
            }
            State::Beyond(slot) => (slot.take().map_or(Poll::Pending, Poll::Ready), State::Beyond(slot)),
            State::Done => (Poll::Pending, State::Done),
        };
        if poll.is_pending() {
            self.state = state;
        }
        poll
    }
}

/// Runs `main` and all its callees to completion and returns the result of `main`.
pub(crate) fn run<'a, T: 'a>(deep: &Deep<'a>, main: impl Future<Output = T> + 'a) -> T {
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
                let callee = deep.take().expect("invariant: a suspended task has named its callee");
                stack.push(callee);
            }
        }
    }
    slot.take().expect("invariant: the first task ran to its end")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed<'a>(deep: &'a Deep<'a>, n: u32) -> Task<'a, u64> {
        Box::pin(async move { if n == 0 { 0 } else { 1 + deep.call(boxed(deep, n - 1)).await } })
    }

    #[test]
    fn a_million_levels() {
        let deep = Deep::new();
        assert_eq!(run(&deep, boxed(&deep, 1_000_000)), 1_000_000);
    }
}
