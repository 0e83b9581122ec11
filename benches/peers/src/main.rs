//! The cases of "Speed and size" for greenroom and its peers.
//!
//! `peers run` starts a fresh process for each peer, case and round, in turns, and prints a table
//! with medians and ranges. `peers case PEER CASE` runs one of them in this process.

mod actors;
mod bars;
mod blocking;
mod cases;
mod chart;
mod crowds;
mod executors;
mod figures;
mod large;
mod load;
mod lookups;
mod loopers;
mod mixed;
mod pools;
mod process;
mod report;
mod roster;
mod rounds;
mod sets;
mod sizes;
mod sqlite;
mod table;
mod tasks;
mod timers;

use std::process::ExitCode;

use cases::{CASES, Case};
use figures::Figure;
use peers::counting::Counting;
use report::Request;
use roster::PEERS;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["run", rest @ ..] => request(rest).map_or_else(usage, |request| report::run(&request)),
        ["case", peer, case] => one(peer, case),
        _ => usage(),
    }
}

/// Parses the words after `run`.
fn request(mut words: &[&str]) -> Option<Request> {
    let mut request = Request::default();
    loop {
        words = match words {
            ["--rounds", rounds, rest @ ..] => {
                request.rounds = rounds.parse().ok().filter(|rounds| *rounds > 0)?;
                rest
            }
            ["--peers", names, rest @ ..] => {
                request.peers = names.split(',').map(roster::named).collect::<Option<_>>()?;
                rest
            }
            ["--record", rest @ ..] => {
                request.record = true;
                rest
            }
            names => {
                let cases: Vec<_> = names
                    .iter()
                    .map(|name| Case::named(name))
                    .collect::<Option<_>>()?;
                if !cases.is_empty() {
                    request.cases = cases;
                }
                return Some(request);
            }
        }
    }
}

/// Runs one case here and prints its figures, one line each.
fn one(peer: &str, case: &str) -> ExitCode {
    let (Some(peer), Some(case)) = (roster::named(peer), Case::named(case)) else {
        return usage();
    };
    for Figure { what, value } in (peer.run)(case).into_iter().flatten() {
        println!("{what}\t{value}");
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: peers run [--rounds N] [--peers PEER,..] [--record] [CASE ..]\n       \
         peers case PEER CASE\npeers:"
    );
    PEERS.iter().for_each(|peer| eprintln!("  {}", peer.name));
    eprintln!("cases:");
    CASES.iter().for_each(|case| eprintln!("  {}", case.name()));
    ExitCode::FAILURE
}
