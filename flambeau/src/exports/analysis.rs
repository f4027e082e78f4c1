//! Analyses of a graph, updated from its journal: [`Analyses`] returns an [`Analysis`] by its type.
//!
//! [`AliasDb`] answers which values may share memory and which nodes write it. [`Shapes`] has the known properties of
//! tensors, [`Liveness`] the live values at each node, [`Dominance`] the dominance relation of nodes, [`CallGraph`] the
//! calls between functions.

pub use flambeau_analysis::{
    AliasDb, Analyses, Analysis, AnalysisCx, AnalysisSet, CallGraph, ConstantOwner, Dominance, Dtype,
    ErrorOrder, Exposure, LiveWriters, Liveness, MemorySet, Motion, MoveError, MovePlan, NestedEffects,
    ResultShapes, STANDARD, Shapes, StandardAnalysis, Stats, Update, WriteOrder,
};

/// Rules for shapes and dtypes, and the facts that they take and return.
pub mod shape {
    pub use flambeau_analysis::shape::{
        ArgRef, Dim, Dims, Dtype, Expr, Fact, OperandFact, Range, ResultShapes, ShapeCx, Shapes, Strides,
        Symbols, TensorFact, axis, broadcast_dims, wrap,
    };
}
