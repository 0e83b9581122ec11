//! What a server has done: requests by type and status, and the limits that were hit.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The counts of a server, for its pages.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Numbers>);

#[derive(Debug, Default, Clone)]
pub(crate) struct Numbers {
    /// The requests by the name of the type and by the status. Those of no type have no name.
    pub(crate) requests: BTreeMap<String, BTreeMap<u16, u64>>,
    /// How often each limit was hit, by its name in `Limits`.
    pub(crate) limits: BTreeMap<&'static str, u64>,
    /// The connections that were accepted.
    pub(crate) connections: u64,
}

impl Counts {
    pub(crate) fn request(&self, name: &str, status: u16) {
        let mut numbers = self.numbers();
        if !numbers.requests.contains_key(name) {
            numbers.requests.insert(name.to_owned(), BTreeMap::new());
        }
        // The names are those of registered types, so there are few.
        let statuses = numbers.requests.get_mut(name);
        *statuses
            .expect("it was just there")
            .entry(status)
            .or_default() += 1;
    }

    pub(crate) fn limit(&self, name: &'static str) {
        *self.numbers().limits.entry(name).or_default() += 1;
    }

    pub(crate) fn connection(&self) {
        self.numbers().connections += 1;
    }

    pub(crate) fn now(&self) -> Numbers {
        self.numbers().clone()
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
