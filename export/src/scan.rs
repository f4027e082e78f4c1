//! The order in which a scan takes slices. PyTorch 2.6 states dimension and direction among the operands of a scan; later versions
//! turn the tensors outside of the scan.

use crate::error::quoted;
use crate::model::{Argument, Sym};

/// The name of the higher-order operator.
pub(crate) const NAME: &str = "scan";
/// The target of nodes that call it.
pub(crate) const TARGET: &str = "torch.ops.higher_order.scan";
/// Number of operands before the order: the body, the initial values and the tensors that are sliced.
pub(crate) const BEFORE_ORDER: usize = 3;

/// The order in which a loop takes slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// The dimension of which an index gives a slice.
    pub(crate) dim: i64,
    /// Whether the loop takes the slices from the last to the first. Results are stacked by the indices of the slices either way.
    pub(crate) is_reversed: bool,
}

/// Returns the order that operands begin with and the number of operands that state it, which is zero for files of later versions.
///
/// # Errors
/// The name of the value for an order that is not a constant.
pub(crate) fn order_of<'a>(rest: impl IntoIterator<Item = &'a Argument>) -> Result<(Order, usize), String> {
    let (mut order, mut count) = (Order::default(), 0);
    for operand in rest {
        match operand {
            Argument::Bool(is_reversed) | Argument::SymBool(Sym::Value(is_reversed)) => {
                order.is_reversed = *is_reversed;
            }
            Argument::Int(dim) | Argument::SymInt(Sym::Value(dim)) => order.dim = *dim,
            Argument::SymInt(Sym::Name(name)) | Argument::SymBool(Sym::Name(name)) => {
                return Err(quoted(name));
            }
            _ => break,
        }
        count += 1;
    }
    Ok((order, count))
}
