//! Neural network operators, by family.
//!
//! Memory-bound kernels run on contiguous slices; f16 and bf16 are computed in f32 and rounded once per operator, as in
//! PyTorch on CPU.

mod activation;
mod attention;
mod audio;
mod conv;
mod conv_backward;
mod deform;
mod distance;
mod dropout;
mod embedding;
mod encoder;
mod fold;
mod grid;
mod linear;
mod loss;
mod loss_class;
mod loss_ctc;
mod norm;
mod packed;
mod pad;
mod pool;
mod pool_checks;
mod recurrent;
mod regions;
mod resize;
mod shuffle;
mod softmax;
mod vision;

use flambeau_analysis::shape::{Fact, ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::ElementDistribution;
use flambeau_exec::{KernelError, Sample, sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Element, Tensor};

/// Sample arguments after the tensors.
pub(super) type SampleArgs = Box<dyn Fn() -> Vec<IValue> + Send + Sync>;

/// Samples of tensors with the given sizes, followed by other arguments.
pub(super) fn sized(sizes: &'static [&'static [i64]], then: SampleArgs) -> Sample {
    ranged(sizes, -3.0, 3.0, then)
}

/// Like [`sized`], with elements between two numbers.
pub(super) fn ranged(sizes: &'static [&'static [i64]], lo: f64, hi: f64, then: SampleArgs) -> Sample {
    Sample::args(move |g| {
        let elements = ElementDistribution { lo, hi, ..ElementDistribution::default() };
        let mut args: Vec<IValue> =
            sizes.iter().map(|s| IValue::Tensor(sample::tensor(g, s, DType::F32, &elements))).collect();
        args.extend(then());
        args
    })
}

/// No further arguments.
pub(super) fn no_args() -> SampleArgs {
    Box::new(Vec::new)
}

/// Lists of integers as arguments.
pub(super) fn int_lists(lists: &'static [&'static [i64]]) -> SampleArgs {
    Box::new(move || lists.iter().map(|l| IValue::ints(l.to_vec())).collect())
}

/// Returns the elements of an optional tensor.
pub(super) fn opt_values<T: Element>(t: Option<&Tensor>) -> Result<Option<Vec<T>>, KernelError> {
    Ok(t.map(Tensor::to_vec::<T>).transpose()?)
}

/// The shape of result `result` of an operator that returns the results that the list of flags in argument `mask` selects: the sizes of
/// argument `arg`. A result that is not selected is `None`.
pub(super) fn selected_like(arg: usize, mask: usize, result: usize) -> ResultShapes {
    ResultShapes::from(move |cx| {
        let dims = cx.dims(arg).filter(|_| is_selected(cx, mask, result))?.clone();
        Some(TensorFact::of_dims(dims))
    })
}

/// The dtype of such a result: that of argument `arg`.
pub(super) fn selected_dtype(arg: usize, mask: usize, result: usize) -> Dtype {
    Dtype::from(move |cx| cx.tensor(arg).filter(|_| is_selected(cx, mask, result))?.dtype)
}

/// Whether a list of flags certainly selects a result.
fn is_selected(cx: &ShapeCx<'_>, mask: usize, result: usize) -> bool {
    cx.elements(mask).and_then(|flags| flags.get(result)) == Some(&Fact::Bool(true))
}

pub(crate) fn family() -> Vec<OpDef> {
    let families = [
        activation::family(),
        attention::family(),
        audio::family(),
        conv::family(),
        conv_backward::family(),
        deform::family(),
        distance::family(),
        dropout::family(),
        embedding::family(),
        encoder::family(),
        fold::family(),
        grid::family(),
        linear::family(),
        loss::family(),
        loss_class::family(),
        loss_ctc::family(),
        norm::family(),
        packed::family(),
        pad::family(),
        pool::family(),
        recurrent::family(),
        regions::family(),
        resize::family(),
        shuffle::family(),
        softmax::family(),
        vision::family(),
    ];
    families.into_iter().flatten().collect()
}
