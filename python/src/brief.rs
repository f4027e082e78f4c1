//! Calls of brief functions: they compute numbers in less time than the interpreter lock takes to be released and taken.
//!
//! Such a call needs none of what others prepare: it takes no memory of Python's objects, draws no random numbers, prints nothing and
//! calls no Python. So it keeps the lock and uses a [`Host`] again, which is a third of the time of a call otherwise.

use std::cell::Cell;

use flambeau::exec::Host;
use flambeau::ir::Prim;
use flambeau::{Entry, Graph, IValue, Type};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};
use smallvec::SmallVec;

/// Maximum number of nodes of a brief function.
const MAX_NODES: usize = 64;

thread_local! {
    static HOST: Cell<Option<Host>> = const { Cell::new(None) };
}

/// Returns whether a function is brief: it has few nodes, all pure operators of numbers, and no loops or calls.
pub(crate) fn is_brief(graph: &Graph) -> bool {
    let is_number = |value| [Type::INT, Type::FLOAT, Type::BOOL, Type::NONE].contains(&graph.ty(value));
    graph.node_count() <= MAX_NODES
        && graph.inputs().all(is_number)
        && graph.nodes_deep().all(|node| {
            let is_known = graph.op_name(node).ns() == "aten"
                || graph.is_prim(node, Prim::Constant)
                || graph.is_prim(node, Prim::If);
            is_known && graph.effects(node).is_pure() && graph.results(node).all(is_number)
        })
}

/// Calls a brief function that has been compiled. Returns `None` if an argument is not just a number of its parameter's type, or if the
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
    let mut host = HOST.take().unwrap_or_default();
    let result = entry.call_on(&values, &[], &mut host);
    HOST.set(Some(host));
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
