//! greenroom measured beside an older greenroom.
//!
//! `speed CASE` runs one case once and prints its operations a second. A program whose result is
//! wrong prints no figure and fails. `speed compare HEAD BASE` runs all cases of two builds of this
//! program in turns; it fails if one of them became slower. `run` makes the two builds.

mod cases;
mod compare;
mod judge;
mod names;

use std::env;
use std::process::ExitCode;

use cases::CASES;
use compare::{Build, compare, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["compare", head, base] => compared(head, base),
        [name] => match CASES.iter().find(|case| case.name == name) {
            Some(case) => {
                println!("{:.0}", (case.run)());
                ExitCode::SUCCESS
            }
            None => usage(),
        },
        _ => usage(),
    }
}

/// Compares two builds; fails if a case became slower or a run failed.
fn compared(head: &str, base: &str) -> ExitCode {
    let names = CASES.iter().map(|case| case.name);
    let slower = compare(names, |build, case| match build {
        Build::Head => run(head, case),
        Build::Base => run(base, case),
    });
    match slower {
        Ok(slower) if slower.is_empty() => return ExitCode::SUCCESS,
        Ok(_) => {}
        Err(error) => eprintln!("{error}"),
    }
    ExitCode::FAILURE
}

fn usage() -> ExitCode {
    let names = CASES.map(|case| case.name).join(" ");
    eprintln!("usage: speed CASE\n       speed compare HEAD BASE\ncases: {names}");
    ExitCode::from(2)
}
