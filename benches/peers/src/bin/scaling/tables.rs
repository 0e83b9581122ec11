//! The tables: medians with minimum and maximum, and the effect of more workers.

pub mod growth;
mod workers;

use std::collections::HashMap;

use peers::machine::{Median, median};

use crate::figures::{self, Operation};
use crate::point::{Kind, LIVE, Point, WAYS, WORKERS};

/// All measurements.
#[derive(Default)]
pub struct Results(HashMap<(&'static str, Point, String), Vec<f64>>);

impl Results {
    /// Adds the figures that one process has printed.
    pub fn add(&mut self, way: &'static str, point: Point, figures: Vec<(String, f64)>) {
        for (what, value) in figures {
            self.0.entry((way, point, what)).or_default().push(value);
        }
    }

    /// Returns the median of a figure, if it was measured.
    pub fn median(&self, way: &'static str, point: Point, what: &str) -> Option<Median> {
        median(self.0.get(&(way, point, what.to_owned()))?)
    }
}

/// Returns the tables for memory, messages, spawns, workers and items.
pub fn all(results: &Results) -> String {
    let cost = |what| format!("{what}:\n\n{}", cost(results, what));
    let of = |operation: Operation| [operation.time, operation.processor_time].map(cost);
    let (messages, spawns) = (of(figures::MESSAGE), of(figures::SPAWN));
    let last = [workers::all(results), growth::all(results)];
    [&[memory(results)], &messages[..], &spawns, &last]
        .concat()
        .join("\n")
}

/// The names of the items in the table.
const THINGS: [(&str, Kind); 5] = [
    ("dormant actor", Kind::Actor),
    ("waiting plain task", Kind::Task),
    ("waiting ask", Kind::Ask),
    ("timer", Kind::Timer),
    ("address", Kind::Address),
];

fn memory(results: &Results) -> String {
    let ways = WAYS.map(|(way, _)| way.to_owned());
    let mut table = heading(&[&["bytes".to_owned()], &ways[..]].concat());
    let row = |name, kind, what| {
        let cells = WAYS.map(|(way, _)| cell(results.median(way, Point::Memory(kind), what)));
        line(&[&[name], &cells[..]].concat())
    };
    for (thing, kind) in THINGS {
        for what in [figures::LIVE, figures::RESIDENT] {
            table += &row(format!("{thing}, {what}"), kind, what);
        }
    }
    for what in figures::OF_A_MILLION {
        table += &row(format!("each of {what}"), Kind::Million, what);
    }
    table
}

/// Returns a table with a row for each number of actors and way, and a column for each number of
/// workers.
fn cost(results: &Results, what: &str) -> String {
    let workers = WORKERS.map(in_words);
    let [live, way, ratio] = ["live actors", "", MORE].map(str::to_owned);
    let mut table = heading(&[&[live, way], &workers[..], &[ratio]].concat());
    for live in LIVE {
        for (way, _) in WAYS {
            let median = |workers| results.median(way, Point::Cost { live, workers }, what);
            let cells = WORKERS.map(|workers| cell(median(workers)));
            let begin = [live.to_string(), way.to_owned()];
            let end = [more(median(2), median(8))];
            table += &line(&[&begin, &cells[..], &end].concat());
        }
    }
    table
}

/// Returns "1 worker" or "2 workers".
pub fn in_words(workers: usize) -> String {
    format!("{workers} worker{}", if workers == 1 { "" } else { "s" })
}

/// The heading of the ratio that shows whether more workers than cores are as good as few.
const MORE: &str = "8 beside 2";

fn more(two: Option<Median>, eight: Option<Median>) -> String {
    let ratio = two.zip(eight).map(|(two, eight)| eight.middle / two.middle);
    ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn cell(median: Option<Median>) -> String {
    median.map_or("–".to_owned(), |median| median.to_string())
}

fn heading(cells: &[String]) -> String {
    format!("{}|{}\n", line(cells), "---|".repeat(cells.len()))
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_medians_and_what_more_workers_add() {
        let mut results = Results::default();
        for (workers, values) in [(2, [10.0, 12.0, 11.0]), (8, [33.0, 22.0, 11.0])] {
            let point = Point::Cost { live: 100, workers };
            for value in values {
                results.add(
                    "tokio",
                    point,
                    vec![(figures::SPAWN.time.to_owned(), value)],
                );
            }
        }
        let table = cost(&results, figures::SPAWN.time);
        let row =
            "| 100 | tokio | – | 11.00 (10.00 to 12.00) | – | 22.00 (11.00 to 33.00) | 2.00 |";
        assert_eq!(table.lines().nth(3), Some(row));
        assert_eq!(table.lines().count(), 2 + LIVE.len() * WAYS.len());
        assert!(!cost(&results, figures::MESSAGE.time).contains("11.00"));
    }
}
