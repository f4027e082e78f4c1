//! The source of random bits: MT19937 of Matsumoto and Nishimura, seeded by one 32-bit word.

/// Words of state.
const WORDS: usize = 624;
/// Distance of the word that is mixed in.
const SHIFT: usize = 397;

/// The state of a generator.
#[derive(Clone)]
pub struct Engine {
    state: Box<[u32; WORDS]>,
    next: usize,
    /// The second number of a pair of normal numbers, until it is used.
    pub(super) spare_normal: Option<f64>,
}

impl Engine {
    /// The number of words of the state.
    pub const WORDS: usize = WORDS;

    /// Makes an engine from the lower 32 bits of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Engine {
        let mut state = Box::new([0; WORDS]);
        let mut word = seed as u32;
        state[0] = word;
        for (i, slot) in state.iter_mut().enumerate().skip(1) {
            word = (word ^ (word >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
            *slot = word;
        }
        Engine { state, next: WORDS, spare_normal: None }
    }

    /// Makes an engine from its state: the words, the position of the next one, and a normal number that is left of a pair. Returns
    /// `None` if there is no such position.
    #[must_use]
    pub fn from_state(words: [u32; Engine::WORDS], next: usize, spare_normal: Option<f64>) -> Option<Engine> {
        (next <= WORDS).then(|| Engine { state: Box::new(words), next, spare_normal })
    }

    /// Returns the state: see [`Engine::from_state`].
    #[must_use]
    pub fn state(&self) -> (&[u32; Engine::WORDS], usize, Option<f64>) {
        (&self.state, self.next, self.spare_normal)
    }

    /// Computes the next block of state words.
    fn refill(&mut self) {
        let state = &mut self.state;
        for i in 0..WORDS {
            let joined = (state[i] & 0x8000_0000) | (state[(i + 1) % WORDS] & 0x7fff_ffff);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            state[i] = state[(i + SHIFT) % WORDS] ^ (joined >> 1) ^ odd;
        }
        self.next = 0;
    }

    /// Returns 32 random bits.
    #[inline]
    pub fn bits32(&mut self) -> u32 {
        if self.next == WORDS {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// Returns 64 random bits: the first word is the upper half.
    #[inline]
    pub fn bits64(&mut self) -> u64 {
        let high = u64::from(self.bits32());
        high << 32 | u64::from(self.bits32())
    }

    /// Returns an f32 in `[0, 1)`, of 24 bits.
    #[inline]
    pub fn unit_f32(&mut self) -> f32 {
        (self.bits32() & 0x00ff_ffff) as f32 * (1.0 / 16_777_216.0)
    }

    /// Returns an f64 in `[0, 1)`, of 53 bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.bits64() & ((1 << 53) - 1)) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Returns an integer below `n`, which is not 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        if n >= 1 << 32 { self.bits64() % n } else { u64::from(self.bits32()) % n }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        // The reference implementation's first outputs for the seed 5489, and its 10,000th.
        let mut engine = Engine::new(5489);
        assert_eq!([engine.bits32(), engine.bits32(), engine.bits32()], [3499211612, 581869302, 3890346734]);
        let mut last = 0;
        for _ in 3..10_000 {
            last = engine.bits32();
        }
        assert_eq!(last, 4123659995);
    }
}
