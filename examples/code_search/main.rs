//! This example shows a full-text search over a directory: `code_search DIR QUERY`.
//!
//! It is a program of several kinds of actors that exert back-pressure on each other:
//!
//! ```text
//!  walker ──> reader ──┐
//!     │ └───> reader ──┼──> store (pinned: owns the SQLite connection) ──> printer ──> stdout
//!     └─────> reader ──┘
//! ```
//!
//! Every mailbox is bounded. So a slow store slows the readers, slow readers slow the walker, and a
//! slow terminal slows the search. Blocking calls go through `unblock`; SQLite has its own thread.
//!
//! Each actor ends when its senders have ended. Ctrl-C stops the walker, and the other actors then
//! end in order. Try it: `cargo run --release --example code_search -- src Context`.

#[cfg(not(unix))]
compile_error!(
    "this example needs Unix: its files have names of bytes, and are told apart by inode"
);

mod entry;
mod error;
mod index;
mod interrupt;
mod lines;
mod options;
mod print;
mod progress;
mod query;
mod read;
mod report;
mod search;
mod stamp;
mod store;
mod walk;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use options::{Command, HELP, Options};
use progress::Progress;
use search::Outcome;

/// The exit status for any error.
const TROUBLE: u8 = 2;

fn main() -> ExitCode {
    let progress = Progress::new();
    match options::parse(env::args_os().skip(1)) {
        Ok(Command::Search(options)) => run(options, &progress),
        Ok(Command::Help) => match io::stdout().write_all(HELP.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => trouble(&progress, &error),
            _ => ExitCode::SUCCESS,
        },
        Err(error) => trouble(&progress, &format!("{error}; --help explains the usage")),
    }
}

fn run(options: Options, progress: &Progress) -> ExitCode {
    let outcome = greenroom::run(search::search(options, progress.clone()));
    progress.clear();
    match outcome {
        Ok(Outcome {
            is_interrupted: true,
            ..
        }) => ExitCode::from(interrupt::STATUS),
        Ok(Outcome { hits: 0, .. }) => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => trouble(progress, &error),
    }
}

fn trouble(progress: &Progress, error: &dyn std::fmt::Display) -> ExitCode {
    progress.say(&error.to_string());
    ExitCode::from(TROUBLE)
}
