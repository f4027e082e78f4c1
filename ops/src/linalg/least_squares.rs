//! Least squares.

use super::{
    Empty, batch_of_system, integers, matrix_sizes, numbers, results, solutions, together, wide_dtype,
};
use crate::support::{Several, op, total};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::linalg::{Field, Matrix, batches, check_matrices, map_batch, stack_matrices, svd};
use flambeau_tensor::{DType, Tensor, dispatch};

/// `(A, B, rcond, driver)`: returns the minimum-norm solutions, residuals of unique solutions, ranks, and singular
/// values if the driver computes them. All drivers are implemented by the pseudo-inverse.
fn lstsq(cx: &KernelCx<'_>) -> Several {
    let (a, b, rcond) = (cx.tensor(0)?, cx.tensor(1)?, cx.opt_float(2)?);
    let op = "torch.linalg.lstsq";
    let driver = cx.opt_string(3)?.map_or(b"gelsy".to_vec(), |s| s.as_bytes().to_vec());
    if a.rank() < 2 {
        return Err(KernelError::input(format!("{op}: input must have at least 2 dimensions.")));
    }
    if b.rank() < 1 {
        return Err(KernelError::input(format!("{op}: other must have at least 1 dimension.")));
    }
    if a.dtype() != b.dtype() {
        return Err(KernelError::input(format!(
            "{op}: Expected input and other to have the same dtype, but got input's dtype {} and other's dtype {}",
            a.dtype().ir_name(),
            b.dtype().ir_name()
        )));
    }
    let (m, n) = matrix_sizes(a, op)?;
    if !(a.rank() - 1..=a.rank()).contains(&b.rank()) {
        return Err(KernelError::input(format!(
            "{op}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )));
    }
    let vector = b.rank() == 1 || a.rank() == b.rank() + 1 && b.sizes() == &a.sizes()[..a.rank() - 1];
    let right = if vector { b.unsqueeze(-1)? } else { b.clone() };
    let (rows, cols) = matrix_sizes(&right, op)?;
    if rows != m {
        let at = if vector { -1 } else { -2 };
        return Err(KernelError::input(format!("{op}: input.size(-2) should match other.size({at})")));
    }
    if ![&b"gels"[..], b"gelsy", b"gelsd", b"gelss"].contains(&&driver[..]) {
        return Err(KernelError::input(format!(
            "{op}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )));
    }
    let (lead, a, right) = together(a, &right)?;
    let double = matches!(a.dtype(), DType::F64 | DType::C128);
    let epsilon = if double { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let limit = rcond.filter(|r| *r >= 0.0).unwrap_or(epsilon * m.max(n) as f64);
    dispatch!(wide, wide_dtype(&a, Empty::Refused, op)?, "linalg", F => {
        let (matrices, rights) = (batches::<F>(&a)?.1, batches::<F>(&right)?.1);
        check_matrices::<F>(&lead, m.max(n), cols)?;
        let (mut solutions, mut residuals, mut ranks, mut values) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let found = map_batch(&matrices, |_, a| svd(a, false, f64::EPSILON / 2.0));
        // `gels` has no rank detection: it uses all singular values and requires full rank.
        let (k, whole) = (m.min(n), driver == b"gels");
        let unreadable = |m: &Matrix<F>| m.data.iter().any(|x| x.size1().is_nan());
        let infinite = |m: &Matrix<F>| m.data.iter().any(|x| x.size1() == f64::INFINITY);
        for ((a, b), found) in matrices.iter().zip(&rights).zip(found) {
            if unreadable(a) || unreadable(b) || driver == b"gelsd" && infinite(a) {
                return Err(KernelError::input(format!("{op}: the arguments have illegal values")));
            }
            let (u, s, vh) = found.ok_or_else(|| super::spectrum::not_converged(op))?;
            let least = limit * s.first().copied().unwrap_or(0.0);
            let counts = |x: f64| if whole { x > f64::EPSILON * s[0] } else { x > least };
            let mut y = u.adjoint().times(b);
            for (i, &x) in s.iter().enumerate() {
                let factor = if counts(x) { 1.0 / x } else { 0.0 };
                y.row_mut(i).iter_mut().for_each(|y| *y = y.scale(factor));
            }
            let rank = s.iter().filter(|&&x| counts(x)).count();
            if whole && rank < k && s.iter().all(|x| x.is_finite()) {
                return Err(KernelError::input(format!(
                    "{op}: The least squares solution could not be computed because the input matrix does not have full rank"
                )));
            }
            let x = vh.adjoint().times(&y);
            let mut rest = a.times(&x);
            rest.add_scaled(b, F::real(-1.0));
            // `gels` does not read the right side if there are no unknowns.
            let rest_of = |j| if whole && n == 0 { 0.0 } else { total((0..m).map(|i| rest[(i, j)].square())) };
            residuals.extend((0..cols).map(rest_of));
            ranks.push(rank as i32);
            values.extend(s);
            // Solutions are the first rows of a larger matrix, as in LAPACK.
            solutions.push(Matrix::from_fn(m.max(n), cols, |i, j| if i < n { x[(i, j)] } else { F::real(0.0) }));
        }
        let full = ranks.iter().all(|&r| r as usize == n);
        let real = a.dtype().to_real();
        let empty = |dtype| Tensor::zeros(&[0], dtype);
        let solution = stack_matrices(&lead, (m.max(n), cols), &solutions, a.dtype())?.narrow(-2, 0, n as i64)?;
        let with_residuals = m > n && driver != b"gelsy" && full;
        let with_rank = !whole;
        let with_values = driver == b"gelsd" || driver == b"gelss";
        Ok(vec![
            if vector { solution.squeeze(&[-1])? } else { solution },
            if with_residuals { numbers(&lead, Some(cols), &residuals, real)? } else { empty(real)? },
            if with_rank { integers(&lead, None, &ranks)?.to_dtype(DType::I64)? } else { empty(DType::I64)? },
            if with_values { numbers(&lead, Some(k), &values, real)? } else { empty(real)? },
        ])
    })
}

/// Shape of a result that only some drivers compute: a number, or the singular values, per matrix; otherwise empty.
fn by_method(methods: &'static [&'static [u8]], values: bool) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let method = if cx.is_none(3)? { b"gelsy" } else { cx.text(3)? };
        if !methods.contains(&method) {
            return ResultShapes::nothing().result(0, cx)?.as_tensor()?.dims.clone();
        }
        let mut dims = batch_of_system(cx)?;
        let (m, n) = (cx.size(0, -2), cx.size(0, -1));
        dims.extend(values.then(|| cx.symbols.min(m, n)));
        Some(dims)
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let facts = |d: OpDef| {
        let real = || Dtype::real_of(0);
        let known = [
            (solutions(|cx, _| cx.size(0, -1)), Dtype::same_as(0)),
            // Empty if any matrix is rank-deficient.
            (ResultShapes::any(), real()),
            (by_method(&[b"gelsy", b"gelsd", b"gelss"], false), Dtype::fixed(DType::I64)),
            (by_method(&[b"gelsd", b"gelss"], true), real()),
        ];
        results(d, known).with(Sample::args(|g| {
            let a = super::drawn(g, &[4, 3], false);
            let dtype = a.as_tensor().map_or(DType::F32, Tensor::dtype);
            let b = flambeau_exec::sample::tensor(g, &[4, 2], dtype, &Default::default());
            vec![a, IValue::Tensor(b)]
        }))
    };
    op("linalg_lstsq", "", "Least squares solutions.").facts(facts).several(lstsq)
}
