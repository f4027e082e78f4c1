//! Raw bytes as input of the source parser.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flambeau_fuzz::raw::source(data));
