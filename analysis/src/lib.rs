//! Facts about a graph, kept in step with it and never changing it.

pub mod shape;

pub use shape::{Dtype, Shape};
