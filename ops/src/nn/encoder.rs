//! PyTorch's fused inference operators: multi-head attention with projections, and a whole transformer encoder layer.
//!
//! Both are compositions of their parts. They occur in modules traced in evaluation mode.

use super::norm::layer;
use super::recurrent::{add, linear};
use super::softmax::{masked_shape, masked_softmax, softmax};
use crate::pointwise::gelu_of;
use crate::support::{Computed, Several, kernel, op};
use flambeau_analysis::shape::Dims;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::ElementDistribution;
use flambeau_exec::{Gen, KernelCx, KernelError, Sample, sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::loops::unary;
use flambeau_tensor::math::{Float, Real};
use flambeau_tensor::{DType, Element, Tensor, dispatch, matmul};

/// Multi-head attention with projections.
struct Heads<'a> {
    width: i64,
    heads: i64,
    qkv_weight: &'a Tensor,
    qkv_bias: &'a Tensor,
    out_weight: &'a Tensor,
    out_bias: &'a Tensor,
    mask: Option<&'a Tensor>,
    mask_type: Option<i64>,
}

impl Heads<'_> {
    /// Returns the projection for query, key or value, as `[batch, heads, time, width per head]`.
    fn projected(&self, x: &Tensor, part: i64) -> Computed {
        let weight = self.qkv_weight.narrow(0, part * self.width, self.width)?;
        let bias = self.qkv_bias.narrow(0, part * self.width, self.width)?;
        let y = linear(x, &weight, Some(&bias))?;
        let [batch, time, _] = *y.sizes() else { return Err(wrong("expected 3-D query, key and value")) };
        Ok(y.reshape(&[batch, time, self.heads, self.width / self.heads])?.transpose(1, 2)?)
    }

    /// Returns the result and the weights per head.
    fn run(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<(Tensor, Tensor), KernelError> {
        if [q, k, v].iter().any(|t| t.rank() != 3 || t.sizes()[2] != self.width) {
            return Err(wrong("expected 3-D query, key and value as wide as the projections"));
        }
        if self.heads <= 0 || self.width % self.heads != 0 {
            return Err(wrong("`embed_dim` must divide evenly by `num_heads`"));
        }
        if self.qkv_weight.sizes() != [3 * self.width, self.width]
            || self.qkv_bias.sizes() != [3 * self.width]
        {
            return Err(wrong("expected `qkv_weight` and `qkv_bias` of three times `embed_dim`"));
        }
        let scale = 1.0 / ((self.width / self.heads) as f64).sqrt();
        let q = scaled(&self.projected(q, 0)?, scale)?;
        let scores = matmul::matmul(&q, &self.projected(k, 1)?.transpose(-2, -1)?)?;
        let weights = match self.mask {
            Some(mask) => masked_softmax(&scores, &mask.to_dtype(DType::Bool)?, -1, self.mask_type)?,
            None => softmax(&scores, -1, false)?,
        };
        let mixed = matmul::matmul(&weights, &self.projected(v, 2)?)?.transpose(1, 2)?;
        let mixed = mixed.reshape(&[mixed.size(0)?, mixed.size(1)?, self.width])?;
        Ok((linear(&mixed, self.out_weight, Some(self.out_bias))?, weights))
    }
}

fn wrong(text: &str) -> KernelError {
    KernelError::input(text)
}

fn scaled(x: &Tensor, by: f64) -> Computed {
    dispatch!(floats, x.dtype(), "mul", T => Ok(unary::<T, T>(x, move |v: T| T::from_f64(v.to_f64() * by))?))
}

/// `(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, need_weights,
/// average_attn_weights, mask_type)`: returns result and weights.
fn attention(cx: &KernelCx<'_>) -> Several {
    let heads = Heads {
        width: cx.int(3)?,
        heads: cx.int(4)?,
        qkv_weight: cx.tensor(5)?,
        qkv_bias: cx.tensor(6)?,
        out_weight: cx.tensor(7)?,
        out_bias: cx.tensor(8)?,
        mask: cx.opt_tensor(9)?,
        mask_type: cx.opt_int(12)?,
    };
    let (out, weights) = heads.run(cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?)?;
    let weights = if cx.boolean(11)? {
        let sums = flambeau_tensor::reduce::sum(&weights, Some(&[1]), false, None)?;
        scaled(&sums, 1.0 / heads.heads as f64)?
    } else {
        weights
    };
    Ok(vec![out, weights])
}

/// Shapes of the result and the weights of multi-head attention.
fn attention_shapes() -> ResultShapes {
    let result = ResultShapes::dims(|cx| {
        let mut dims = [Dim::Unknown; 3];
        if cx.is_none(9) == Some(true) {
            let batches = [cx.size(0, 0), cx.size(1, 0), cx.size(2, 0)];
            dims[0] = cx.broadcast(&[&batches[..1], &batches[1..2], &batches[2..]])?[0];
            dims[1] = cx.size(0, 1);
        }
        dims[2] = cx.size(7, 0);
        let bias = cx.dims_or_fresh(8)?;
        cx.broadcast(&[&dims, &bias])
    });
    let per_head = ResultShapes::dims(|cx| {
        let batches = [cx.size(0, 0), cx.size(1, 0)];
        let batch = cx.broadcast(&[&batches[..1], &batches[1..]])?[0];
        let mut dims = Dims::from_slice(&[batch, cx.number(4), cx.size(0, 1), cx.size(1, 1)]);
        if !cx.is_none(9)? {
            dims = masked_shape(cx, dims, 9, 12)?;
        }
        // Averaging removes the dimension of heads.
        if cx.bool(11)? {
            dims.remove(1);
        }
        Some(dims)
    });
    // Weights that are not requested are undefined.
    let weights = ResultShapes::from(move |cx| if cx.bool(10)? { per_head.result(0, cx) } else { None });
    ResultShapes::results([result, weights])
}

/// Like [`attention`]; the second result is undefined if the weights are not requested.
fn attention_with_optional_weights(cx: &mut KernelCx<'_>) -> Result<(), KernelError> {
    let wanted = cx.boolean(10)?;
    for (i, result) in attention(cx)?.into_iter().enumerate() {
        cx.ret(if wanted || i == 0 { IValue::Tensor(result) } else { IValue::None });
    }
    Ok(())
}

/// `(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1,
/// norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask, mask_type)`.
fn encoder_layer(cx: &KernelCx<'_>) -> Computed {
    let width = cx.int(1)?;
    let heads = Heads {
        width,
        heads: cx.int(2)?,
        qkv_weight: cx.tensor(3)?,
        qkv_bias: cx.tensor(4)?,
        out_weight: cx.tensor(5)?,
        out_bias: cx.tensor(6)?,
        mask: cx.opt_tensor(18)?,
        mask_type: cx.opt_int(19)?,
    };
    let (gelu, norm_first, eps) = (cx.boolean(7)?, cx.boolean(8)?, cx.float(9)?);
    let norm = |x: &Tensor, at: usize| -> Computed {
        Ok(layer(x, &[width], Some(cx.tensor(at)?), Some(cx.tensor(at + 1)?), eps, false)?.0)
    };
    let src = cx.tensor(0)?;
    let x = if norm_first { norm(src, 10)? } else { src.clone() };
    let attended = add(&heads.run(&x, &x, &x)?.0, src)?;
    let x = if norm_first { attended } else { norm(&attended, 10)? };
    let inner = if norm_first { norm(&x, 12)? } else { x.clone() };
    let inner = linear(&inner, cx.tensor(14)?, Some(cx.tensor(15)?))?;
    let inner = if gelu { gelu_of(&inner)? } else { relu(&inner)? };
    let x = add(&linear(&inner, cx.tensor(16)?, Some(cx.tensor(17)?))?, &x)?;
    if norm_first { Ok(x) } else { norm(&x, 12) }
}

/// Whether a mask `[batch, time]` keeps a prefix of each row. An encoder checks this before it uses nested tensors.
fn is_left_aligned(x: &Tensor, mask: &Tensor) -> Result<bool, KernelError> {
    if mask.dtype() != DType::Bool {
        let message =
            format!("Expected mask to be of ScalarType Bool, but got {} instead.", mask.dtype().ir_name());
        return Err(wrong(&message));
    }
    let [batch, time] = *mask.sizes() else { return Err(wrong("Padding mask should be 2D")) };
    if x.rank() != 3 {
        return Err(wrong("Input should be a 3D tensor, N * L * D"));
    }
    if x.sizes()[..2] != [batch, time] {
        return Err(wrong("Mask size should match input size"));
    }
    let kept = mask.to_vec::<bool>()?;
    Ok(kept.chunks(time.max(1) as usize).all(|row| row.is_sorted_by(|a, b| a >= b)))
}

fn relu(x: &Tensor) -> Computed {
    dispatch!(floats, x.dtype(), "relu", T => Ok(unary::<T, T>(x, |v: T| T::from_acc(v.acc().max_nan(Element::ZERO)))?))
}

fn tensors(g: &mut Gen<'_>, sizes: &[&[i64]]) -> Vec<IValue> {
    let elements = ElementDistribution { lo: -1.0, hi: 1.0, ..ElementDistribution::default() };
    sizes.iter().map(|s| IValue::Tensor(sample::tensor(g, s, DType::F32, &elements))).collect()
}

pub(super) fn family() -> Vec<OpDef> {
    const QKV: &[&[i64]] = &[&[12, 4], &[12], &[4, 4], &[4]];
    let close = |s: Sample| s.tolerance(1e-4, 1e-4).not_differentiable();
    let mut defs =
        op("_native_multi_head_attention", "", "Multi-head attention with projections, and the weights.")
            .facts(|d| {
                let d = d.with(kernel(attention_with_optional_weights));
                let of_weights = Dtype::from(|cx| if cx.bool(10)? { cx.dtype(0) } else { None });
                let dtypes = Dtype::results([Dtype::same_as(0), of_weights]);
                d.with(attention_shapes()).with(dtypes).with(close(Sample::args(|g| {
                    let mut args = tensors(g, &[&[2, 3, 4], &[2, 3, 4], &[2, 3, 4]]);
                    args.extend([4, 2].map(IValue::Int));
                    args.extend(tensors(g, QKV));
                    args
                })))
            })
            .several(attention);
    defs.extend(
        op("_transformer_encoder_layer_fwd", "", "A transformer encoder layer.")
            .facts(|d| {
                d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(close(Sample::args(|g| {
                    let mut args = tensors(g, &[&[2, 3, 4]]);
                    args.extend([4, 2].map(IValue::Int));
                    args.extend(tensors(g, QKV));
                    args.extend([IValue::Bool(true), IValue::Bool(false), IValue::Float(1e-5)]);
                    args.extend(tensors(g, &[&[4], &[4], &[4], &[4], &[5, 4], &[5], &[4, 5], &[4]]));
                    args
                })))
            })
            .one(encoder_layer),
    );
    defs.push(
        OpDef::named("aten::_nested_tensor_from_mask_left_aligned")
            .with(Doc("Whether the true elements of each row of a mask are a prefix."))
            .with(kernel(|cx| {
                let aligned = is_left_aligned(cx.tensor(0)?, cx.tensor(1)?)?;
                cx.ret(aligned);
                Ok(())
            }))
            .with(Sample::args(|g| {
                let mask = Tensor::from_slice(&[true, true, false, true, false, false], &[2, 3]);
                let mut args = tensors(g, &[&[2, 3, 4]]);
                args.extend(mask.map(IValue::Tensor));
                args
            })),
    );
    defs
}
