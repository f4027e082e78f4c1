//! What the library promises of its parts, by part. Everything else of the inner crates may change with any version.

pub mod analysis;
#[cfg(feature = "archive")]
pub mod archive;
pub mod exec;
pub mod frontend;
pub mod ir;
pub mod rewrite;
pub mod tensor;
