//! Linear systems, inverses and determinants by LU.

use super::{
    Empty, by_columns, check_exchanges, code, columns, element, integers, matrices, matrix, matrix_sizes,
    number, numbers, results, solutions, square, together, wide_dtype,
};
use crate::support::{Computed, Several, op};
use flambeau_analysis::shape::{Dims, wrap};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::linalg::{Field, Lu, Matrix, batches, lu, map_batch, stack_matrices, stack_row_major};
use flambeau_tensor::{DType, Tensor, dispatch};

/// Returns an error that names the first singular matrix of a batch.
fn check_singular(lead: &[i64], info: &[i32], op: &str, what: &str) -> Result<(), KernelError> {
    let Some(i) = info.iter().position(|&n| n > 0) else { return Ok(()) };
    let which = element(lead, i);
    Err(KernelError::input(match what {
        "inversion" => format!(
            "{op}: {which}The diagonal element {} is zero, the inversion could not be completed because the input \
             matrix is singular.",
            info[i]
        ),
        _ => format!("{op}: {which}The solver failed because the input matrix is singular."),
    }))
}

/// Results of solving: solutions, and per matrix factors, pivots and error code.
struct Solved {
    result: Tensor,
    packed: Tensor,
    pivots: Tensor,
    lead: Vec<i64>,
    info: Vec<i32>,
}

fn solved(a: &Tensor, b: &Tensor, left: bool, op: &str) -> Result<Solved, KernelError> {
    let n = square(a, op)?;
    if a.dtype().is_integral(true) {
        return Err(KernelError::input(format!(
            "{op}: Expected a floating point or complex tensor as input. Got {}",
            a.dtype().ir_name()
        )));
    }
    if a.dtype() != b.dtype() {
        return Err(KernelError::input(format!(
            "{op}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
            a.dtype().ir_name(),
            b.dtype().ir_name()
        )));
    }
    let vector = b.rank() == 1 || (b.rank() + 1 == a.rank() && b.sizes() == &a.sizes()[..a.rank() - 1]);
    if vector && !left {
        return Err(KernelError::input(format!(
            "{op}: Vector broadcasting of the left hand side is not supported for left=False."
        )));
    }
    let right = if vector { b.unsqueeze(-1)? } else { b.clone() };
    if right.rank() < 2 {
        return Err(KernelError::input(format!("{op}: The input tensor B must have at least 2 dimensions.")));
    }
    let (rows, cols) = matrix_sizes(&right, op)?;
    if (if left { rows } else { cols }) != n {
        return Err(KernelError::input(format!(
            "{op}: Incompatible shapes of A and B for the equation {} ({n}x{n} and {rows}x{cols})",
            if left { "AX = B" } else { "XA = B" }
        )));
    }
    let (all, _, right) = together(a, &right)?;
    dispatch!(wide, wide_dtype(a, Empty::HalfPrecision, op)?, "linalg", F => {
        let ((lead, matrices), rights) = (batches::<F>(a)?, batches::<F>(&right)?.1);
        // Number of the matrix for each right side.
        let numbers = Tensor::from_vec((0..matrices.len() as i64).collect(), &lead)?;
        let numbers = numbers.expand(&all)?.to_vec::<i64>()?;
        // X A = B is the transpose of A^T X^T = B^T.
        let factors: Vec<Lu<F>> = map_batch(&matrices, |_, a| lu(if left { a.clone() } else { a.transpose() }));
        let results = map_batch(&rights, |i, b| {
            let f = &factors[numbers[i] as usize];
            if left { f.solve(b, false) } else { f.solve(&b.transpose(), false).transpose() }
        });
        let (mut packed, mut pivots, mut info) = (Vec::new(), Vec::new(), Vec::new());
        for f in factors {
            pivots.extend(f.pivots.iter().map(|p| *p as i32 + 1));
            info.push(f.info as i32);
            packed.push(f.packed);
        }
        let join = if left { stack_matrices } else { stack_row_major };
        let result = join(&all, (rows, cols), &results, a.dtype())?;
        Ok(Solved {
            // Batched vectors have the layout of matrix rows.
            result: if vector { by_columns(&result.squeeze(&[-1])?)? } else { result },
            packed: stack_matrices(&lead, (n, n), &packed, a.dtype())?,
            pivots: integers(&lead, Some(n), &pivots)?,
            lead: lead.to_vec(),
            info,
        })
    })
}

/// `(A, B, left)`.
fn linalg_solve(cx: &KernelCx<'_>) -> Computed {
    let s = solved(cx.tensor(0)?, cx.tensor(1)?, cx.boolean(2)?, "linalg.solve")?;
    check_singular(&s.lead, &s.info, "torch.linalg.solve", "solver")?;
    Ok(s.result)
}

/// `(A, B, left, check_errors)`.
fn solve_ex(cx: &KernelCx<'_>) -> Result<Solved, KernelError> {
    let s = solved(cx.tensor(0)?, cx.tensor(1)?, cx.boolean(2)?, "linalg.solve")?;
    if cx.boolean(3)? {
        check_singular(&s.lead, &s.info, "torch.linalg.solve_ex", "solver")?;
    }
    Ok(s)
}

fn linalg_solve_ex(cx: &KernelCx<'_>) -> Several {
    let s = solve_ex(cx)?;
    Ok(vec![s.result, integers(&s.lead, None, &s.info)?])
}

fn solve_ex_parts(cx: &KernelCx<'_>) -> Several {
    let s = solve_ex(cx)?;
    Ok(vec![s.result, s.packed, s.pivots, integers(&s.lead, None, &s.info)?])
}

/// Returns the inverses of a batch, and error codes.
fn inverses(x: &Tensor, op: &str) -> Result<(Tensor, Vec<i32>), KernelError> {
    let n = square(x, op)?;
    dispatch!(wide, wide_dtype(x, Empty::Refused, op)?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let factors: Vec<Lu<F>> = map_batch(&all, |_, a| lu(a.clone()));
        let info = factors.iter().map(|f| f.info as i32).collect();
        let inverses = map_batch(&all, |i, _| factors[i].solve(&Matrix::identity(n, n), false));
        Ok((stack_matrices(&lead, (n, n), &inverses, x.dtype())?, info))
    })
}

fn inverse(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let (result, info) = inverses(x, "linalg.inv")?;
    check_singular(&x.sizes()[..x.rank() - 2], &info, "linalg.inv", "inversion")?;
    Ok(result)
}

/// `(A, check_errors)`.
fn inv_ex(cx: &KernelCx<'_>) -> Several {
    let x = cx.tensor(0)?;
    let (result, info) = inverses(x, "linalg.inv")?;
    let lead = &x.sizes()[..x.rank() - 2];
    if cx.boolean(1)? {
        check_singular(lead, &info, "linalg.inv_ex", "inversion")?;
    }
    Ok(vec![result, integers(lead, None, &info)?])
}

/// Solves with existing factors.
fn with_factors(packed: &Tensor, pivots: &Tensor, b: &Tensor, left: bool, adjoint: bool) -> Computed {
    let op = "torch.linalg.lu_solve";
    if pivots.dtype() != DType::I32 {
        return Err(KernelError::input(format!(
            "{op}: pivots should be a Tensor of scalar type torch.int32"
        )));
    }
    let n = square(packed, op)?;
    let (rows, cols) = matrix_sizes(b, op)?;
    if (if left { rows } else { cols }) != n {
        return Err(KernelError::input(format!("{op}: Incompatible shapes of A and B")));
    }
    if packed.dtype() != b.dtype() {
        return Err(KernelError::input(format!("{op}: Expected LU and B to have the same dtype")));
    }
    check_exchanges(packed, pivots, op)?;
    let (lead, packed, b) = together(packed, b)?;
    let mut sizes = lead.clone();
    sizes.push(n as i64);
    let pivots = pivots.expand(&sizes)?.to_vec::<i64>()?;
    if pivots.iter().any(|&p| p < 1 || p > n as i64) {
        return Err(KernelError::input(
            "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?",
        ));
    }
    dispatch!(wide, wide_dtype(&b, Empty::Refused, op)?, "linalg", F => {
        let (factors, rights) = (batches::<F>(&packed)?.1, batches::<F>(&b)?.1);
        let all = map_batch(&factors, |i, packed| {
            let own = pivots[i * n..(i + 1) * n].iter().map(|&p| p as usize - 1).collect();
            let (f, b) = (Lu { packed: packed.clone(), pivots: own, info: 0 }, &rights[i]);
            // X A = B is the adjoint of A* X* = B*.
            if left { f.solve(b, adjoint) } else { f.solve(&b.adjoint(), !adjoint).adjoint() }
        });
        let join = if left { stack_matrices } else { stack_row_major };
        Ok(join(&lead, (rows, cols), &all, b.dtype())?)
    })
}

/// `(B, LU, pivots)`.
fn lu_solve(cx: &KernelCx<'_>) -> Computed {
    with_factors(cx.tensor(1)?, cx.tensor(2)?, cx.tensor(0)?, true, false)
}

/// `(LU, pivots, B, left, adjoint)`.
fn linalg_lu_solve(cx: &KernelCx<'_>) -> Computed {
    with_factors(cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?, cx.boolean(3)?, cx.boolean(4)?)
}

/// Results of a determinant computation.
struct Determinants {
    value: Tensor,
    sign: Tensor,
    log: Tensor,
    packed: Tensor,
    pivots: Tensor,
}

fn determinants(x: &Tensor, op: &str, empty: Empty) -> Result<Determinants, KernelError> {
    let n = square(x, op)?;
    dispatch!(wide, wide_dtype(x, empty, op)?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let factors: Vec<Lu<F>> = map_batch(&all, |_, a| lu(a.clone()));
        let values: Vec<F> = factors.iter().map(Lu::determinant).collect();
        let logs: Vec<(F, f64)> = factors.iter().map(Lu::log_determinant).collect();
        let signs: Vec<F> = logs.iter().map(|l| l.0).collect();
        let sizes: Vec<f64> = logs.iter().map(|l| l.1).collect();
        let pivots: Vec<i32> = factors.iter().flat_map(|f| f.pivots.iter().map(|p| *p as i32 + 1)).collect();
        let packed: Vec<Matrix<F>> = factors.into_iter().map(|f| f.packed).collect();
        Ok(Determinants {
            value: numbers(&lead, None, &values, x.dtype())?,
            sign: numbers(&lead, None, &signs, x.dtype())?,
            log: numbers(&lead, None, &sizes, x.dtype().to_real())?,
            packed: stack_matrices(&lead, (n, n), &packed, x.dtype())?,
            pivots: integers(&lead, Some(n), &pivots)?,
        })
    })
}

fn det(cx: &KernelCx<'_>) -> Computed {
    Ok(determinants(cx.tensor(0)?, "linalg.det", Empty::HalfPrecision)?.value)
}

fn det_parts(cx: &KernelCx<'_>) -> Several {
    let d = determinants(cx.tensor(0)?, "linalg.det", Empty::HalfPrecision)?;
    Ok(vec![d.value, d.packed, d.pivots])
}

fn slogdet(cx: &KernelCx<'_>) -> Several {
    let d = determinants(cx.tensor(0)?, "linalg.slogdet", Empty::Refused)?;
    Ok(vec![d.sign, d.log])
}

fn slogdet_parts(cx: &KernelCx<'_>) -> Several {
    let d = determinants(cx.tensor(0)?, "linalg.slogdet", Empty::Refused)?;
    Ok(vec![d.sign, d.log, d.packed, d.pivots])
}

/// Logarithm of the determinant: NaN if that is negative.
fn logdet(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    square(x, "logdet")?;
    dispatch!(wide, wide_dtype(x, Empty::Refused, "logdet")?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let values: Vec<F> = map_batch(&all, |_, a| {
            let (sign, log) = lu(a.clone()).log_determinant();
            let angle = sign.im().atan2(sign.re());
            if x.dtype().is_complex() {
                <F as flambeau_tensor::Element>::from_complex(flambeau_tensor::Complex::new(log, angle))
            } else if sign.re() < 0.0 {
                F::real(f64::NAN)
            } else {
                F::real(log)
            }
        });
        numbers(&lead, None, &values, x.dtype())
    })
}

/// Inverts a tensor as a linear map from its last dimensions to the first `ind`.
fn tensorinv(cx: &KernelCx<'_>) -> Computed {
    let (x, ind) = (cx.tensor(0)?, cx.int(1)?);
    if ind <= 0 {
        return Err(KernelError::input("Expected a strictly positive integer for 'ind'"));
    }
    let ind = ind as usize;
    if ind > x.rank() {
        return Err(KernelError::input(format!("ArrayRef: invalid slice, N = {ind}; size = {}", x.rank())));
    }
    let (first, last) = x.sizes().split_at(ind);
    let (m, n): (i64, i64) = (first.iter().product(), last.iter().product());
    if m != n {
        return Err(KernelError::input(format!(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {n} != {m}"
        )));
    }
    let (result, info) = inverses(&x.reshape(&[m, n])?, "linalg.inv")?;
    check_singular(&[], &info, "linalg.tensorinv", "inversion")?;
    Ok(result.reshape(&[last, first].concat())?)
}

/// `(A, B, dims)`.
fn tensorsolve(cx: &KernelCx<'_>) -> Computed {
    let (a, b, dims) = (cx.tensor(0)?, cx.tensor(1)?, cx.opt_ints(2)?);
    let a = match dims {
        Some(dims) => {
            let end: Vec<i64> = (0..dims.len() as i64).map(|i| i - dims.len() as i64).collect();
            a.movedim(&dims, &end)?
        }
        None => a.clone(),
    };
    let result_sizes = a.sizes()[b.rank().min(a.rank())..].to_vec();
    let (n, m): (i64, i64) = (result_sizes.iter().product(), b.sizes().iter().product());
    if n != m {
        return Err(KernelError::input(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim])",
        ));
    }
    let s = solved(&a.reshape(&[m, n])?, &b.reshape(&[m])?, true, "linalg.solve")?;
    check_singular(&[], &s.info, "linalg.tensorsolve", "solver")?;
    Ok(s.result.reshape(&result_sizes)?)
}

/// Returns sizes with some of them moved to the end.
fn moved_to_end(dims: Dims, which: &[i64]) -> Option<Dims> {
    let which: Vec<usize> = which.iter().map(|&d| wrap(d, dims.len())).collect::<Option<_>>()?;
    let kept = (0..dims.len()).filter(|d| !which.contains(d));
    kept.chain(which.iter().copied()).map(|d| dims.get(d).copied()).collect()
}

/// Draws two matrices of one dtype, the first one regular.
fn system(first: &'static [i64], second: &'static [i64]) -> Sample {
    Sample::args(move |g| {
        let a = super::drawn(g, first, true);
        let dtype = a.as_tensor().map_or(DType::F32, Tensor::dtype);
        vec![a, IValue::Tensor(flambeau_exec::sample::tensor(g, second, dtype, &Default::default()))]
    })
    .tolerance(1e-3, 1e-4)
}

pub(super) fn family() -> Vec<OpDef> {
    let regular =
        |d: OpDef| d.with(super::as_large()).with(Dtype::same_as(0)).with(matrices(&[&[3, 3]], true));
    let parts = |d: OpDef| d.with(matrices(&[&[3, 3]], true));
    let two = |d: OpDef| d.with(system(&[3, 3], &[3, 2]));
    let same = || Dtype::same_as(0);
    let int = || Dtype::fixed(DType::I32);
    let solution = || (solutions(|cx, vector| cx.size(1, if vector { -1 } else { -2 })), same());
    // Shapes of results per matrix, for the broadcast batch of both arguments.
    let of_system = |sides: usize| {
        ResultShapes::dims(move |cx| {
            let (n, mut dims) = (cx.size(0, -1), cx.dims_or_fresh(0)?);
            dims.truncate(dims.len().checked_sub(2)?);
            dims.extend(std::iter::repeat_n(n, sides));
            Some(dims)
        })
    };
    let doc = "The solution of `A X = B`.";
    let mut defs = op("linalg_solve", "", doc).facts(|d| results(two(d), [solution()])).one(linalg_solve);
    let with_code = |d: OpDef| results(two(d), [solution(), (of_system(0), int())]);
    defs.extend(op("linalg_solve_ex", "", doc).facts(with_code).several(linalg_solve_ex));
    let with_factors = |d: OpDef| {
        results(two(d), [solution(), (of_system(2), same()), (of_system(1), int()), (of_system(0), int())])
    };
    defs.extend(op("_linalg_solve_ex", "", doc).out("result").facts(with_factors).several(solve_ex_parts));
    let doc = "The inverse of a square matrix.";
    let with_code = |d: OpDef| results(parts(d), [matrix(), code()]);
    defs.extend(op("linalg_inv inverse", "", doc).facts(regular).one(inverse));
    defs.extend(op("linalg_inv_ex", "", doc).out("inverse").facts(with_code).several(inv_ex));
    let factors = |first: bool| {
        move |d: OpDef| {
            let shape =
                if first { ResultShapes::matrices_with(0, 1) } else { ResultShapes::matrices_with(2, 0) };
            d.with(shape).with(Dtype::same_as(0)).with(Sample::args(move |g| {
                let a = super::drawn(g, &[3, 3], true);
                let b = a.clone();
                let pivots =
                    Tensor::from_slice(&[1i32, 3, 3], &[3]).expect("invariant: three elements of one row");
                if first { vec![b, a, IValue::Tensor(pivots)] } else { vec![a, IValue::Tensor(pivots), b] }
            }))
        }
    };
    let doc = "The solution of `A X = B` from the factors of `A`.";
    defs.extend(op("lu_solve", "", doc).facts(factors(true)).one(lu_solve));
    defs.extend(op("linalg_lu_solve", "", doc).facts(factors(false)).one(linalg_lu_solve));
    let one = |d: OpDef| results(d, [number(same())]).with(matrices(&[&[2, 3, 3]], true));
    defs.extend(op("linalg_det det", "", "The determinant.").facts(one).one(det));
    defs.extend(op("logdet", "", "The logarithm of the determinant.").facts(one).one(logdet));
    let factors = || [matrix(), columns(int())];
    let doc = "The determinant, and the LU factors it was computed from.";
    let det_facts = |d: OpDef| {
        let [packed, exchanges] = factors();
        results(parts(d), [number(same()), packed, exchanges])
    };
    defs.extend(op("_linalg_det", "", doc).out("result").facts(det_facts).several(det_parts));
    let doc = "Sign, and logarithm of the magnitude, of the determinant.";
    let real = || number(Dtype::real_of(0));
    let sign_and_log = |d: OpDef| results(parts(d), [number(same()), real()]);
    defs.extend(op("linalg_slogdet slogdet", "", doc).facts(sign_and_log).several(slogdet));
    let all = |d: OpDef| {
        let [packed, exchanges] = factors();
        results(parts(d), [number(same()), real(), packed, exchanges])
    };
    defs.extend(op("_linalg_slogdet", "", doc).out("sign").facts(all).several(slogdet_parts));
    let doc = "The inverse of a tensor as a linear map from its last to its first dimensions.";
    defs.extend(
        op("linalg_tensorinv", "", doc)
            .facts(|d| {
                let turned = ResultShapes::dims(|cx| {
                    let (mut dims, first) = (cx.dims_or_fresh(0)?, usize::try_from(cx.known_int(1)?).ok()?);
                    let rank = dims.len();
                    dims.rotate_left(first.min(rank));
                    Some(dims)
                });
                d.with(turned).with(Dtype::same_as(0)).with(matrices(&[&[2, 2, 4]], false))
            })
            .one(tensorinv),
    );
    let doc = "The solution of `tensordot(A, X) = B`.";
    let maps = |d: OpDef| {
        let shape = ResultShapes::dims(|cx| {
            let (mut dims, known) = (cx.dims_or_fresh(0)?, cx.rank(1)?);
            if !cx.is_none(2)? {
                dims = moved_to_end(dims, &cx.known_ints(2)?)?;
            }
            Some(Dims::from_slice(&dims[known.min(dims.len())..]))
        });
        d.with(shape).with(Dtype::same_as(0)).with(Sample::args(|g| {
            let a = super::drawn(g, &[2, 2, 4], false);
            let dtype = a.as_tensor().map_or(DType::F32, Tensor::dtype);
            vec![a, IValue::Tensor(flambeau_exec::sample::tensor(g, &[2, 2], dtype, &Default::default()))]
        }))
    };
    defs.extend(op("linalg_tensorsolve", "", doc).facts(maps).one(tensorsolve));
    defs
}
