//! The multiplicative congruential stream for Bernoulli and exponential numbers: the engine provides one word, which
//! seeds the stream, and the stream provides the numbers.

/// The modulus, a Mersenne prime.
const MODULUS: u64 = (1 << 31) - 1;
const FACTOR: u64 = 1_132_489_760;

pub(super) struct Stream(u64);

impl Stream {
    pub(super) fn new(seed: u32) -> Stream {
        Stream((u64::from(seed) % MODULUS).max(1))
    }

    /// Returns the next number in `(0, 1)`.
    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        let now = self.0;
        self.0 = now * FACTOR % MODULUS;
        now as f64 / MODULUS as f64
    }
}
