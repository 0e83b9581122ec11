//! greenroom measured beside an older greenroom.
//!
//! `speed CASE` runs one case once and prints its operations a second. A program whose result is wrong
//! prints no figure and fails.

mod cases;
mod names;

use std::env;
use std::process::ExitCode;

use cases::CASES;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let case = match &arguments[..] {
        [name] => CASES.iter().find(|case| case.name == name),
        _ => None,
    };
    let Some(case) = case else {
        let names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        eprintln!("usage: speed CASE\ncases: {}", names.join(" "));
        return ExitCode::from(2);
    };
    println!("{:.0}", (case.run)());
    ExitCode::SUCCESS
}
