//! Facets of operators for execution, hosts, and tests of both.
//!
//! A [`Kernel`] computes an operator, a [`Pointwise`] formula lets the fuser fuse it, a [`Sample`] describes arguments
//! to test it on. A [`Host`] provides the output, limits and random numbers of a run.

pub use flambeau_exec::{
    BailoutState, CallOrigin, CancelToken, CodeCounts, ExecError, Fault, Gen, Host, HostCalls,
    InstructionCounts, Intrinsic, Kernel, KernelCx, KernelError, KernelResult, NodeTime, NodeTimes, OpDefExt,
    Pointwise, Rets, Sample, TileArg, TileBuilder, TileOp, TileVal, Tolerance, TraceEntry, Warning,
};

/// Tests of the claims that shape and dtype rules make about results.
pub mod soundness {
    pub use flambeau_exec::soundness::{
        FactTrial, FactWeakener, Prediction, TrialCount, Watched, try_facts, try_operator, watch,
        watch_partial,
    };
}

/// Recording of a run for differentiation.
pub mod tape {
    pub use flambeau_exec::tape::{
        BackwardOptions, HookHandle, Tape, accumulated_grad, backward, clear_accumulated_grad, detach,
        gradients, implicit_gradient, is_leaf, is_recorded, set_accumulated_grad,
    };
}

/// Random generation of tensors and lists for samples.
pub mod sample {
    pub use flambeau_exec::sample::{
        ALL_FLOATS, COMPLEXES, ElementDistribution, FLOATS, INTS, NUMBERS, broadcastable, shape, tensor,
    };
}
