//! Element-wise loops: one closure per element, any dtypes, any strides, broadcasting, in place.
//!
//! Only a kernel over contiguous blocks ([`block`]) is generic over the closure; it is compiled per instruction set.
//! All other code is shared: operands that are not contiguous, have another dtype or overlap the output pass through
//! blocks in the L1 cache ([`drive`]). The common case (contiguous, same shapes, no conversion) calls the kernel
//! directly on the tensors' memory.
//!
//! Fresh outputs get their strides by PyTorch's rule ([`plan`]): the dimension order of a dense input is kept.

use crate::thresholds::Threshold::{self, Length, Product};

mod block;
mod blockwise;
mod copy;
mod drive;
mod pack;
mod plan;
mod pointwise;
mod repeat;
mod small;

pub use block::Map;
pub use blockwise::{LINE, blockwise, blockwise_len};
pub(crate) use copy::{copied, copy, copy_fresh};
pub(crate) use pack::Pack;
pub use plan::{layout_after, strides_after};
pub(crate) use pointwise::like;
pub use pointwise::{
    OutputHint, binary, binary_in, binary_into, choose, is_shared, map, map_in, nary, nary_into, ternary,
    ternary_in, ternary_into, test_in, unary, unary_in, unary_into,
};
pub use small::{RowPart, each_row, one_block, one_strided_block};

/// Sizes at which the loops of this module change their method, for tests of the sizes around them.
pub(crate) const THRESHOLDS: &[Threshold] = &[
    Length("loops/drive.rs BLOCK", drive::BLOCK),
    Length("loops/drive.rs SHORT_ROW", drive::SHORT_ROW),
    Length("loops/copy.rs TILE", copy::TILE),
    Product("loops/copy.rs FEW", copy::FEW),
    Length("loops/block.rs GROUP_LEN", block::GROUP_LEN),
    Length("loops/block.rs NARROW", block::NARROW),
    Length("loops/block.rs SPAN", block::SPAN),
    Product("loops/blockwise.rs PART", blockwise::PART),
];
