//! Raw bytes as exported programs: files, and the JSON text of programs, which checksums of files would protect from changes.

#![no_main]

use std::sync::{Arc, OnceLock};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static REGISTRY: OnceLock<Arc<flambeau::ir::Registry>> = OnceLock::new();
    flambeau_fuzz::raw::exported(data, REGISTRY.get_or_init(flambeau_ops::registry));
});
