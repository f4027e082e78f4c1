//! Random numbers, identical to those of PyTorch's CPU generator.
//!
//! [`Engine`] is the source of bits: a 32-bit Mersenne Twister and the second half of the last pair of normal numbers.
//! [`Distribution`] is a distribution; [`fill`] writes a tensor of its numbers. The order in which elements are drawn, the bits
//! that each consumes and the precision of evaluation determine the result of a seed, so they are fixed here.

mod congruent;
mod distribution;
mod engine;
mod normal;

pub use distribution::{Distribution, fill, permutation, uniform_of};
pub use engine::Engine;
pub use normal::one as standard_normal;
