//! Boundary sizes: lengths of vectors and blocks, and all thresholds that the kernels state.

use flambeau_exec::Gen;
use flambeau_tensor::thresholds::{self, Threshold};

/// Lengths of vectors, strips and blocks, in addition to the thresholds that kernels state.
const ALWAYS: [usize; 7] = [4, 8, 16, 32, 64, 128, 256];

/// The sizes from which cases are drawn.
pub(super) struct Sizes {
    lengths: Vec<usize>,
    products: Vec<usize>,
    /// Maximum number of elements or multiplications of one case.
    pub(super) work: usize,
}

impl Sizes {
    /// Collects sizes around every threshold, for cases of at most `work` elements or multiplications.
    pub(super) fn new(work: usize) -> Sizes {
        let (mut lengths, mut products) = (ALWAYS.to_vec(), Vec::new());
        for threshold in thresholds::all() {
            match threshold {
                Threshold::Length(_, n) => lengths.push(n),
                Threshold::Product(_, n) => products.push(n),
                // Bytes in the dtypes that are tested most.
                Threshold::Bytes(_, n) => products.extend([n / 4, n / 8]),
            }
        }
        for all in [&mut lengths, &mut products] {
            all.sort_unstable();
            all.dedup();
        }
        products.retain(|&n| n <= work);
        Sizes { lengths, products, work }
    }

    /// Draws a length of at most `most`: rarely 0, often 1 to 3, sometimes up to 40, in half of the cases at or next to a boundary.
    pub(super) fn length(&self, g: &mut Gen<'_>, most: usize) -> usize {
        let n = match g.below(8) {
            0 if g.one_in(4) => 0,
            0..=2 => 1 + g.below(3),
            3 => 1 + g.below(most.clamp(1, 40)),
            _ => {
                let fitting = self.lengths.partition_point(|&n| n <= most);
                match fitting {
                    0 => 1 + g.below(3),
                    count => (self.lengths[g.below(count)] + g.below(3)).saturating_sub(1),
                }
            }
        };
        n.min(most)
    }

    /// Draws `count` lengths whose product is at most the work; often just below, at or just above a threshold of
    /// products.
    pub(super) fn lengths(&self, g: &mut Gen<'_>, count: usize) -> Vec<usize> {
        let mut sizes = vec![1; count];
        let mut left = self.work;
        let mut order: Vec<usize> = (0..count).collect();
        for i in (1..count).rev() {
            order.swap(i, g.below(i + 1));
        }
        let target = (!self.products.is_empty() && g.one_in(3)).then(|| *g.pick(&self.products));
        let mut so_far = 1;
        for (k, &d) in order.iter().enumerate() {
            sizes[d] = match target {
                // The last length brings the product to the threshold.
                Some(target) if k + 1 == count => (target / so_far + g.below(2)).clamp(1, left.max(1)),
                Some(target) => self.length(g, (target / so_far).min(left).max(1)).max(1),
                None => self.length(g, left),
            };
            so_far *= sizes[d].max(1);
            left = self.work / so_far.max(1);
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_lie_on_both_sides_of_thresholds() {
        let sizes = Sizes::new(1 << 21);
        let mut g = Gen::from_seed(1);
        let products: Vec<usize> = (0..20_000).map(|_| sizes.lengths(&mut g, 3).iter().product()).collect();
        assert!(products.iter().all(|&p| p <= sizes.work));
        for &threshold in &sizes.products {
            let near = |p: usize| p.abs_diff(threshold) * 8 <= threshold;
            assert!(products.iter().any(|&p| p <= threshold && near(p)), "below {threshold}");
            assert!(products.iter().any(|&p| p > threshold && near(p)), "above {threshold}");
        }
    }
}
