//! Futures: results of asynchronous tasks, shared between the task and the threads that wait.
//!
//! An awaitable is a future with a [`Task`]. The task does not run until a thread waits for the value; the first such
//! thread runs the task.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::{IValue, walk};
use crate::graph::Graph;
use crate::types::{Type, TypeCell};

/// The error of a future whose task failed.
pub type FutureError = Arc<dyn std::error::Error + Send + Sync>;

/// The outcome of a future.
pub type FutureResult = Result<IValue, FutureError>;

type Callback = Box<dyn FnOnce(&FutureResult) + Send>;

/// A future or awaitable. It is completed once, which runs its callbacks and wakes the waiting threads.
#[derive(Clone)]
pub struct Future(Arc<Data>);

/// The computation of an awaitable: a graph with its arguments.
#[derive(Clone)]
pub struct Task {
    /// The graph to run.
    pub graph: Arc<Graph>,
    /// The arguments of the graph.
    pub args: Vec<IValue>,
}

struct Data {
    elem: TypeCell,
    is_awaitable: bool,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    result: Option<FutureResult>,
    task: Option<Task>,
    callbacks: Vec<Callback>,
}

impl Drop for Data {
    fn drop(&mut self) {
        let held = self.state.get_mut().held();
        if held.iter().any(walk::is_container) {
            walk::drop_nested(held);
        }
    }
}

impl State {
    /// Removes and returns all values in the state.
    fn held(&mut self) -> Vec<IValue> {
        let mut held = self.task.take().map_or_else(Vec::new, |task| task.args);
        held.extend(self.result.take().and_then(Result::ok));
        held
    }
}

impl Future {
    /// Creates a future for a value of type `elem`.
    #[must_use]
    pub fn new(elem: Type) -> Self {
        Self::of(elem, false, State::default())
    }

    /// Creates an awaitable of type `elem` whose value `task` computes on demand.
    #[must_use]
    pub fn awaitable(elem: Type, task: Task) -> Self {
        Self::of(elem, true, State { task: Some(task), ..State::default() })
    }

    /// Creates an awaitable that is complete.
    #[must_use]
    pub fn awaited(elem: Type, value: IValue) -> Self {
        Self::of(elem, true, State { result: Some(Ok(value)), ..State::default() })
    }

    fn of(elem: Type, is_awaitable: bool, state: State) -> Self {
        let (elem, state) = (TypeCell::new(elem), Mutex::new(state));
        Self(Arc::new(Data { elem, is_awaitable, state, done: Condvar::new() }))
    }

    /// Returns the type `Future[T]` or `Await[T]`.
    #[must_use]
    pub fn type_of(&self) -> Type {
        let make = if self.0.is_awaitable { Type::awaitable } else { Type::future };
        make(self.elem_type())
    }

    /// Returns the result, or the task of an awaitable that is not complete; `None` for a future without both. One lock
    /// covers both, since another thread may complete the future in between.
    #[must_use]
    pub fn result_or_task(&self) -> Option<Result<FutureResult, Task>> {
        let state = self.0.state.lock();
        let result = state.result.clone().map(Ok);
        result.or_else(|| state.task.clone().map(Err))
    }

    /// Returns the value if the future is complete, or the arguments of the task if the task is still pending.
    pub(super) fn parts(&self) -> Vec<IValue> {
        match self.result_or_task() {
            Some(Ok(result)) => result.into_iter().collect(),
            Some(Err(task)) => task.args,
            None => Vec::new(),
        }
    }

    /// Creates a future that is complete.
    #[must_use]
    pub fn ready(elem: Type, value: IValue) -> Self {
        let future = Self::new(elem);
        future.complete(Ok(value));
        future
    }

    /// Returns the type of the value.
    #[must_use]
    pub fn elem_type(&self) -> Type {
        self.0.elem.get()
    }

    /// Completes the future and runs its callbacks on this thread. Returns `false` without effect if the future is
    /// already complete.
    pub fn complete(&self, result: FutureResult) -> bool {
        let callbacks = {
            let mut state = self.0.state.lock();
            if state.result.is_some() {
                return false;
            }
            state.result = Some(result.clone());
            state.task = None;
            std::mem::take(&mut state.callbacks)
        };
        self.0.done.notify_all();
        for callback in callbacks {
            callback(&result);
        }
        true
    }

    /// Returns the result if the future is complete.
    #[must_use]
    pub fn result(&self) -> Option<FutureResult> {
        self.0.state.lock().result.clone()
    }

    /// Returns whether the future is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.state.lock().result.is_some()
    }

    /// Calls `callback` with the result: immediately if the future is complete, else on the thread that completes it.
    pub fn on_done(&self, callback: impl FnOnce(&FutureResult) + Send + 'static) {
        let result = {
            let mut state = self.0.state.lock();
            match &state.result {
                Some(result) => result.clone(),
                None => {
                    state.callbacks.push(Box::new(callback));
                    return;
                }
            }
        };
        callback(&result);
    }

    /// Blocks this thread until the future is complete and returns the result.
    ///
    /// # Errors
    /// Returns the error of the task.
    pub fn wait(&self) -> FutureResult {
        let mut state = self.0.state.lock();
        loop {
            if let Some(result) = &state.result {
                return result.clone();
            }
            self.0.done.wait(&mut state);
        }
    }

    /// Returns whether both handles refer to the same future.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the identity of the future, unique while the future exists.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub(super) fn take_children(self, into: &mut Vec<IValue>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            into.extend(data.state.get_mut().held());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    #[test]
    fn completes_once_and_calls_every_callback() {
        let future = Future::new(Type::INT);
        let sum = Arc::new(AtomicI64::new(0));
        let callback = |add: i64| {
            let sum = Arc::clone(&sum);
            move |result: &FutureResult| {
                let value = result.as_ref().ok().and_then(IValue::as_int).unwrap_or(0);
                sum.fetch_add(value * add, Ordering::Relaxed);
            }
        };
        future.on_done(callback(1));
        let waiting = std::thread::spawn({
            let future = future.clone();
            move || future.wait().ok().and_then(|v| v.as_int())
        });
        assert!(future.result().is_none() && !future.is_done());
        assert!(future.complete(Ok(IValue::Int(7))));
        assert!(!future.complete(Ok(IValue::Int(8))));
        future.on_done(callback(10));
        assert_eq!(sum.load(Ordering::Relaxed), 77);
        assert_eq!(waiting.join().unwrap(), Some(7));
    }

    #[test]
    fn an_awaitable_has_a_task_until_it_has_a_result() {
        let registry = crate::RegistryBuilder::new().build().expect("no operators");
        let task = Task { graph: Arc::new(Graph::new(registry)), args: vec![IValue::Int(7)] };
        let future = Future::awaitable(Type::INT, task);
        assert_eq!(future.type_of(), Type::awaitable(Type::INT));
        assert!(matches!(future.result_or_task(), Some(Err(task)) if task.args.len() == 1));
        assert_eq!(IValue::Future(future.clone()).sub_values()[0].as_int(), Some(7));
        assert!(future.complete(Ok(IValue::Int(8))) && !future.complete(Ok(IValue::Int(9))));
        let result = future.result_or_task().and_then(Result::ok).and_then(Result::ok);
        assert_eq!(result.and_then(|value| value.as_int()), Some(8));
        assert_eq!(IValue::Future(future).sub_values()[0].as_int(), Some(8));
        assert!(Future::new(Type::INT).result_or_task().is_none(), "the task is already taken");
    }
}
