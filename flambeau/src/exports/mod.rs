//! The stable items of the inner crates, one module per crate. All other items of these crates may change with any
//! version.

pub mod analysis;
#[cfg(feature = "archive")]
pub mod archive;
pub mod exec;
pub mod executor;
#[cfg(feature = "export")]
pub mod export;
pub mod frontend;
pub mod ir;
pub mod rewrite;
pub mod tensor;
