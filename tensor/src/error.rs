//! Errors of tensor operations, with a classification by cause.
//!
//! Messages have PyTorch's meaning (and its wording where users of programs know it), so that they can be looked up.
//! Programs match on the variants instead.

use std::fmt;

use crate::dtype::DType;

/// The cause of an error: determines exit codes, and whether fuzzers report a bug of this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The input (program, archive, tensor) is wrong.
    Input,
    /// The input may be right, but this is not implemented here.
    Unsupported,
    /// A caller of this library broke its contract.
    Misuse,
    /// A configured limit was reached.
    Limit,
    /// A broken invariant of this library.
    Internal,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Input | Fault::Misuse => "error",
            Fault::Unsupported => "unsupported",
            Fault::Limit => "limit reached",
            Fault::Internal => "internal error",
        })
    }
}

/// `Result` with this crate's error.
pub type Result<T, E = TensorError> = std::result::Result<T, E>;

/// An error of a tensor operation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// Two shapes do not broadcast together.
    #[error(
        "The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
    )]
    Broadcast {
        /// Size of the first operand in that dimension.
        a: i64,
        /// Size of the second operand in that dimension.
        b: i64,
        /// Dimension of the broadcast result.
        dim: usize,
    },
    /// A dimension number outside `lo..=hi`.
    #[error("Dimension out of range (expected to be in range of [{lo}, {hi}], but got {dim})")]
    DimRange {
        /// The given dimension.
        dim: i64,
        /// Smallest accepted value.
        lo: i64,
        /// Largest accepted value.
        hi: i64,
    },
    /// An index outside a dimension.
    #[error("{op}: index {index} out of range for tensor of size {sizes} at dimension {dim}")]
    IndexRange {
        /// The operation, as PyTorch writes it (`select()`).
        op: &'static str,
        /// The given index.
        index: i64,
        /// The tensor's sizes, as `[2, 3]`.
        sizes: SizesText,
        /// The indexed dimension.
        dim: i64,
    },
    /// A shape whose number of elements differs from the tensor's.
    #[error("shape '{shape}' is invalid for input of size {numel}")]
    ShapeInvalid {
        /// The requested shape.
        shape: SizesText,
        /// The number of elements of the tensor.
        numel: i64,
    },
    /// A view that cannot be expressed by strides.
    #[error(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across \
         two contiguous subspaces). Use .reshape(...) instead."
    )]
    ViewStride,
    /// An expansion of a dimension whose size is not 1.
    #[error(
        "The expanded size of the tensor ({wanted}) must match the existing size ({existing}) at non-singleton \
         dimension {dim}.  Target sizes: {target}.  Tensor sizes: {sizes}"
    )]
    Expand {
        /// The requested size.
        wanted: i64,
        /// The existing size.
        existing: i64,
        /// The dimension of the target.
        dim: usize,
        /// All requested sizes.
        target: SizesText,
        /// All existing sizes.
        sizes: SizesText,
    },
    /// Matrix shapes that cannot be multiplied.
    #[error("mat1 and mat2 shapes cannot be multiplied ({0}x{1} and {2}x{3})")]
    MatShapes(i64, i64, i64, i64),
    /// A shape, rank or count that an operation does not accept.
    #[error("{0}")]
    Shape(String),
    /// A value that an operation does not accept.
    #[error("{0}")]
    Value(String),
    /// An element type that an operation does not accept.
    #[error("\"{op}\" not implemented for '{dtype}'", dtype = dtype.ir_name())]
    DType {
        /// The operation or loop.
        op: &'static str,
        /// The type that was found.
        dtype: DType,
    },
    /// Two element types that must be the same.
    #[error("{op}: expected scalar type {expected} but found {found}", expected = expected.ir_name(), found = found.ir_name())]
    DTypeMismatch {
        /// The operation.
        op: &'static str,
        /// The expected type.
        expected: DType,
        /// The type that was found.
        found: DType,
    },
    /// A result that cannot be stored in the type of the output.
    #[error("result type {from} can't be cast to the desired output type {to}", from = from.ir_name(), to = to.ir_name())]
    Cast {
        /// The computed type.
        from: DType,
        /// The output's type.
        to: DType,
    },
    /// A write to a tensor in which several elements share one memory location.
    #[error(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory \
         location. Please clone() the tensor before performing the operation."
    )]
    InternalOverlap,
    /// A write to a tensor that shares some, but not all, of its memory with an input.
    #[error(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
         memory location. Please clone() the tensor before performing the operation."
    )]
    PartialOverlap,
    /// A layout that reaches outside its storage.
    #[error(
        "setStorage: sizes {sizes}, strides {strides}, storage offset {offset}, and itemsize {itemsize} requiring a storage size of {needed} are out of bounds for storage of size {available}"
    )]
    OutOfBounds {
        /// Requested sizes.
        sizes: SizesText,
        /// Requested strides.
        strides: SizesText,
        /// Offset in elements.
        offset: i64,
        /// Bytes per element.
        itemsize: usize,
        /// Required bytes.
        needed: usize,
        /// Available bytes.
        available: usize,
    },
    /// The memory limit, or the system's memory, is exhausted.
    #[error("out of memory: {requested} bytes requested, {}", memory_bound(*.limit))]
    OutOfMemory {
        /// Requested bytes.
        requested: usize,
        /// The limit (`usize::MAX`: no limit was set, and the system refused).
        limit: usize,
    },
    /// Sizes whose product overflows.
    #[error("sizes {0} overflow the address space")]
    SizeOverflow(SizesText),
    /// A tensor without elements whose other sizes are too large.
    #[error("a tensor without elements of sizes {0} is too large: the product of the sizes other than 0 exceeds {limit}", limit = crate::layout::MAX_EMPTY_EXTENT)]
    EmptyExtent(SizesText),
    /// A feature that is not implemented.
    #[error("unsupported: {0}")]
    Unsupported(String),
}

/// Returns the bound that a request of memory exceeded, for its error.
fn memory_bound(limit: usize) -> String {
    if limit == usize::MAX { "which the system refused".to_owned() } else { format!("limit {limit} bytes") }
}

impl TensorError {
    /// Returns the cause of the error.
    pub fn fault(&self) -> Fault {
        match self {
            TensorError::Unsupported(_) => Fault::Unsupported,
            TensorError::OutOfMemory { .. } | TensorError::EmptyExtent(_) => Fault::Limit,
            _ => Fault::Input,
        }
    }

    /// Makes a [`TensorError::Shape`] with a message.
    #[cold]
    pub fn shape(text: impl Into<String>) -> TensorError {
        TensorError::Shape(text.into())
    }

    /// Makes a [`TensorError::Value`] with a message.
    #[cold]
    pub fn value(text: impl Into<String>) -> TensorError {
        TensorError::Value(text.into())
    }
}

/// Sizes (or strides) inside an error, displayed as `[2, 3]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizesText(pub Box<[i64]>);

impl From<&[i64]> for SizesText {
    fn from(sizes: &[i64]) -> SizesText {
        SizesText(sizes.into())
    }
}

impl fmt::Display for SizesText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, size) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{size}")?;
        }
        f.write_str("]")
    }
}
