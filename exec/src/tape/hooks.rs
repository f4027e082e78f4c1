//! Hooks on gradients: functions that a backward walk calls with the complete gradient of a tensor, and that may replace it.
//!
//! A hook belongs to the node and output that computed the tensor when the hook was registered, so after a write to the tensor
//! it still gets the gradient of the elements from before the write.

use super::history::{self, AccumulatedGrad, BackwardOptions, Node};
use crate::error::KernelError;
use crate::host::Host;
use flambeau_tensor::Tensor;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// A function of a gradient, which returns another gradient for the rest of the walk, or `None` to keep it. Operations that it
/// runs on the host are recorded if the walk is.
pub type GradientHook = dyn Fn(&Tensor, &mut Host) -> Result<Option<Tensor>, KernelError> + Send + Sync;

/// Identifies a registered hook.
#[derive(Clone, Debug)]
pub struct HookHandle {
    node: Weak<Node>,
    id: u64,
}

impl HookHandle {
    /// Removes the hook; later walks do not call it.
    pub fn remove(self) {
        let node = self.node.upgrade();
        if let Some(hooks) = node.as_ref().and_then(|node| node.hooks.get()) {
            let mut registered = hooks.registered.lock();
            let found = registered.iter().position(|hook| hook.id == self.id);
            let removed = found.map(|at| registered.remove(at));
            // What the hook owns is dropped without the lock: it may remove or register hooks itself.
            drop(registered);
            drop(removed);
        }
    }
}

/// The hooks of a node; most nodes have none.
#[derive(Default)]
pub(super) struct Hooks {
    registered: Mutex<Vec<Registered>>,
    /// Outputs whose gradients accumulate in their tensors.
    retained: Mutex<Vec<(usize, Weak<AccumulatedGrad>)>>,
}

#[derive(Clone)]
struct Registered {
    id: u64,
    output: usize,
    hook: Arc<GradientHook>,
}

/// The node and output whose hooks get the gradient of a tensor.
fn source(tensor: &Tensor, error: &str) -> Result<history::Edge, KernelError> {
    history::gradient_edge(tensor).ok_or_else(|| KernelError::input(error))
}

fn hooks(node: &Node) -> &Hooks {
    node.hooks.get_or_init(Box::default)
}

/// Registers a hook on a tensor's gradient. Hooks of a tensor are called in the order of registration, once per walk that reaches
/// the tensor, before the gradient is accumulated or returned. A hook that owns its tensor forms a reference cycle: both live until
/// the hook is removed.
///
/// # Errors
/// Returns an input error if the tensor does not require a gradient.
pub fn register_hook(tensor: &Tensor, hook: Arc<GradientHook>) -> Result<HookHandle, KernelError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let edge = source(tensor, "cannot register a hook on a tensor that doesn't require gradient")?;
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    hooks(&edge.node).registered.lock().push(Registered { id, output: edge.output, hook });
    Ok(HookHandle { node: Arc::downgrade(&edge.node), id })
}

/// Lets the gradients of a tensor that is not a leaf accumulate as those of leaves do: see [`super::accumulated_grad`]. No effect on
/// leaves.
///
/// # Errors
/// Returns an input error if the tensor does not require a gradient.
pub fn retain_grad(tensor: &Tensor) -> Result<(), KernelError> {
    let edge = source(tensor, "can't retain_grad on Tensor that has requires_grad=False")?;
    if !history::is_leaf(&edge)
        && let Some(grad) = history::retained_grad(tensor)
    {
        hooks(&edge.node).retained.lock().push((edge.output, Arc::downgrade(&grad)));
    }
    Ok(())
}

/// Calls the hooks of a node, which may replace its complete gradients, and accumulates retained ones.
pub(super) fn run_hooks(
    node: &Node,
    grads: &mut [Option<Tensor>],
    mode: BackwardOptions,
    host: &mut Host,
) -> Result<(), KernelError> {
    let Some(hooks) = node.hooks.get() else { return Ok(()) };
    // A hook may register and remove hooks.
    let registered = hooks.registered.lock().clone();
    for Registered { output, hook, .. } in registered {
        let Some(Some(grad)) = grads.get_mut(output) else { continue };
        let Some(replaced) = hook(grad, host)? else { continue };
        if replaced.sizes() != grad.sizes() {
            return Err(KernelError::input("hook has changed the size of value"));
        }
        if replaced.dtype() != grad.dtype() {
            return Err(KernelError::input(format!(
                "hook has changed the type of value (was {} got {})",
                grad.dtype(),
                replaced.dtype()
            )));
        }
        *grad = replaced;
    }
    let retained = hooks.retained.lock().clone();
    for (output, accumulated) in retained {
        if let Some(Some(grad)) = grads.get(output) {
            history::accumulate(&accumulated, grad.clone(), mode)?;
        }
    }
    Ok(())
}

/// Lets the gradients that a tensor retains follow it to the node of a write.
pub(super) fn move_retained(of: &Arc<AccumulatedGrad>, from: &Node, to: &Node, output: usize) {
    let Some(before) = from.hooks.get() else { return };
    before.retained.lock().retain(|(_, accumulated)| !std::ptr::eq(accumulated.as_ptr(), Arc::as_ptr(of)));
    hooks(to).retained.lock().push((output, Arc::downgrade(of)));
}

pub(super) type NodeHooks = OnceLock<Box<Hooks>>;
