//! Singular values of upper bidiagonal matrices by implicit QR steps.
//!
//! The method is that of Demmel and Kahan: steps have no shift if a shift would spoil small values, so every singular
//! value has high relative accuracy. Each block is swept from its larger end to its smaller one. Rotations and
//! convergence tests follow LAPACK's `bdsqr` exactly, because the signs of the vectors depend on that sequence.

use super::field::Matrix;
use super::kernels::rotate;
use super::rotate::keeping_sign;

/// Maximum number of sweeps, as a multiple of the square of the order.
const SWEEPS: usize = 6;

/// A bidiagonal matrix that is being made diagonal. `left` and `right` have vectors as rows.
pub(super) struct Bidiagonal<'a> {
    pub(super) diagonal: &'a mut [f64],
    pub(super) above: &'a mut [f64],
    pub(super) left: &'a mut Matrix<f64>,
    pub(super) right: &'a mut Matrix<f64>,
    /// The unit roundoff of the results' precision.
    pub(super) precision: f64,
}

/// Rows `low..=high`, without zero superdiagonal elements, traversed from the larger end: position 0 is `low`, or
/// `high` if `upwards`.
#[derive(Clone, Copy)]
struct Block {
    low: usize,
    high: usize,
    upwards: bool,
}

impl Block {
    fn last(self) -> usize {
        self.high - self.low
    }

    /// Returns the index of the diagonal element at a position.
    fn at(self, i: usize) -> usize {
        if self.upwards { self.high - i } else { self.low + i }
    }

    /// Returns the index of the superdiagonal element between positions `i` and `i + 1`.
    fn off_diagonal_index(self, i: usize) -> usize {
        if self.upwards { self.high - 1 - i } else { self.low + i }
    }
}

impl Bidiagonal<'_> {
    /// Makes the matrix diagonal, with non-negative, unsorted values; `None` if the limit of sweeps is reached.
    pub(super) fn diagonalize(mut self) -> Option<()> {
        let n = self.diagonal.len();
        if n == 1 {
            // A single value's sign moves to the left vector.
            let sign = 1f64.copysign(self.diagonal[0]);
            self.left[(0, 0)] *= sign;
            self.diagonal[0] *= sign;
            return Some(());
        }
        let tolerance = self.precision * self.precision.powf(-0.125).clamp(10.0, 100.0);
        let deflation_bound = self.deflation_bound(tolerance);
        let mut left = SWEEPS * n * n * n;
        let mut seen: Option<Block> = None;
        let mut high = n.saturating_sub(1);
        while high > 0 {
            let low = self.split(high, deflation_bound);
            if low == high {
                high -= 1;
                continue;
            }
            if low + 1 == high {
                self.pair(low);
                high = high.saturating_sub(2);
                continue;
            }
            let upwards = match seen {
                Some(block) if low <= block.high && high >= block.low => block.upwards,
                _ => self.diagonal[low].abs() < self.diagonal[high].abs(),
            };
            let block = Block { low, high, upwards };
            let Some(smallest) = self.smallest(block, tolerance) else { continue };
            seen = Some(block);
            left = left.checked_sub(block.last())?;
            let shift = self.shift(block, smallest, tolerance);
            if shift == 0.0 {
                self.sweep(block);
            } else {
                self.shifted_sweep(block, shift);
            }
            let end = block.off_diagonal_index(block.last() - 1);
            if self.above[end].abs() <= deflation_bound {
                self.above[end] = 0.0;
            }
        }
        for (i, value) in self.diagonal.iter_mut().enumerate() {
            if *value < 0.0 {
                *value = -*value;
                self.right.row_mut(i).iter_mut().for_each(|x| *x = -*x);
            }
        }
        Some(())
    }

    /// Returns the bound below which a superdiagonal element has no noticeable effect on any singular value.
    fn deflation_bound(&self, tolerance: f64) -> f64 {
        let n = self.diagonal.len() as f64;
        let mut mu = self.diagonal.first().map_or(0.0, |d| d.abs());
        let mut least = mu;
        for (d, e) in self.diagonal.iter().skip(1).zip(&*self.above) {
            if least == 0.0 {
                break;
            }
            mu = d.abs() * (mu / (mu + e.abs()));
            least = least.min(mu);
        }
        (tolerance * least / n.sqrt()).max(SWEEPS as f64 * n * n * f64::MIN_POSITIVE)
    }

    /// Returns the first row of the block that ends at `high`.
    fn split(&mut self, high: usize, deflation_bound: f64) -> usize {
        match (0..high).rev().find(|&i| self.above[i].abs() <= deflation_bound) {
            Some(i) => {
                self.above[i] = 0.0;
                i + 1
            }
            None => 0,
        }
    }

    /// Returns a lower bound of the block's singular values; `None` if a superdiagonal element was negligible and set
    /// to zero instead.
    fn smallest(&mut self, block: Block, tolerance: f64) -> Option<f64> {
        let last = block.last();
        let end = block.off_diagonal_index(last - 1);
        if self.above[end].abs() <= tolerance * self.diagonal[block.at(last)].abs() {
            self.above[end] = 0.0;
            return None;
        }
        let mut mu = self.diagonal[block.at(0)].abs();
        let mut least = mu;
        for i in 0..last {
            let e = self.above[block.off_diagonal_index(i)].abs();
            if e <= tolerance * mu {
                self.above[block.off_diagonal_index(i)] = 0.0;
                return None;
            }
            mu = self.diagonal[block.at(i + 1)].abs() * (mu / (mu + e));
            least = least.min(mu);
        }
        Some(least)
    }

    /// Returns the shift of the next sweep: zero if a shift would cost accuracy of small singular values.
    fn shift(&self, block: Block, smallest: f64, tolerance: f64) -> f64 {
        let (n, last) = (self.diagonal.len() as f64, block.last());
        let of_diagonal = self.diagonal[block.low..=block.high].iter();
        let largest =
            of_diagonal.chain(&self.above[block.low..block.high]).fold(0.0, |m: f64, x| m.max(x.abs()));
        if n * tolerance * (smallest / largest) <= self.precision.max(0.01 * tolerance) {
            return 0.0;
        }
        let f = self.diagonal[block.at(last - 1)];
        let shift =
            smaller_of_pair(f, self.above[block.off_diagonal_index(last - 1)], self.diagonal[block.at(last)]);
        let start = self.diagonal[block.at(0)].abs();
        if start > 0.0 && (shift / start).powi(2) < self.precision { 0.0 } else { shift }
    }

    /// Applies the two rotations of a step at positions `i`, `i + 1`. The first is applied to the vectors of the side
    /// where the sweep starts.
    fn rotate_both(&mut self, block: Block, i: usize, first: (f64, f64), second: (f64, f64)) {
        let (p, q) = (block.at(i), block.at(i + 1));
        let (near, far) = if block.upwards {
            (&mut *self.left, &mut *self.right)
        } else {
            (&mut *self.right, &mut *self.left)
        };
        rotate(near, p, q, first.0, first.1);
        rotate(far, p, q, second.0, second.1);
    }

    /// Runs a QR step without a shift.
    fn sweep(&mut self, block: Block) {
        let last = block.last();
        let (mut c, mut old_c, mut old_s) = (1.0, 1.0, 0.0);
        for i in 0..last {
            let (p, q) = (block.at(i), block.at(i + 1));
            let (cos, sin, r) = keeping_sign(self.diagonal[p] * c, self.above[block.off_diagonal_index(i)]);
            if i > 0 {
                self.above[block.off_diagonal_index(i - 1)] = old_s * r;
            }
            c = cos;
            (old_c, old_s, self.diagonal[p]) = keeping_sign(old_c * r, self.diagonal[q] * sin);
            self.rotate_both(block, i, (c, sin), (old_c, old_s));
        }
        let h = self.diagonal[block.at(last)] * c;
        self.diagonal[block.at(last)] = h * old_c;
        self.above[block.off_diagonal_index(last - 1)] = h * old_s;
    }

    /// Runs a QR step with a shift: a bulge is chased from one end to the other.
    fn shifted_sweep(&mut self, block: Block, shift: f64) {
        let last = block.last();
        let start = self.diagonal[block.at(0)];
        let mut f = (start.abs() - shift) * (1f64.copysign(start) + shift / start);
        let mut g = self.above[block.off_diagonal_index(0)];
        for i in 0..last {
            let (p, q, e) = (block.at(i), block.at(i + 1), block.off_diagonal_index(i));
            let (c1, s1, r) = keeping_sign(f, g);
            if i > 0 {
                self.above[block.off_diagonal_index(i - 1)] = r;
            }
            f = c1 * self.diagonal[p] + s1 * self.above[e];
            self.above[e] = c1 * self.above[e] - s1 * self.diagonal[p];
            g = s1 * self.diagonal[q];
            self.diagonal[q] *= c1;
            let (c2, s2, r) = keeping_sign(f, g);
            self.diagonal[p] = r;
            f = c2 * self.above[e] + s2 * self.diagonal[q];
            self.diagonal[q] = c2 * self.diagonal[q] - s2 * self.above[e];
            if i + 1 < last {
                let next = block.off_diagonal_index(i + 1);
                g = s2 * self.above[next];
                self.above[next] *= c2;
            }
            self.rotate_both(block, i, (c1, s1), (c2, s2));
        }
        self.above[block.off_diagonal_index(last - 1)] = f;
    }

    /// Makes a block of two rows diagonal.
    fn pair(&mut self, low: usize) {
        let high = low + 1;
        let of = Pair::of(self.diagonal[low], self.above[low], self.diagonal[high], self.precision);
        (self.diagonal[low], self.above[low], self.diagonal[high]) = (of.larger, 0.0, of.smaller);
        rotate(self.right, low, high, of.right.0, of.right.1);
        rotate(self.left, low, high, of.left.0, of.left.1);
    }
}

/// Returns the smaller singular value of `[[f, g], [0, h]]`.
fn smaller_of_pair(f: f64, g: f64, h: f64) -> f64 {
    let g = g.abs();
    let (low, high) = (f.abs().min(h.abs()), f.abs().max(h.abs()));
    if low == 0.0 {
        return 0.0;
    }
    let (sum, gap) = (1.0 + low / high, (high - low) / high);
    if g < high {
        let ratio = (g / high).powi(2);
        return low * (2.0 / ((sum * sum + ratio).sqrt() + (gap * gap + ratio).sqrt()));
    }
    let ratio = high / g;
    if ratio == 0.0 {
        return low * high / g;
    }
    let c = 1.0 / ((1.0 + (sum * ratio).powi(2)).sqrt() + (1.0 + (gap * ratio).powi(2)).sqrt());
    2.0 * (low * c * ratio)
}

/// The singular values of `[[f, g], [0, h]]`, with signs, and the rotations (cosine, sine) of both sides.
struct Pair {
    larger: f64,
    smaller: f64,
    left: (f64, f64),
    right: (f64, f64),
}

impl Pair {
    fn of(f: f64, g: f64, h: f64, precision: f64) -> Pair {
        let swapped = h.abs() > f.abs();
        let (big, small) = if swapped { (h, f) } else { (f, h) };
        let (smaller, larger, left, right) = ordered_pair(big, g, small, precision);
        let exchanged = |(c, s): (f64, f64)| (s, c);
        let (left, right) = if swapped { (exchanged(right), exchanged(left)) } else { (left, right) };
        // The sign of the largest element determines that of the larger value.
        let sign = |x: f64| 1f64.copysign(x);
        let outer = if g != 0.0 && g.abs() > big.abs() {
            sign(right.1) * sign(left.0) * sign(g)
        } else if swapped {
            sign(right.1) * sign(left.1) * sign(h)
        } else {
            sign(right.0) * sign(left.0) * sign(f)
        };
        let inner = outer * sign(f) * sign(h);
        Pair { larger: larger.copysign(outer), smaller: smaller.copysign(inner), left, right }
    }
}

/// Returns, for `[[f, g], [0, h]]` with `|f| >= |h|`, the smaller and the larger value and the rotations of both sides.
fn ordered_pair(f: f64, g: f64, h: f64, precision: f64) -> (f64, f64, (f64, f64), (f64, f64)) {
    let (fa, ga, ha) = (f.abs(), g.abs(), h.abs());
    if ga == 0.0 {
        return (ha, fa, (1.0, 0.0), (1.0, 0.0));
    }
    if ga > fa && fa / ga < precision {
        let smaller = if ha > 1.0 { fa / (ga / ha) } else { fa / ga * ha };
        return (smaller, ga, (1.0, h / g), (f / g, 1.0));
    }
    let gap = fa - ha;
    let l = if gap == fa { 1.0 } else { gap / fa };
    let m = g / f;
    let t = 2.0 - l;
    let (mm, tt) = (m * m, t * t);
    let s = (tt + mm).sqrt();
    let r = if l == 0.0 { m.abs() } else { (l * l + mm).sqrt() };
    let a = 0.5 * (s + r);
    let t = if mm != 0.0 {
        (m / (s + t) + m / (r + l)) * (1.0 + a)
    } else if l == 0.0 {
        2f64.copysign(f) * 1f64.copysign(g)
    } else {
        g / gap.copysign(f) + m / t
    };
    let l = (t * t + 4.0).sqrt();
    let right = (2.0 / l, t / l);
    let left = ((right.0 + right.1 * m) / a, h / f * right.1 / a);
    (ha / a, fa * a, left, right)
}
