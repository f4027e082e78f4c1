//! Distances between vectors: of pairs, of all rows of a matrix, of all rows of two matrices; and cosine similarity.

use super::{no_args, sized};
use crate::pointwise::{no_bools, product_of, quotient_of};
use crate::reduce::{check_identity, vector_norm};
use crate::support::{Computed, op, same_dtypes, total};
use flambeau_analysis::shape::Dims;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::loops::{binary, unary_in};
use flambeau_tensor::math::Float;
use flambeau_tensor::promote::{promote, result_type};
use flambeau_tensor::rows::map_rows;
use flambeau_tensor::{
    DType, Element, Tensor, broadcast_shapes, check_budget, dispatch, numel_of, reduce, threads, wrap_dim,
};

/// The `p`-norm of differences: the number of nonzero ones (0), the maximum (infinity), or a root of a sum of powers.
#[inline(always)]
pub(super) fn norm(differences: impl Iterator<Item = f64>, p: f64) -> f64 {
    if p == 0.0 {
        total(differences.map(|d| if d.is_nan() { d } else { f64::from(u8::from(d != 0.0)) }))
    } else if p == 1.0 {
        total(differences.map(f64::abs))
    } else if p == 2.0 {
        total(differences.map(|d| d * d)).sqrt()
    } else if p == f64::INFINITY {
        differences.fold(0.0, |m, d| if d.abs() > m || d.is_nan() { d.abs() } else { m })
    } else {
        libm::pow(total(differences.map(|d| libm::pow(d.abs(), p))), 1.0 / p)
    }
}

/// The norm of `a - b + eps` along the last dimension.
pub(super) fn pairwise(a: &Tensor, b: &Tensor, p: f64, eps: f64, keepdim: bool) -> Computed {
    no_bools(a.dtype(), b.dtype())?;
    if let Some(wide) = [a, b].into_iter().find(|x| x.rank() > 0 && x.rank() == a.rank().max(b.rank())) {
        check_identity(wide, 1 << (wide.rank() - 1), p)?;
    }
    let dtype = result_type(&[a, b]).unwrap_or(DType::F32);
    if dtype.is_integral(false) {
        // Integer differences wrap before their conversion to f32.
        let apart = dispatch!(ints, dtype, "pairwise_distance", T => {
            Ok::<_, KernelError>(binary::<T, T, f32>(a, b, move |a: T, b: T| {
                T::from_i64(a.to_i64().wrapping_sub(b.to_i64())).to_f32() + eps as f32
            })?)
        })?;
        let result = last::<f32>(&apart, p)?;
        return Ok(if keepdim { result } else { result.squeeze(&[-1])? });
    }
    let result = if dtype.is_complex() {
        dispatch!(complex, dtype, "pairwise_distance", T => {
            let apart = binary::<T, T, f64>(a, b, move |a: T, b: T| {
                let d = a.to_complex() - b.to_complex() + eps;
                d.re.hypot(d.im)
            })?;
            last::<f64>(&apart, p)
        })?
    } else {
        dispatch!(floats, dtype, "pairwise_distance", T => {
            let apart = binary::<T, T, T>(a, b, move |a: T, b: T| T::from_f64(T::from_acc(a.acc() - b.acc()).to_f64() + eps))?;
            last::<T>(&apart, p)
        })?
    };
    let result = result.to_dtype(dtype.to_real())?;
    Ok(if keepdim { result } else { result.squeeze(&[-1])? })
}

fn last<T: Float>(apart: &Tensor, p: f64) -> Computed {
    Ok(map_rows::<T, T>(apart, -1, Some(1), |row, out| {
        // For 1-d operands and `p = 0`, NaN counts as a difference.
        let apart = row.iter().map(|d| T::from_raw(*d).to_f64());
        let apart = apart.map(|d| if p == 0.0 && d.is_nan() { 1.0 } else { d });
        out[0] = T::from_f64(norm(apart, p)).to_raw();
    })?)
}

/// Cosine similarity along a dimension: `(x1, x2, dim, eps)`.
fn cosine_similarity(cx: &KernelCx<'_>) -> Computed {
    let (a, b, dim, eps) = (cx.tensor(0)?, cx.tensor(1)?, cx.int(2)?, cx.float(3)?);
    let dtype = result_type(&[a, b]).unwrap_or(DType::F32);
    if !dtype.is_floating() {
        return Err(KernelError::input(format!(
            "expected common dtype to be floating point, yet common dtype is {}",
            dtype.ir_name()
        )));
    }
    let sizes = broadcast_shapes(a.sizes(), b.sizes())?;
    let dim = [wrap_dim(dim, sizes.len())? as i64];
    // Each operand is normalized in its own dtype, even if the other's is wider.
    let direction = |x: &Tensor| -> Computed {
        let x = if x.dtype().is_floating() { x.clone() } else { x.to_dtype(dtype)? };
        let x = x.expand(&sizes)?;
        let norm = vector_norm(&x, 2.0, Some(&dim), true, None)?;
        let norm = dispatch!(carried_floats, norm.dtype(), "cosine_similarity", T => {
            let eps = T::from_f64(eps).acc();
            unary_in::<T>(norm.dtype(), &norm, move |n: T| if n.acc() < eps { T::from_acc(eps) } else { n })
        })?;
        quotient_of(&x, &norm)
    };
    Ok(reduce::sum(&product_of(&direction(a)?, &direction(b)?)?, Some(&dim), false, None)?)
}

/// Estimated cost per element of a difference, in operations.
const COST_PER_ELEMENT: usize = 4;

/// Distances between all pairs of rows of a matrix: the upper triangle, row by row.
fn pdist(cx: &KernelCx<'_>) -> Computed {
    let (x, p) = (cx.tensor(0)?, cx.float(1)?);
    if x.rank() != 2 {
        return Err(KernelError::input(format!("pdist only supports 2D tensors, got: {}D", x.rank())));
    }
    if !x.dtype().is_floating() {
        return Err(KernelError::input("pdist only supports floating-point dtypes"));
    }
    if x.sizes()[0] > 1 && x.sizes()[1] > 0 && matches!(x.dtype(), DType::F16 | DType::BF16) {
        return Err(flambeau_tensor::TensorError::DType { op: "pdist", dtype: x.dtype() }.into());
    }
    if p < 0.0 {
        return Err(KernelError::input("pdist only supports non-negative p values"));
    }
    let (rows, width) = (x.sizes()[0] as usize, x.sizes()[1] as usize);
    // Pairs, each held twice: by its row and in the result.
    check_budget((rows.saturating_mul(rows) / 2).saturating_mul(2 * size_of::<f64>()))?;
    let data = x.to_vec::<f64>()?;
    let row = |i: usize| &data[i * width..(i + 1) * width];
    let out = threads::map(rows, threads::rows(rows * width * COST_PER_ELEMENT), |i| -> Vec<f64> {
        (i + 1..rows).map(|j| norm(row(i).iter().zip(row(j)).map(|(a, b)| a - b), p)).collect()
    })
    .concat();
    Ok(Tensor::from_slice(&out, &[out.len() as i64])?.to_dtype(x.dtype())?)
}

/// Number of rows from which PyTorch computes Euclidean distances by a matrix product, if the mode allows both.
const BY_PRODUCT: i64 = 26;

/// `(x1, x2, p, compute_mode)`.
fn cdist_in_mode(cx: &KernelCx<'_>) -> Computed {
    let (a, b, p, mode) = (cx.tensor(0)?, cx.tensor(1)?, cx.float(2)?, cx.opt_int(3)?.unwrap_or(0));
    if !(0..=2).contains(&mode) {
        return Err(KernelError::input(format!("{mode} is not a valid value for compute_mode")));
    }
    let many = [a, b].iter().any(|x| x.rank() > 1 && x.sizes()[x.rank() - 2] >= BY_PRODUCT);
    cdist(a, b, p, p == 2.0 && (mode == 1 || mode == 0 && many))
}

/// Distances between all rows of two batches of matrices. The matrix product also supports f16.
fn cdist(a: &Tensor, b: &Tensor, p: f64, by_product: bool) -> Computed {
    for (name, x) in [("X1", a), ("X2", b)] {
        if x.rank() < 2 {
            return Err(KernelError::input(format!(
                "cdist only supports at least 2D tensors, {name} got: {}D",
                x.rank()
            )));
        }
        if !x.dtype().is_floating() {
            return Err(KernelError::input(format!(
                "cdist only supports floating-point dtypes, {name} got: {}",
                x.dtype().ir_name()
            )));
        }
    }
    if a.sizes().last() != b.sizes().last() {
        return Err(KernelError::input("X1 and X2 must have the same number of columns"));
    }
    if p.is_nan() || p < 0.0 {
        return Err(KernelError::input("cdist only supports non-negative p values"));
    }
    let width = a.sizes()[a.rank() - 1];
    let (m, n) = (a.sizes()[a.rank() - 2], b.sizes()[b.rank() - 2]);
    let batch = broadcast_shapes(&a.sizes()[..a.rank() - 2], &b.sizes()[..b.rank() - 2])?;
    let dtype = a.dtype();
    if a.numel() > 0 && b.numel() > 0 {
        same_dtypes(&[a, b])?;
        if !by_product && !matches!(dtype, DType::F32 | DType::F64) {
            return Err(KernelError::input(format!("\"cdist\" not implemented for '{}'", dtype.ir_name())));
        }
    }
    let whole = |x: &Tensor, rows: i64| {
        let mut sizes = batch.to_vec();
        sizes.extend([rows, width]);
        x.expand(&sizes)?.to_vec::<f64>()
    };
    let (x, y) = (whole(a, m)?, whole(b, n)?);
    let mut sizes = batch.to_vec();
    sizes.extend([m, n]);
    let (rows, columns, width) = (m as usize, n as usize, width as usize);
    let count = numel_of(&sizes)? as usize;
    check_budget(count.saturating_mul(size_of::<f64>()))?;
    let mut out = vec![0.0; count];
    threads::chunks(
        &mut out,
        threads::rows(columns * width * COST_PER_ELEMENT) * columns.max(1),
        |start, own| {
            for (k, own) in own.chunks_exact_mut(columns).enumerate() {
                let row = start / columns + k;
                let first = &x[row * width..][..width];
                for (j, out) in own.iter_mut().enumerate() {
                    let second = &y[(row / rows * columns + j) * width..][..width];
                    let apart = first.iter().zip(second).map(|(a, b)| a - b);
                    // For `p = infinity`, `cdist` ignores NaN.
                    let apart = apart.map(|d| if p == f64::INFINITY && d.is_nan() { 0.0 } else { d });
                    *out = norm(apart, p);
                }
            }
        },
    );
    Ok(Tensor::from_vec(out, &sizes)?.to_dtype(dtype)?)
}

/// Shape rule: a number for each pair of rows.
fn pairs(d: OpDef) -> OpDef {
    let shape = ResultShapes::dims(|cx| {
        let (a, b) = (cx.lead(0, 2)?, cx.lead(1, 2)?);
        let mut dims = cx.broadcast(&[&a, &b])?;
        dims.extend([cx.size(0, -2), cx.size(1, -2)]);
        Some(dims)
    });
    d.with(shape).with(Dtype::same_as(0))
}

pub(super) fn family() -> Vec<OpDef> {
    let two = |sizes: &'static [&'static [i64]]| sized(sizes, no_args()).tolerance(1e-4, 1e-5);
    let mut defs = op("pairwise_distance", "", "Norms of differences along the last dimension.")
        .facts(|d| {
            let shape = ResultShapes::dims(|cx| {
                let (a, b) = (cx.dims_or_fresh(0)?, cx.dims_or_fresh(1)?);
                let mut dims = cx.broadcast(&[&a, &b])?;
                let keep = cx.bool(4)?;
                // A scalar result has no dimension to keep.
                let reduced = dims.pop();
                dims.extend(reduced.filter(|_| keep).map(|_| Dim::Known(1)));
                Some(dims)
            });
            let dtype = Dtype::float_promote([0, 1]).then(DType::to_real);
            d.with(shape).with(dtype).with(two(&[&[2, 3], &[2, 3]]))
        })
        .one(|cx| pairwise(cx.tensor(0)?, cx.tensor(1)?, cx.float(2)?, cx.float(3)?, cx.boolean(4)?));
    defs.extend(
        op("cosine_similarity", "", "Cosines of the angles between vectors along a dimension.")
            .facts(|d| {
                let shape = ResultShapes::dims(|cx| {
                    let (a, b) = (cx.dims_or_fresh(0)?, cx.dims_or_fresh(1)?);
                    let mut dims = cx.broadcast(&[&a, &b])?;
                    match cx.wrap(2, dims.len()) {
                        Some(at) if at < dims.len() => drop(dims.remove(at)),
                        Some(_) => {}
                        None => dims = Dims::from_elem(Dim::Unknown, dims.len().saturating_sub(1)),
                    }
                    Some(dims)
                });
                // Each operand is normalized before they meet, so that ranks do not matter.
                let dtype = Dtype::from(|cx| {
                    let (a, b) = (cx.dtype(0)?, cx.dtype(1)?);
                    match (a.is_floating(), b.is_floating()) {
                        (true, true) => Some(promote(a, b)),
                        (true, false) => Some(a),
                        (false, true) => Some(b),
                        (false, false) => None,
                    }
                });
                d.with(shape).with(dtype).with(two(&[&[2, 3], &[2, 3]]))
            })
            .one(cosine_similarity),
    );
    let matrix = || Sample::tensors(1).floats().rank(2, 2).tolerance(1e-4, 1e-5);
    defs.extend(
        op("pdist _pdist_forward", "", "Distances between all pairs of rows.")
            .facts(|d| {
                let shape = ResultShapes::dims(|cx| {
                    let n = cx.size(0, 0);
                    let others = cx.symbols.sub(n, Dim::Known(1));
                    let ordered = cx.symbols.mul(n, others);
                    Some([cx.symbols.floor_div(ordered, Dim::Known(2))])
                });
                d.with(shape).with(Dtype::same_as(0)).with(matrix())
            })
            .one(pdist),
    );
    let doc = "Distances between all rows of one matrix and all rows of another.";
    defs.extend(op("cdist", "", doc).facts(|d| pairs(d).with(two(&[&[2, 3], &[4, 3]]))).one(cdist_in_mode));
    let forward: fn() -> Vec<IValue> = || vec![IValue::Float(2.0), IValue::None];
    defs.extend(
        op("_cdist_forward", "", doc)
            .facts(|d| pairs(d).with(sized(&[&[2, 3], &[4, 3]], Box::new(forward))))
            .one(cdist_in_mode),
    );
    defs.extend(
        op("_euclidean_dist", "", doc)
            .facts(|d| pairs(d).with(two(&[&[2, 3], &[4, 3]])))
            .one(|cx| cdist(cx.tensor(0)?, cx.tensor(1)?, 2.0, true)),
    );
    defs
}
