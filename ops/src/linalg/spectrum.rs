//! Singular values, eigenvalues, and derived quantities: rank, condition number, pseudo-inverses.

use super::{
    Empty, columns, diagonal, drawn, element, matrices, matrix, matrix_sizes, norm, number, numbers, results,
    square, wide_dtype,
};
use crate::support::{Computed, Several, op};
use flambeau_analysis::shape::{Dims, ShapeCx};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::linalg::{
    Field, Matrix, batches, check_matrices, eig, eigh, lu, map_batch, precision, stack_matrices,
    stack_row_major, svd,
};
use flambeau_tensor::{Complex, DType, Scalar, Tensor, dispatch};

/// Convergence threshold of full f64 precision, for results without vectors.
const EXACT: f64 = f64::EPSILON / 2.0;

/// Returns `U`, singular values and `V*`; with `full`, `U` and `V` are square. The iteration runs in `precision`, which
/// determines the signs of vectors.
fn svd_parts(x: &Tensor, op: &str, full: bool, precision: f64) -> Result<[Tensor; 3], KernelError> {
    let (m, n) = matrix_sizes(x, op)?;
    let k = m.min(n);
    dispatch!(wide, wide_dtype(x, Empty::HalfPrecision, op)?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let side = if full { m.max(n) } else { k };
        check_matrices::<F>(&lead, side, side)?;
        let (mut left, mut values, mut right) = (Vec::new(), Vec::new(), Vec::new());
        let found = map_batch(&all, |_, a| {
            if a.data.iter().any(|x| x.size().is_nan()) {
                None
            } else if is_finite(a) {
                svd(a, full, precision)
            } else {
                let (rows, cols) = if full { (m, n) } else { (k, k) };
                Some((unknown(m, rows), vec![f64::NAN; k], unknown(cols, n)))
            }
        });
        for (i, found) in found.into_iter().enumerate() {
            let (u, s, vh) = found.ok_or_else(|| {
                KernelError::input(format!(
                    "linalg.svd: {}The algorithm failed to converge because the input matrix contained non-finite values.",
                    element(&lead, i)
                ))
            })?;
            left.push(u);
            values.extend(s);
            right.push(vh);
        }
        let (rows, cols) = if full { (m, n) } else { (k, k) };
        Ok([
            stack_matrices(&lead, (m, rows), &left, x.dtype())?,
            numbers(&lead, Some(k), &values, x.dtype().to_real())?,
            stack_matrices(&lead, (cols, n), &right, x.dtype())?,
        ])
    })
}

fn is_finite<F: Field>(a: &Matrix<F>) -> bool {
    a.data.iter().all(|x| x.size().is_finite())
}

/// The result for infinite elements: NaN.
fn unknown<F: Field>(rows: usize, cols: usize) -> Matrix<F> {
    Matrix::from_fn(rows, cols, |_, _| F::real(f64::NAN))
}

/// Returns only the singular values.
pub(super) fn singular_values(x: &Tensor, op: &str) -> Computed {
    Ok(svd_parts(x, op, false, EXACT)?.into_iter().nth(1).unwrap_or_else(|| x.clone()))
}

fn check_driver(cx: &KernelCx<'_>, i: usize, op: &str) -> Result<(), KernelError> {
    if cx.opt_string(i)?.is_some() {
        return Err(KernelError::input(format!(
            "{op}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )));
    }
    Ok(())
}

/// `(A, full_matrices, driver)`.
fn linalg_svd(cx: &KernelCx<'_>) -> Several {
    check_driver(cx, 2, "torch.linalg.svd")?;
    let x = cx.tensor(0)?;
    Ok(svd_parts(x, "linalg.svd", cx.boolean(1)?, precision(x.dtype()))?.into())
}

/// `(A, full_matrices, compute_uv, driver)`.
fn svd_only(cx: &KernelCx<'_>) -> Several {
    let x = cx.tensor(0)?;
    check_driver(cx, 3, "torch.linalg.svd")?;
    let mut all: Vec<Tensor> = svd_parts(x, "linalg.svd", cx.boolean(1)?, precision(x.dtype()))?.into();
    if !cx.boolean(2)? {
        all[0] = Tensor::zeros(&[0], x.dtype())?;
        all[2] = Tensor::zeros(&[0], x.dtype())?;
    }
    Ok(all)
}

/// `(self, some, compute_uv)`: the last result is `V`, not its adjoint; zeros if vectors are not requested.
fn svd_some(cx: &KernelCx<'_>) -> Several {
    let (x, some, vectors) = (cx.tensor(0)?, cx.boolean(1)?, cx.boolean(2)?);
    let [u, s, vh] = svd_parts(x, "linalg.svd", !(some && vectors), precision(x.dtype()))?;
    let zeros = |t: &Tensor| Tensor::zeros(t.sizes(), t.dtype());
    if !vectors {
        return Ok(vec![zeros(&u)?, s, zeros(&vh)?]);
    }
    let v = dispatch!(wide, wide_dtype(x, Empty::HalfPrecision, "linalg.svd")?, "linalg", F => {
        let (lead, all) = batches::<F>(&vh)?;
        let (rows, cols) = matrix_sizes(&vh, "svd")?;
        let all: Vec<Matrix<F>> = all.iter().map(Matrix::adjoint).collect();
        Ok::<_, KernelError>(stack_row_major(&lead, (cols, rows), &all, x.dtype())?)
    })?;
    Ok(vec![u, s, v])
}

fn svdvals(cx: &KernelCx<'_>) -> Computed {
    check_driver(cx, 1, "torch.linalg.svdvals")?;
    singular_values(cx.tensor(0)?, "linalg.svd")
}

/// Returns increasing eigenvalues, and eigenvectors, of Hermitian matrices given by one triangle.
fn hermitian_parts(x: &Tensor, op: &str, upper: bool) -> Result<(Tensor, Tensor), KernelError> {
    let n = square(x, op)?;
    dispatch!(wide, wide_dtype(x, Empty::Any, op)?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let (mut values, mut vectors) = (Vec::new(), Vec::new());
        let found = map_batch(&all, |_, a| {
            // The other triangle is not read.
            let read = |i: usize, j: usize| if upper { i <= j } else { i >= j };
            if (0..n).all(|i| (0..n).all(|j| !read(i, j) || a[(i, j)].size().is_finite())) {
                eigh(a, upper, precision(x.dtype()))
            } else {
                Some((vec![f64::NAN; n], unknown(n, n)))
            }
        });
        for (i, found) in found.into_iter().enumerate() {
            let (own, columns) = found.ok_or_else(|| {
                KernelError::input(format!(
                    "{op}: {}The algorithm failed to converge because the input matrix is ill-conditioned or has too \
                     many repeated eigenvalues",
                    element(&lead, i)
                ))
            })?;
            values.extend(own);
            vectors.push(columns);
        }
        Ok((
            numbers(&lead, Some(n), &values, x.dtype().to_real())?,
            stack_matrices(&lead, (n, n), &vectors, x.dtype())?,
        ))
    })
}

/// Whether the upper triangle is read.
fn is_upper(cx: &KernelCx<'_>, i: usize) -> Result<bool, KernelError> {
    match cx.str_bytes(i)? {
        b"U" | b"u" => Ok(true),
        b"L" | b"l" => Ok(false),
        other => Err(KernelError::input(format!(
            "Expected UPLO argument to be 'L' or 'U', but got {}",
            String::from_utf8_lossy(other)
        ))),
    }
}

fn linalg_eigh(cx: &KernelCx<'_>) -> Several {
    let (values, vectors) = hermitian_parts(cx.tensor(0)?, "linalg.eigh", is_upper(cx, 1)?)?;
    Ok(vec![values, vectors])
}

/// `(A, UPLO, compute_v)`.
fn eigh_only(cx: &KernelCx<'_>) -> Several {
    let x = cx.tensor(0)?;
    let (values, vectors) = hermitian_parts(x, "linalg.eigh", is_upper(cx, 1)?)?;
    Ok(vec![values, if cx.boolean(2)? { vectors } else { Tensor::zeros(&[0], x.dtype())? }])
}

fn eigvalsh(cx: &KernelCx<'_>) -> Computed {
    Ok(hermitian_parts(cx.tensor(0)?, "linalg.eigh", is_upper(cx, 1)?)?.0)
}

/// Returns eigenvalues and eigenvectors, always complex. Elements that are not finite are an error only if `vectors`.
fn eig_parts(x: &Tensor, op: &str, vectors: bool) -> Result<(Tensor, Tensor), KernelError> {
    let n = square(x, op)?;
    let dtype = x.dtype().to_complex();
    dispatch!(wide, wide_dtype(x, Empty::Refused, op)?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let (mut values, mut bases) = (Vec::new(), Vec::new());
        let nan = Complex::new(f64::NAN, f64::NAN);
        let found = map_batch(&all, |_, a| {
            if vectors || is_finite(a) { eig(a, precision(x.dtype())) } else { Some((vec![nan; n], unknown(n, n))) }
        });
        for found in found {
            let Some((own, columns)) = found else {
                return Err(KernelError::input("torch.linalg.eig: input tensor should not contain infs or NaNs."));
            };
            values.extend(own);
            bases.push(columns);
        }
        Ok((numbers(&lead, Some(n), &values, dtype)?, stack_matrices(&lead, (n, n), &bases, dtype)?))
    })
}

fn linalg_eig(cx: &KernelCx<'_>) -> Several {
    let (values, vectors) = eig_parts(cx.tensor(0)?, "linalg.eig", true)?;
    Ok(vec![values, vectors])
}

fn eigvals(cx: &KernelCx<'_>) -> Computed {
    Ok(eig_parts(cx.tensor(0)?, "linalg.eigvals", false)?.0)
}

/// Thresholds below which a singular value counts as zero: absolute, and relative to the largest.
#[derive(Clone)]
struct RankTolerance {
    /// Batch sizes, broadcast with the thresholds.
    lead: Vec<i64>,
    absolute: Vec<f64>,
    relative: Vec<f64>,
}

impl RankTolerance {
    /// Creates thresholds from arguments that are tensors, broadcast over the batch, or missing. The default relative
    /// threshold applies only without an absolute one.
    fn of(
        x: &Tensor,
        atol: Option<Tensor>,
        rtol: Option<Tensor>,
        op: &str,
    ) -> Result<RankTolerance, KernelError> {
        let (m, n) = matrix_sizes(x, op)?;
        let mut lead = flambeau_tensor::broadcast_shapes(&x.sizes()[..x.rank() - 2], &[])?;
        for t in [&atol, &rtol].into_iter().flatten() {
            flambeau_tensor::broadcast_into(&mut lead, t.sizes())?;
        }
        let epsilon = if matches!(x.dtype(), DType::F64 | DType::C128) {
            f64::EPSILON
        } else {
            f64::from(f32::EPSILON)
        };
        let count: i64 = lead.iter().product();
        let spread = |t: &Tensor| -> Result<Vec<f64>, KernelError> { Ok(t.expand(&lead)?.to_vec::<f64>()?) };
        let absolute = match &atol {
            Some(t) => spread(t)?,
            None => vec![0.0; count as usize],
        };
        let relative = match &rtol {
            Some(t) => spread(t)?,
            None => {
                let default = epsilon * m.max(n) as f64;
                absolute.iter().map(|&a| if a > 0.0 { 0.0 } else { default }).collect()
            }
        };
        Ok(RankTolerance { lead: lead.to_vec(), absolute, relative })
    }

    fn at(&self, i: usize, largest: f64) -> f64 {
        self.absolute[i].max(self.relative[i] * largest)
    }
}

/// Reads argument `i` with the name of a threshold: a number, a tensor, or `None`.
fn limit(cx: &KernelCx<'_>, i: usize, name: &str, op: &str) -> Result<Option<Tensor>, KernelError> {
    match cx.arg(i)? {
        IValue::None => Ok(None),
        IValue::Tensor(t) if t.dtype().is_complex() => Err(KernelError::input(format!(
            "torch.{op}: {name} tensor of complex type is not supported. Got {}",
            t.dtype().ir_name()
        ))),
        IValue::Tensor(t) => Ok(Some(t.clone())),
        _ => Ok(Some(Tensor::scalar(Scalar::Float(cx.float(i)?), DType::F64)?)),
    }
}

/// Returns the number of singular values above the thresholds, per matrix. They are computed in the tensor's precision.
fn rank_of(x: &Tensor, limits: &RankTolerance, hermitian: bool) -> Computed {
    let op = "linalg.matrix_rank";
    let lead = &limits.lead;
    let x = &super::expanded(x, lead)?;
    wide_dtype(x, Empty::Refused, op)?;
    let values = if hermitian { hermitian_parts(x, op, false)?.0 } else { singular_values(x, op)? };
    let k = values.size(-1)? as usize;
    let all: Vec<f64> = values.to_vec::<f64>()?.into_iter().map(f64::abs).collect();
    let ranks: Vec<i64> = (0..limits.absolute.len())
        .map(|i| {
            let own = &all[i * k..(i + 1) * k];
            let least = limits.at(i, own.iter().copied().fold(0.0, f64::max));
            own.iter().filter(|&&s| s > least).count() as i64
        })
        .collect();
    Ok(Tensor::from_slice(&ranks, lead)?)
}

/// Returns the ranks of empty matrices. As in PyTorch, the dtype is checked only if the default threshold depends on
/// it.
fn empty_ranks(x: &Tensor, limited: bool) -> Computed {
    let op = "linalg.matrix_rank";
    matrix_sizes(x, op)?;
    if !limited {
        wide_dtype(x, Empty::Refused, op)?;
    }
    Ok(Tensor::zeros(&x.sizes()[..x.rank() - 2], DType::I64)?)
}

/// `(self, tol, hermitian)`.
fn rank_tol(cx: &KernelCx<'_>) -> Computed {
    let (x, atol) = (cx.tensor(0)?, limit(cx, 1, "atol", "linalg.matrix_rank")?);
    if x.numel() == 0 {
        return empty_ranks(x, true);
    }
    let zero = Some(Tensor::scalar(Scalar::Int(0), DType::F64)?);
    let limits = RankTolerance::of(x, atol, zero, "torch.linalg.matrix_rank")?;
    rank_of(x, &limits, cx.boolean(2)?)
}

/// `(self, atol, rtol, hermitian)`.
fn rank_limits(cx: &KernelCx<'_>) -> Computed {
    let (x, op) = (cx.tensor(0)?, "linalg.matrix_rank");
    let (atol, rtol) = (limit(cx, 1, "atol", op)?, limit(cx, 2, "rtol", op)?);
    if x.numel() == 0 {
        return empty_ranks(x, rtol.is_some());
    }
    let limits = RankTolerance::of(x, atol, rtol, "torch.linalg.matrix_rank")?;
    rank_of(x, &limits, cx.boolean(3)?)
}

/// The error for iterations that do not converge because elements are not finite.
pub(super) fn not_converged(op: &str) -> KernelError {
    KernelError::input(format!("{op}: The algorithm failed to converge"))
}

/// Returns the pseudo-inverse: singular values above the thresholds are inverted, the others dropped.
fn pinv_of(x: &Tensor, limits: &RankTolerance, hermitian: bool) -> Computed {
    let op = "linalg.pinv";
    let (m, n) = matrix_sizes(x, op)?;
    if hermitian {
        square(x, op)?;
    }
    let x = &super::expanded(x, &limits.lead)?;
    dispatch!(wide, wide_dtype(x, Empty::Refused, op)?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let inverses: Result<Vec<Matrix<F>>, KernelError> = map_batch(&all, |i, a| {
            let found = if hermitian {
                eigh(a, false, EXACT).map(|(values, vectors)| (vectors.clone(), values, vectors.adjoint()))
            } else {
                svd(a, false, EXACT)
            };
            let (u, s, vh) = found.ok_or_else(|| not_converged(op))?;
            let least = limits.at(i, s.iter().fold(0.0, |m, x| f64::max(m, x.abs())));
            let inverted: Vec<f64> = s.iter().map(|&x| if x.abs() > least { 1.0 / x } else { 0.0 }).collect();
            let v = Matrix::from_fn(n, s.len(), |i, j| vh[(j, i)].conj().scale(inverted[j]));
            Ok(v.times(&u.adjoint()))
        })
        .into_iter()
        .collect();
        Ok(stack_row_major(&lead, (n, m), &inverses?, x.dtype())?)
    })
}

/// Returns the pseudo-inverse of a matrix without elements.
fn empty_inverse(x: &Tensor) -> Computed {
    matrix_sizes(x, "linalg.pinv")?;
    wide_dtype(x, Empty::Refused, "linalg.pinv")?;
    let transposed = x.transpose(-2, -1)?;
    Ok(Tensor::zeros(transposed.sizes(), x.dtype())?)
}

/// `(self, rcond, hermitian)`.
fn pinv_rcond(cx: &KernelCx<'_>) -> Computed {
    let (x, rcond) = (cx.tensor(0)?, limit(cx, 1, "rcond", "linalg.pinv")?);
    if x.numel() == 0 {
        return empty_inverse(x);
    }
    let limits = RankTolerance::of(x, None, rcond, "torch.linalg.pinv")?;
    let hermitian = cx.n_args() > 2 && matches!(cx.arg(2)?, IValue::Bool(true));
    pinv_of(x, &limits, hermitian)
}

/// `(self, atol, rtol, hermitian)`.
fn pinv_limits(cx: &KernelCx<'_>) -> Computed {
    let (x, op) = (cx.tensor(0)?, "linalg.pinv");
    let (atol, rtol) = (limit(cx, 1, "atol", op)?, limit(cx, 2, "rtol", op)?);
    if x.numel() == 0 {
        return empty_inverse(x);
    }
    let limits = RankTolerance::of(x, atol, rtol, "torch.linalg.pinv")?;
    pinv_of(x, &limits, cx.boolean(3)?)
}

/// The condition number: from singular values, or a norm of the matrix times that of its inverse.
fn cond(cx: &KernelCx<'_>) -> Computed {
    let (x, p) = (cx.tensor(0)?, norm::Order::of(cx, 1)?);
    let op = "linalg.cond";
    let real = x.dtype().to_real();
    let is_valid = match p {
        Some(norm::Order::Number(p)) => [1.0, 2.0, f64::INFINITY].contains(&p.abs()),
        Some(norm::Order::Frobenius | norm::Order::Nuclear) => x.rank() >= 2 && x.size(-1)? == x.size(-2)?,
        None => true,
    };
    if x.numel() == 0 && x.rank() >= 2 && is_valid {
        return Ok(Tensor::zeros(&x.sizes()[..x.rank() - 2], real)?);
    }
    match p {
        None | Some(norm::Order::Number(2.0 | -2.0)) => {
            let values = singular_values(x, op)?;
            let (k, all) = (values.size(-1)? as usize, values.to_vec::<f64>()?);
            let lead = &x.sizes()[..x.rank() - 2];
            let count: i64 = lead.iter().product();
            let ratio = |i: usize| {
                let own = &all[i * k..(i + 1) * k];
                let (Some(&high), Some(&low)) = (own.first(), own.last()) else { return 0.0 };
                if matches!(p, Some(norm::Order::Number(x)) if x < 0.0) { low / high } else { high / low }
            };
            let all: Vec<f64> = (0..count as usize).map(ratio).collect();
            numbers(lead, None, &all, real)
        }
        Some(order) => {
            square(x, op)?;
            let inverse = regular_inverse(x)?;
            let (a, b) = (
                norm::matrix(x, order, &[-2, -1], false, None)?,
                norm::matrix(&inverse, order, &[-2, -1], false, None)?,
            );
            let product = crate::pointwise::product_of(&a, &b)?;
            // The condition number of a singular matrix is infinite.
            Ok(flambeau_tensor::loops::unary::<f64, f64>(&product, |x| {
                if x.is_nan() { f64::INFINITY } else { x }
            })?
            .to_dtype(real)?)
        }
    }
}

/// Returns the inverses; NaN for singular matrices.
fn regular_inverse(x: &Tensor) -> Computed {
    let n = square(x, "linalg.cond")?;
    dispatch!(wide, wide_dtype(x, Empty::Refused, "linalg.cond")?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let all = map_batch(&all, |_, a| {
            let f = lu(a.clone());
            if f.info > 0 { Matrix::from_fn(n, n, |_, _| F::real(f64::NAN)) } else { f.solve(&Matrix::identity(n, n), false) }
        });
        Ok(stack_matrices(&lead, (n, n), &all, x.dtype())?)
    })
}

/// Shapes of `U`, singular values and `V*`; `full` returns whether `U` and `V` are square.
fn svd_shapes(full: fn(&ShapeCx<'_>) -> Option<bool>) -> [ResultShapes; 3] {
    let side = move |cx: &mut ShapeCx<'_>, whole: Dim, other: Dim| match full(cx) {
        Some(true) => whole,
        Some(false) => cx.symbols.min(whole, other),
        None => Dim::Unknown,
    };
    [
        ResultShapes::per_matrix(0, move |cx, m, n| [m, side(cx, m, n)]),
        diagonal(Dtype::real_of(0)).0,
        ResultShapes::per_matrix(0, move |cx, m, n| [side(cx, n, m), n]),
    ]
}

/// Batch sizes of argument 0, broadcast with thresholds that are tensors.
fn limited_batch(cx: &mut ShapeCx<'_>, limits: &[usize]) -> Option<Dims> {
    let mut lead = cx.lead(0, 2)?;
    for &limit in limits {
        if !cx.is_none(limit)? {
            let limit = cx.dims_or_fresh(limit)?;
            lead = cx.broadcast(&[&lead, &limit])?;
        }
    }
    Some(lead)
}

/// Shape: a number for each matrix and threshold. Empty matrices are not broadcast with the thresholds.
fn counts(limits: &'static [usize]) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let widened = limited_batch(cx, limits)?;
        let own = cx.dims_or_fresh(0)?;
        let filled = own.iter().all(|&size| cx.symbols.range(size).min > 0);
        (filled || widened[..] == own[..own.len().checked_sub(2)?]).then_some(widened)
    })
}

/// Shape: the transposed matrices, broadcast with the thresholds.
fn inverses(limits: &'static [usize]) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let mut lead = limited_batch(cx, limits)?;
        // Empty matrices are not broadcast with the thresholds.
        let own = cx.dims_or_fresh(0)?;
        if lead[..] != own[..own.len().checked_sub(2)?]
            && !own.iter().all(|&size| cx.symbols.range(size).min > 0)
        {
            return None;
        }
        lead.extend([cx.size(0, -1), cx.size(0, -2)]);
        Some(lead)
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let any = |d: OpDef| d.with(matrices(&[&[4, 3]], false));
    let symmetric = |d: OpDef| d.with(matrices(&[&[3, 3]], true));
    let doc = "Singular value decomposition.";
    let same = || Dtype::same_as(0);
    let real = || Dtype::real_of(0);
    let three = |d: OpDef, shapes: [ResultShapes; 3]| {
        any(d).with(ResultShapes::results(shapes)).with(Dtype::results([same(), real(), same()]))
    };
    let full = |cx: &ShapeCx<'_>| cx.bool(1);
    let bases = |d: OpDef| three(d, svd_shapes(full));
    let mut defs = op("linalg_svd", "", doc).out("U").facts(bases).several(linalg_svd);
    let bases = |d: OpDef| {
        let [u, s, vh] = svd_shapes(full);
        three(d, [ResultShapes::wanted(2, u), s, ResultShapes::wanted(2, vh)])
    };
    defs.extend(op("_linalg_svd", "", doc).out("U").facts(bases).several(svd_only));
    let bases = |d: OpDef| {
        // Both are square also if they are zeros.
        let [u, s, _] = svd_shapes(|cx| match (cx.bool(1), cx.bool(2)) {
            (Some(false), _) | (_, Some(false)) => Some(true),
            (some, vectors) => some.and(vectors).map(|_| false),
        });
        let v = ResultShapes::per_matrix(0, |cx, m, n| {
            let least = cx.symbols.min(m, n);
            let narrow = cx.either(1, least, n);
            [n, cx.either(2, narrow, n)]
        });
        three(d, [u, s, v])
    };
    defs.extend(op("svd", "", doc).out("U").facts(bases).several(svd_some));
    let values = |d: OpDef| results(any(d), [diagonal(real())]);
    defs.extend(op("linalg_svdvals", "", "Singular values, in decreasing order.").facts(values).one(svdvals));
    let doc = "Eigenvalues in increasing order and eigenvectors of a Hermitian matrix.";
    let pair = |d: OpDef| results(symmetric(d), [columns(real()), matrix()]);
    defs.extend(op("linalg_eigh", "", doc).out("eigvals").facts(pair).several(linalg_eigh));
    let pair = |d: OpDef| {
        let vectors = ResultShapes::wanted(2, matrix().0);
        results(symmetric(d), [columns(real()), (vectors, same())])
    };
    defs.extend(op("_linalg_eigh", "", doc).out("eigenvalues").facts(pair).several(eigh_only));
    let doc = "Eigenvalues of a Hermitian matrix, in increasing order.";
    let values = |d: OpDef| results(symmetric(d), [columns(real())]);
    defs.extend(op("linalg_eigvalsh", "", doc).facts(values).one(eigvalsh));
    let doc = "Eigenvalues and eigenvectors of a square matrix, complex.";
    let complex = || same().then(DType::to_complex);
    let pair = |d: OpDef| results(symmetric(d), [columns(complex()), (matrix().0, complex())]);
    defs.extend(op("linalg_eig", "", doc).facts(pair).several(linalg_eig));
    let values = |d: OpDef| results(symmetric(d), [columns(complex())]);
    let doc = "Eigenvalues of a square matrix, complex.";
    defs.extend(op("linalg_eigvals _linalg_eigvals", "", doc).facts(values).one(eigvals));
    let doc = "The rank: number of nonzero singular values.";
    let limited = |d: OpDef| d.with(Sample::args(|g| vec![drawn(g, &[4, 3], false), IValue::Float(0.1)]));
    let limited_by_tensor = |d: OpDef| {
        d.with(Sample::args(|g| {
            let tol =
                Tensor::scalar(Scalar::Float(0.1), DType::F32).expect("invariant: one element can be made");
            vec![drawn(g, &[4, 3], false), IValue::Tensor(tol)]
        }))
    };
    let rank = |overload: &'static str, limits: &'static [usize]| {
        let fact = move |d: OpDef| d.with(counts(limits)).with(Dtype::fixed(DType::I64));
        (op("linalg_matrix_rank", overload, doc), fact)
    };
    let (row, fact) = rank("", &[]);
    defs.extend(row.facts(|d| limited(fact(d))).one(rank_tol));
    let (row, fact) = rank("tol_tensor", &[1]);
    defs.extend(row.out("out_tol_tensor").facts(|d| limited_by_tensor(fact(d))).one(rank_tol));
    let (row, fact) = rank("atol_rtol_tensor", &[1, 2]);
    defs.extend(row.facts(|d| any(fact(d))).one(rank_limits));
    let (row, fact) = rank("atol_rtol_float", &[]);
    defs.extend(row.facts(|d| any(fact(d))).one(rank_limits));
    let doc = "The pseudo-inverse.";
    let inverse = |d: OpDef, limits: &'static [usize]| d.with(inverses(limits)).with(same());
    let pinv = "linalg_pinv";
    defs.extend(op(pinv, "", doc).facts(|d| inverse(limited(d), &[])).one(pinv_rcond));
    defs.extend(op("pinverse", "", doc).facts(|d| inverse(any(d), &[])).one(pinv_rcond));
    defs.extend(
        op(pinv, "rcond_tensor", doc)
            .out("out_rcond_tensor")
            .facts(|d| inverse(limited_by_tensor(d), &[1]))
            .one(pinv_rcond),
    );
    defs.extend(op(pinv, "atol_rtol_tensor", doc).facts(|d| inverse(any(d), &[1, 2])).one(pinv_limits));
    defs.extend(op(pinv, "atol_rtol_float", doc).facts(|d| inverse(any(d), &[])).one(pinv_limits));
    let doc = "The condition number.";
    let plain = |d: OpDef| results(symmetric(d), [number(real())]);
    defs.extend(op("linalg_cond", "", doc).facts(plain).one(cond));
    let named = |d: OpDef| {
        let sample = Sample::args(|g| vec![drawn(g, &[3, 3], true), IValue::str("fro")]);
        results(d, [number(real())]).with(sample)
    };
    defs.extend(op("linalg_cond", "p_str", doc).facts(named).one(cond));
    defs
}
