//! Every operator that can be run is complete: documented, tried on samples, true to its declared types, shapes and
//! aliasing; operators on plain values give PyTorch's recorded results; `docs/ops.md` is what the registry says.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

mod docs;
mod facts;
mod gradients;
mod hostile;
mod matrix;
mod recorded;
