#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hangar_fuzz::stream(bytes));
