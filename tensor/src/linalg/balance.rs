//! Balancing of square matrices.
//!
//! Isolated eigenvalues are permuted to the ends, then rows and columns are scaled by powers of two until their norms
//! are similar. Steps and their order are those of LAPACK's `gebal`.

use super::field::Matrix;

/// A balanced matrix.
pub(super) struct Balanced {
    pub(super) matrix: Matrix<f64>,
    /// Rows without isolated eigenvalues: `low..=high`.
    pub(super) low: usize,
    pub(super) high: usize,
    /// Exchanges of rows and columns, in the order of execution.
    exchanges: Vec<(usize, usize)>,
    scales: Vec<f64>,
}

impl Balanced {
    pub(super) fn of(mut a: Matrix<f64>) -> Balanced {
        let n = a.rows;
        let (mut low, mut high) = (0, n.saturating_sub(1));
        let mut exchanges = Vec::new();
        while high > 0 {
            let alone = |i: &usize| (0..=high).all(|j| j == *i || a[(*i, j)] == 0.0);
            let Some(row) = (0..=high).rev().find(alone) else { break };
            exchanges.push((row, high));
            exchange(&mut a, row, high);
            high -= 1;
        }
        // A matrix that is a permuted triangle has one row left.
        while low < high {
            let alone = |j: &usize| (low..=high).all(|i| i == *j || a[(i, *j)] == 0.0);
            let Some(column) = (low..=high).find(alone) else { break };
            exchanges.push((column, low));
            exchange(&mut a, column, low);
            low += 1;
        }
        let mut balanced = Balanced { matrix: a, low, high, exchanges, scales: vec![1.0; n] };
        while low < high && balanced.scale() {}
        balanced
    }

    /// Runs one round of scaling; returns whether anything changed.
    fn scale(&mut self) -> bool {
        let (a, low, high) = (&mut self.matrix, self.low, self.high);
        let mut changed = false;
        for i in low..=high {
            let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
            let mut column = norm(&mut (low..=high).map(|k| a[(k, i)]));
            let mut row = norm(&mut (low..=high).map(|k| a[(i, k)]));
            if !(column > 0.0 && row > 0.0 && column.is_finite() && row.is_finite()) {
                continue;
            }
            let (sum, mut factor) = (column + row, 1.0f64);
            while column < row / 2.0 && factor < 1e280 {
                (factor, column, row) = (factor * 2.0, column * 2.0, row / 2.0);
            }
            while column / 2.0 >= row && factor > 1e-280 {
                (factor, column, row) = (factor / 2.0, column / 2.0, row * 2.0);
            }
            if column + row >= 0.95 * sum {
                continue;
            }
            changed = true;
            self.scales[i] *= factor;
            a.row_mut(i).iter_mut().for_each(|x| *x /= factor);
            (0..a.rows).for_each(|k| a[(k, i)] *= factor);
        }
        changed
    }

    /// Transforms vectors (as rows) of the balanced matrix to those of the original matrix.
    pub(super) fn undo<F: super::Field>(&self, vectors: &mut Matrix<F>) {
        for (i, by) in self.scales.iter().enumerate() {
            vectors.row_mut(i).iter_mut().for_each(|x| *x = x.scale(*by));
        }
        for &(i, j) in self.exchanges.iter().rev() {
            vectors.swap_rows(i, j);
        }
    }
}

/// Exchanges rows and columns `i` and `j`.
fn exchange(a: &mut Matrix<f64>, i: usize, j: usize) {
    a.swap_rows(i, j);
    if i != j {
        (0..a.rows).for_each(|k| a.data.swap(k * a.cols + i, k * a.cols + j));
    }
}
