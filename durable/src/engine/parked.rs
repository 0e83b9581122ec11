//! The commands that wait, each for a topic or for its time.

use std::collections::{BTreeMap, BTreeSet};

use super::Entry;
use crate::records::tx::WakeTopic;

#[derive(Default)]
pub(crate) struct Parked {
    topics: BTreeMap<WakeTopic, ParkedTopic>,
    /// The topics that have a time.
    timed: BTreeSet<(i64, WakeTopic)>,
}

#[derive(Default)]
struct ParkedTopic {
    until: Option<i64>,
    entries: Vec<Entry>,
}

impl Parked {
    /// Adds a command, and sets the time of its topic.
    pub(crate) fn park(&mut self, topic: WakeTopic, until: Option<i64>, entry: Entry) {
        let parked = self.topics.entry(topic.clone()).or_default();
        if let Some(before) = std::mem::replace(&mut parked.until, until) {
            self.timed.remove(&(before, topic.clone()));
        }
        self.timed.extend(until.map(|until| (until, topic)));
        // Those that are not wanted any more would stay until their topic is touched.
        if parked.entries.len().is_power_of_two() {
            parked.entries.retain(Entry::is_wanted);
        }
        parked.entries.push(entry);
    }

    /// Takes the commands of a topic.
    pub(crate) fn take(&mut self, topic: &WakeTopic) -> Vec<Entry> {
        let Some(parked) = self.topics.remove(topic) else {
            return Vec::new();
        };
        if let Some(until) = parked.until {
            self.timed.remove(&(until, topic.clone()));
        }
        parked.entries
    }

    /// Takes the commands whose time has come.
    pub(crate) fn take_due(&mut self, now: i64) -> Vec<Entry> {
        let due = self.timed.iter().take_while(|(until, _)| *until <= now);
        let due: Vec<_> = due.map(|(_, topic)| topic.clone()).collect();
        due.iter().flat_map(|topic| self.take(topic)).collect()
    }

    pub(crate) fn take_all(&mut self) -> Vec<Entry> {
        self.timed.clear();
        let topics = std::mem::take(&mut self.topics);
        topics
            .into_values()
            .flat_map(|parked| parked.entries)
            .collect()
    }

    /// Returns when the next time comes.
    pub(crate) fn next_due(&self) -> Option<i64> {
        self.timed.first().map(|(until, _)| *until)
    }
}
