//! The cases of "Speed and size" for greenroom and its peers.
//!
//! `peers run` starts a fresh process for each peer, case and round, in turns, and prints one table
//! with medians and ranges. `peers case PEER CASE` runs one of them in this process.

mod cases;
#[cfg(feature = "greenroom")]
mod greenroom;
mod process;
mod table;
mod tokio_hand;

use std::process::ExitCode;

use cases::{CASES, Case, Figure};
use peers::counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A way to write the programs: its name and what runs a case of it.
type Peer = (&'static str, fn(Case) -> Vec<Figure>);

/// All that were built in. The first one is what the others are compared with.
const PEERS: &[Peer] = &[
    ("tokio", tokio_hand::run),
    #[cfg(feature = "greenroom")]
    ("greenroom", greenroom::run),
];

/// Rounds of `peers run`, unless it is told a number.
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => table::run(ROUNDS, &[]),
        ["run", "--rounds", rounds, names @ ..] => match rounds.parse() {
            Ok(rounds @ 1..) => selected(rounds, names),
            _ => usage(),
        },
        ["run", names @ ..] => selected(ROUNDS, names),
        ["case", peer, case] => one(peer, case),
        _ => usage(),
    }
}

/// Runs the cases of these names; all, if there are none.
fn selected(rounds: usize, names: &[&str]) -> ExitCode {
    let cases: Option<Vec<Case>> = names.iter().map(|name| Case::named(name)).collect();
    cases.map_or_else(usage, |cases| table::run(rounds, &cases))
}

/// Runs one case here and prints its figures, a line each.
fn one(peer: &str, case: &str) -> ExitCode {
    let peer = PEERS.iter().find(|(name, _)| *name == peer);
    let (Some((_, run)), Some(case)) = (peer, Case::named(case)) else {
        return usage();
    };
    for Figure { what, value } in run(case) {
        println!("{what}\t{value}");
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: peers [run [--rounds N] [CASE ..]]\n       peers case PEER CASE\npeers:");
    PEERS.iter().for_each(|(name, _)| eprintln!("  {name}"));
    eprintln!("cases:");
    CASES.iter().for_each(|case| eprintln!("  {}", case.name()));
    ExitCode::FAILURE
}
