//! Facts about a graph, kept in step with it: [`Analyses`] gives an [`Analysis`] by its type.
//!
//! [`AliasDb`] says which values may share memory and what writes it, [`Shapes`] what is known of tensors, [`Liveness`]
//! which values are still needed, [`Dominance`] what runs before what, [`CallGraph`] which functions call which.

pub use flambeau_analysis::{
    AliasDb, Analyses, Analysis, AnalysisCx, AnalysisSet, CallGraph, ConstantOwner, Dominance, Dtype,
    LiveWriters, Liveness, MemorySet, Motion, MovePlan, NestedEffects, Obstacle, STANDARD, Shape, Shapes,
    StandardAnalysis, Stats, Update, WriteOrder,
};

/// Rules for shapes and dtypes, and the facts they are told and give.
pub mod shape {
    pub use flambeau_analysis::shape::{
        Arg, Dim, Dims, Dtype, Expr, Fact, Operand, Range, Shape, ShapeCx, Shapes, Strides, Symbols,
        TensorFact, axis, broadcast_dims, wrap,
    };
}
