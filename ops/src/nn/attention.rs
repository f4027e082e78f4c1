//! Attention: weighted sums of values, with the softmax of query-key products as weights.
//!
//! PyTorch has two implementations, whose results have different strides: a fused one ("flash attention"), for arguments
//! that satisfy [`is_fused`], allocates the result like the query; the other ends in a matrix product, which is row-major.

use super::softmax::{over_dims, softmax};
use super::{no_args, sized};
use crate::output_layout::OutputLayout;
use crate::random::{drawn, generator};
use crate::support::{Computed, Several, cpp_name, op};
use flambeau_analysis::shape::{Dims, ShapeCx};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{Effects, IValue, OpDef};
use flambeau_tensor::loops::{binary, binary_in, unary_in};
use flambeau_tensor::math::Float;
use flambeau_tensor::random::Distribution;
use flambeau_tensor::{DType, Element, Tensor, dispatch, matmul};

/// Parameters of attention besides query, key and value.
struct Attention<'a> {
    mask: Option<&'a Tensor>,
    dropout: f64,
    causal: bool,
    scale: Option<f64>,
    shared_heads: bool,
    dropout_mask: Option<&'a Tensor>,
}

fn times(x: &Tensor, by: f64) -> Computed {
    dispatch!(carried_floats_complex, x.dtype(), "mul", T => Ok(unary_in::<T>(x.dtype(), x, move |v: T| T::from_complex(v.to_complex() * by))?))
}

/// Applies dropout to the weights.
fn dropped(cx: &KernelCx<'_>, weights: Tensor, args: &Attention<'_>) -> Computed {
    let noise = match args.dropout_mask {
        Some(mask) => mask.clone(),
        None if args.dropout > 0.0 => {
            let noise = weights.empty_like(weights.dtype())?;
            drawn(noise, Distribution::Bernoulli { p: 1.0 - args.dropout }, &generator(cx, None)?)?
        }
        None => return Ok(weights),
    };
    let scale = 1.0 / (1.0 - args.dropout);
    dispatch!(floats, weights.dtype(), "dropout", T => Ok(binary::<T, f64, T>(&weights, &noise, move |w: T, n: f64| {
        T::from_f64(w.to_f64() * n * scale)
    })?))
}

/// Repeats heads of keys or values so that every query head has its own.
fn repeated(x: &Tensor, heads: i64) -> Computed {
    let rank = x.rank();
    let own = x.sizes()[rank - 3];
    if own == 0 || heads % own != 0 {
        return Err(KernelError::input(
            "Number of heads in key and value must divide the number of heads in query",
        ));
    }
    let mut sizes = x.sizes().to_vec();
    sizes[rank - 3] = heads;
    let mut wide = x.sizes().to_vec();
    wide.insert(rank - 2, heads / own);
    Ok(x.unsqueeze(-3)?.expand(&wide)?.reshape(&sizes)?)
}

/// Returns the masked scores before the softmax.
fn scores(q: &Tensor, k: &Tensor, args: &Attention<'_>) -> Computed {
    let width = q.sizes()[q.rank() - 1];
    let scale = args.scale.unwrap_or_else(|| 1.0 / (width as f64).sqrt());
    // The square root of the scale on either side keeps f16 in range.
    let root = scale.abs().sqrt();
    let (q, k) = (times(q, if scale < 0.0 { -root } else { root })?, times(k, root)?);
    let products = matmul::matmul(&q, &k.transpose(-2, -1)?)?;
    let (l, s) = (products.sizes()[products.rank() - 2], products.sizes()[products.rank() - 1]);
    let causal = if args.causal {
        let ones: Vec<bool> = (0..l).flat_map(|i| (0..s).map(move |j| j <= i)).collect();
        Some(Tensor::from_vec(ones, &[l, s])?)
    } else {
        None
    };
    match causal.as_ref().or(args.mask) {
        None => Ok(products),
        Some(mask) if mask.dtype() == DType::Bool => {
            dispatch!(floats, products.dtype(), "attention", T => Ok(binary::<T, bool, T>(&products, mask, |p: T, m: bool| {
                if m { p } else { T::from_f64(f64::NEG_INFINITY) }
            })?))
        }
        Some(mask) => {
            dispatch!(carried_floats, products.dtype(), "attention", T => Ok(binary_in::<T>(products.dtype(), &products, mask, |p: T, m: T| {
            T::from_acc(p.acc() + m.acc())
        })?))
        }
    }
}

/// Returns the softmax; rows that are masked completely are zeros, not NaN.
fn weights_of(scores: &Tensor) -> Computed {
    let weights = softmax(scores, -1, false)?;
    let top = flambeau_tensor::reduce::amax(scores, Some(&[-1]), true);
    let Ok(top) = top else { return Ok(weights) };
    dispatch!(carried_floats, weights.dtype(), "attention", T => Ok(binary_in::<T>(weights.dtype(), &weights, &top, |w: T, top: T| {
        if top.to_f64() == f64::NEG_INFINITY { T::ZERO } else { w }
    })?))
}

fn check(q: &Tensor, k: &Tensor, v: &Tensor, args: &Attention<'_>) -> Result<(), KernelError> {
    let refuse = |text: String| Err(KernelError::input(text));
    if q.dtype() != k.dtype() || q.dtype() != v.dtype() {
        return refuse(format!(
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: {} \
             instead.",
            cpp_name(q.dtype()),
            cpp_name(k.dtype()),
            cpp_name(v.dtype())
        ));
    }
    if [q, k, v].iter().any(|t| t.rank() < 2) {
        return refuse(format!(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {} key.dim: {} and \
             value.dim: {} instead.",
            q.rank(),
            k.rank(),
            v.rank()
        ));
    }
    if let Some(mask) = args.mask
        && mask.dtype() != DType::Bool
        && mask.dtype() != q.dtype()
        && mask.dtype() != DType::F32
    {
        return refuse(format!(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  \
             query.dtype: {} instead.",
            cpp_name(mask.dtype()),
            cpp_name(q.dtype())
        ));
    }
    if args.causal && args.mask.is_some() {
        return refuse(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
                .to_owned(),
        );
    }
    if !(0.0..=1.0).contains(&args.dropout) {
        return refuse(format!("dropout probability has to be between 0 and 1, but got {}", args.dropout));
    }
    Ok(())
}

/// Returns the result and the weights.
fn scaled_dot_product(
    cx: &KernelCx<'_>,
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    args: &Attention<'_>,
) -> Result<(Tensor, Tensor), KernelError> {
    check(q, k, v, args)?;
    let (k, v) = if args.shared_heads && q.rank() >= 3 && k.rank() >= 3 && v.rank() >= 3 {
        let heads = q.sizes()[q.rank() - 3];
        (repeated(k, heads)?, repeated(v, heads)?)
    } else {
        (k.clone(), v.clone())
    };
    // f16 and bf16 are computed in f32 throughout.
    let half = matches!(q.dtype(), DType::F16 | DType::BF16);
    let wide = |t: &Tensor| if half { t.to_dtype(DType::F32) } else { Ok(t.clone()) };
    let scores = scores(&wide(q)?, &wide(&k)?, args)?;
    let weights = weights_of(&scores)?;
    let used = dropped(cx, weights.clone(), args)?;
    let out = matmul::matmul(&used, &wide(&v)?)?;
    Ok((out.to_dtype(q.dtype())?, weights.to_dtype(q.dtype())?))
}

/// Whether PyTorch's fused implementation for the CPU accepts the arguments: four dimensions with the same batches, heads
/// and width, contiguous elements, no dropout, and a mask for the whole batch or for each head.
fn is_fused(q: &Tensor, k: &Tensor, v: &Tensor, args: &Attention<'_>) -> bool {
    let (&[batch, heads, queries, width], &[.., keys, _]) = (q.sizes(), k.sizes()) else { return false };
    let same = |t: &Tensor| {
        matches!(*t.sizes(), [b, h, _, w] if (b, h, w) == (batch, heads, width)) && t.strides()[3] == 1
    };
    let one_or = |size: i64, all: i64| size == 1 || size == all;
    let fits = |mask: &Tensor| {
        let size = match *mask.sizes() {
            [rows, columns] => one_or(rows, queries) && one_or(columns, keys),
            [b, h, rows, columns] => {
                one_or(b, batch) && one_or(h, heads) && one_or(rows, queries) && one_or(columns, keys)
            }
            _ => false,
        };
        size && mask.strides().last() == Some(&1) && !mask.requires_grad()
    };
    let real = matches!(q.dtype(), DType::F64 | DType::F32 | DType::F16 | DType::BF16);
    let dense = real && queries > 0 && keys > 0 && args.dropout == 0.0;
    dense && [q, k, v].into_iter().all(same) && args.mask.is_none_or(fits)
}

/// Returns the result with the strides of a tensor that is allocated like the query.
fn like_query(q: &Tensor, out: Tensor) -> Computed {
    if q.strides() == out.strides() {
        return Ok(out);
    }
    let copy = q.empty_like(out.dtype())?;
    copy.copy_(&out)?;
    Ok(copy)
}

/// `(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)`.
fn attention(cx: &KernelCx<'_>) -> Computed {
    let args = Attention {
        mask: cx.opt_tensor(3)?,
        dropout: cx.float(4)?,
        causal: cx.boolean(5)?,
        scale: cx.opt_float(6)?,
        shared_heads: cx.boolean(7)?,
        dropout_mask: None,
    };
    let (q, k, v) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let out = scaled_dot_product(cx, q, k, v, &args)?.0;
    if is_fused(q, k, v, &args) { like_query(q, out) } else { Ok(out) }
}

/// `(query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, enable_gqa)`: returns result and weights.
fn with_weights(cx: &KernelCx<'_>) -> Several {
    let args = Attention {
        mask: cx.opt_tensor(3)?,
        dropout: cx.float(4)?,
        causal: cx.boolean(5)?,
        dropout_mask: cx.opt_tensor(6)?,
        scale: cx.opt_float(7)?,
        shared_heads: cx.boolean(8)?,
    };
    let (out, weights) = scaled_dot_product(cx, cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?, &args)?;
    Ok(vec![out, weights])
}

/// `(query, key, value, dropout_p, is_causal, attn_mask, scale)`: returns the result and the log-sum-exp of the scores.
fn flash(cx: &KernelCx<'_>) -> Several {
    let args = Attention {
        dropout: cx.float(3)?,
        causal: cx.boolean(4)?,
        mask: cx.opt_tensor(5)?,
        scale: cx.opt_float(6)?,
        shared_heads: false,
        dropout_mask: None,
    };
    let (q, k, v) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    if q.rank() != 4 || k.rank() != 4 || v.rank() != 4 {
        return Err(KernelError::input(
            "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {B, H, T, K}",
        ));
    }
    let out = OutputLayout::AsOperand.apply(q, scaled_dot_product(cx, q, k, v, &args)?.0)?;
    let half = matches!(q.dtype(), DType::F16 | DType::BF16);
    let wide = |t: &Tensor| if half { t.to_dtype(DType::F32) } else { Ok(t.clone()) };
    let sums = over_dims(&scores(&wide(q)?, &wide(k)?, &args)?, &[-1], false)?;
    // The heads of a query are adjacent in memory.
    let sums = sums.transpose(1, 2)?.clone_contiguous()?.transpose(1, 2)?;
    Ok(vec![like_query(q, out)?, sums])
}

/// Splits `[batch, time, 3 * width]` into heads of query, key and value, and scales the query.
fn transform_qkv(cx: &KernelCx<'_>) -> Several {
    let (qkv, bias, heads) = (cx.tensor(0)?, cx.tensor(1)?, cx.int(2)?);
    let [b, t, three] = *qkv.sizes() else {
        return Err(KernelError::input(
            "_transform_bias_rescale_qkv: qkv must be a 3D tensor of batch, time and features",
        ));
    };
    let width = three / 3;
    if heads <= 0 || three % 3 != 0 || width % heads != 0 || bias.sizes() != [three] {
        return Err(KernelError::input(format!(
            "_transform_bias_rescale_qkv: num_heads must be positive and divide embed_dim, and qkv and bias must have \
             3 * embed_dim features, found num_heads {heads}, qkv {:?} and bias {:?}",
            qkv.sizes(),
            bias.sizes()
        )));
    }
    let with_bias = dispatch!(carried_floats, qkv.dtype(), "transform_bias_rescale_qkv", T => {
        Ok::<_, KernelError>(binary_in::<T>(qkv.dtype(), qkv, bias, |x: T, b: T| T::from_acc(x.acc() + b.acc()))?)
    })?;
    let split = with_bias.reshape(&[b, t, 3, heads, width / heads])?.permute(&[2, 0, 3, 1, 4])?;
    let scale = 1.0 / ((width / heads) as f64).sqrt();
    let part = |i: i64| -> Computed { Ok(split.select(0, i)?.clone_contiguous()?) };
    Ok(vec![times(&part(0)?, scale)?, part(1)?, part(2)?])
}

/// Positions of the arguments that determine result shapes, besides query, key and value.
#[derive(Clone, Copy)]
struct ArgPositions {
    mask: usize,
    dropout_mask: Option<usize>,
    shared_heads: Option<usize>,
}

/// Batch dimensions of query, key or value; shared heads are counted like those of the query.
fn batch(cx: &ShapeCx<'_>, arg: usize, positions: ArgPositions) -> Option<Dims> {
    let mut lead = cx.lead(arg, 2)?;
    if positions.shared_heads.map_or(Some(false), |flag| cx.bool(flag))? {
        let ranks = [cx.rank(0)?, cx.rank(1)?, cx.rank(2)?];
        if ranks.iter().all(|&rank| rank > 2) {
            *lead.last_mut()? = cx.size(0, -3);
        }
    }
    Some(lead)
}

/// Shape of the weights: a row per query with an element per key, broadcast with the masks.
fn weights(cx: &mut ShapeCx<'_>, positions: ArgPositions, masks: &[usize]) -> Option<Dims> {
    let (queries, keys) = (batch(cx, 0, positions)?, batch(cx, 1, positions)?);
    let mut dims = cx.broadcast(&[&queries, &keys])?;
    dims.extend([cx.size(0, -2), cx.size(1, -2)]);
    for &mask in masks {
        if !cx.is_none(mask)? {
            let mask = cx.dims_or_fresh(mask)?;
            dims = cx.broadcast(&[&dims, &mask])?;
        }
    }
    Some(dims)
}

/// Shapes of the result and the weights.
fn shapes(positions: ArgPositions) -> [ResultShapes; 2] {
    let result = ResultShapes::dims(move |cx| {
        let masks: Vec<usize> =
            [Some(positions.mask), positions.dropout_mask].into_iter().flatten().collect();
        let (weights, values) = (weights(cx, positions, &masks)?, batch(cx, 2, positions)?);
        let (lead, rows) = weights.split_at(weights.len().checked_sub(2)?);
        let mut dims = cx.broadcast(&[lead, &values])?;
        dims.extend([rows[0], cx.size(2, -1)]);
        Some(dims)
    });
    [result, ResultShapes::dims(move |cx| weights(cx, positions, &[positions.mask]))]
}

pub(super) fn family() -> Vec<OpDef> {
    const QKV: &[&[i64]] = &[&[2, 3, 4], &[2, 5, 4], &[2, 5, 4]];
    const DEEP: &[&[i64]] = &[&[1, 2, 3, 4], &[1, 2, 5, 4], &[1, 2, 5, 4]];
    let mut defs = op("scaled_dot_product_attention", "", "Scaled dot-product attention.")
        .facts(|d| {
            let sample = sized(QKV, no_args()).tolerance(1e-4, 1e-5).not_differentiable();
            let positions = ArgPositions { mask: 3, dropout_mask: None, shared_heads: Some(7) };
            let [result, _] = shapes(positions);
            d.with(result).with(Dtype::same_as(0)).with(Effects::RANDOM).with(sample)
        })
        .one(attention);
    defs.extend(
        op("_scaled_dot_product_attention_math", "", "Scaled dot-product attention, and the weights.")
            .facts(|d| {
                let sample = sized(QKV, no_args()).tolerance(1e-4, 1e-5).not_differentiable();
                let positions = ArgPositions { mask: 3, dropout_mask: Some(6), shared_heads: Some(8) };
                d.with(ResultShapes::results(shapes(positions)))
                    .with(Dtype::same_as(0))
                    .with(Effects::RANDOM)
                    .with(sample)
            })
            .several(with_weights),
    );
    defs.extend(
        op(
            "_scaled_dot_product_flash_attention_for_cpu",
            "",
            "Scaled dot-product attention, and the log-sum-exp of the scores.",
        )
        .facts(|d| {
            let sample = sized(DEEP, no_args()).tolerance(1e-4, 1e-5).not_differentiable();
            let positions = ArgPositions { mask: 5, dropout_mask: None, shared_heads: None };
            let [result, _] = shapes(positions);
            let sums = ResultShapes::dims(move |cx| {
                let mut dims = weights(cx, positions, &[positions.mask])?;
                dims.pop();
                Some(dims)
            });
            let wide = |d| if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d };
            let dtypes = Dtype::results([Dtype::same_as(0), Dtype::same_as(0).then(wide)]);
            d.with(ResultShapes::results([result, sums])).with(dtypes).with(Effects::RANDOM).with(sample)
        })
        .several(flash),
    );
    defs.extend(
        op("_transform_bias_rescale_qkv", "", "Heads of query, key and value from one tensor.")
            .facts(|d| {
                let heads: fn() -> Vec<IValue> = || vec![IValue::Int(2)];
                let part = || {
                    ResultShapes::dims(|cx| {
                        let (three, heads) = (cx.size(0, 2), cx.number(2));
                        let width = cx.symbols.floor_div(three, Dim::Known(3));
                        let each = cx.symbols.floor_div(width, heads);
                        Some([cx.size(0, 0), heads, cx.size(0, 1), each])
                    })
                };
                d.with(ResultShapes::results([part(), part(), part()]))
                    .with(Dtype::same_as(0))
                    .with(sized(&[&[2, 3, 12], &[12]], Box::new(heads)))
            })
            .several(transform_qkv),
    );
    defs
}
