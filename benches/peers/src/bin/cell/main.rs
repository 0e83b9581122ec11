//! A comparison of cells for actors by measurement. The figures are in `CELL.md`.
//!
//! Three implementations of actors run the same `async fn`s over the same single-threaded run queue
//! (a LIFO slot, at most three times in a row), without a runtime:
//!
//! - [`beside`] (a): a future of `async-task`, and a mailbox beside it;
//! - [`one`] with [`stack`] (b1): one allocation; a stack of boxed messages whose word is also the
//!   actor's state;
//! - [`one`] with [`blocks`] (b2): one allocation; a locked list of reused blocks, whose word is
//!   also the actor's state.
//!
//! `cell` prints the table. `cell WAY CASE COUNT` runs one case once, for a profiler.

mod beside;
mod blocks;
mod cache;
mod cases;
mod mail;
mod one;
mod queue;
mod stack;
mod way;

use std::process::ExitCode;

use beside::Beside;
use one::{OfBlocks, OfStack, One};
use peers::counting::Counting;
use peers::machine::{self, median};
use way::Way;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of measurements of each case and way, taken in turns.
const ROUNDS: usize = 7;
/// The number of actors whose memory is measured.
const DORMANT: usize = 100_000;

type Run = fn(u64) -> f64;

/// The timed cases: the name, the count of one measurement, and the programs of the three ways.
const CASES: [(&str, u64, [Run; 3]); 4] = [
    ("ping-pong, ns a round", 1_000_000, all(Case::PingPong)),
    ("burst of 64, ns per message", 6_400_000, all(Case::Burst)),
    ("spawn, one message, drop, ns", 1_000_000, all(Case::Spawn)),
    (
        "sent by another thread, ns per message",
        2_000_000,
        all(Case::Across),
    ),
];

#[derive(Clone, Copy)]
enum Case {
    PingPong,
    Burst,
    Spawn,
    Across,
}

const fn all(case: Case) -> [Run; 3] {
    [
        of::<Beside>(case),
        of::<One<OfStack>>(case),
        of::<One<OfBlocks>>(case),
    ]
}

const fn of<W: Way>(case: Case) -> Run {
    match case {
        Case::PingPong => cases::ping_pong::<W>,
        Case::Burst => cases::burst::<W>,
        Case::Spawn => cases::spawn::<W>,
        Case::Across => cases::across::<W>,
    }
}

fn main() -> ExitCode {
    queue::run_here();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => table(),
        [way, case, count] => {
            let numbers = (way.parse::<usize>(), case.parse::<usize>(), count.parse());
            let (Ok(way @ 0..3), Ok(case @ 0..4), Ok(count)) = numbers else {
                return usage();
            };
            println!("{:.1}", CASES[case].2[way](count));
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: cell [WAY CASE COUNT]   (ways 0 to 2, cases 0 to 3)");
    ExitCode::FAILURE
}

fn table() {
    println!("{}", machine::header());
    let names = [Beside::NAME, <One<OfStack>>::NAME, <One<OfBlocks>>::NAME];
    println!(
        "| | {} | {} | {} |\n|---|---|---|---|",
        names[0], names[1], names[2]
    );
    let live = [
        cases::dormant::<Beside>(DORMANT),
        cases::dormant::<One<OfStack>>(DORMANT),
        cases::dormant::<One<OfBlocks>>(DORMANT),
    ];
    let an_actor = |what: isize| what as f64 / DORMANT as f64;
    let row = live.map(|live| {
        let (bytes, chunks) = (an_actor(live.bytes), an_actor(live.chunks));
        format!(
            "{bytes:.1} in {:.2} ({chunks:.1} of malloc)",
            an_actor(live.blocks)
        )
    });
    println!(
        "| bytes of a dormant actor, in allocations | {} | {} | {} |",
        row[0], row[1], row[2]
    );
    for (name, count, runs) in CASES {
        let mut figures = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            for (way, run) in runs.iter().enumerate() {
                figures[way].push(run(count));
            }
        }
        let row = figures.map(|figures| {
            median(&figures).map_or(String::new(), |ns| {
                format!("{:.1} ({:.1} to {:.1})", ns.middle, ns.least, ns.greatest)
            })
        });
        println!("| {name} | {} | {} | {} |", row[0], row[1], row[2]);
    }
}
