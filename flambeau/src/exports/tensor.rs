//! Tensors, and the loops from which kernels are built.

pub use flambeau_tensor::{
    Category, Complex, DType, Device, DeviceKind, Dims, Element, ForeignBytes, Layout, MAX_RANK,
    MemoryFormat, Scalar, Storage, Tensor, TensorError, TensorLayout, bf16, broadcast_shapes,
    contiguous_strides, dispatch, f16, numel_of,
};

/// Comparison of whole tensors.
pub mod compare {
    pub use flambeau_tensor::compare::{
        ElementMismatch, bitwise_equal, close, equal, equal_nan, max_abs_diff, mismatch,
    };
}

/// Loops over the elements of tensors with any strides.
pub mod loops {
    pub use flambeau_tensor::loops::{binary, binary_in, map, unary, unary_in};
}

/// Elementary functions, generic over the width of numbers.
pub mod math {
    pub use flambeau_tensor::math::{Float, Real};
}

/// Type promotion.
pub mod promote {
    pub use flambeau_tensor::promote::{can_cast, promote, result_type, to_float};
}

/// The source of random bits.
pub mod random {
    pub use flambeau_tensor::random::Engine;
}

/// Reductions: sums, products, extrema.
pub mod reduce {
    pub use flambeau_tensor::reduce::{
        all, amax, amin, any, argmax, argmin, cumprod, cumsum, mean, prod, sum,
    };
}
