//! Fuzzes bodies of JSON, and answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| greenroom_http::fuzzing::envelope(bytes));
