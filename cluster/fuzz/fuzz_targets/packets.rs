//! Fuzzes what a broker carries from other nodes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| greenroom_cluster::fuzzing::packets(bytes));
