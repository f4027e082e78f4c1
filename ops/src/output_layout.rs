//! Strides of results. An operator either has a layout rule, or its result has the strides that the last step of
//! PyTorch's decomposition would give, although our kernel runs in one step.

use crate::support::Computed;
use flambeau_exec::KernelError;
use flambeau_tensor::{Layout, MemoryFormat, Tensor, loops};

/// Layout rule of an operator's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputLayout {
    /// The strides that the kernel produces.
    AsComputed,
    /// Row-major, independent of the operands.
    RowMajor,
    /// The layout of argument 0, if the result has the same sizes.
    AsOperand,
    /// The strides of argument 0, including gaps, because the result is a modified copy of it.
    PreserveStrides,
    /// Channels last if argument 0 is.
    ChannelsLastLike,
    /// Like `ChannelsLastLike` for 3-d tensors, which are treated as images of height one.
    ChannelsLastLike1d,
}

impl OutputLayout {
    /// Converts a result to the required layout.
    pub(crate) fn apply(self, x: &Tensor, result: Tensor) -> Computed {
        let plain = x.is_contiguous() || !result.is_contiguous();
        let format = match (self, x.rank()) {
            (OutputLayout::AsComputed | OutputLayout::PreserveStrides, _) => return Ok(result),
            (OutputLayout::RowMajor, _) => return Ok(result.contiguous()?),
            _ if plain || result.numel() == 0 => return Ok(result),
            (OutputLayout::AsOperand, _) if result.sizes() == x.sizes() => {
                let copy = x.empty_like(result.dtype())?;
                copy.copy_(&result)?;
                return Ok(copy);
            }
            (OutputLayout::ChannelsLastLike1d, 3) if result.rank() == 3 => {
                let planes =
                    OutputLayout::ChannelsLastLike.apply(&x.unsqueeze(-2)?, result.unsqueeze(-2)?)?;
                return Ok(planes.squeeze(&[-2])?);
            }
            (OutputLayout::ChannelsLastLike, 4) => MemoryFormat::ChannelsLast,
            (OutputLayout::ChannelsLastLike, 5) => MemoryFormat::ChannelsLast3d,
            _ => return Ok(result),
        };
        let same = result.rank() == x.rank() && x.layout().is_channels_last_strides();
        Ok(if same { result.contiguous_format(format)? } else { result })
    }
}

/// Returns the layout of an elementwise operation's result.
pub(crate) fn elementwise_layout(operands: &[&Layout]) -> Result<Layout, KernelError> {
    Ok(loops::layout_after(operands)?)
}

/// Converts a result to the layout that the last step of a decomposition gives. If all operands are row-major, the
/// result is too, and `last` is not called.
pub(crate) fn relayout(
    result: Tensor,
    operands: &[&Tensor],
    last: impl FnOnce() -> Result<Layout, KernelError>,
) -> Computed {
    if operands.iter().all(|x| x.is_contiguous()) {
        return Ok(result);
    }
    let layout = last()?;
    if layout.sizes() != result.sizes() || layout.strides() == result.strides() {
        return Ok(result);
    }
    let copy = Tensor::empty_strided(layout.sizes(), layout.strides(), result.dtype())?;
    copy.copy_(&result)?;
    Ok(copy)
}
