//! Properties of whole programs: all crates together, on generated and recorded programs. They share one program of tests,
//! because each holds the whole library. `filetests` and `suites` are apart because guarded runs take them alone, `scaling`
//! because it measures time.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

mod bodies;
mod corners;
mod decomposed;
mod derivatives;
mod gradients;
mod guards;
mod hooks;
mod host_objects;
mod kept;
mod operator_errors;
mod overloads;
mod properties;
mod recorded;
mod refused;
mod unusual;
