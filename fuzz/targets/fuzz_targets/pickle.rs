//! Raw bytes at the reader of the name.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flambeau_fuzz::raw::pickle(data));
