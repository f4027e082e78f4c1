//! How results lie, which shows in their strides: by a rule of the operator, or as the last of some steps leaves them that
//! PyTorch takes one by one and a kernel here at once.

use crate::support::Computed;
use flambeau_exec::KernelError;
use flambeau_tensor::{Layout, MemoryFormat, Tensor, loops};

/// How results lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputLayout {
    /// As they are computed.
    AsComputed,
    /// Row-major whatever the operands are.
    RowMajor,
    /// As argument 0, of the same sizes.
    AsOperand,
    /// As argument 0, of which it is a changed copy, with the holes between its elements.
    Spread,
    /// With the channels innermost where argument 0 has them there.
    ByChannels,
    /// The same of lines, which count as planes of height one.
    ByLines,
}

impl OutputLayout {
    /// A result as it is to lie.
    pub(crate) fn apply(self, x: &Tensor, result: Tensor) -> Computed {
        let plain = x.is_contiguous() || !result.is_contiguous();
        let format = match (self, x.rank()) {
            (OutputLayout::AsComputed | OutputLayout::Spread, _) => return Ok(result),
            (OutputLayout::RowMajor, _) => return Ok(result.contiguous()?),
            _ if plain || result.numel() == 0 => return Ok(result),
            (OutputLayout::AsOperand, _) if result.sizes() == x.sizes() => {
                let copy = x.empty_like(result.dtype())?;
                copy.copy_(&result)?;
                return Ok(copy);
            }
            (OutputLayout::ByLines, 3) if result.rank() == 3 => {
                let planes = OutputLayout::ByChannels.apply(&x.unsqueeze(-2)?, result.unsqueeze(-2)?)?;
                return Ok(planes.squeeze(&[-2])?);
            }
            (OutputLayout::ByChannels, 4) => MemoryFormat::ChannelsLast,
            (OutputLayout::ByChannels, 5) => MemoryFormat::ChannelsLast3d,
            _ => return Ok(result),
        };
        let same = result.rank() == x.rank() && x.layout().is_channels_last_strides();
        Ok(if same { result.contiguous_format(format)? } else { result })
    }
}

/// How what a step makes of operands lies, element by element.
pub(crate) fn elementwise_layout(operands: &[&Layout]) -> Result<Layout, KernelError> {
    Ok(loops::layout_after(operands)?)
}

/// A result as the last of some steps would leave it. Of operands that are row-major nothing else comes.
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
