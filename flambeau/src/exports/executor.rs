//! Specialization of entries to the profiles of their first calls.
//!
//! An [`ExecutionPlan`] is code that is valid under a precondition on the arguments, the types of its graph's inputs, and under
//! guards, its bail-outs ([`Code::bailouts`](flambeau_exec::Code::bailouts)).

pub use flambeau_executor::{Deopt, DeoptError, Deoptimization, ExecutionPlan};
