//! Raw bytes as input of the pickle reader.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flambeau_fuzz::raw::pickle(data));
