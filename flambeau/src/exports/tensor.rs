//! Tensors, and the loops that kernels of one's own are made of.

pub use flambeau_tensor::{
    Category, Complex, DType, Device, DeviceKind, Dims, Element, ForeignBytes, Layout, MAX_RANK,
    MemoryFormat, Scalar, Storage, Tensor, TensorError, TensorLayout, bf16, broadcast_shapes,
    contiguous_strides, dispatch, f16, numel_of,
};

/// Comparison of whole tensors.
pub mod compare {
    pub use flambeau_tensor::compare::{
        Mismatch, bitwise_equal, close, equal, equal_nan, max_abs_diff, mismatch,
    };
}

/// Loops over the elements of tensors with any strides.
pub mod loops {
    pub use flambeau_tensor::loops::{binary, binary_in, map, unary, unary_in};
}

/// Functions on numbers of any width.
pub mod math {
    pub use flambeau_tensor::math::{Float, Real};
}

/// Which element type results have.
pub mod promote {
    pub use flambeau_tensor::promote::{can_cast, promote, result_type, to_float};
}

/// Sums, products, extremes.
pub mod reduce {
    pub use flambeau_tensor::reduce::{
        all, amax, amin, any, argmax, argmin, cumprod, cumsum, mean, prod, sum,
    };
}
