//! Completeness tests: every operator with a kernel is documented, runs on samples, and complies with its declared
//! types, shapes and aliasing; operators without tensors give PyTorch's recorded results; `docs/ops.md` matches the
//! registry.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

mod docs;
mod facts;
mod formulas;
mod gradients;
mod hostile;
mod matrix;
mod recorded;
mod synonyms;
mod variants;
