//! Factorizations of symmetric matrices (Cholesky, LDL) and triangular systems.

use super::{
    Empty, by_columns, check_exchanges, code, columns, element, expanded, integers, lower_of, matrices,
    matrix, matrix_sizes, results, square, together, wide_dtype,
};
use crate::support::{Computed, Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::linalg::{
    Matrix, batches, cholesky, ldl, ldl_solve, map_batch, stack_matrices, triangular,
};
use flambeau_tensor::{DType, Tensor, dispatch};

/// Returns the factors of a batch, and for each the order of the first minor that is not positive.
fn cholesky_parts(
    x: &Tensor,
    op: &str,
    upper: bool,
    empty: Empty,
) -> Result<(Tensor, Vec<i32>), KernelError> {
    let n = square(x, op)?;
    dispatch!(wide, wide_dtype(x, empty, op)?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let (factors, info): (Vec<_>, _) = map_batch(&all, |_, a| {
            let (l, failed) = cholesky(&lower_of(a, upper));
            (lower_of(&l, upper), failed as i32)
        })
        .into_iter()
        .unzip();
        Ok((stack_matrices(&lead, (n, n), &factors, x.dtype())?, info))
    })
}

fn check_cholesky(lead: &[i64], info: &[i32], op: &str) -> Result<(), KernelError> {
    let Some(i) = info.iter().position(|&n| n > 0) else { return Ok(()) };
    Err(KernelError::input(format!(
        "{op}: {}The factorization could not be completed because the input is not positive-definite (the leading \
         minor of order {} is not positive-definite).",
        element(lead, i),
        info[i]
    )))
}

fn cholesky_of(cx: &KernelCx<'_>, empty: Empty) -> Computed {
    let x = cx.tensor(0)?;
    let (factor, info) = cholesky_parts(x, "linalg.cholesky", cx.boolean(1)?, empty)?;
    check_cholesky(&x.sizes()[..x.rank() - 2], &info, "linalg.cholesky")?;
    Ok(factor)
}

/// `(self, upper, check_errors)`.
fn cholesky_ex(cx: &KernelCx<'_>) -> Several {
    let x = cx.tensor(0)?;
    let (factor, info) = cholesky_parts(x, "linalg.cholesky", cx.boolean(1)?, Empty::HalfPrecision)?;
    let lead = &x.sizes()[..x.rank() - 2];
    if cx.boolean(2)? {
        check_cholesky(lead, &info, "linalg.cholesky_ex")?;
    }
    Ok(vec![factor, integers(lead, None, &info)?])
}

/// `(B, L, upper)`: solves `L L* X = B`.
fn cholesky_solve(cx: &KernelCx<'_>) -> Computed {
    let (b, l, upper) = (cx.tensor(0)?, cx.tensor(1)?, cx.boolean(2)?);
    if b.dtype() != l.dtype() {
        return Err(KernelError::input(format!(
            "Expected b and A to have the same dtype, but found b of type {} and A of type {} instead.",
            b.dtype().ir_name(),
            l.dtype().ir_name()
        )));
    }
    let n = square(l, "cholesky_solve")?;
    let (rows, cols) = matrix_sizes(b, "cholesky_solve")?;
    if rows != n {
        return Err(KernelError::input(format!(
            "Incompatible matrix sizes for cholesky_solve: each A matrix is {n} by {n} but each b matrix is {rows} by {cols}"
        )));
    }
    let (lead, l, b) = together(l, b)?;
    dispatch!(wide, wide_dtype(&b, Empty::Refused, "cholesky_solve")?, "linalg", F => {
        let (factors, rights) = (batches::<F>(&l)?.1, batches::<F>(&b)?.1);
        let all = map_batch(&factors, |i, l| {
            let (l, mut x) = (lower_of(l, upper), rights[i].clone());
            triangular(&l, &mut x, false, false);
            triangular(&l.adjoint(), &mut x, true, false);
            x
        });
        Ok(stack_matrices(&lead, (n, cols), &all, b.dtype())?)
    })
}

/// `(L, upper)`: the inverse of `L L*`.
fn cholesky_inverse(cx: &KernelCx<'_>) -> Computed {
    let (l, upper) = (cx.tensor(0)?, cx.boolean(1)?);
    let n = square(l, "cholesky_inverse")?;
    dispatch!(wide, wide_dtype(l, Empty::Refused, "cholesky_inverse")?, "linalg", F => {
        let (lead, factors) = batches::<F>(l)?;
        for (i, l) in factors.iter().enumerate() {
            if let Some(k) = (0..n).find(|&k| l[(k, k)] == flambeau_tensor::Element::ZERO) {
                let which = element(&lead, i);
                return Err(KernelError::input(format!(
                    "cholesky_inverse: {which}The diagonal element {} is zero, the inversion could not be completed \
                     because the input matrix is singular.",
                    k + 1
                )));
            }
        }
        let all = map_batch(&factors, |_, l| {
            let l = lower_of(l, upper);
            let mut x = Matrix::identity(n, n);
            triangular(&l, &mut x, false, false);
            triangular(&l.adjoint(), &mut x, true, false);
            x
        });
        Ok(stack_matrices(&lead, (n, n), &all, l.dtype())?)
    })
}

/// Returns the packed factors, pivots and error codes of `L D L^T`.
fn ldl_parts(x: &Tensor, op: &str, hermitian: bool) -> Result<[Tensor; 3], KernelError> {
    let n = square(x, op)?;
    dispatch!(wide, wide_dtype(x, Empty::HalfPrecision, op)?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let factors = map_batch(&all, |_, a| {
            let lower = Matrix::from_fn(n, n, |i, j| if j <= i { a[(i, j)] } else { flambeau_tensor::Element::ZERO });
            ldl(lower, hermitian && x.dtype().is_complex())
        });
        let (mut packed, mut pivots, mut info) = (Vec::new(), Vec::new(), Vec::new());
        for f in factors {
            pivots.extend(&f.pivots);
            info.push(f.info as i32);
            packed.push(f.packed);
        }
        Ok([
            stack_matrices(&lead, (n, n), &packed, x.dtype())?,
            integers(&lead, Some(n), &pivots)?,
            integers(&lead, None, &info)?,
        ])
    })
}

fn ldl_factor(cx: &KernelCx<'_>) -> Several {
    let [packed, pivots, info] = ldl_parts(cx.tensor(0)?, "torch.linalg.ldl_factor_ex", cx.boolean(1)?)?;
    check_ldl(&info, "torch.linalg.ldl_factor")?;
    Ok(vec![packed, pivots])
}

fn check_ldl(info: &Tensor, op: &str) -> Result<(), KernelError> {
    let all = info.to_vec::<i64>()?;
    let Some(i) = all.iter().position(|&n| n > 0) else { return Ok(()) };
    let (which, n) = (element(info.sizes(), i), all[i]);
    Err(KernelError::input(format!("{op}: {which}D[{n},{n}] is zero")))
}

fn ldl_factor_ex(cx: &KernelCx<'_>) -> Several {
    let parts = ldl_parts(cx.tensor(0)?, "torch.linalg.ldl_factor_ex", cx.boolean(1)?)?;
    if cx.boolean(2)? {
        check_ldl(&parts[2], "torch.linalg.ldl_factor_ex")?;
    }
    Ok(parts.into())
}

/// `(LD, pivots, B, hermitian)`.
fn solve_ldl(cx: &KernelCx<'_>) -> Computed {
    let (packed, pivots, b, hermitian) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?, cx.boolean(3)?);
    let op = "torch.linalg.ldl_solve";
    let n = square(packed, op)?;
    let (rows, cols) = matrix_sizes(b, op)?;
    if rows != n || b.dtype() != packed.dtype() {
        return Err(KernelError::input(format!("{op}: sizes or dtypes of LD and B do not match")));
    }
    if !pivots.dtype().is_integral(false) {
        return Err(KernelError::input(format!(
            "{op}: Expected pivots to be integers. Got {}",
            pivots.dtype().ir_name()
        )));
    }
    check_exchanges(packed, pivots, op)?;
    let (lead, factors, rights) = together(packed, b)?;
    let mut pivot_sizes = lead.clone();
    pivot_sizes.push(n as i64);
    let pivots = pivots.expand(&pivot_sizes)?.to_vec::<i32>()?;
    dispatch!(wide, wide_dtype(b, Empty::Refused, op)?, "linalg", F => {
        let (factors, rights) = (batches::<F>(&factors)?.1, batches::<F>(&rights)?.1);
        let all = map_batch(&factors, |i, f| {
            let mut x = rights[i].clone();
            ldl_solve(f, &pivots[i * n..(i + 1) * n], &mut x, hermitian && b.dtype().is_complex());
            x
        });
        Ok(stack_matrices(&lead, (n, cols), &all, b.dtype())?)
    })
}

/// Interpretation of a triangular system.
struct Triangular {
    upper: bool,
    left: bool,
    unit: bool,
}

fn solved(a: &Tensor, b: &Tensor, how: &Triangular, op: &str) -> Computed {
    let n = square(a, op)?;
    let (rows, cols) = matrix_sizes(b, op)?;
    if (if how.left { rows } else { cols }) != n {
        return Err(KernelError::input(format!(
            "{op}: Incompatible shapes of A and B for the equation {} ({n}x{n} and {rows}x{cols})",
            if how.left { "AX = B" } else { "XA = B" }
        )));
    }
    if a.dtype() != b.dtype() {
        return Err(KernelError::input(format!(
            "{op}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
            a.dtype().ir_name(),
            b.dtype().ir_name()
        )));
    }
    let (lead, a, b) = together(a, b)?;
    dispatch!(wide, wide_dtype(&b, Empty::Refused, op)?, "linalg", F => {
        let (triangles, rights) = (batches::<F>(&a)?.1, batches::<F>(&b)?.1);
        let all = map_batch(&triangles, |i, t| {
            // X A = B is the transpose of A^T X^T = B^T.
            if how.left {
                let mut x = rights[i].clone();
                triangular(t, &mut x, how.upper, how.unit);
                x
            } else {
                let mut x = rights[i].transpose();
                triangular(&t.transpose(), &mut x, !how.upper, how.unit);
                x.transpose()
            }
        });
        Ok(stack_matrices(&lead, (rows, cols), &all, b.dtype())?)
    })
}

/// `(A, B, upper, left, unitriangular)`: `B` is cast to `A`'s dtype.
fn solve_triangular(cx: &KernelCx<'_>) -> Computed {
    let how = Triangular { upper: cx.boolean(2)?, left: cx.boolean(3)?, unit: cx.boolean(4)? };
    let a = cx.tensor(0)?;
    solved(a, &cx.tensor(1)?.to_dtype(a.dtype())?, &how, "linalg.solve_triangular")
}

/// `(b, A, upper, transpose, unitriangular)`: returns the solution and a copy of `A`.
fn triangular_solve(cx: &KernelCx<'_>) -> Several {
    let (b, a, upper, transpose) = (cx.tensor(0)?, cx.tensor(1)?, cx.boolean(2)?, cx.boolean(3)?);
    square(a, "triangular_solve")?;
    matrix_sizes(b, "triangular_solve")?;
    let transposed = if transpose { a.transpose(-2, -1)? } else { a.clone() };
    let how = Triangular { upper: upper != transpose, left: true, unit: cx.boolean(4)? };
    let solution = solved(&transposed, b, &how, "triangular_solve")?;
    let (lead, a, _) = together(a, b)?;
    Ok(vec![solution, by_columns(&expanded(&a, &lead)?.clone_contiguous()?)?])
}

pub(super) fn family() -> Vec<OpDef> {
    let positive =
        |d: OpDef| d.with(super::as_large()).with(Dtype::same_as(0)).with(matrices(&[&[3, 3]], true));
    let parts = |d: OpDef| d.with(matrices(&[&[3, 3]], true));
    let same = || Dtype::same_as(0);
    let with_code = |d: OpDef| results(parts(d), [matrix(), code()]);
    let doc = "The triangular factor `L` of `A = L L*`.";
    let mut defs =
        op("linalg_cholesky", "", doc).facts(positive).one(|cx| cholesky_of(cx, Empty::HalfPrecision));
    defs.extend(op("cholesky", "", doc).facts(positive).one(|cx| match cx.tensor(0)? {
        // An empty tensor is not checked.
        x if x.numel() == 0 => Ok(Tensor::zeros(x.sizes(), x.dtype())?),
        _ => cholesky_of(cx, Empty::Refused),
    }));
    defs.extend(op("linalg_cholesky_ex", "", doc).out("L").facts(with_code).several(cholesky_ex));
    let doc = "The solution of `L L* X = B`.";
    let factor_last = |d: OpDef| {
        d.with(ResultShapes::matrices_with(0, 1)).with(same()).with(Sample::args(|g| {
            let l = super::drawn(g, &[3, 3], true);
            let dtype = l.as_tensor().map_or(DType::F32, Tensor::dtype);
            let b = flambeau_exec::sample::tensor(g, &[3, 2], dtype, &Default::default());
            vec![IValue::Tensor(b), l]
        }))
    };
    defs.extend(op("cholesky_solve", "", doc).facts(factor_last).one(cholesky_solve));
    defs.extend(op("cholesky_inverse", "", "The inverse of `L L*`.").facts(positive).one(cholesky_inverse));
    let doc = "The packed factors of `A = L D L^T`, and the pivots.";
    let exchanges = || columns(Dtype::fixed(DType::I32));
    let factored = |d: OpDef| results(parts(d), [matrix(), exchanges()]);
    defs.extend(op("linalg_ldl_factor", "", doc).facts(factored).several(ldl_factor));
    let factored = |d: OpDef| results(parts(d), [matrix(), exchanges(), code()]);
    defs.extend(op("linalg_ldl_factor_ex", "", doc).facts(factored).several(ldl_factor_ex));
    let doc = "The solution of `L D L^T X = B`.";
    let ldl_args = |d: OpDef| {
        d.with(ResultShapes::matrices_with(2, 0)).with(same()).with(Sample::args(|g| {
            let x = super::drawn(g, &[3, 3], true);
            let b = x.clone();
            let pivots =
                Tensor::from_slice(&[1i32, 2, 3], &[3]).expect("invariant: three elements of one row");
            vec![x, IValue::Tensor(pivots), b]
        }))
    };
    defs.extend(op("linalg_ldl_solve", "", doc).facts(ldl_args).one(solve_ldl));
    let doc = "The solution of a triangular system.";
    let two = |d: OpDef| {
        d.with(Sample::args(|g| {
            let a = super::drawn(g, &[3, 3], true);
            vec![a.clone(), a, IValue::Bool(g.flag())]
        }))
    };
    let last = |d: OpDef| two(d).with(ResultShapes::matrices_with(1, 0)).with(same());
    defs.extend(op("linalg_solve_triangular", "", doc).facts(last).one(solve_triangular));
    let both = |d: OpDef| {
        results(
            two(d),
            [(ResultShapes::matrices_with(0, 1), same()), (ResultShapes::matrices_with(1, 0), same())],
        )
    };
    defs.extend(op("triangular_solve", "", doc).out("X").facts(both).several(triangular_solve));
    defs
}
