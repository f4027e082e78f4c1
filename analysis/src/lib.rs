//! Analyses of a graph, kept up to date with it. They never change the graph.
//!
//! Every analysis implements [`Analysis`] and is accessed by type through [`Analyses`], which first updates it from the
//! graph's journal.

pub mod alias;
mod analysis;
mod cache;
pub mod calls;
mod dominance;
pub mod effects;
pub mod guards;
mod liveness;
pub mod shape;
mod standard;
#[cfg(test)]
mod testing;

pub use alias::{
    AliasDb, ErrorOrder, Exposure, LiveWriters, MemorySet, Motion, MoveError, MovePlan, WriteOrder,
};
pub use analysis::{Analysis, AnalysisCx, ConstantOwner, Update};
pub use cache::{Analyses, AnalysisSet, Stats};
pub use calls::CallGraph;
pub use dominance::Dominance;
pub use effects::NestedEffects;
pub use guards::GuardGraph;
pub use liveness::Liveness;
pub use shape::{Dtype, ResultShapes, Shapes};
pub use standard::{STANDARD, StandardAnalysis};
