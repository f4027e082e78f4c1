//! Linear maps of gradients that follow from layouts and dtypes alone.
//!
//! The backward walk applies these maps between the formulas of operators: it sums gradients, reverses broadcasting,
//! and moves gradients between a view and its base. Each map has an adjoint among them, so a walk that is recorded
//! ([`LinearMap::apply`] with `record`) can itself be differentiated, to any order.

use super::history::{self, Edge, Node, NodeKind};
use super::region::{self, Geometry};
use crate::error::KernelError;
use crate::structural::sum_gradients;
use flambeau_tensor::Tensor;

/// A linear map from one tensor to another.
#[derive(Clone, Debug)]
pub(super) enum LinearMap {
    /// Sums over broadcast dimensions and converts the dtype: from the first geometry to the second.
    Fit(Geometry, Geometry),
    /// Expands to sizes and converts the dtype: the adjoint of `Fit`.
    Widen(Geometry, Geometry),
    /// Places a tensor of the first geometry in zeroed memory and reads it there as the second geometry. Elements of
    /// the first that share memory are summed.
    Transfer {
        from: Geometry,
        to: Geometry,
        /// The base, if its elements share memory: each gets an equal part.
        shared: Option<Geometry>,
    },
    /// Replaces by zeros the elements of a base that belong to a view of it.
    Erase { base: Geometry, view: Geometry },
}

impl LinearMap {
    /// The map that reads a view of a base.
    pub(super) fn view(base: Geometry, view: Geometry) -> LinearMap {
        let shared = base.overlaps().then(|| base.clone());
        LinearMap::Transfer { from: base, to: view, shared }
    }

    pub(super) fn adjoint(&self) -> LinearMap {
        match self.clone() {
            LinearMap::Fit(from, to) => LinearMap::Widen(to, from),
            LinearMap::Widen(from, to) => LinearMap::Fit(to, from),
            LinearMap::Transfer { from, to, shared } => LinearMap::Transfer { from: to, to: from, shared },
            erase @ LinearMap::Erase { .. } => erase,
        }
    }

    /// Applies the map. If `record` is set and the tensor has a history, the result gets one.
    pub(super) fn apply(&self, tensor: &Tensor, record: bool) -> Result<Tensor, KernelError> {
        let result = match self {
            LinearMap::Fit(_, to) => to.fit(tensor.clone())?,
            LinearMap::Widen(_, to) => to.widen(tensor)?,
            LinearMap::Transfer { from, to, shared } => region::transfer(tensor, from, to, shared.as_ref())?,
            LinearMap::Erase { base, view } => region::erase(tensor, base, view)?,
        };
        if record && !result.ptr_eq(tensor) {
            attach(&result, NodeKind::Linear(self.clone()), &[tensor]);
        }
        Ok(result)
    }
}

/// Returns the sum of two gradients, with a history if `record` is set and one of them has a history.
pub(super) fn sum(a: &Tensor, b: &Tensor, record: bool) -> Result<Tensor, KernelError> {
    let result = sum_gradients(a, b)?;
    if record {
        attach(&result, NodeKind::Sum, &[a, b]);
    }
    Ok(result)
}

/// Returns a gradient as a function of tensors on which it depends with derivative zero.
pub(super) fn flat(grad: &Tensor, of: &[Option<Edge>]) -> Tensor {
    let edges: Vec<Option<Edge>> =
        std::iter::once(history::gradient_edge(grad)).chain(of.iter().cloned()).collect();
    if edges[1..].iter().all(Option::is_none) {
        return grad.clone();
    }
    let result = grad.alias();
    history::set_result(&result, &Node::new(NodeKind::ZeroDerivative, edges), 0);
    result
}

/// Reverses broadcasting and restores the dtype of a gradient of a tensor of this geometry.
pub(super) fn fit(grad: Tensor, to: &Geometry, record: bool) -> Result<Tensor, KernelError> {
    if to.fits(&grad) {
        return Ok(grad);
    }
    LinearMap::Fit(Geometry::of(&grad), to.clone()).apply(&grad, record)
}

/// Registers `result` as the result of a map of `operands`, if one of them has a history.
fn attach(result: &Tensor, kind: NodeKind, operands: &[&Tensor]) {
    let edges: Vec<_> = operands.iter().map(|t| history::gradient_edge(t)).collect();
    if edges.iter().any(Option::is_some) {
        history::set_result(result, &Node::new(kind, edges), 0);
    }
}
