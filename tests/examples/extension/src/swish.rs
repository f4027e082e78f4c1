//! The operator `extension::swish`: its definition with all facts.

use flambeau::analysis::{Dtype, ResultShapes};
use flambeau::exec::{Kernel, Sample};
use flambeau::ir::{Doc, OpDef};
use flambeau::rewrite::Cost;
use flambeau::tensor::dispatch;
use flambeau::tensor::loops::unary;
use flambeau::tensor::math::{Float, Real};

/// `x * sigmoid(x)` in one loop.
pub(crate) fn swish() -> OpDef {
    OpDef::new("extension::swish(Tensor self) -> Tensor")
        .with(Doc("`x * sigmoid(x)`."))
        .with(ResultShapes::same_as("self"))
        .with(Dtype::same_as("self"))
        .with(Kernel::new(|cx| {
            let x = cx.tensor(0)?;
            let y = dispatch!(floats, x.dtype(), "swish", T => {
                unary::<T, T>(x, |v: T| T::from_acc(v.acc() * v.acc().sigmoid()))
            })?;
            cx.ret(y);
            Ok(())
        }))
        .with(Cost(40))
        .with(Sample::tensors(1).floats())
}
