//! Sizes at which kernels change their method, collected for tests and fuzzers.
//!
//! A kernel is most likely wrong just below and just above such sizes: the last partial strip, the first packed
//! product. The constants are defined with the kernels. This list refers to them, so tests of the boundaries follow
//! their changes.

use crate::{
    bytes, channels, conv, fft, lanes, linalg, loops, matmul, reduce, select, storage, strided, threads,
};

/// A size at which a kernel changes its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Elements of one dimension.
    Length(&'static str, usize),
    /// A product of sizes: multiplications, elements of a result.
    Product(&'static str, usize),
    /// Bytes of a storage or range.
    Bytes(&'static str, usize),
}

/// Thresholds of modules without a list of their own.
const OTHER_THRESHOLDS: &[Threshold] = &[
    Threshold::Bytes("bytes.rs CACHED_COPY_BYTES", bytes::CACHED_COPY_BYTES),
    Threshold::Bytes("bytes.rs PIECE", bytes::PIECE),
    Threshold::Bytes("storage.rs PREPACK_BYTES", storage::PREPACK_BYTES),
    Threshold::Length("fft/plan.rs BUTTERFLIES", fft::BUTTERFLIES),
    Threshold::Length("select.rs THRESHOLD", select::THRESHOLD),
    Threshold::Length("lanes.rs TAIL_LANES", lanes::TAIL_LANES),
    Threshold::Length("lanes.rs MERGED_ROWS", lanes::MERGED_ROWS),
    Threshold::Length("strided.rs LINES", strided::LINES),
    Threshold::Length("strided.rs SQUARE", strided::SQUARE),
    Threshold::Product("threads.rs GRAIN", threads::GRAIN),
];

/// Returns all thresholds.
pub fn all() -> impl Iterator<Item = Threshold> {
    [
        OTHER_THRESHOLDS,
        matmul::THRESHOLDS,
        channels::THRESHOLDS,
        conv::THRESHOLDS,
        loops::THRESHOLDS,
        reduce::THRESHOLDS,
        linalg::THRESHOLDS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_name_their_constants() {
        for threshold in all() {
            let (Threshold::Length(name, n) | Threshold::Product(name, n) | Threshold::Bytes(name, n)) =
                threshold;
            assert!(name.contains(".rs ") && n > 0, "{threshold:?}");
        }
        assert!(all().any(|t| matches!(t, Threshold::Product(name, _) if name.ends_with("TINY"))));
    }
}
