//! The operator library: each operator's facts side by side, grouped by family.
