//! Fuzzes what comes over a link.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| greenroom_cluster::fuzzing::frames(bytes));
