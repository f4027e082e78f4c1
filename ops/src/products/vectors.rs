//! Vector products, outer products, matrix chains and matrix powers.

use super::{counted, scaled_sum};
use crate::compute::computing;
use crate::linalg::{Empty, wide_dtype};
use crate::pointwise::{difference_of, product_of};
use crate::support::{Computed, op, same_dtypes};
use flambeau_analysis::shape::{Dim, Dims, Fact, ShapeCx, TensorFact, broadcast_dims};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::{self, ElementDistribution};
use flambeau_exec::{Gen, KernelCx, KernelError, Sample};
use flambeau_ir::value::List;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::linalg::{batches, lu, stack_matrices};
use flambeau_tensor::loops::unary;
use flambeau_tensor::promote::Promotion;
use flambeau_tensor::{DType, Element, Scalar, Tensor, TensorError, dispatch, matmul, reduce, wrap_dim};

fn conjugated(x: &Tensor) -> Computed {
    if !x.dtype().is_complex() {
        return Ok(x.clone());
    }
    dispatch!(complex, x.dtype(), "conj", T => {
        Ok(unary::<T, T>(x, |v: T| T::from_complex(v.to_complex().conj()))?)
    })
}

fn vdot(cx: &KernelCx<'_>) -> Computed {
    Ok(matmul::dot(&conjugated(cx.tensor(0)?)?, cx.tensor(1)?)?)
}

fn vecdot(cx: &KernelCx<'_>) -> Computed {
    let (x, y, dim) = (cx.tensor(0)?, cx.tensor(1)?, cx.int(2)?);
    if !x.dtype().is_floating() && !x.dtype().is_complex() {
        return Err(KernelError::input(format!(
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got {}",
            x.dtype().ir_name()
        )));
    }
    if x.dtype() != y.dtype() {
        return Err(KernelError::input("linalg.vecdot: Expected x and y to have the same dtype"));
    }
    // Two vectors must have equal lengths (no broadcasting).
    if x.rank() == 1 && y.rank() == 1 {
        wrap_dim(dim, 1)?;
        return Ok(matmul::dot(&conjugated(x)?, y)?);
    }
    let product = product_of(&conjugated(x)?, y)?;
    Ok(reduce::sum(&product, Some(&[dim]), false, Some(x.dtype()))?)
}

fn inner(cx: &KernelCx<'_>) -> Computed {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    if a.rank() == 0 || b.rank() == 0 {
        return product_of(a, b);
    }
    let (n, m) = (a.size(-1)?, b.size(-1)?);
    if n != m {
        return Err(KernelError::input(format!(
            "inner() the last dimension must match on both input tensors but got shapes {:?} and {:?}",
            a.sizes(),
            b.sizes()
        )));
    }
    let rows = |x: &Tensor| -> Computed {
        let count: i64 = x.sizes()[..x.rank() - 1].iter().product();
        Ok(x.reshape(&[count, n])?)
    };
    let product = matmul::matmul(&rows(a)?, &rows(b)?.t()?)?;
    let sizes: Vec<i64> =
        a.sizes()[..a.rank() - 1].iter().chain(&b.sizes()[..b.rank() - 1]).copied().collect();
    Ok(product.view(&sizes)?)
}

fn addr(cx: &KernelCx<'_>) -> Computed {
    let (bias, a, b) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    if a.rank() != 1 || b.rank() != 1 {
        return Err(KernelError::input(format!(
            "addr: Expected 1-D argument vec1 and vec2, but got {}-D and {}-D",
            a.rank(),
            b.rank()
        )));
    }
    let (beta, alpha) = (cx.scalar(3)?, cx.scalar(4)?);
    let bias = bias.expand(&[a.sizes()[0], b.sizes()[0]])?;
    let (a, b) = (a.unsqueeze(1)?, b.unsqueeze(0)?);
    let dtype = Promotion::new().tensor(&bias).tensor(&a).tensor(&b).result().unwrap_or(a.dtype());
    // One vector is scaled before the product, which is visible in f16.
    let scaled = product_of(&a.to_dtype(dtype)?, &Tensor::scalar(alpha, dtype)?)?;
    scaled_sum(&bias, &product_of(&scaled, &b)?, beta, Scalar::Int(1))
}

/// Adds the products of a batch one by one, rounding each sum.
fn addbmm(cx: &KernelCx<'_>) -> Computed {
    let (bias, a, b) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    if a.rank() != 3 || b.rank() != 3 {
        return Err(KernelError::input("batch1 and batch2 must be 3D tensors"));
    }
    let (x, y) = (a.sizes(), b.sizes());
    if x[0] != y[0] || x[2] != y[1] {
        return Err(KernelError::input(format!(
            "batch1 and batch2 must have same number of batches and matching sizes, got {x:?} and {y:?}"
        )));
    }
    let (mut sum, mut beta, alpha) = (bias.clone(), cx.scalar(3)?, cx.scalar(4)?);
    let (a, b) = (counted(a, alpha)?, counted(b, alpha)?);
    for i in 0..x[0] {
        sum = matmul::addmm(&sum, &a.select(0, i)?, &b.select(0, i)?, beta, alpha)?;
        beta = Scalar::Int(1);
    }
    if x[0] == 0 {
        let nothing = Tensor::zeros(&[x[1], y[2]], a.dtype())?;
        return scaled_sum(&bias.expand(nothing.sizes())?, &nothing, beta, alpha);
    }
    Ok(sum)
}

fn kron(cx: &KernelCx<'_>) -> Computed {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let rank = a.rank().max(b.rank());
    let size = |x: &Tensor, d: usize| (d + x.rank()).checked_sub(rank).map_or(1, |i| x.sizes()[i]);
    let (mut left, mut right, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for d in 0..rank {
        let (m, n) = (size(a, d), size(b, d));
        left.extend([m, 1]);
        right.extend([1, n]);
        out.push(m * n);
    }
    Ok(product_of(&a.reshape(&left)?, &b.reshape(&right)?)?.reshape(&out)?)
}

fn cross_along(a: &Tensor, b: &Tensor, dim: i64) -> Computed {
    if a.rank() != b.rank() {
        return Err(KernelError::input("linalg.cross: inputs must have the same number of dimensions."));
    }
    if a.size(dim)? != 3 || b.size(dim)? != 3 {
        return Err(KernelError::input(format!(
            "linalg.cross: inputs dimension {dim} must have length 3. Got {} and {}",
            a.size(dim)?,
            b.size(dim)?
        )));
    }
    let sizes = flambeau_tensor::broadcast_shapes(a.sizes(), b.sizes())?;
    cross_same(&a.expand(&sizes)?, &b.expand(&sizes)?, dim)
}

fn cross_same(a: &Tensor, b: &Tensor, dim: i64) -> Computed {
    same_dtypes(&[a, b])?;
    if a.dtype() == DType::Bool {
        return Err(TensorError::DType { op: "cross", dtype: a.dtype() }.into());
    }
    let d = wrap_dim(dim, a.rank())? as i64;
    if a.size(d)? != 3 {
        return Err(KernelError::input(format!(
            "linalg.cross: inputs dimension {dim} must have length 3. Got {} and {}",
            a.size(d)?,
            b.size(d)?
        )));
    }
    let pick = |x: &Tensor, i: i64| x.select(d, i);
    let made = Tensor::zeros(a.sizes(), a.dtype())?;
    for i in 0..3 {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        let up = product_of(&pick(a, j)?, &pick(b, k)?)?;
        let down = product_of(&pick(a, k)?, &pick(b, j)?)?;
        pick(&made, i)?.copy_(&difference_of(&up, &down)?)?;
    }
    Ok(made)
}

fn linalg_cross(cx: &KernelCx<'_>) -> Computed {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    if a.rank() != b.rank() {
        return Err(KernelError::input("linalg.cross: inputs must have the same number of dimensions."));
    }
    cross_along(a, b, cx.int(2)?)
}

fn cross(cx: &KernelCx<'_>) -> Computed {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let dim = match cx.opt_int(2)? {
        Some(dim) => dim,
        None => match a.sizes().iter().position(|&n| n == 3) {
            Some(d) => d as i64,
            None => return Err(KernelError::input("no dimension of size 3 in input")),
        },
    };
    cross_along(a, b, dim)
}

/// Maximal length of a chain whose order is optimized, in cubic time; longer ones are multiplied from left to right.
const MAX_OPTIMIZED_CHAIN: usize = 64;

/// Multiplies matrices (first and last may be vectors) in the order with the fewest scalar multiplications.
/// `splits[i][j]` is the last matrix of the left factor of the range `i..=j`. For equal costs, PyTorch selects the
/// first split from the left for three matrices, from the right for more.
fn chain(tensors: &[Tensor]) -> Computed {
    let n = tensors.len();
    let (Some(first), true) = (tensors.first(), n <= MAX_OPTIMIZED_CHAIN) else {
        let mut all = tensors.iter().cloned().map(Ok);
        let first = all
            .next()
            .unwrap_or_else(|| Err(KernelError::input("multi_dot(): expected at least 2 tensors but got 0")));
        return all.fold(first, |product, x| Ok(matmul::matmul(&product?, &x?)?));
    };
    let rows = if first.rank() == 2 { first.sizes()[0] } else { 1 };
    let columns = |i: usize| match tensors[i].sizes() {
        [_] if i == 0 => tensors[i].sizes()[0],
        [_, columns] => *columns,
        _ => 1,
    };
    let sides: Vec<u128> =
        std::iter::once(rows).chain((0..n).map(columns)).map(|side| side as u128).collect();
    let (mut costs, mut splits) = (vec![vec![0u128; n]; n], vec![vec![0usize; n]; n]);
    for length in 1..n {
        for i in 0..n - length {
            let j = i + length;
            let cost = |k: usize| {
                let product = sides[i].saturating_mul(sides[k + 1]).saturating_mul(sides[j + 1]);
                costs[i][k].saturating_add(costs[k + 1][j]).saturating_add(product)
            };
            let mut best = (cost(i), i);
            for k in i + 1..j {
                let other = cost(k);
                if other < best.0 || n == 3 && other == best.0 {
                    best = (other, k);
                }
            }
            (costs[i][j], splits[i][j]) = best;
        }
    }
    product_of_range(tensors, &splits, 0, n - 1)
}

/// Multiplies the matrices `i..=j`; the recursion depth is at most the chain's length.
fn product_of_range(tensors: &[Tensor], splits: &[Vec<usize>], i: usize, j: usize) -> Computed {
    if i == j {
        return Ok(tensors[i].clone());
    }
    let split = splits[i][j];
    let left = product_of_range(tensors, splits, i, split)?;
    Ok(matmul::matmul(&left, &product_of_range(tensors, splits, split + 1, j)?)?)
}

fn multi_dot(cx: &KernelCx<'_>) -> Computed {
    let tensors = cx.tensors(0)?;
    let n = tensors.len();
    if n < 2 {
        return Err(KernelError::input(format!("multi_dot(): expected at least 2 tensors but got {n}")));
    }
    for (i, x) in tensors.iter().enumerate() {
        let end = i == 0 || i + 1 == n;
        if x.rank() != 2 && !(end && x.rank() == 1) {
            return Err(KernelError::input(format!(
                "multi_dot(): tensor {i} must be {} but got {}D",
                if end { "1D or 2D" } else { "2D" },
                x.rank()
            )));
        }
        if x.dtype() != tensors[0].dtype() {
            return Err(KernelError::input("multi_dot(): all tensors must have be the same dtype"));
        }
    }
    chain(&tensors)
}

fn chain_matmul(cx: &KernelCx<'_>) -> Computed {
    let tensors = cx.tensors(0)?;
    if tensors.iter().any(|x| x.rank() != 2) {
        return Err(KernelError::input("chain_matmul: Expected 2-dimensional tensors"));
    }
    match &tensors[..] {
        [one] => Ok(one.clone_data()?),
        all => chain(all),
    }
}

fn matrix_power(cx: &KernelCx<'_>) -> Computed {
    let (x, n) = (cx.tensor(0)?, cx.int(1)?);
    let rank = x.rank();
    if rank < 2 || x.sizes()[rank - 1] != x.sizes()[rank - 2] {
        return Err(KernelError::input("linalg.matrix_power: A must be batches of square matrices"));
    }
    let side = x.sizes()[rank - 1];
    let identity = || -> Computed {
        let ones = Tensor::zeros(x.sizes(), x.dtype())?;
        ones.diagonal(0, -2, -1)?.fill_(Scalar::Int(1))?;
        Ok(ones)
    };
    if n == 0 {
        return identity();
    }
    let mut base = if n < 0 { inverse(x, side as usize)? } else { x.clone() };
    let (mut left, mut product) = (n.unsigned_abs(), None::<Tensor>);
    while left > 0 {
        if left & 1 == 1 {
            product = Some(match &product {
                Some(p) => matmul::matmul(p, &base)?,
                None => base.clone(),
            });
        }
        left >>= 1;
        if left > 0 {
            base = matmul::matmul(&base, &base)?;
        }
    }
    match product {
        Some(p) if p.ptr_eq(x) => Ok(p.clone_contiguous()?),
        Some(p) => Ok(p),
        None => identity(),
    }
}

fn inverse(x: &Tensor, side: usize) -> Computed {
    dispatch!(wide, wide_dtype(x, Empty::Refused, "linalg.inv")?, "linalg", F => {
        let (lead, all) = batches::<F>(x)?;
        let mut inverses = Vec::with_capacity(all.len());
        for (i, a) in all.into_iter().enumerate() {
            let f = lu(a);
            if f.info > 0 {
                return Err(KernelError::input(format!(
                    "linalg.inv: (Batch element {i}): The diagonal element {} is zero, the inversion could not be \
                     completed because the input matrix is singular.",
                    f.info
                )));
            }
            inverses.push(f.solve(&flambeau_tensor::linalg::Matrix::identity(side, side), false));
        }
        Ok(stack_matrices(&lead, (side, side), &inverses, x.dtype())?)
    })
}

/// Samples: tensors of the given sizes.
fn sized(sizes: &'static [&'static [i64]]) -> Sample {
    Sample::args(move |g| sizes.iter().map(|s| IValue::Tensor(draw(g, s))).collect())
}

fn draw(g: &mut Gen<'_>, sizes: &[i64]) -> Tensor {
    sample::tensor(g, sizes, DType::F32, &ElementDistribution::default())
}

type Run = fn(&KernelCx<'_>) -> Computed;

fn both() -> ResultShapes {
    ResultShapes::broadcast([0, 1])
}

/// Shape: the broadcast sizes without the dimension in argument 2.
fn along_summed() -> ResultShapes {
    ResultShapes::from(|cx| {
        let (x, y) = (cx.dims_or_fresh(0)?, cx.dims_or_fresh(1)?);
        let mut dims = broadcast_dims(&[&x, &y], cx.symbols)?;
        let at = cx.axis(2, dims.len())?;
        dims.remove(at);
        Some(TensorFact::of_dims(dims))
    })
}

/// Shape of a matrix: two sizes, each given as `(operand, dimension)`.
fn matrix_of(rows: (usize, usize), columns: (usize, usize)) -> ResultShapes {
    ResultShapes::from(move |cx| {
        let rows = cx.dims_or_fresh(rows.0)?.get(rows.1).copied()?;
        let columns = cx.dims_or_fresh(columns.0)?.get(columns.1).copied()?;
        Some(TensorFact::of_dims([rows, columns]))
    })
}

/// Shape: all dimensions but the last of both operands, concatenated; a scalar operand multiplies.
fn inner_dims(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let (mut x, mut y) = (cx.dims_or_fresh(0)?, cx.dims_or_fresh(1)?);
    if !x.is_empty() && !y.is_empty() {
        x.pop();
        y.pop();
    }
    x.extend(y);
    Some(TensorFact::of_dims(x))
}

/// Shape: products of sizes, aligned at the last dimension.
fn kron_dims(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let (x, y) = (cx.dims_or_fresh(0)?, cx.dims_or_fresh(1)?);
    let rank = x.len().max(y.len());
    let at = |all: &Dims, i: usize| (i + all.len()).checked_sub(rank).map_or(Dim::Known(1), |i| all[i]);
    Some(TensorFact::of_dims((0..rank).map(|i| cx.symbols.mul(at(&x, i), at(&y, i)))))
}

/// Shape: rows of the first matrix and columns of the last; vectors have none.
fn chain_dims(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let all = cx.elements(0)?;
    let of = |fact: Option<&Fact>| fact?.as_tensor()?.dims.clone();
    let (first, last) = (of(all.first())?, of(all.last())?);
    if all.len() == 1 {
        return Some(TensorFact::of_dims(first.into_iter().map(|d| cx.size_or_fresh(d))));
    }
    let mut dims = Dims::new();
    dims.extend(first.first().copied().filter(|_| first.len() == 2));
    dims.extend(last.last().copied().filter(|_| last.len() == 2));
    Some(TensorFact::of_dims(dims.into_iter().map(|d| cx.size_or_fresh(d))))
}

/// Names, documentation, function, shape rule, sample sizes, dtype of the result.
const ROWS: &[(&str, &str, Run, fn() -> ResultShapes, &[&[i64]], fn() -> Dtype)] = &[
    (
        "vdot",
        "The dot product of two vectors, the first one conjugated.",
        vdot,
        ResultShapes::scalar,
        &[&[3], &[3]],
        || Dtype::promote([0]),
    ),
    (
        "linalg_vecdot",
        "Dot products along a dimension, the first operand conjugated.",
        vecdot,
        along_summed,
        &[&[2, 3], &[2, 3]],
        || Dtype::promote([0]),
    ),
    (
        "inner",
        "Products of vectors along the last dimensions.",
        inner,
        || ResultShapes::from(inner_dims),
        &[&[2, 3], &[4, 3]],
        || Dtype::promote([0, 1]),
    ),
    (
        "addr",
        "`beta * self + alpha * outer(vec1, vec2)`.",
        addr,
        || matrix_of((1, 0), (2, 0)),
        &[&[2, 3], &[2], &[3]],
        || Dtype::promote_alike([0, 1, 2]),
    ),
    (
        "kron",
        "The Kronecker product.",
        kron,
        || ResultShapes::from(kron_dims),
        &[&[2, 3], &[3, 2]],
        || Dtype::promote_alike([0, 1]),
    ),
    ("linalg_cross", "Cross products along a dimension.", linalg_cross, both, &[&[2, 3], &[2, 3]], || {
        Dtype::promote([0, 1])
    }),
    (
        "cross",
        "Cross products along a dimension, or the first of size 3.",
        cross,
        both,
        &[&[3, 2], &[3, 2]],
        || Dtype::promote([0, 1]),
    ),
];

pub(super) fn family() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = computing!(ROWS.2)
        .iter()
        .flat_map(|&(names, doc, f, shape, sizes, dtype)| {
            let facts = |d: OpDef| {
                let sample = sized(sizes).tolerance(1e-4, 1e-5);
                d.with(shape()).with(dtype()).with(sample)
            };
            op(names, "", doc).facts(facts).one(f)
        })
        .collect();
    let doc = "`beta * self + alpha * sum(batch1 @ batch2)`.";
    let sums = |d: OpDef| {
        let sample = sized(&[&[2, 4], &[5, 2, 3], &[5, 3, 4]]).tolerance(1e-4, 1e-5);
        d.with(matrix_of((1, 1), (2, 2))).with(Dtype::promote([1])).with(sample)
    };
    defs.extend(op("addbmm", "", doc).facts(sums).resizing().one(addbmm));
    let doc = "The product of a chain of matrices.";
    let list = |d: OpDef| {
        d.with(ResultShapes::from(chain_dims)).with(Dtype::same_as(0)).with(Sample::args(|g| {
            let all = vec![draw(g, &[2, 3]), draw(g, &[3, 4]), draw(g, &[4, 2])];
            vec![IValue::List(List::from_tensors(all))]
        }))
    };
    defs.extend(op("linalg_multi_dot", "", doc).facts(list).one(multi_dot));
    defs.extend(op("chain_matmul", "", doc).facts(list).one(chain_matmul));
    let doc = "A power of a square matrix; negative powers are those of its inverse.";
    let power = |d: OpDef| {
        // Inverses are column-major, so the strides are unknown.
        d.with(ResultShapes::dims(|cx| cx.dims_or_fresh(0))).with(Dtype::same_as(0)).with(
            Sample::args(|g| vec![IValue::Tensor(draw(g, &[3, 3])), IValue::Int(g.int(-2, 4))])
                .tolerance(1e-3, 1e-3),
        )
    };
    defs.extend(op("matrix_power linalg_matrix_power", "", doc).facts(power).one(matrix_power));
    defs
}
