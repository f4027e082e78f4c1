//! The test library: file tests, properties, conformance runner.
//!
//! [`value`] implements the encoding of recorded values: comparison, parsing and printing. It shares no code with the
//! library, so a bug in the library cannot hide itself in the tests. [`conform`] replays recorded behaviour of PyTorch;
//! [`filetest`] runs the files of `tests/cases`.

pub mod canonical;
pub mod conform;
pub mod filetest;
pub mod scaling;
pub mod value;
