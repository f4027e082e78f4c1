//! In-place changes of shape: only the tensor's metadata changes, its elements stay.

use super::One;
use crate::support::kernel;
use flambeau_analysis::shape::TensorFact;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Kernel, KernelCx, KernelError, Sample};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::Tensor;

/// Operators that change the tensor's metadata like a functional view operator.
const IN_PLACE: &[(&str, &str, fn() -> ResultShapes, One)] = &[
    ("aten::t_", "Transposes a matrix in place.", ResultShapes::transpose_last, |cx| {
        Ok(cx.tensor(0)?.t()?)
    }),
    ("aten::transpose_", SWAP_DOC, || ResultShapes::transpose(1, 2), exchanged),
    ("aten::swapaxes_", SWAP_DOC, || ResultShapes::transpose(1, 2), exchanged),
    ("aten::swapdims_", SWAP_DOC, || ResultShapes::transpose(1, 2), exchanged),
    (
        "aten::squeeze_.dims",
        "Removes those of the given dimensions whose size is 1, in place.",
        || ResultShapes::squeeze(Some(1.into())),
        |cx| Ok(cx.tensor(0)?.squeeze(&cx.ints(1)?)?),
    ),
    (
        "aten::squeeze_",
        "Removes all dimensions of size 1, in place.",
        || ResultShapes::squeeze(None),
        |cx| Ok(cx.tensor(0)?.squeeze_all()),
    ),
    (
        "aten::squeeze_.dim",
        "Removes a dimension in place, if its size is 1.",
        || ResultShapes::squeeze(Some(1.into())),
        |cx| Ok(cx.tensor(0)?.squeeze(&[cx.int(1)?])?),
    ),
    (
        "aten::unsqueeze_",
        "Inserts a dimension of size 1, in place.",
        || ResultShapes::unsqueeze(1),
        |cx| Ok(cx.tensor(0)?.unsqueeze(cx.int(1)?)?),
    ),
    (
        "aten::as_strided_",
        "Changes sizes and strides to the given ones, in place, over the same storage.",
        || ResultShapes::strided(1),
        |cx| Ok(cx.tensor(0)?.as_strided(&cx.ints(1)?, &cx.ints(2)?, cx.opt_int(3)?)?),
    ),
];

const SWAP_DOC: &str = "Exchanges two dimensions in place.";

fn exchanged(cx: &KernelCx<'_>) -> Result<Tensor, KernelError> {
    Ok(cx.tensor(0)?.transpose(cx.int(1)?, cx.int(2)?)?)
}

fn resized(tensor: &Tensor, sizes: &[i64]) -> Result<Tensor, KernelError> {
    tensor.resize_(sizes)?;
    Ok(tensor.alias())
}

/// `(self, source)`: makes the tensor share the source's elements.
fn set_to(cx: &mut KernelCx<'_>) -> Result<(), KernelError> {
    let source = cx.take_tensor(1)?;
    let target = cx.take_tensor(0)?;
    if target.dtype() != source.dtype() {
        return Err(KernelError::input(format!(
            "Could not set tensor of type {} to a tensor of type {}",
            source.dtype().ir_name(),
            target.dtype().ir_name()
        )));
    }
    target.set_storage(source.storage().clone(), source.layout().clone())?;
    cx.ret(target);
    Ok(())
}

fn changing(run: One) -> Kernel {
    kernel(move |cx| {
        let view = run(cx)?;
        let target = cx.take_tensor(0)?;
        target.set_layout(view.layout().clone())?;
        cx.ret(target);
        Ok(())
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = Vec::new();
    defs.extend(IN_PLACE.iter().map(|&(name, doc, shape, run)| {
        let def = OpDef::named(name).with(Doc(doc)).with(shape()).with(Dtype::same_as(0));
        def.with(changing(run))
    }));
    // Operators without a functional view operator have their own samples.
    let own = |name: &str, doc: &'static str, shape: ResultShapes, sample: Sample, kernel: Kernel| {
        let sample = sample.floats().exact().not_differentiable();
        OpDef::named(name).with(Doc(doc)).with(shape).with(Dtype::same_as(0)).with(sample).with(kernel)
    };
    defs.push(own(
        "aten::resize_",
        "Changes the sizes in place; elements keep their order in the storage.",
        ResultShapes::strided(1),
        // Not larger than before: additional elements would be uninitialized.
        Sample::tensors(1).then([IValue::ints(vec![1, 0])]),
        changing(|cx| resized(cx.tensor(0)?, &cx.ints(1)?)),
    ));
    defs.push(own(
        "aten::resize_as_",
        "Changes the sizes in place to those of another tensor.",
        // A tensor that already has the size keeps its strides.
        ResultShapes::from(|cx| {
            Some(TensorFact { dims: cx.tensor(1)?.dims.clone(), ..TensorFact::default() })
        }),
        Sample::tensors(2),
        changing(|cx| resized(cx.tensor(0)?, cx.tensor(1)?.sizes())),
    ));
    defs.push(own(
        "aten::set_.source_Tensor",
        "Replaces storage, sizes and strides by those of another tensor, in place.",
        ResultShapes::like(1),
        Sample::tensors(2),
        kernel(set_to),
    ));
    defs
}
