//! Facets by which lowerings of foreign programs find operators without naming them.
//!
//! Programs traced from Python call functions of Python on their symbolic numbers: `operator.add`, `math.trunc`. An
//! operator that computes such a function on numbers of its parameter types states it ([`PythonFunction`]). Lowerings of
//! control flow need a few operators by their meaning: one operator states each [`Role`].

use super::Facet;

/// The Python functions that an operator computes on numbers of its parameter types, by their qualified names:
/// `_operator.add`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonFunction(pub &'static [&'static str]);

impl Facet for PythonFunction {
    const NAME: &'static str = "python function";
}

/// The meaning of an operator for lowerings of control flow. One operator has each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `(tensor, dim) -> int`: a size.
    Size,
    /// `(tensor, dim, index) -> tensor`: a slice without that dimension, a view.
    Select,
    /// `(tensors, dim) -> tensor`: the tensors along a new dimension.
    Stack,
    /// `(list, item) -> list`: appends to the list.
    Append,
    /// `(tensor) -> bool`: whether the only element is nonzero.
    ToBool,
    /// `(tensor, memory_format) -> tensor`: a copy.
    Clone,
    /// `() -> bool`: whether gradients are recorded.
    GradEnabled,
    /// `(bool) -> ()`: turns the recording of gradients on or off.
    SetGradEnabled,
}

impl Facet for Role {
    const NAME: &'static str = "role";
}
