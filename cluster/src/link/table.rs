//! `LinkTable`: the streams or the asks of a link, by their numbers.
//!
//! A table closes once, with its link. Nothing is added afterwards.

use std::collections::BTreeMap;
use std::sync::Mutex;

pub(super) struct LinkTable<T> {
    /// The last number that this node has given.
    last: u64,
    /// `None` once the link is down.
    pub(super) entries: Option<BTreeMap<u64, T>>,
}

impl<T> LinkTable<T> {
    pub(super) fn new() -> Mutex<Self> {
        Mutex::new(LinkTable {
            last: 0,
            entries: Some(BTreeMap::new()),
        })
    }

    /// Returns a number that this node has not given before.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn len(&self) -> usize {
        self.entries.as_ref().map_or(0, BTreeMap::len)
    }

    /// Adds an entry. Returns the old entry of this number, or an error if the link is down.
    pub(super) fn insert(&mut self, number: u64, entry: T) -> Result<Option<T>, ()> {
        let entries = self.entries.as_mut().ok_or(())?;
        Ok(entries.insert(number, entry))
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        self.entries.as_mut()?.remove(&number)
    }

    /// Takes all entries out, since the link is down. No other one is added.
    pub(super) fn close(&mut self) -> BTreeMap<u64, T> {
        self.entries.take().unwrap_or_default()
    }
}

impl<T: Clone> LinkTable<T> {
    pub(super) fn get(&self, number: u64) -> Option<T> {
        self.entries.as_ref()?.get(&number).cloned()
    }

    pub(super) fn all(&self) -> Vec<T> {
        let entries = self.entries.iter().flat_map(BTreeMap::values);
        entries.cloned().collect()
    }
}
