//! Structure of nested inputs and outputs (pytrees).
