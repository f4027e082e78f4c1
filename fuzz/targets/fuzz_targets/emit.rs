//! Raw bytes as input of the compiler.

#![no_main]

use std::sync::{Arc, OnceLock};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static REGISTRY: OnceLock<Arc<flambeau::ir::Registry>> = OnceLock::new();
    flambeau_fuzz::raw::emit(data, REGISTRY.get_or_init(flambeau_ops::registry));
});
