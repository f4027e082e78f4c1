//! Raw bytes as input of the archive reader.

#![no_main]

use std::sync::{Arc, OnceLock};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static REGISTRY: OnceLock<Arc<flambeau::ir::Registry>> = OnceLock::new();
    flambeau_fuzz::raw::archive(data, REGISTRY.get_or_init(flambeau_ops::registry));
});
