//! Facets by which lowerings of foreign programs find operators without naming them.
//!
//! Programs traced from Python call functions of Python on their symbolic numbers: `operator.add`, `math.trunc`. An
//! operator that computes such a function on numbers of its parameter types states it ([`PythonFunction`]). Lowerings of
//! control flow need a few operators by their meaning: one operator states each [`LoweringRole`].

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
pub enum LoweringRole {
    /// `(tensor, dim) -> int`: a size.
    Size,
    /// `(tensor, dim, index) -> tensor`: a slice without that dimension, a view.
    Select,
    /// `(tensors, dim) -> tensor`: the tensors along a new dimension.
    Stack,
    /// `(list, item) -> list`: appends to the list.
    Append,
    /// `(list) -> ()`: reverses the order of the list.
    Reverse,
    /// `(value, value) -> bool`: whether two values are different objects.
    IsNot,
    /// `(tensor) -> bool`: whether the only element is nonzero.
    ToBool,
    /// `(tensor, memory_format) -> tensor`: a copy.
    Clone,
    /// `(tensor, cuda_enabled, cpu_enabled, cuda_dtype, cpu_dtype) -> tensor`: the tensor in the dtype of its device if it
    /// is of single precision.
    ToReducedPrecision,
    /// `(tensor, cuda_enabled, cpu_enabled) -> tensor`: the tensor in single precision if it is of half precision.
    ToFullPrecision,
    /// `(tensor, source, destination) -> tensor`: the dimension `source` at the position `destination`, a view.
    MoveDim,
    /// `(tensor, dims) -> tensor`: a copy with the elements along the dimensions in reverse.
    Flip,
    /// `() -> bool`: whether gradients are recorded.
    GradEnabled,
    /// `(bool) -> ()`: turns the recording of gradients on or off.
    SetGradEnabled,
}

/// The dtype in which an operator computes within a region of automatic mixed precision on the CPU. Other operators
/// compute in the dtypes of their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutocastPolicy {
    /// In the dtype of the region.
    Reduced,
    /// In single precision.
    Full,
    /// In those of the operators that compute it: PyTorch calls them one by one, and each has a policy of its own.
    Composite,
}

impl Facet for AutocastPolicy {
    const NAME: &'static str = "autocast";
}

impl Facet for LoweringRole {
    const NAME: &'static str = "role";
}
