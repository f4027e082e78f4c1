//! Lowering of a model to a graph of the IR.
