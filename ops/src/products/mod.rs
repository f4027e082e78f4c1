//! Matrix products and operators derived from them.

mod einsum;
mod vectors;

use crate::compute::computing;
use crate::pointwise::product_of;
use crate::support::{Computed, fitting, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Gen, KernelCx, KernelError, OfTransposed, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::promote::Promotion;
use flambeau_tensor::{DType, Element, Scalar, Tensor, dispatch, matmul};
use std::borrow::Cow;

fn mm(cx: &KernelCx<'_>) -> Computed {
    Ok(matmul::mm(cx.tensor(0)?, cx.tensor(1)?)?)
}

fn bmm(cx: &KernelCx<'_>) -> Computed {
    Ok(matmul::bmm(cx.tensor(0)?, cx.tensor(1)?)?)
}

fn mv(cx: &KernelCx<'_>) -> Computed {
    Ok(matmul::mv(cx.tensor(0)?, cx.tensor(1)?)?)
}

fn dot(cx: &KernelCx<'_>) -> Computed {
    Ok(matmul::dot(cx.tensor(0)?, cx.tensor(1)?)?)
}

fn any_rank(cx: &KernelCx<'_>) -> Computed {
    Ok(matmul::matmul(cx.tensor(0)?, cx.tensor(1)?)?)
}

/// Returns an operand of a product scaled by `alpha`; zeros if `alpha` is 0, so that NaN does not propagate.
fn counted(x: &Tensor, alpha: Scalar) -> Result<Cow<'_, Tensor>, KernelError> {
    match alpha == Scalar::Int(0) || alpha == Scalar::Float(0.0) {
        true => Ok(Cow::Owned(Tensor::zeros(x.sizes(), x.dtype())?)),
        false => Ok(Cow::Borrowed(x)),
    }
}

fn addmm(cx: &KernelCx<'_>) -> Computed {
    let (beta, alpha) = (cx.scalar(3)?, cx.scalar(4)?);
    let (a, b) = (counted(cx.tensor(1)?, alpha)?, counted(cx.tensor(2)?, alpha)?);
    Ok(matmul::addmm(cx.tensor(0)?, &a, &b, beta, alpha)?)
}

fn baddbmm(cx: &KernelCx<'_>) -> Computed {
    Ok(matmul::baddbmm(cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?, cx.scalar(3)?, cx.scalar(4)?)?)
}

fn addmv(cx: &KernelCx<'_>) -> Computed {
    let (bias, a, v) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    if bias.rank() > 1 || a.rank() != 2 || v.rank() != 1 {
        return Err(KernelError::input(format!(
            "vector + matrix @ vector expected, got {}, {}, {}",
            bias.rank(),
            a.rank(),
            v.rank()
        )));
    }
    if a.sizes()[1] != v.sizes()[0] || bias.numel() != 1 && bias.sizes()[0] != a.sizes()[0] {
        return Err(KernelError::input(format!(
            "size mismatch, got input ({}), mat ({}x{}), vec ({})",
            bias.numel(),
            a.sizes()[0],
            a.sizes()[1],
            v.sizes()[0]
        )));
    }
    let alpha = cx.scalar(4)?;
    let (a, v) = (counted(a, alpha)?, counted(v, alpha)?);
    let product = matmul::mv(&a, &v)?;
    scaled_sum(&bias.to_dtype(product.dtype())?, &product, cx.scalar(3)?, cx.scalar(4)?)
}

/// `beta * a + alpha * b`, promoted; if `beta` is 0, `a` is ignored.
fn scaled_sum(a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Computed {
    use crate::pointwise::Number;
    let ignore = beta == Scalar::Int(0) || beta == Scalar::Float(0.0);
    let dtype = Promotion::new().tensor(a).tensor(b).result().unwrap_or(b.dtype());
    dispatch!(carried_all, dtype, "addmv", T => {
        let (beta, alpha) = (T::from_scalar(beta), T::from_scalar(alpha));
        let zero = T::ZERO;
        Ok(flambeau_tensor::loops::binary_in::<T>(dtype, a, b, move |x: T, y: T| {
            let kept = if ignore { zero } else { beta.mul(x) };
            kept.add(alpha.mul(y))
        })?)
    })
}

fn outer(cx: &KernelCx<'_>) -> Computed {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    if a.rank() != 1 || b.rank() != 1 {
        return Err(KernelError::input(format!(
            "outer: Expected 1-D argument, but got {}-D and {}-D",
            a.rank(),
            b.rank()
        )));
    }
    product_of(&a.unsqueeze(1)?, &b.unsqueeze(0)?)
}

fn linear(cx: &KernelCx<'_>) -> Computed {
    let (x, weight, bias) = (cx.tensor(0)?, cx.tensor(1)?, cx.opt_tensor(2)?);
    if x.rank() == 0 || weight.rank() == 0 {
        return Err(KernelError::input(format!(
            "both arguments to linear need to be at least 1D, but they are {}D and {}D",
            x.rank(),
            weight.rank()
        )));
    }
    if let Some(product) = matmul::small_transposed_product(x, weight, bias) {
        return Ok(product?);
    }
    let transposed = weight.t()?;
    let Some(bias) = bias else { return Ok(matmul::matmul(x, &transposed)?) };
    let one = Scalar::Int(1);
    if x.rank() == 2 {
        return Ok(matmul::addmm(bias, x, &transposed, one, one)?);
    }
    // A contiguous input is viewed as one matrix, with the bias broadcast to the product; otherwise the bias is added
    // to the product as if in place.
    if x.is_contiguous() && (x.rank() == 3 || bias.rank() == 1) {
        let (width, lead) = x.sizes().split_last().expect("invariant: it has dimensions");
        let rows = x.view(&[lead.iter().product(), *width])?;
        let sums = matmul::addmm(bias, &rows, &transposed, one, one)?;
        let mut sizes = lead.to_vec();
        sizes.push(sums.sizes()[1]);
        return Ok(sums.view(&sizes)?);
    }
    let product = matmul::matmul(x, &transposed)?;
    scaled_sum(&fitting(bias, product.dtype())?.expand(product.sizes())?, &product, one, one)
}

/// Samples: tensors of the given sizes.
fn sized(sizes: &'static [&'static [i64]]) -> Sample {
    Sample::args(move |g: &mut Gen<'_>| {
        let elements = flambeau_exec::sample::ElementDistribution::default();
        sizes
            .iter()
            .map(|s| IValue::Tensor(flambeau_exec::sample::tensor(g, s, DType::F32, &elements)))
            .collect()
    })
}

type Run = fn(&KernelCx<'_>) -> Computed;

#[derive(Clone, Copy)]
struct ProductRow {
    name: &'static str,
    doc: &'static str,
    run: Run,
    shape: fn() -> ResultShapes,
    dtype: fn() -> Dtype,
    sizes: &'static [&'static [i64]],
    /// Whether two matrices give their product.
    multiplies_matrices: bool,
}

const ROWS: &[ProductRow] = &[
    ProductRow {
        name: "aten::mm",
        doc: "Product of two matrices.",
        run: mm,
        shape: || ResultShapes::matmul(0, 1),
        dtype: || Dtype::of_product(0, 1),
        sizes: &[&[2, 3], &[3, 4]],
        multiplies_matrices: true,
    },
    ProductRow {
        name: "aten::bmm",
        doc: "Products of two batches of matrices.",
        run: bmm,
        shape: || ResultShapes::matmul(0, 1),
        dtype: || Dtype::of_product(0, 1),
        sizes: &[&[2, 2, 3], &[2, 3, 4]],
        multiplies_matrices: false,
    },
    ProductRow {
        name: "aten::mv",
        doc: "Product of a matrix and a vector.",
        run: mv,
        shape: || ResultShapes::matmul(0, 1),
        dtype: || Dtype::of_product(0, 1),
        sizes: &[&[2, 3], &[3]],
        multiplies_matrices: false,
    },
    ProductRow {
        name: "aten::dot",
        doc: "Product of two vectors.",
        run: dot,
        shape: ResultShapes::scalar,
        dtype: || Dtype::of_product(0, 1),
        sizes: &[&[3], &[3]],
        multiplies_matrices: false,
    },
    ProductRow {
        name: "aten::matmul aten::linalg_matmul",
        doc: "Product of vectors, matrices, or batches of matrices, broadcast together.",
        run: any_rank,
        shape: || ResultShapes::matmul(0, 1),
        dtype: || Dtype::of_product(0, 1),
        sizes: &[&[2, 2, 3], &[3, 4]],
        multiplies_matrices: true,
    },
    ProductRow {
        name: "aten::addmm",
        doc: "`beta * self + alpha * (mat1 @ mat2)`.",
        run: addmm,
        shape: || ResultShapes::matmul(1, 2),
        dtype: || Dtype::of_product(1, 2),
        sizes: &[&[4], &[2, 3], &[3, 4]],
        multiplies_matrices: false,
    },
    ProductRow {
        name: "aten::baddbmm",
        doc: "`beta * self + alpha * (batch1 @ batch2)`.",
        run: baddbmm,
        shape: || ResultShapes::matmul(1, 2),
        dtype: || Dtype::of_product(1, 2),
        sizes: &[&[2, 2, 4], &[2, 2, 3], &[2, 3, 4]],
        multiplies_matrices: false,
    },
    ProductRow {
        name: "aten::addmv",
        doc: "`beta * self + alpha * (mat @ vec)`.",
        run: addmv,
        shape: || ResultShapes::matmul(1, 2),
        dtype: || Dtype::of_product(1, 2),
        sizes: &[&[2], &[2, 3], &[3]],
        multiplies_matrices: false,
    },
    ProductRow {
        name: "aten::outer",
        doc: "The outer product of two vectors.",
        run: outer,
        shape: || ResultShapes::from(|_| None::<flambeau_analysis::shape::Fact>),
        dtype: || Dtype::promote([0, 1]),
        sizes: &[&[2], &[3]],
        multiplies_matrices: false,
    },
    ProductRow {
        name: "aten::ger",
        doc: "The outer product of two vectors.",
        run: outer,
        shape: || ResultShapes::from(|_| None::<flambeau_analysis::shape::Fact>),
        dtype: || Dtype::promote([0, 1]),
        sizes: &[&[2], &[3]],
        multiplies_matrices: false,
    },
    ProductRow {
        name: "aten::linear",
        doc: "`input @ weight.T + bias`.",
        run: linear,
        shape: || ResultShapes::linear(0, 1),
        dtype: || Dtype::of_product(0, 1),
        sizes: &[&[2, 3], &[4, 3], &[4]],
        multiplies_matrices: false,
    },
];

/// The product of a matrix and the transposed second one, without a view.
const OF_TRANSPOSED: OfTransposed = OfTransposed {
    transposed_by: "aten::t",
    product: |a, b| matmul::small_transposed_product(a, b, None)?.ok(),
};

pub(crate) fn family() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = computing!(ROWS.run)
        .iter()
        .flat_map(|r| {
            let facts = |d: OpDef| {
                let d = d.with((r.shape)()).with((r.dtype)()).with(sized(r.sizes).tolerance(1e-4, 1e-5));
                if r.multiplies_matrices { d.with(OF_TRANSPOSED) } else { d }
            };
            op(r.name, "", r.doc).facts(facts).one(r.run)
        })
        .collect();
    defs.extend(einsum::family());
    defs.extend(vectors::family());
    defs
}
