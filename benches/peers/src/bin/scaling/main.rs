//! Memory and cost by the number of actors and workers, on greenroom and by hand on tokio.
//!
//! `scaling run` starts a fresh process for each point, way and round, in turns, prints tables with
//! medians and ranges, and draws a chart. `scaling one WAY POINT` measures one point in this
//! process: a kind of memory, or numbers of live actors and workers.

mod chart;
mod cost;
mod figures;
mod memory;
mod point;
mod report;
mod tables;
mod way;

use std::process::ExitCode;

use peers::counting::Counting;
use point::Point;
use report::Request;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["run", rest @ ..] => request(rest).map_or_else(usage, |request| report::run(&request)),
        ["one", way, point @ ..] => one(way, point),
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

fn usage() -> ExitCode {
    eprintln!(
        "usage: scaling run [--rounds N] [--record]\n       \
         scaling one greenroom|tokio actor|task|ask|timer|address|million\n       \
         scaling one greenroom|tokio ACTORS WORKERS"
    );
    ExitCode::FAILURE
}
