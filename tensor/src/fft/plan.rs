//! Plans of transforms, and a cache of them.
//!
//! A plan holds the roots of unity of one length and the order of steps. Computing it takes longer than a transform, so
//! the plans used last are kept for the process, up to [`PLANS`] plans and [`PLAN_BYTES`] bytes. A plan that was taken
//! from the cache computes the same bits as a new one.
//!
//! Lengths come from programs. The memory for a plan is checked against the budget before the plan is made, by an upper
//! bound ([`needed`]); the time for it is O(n log n) for any length.

use std::sync::Arc;

use parking_lot::Mutex;
use rustfft::{Fft, FftDirection, FftPlannerScalar};

use super::{C, halves};
use crate::budget::check_budget;
use crate::error::Result;

/// The largest prime length with a transform of its own. A length with a larger prime factor is computed by convolutions,
/// of up to three times its length.
pub(crate) const BUTTERFLIES: usize = 31;

/// Most plans in the cache.
const PLANS: usize = 64;

/// Most bytes of plans in the cache.
const PLAN_BYTES: usize = 16 << 20;

/// The rows that a plan transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    /// Complex rows.
    Complex,
    /// Real rows of even length.
    Real,
    /// The first half of conjugate-symmetric rows of even length.
    Hermitian,
}

/// The key of a plan.
type Key = (Rows, usize, bool);

/// A transform of rows of one length in one direction.
pub(super) struct FftPlan {
    key: Key,
    fft: Arc<dyn Fft<f64>>,
    /// Not for complex rows: [`halves::roots`].
    roots: Vec<C>,
}

impl FftPlan {
    /// Returns a plan for rows of `n` numbers; for real and conjugate-symmetric rows, that of the complex transform of
    /// half the length.
    ///
    /// # Errors
    /// Returns [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory) if the plan may exceed the budget.
    pub(super) fn of(rows: Rows, n: usize, inverse: bool) -> Result<Arc<FftPlan>> {
        let key = (rows, n, inverse);
        // The budget decides in the same way whether or not the plan is in the cache.
        let bytes = needed(n);
        check_budget(bytes)?;
        if let Some(plan) = CACHE.lock().find(key) {
            return Ok(plan);
        }
        let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
        let (points, roots) = match rows {
            Rows::Complex => (n, Vec::new()),
            Rows::Real | Rows::Hermitian => (n / 2, halves::roots(n)),
        };
        let fft = FftPlannerScalar::new().plan_fft(points, direction);
        let plan = Arc::new(FftPlan { key, fft, roots });
        CACHE.lock().insert(Arc::clone(&plan), bytes);
        Ok(plan)
    }

    /// Returns the number of complex numbers that are transformed.
    pub(super) fn points(&self) -> usize {
        self.fft.len()
    }

    /// Returns the number of elements of the scratch memory.
    pub(super) fn scratch(&self) -> usize {
        self.fft.get_inplace_scratch_len()
    }

    /// Returns the roots of unity for rows of real numbers.
    pub(super) fn roots(&self) -> &[C] {
        &self.roots
    }

    /// Transforms [`FftPlan::points`] numbers in place: `X[j]` is the sum of `x[k] e^(-2 pi i j k / n)`, with the opposite
    /// sign for an inverse transform, and no factor.
    pub(super) fn run(&self, row: &mut [C], scratch: &mut [C]) {
        self.fft.process_with_scratch(row, scratch);
    }
}

/// Returns an upper bound of the bytes of a plan while it is made.
///
/// In elements: a length without large prime factors takes its roots twice. A convolution by Bluestein's algorithm, of
/// length `m <= 3 n`, takes its chirp (`n`), the transform of the chirp, the roots of its own transform and scratch memory
/// (`m` each): `10 n`. Other ways to compute a prime length take less.
fn needed(n: usize) -> usize {
    let of = |elements: usize| n.saturating_mul(elements * size_of::<C>());
    // A length whose row does not fit memory is not factored, which would take a time of the order of its root.
    if n >= 1 << 40 || largest_prime(n) > BUTTERFLIES { of(10) } else { of(4) }
}

/// Returns the largest prime factor, or 1.
fn largest_prime(mut n: usize) -> usize {
    let mut largest = 1;
    let mut p = 2;
    while p * p <= n {
        while n.is_multiple_of(p) {
            (largest, n) = (p, n / p);
        }
        p += 1;
    }
    largest.max(n)
}

static CACHE: Mutex<Cache> = Mutex::new(Cache { plans: Vec::new(), bytes: 0 });

/// Plans with upper bounds of their bytes, the one used last at the end.
struct Cache {
    plans: Vec<(Arc<FftPlan>, usize)>,
    bytes: usize,
}

impl Cache {
    fn find(&mut self, key: Key) -> Option<Arc<FftPlan>> {
        let at = self.plans.iter().rposition(|(plan, _)| plan.key == key)?;
        self.plans[at..].rotate_left(1);
        self.plans.last().map(|(plan, _)| Arc::clone(plan))
    }

    /// Adds a plan and removes those that have not been used for longest, beyond the limits of the cache.
    fn insert(&mut self, plan: Arc<FftPlan>, bytes: usize) {
        // Another thread may have made the same plan in the meantime.
        if bytes > PLAN_BYTES || self.find(plan.key).is_some() {
            return;
        }
        self.plans.push((plan, bytes));
        self.bytes += bytes;
        let mut removed = 0;
        while self.plans.len() - removed > PLANS || self.bytes > PLAN_BYTES {
            self.bytes -= self.plans[removed].1;
            removed += 1;
        }
        self.plans.drain(..removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::MemoryBudget;
    use crate::error::TensorError;

    fn plan(n: usize) -> Arc<FftPlan> {
        FftPlan::of(Rows::Complex, n, false).expect("there is no budget")
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let mut cache = Cache { plans: Vec::new(), bytes: 0 };
        for n in 1..=2 * PLANS {
            cache.insert(plan(n), needed(n));
            assert!(cache.find((Rows::Complex, 1, false)).is_some(), "used again after every insertion");
        }
        assert_eq!(cache.plans.len(), PLANS);
        assert!(cache.find((Rows::Complex, 2, false)).is_none());
        cache.insert(plan(3), needed(3));
        cache.insert(plan(4), PLAN_BYTES - 1);
        assert!(cache.bytes <= PLAN_BYTES && cache.plans.len() < PLANS);
        assert_eq!(cache.bytes, cache.plans.iter().map(|(_, bytes)| bytes).sum::<usize>());
        cache.insert(plan(5), PLAN_BYTES + 1);
        assert!(cache.find((Rows::Complex, 5, false)).is_none());
    }

    #[test]
    fn lengths_beyond_the_budget_are_refused_before_they_are_planned() {
        MemoryBudget::new(1 << 20).run(|| {
            assert!(FftPlan::of(Rows::Complex, 4096, false).is_ok());
            for n in [65_536, 999_983, 1_000_000_007, usize::MAX / 2, usize::MAX] {
                for rows in [Rows::Complex, Rows::Real] {
                    let refused = FftPlan::of(rows, n, true);
                    assert!(matches!(refused, Err(TensorError::OutOfMemory { .. })), "{n}");
                }
            }
        });
        assert!(FftPlan::of(Rows::Complex, 1 << 58, false).is_err(), "more than the machine has");
    }

    #[test]
    fn largest_primes() {
        for (n, p) in
            [(0, 1), (1, 1), (2, 2), (62, 31), (961, 31), (1009, 1009), (65_536, 2), (2 * 10_007, 10_007)]
        {
            assert_eq!(largest_prime(n), p, "{n}");
        }
    }
}
