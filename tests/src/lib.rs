//! File tests, properties, conformance runner.
//!
//! [`value`] knows the encoding that recorded values have, and compares, reads and prints them; it shares no code
//! with the library, so that a mistake there cannot hide itself here. [`conform`] replays recorded behaviour of
//! PyTorch; [`filetest`] runs the files of `tests/cases`.

pub mod canonical;
pub mod conform;
pub mod filetest;
pub mod scaling;
pub mod value;
