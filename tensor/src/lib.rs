//! Strided tensors over shared, versioned, lockable storage: the loops, not the operators.
//!
//! A [`Tensor`] is one pointer to a dtype, a [`Layout`] and a [`Storage`]. Views share the storage; clones share
//! identity. The crate contains the building blocks of kernels: dispatch over dtypes, promotion, broadcasting, strided
//! loops that vectorize, reductions, matrix products, comparison, printing. It contains no operator's name or schema.
//!
//! Invariants: metadata is read without a lock and stays valid as long as the tensor. A storage's bytes are accessed
//! only under its lock, and kernels lock all their storages at once in one order ([`access`]), so no program can cause
//! a data race or a deadlock. Every allocation can fail, and a failure is an error.

pub mod access;
mod alloc;
mod broadcast;
mod budget;
mod bytes;
pub mod channels;
pub mod compare;
pub mod conv;
mod convert;
mod create;
mod device;
mod dtype;
mod element;
mod error;
pub mod fft;
mod guard;
mod half_convert;
pub mod index_set;
pub mod lanes;
mod layout;
pub mod linalg;
mod lines;
pub mod loops;
pub mod math;
pub mod matmul;
pub mod pool;
mod prepack;
pub mod print;
pub mod promote;
pub mod random;
pub mod reduce;
pub mod remap;
pub mod resample;
pub mod rows;
mod scalar;
mod scratch;
pub mod select;
mod shared;
pub mod simd;
mod storage;
mod strided;
pub mod switches;
mod tensor;
pub mod threads;
pub mod thresholds;
mod view;

pub use alloc::Recycler;
pub use broadcast::{broadcast_into, broadcast_shapes, expandable};
pub use budget::{MemoryBudget, check_budget};
pub use device::{Device, DeviceKind, MemoryFormat, TensorLayout};
pub use dtype::{Category, DType};
pub use element::{Element, cast};
pub use error::{Fault, Result, SizesText, TensorError};
pub use half::{bf16, f16};
pub use layout::{
    Dims, Layout, MAX_EMPTY_EXTENT, MAX_RANK, Overlap, channels_last_strides, contiguous_strides, numel_of,
    same_sizes, wrap_dim, wrap_dim_insert,
};
pub use num_complex::Complex;
pub use scalar::Scalar;
pub use shared::Shared;
pub use storage::{ForeignBytes, Storage, WriteProtection};
pub use tensor::{AutogradSlot, AutogradState, Tensor};
pub use view::infer_sizes;
