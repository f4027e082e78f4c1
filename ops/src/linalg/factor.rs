//! LU factorization and unpacking; QR factorization and products with Householder reflections.

use super::{
    Empty, Known, code, diagonal, drawn, element, integers, matrices, matrix, matrix_sizes, results,
    wide_dtype,
};
use crate::support::{Computed, Several, no_dimensions, op};
use flambeau_analysis::shape::ShapeCx;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::linalg::{
    Field, Lu, Matrix, Qr, batches, check_matrices, lu, map_batch, order_of, qr, stack_matrices,
    stack_row_major,
};
use flambeau_tensor::{Complex, DType, Tensor, dispatch};

/// Returns the LU factors of every matrix of a batch.
fn lu_parts(x: &Tensor, op: &str, pivot: bool) -> Result<[Tensor; 3], KernelError> {
    let (m, n) = matrix_sizes(x, op)?;
    if !pivot {
        return Err(KernelError::input(format!("{op}: LU without pivoting is not implemented on the CPU")));
    }
    dispatch!(wide, wide_dtype(x, Empty::Any, op)?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let factors: Vec<Lu<F>> = map_batch(&all, |_, a| lu(a.clone()));
        let pivots: Vec<i32> = factors.iter().flat_map(|f| f.pivots.iter().map(|p| *p as i32 + 1)).collect();
        let info: Vec<i32> = factors.iter().map(|f| f.info as i32).collect();
        let packed: Vec<Matrix<F>> = factors.into_iter().map(|f| f.packed).collect();
        Ok([
            stack_matrices(&lead, (m, n), &packed, x.dtype())?,
            integers(&lead, Some(m.min(n)), &pivots)?,
            integers(&lead, None, &info)?,
        ])
    })
}

/// Returns an error that names the first matrix with a zero pivot.
fn check_lu(info: &Tensor, op: &str) -> Result<(), KernelError> {
    let all = info.to_vec::<i64>()?;
    let Some(i) = all.iter().position(|&n| n > 0) else { return Ok(()) };
    let (which, n) = (element(info.sizes(), i), all[i]);
    Err(KernelError::input(format!(
        "{op}: {which}U[{n},{n}] is zero and using it on lu_solve would result in a division by zero. If you still \
         want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )))
}

fn lu_factor(cx: &KernelCx<'_>) -> Several {
    let [packed, pivots, info] = lu_parts(cx.tensor(0)?, "linalg.lu_factor", cx.boolean(1)?)?;
    check_lu(&info, "torch.linalg.lu_factor")?;
    Ok(vec![packed, pivots])
}

/// `(A, pivot, check_errors)`.
fn lu_factor_ex(cx: &KernelCx<'_>) -> Several {
    let parts = lu_parts(cx.tensor(0)?, "linalg.lu_factor_ex", cx.boolean(1)?)?;
    if cx.boolean(2)? {
        check_lu(&parts[2], "torch.linalg.lu_factor_ex")?;
    }
    Ok(parts.into())
}

/// Returns `P`, `L`, `U` from the packed form. Nothing is computed, so all dtypes are supported. Only the first `min(m,
/// n)` pivots are read.
fn unpacked(packed: &Tensor, pivots: Option<&Tensor>) -> Several {
    match packed.dtype().is_complex() {
        true => unpacked_as::<Complex<f64>>(packed, pivots),
        false => unpacked_as::<f64>(packed, pivots),
    }
}

fn unpacked_as<F: Field>(packed: &Tensor, pivots: Option<&Tensor>) -> Several {
    let (m, n) = matrix_sizes(packed, "lu_unpack")?;
    let k = m.min(n);
    let (lead, all) = batches::<F>(packed)?;
    check_matrices::<F>(&lead, m, m)?;
    // Without pivots, rows keep their order.
    let (pivots, width) = match pivots {
        Some(pivots) => (pivots.to_vec::<i64>()?, pivots.sizes().last().map_or(1, |n| *n as usize)),
        None => ((1..=m as i64).collect(), 0),
    };
    let (mut p, mut l, mut u) = (Vec::new(), Vec::new(), Vec::new());
    for (i, packed) in all.into_iter().enumerate() {
        let own =
            pivots.get(i * width..i * width + k).filter(|own| own.iter().all(|p| (1..=m as i64).contains(p)));
        let Some(own) = own else {
            return Err(KernelError::input(format!(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive: 1 and {m}"
            )));
        };
        let own: Vec<usize> = own.iter().map(|&p| p as usize - 1).collect();
        let mut permutation = Matrix::<F>::zeros(m, m);
        order_of(&own, m).iter().enumerate().for_each(|(to, &from)| permutation[(from, to)] = F::ONE);
        let factors = Lu { packed, pivots: own, info: 0 };
        p.push(permutation);
        l.push(factors.lower());
        u.push(factors.upper());
    }
    let dtype = packed.dtype();
    Ok(vec![
        stack_row_major(&lead, (m, m), &p, dtype)?,
        stack_row_major(&lead, (m, k), &l, dtype)?,
        stack_row_major(&lead, (k, n), &u, dtype)?,
    ])
}

fn linalg_lu(cx: &KernelCx<'_>) -> Several {
    let [packed, pivots, _] = lu_parts(cx.tensor(0)?, "linalg.lu", cx.boolean(1)?)?;
    unpacked(&packed, Some(&pivots))
}

/// `(LU, pivots, unpack_data, unpack_pivots)`: results that are not requested are empty.
fn lu_unpack(cx: &KernelCx<'_>) -> Several {
    let (packed, pivots) = (cx.tensor(0)?, cx.tensor(1)?);
    let (data, order) = (cx.boolean(2)?, cx.boolean(3)?);
    if order && pivots.dtype() != DType::I32 {
        return Err(KernelError::input(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.",
        ));
    }
    let mut all = unpacked(packed, Some(pivots).filter(|_| order && packed.numel() > 0))?;
    let empty = || Tensor::zeros(&[0], packed.dtype());
    if !data {
        all[1] = empty()?;
        all[2] = empty()?;
    }
    if !order {
        all[0] = empty()?;
    }
    Ok(all)
}

/// The requested part of `Q`.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Reduced,
    Complete,
    OnlyR,
}

impl Mode {
    fn named(name: &[u8]) -> Option<Mode> {
        match name {
            b"reduced" => Some(Mode::Reduced),
            b"complete" => Some(Mode::Complete),
            b"r" => Some(Mode::OnlyR),
            _ => None,
        }
    }

    /// Converts the flag `some` of `qr`.
    fn of_some(some: bool) -> Mode {
        if some { Mode::Reduced } else { Mode::Complete }
    }
}

fn qr_of(x: &Tensor, mode: Mode) -> Several {
    let (m, n) = matrix_sizes(x, "linalg.qr")?;
    let rows = if mode == Mode::Complete { m } else { m.min(n) };
    dispatch!(wide, wide_dtype(x, Empty::Refused, "linalg.qr")?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        check_matrices::<F>(&lead, m, rows)?;
        let factors: Vec<Qr<F>> = map_batch(&all, |_, a| qr(a.clone()));
        let r: Vec<Matrix<F>> = factors.iter().map(|f| f.upper(rows)).collect();
        let q = if mode == Mode::OnlyR {
            Tensor::zeros(&[0], x.dtype())?
        } else {
            let q = map_batch(&all, |i, _| factors[i].columns(rows));
            stack_matrices(&lead, (m, rows), &q, x.dtype())?
        };
        Ok(vec![q, stack_matrices(&lead, (rows, n), &r, x.dtype())?])
    })
}

fn linalg_qr(cx: &KernelCx<'_>) -> Several {
    let name = cx.str_bytes(1)?;
    let mode = Mode::named(name).ok_or_else(|| {
        KernelError::input(format!(
            "qr received unrecognized mode '{}' but expected one of 'reduced' (default), 'r', or 'complete'",
            String::from_utf8_lossy(name)
        ))
    })?;
    qr_of(cx.tensor(0)?, mode)
}

fn qr_some(cx: &KernelCx<'_>) -> Several {
    qr_of(cx.tensor(0)?, Mode::of_some(cx.boolean(1)?))
}

fn geqrf(cx: &KernelCx<'_>) -> Several {
    let x = cx.tensor(0)?;
    let (m, n) = matrix_sizes(x, "torch.geqrf")?;
    dispatch!(wide, wide_dtype(x, Empty::Refused, "geqrf")?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let factors: Vec<Qr<F>> = map_batch(&all, |_, a| qr(a.clone()));
        let tau: Vec<F> = factors.iter().flat_map(|f| f.tau.iter().copied()).collect();
        let packed: Vec<Matrix<F>> = factors.into_iter().map(|f| f.packed).collect();
        Ok(vec![
            stack_matrices(&lead, (m, n), &packed, x.dtype())?,
            super::numbers(&lead, Some(m.min(n)), &tau, x.dtype())?,
        ])
    })
}

/// Returns the Householder reflections of every matrix from their packed form.
fn reflections<F: Field>(
    (lead, all): (&[i64], Vec<Matrix<F>>),
    tau: &Tensor,
    op: &str,
) -> Result<Vec<Qr<F>>, KernelError> {
    if tau.sizes()[..tau.rank() - 1] != *lead {
        return Err(KernelError::input(format!(
            "{op}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {:?}",
            &tau.sizes()[..tau.rank() - 1]
        )));
    }
    let k = tau.size(-1)? as usize;
    let tau = tau.to_vec::<F>()?;
    Ok(all
        .into_iter()
        .enumerate()
        .map(|(i, packed)| Qr { packed, tau: tau[i * k..(i + 1) * k].to_vec() })
        .collect())
}

fn householder(cx: &KernelCx<'_>) -> Computed {
    let (x, tau) = (cx.tensor(0)?, cx.tensor(1)?);
    let op = "torch.linalg.householder_product";
    let &[.., m, n] = x.sizes() else {
        return Err(KernelError::input(format!("{op}: input must have at least 2 dimensions.")));
    };
    if n > m {
        return Err(KernelError::input(format!(
            "{op}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )));
    }
    if count_of(tau)? > n {
        return Err(KernelError::input(format!(
            "{op}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )));
    }
    check_batches(op, x, tau)?;
    if x.dtype() != tau.dtype() {
        return Err(KernelError::input(format!(
            "{op}: tau dtype {} does not match input dtype {}",
            tau.dtype().ir_name(),
            x.dtype().ir_name()
        )));
    }
    let (m, n) = (m as usize, n as usize);
    dispatch!(wide, wide_dtype(x, Empty::Refused, op)?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let q: Vec<Matrix<F>> = reflections((&lead, all), tau, op)?.iter().map(|f| f.columns(n)).collect();
        Ok(stack_matrices(&lead, (m, n), &q, x.dtype())?)
    })
}

/// Returns the number of reflections.
fn count_of(tau: &Tensor) -> Result<i64, KernelError> {
    match tau.sizes().last() {
        Some(n) => Ok(*n),
        None => Err(no_dimensions(-1)),
    }
}

/// Checks that the factors of reflections have the batch dimensions of the matrices.
fn check_batches(op: &str, x: &Tensor, tau: &Tensor) -> Result<(), KernelError> {
    if tau.rank() + 1 != x.rank() {
        return Err(KernelError::input(format!(
            "{op}: Expected tau to have one dimension less than input, but got tau.ndim equal to {} and input.ndim is equal \
             to {}",
            tau.rank(),
            x.rank()
        )));
    }
    let lead = &tau.sizes()[..tau.rank() - 1];
    if *lead != x.sizes()[..x.rank() - 2] {
        return Err(KernelError::input(format!(
            "{op}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {lead:?}"
        )));
    }
    Ok(())
}

/// `(input, tau, other, left, transpose)`.
fn ormqr(cx: &KernelCx<'_>) -> Computed {
    let (x, tau, other) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let (left, adjoint) = (cx.boolean(3)?, cx.boolean(4)?);
    for (name, t) in [("input", x), ("other", other)] {
        if t.rank() < 2 {
            return Err(KernelError::input(format!("torch.ormqr: {name} must have at least 2 dimensions.")));
        }
    }
    let at = if left { -2 } else { -1 };
    let (side, rows, columns, count) = (other.size(at)?, x.size(-2)?, x.size(-1)?, count_of(tau)?);
    if side < count {
        return Err(KernelError::input(format!(
            "torch.ormqr: other.shape[{at}] must be greater than or equal to tau.shape[-1]"
        )));
    }
    if side != rows {
        return Err(KernelError::input(format!(
            "torch.ormqr: other.shape[{at}] must be equal to input.shape[-2]"
        )));
    }
    if count > columns {
        return Err(KernelError::input(
            "torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]",
        ));
    }
    check_batches("torch.ormqr", x, tau)?;
    if other.rank() != x.rank() {
        return Err(KernelError::input(format!(
            "torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to {} and \
             input.ndim is equal to {}",
            other.rank(),
            x.rank()
        )));
    }
    let lead = &other.sizes()[..other.rank() - 2];
    if *lead != x.sizes()[..x.rank() - 2] {
        return Err(KernelError::input(format!(
            "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got {lead:?}"
        )));
    }
    for (name, t) in [("tau", tau), ("other", other)] {
        if t.dtype() != x.dtype() {
            return Err(KernelError::input(format!(
                "torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype{} and {name} has dtype {}",
                x.dtype().ir_name(),
                t.dtype().ir_name()
            )));
        }
    }
    let (m, n) = matrix_sizes(other, "torch.ormqr")?;
    dispatch!(wide, wide_dtype(x, Empty::Refused, "ormqr")?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let (_, others) = batches::<F>(other)?;
        let mut products = Vec::with_capacity(others.len());
        for (f, c) in reflections((&lead, all), tau, "torch.ormqr")?.iter().zip(others) {
            // C Q is the adjoint of Q* C*.
            let mut c = if left { c } else { c.adjoint() };
            f.apply(&mut c, adjoint == left);
            products.push(if left { c } else { c.adjoint() });
        }
        Ok(stack_matrices(&lead, (m, n), &products, x.dtype())?)
    })
}

/// Facts of `Q` and `R` for a mode that may be unknown.
fn qr_facts(mode: fn(&ShapeCx<'_>) -> Option<Mode>) -> [Known; 2] {
    let side = move |cx: &mut ShapeCx<'_>, m, n| match mode(cx) {
        Some(Mode::Complete) => m,
        Some(_) => cx.symbols.min(m, n),
        None => Dim::Unknown,
    };
    let (q, r) = (
        ResultShapes::per_matrix(0, move |cx, m, n| [m, side(cx, m, n)]),
        ResultShapes::per_matrix(0, move |cx, m, n| [side(cx, m, n), n]),
    );
    let q = ResultShapes::from(move |cx| match mode(cx)? {
        Mode::OnlyR => ResultShapes::nothing().result(0, cx),
        _ => q.result(0, cx),
    });
    [(q, Dtype::same_as(0)), (r, Dtype::same_as(0))]
}

/// Shapes of `P`, `L` and `U`.
fn lu_facts() -> [ResultShapes; 3] {
    [
        ResultShapes::per_matrix(0, |_, m, _| [m, m]),
        ResultShapes::per_matrix(0, |cx, m, n| [m, cx.symbols.min(m, n)]),
        ResultShapes::per_matrix(0, |cx, m, n| [cx.symbols.min(m, n), n]),
    ]
}

pub(super) fn family() -> Vec<OpDef> {
    let one = |d: OpDef| d.with(matrices(&[&[4, 3]], false));
    let exchanges = || diagonal(Dtype::fixed(DType::I32));
    let factored = |d: OpDef| results(one(d), [matrix(), exchanges()]);
    let with_code = |d: OpDef| results(one(d), [matrix(), exchanges(), code()]);
    let doc = "The packed factors of `P A = L U`, and the pivots.";
    let mut defs = op("linalg_lu_factor", "", doc).facts(factored).several(lu_factor);
    defs.extend(op("linalg_lu_factor_ex _lu_with_info", "", doc).facts(with_code).several(lu_factor_ex));
    let doc = "`P`, `L` and `U` with `A = P L U`.";
    let three = |d: OpDef| one(d).with(ResultShapes::results(lu_facts())).with(Dtype::same_as(0));
    defs.extend(op("linalg_lu", "", doc).facts(three).several(linalg_lu));
    let unpack = |d: OpDef| {
        let [p, l, u] = lu_facts();
        let wanted = [ResultShapes::wanted(3, p), ResultShapes::wanted(2, l), ResultShapes::wanted(2, u)];
        d.with(ResultShapes::results(wanted)).with(Dtype::same_as(0)).with(Sample::args(|g| {
            let pivots =
                Tensor::from_slice(&[2i32, 3, 3], &[3]).expect("invariant: three elements of one row");
            vec![drawn(g, &[3, 3], false), IValue::Tensor(pivots)]
        }))
    };
    defs.extend(op("lu_unpack", "", doc).facts(unpack).several(lu_unpack));
    let doc = "`Q` with orthonormal columns and `R` upper triangular whose product is the matrix.";
    let by_name = |d: OpDef| results(one(d), qr_facts(|cx| Mode::named(cx.text(1)?)));
    defs.extend(op("linalg_qr", "", doc).facts(by_name).several(linalg_qr));
    let by_flag = |d: OpDef| results(one(d), qr_facts(|cx| cx.bool(1).map(Mode::of_some)));
    defs.extend(op("qr", "", doc).out("Q").facts(by_flag).several(qr_some));
    let doc = "The Householder reflections of a QR factorization.";
    let reflections = |d: OpDef| results(one(d), [matrix(), diagonal(Dtype::same_as(0))]);
    defs.extend(op("geqrf", "", doc).out("a").facts(reflections).several(geqrf));
    let with_tau = |d: OpDef| results(d, [matrix()]).with(reflected(&[&[4, 3], &[3]]));
    let doc = "The first columns of a product of Householder reflections.";
    defs.extend(op("linalg_householder_product orgqr", "", doc).facts(with_tau).one(householder));
    let doc = "A matrix multiplied by a product of Householder reflections.";
    let product = || {
        ResultShapes::dims(|cx| {
            let mut dims = cx.lead(0, 2)?;
            dims.extend([cx.size(2, -2), cx.size(2, -1)]);
            Some(dims)
        })
    };
    let with_other =
        |d: OpDef| d.with(product()).with(Dtype::same_as(0)).with(reflected(&[&[4, 3], &[3], &[4, 2]]));
    defs.extend(op("ormqr", "", doc).facts(with_other).one(ormqr));
    defs
}

/// Draws operands of one dtype.
fn reflected(sizes: &'static [&'static [i64]]) -> Sample {
    Sample::args(move |g| {
        let dtype = *g.pick(flambeau_exec::sample::FLOATS);
        let elements = flambeau_exec::sample::ElementDistribution { lo: -1.0, hi: 1.0, ..Default::default() };
        sizes.iter().map(|s| IValue::Tensor(flambeau_exec::sample::tensor(g, s, dtype, &elements))).collect()
    })
    .tolerance(1e-3, 1e-4)
}
