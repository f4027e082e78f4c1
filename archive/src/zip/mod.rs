//! The container of an archive: a zip file whose records are stored (tensors, aligned) or deflated (code).

mod read;
mod write;

pub use read::{DetachedRecord, Method, Record, ZipReader};
pub use write::ZipWriter;

#[cfg(test)]
mod tests;
