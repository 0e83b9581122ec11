//! Prints the public items of a crate, a line each, from the JSON that rustdoc has written.
//!
//! Traits that the compiler implements, or that are implemented for all types, are left out.

use std::process::ExitCode;

use public_api::Builder;

fn main() -> ExitCode {
    let Some(json) = std::env::args().nth(1) else {
        eprintln!("usage: face JSON");
        return ExitCode::from(2);
    };
    let face = Builder::from_rustdoc_json(&json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build();
    match face {
        Ok(face) => {
            face.items().for_each(|item| println!("{item}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{json}: {error}");
            ExitCode::FAILURE
        }
    }
}
