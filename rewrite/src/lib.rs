//! Everything that changes a graph: pass manager, passes, patches, equality saturation.
