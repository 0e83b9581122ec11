//! Shows that greenroom and the packages beside it last: all of them for hours, under faults.
//!
//! ```sh
//! cargo run --release -p soak -- run [MINUTES] [--seed N] [--nats PATH]
//! ```
//!
//! It runs for 120 minutes, unless another time is given. `PATH` is the program `nats-server`, by
//! default that of the variable `GREENROOM_NATS_SERVER`. Without it the two nodes at NATS are left
//! out, and a line says so.
//!
//! The parent starts these processes, each of which is this program again:
//!
//! | process | what it does |
//! |---|---|
//! | `actors` | messages and asks: plain, bounded, urgent and conflating mailboxes, restarts, spools, markets, loopers, keyed actors |
//! | `server`, `visitor` | requests over loopback, some from slow readers, and some connections that end in the middle |
//! | `queue` | durable jobs and a journal in a file, with a ledger outside of it |
//! | `shop`, `desk` | two nodes at sockets, with TLS |
//! | `nats shop`, `nats desk` | two nodes at a NATS server |
//! | `cramped` | allocates under `RLIMIT_AS` until it aborts, and is started again |
//!
//! Handlers panic, and actors are killed, all the time. From a seed the parent draws when it injects
//! other faults: `SIGKILL`, `SIGSTOP`, a step of the clock by a preloaded library, an order to use up
//! all descriptors, and one that lets no thread start.
//!
//! # Ledgers
//! Each message is a value of its own, which counts what becomes of it when it is dropped: handled,
//! refused, displaced, undelivered, or lost with an error. In a process life these are as many as were
//! sent, whenever its load pauses, and they agree with what those who ask were told. After a kill only
//! what is durable counts: each job that was put is done, and each event is in the journal.
//!
//! # What it prints
//! A table in Markdown, and a sentence for each ledger that is not even. In a run of more than ten
//! minutes there is also one for memory, threads or descriptors that grow: the median of the last tenth
//! is compared with that from 20 % to 30 %. Then the exit status is 1. No time decides anything.

mod actors;
mod book;
mod certificates;
mod cramped;
mod desk;
mod life;
mod pace;
mod parent;
mod queue;
mod report;
mod server;
mod shop;
mod system;
mod visitor;

use std::process::ExitCode;

const USAGE: &str = "usage: soak run [MINUTES] [--seed N] [--nats PATH]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["run", ..] => match parent::options::RunOptions::read() {
            Ok(options) => return parent::run(&options),
            Err(error) => {
                eprintln!("{error}\n{USAGE}");
                return ExitCode::from(2);
            }
        },
        ["actors", seed] => actors::live(seed.parse().expect("a seed")),
        ["server", address] => server::live(address),
        ["visitor", address] => visitor::live(address),
        ["queue", file, ledger, life] => queue::live(file, ledger, life.parse().expect("a life")),
        ["shop", engine, at, certificates] => shop::live(engine, at, certificates),
        ["desk", engine, at, certificates] => desk::live(engine, at, certificates),
        ["cramped"] => cramped::live(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
