//! What operators and hosts bring to execution, and what tries them.
//!
//! A [`Kernel`] computes an operator, a [`Pointwise`] formula lets it be fused, a [`Sample`] says what it should be tried on. A
//! [`Host`] gives a run its output, limits and random numbers.

pub use flambeau_exec::{
    CancelToken, ExecError, Fault, Gen, Host, HostCalls, Intrinsic, Kernel, KernelCx, KernelError,
    KernelResult, OpDefExt, Pointwise, Rets, Sample, Site, TileArg, TileBuilder, TileOp, TileVal, Tolerance,
    TraceEntry,
};

/// Trying whether the rules that operators state hold in what they do.
pub mod soundness {
    pub use flambeau_exec::soundness::{
        Effort, FactTrial, Forecast, Forgetting, Watched, try_facts, try_operator, watch, watch_partial,
    };
}

/// Recording a run for differentiation.
pub mod tape {
    pub use flambeau_exec::tape::{Tape, backward, detach, gathered, gradients, is_leaf, is_recorded};
}

/// How tensors and lists for samples are drawn.
pub mod sample {
    pub use flambeau_exec::sample::{
        ALL_FLOATS, COMPLEXES, Elements, FLOATS, INTS, NUMBERS, broadcastable, shape, tensor,
    };
}
