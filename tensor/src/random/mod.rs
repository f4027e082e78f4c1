//! Random numbers, number for number those of PyTorch's generator on the processor.
//!
//! [`Engine`] is the source of bits: a 32-bit Mersenne Twister and the second half of the last pair of normal numbers.
//! [`Law`] says how numbers are distributed; [`fill`] writes a tensor of them. What order elements are drawn in, how many
//! bits each takes and in which precision a law is evaluated are part of what a seed means, so they are fixed here.

mod congruent;
mod engine;
mod law;
mod normal;

pub use engine::Engine;
pub use law::{Law, fill, permutation, uniform_of};
pub use normal::one as standard_normal;
