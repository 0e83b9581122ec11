//! Fuzzes queries and forms.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| greenroom_http::fuzzing::query(bytes));
