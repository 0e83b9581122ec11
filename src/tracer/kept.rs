//! The last lines of a trace in memory, so that a look at an actor has those that are about it.
//!
//! Only so many are kept, of all actors together. The oldest one makes way.

use std::collections::VecDeque;

use crate::sync::Mutex;

pub(super) struct KeptLines {
    most: usize,
    /// Each with the id of its actor, oldest first.
    lines: Mutex<VecDeque<(u64, Box<str>)>>,
}

impl KeptLines {
    pub(super) fn new(most: usize) -> Self {
        KeptLines {
            most,
            lines: Mutex::new(VecDeque::new()),
        }
    }

    /// Adds a line about the actor with this id, or about none if that is 0.
    pub(super) fn add(&self, id: u64, line: &[u8]) {
        let line = String::from_utf8_lossy(line.trim_ascii_end()).into();
        let mut lines = self.lines.lock();
        lines.push_back((id, line));
        let oldest = match lines.len() > self.most {
            true => lines.pop_front(),
            false => None,
        };
        drop(lines);
        drop(oldest);
    }

    /// Returns the lines about an actor, the oldest first.
    pub(super) fn of(&self, id: u64) -> Vec<String> {
        let lines = self.lines.lock();
        let own = lines.iter().filter(|(of, _)| *of == id);
        own.map(|(_, line)| line.to_string()).collect()
    }
}
