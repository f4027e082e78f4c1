//! What a fuzzer runs: total functions from bytes, which must not panic, hang or use much memory.

use crate::{Limits, LoadOptions, load};
use std::sync::Arc;

use flambeau_ir::Registry;

use crate::pickle::read_pickle;
use crate::zip::ZipReader;

/// Reads `data` as a pickle with default limits. Returns whether it is one.
pub fn fuzz_pickle(data: &[u8]) -> bool {
    read_pickle(data, &Limits::default()).is_ok()
}

/// Reads `data` as a container with default limits, and every record in it. Returns whether all is in order.
pub fn fuzz_zip(data: &[u8]) -> bool {
    let Ok(zip) = ZipReader::open(data, &Limits::default()) else { return false };
    zip.records().iter().all(|record| match zip.read(record) {
        Ok(bytes) => !record.name().ends_with(".pkl") || fuzz_pickle(&bytes),
        Err(_) => false,
    })
}

/// Loads `data` as a module with default limits, its code too if `code` says so. Returns whether it is one.
pub fn fuzz_load(data: &[u8], registry: &Arc<Registry>, code: bool) -> bool {
    let options = LoadOptions { code, ..LoadOptions::default() };
    load(data, registry, &options).is_ok()
}
