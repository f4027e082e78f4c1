//! Discrete Fourier transforms of any length along one dimension, in f64.
//!
//! The transforms of single rows are those of the crate `rustfft`, always by its scalar planner: the planner that selects
//! vector instructions at run time would give other bits on other processors. Real rows of even length are transformed
//! as complex rows of half the length ([`halves`]). Rows of a tensor may be transformed on several threads; each row is
//! computed by the same operations for any number of threads.

mod halves;
mod plan;

use num_complex::Complex;

use crate::budget::check_budget;
use crate::element::Element;
use crate::error::Result;
use crate::rows::map_rows;
use crate::tensor::Tensor;
use crate::threads;
use plan::{FftPlan, Rows};

pub(crate) use plan::BUTTERFLIES;

type C = Complex<f64>;

/// The sign of the exponent and the normalization of a transform.
#[derive(Clone, Copy, Debug)]
pub struct FftKind {
    /// Whether the exponent is positive.
    pub inverse: bool,
    /// The factor that results are multiplied by.
    pub scale: f64,
}

/// A plan, and the buffers of one thread: the row in transformation, and the scratch memory of the plan. A clone, for
/// another thread, has buffers of its own.
struct ThreadPlan<'a> {
    plan: &'a FftPlan,
    row: Vec<C>,
    scratch: Vec<C>,
}

impl<'a> ThreadPlan<'a> {
    /// Makes a worker for rows of `n` elements along a dimension of `x`.
    ///
    /// # Errors
    /// Returns an error if the buffers of all threads do not fit the budget.
    fn new(plan: &'a FftPlan, x: &Tensor) -> Result<ThreadPlan<'a>> {
        let workers = threads::count().min(x.numel()).max(1);
        check_budget((plan.points() + plan.scratch()).saturating_mul(workers * size_of::<C>()))?;
        Ok(ThreadPlan { plan, row: Vec::new(), scratch: Vec::new() })
    }

    /// Transforms a row; missing values at its end are zeros.
    fn run(&mut self, row: impl Iterator<Item = C>) -> &[C] {
        let n = self.plan.points();
        self.row.clear();
        self.row.extend(row.take(n));
        self.row.resize(n, C::ZERO);
        self.scratch.resize(self.plan.scratch(), C::ZERO);
        self.plan.run(&mut self.row, &mut self.scratch);
        &self.row
    }
}

impl Clone for ThreadPlan<'_> {
    fn clone(&self) -> Self {
        ThreadPlan { plan: self.plan, row: Vec::new(), scratch: Vec::new() }
    }
}

/// Transforms rows of any dtype to complex rows of `n` numbers; rows are truncated or padded with zeros to that length.
/// `R` is the type of the result.
///
/// # Errors
/// Returns an error if the dimension is out of range or memory is exhausted.
pub fn complex<R: Element>(x: &Tensor, dim: i64, n: usize, kind: FftKind) -> Result<Tensor>
where
    R: Element<Raw = R>,
{
    let plan = FftPlan::of(Rows::Complex, n, kind.inverse)?;
    let mut worker = ThreadPlan::new(&plan, x)?;
    map_rows::<C, R>(x, dim, Some(n), move |row, out| {
        let row = worker.run(row.iter().copied());
        out.iter_mut().zip(row).for_each(|(o, x)| *o = R::from_complex(x * kind.scale));
    })
}

/// Transforms real rows of `n` numbers. If `onesided`, only the first `n / 2 + 1` results are returned, because the
/// others are their conjugates.
///
/// # Errors
/// As for [`complex`].
pub fn real<R: Element>(x: &Tensor, dim: i64, n: usize, kind: FftKind, onesided: bool) -> Result<Tensor>
where
    R: Element<Raw = R>,
{
    let length = if onesided { n / 2 + 1 } else { n };
    if !n.is_multiple_of(2) {
        let plan = FftPlan::of(Rows::Complex, n, kind.inverse)?;
        let mut worker = ThreadPlan::new(&plan, x)?;
        return map_rows::<f64, R>(x, dim, Some(length), move |row, out| {
            let row = worker.run(row.iter().map(|x| C::new(*x, 0.0)));
            out.iter_mut().zip(row).for_each(|(o, x)| *o = R::from_complex(x * kind.scale));
        });
    }
    let plan = &*FftPlan::of(Rows::Real, n, false)?;
    let mut worker = ThreadPlan::new(plan, x)?;
    map_rows::<f64, R>(x, dim, Some(length), move |row, out| {
        let half = worker.run(halves::pairs(&row[..row.len().min(n)]));
        for k in 0..=n / 2 {
            let value = halves::coefficient(half, plan.roots(), k) * kind.scale;
            // With a positive exponent, the result for real numbers is the conjugate.
            let (value, mirrored) = if kind.inverse { (value.conj(), value) } else { (value, value.conj()) };
            out[k] = R::from_complex(value);
            if !onesided && k > 0 {
                out[n - k] = R::from_complex(if 2 * k == n { value } else { mirrored });
            }
        }
    })
}

/// Transforms the first `n / 2 + 1` numbers of conjugate-symmetric rows to real rows of `n` numbers. The imaginary parts
/// of elements that are their own conjugates are ignored.
///
/// # Errors
/// As for [`complex`].
pub fn hermitian<R: Element>(x: &Tensor, dim: i64, n: usize, kind: FftKind) -> Result<Tensor>
where
    R: Element<Raw = R>,
{
    // The transform is the conjugate of that of the conjugates with the opposite exponent, and its result is real.
    let given = move |row: &[C], k: usize| {
        let value = row.get(k).copied().unwrap_or(C::ZERO);
        let own = k == 0 || 2 * k == n;
        C::new(value.re, if own { 0.0 } else { value.im * if kind.inverse { 1.0 } else { -1.0 } })
    };
    if !n.is_multiple_of(2) {
        let plan = FftPlan::of(Rows::Complex, n, true)?;
        let mut worker = ThreadPlan::new(&plan, x)?;
        return map_rows::<C, R>(x, dim, Some(n), move |row, out| {
            let mirrored = |k| if k <= n / 2 { given(row, k) } else { given(row, n - k).conj() };
            let row = worker.run((0..n).map(mirrored));
            out.iter_mut().zip(row).for_each(|(o, x)| *o = R::from_f64(x.re * kind.scale));
        });
    }
    let plan = &*FftPlan::of(Rows::Hermitian, n, true)?;
    let mut worker = ThreadPlan::new(plan, x)?;
    map_rows::<C, R>(x, dim, Some(n), move |row, out| {
        let half = (0..n / 2).map(|k| halves::folded(given(row, k), given(row, n / 2 - k), plan.roots()[k]));
        for (pair, x) in out.chunks_exact_mut(2).zip(worker.run(half)) {
            pair[0] = R::from_f64(x.re * kind.scale);
            pair[1] = R::from_f64(x.im * kind.scale);
        }
    })
}

#[cfg(test)]
mod tests;
