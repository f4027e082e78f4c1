//! Strided tensors over shared, versioned, lockable storage: the loops, not the operators.
