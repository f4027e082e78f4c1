//! Calls of brief functions: they run in less time than the interpreter lock takes to be released and taken.
//!
//! Such a call needs little of what others prepare: it draws no random numbers, prints and warns of nothing, calls no Python, records no
//! gradients, and its operators do not ask whether gradients are recorded. Without loops and calls, and with few elements, it cannot
//! reach the limits of a session. So it keeps the lock and uses a [`Host`] without limits again: nothing that such a call does, an error
//! included, changes that host. This saves 100 to 150 ns. A function of numbers takes no memory of Python's objects either ([`call`]).
//! One of tensors is brief if they have few elements. It neither writes them nor returns a view of them, so that its arguments may be
//! copies.

use std::cell::Cell;

use flambeau::exec::{Host, Pointwise};
use flambeau::ir::{NodeId, Prim};
use flambeau::{Entry, Graph, IValue, Type};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};
use smallvec::SmallVec;

/// Maximum number of nodes of a brief function.
const MAX_NODES: usize = 64;

/// Maximum of the product of the numbers of elements of the arguments, which bounds those of each tensor that a brief call computes.
const MAX_ELEMENTS: usize = 4096;

thread_local! {
    // Boxed, because a host is large to move.
    static HOST: Cell<Option<Box<Host>>> = const { Cell::new(None) };
}

/// What a brief function computes with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brief {
    Numbers,
    /// Tensors and numbers.
    Tensors,
}

impl Brief {
    /// Returns what a function computes with, if it is brief: it has few nodes, all constants, pure operators of numbers or pointwise
    /// ones, no loops or calls, and returns a number or tensor, or nothing.
    pub(crate) fn of(graph: &Graph) -> Option<Brief> {
        let is_number = |value| [Type::INT, Type::FLOAT, Type::BOOL].contains(&graph.ty(value));
        let is_result = |value| is_number(value) || graph.ty(value) == Type::NONE;
        let is_tensor = |value| graph.ty(value).is_tensor();
        let is_of_numbers = |node| {
            let is_known = graph.op_name(node).ns() == "aten" || graph.is_prim(node, Prim::If);
            is_known && graph.effects(node).is_pure() && graph.results(node).all(is_number)
        };
        let is_of_tensors = |node: NodeId| {
            let is_known =
                graph.op(node).row().is_some_and(|row| graph.registry().facet::<Pointwise>(row).is_some());
            let effects = graph.effects(node);
            is_known && effects.is_pure() && !effects.result_aliases() && graph.results(node).all(is_tensor)
        };
        let is_constant = |node| graph.is_prim(node, Prim::Constant) && !graph.results(node).any(is_tensor);
        let is_brief = graph.node_count() <= MAX_NODES
            && graph.inputs().all(|input| is_number(input) || is_tensor(input))
            && graph.outputs().all(|output| is_result(output) || is_tensor(output))
            && graph.nodes_deep().all(|node| is_constant(node) || is_of_numbers(node) || is_of_tensors(node));
        let has_tensors = graph.inputs().any(is_tensor);
        is_brief.then_some(if has_tensors { Brief::Tensors } else { Brief::Numbers })
    }
}

/// Whether a call of a brief function with these arguments is brief: they have few elements, and it records no gradients.
pub(crate) fn are_small(args: &[IValue]) -> bool {
    // A size of a result is that of an argument, so a result has at most the product of their numbers of elements.
    let mut bound = 1_usize;
    args.iter().all(|arg| match arg {
        IValue::Tensor(tensor) => {
            bound = bound.saturating_mul(tensor.numel().max(1));
            bound <= MAX_ELEMENTS && !tensor.requires_grad()
        }
        _ => true,
    })
}

/// Calls a function on the host that brief calls of this thread share.
#[inline(always)]
pub(crate) fn with_host<T>(call: impl FnOnce(&mut Host) -> T) -> T {
    let mut host = HOST.take().unwrap_or_default();
    let result = call(&mut host);
    HOST.set(Some(host));
    result
}

/// Calls a brief function of numbers that has been compiled. Returns `None` if an argument is not just a number of its parameter's type, or if the
/// call fails: a call as of other functions then converts the argument, or fails again and reports the error.
pub(crate) fn call<'py>(entry: &Entry, args: &Bound<'py, PyTuple>) -> Option<Bound<'py, PyAny>> {
    let params = entry.params();
    if args.len() != params.len() {
        return None;
    }
    let mut values = SmallVec::<[IValue; 4]>::new();
    for (arg, param) in args.iter_borrowed().zip(params) {
        values.push(number(&arg, param.ty)?);
    }
    let result = with_host(|host| entry.call_on(&values, &[], host));
    let py = args.py();
    match result.ok()? {
        IValue::Int(i) => Some(PyInt::new(py, i).into_any()),
        IValue::Float(x) => Some(PyFloat::new(py, x).into_any()),
        IValue::Bool(b) => Some(PyBool::new(py, b).to_owned().into_any()),
        IValue::None => Some(py.None().into_bound(py)),
        _ => None,
    }
}

fn number(object: &Bound<'_, PyAny>, ty: Type) -> Option<IValue> {
    match ty {
        Type::INT if object.is_exact_instance_of::<PyInt>() => object.extract().ok().map(IValue::Int),
        Type::FLOAT => object.cast_exact::<PyFloat>().ok().map(|x| IValue::Float(x.value())),
        Type::BOOL => object.cast_exact::<PyBool>().ok().map(|b| IValue::Bool(b.is_true())),
        _ => None,
    }
}
