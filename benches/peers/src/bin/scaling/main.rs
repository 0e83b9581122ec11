//! Memory and cost by the number of actors and workers, on greenroom and by hand on tokio.
//!
//! `scaling run` starts a fresh process for each point, way and round, in turns, prints tables with
//! medians and ranges, and draws a chart. `scaling one WAY POINT` measures one point in this
//! process: a kind of memory, or numbers of live actors and workers.

mod chart;
mod cost;
mod figures;
mod growth;
mod lines;
mod memory;
mod point;
mod report;
mod tables;
mod way;

use std::process::ExitCode;

use growth::Item;
use peers::counting::Counting;
use point::Point;
use report::Request;
use way::{Greenroom, Way};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["run", rest @ ..] => request(rest).map_or_else(usage, |request| report::run(&request)),
        ["one", way, point @ ..] => one(way, point),
        ["count", item, count] => count_instructions(item, count),
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
            ["--record", rest @ ..] => {
                request.record = true;
                rest
            }
            ["--lines", program, rest @ ..] => {
                request.lines = Some((*program).to_owned());
                rest
            }
            [] => return Some(request),
            _ => return None,
        }
    }
}

/// Measures one point here and prints its figures, one line each.
fn one(way: &str, point: &[&str]) -> ExitCode {
    let (Some((_, measure)), Some(point)) = (point::way(way), Point::named(point)) else {
        return usage();
    };
    for (what, value) in measure(point) {
        println!("{what}\t{value}");
    }
    ExitCode::SUCCESS
}

/// Does the steps of some items, whose instructions another program counts.
fn count_instructions(item: &str, count: &str) -> ExitCode {
    let (Some(item), Ok(count @ 1..)) = (Item::named(item), count.parse()) else {
        return usage();
    };
    Greenroom::run(1, growth::run_counted::<Greenroom>(item, count));
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: scaling run [--rounds N] [--record] [--lines PROGRAM]\n       \
         scaling one greenroom|tokio actor|task|ask|timer|address|million\n       \
         scaling one greenroom|tokio ACTORS WORKERS\n       \
         scaling one greenroom|tokio ITEM COUNT\n       \
         scaling count ITEM COUNT"
    );
    ExitCode::FAILURE
}
