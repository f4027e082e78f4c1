//! Calls of differentiated graphs: one node of history for a whole function.
//!
//! The forward graph has run without a tape. A walk runs the backward graph on the values that the forward graph
//! returned for it. A recorded walk, whose result must be differentiable again, calls the function again on a tape, with
//! the history that the arguments had, and continues in that recording.

use super::history::{self, Edge, Node, NodeKind};
use super::record::without_history;
use super::region::Geometry;
use crate::error::{ExecError, KernelError};
use crate::host::Host;
use flambeau_ir::value::IValue;
use flambeau_tensor::Tensor;
use parking_lot::Mutex;
use std::sync::Arc;

/// The derivative of a called function.
pub trait GraphDerivative: Send + Sync {
    /// Returns the gradients of the sources, given those of the outputs and the captures; `None` where there is none.
    ///
    /// # Errors
    /// Returns the error of the backward graph.
    fn backward(
        &self,
        grads: Vec<IValue>,
        captures: Vec<IValue>,
        host: &mut Host,
    ) -> Result<Vec<IValue>, ExecError>;

    /// Calls the function on its arguments with the host's tape; returns the outputs that have gradients.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn again(&self, args: Vec<IValue>, host: &mut Host) -> Result<Vec<Tensor>, ExecError>;
}

/// A call of a function with a differentiated graph.
pub(super) struct GraphCall {
    derivative: Arc<dyn GraphDerivative>,
    outputs: Vec<Geometry>,
    /// Per argument of the call, the source that it is, if any.
    sources: Vec<Option<usize>>,
    saved: Mutex<Option<SavedCall>>,
}

struct SavedCall {
    args: Vec<IValue>,
    captures: Vec<IValue>,
    /// Saved tensors with their versions.
    kept: Vec<(Tensor, u64)>,
}

/// Records a call: `outputs` depend on `sources`. `args` are the arguments, and `arg_sources` states for each of them
/// the source that it is.
pub fn record_graph(
    derivative: Arc<dyn GraphDerivative>,
    outputs: &[Tensor],
    sources: &[Tensor],
    (args, arg_sources): (&[IValue], Vec<Option<usize>>),
    captures: &[IValue],
) {
    let edges: Vec<Option<Edge>> = sources.iter().map(history::edge).collect();
    if edges.iter().all(Option::is_none) {
        return;
    }
    let mut kept = Vec::new();
    let captures = captures.iter().map(|value| without_history(value, &mut kept)).collect();
    // Sources are read again by a recorded walk.
    kept.extend(sources.iter().map(|t| {
        let alias = t.alias();
        let version = alias.version();
        (alias, version)
    }));
    let args = args.iter().map(|value| match value {
        IValue::Tensor(t) => IValue::Tensor(t.alias()),
        other => other.clone(),
    });
    let saved = SavedCall { args: args.collect(), captures, kept };
    let geometry = outputs.iter().map(Geometry::of).collect();
    let call =
        GraphCall { derivative, outputs: geometry, sources: arg_sources, saved: Mutex::new(Some(saved)) };
    let node = Node::new(NodeKind::Graph(call), edges);
    for (i, output) in outputs.iter().enumerate() {
        history::set_result(output, &node, i);
    }
}

impl GraphCall {
    /// Runs the backward graph.
    pub(super) fn gradients(
        &self,
        grads: &[Option<Tensor>],
        host: &mut Host,
    ) -> Result<Vec<IValue>, ExecError> {
        let captures = self.check()?.1;
        let grads = self.outputs.iter().enumerate().map(|(i, geometry)| {
            let grad = grads.get(i).cloned().flatten();
            grad.map_or_else(|| geometry.zeros(), Ok).map(IValue::Tensor)
        });
        let grads = grads.collect::<Result<_, _>>().map_err(|e| ExecError::of(&e))?;
        self.derivative.backward(grads, captures, host)
    }

    /// Calls the function again, recorded; returns its outputs.
    pub(super) fn again(&self, edges: &[Option<Edge>], host: &mut Host) -> Result<Vec<Tensor>, ExecError> {
        let args = self.check()?.0;
        let args = args.into_iter().zip(&self.sources).map(|(value, source)| {
            let edge = source.and_then(|i| edges[i].clone());
            match (&value, edge) {
                (IValue::Tensor(t), Some(edge)) => IValue::Tensor(history::with_origin(t, edge)),
                _ => value,
            }
        });
        self.derivative.again(args.collect(), host)
    }

    pub(super) fn release(&self) {
        drop(self.saved.lock().take());
    }

    /// Returns arguments and captures, if they were not released or modified.
    fn check(&self) -> Result<(Vec<IValue>, Vec<IValue>), ExecError> {
        let saved = self.saved.lock();
        let Some(saved) = &*saved else { return Err(ExecError::of(&history::released())) };
        if let Some((tensor, version)) = saved.kept.iter().find(|(t, version)| t.version() != *version) {
            let error = KernelError::input(format!(
                "one of the variables needed for gradient computation has been modified by an inplace operation: \
                 a tensor {:?} is at version {}; expected version {version} instead",
                tensor.sizes(),
                tensor.version(),
            ));
            return Err(ExecError::of(&error));
        }
        Ok((saved.args.clone(), saved.captures.clone()))
    }
}
