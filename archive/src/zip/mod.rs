//! The container of an archive: a zip file with stored (tensors, aligned) and deflated (code) records.

mod read;
mod write;

pub(crate) use read::exported_program;
pub use read::{DetachedRecord, Method, Record, ZipReader};
pub use write::ZipWriter;

#[cfg(test)]
mod tests;
