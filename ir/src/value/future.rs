//! Values to come, shared between the task that computes one and those that wait.
//!
//! The value of an awaitable is not computed until somebody waits: it is a future with a [`Task`], which whoever waits
//! first takes up.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::{IValue, walk};
use crate::graph::Graph;
use crate::types::{Type, TypeCell};

/// Why a future has no value.
pub type FutureError = Arc<dyn std::error::Error + Send + Sync>;

/// What a future ends with.
pub type FutureResult = Result<IValue, FutureError>;

type Callback = Box<dyn FnOnce(&FutureResult) + Send>;

/// A value to come. Completed once; what waits is told then.
#[derive(Clone)]
pub struct Future(Arc<Data>);

/// What computes the value of an awaitable: a graph, with its arguments.
#[derive(Clone)]
pub struct Task {
    /// What is run.
    pub graph: Arc<Graph>,
    /// What it is run on.
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
        if held.iter().any(walk::is_nested) {
            walk::bury(held);
        }
    }
}

impl State {
    /// Takes out all values it holds.
    fn held(&mut self) -> Vec<IValue> {
        let mut held = self.task.take().map_or_else(Vec::new, |task| task.args);
        held.extend(self.result.take().and_then(Result::ok));
        held
    }
}

impl Future {
    /// A future of a value of type `elem`.
    #[must_use]
    pub fn new(elem: Type) -> Self {
        Self::of(elem, false, State::default())
    }

    /// A value of type `elem` that `task` computes when somebody waits for it.
    #[must_use]
    pub fn awaitable(elem: Type, task: Task) -> Self {
        Self::of(elem, true, State { task: Some(task), ..State::default() })
    }

    /// An awaitable whose value is there.
    #[must_use]
    pub fn awaited(elem: Type, value: IValue) -> Self {
        Self::of(elem, true, State { result: Some(Ok(value)), ..State::default() })
    }

    fn of(elem: Type, is_awaitable: bool, state: State) -> Self {
        let (elem, state) = (TypeCell::new(elem), Mutex::new(state));
        Self(Arc::new(Data { elem, is_awaitable, state, done: Condvar::new() }))
    }

    /// `Future[T]` or `Await[T]`.
    #[must_use]
    pub fn type_of(&self) -> Type {
        let make = if self.0.is_awaitable { Type::awaitable } else { Type::future };
        make(self.elem_type())
    }

    /// The result, or what computes it if that is for whoever waits: asked at once, for another thread may bring the
    /// result meanwhile. Nothing of a future whose task somebody else has taken up.
    #[must_use]
    pub fn result_or_task(&self) -> Option<Result<FutureResult, Task>> {
        let state = self.0.state.lock();
        let result = state.result.clone().map(Ok);
        result.or_else(|| state.task.clone().map(Err))
    }

    /// The value if it is there, or what a task that nobody has taken up computes it from.
    pub(super) fn parts(&self) -> Vec<IValue> {
        match self.result_or_task() {
            Some(Ok(result)) => result.into_iter().collect(),
            Some(Err(task)) => task.args,
            None => Vec::new(),
        }
    }

    /// A future that is complete.
    #[must_use]
    pub fn ready(elem: Type, value: IValue) -> Self {
        let future = Self::new(elem);
        future.complete(Ok(value));
        future
    }

    /// The type of the value.
    #[must_use]
    pub fn elem_type(&self) -> Type {
        self.0.elem.get()
    }

    /// Completes it and tells what waits, on this thread. The second time nothing happens and the answer is `false`.
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

    /// The result, if it is there.
    #[must_use]
    pub fn result(&self) -> Option<FutureResult> {
        self.0.state.lock().result.clone()
    }

    /// Whether the result is there.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.state.lock().result.is_some()
    }

    /// Runs `callback` with the result: now if it is there, else when it comes, on the thread that brings it.
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

    /// Blocks this thread until the result is there.
    pub fn wait(&self) -> FutureResult {
        let mut state = self.0.state.lock();
        loop {
            if let Some(result) = &state.result {
                return result.clone();
            }
            self.0.done.wait(&mut state);
        }
    }

    /// Whether both are one future.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its identity, stable while it lives.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub(super) fn dismantle(self, into: &mut Vec<IValue>) {
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
    fn completes_once_and_tells_everyone() {
        let future = Future::new(Type::INT);
        let told = Arc::new(AtomicI64::new(0));
        let tell = |add: i64| {
            let told = Arc::clone(&told);
            move |result: &FutureResult| {
                let value = result.as_ref().ok().and_then(IValue::as_int).unwrap_or(0);
                told.fetch_add(value * add, Ordering::Relaxed);
            }
        };
        future.on_done(tell(1));
        let waiting = std::thread::spawn({
            let future = future.clone();
            move || future.wait().ok().and_then(|v| v.as_int())
        });
        assert!(future.result().is_none() && !future.is_done());
        assert!(future.complete(Ok(IValue::Int(7))));
        assert!(!future.complete(Ok(IValue::Int(8))));
        future.on_done(tell(10));
        assert_eq!(told.load(Ordering::Relaxed), 77);
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
        assert!(Future::new(Type::INT).result_or_task().is_none(), "somebody else computes it");
    }
}
