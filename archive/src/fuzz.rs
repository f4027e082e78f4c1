//! Entry points for fuzzing: total functions of bytes that must not panic, hang or use excessive memory.

use crate::{ArchiveLimits, LoadOptions, load};
use std::sync::Arc;

use flambeau_ir::Registry;

use crate::pickle::read_pickle;
use crate::zip::ZipReader;

/// Reads `data` as a pickle with default limits. Returns true if it is valid.
pub fn fuzz_pickle(data: &[u8]) -> bool {
    read_pickle(data, &ArchiveLimits::default()).is_ok()
}

/// Reads `data` as a container and all its records, with default limits. Returns true if all are valid.
pub fn fuzz_zip(data: &[u8]) -> bool {
    let Ok(zip) = ZipReader::open(data, &ArchiveLimits::default()) else { return false };
    zip.records().iter().all(|record| match zip.read(record) {
        Ok(bytes) => !record.name().ends_with(".pkl") || fuzz_pickle(&bytes),
        Err(_) => false,
    })
}

/// Loads `data` as a module with default limits, with its code if `code` is true. Returns true if it is valid.
pub fn fuzz_load(data: &[u8], registry: &Arc<Registry>, code: bool) -> bool {
    let options = LoadOptions { code, ..LoadOptions::default() };
    load(data, registry, &options).is_ok()
}
