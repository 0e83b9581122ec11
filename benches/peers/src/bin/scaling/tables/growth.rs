//! The tables of what an item costs beside ever more of its kind.

use super::{Results, cell, heading, line};
use crate::figures;
use crate::growth::{COUNTS, Costs, Item, bends, grows, instructions};
use crate::point::{Point, WAYS};

/// Returns the tables for time, instructions and memory.
pub fn all(results: &Results) -> String {
    let tables = [
        ("ns of each item, on one worker", time(results)),
        ("instructions of each item, greenroom", counts(results)),
        ("live bytes of each item", bytes(results)),
    ];
    tables
        .map(|(what, table)| format!("{what}:\n\n{table}"))
        .join("\n")
}

/// Returns what takes more instructions than n log n allows, for a report of failures.
pub fn failures(results: &Results) -> Vec<String> {
    let steps = all_steps();
    let growing = steps.filter_map(|(item, step)| {
        let growth = grows(&median_instructions(results, item, step))?;
        let name = item.name();
        Some(format!(
            "{name}, {step}: each of the most takes {growth:.2} times as many instructions"
        ))
    });
    growing.collect()
}

fn all_steps() -> impl Iterator<Item = (Item, &'static str)> {
    let steps = |item: Item| item.steps().iter().map(move |step| (item, *step));
    Item::ALL.into_iter().flat_map(steps)
}

/// Returns the points that have a figure in the table for a way.
fn points(way: &'static str, item: Item) -> Option<[Point; COUNTS.len()]> {
    let points = COUNTS.map(|count| Point::Growth { item, count });
    points[0].is_in(way).then_some(points)
}

fn medians(results: &Results, way: &'static str, item: Item, what: &str) -> Costs {
    let median = |count| results.median(way, Point::Growth { item, count }, what);
    COUNTS.map(|count| median(count).map(|median| median.middle))
}

fn median_instructions(results: &Results, item: Item, step: &str) -> Costs {
    medians(results, WAYS[0].0, item, &instructions::of(step))
}

fn head(first: &[&str], last: Option<&str>) -> String {
    let counts = COUNTS.map(|count| count.to_string());
    let names = first.iter().map(|name| (*name).to_owned());
    let last = last.map(str::to_owned);
    heading(&names.chain(counts).chain(last).collect::<Vec<_>>())
}

fn time(results: &Results) -> String {
    let mut table = head(&["item", "step", ""], Some("bends at"));
    for (item, step) in all_steps() {
        for (way, _) in WAYS {
            let Some(points) = points(way, item) else {
                continue;
            };
            let cells = points.map(|point| cell(results.median(way, point, step)));
            let counted = match way == WAYS[0].0 {
                true => median_instructions(results, item, step),
                false => Costs::default(),
            };
            let bends = bends(&medians(results, way, item, step), &counted);
            let begin = [item.name(), step, way].map(str::to_owned);
            table += &line(&[&begin, &cells[..], &[bends]].concat());
        }
    }
    table
}

fn counts(results: &Results) -> String {
    let mut table = head(&["item", "step"], Some("grows"));
    for (item, step) in all_steps() {
        let costs = median_instructions(results, item, step);
        let cells = costs.map(|cost| cost.map_or("–".to_owned(), |cost| format!("{cost:.0}")));
        let grows = grows(&costs).map_or(String::new(), |growth| format!("{growth:.2} ×"));
        let begin = [item.name(), step].map(str::to_owned);
        table += &line(&[&begin, &cells[..], &[grows]].concat());
    }
    table
}

fn bytes(results: &Results) -> String {
    let mut table = head(&["item", ""], None);
    for item in Item::ALL {
        for (way, _) in WAYS {
            let Some(points) = points(way, item) else {
                continue;
            };
            let cells = points.map(|point| cell(results.median(way, point, figures::LIVE)));
            let begin = [item.name(), way].map(str::to_owned);
            table += &line(&[&begin[..], &cells].concat());
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_takes_more_than_n_log_n_is_a_failure() {
        let mut results = Results::default();
        for (count, cost) in [(1000, 100.0), (100_000, 120.0), (1_000_000, 240.0)] {
            let point = Point::Growth {
                item: Item::Name,
                count,
            };
            let figure = |step, cost| (instructions::of(step), cost);
            let figures = vec![figure("register", cost), figure("look up", 100.0)];
            results.add("greenroom", point, figures);
        }
        let failures = failures(&results);
        let text = "name, register: each of the most takes 2.40 times as many instructions";
        assert_eq!(failures, [text]);
        assert!(counts(&results).contains("| name | register | – | 100 | 120 | 240 | 2.40 × |"));
        assert!(counts(&results).contains("| name | look up | – | 100 | 100 | 100 |  |"));
    }
}
