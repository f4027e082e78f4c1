//! Calls of differentiated graphs: one node of history for a whole function.
//!
//! The forward graph has run without a tape. A backward pass runs the backward graph on the values that the forward graph
//! saved for it. A recorded backward pass, whose result must be differentiable again, calls the function again on a tape,
//! with the history that the arguments had, and continues in that recording. So does a backward pass in which an output has
//! no gradient: substituted zeros would run backward formulas that autograd skips.
//!
//! A *source* is a tensor among the arguments that has a gradient edge.

use super::history::{self, Edge, Node, NodeKind};
use super::record::without_history;
use super::view::{self, NewView};
use crate::error::{ExecError, KernelError};
use crate::host::Host;
use flambeau_ir::value::{Generator, IValue};
use flambeau_tensor::Tensor;
use parking_lot::Mutex;
use std::sync::Arc;

/// The derivative of a called function.
pub trait GraphDerivative: Send + Sync {
    /// Returns one gradient per source, `None` if it is zero. `grads` has one gradient per output, `None` for an output that
    /// does not depend on a source; `captures` are the values that the forward graph saved.
    ///
    /// # Errors
    /// Returns the error of the backward graph.
    fn backward(
        &self,
        grads: Vec<IValue>,
        captures: Vec<IValue>,
        host: &mut Host,
    ) -> Result<Vec<IValue>, ExecError>;

    /// Returns the gradients of the sources with a history of their own, so that they can be differentiated, computed again
    /// from the arguments of the call; `None` if that is not possible.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn recorded_backward(
        &self,
        args: &[IValue],
        grads: &[IValue],
        host: &mut Host,
    ) -> Result<Option<Vec<IValue>>, ExecError>;

    /// Calls the function on its arguments with the host's tape; returns the outputs, `None` for one that is not a tensor.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn rerun_recorded(&self, args: Vec<IValue>, host: &mut Host) -> Result<Vec<Option<Tensor>>, ExecError>;
}

/// A call of a function with a differentiated graph.
pub(super) struct GraphCall {
    derivative: Arc<dyn GraphDerivative>,
    /// Whether each output depends on a source in this call.
    outputs: Vec<bool>,
    /// For each argument of the call, the sources among its tensors.
    sources: Vec<ArgSources>,
    /// State of the default generator before the call, if the call drew numbers.
    generator: Option<Generator>,
    saved: Mutex<Option<SavedCall>>,
}

/// For each tensor of an argument, its index among the sources, or `None`. The tensors are the argument itself, or the
/// elements of a list or tuple.
pub type ArgSources = Vec<Option<usize>>;

struct SavedCall {
    args: Vec<IValue>,
    captures: Vec<IValue>,
    /// Captures with their versions.
    saved_versions: Vec<(Tensor, u64)>,
    /// Sources with their versions: a recorded walk reads them again.
    source_versions: Vec<(Tensor, u64)>,
}

/// A call that has run, for [`record_graph`].
pub struct RecordedCall<'a> {
    /// Its arguments.
    pub args: &'a [IValue],
    /// For each argument, the sources among its tensors.
    pub arg_sources: Vec<ArgSources>,
    /// The values that the forward graph keeps.
    pub captures: &'a [IValue],
    /// State of the default generator before the call, if the call drew numbers.
    pub generator: Option<Generator>,
}

/// Records a call: `outputs` depend on `sources`, except those that are `None`.
pub fn record_graph(
    derivative: Arc<dyn GraphDerivative>,
    outputs: &[Option<Tensor>],
    sources: &[Tensor],
    call: RecordedCall<'_>,
) {
    let edges: Vec<Option<Edge>> = sources.iter().map(history::gradient_edge).collect();
    if outputs.iter().all(Option::is_none) || edges.iter().all(Option::is_none) {
        return;
    }
    let with_version = |t: &Tensor| {
        let alias = t.alias();
        let version = alias.version();
        (alias, version)
    };
    let source_versions: Vec<(Tensor, u64)> = sources.iter().map(with_version).collect();
    // Most arguments are sources, and many captures are arguments: one alias stands for all of these.
    let mut saved_versions = Vec::with_capacity(call.captures.len());
    let kept = |value: &IValue, notes: &mut Vec<(Tensor, u64)>| {
        let source = value.as_tensor().and_then(|t| sources.iter().position(|source| source.ptr_eq(t)));
        match source {
            Some(i) => {
                notes.push(source_versions[i].clone());
                IValue::Tensor(source_versions[i].0.clone())
            }
            None => without_history(value, notes),
        }
    };
    let captures = call.captures.iter().map(|value| kept(value, &mut saved_versions)).collect();
    let mut unread = Vec::new();
    let args = call.args.iter().map(|value| kept(value, &mut unread)).collect();
    let saved = SavedCall { args, captures, saved_versions, source_versions };
    let call = GraphCall {
        derivative,
        outputs: outputs.iter().map(Option::is_some).collect(),
        sources: call.arg_sources,
        generator: call.generator,
        saved: Mutex::new(Some(saved)),
    };
    let node = Node::new(NodeKind::Graph(call), edges);
    for (i, output) in outputs.iter().enumerate() {
        output.iter().for_each(|output| history::set_result(output, &node, i));
    }
}

/// Whether the gradients of views of a tensor follow from the layouts: no two elements of its base share memory.
pub fn has_views_by_layout(tensor: &Tensor) -> bool {
    matches!(view::positions(tensor), Ok(None))
}

/// Registers a result as a view of a tensor that existed before the call: its gradient follows from the layouts
/// ([`has_views_by_layout`]).
pub fn record_view(view: &Tensor, of: &Tensor) {
    history::set_view(view, of, NewView::default());
}

impl GraphCall {
    /// Runs the backward graph. Unless `retain` is set, the captures are released before: the backward graph frees each of them
    /// after its last use, as a walk over the nodes of single operators does.
    pub(super) fn gradients(
        &self,
        grads: &[Option<Tensor>],
        retain: bool,
        host: &mut Host,
    ) -> Result<Vec<IValue>, ExecError> {
        let captures = {
            let mut saved = self.saved.lock();
            let found = checked(&saved, false)?;
            if retain {
                found.captures.clone()
            } else {
                saved.take().map_or_else(Vec::new, |released| released.captures)
            }
        };
        let missing =
            || ExecError::of(&KernelError::internal("an output of a differentiated graph has no gradient"));
        let grads = self.outputs.iter().enumerate().map(|(i, depends)| {
            match grads.get(i).cloned().flatten().filter(|_| *depends) {
                Some(grad) => Ok(IValue::Tensor(grad)),
                None if *depends => Err(missing()),
                None => Ok(IValue::None),
            }
        });
        let grads = grads.collect::<Result<_, _>>()?;
        self.derivative.backward(grads, captures, host)
    }

    /// Whether every output has a gradient.
    pub(super) fn is_complete(&self, grads: &[Option<Tensor>]) -> bool {
        let has = |i: usize| grads.get(i).is_some_and(Option::is_some);
        self.outputs.iter().enumerate().all(|(i, depends)| !depends || has(i))
    }

    /// Calls the function again, recorded; returns its outputs.
    pub(super) fn again(
        &self,
        edges: &[Option<Edge>],
        host: &mut Host,
    ) -> Result<Vec<Option<Tensor>>, ExecError> {
        let args = self.connected_args(edges)?;
        self.with_generator(host, |host| self.derivative.rerun_recorded(args, host))
    }

    /// Returns the gradients of the sources with their history; `None` if the call has to be recorded again.
    pub(super) fn recorded_gradients(
        &self,
        edges: &[Option<Edge>],
        grads: &[Option<Tensor>],
        host: &mut Host,
    ) -> Result<Option<Vec<IValue>>, ExecError> {
        let args = self.connected_args(edges)?;
        let grads = self.outputs.iter().enumerate().map(|(i, depends)| {
            let grad = grads.get(i).cloned().flatten().filter(|_| *depends);
            grad.map_or(IValue::None, IValue::Tensor)
        });
        let grads: Vec<IValue> = grads.collect();
        self.with_generator(host, |host| self.derivative.recorded_backward(&args, &grads, host))
    }

    /// Returns the arguments of the call with the history that they had.
    fn connected_args(&self, edges: &[Option<Edge>]) -> Result<Vec<IValue>, ExecError> {
        let args = checked(&self.saved.lock(), true)?.args.clone();
        let args = args.into_iter().zip(&self.sources).map(|(value, sources)| {
            let mut sources = sources.iter();
            history::connected(&value, &mut || edges[(*sources.next()?)?].clone())
        });
        Ok(args.collect())
    }

    /// Runs with the random numbers that the call drew.
    fn with_generator<R>(&self, host: &mut Host, work: impl FnOnce(&mut Host) -> R) -> R {
        let now = host.rng().clone();
        if let Some(generator) = &self.generator {
            host.set_rng(generator.fork());
        }
        let found = work(host);
        host.set_rng(now);
        found
    }

    pub(super) fn release(&self) {
        drop(self.saved.lock().take());
    }
}

/// Returns what a call saved, if it was not released, and what the walk reads was not modified: captures, and the sources in a
/// recorded walk.
fn checked(saved: &Option<SavedCall>, is_recorded: bool) -> Result<&SavedCall, ExecError> {
    let Some(saved) = saved else { return Err(ExecError::of(&history::released())) };
    let sources = saved.source_versions.iter().filter(|_| is_recorded);
    let mut read = saved.saved_versions.iter().chain(sources);
    if let Some((tensor, version)) = read.find(|(t, version)| t.version() != *version) {
        let error = KernelError::input(format!(
            "one of the variables needed for gradient computation has been modified by an inplace operation: \
             a tensor {:?} is at version {}; expected version {version} instead",
            tensor.sizes(),
            tensor.version(),
        ));
        return Err(ExecError::of(&error));
    }
    Ok(saved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::{BackwardOptions, NoDerivatives, Tape, accumulated_grad, backward};
    use flambeau_tensor::DType;

    /// Returns a new tensor as the gradient, and records whether it got the only handles of the captures, and the address
    /// of the new tensor.
    #[derive(Default)]
    struct Observed {
        owns_captures: Mutex<Vec<bool>>,
        gradient: Mutex<usize>,
    }

    impl GraphDerivative for Observed {
        fn backward(
            &self,
            _: Vec<IValue>,
            captures: Vec<IValue>,
            _: &mut Host,
        ) -> Result<Vec<IValue>, ExecError> {
            let owned = captures.iter().filter_map(IValue::as_tensor).map(Tensor::is_unique);
            self.owns_captures.lock().extend(owned);
            let gradient = tensor();
            *self.gradient.lock() = gradient.storage().address();
            Ok(vec![IValue::Tensor(gradient)])
        }

        fn recorded_backward(
            &self,
            _: &[IValue],
            _: &[IValue],
            _: &mut Host,
        ) -> Result<Option<Vec<IValue>>, ExecError> {
            Ok(None)
        }

        fn rerun_recorded(&self, _: Vec<IValue>, _: &mut Host) -> Result<Vec<Option<Tensor>>, ExecError> {
            Ok(Vec::new())
        }
    }

    fn tensor() -> Tensor {
        Tensor::zeros(&[3], DType::F32).expect("memory")
    }

    #[test]
    fn a_walk_that_does_not_retain_the_graph_keeps_no_captures_and_copies_no_gradient() {
        let tape = Tape { derivatives: Arc::new(NoDerivatives), nesting: 0 };
        for retain_graph in [true, false] {
            let (leaf, output, derivative) = (tensor(), tensor(), Arc::new(Observed::default()));
            leaf.set_requires_grad(true);
            let captures = vec![IValue::Tensor(tensor())];
            let call =
                RecordedCall { args: &[], arg_sources: Vec::new(), captures: &captures, generator: None };
            let recorded: Arc<dyn GraphDerivative> = derivative.clone();
            record_graph(recorded, &[Some(output.clone())], std::slice::from_ref(&leaf), call);
            drop(captures);
            let mode = BackwardOptions { retain_graph, ..BackwardOptions::default() };
            let walk = || backward(&tape, &[(output.clone(), tensor())], mode, &mut Host::quiet());
            walk().expect("a gradient");
            assert_eq!(*derivative.owns_captures.lock(), [!retain_graph]);
            let gradient = accumulated_grad(&leaf).expect("a gradient");
            assert_eq!(gradient.storage().address(), *derivative.gradient.lock());
            assert_eq!(walk().is_ok(), retain_graph, "released captures are an error");
        }
    }
}
