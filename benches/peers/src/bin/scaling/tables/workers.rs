//! The tables of what an operation costs on ever more workers.

use super::{Results, cell, heading, in_words, line};
use crate::figures;
use crate::point::{BESIDE_MANY, MANY_WORKERS, Point, WAYS, WORKERS};

/// Returns the table for time, and what was counted: atomic read-modify-writes and lines.
pub fn all(results: &Results) -> String {
    let times = figures::OPERATIONS.map(|operation| operation.time);
    let counts = figures::OPERATIONS.map(|operation| operation.counts);
    format!(
        "on ever more workers, beside {BESIDE_MANY} live actors:\n\n{}\n\
         counted, with a core for each worker:\n\n{}",
        table(results, &times),
        table(results, counts.as_flattened()),
    )
}

fn table(results: &Results, figures: &[&str]) -> String {
    let numbers = WORKERS.into_iter().chain(MANY_WORKERS);
    let numbers: Vec<usize> = numbers.collect();
    let begin = ["", ""].map(str::to_owned);
    let heads: Vec<String> = numbers.iter().map(|workers| in_words(*workers)).collect();
    let mut table = heading(&[&begin, &heads[..]].concat());
    for what in figures {
        for (way, _) in WAYS {
            let cells = numbers.iter().map(|&workers| {
                let point = Point::Cost {
                    live: BESIDE_MANY,
                    workers,
                };
                cell(results.median(way, point, what))
            });
            let begin = [what, way].map(str::to_owned);
            table += &line(&begin.into_iter().chain(cells).collect::<Vec<_>>());
        }
    }
    table
}
