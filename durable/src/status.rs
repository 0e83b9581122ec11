//! `QueueStatus`: how a queue fares.

use std::time::Duration;

use crate::records::command::{RawStatus, StoreAnswer};

/// How a queue fares, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStatus {
    /// The name of the queue.
    pub name: String,
    /// The jobs that wait: for a worker, for their time, for their retry, or for another job of their
    /// key.
    pub waiting: u64,
    /// The jobs that are in the hands of workers.
    pub running: u64,
    /// The jobs that wait for nothing but a worker, counted up to 1000.
    pub late: u64,
    /// The dead letters.
    pub dead: u64,
    /// All jobs that have ended well.
    pub done: u64,
    /// How long the oldest of the late jobs has been due.
    pub oldest: Option<Duration>,
    /// About how many jobs have ended well in the last minute.
    pub rate: u64,
    /// Whether the queue is paused.
    pub is_paused: bool,
}

impl QueueStatus {
    /// Returns the statuses of an answer.
    pub(crate) fn all(answer: StoreAnswer) -> Vec<QueueStatus> {
        match answer {
            StoreAnswer::Statuses(statuses) => statuses.into_iter().map(QueueStatus::new).collect(),
            _ => Vec::new(),
        }
    }

    fn new(raw: RawStatus) -> Self {
        let counts = raw.counts;
        QueueStatus {
            name: raw.name,
            waiting: counts.waiting as u64,
            running: counts.running as u64,
            late: raw.late as u64,
            dead: counts.dead as u64,
            done: counts.done as u64,
            oldest: raw.oldest.map(|ms| Duration::from_millis(ms as u64)),
            rate: raw.rate as u64,
            is_paused: counts.is_paused,
        }
    }
}
