//! Facts about a graph, kept in step with it and never changing it.
//!
//! Every fact is an [`Analysis`], obtained by type from [`Analyses`], which first brings it in step with the graph's
//! journal.

mod analysis;
mod cache;
pub mod shape;

pub use analysis::{Analysis, AnalysisCx, Update};
pub use cache::{Analyses, AnalysisSet, Stats};
pub use shape::{Dtype, Shape};
