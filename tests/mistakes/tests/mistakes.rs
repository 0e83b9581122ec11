//! The errors that the compiler reports for likely mistakes, against those in `cases`.
//!
//! Each compiler words its errors differently, so only one version is compared. With
//! `TRYBUILD=overwrite` the files of errors are written anew.

use std::process::Command;

/// The compiler whose errors are in `cases`.
const COMPILER: &str = "rustc 1.95.0 ";

#[test]
fn errors_of_likely_mistakes_point_at_their_lines() {
    let version = Command::new("rustc").arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    if !version.starts_with(COMPILER) {
        eprintln!("SKIPPED: the errors are those of {COMPILER}, and this is {version}");
        return;
    }
    let cases = trybuild::TestCases::new();
    cases.compile_fail("cases/*/*.rs");
}
