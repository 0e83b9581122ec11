//! What the processes say to each other: a line of JSON for a report, and a word for an order.

use std::collections::BTreeMap;
use std::io::Write;

use serde::{Deserialize, Serialize};

/// Counts by their names.
pub type Tallies = BTreeMap<String, u64>;

/// A line that a process writes to its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Report {
    /// It has begun to work.
    Ready,
    /// What it has counted in this life, once a second and at the end.
    Counts(Tallies),
    /// A ledger is not even, or something is wrong, with a sentence about it.
    Wrong(String),
    /// It was told to end, and has ended well.
    Ended,
}

impl Report {
    /// Writes the report as one line.
    pub fn say(&self) {
        let mut line = serde_json::to_string(self).expect("a report is JSON");
        line.push('\n');
        // If the parent has ended, so does this process: its input ends.
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    }

    /// Reads a line. Any other text is no report.
    pub fn read(line: &str) -> Option<Report> {
        serde_json::from_str(line).ok()
    }
}

/// A word that the parent writes to the input of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Uses up all descriptors for a moment.
    Descriptors,
    /// Lets no thread start for a moment.
    Threads,
    /// Stops the load, checks the ledger, and ends.
    End,
}

impl Order {
    const ALL: [Order; 3] = [Order::Descriptors, Order::Threads, Order::End];

    pub fn word(self) -> &'static str {
        match self {
            Order::Descriptors => "descriptors",
            Order::Threads => "threads",
            Order::End => "end",
        }
    }

    /// Reads a line of the input.
    pub fn read(line: &str) -> Option<Order> {
        Order::ALL.into_iter().find(|order| order.word() == line)
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, Report, Tallies};

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let counts = Tallies::from([("sent".to_owned(), 7), ("wrong".to_owned(), u64::MAX)]);
        for report in [
            Report::Ready,
            Report::Counts(counts),
            Report::Wrong("a \"sentence\"\nof two lines".into()),
            Report::Ended,
        ] {
            let line = serde_json::to_string(&report).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Report::read(&line), Some(report));
        }
        assert_eq!(Report::read("greenroom: a warning"), None);
    }

    #[test]
    fn an_order_is_read_as_it_was_written() {
        for order in Order::ALL {
            assert_eq!(Order::read(order.word()), Some(order));
        }
        assert_eq!(Order::read("halt"), None);
    }
}
