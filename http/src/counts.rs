//! What a server has done: requests by type and status, and the limits that were hit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The counts of a server, for its pages. Each type has its own [`Statuses`].
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Of requests for no type.
    pub(crate) others: Statuses,
    limits: Mutex<BTreeMap<&'static str, u64>>,
    /// Requests that were refused for their callers, by the cause.
    refused: Mutex<BTreeMap<&'static str, u64>>,
    connections: AtomicU64,
    open: AtomicUsize,
}

/// The statuses that are counted: a response is completed only with one below this.
const STATUSES: usize = 600;

/// How often each status was the answer to requests of a type.
#[derive(Debug)]
pub(crate) struct Statuses(Box<[AtomicU64; STATUSES]>);

/// The counts at some moment.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    /// Requests by the name of the type and by the status. Those of no type have no name.
    pub(crate) requests: Vec<(String, u16, u64)>,
    /// How often each limit was hit, by its name in `Limits`.
    pub(crate) limits: BTreeMap<&'static str, u64>,
    /// How often a caller was refused, by the cause.
    pub(crate) refused: BTreeMap<&'static str, u64>,
    /// The connections that were accepted, and those of them that are open.
    pub(crate) connections: u64,
    pub(crate) open: usize,
    /// The requests for which actors work.
    pub(crate) in_flight: usize,
}

impl Default for Statuses {
    fn default() -> Self {
        Statuses(Box::new([const { AtomicU64::new(0) }; STATUSES]))
    }
}

impl Statuses {
    pub(crate) fn count(&self, status: u16) {
        if let Some(count) = self.0.get(usize::from(status)) {
            // Relaxed: only the number counts.
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the statuses that were counted.
    fn counted(&self) -> impl Iterator<Item = (u16, u64)> {
        // Relaxed: only the number counts.
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        (0..).zip(counts).filter(|(_, count)| *count > 0)
    }
}

impl Counts {
    pub(crate) fn limit(&self, name: &'static str) {
        *lock(&self.limits).entry(name).or_default() += 1;
    }

    pub(crate) fn refused(&self, cause: &'static str) {
        *lock(&self.refused).entry(cause).or_default() += 1;
    }

    /// Counts a connection that was accepted and is open.
    pub(crate) fn opened(&self) {
        // Relaxed: only the numbers count.
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn closed(&self) {
        // Relaxed: only the number counts.
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns all counts, with those of the types by their names, and this number of requests for which
    /// actors work.
    pub(crate) fn now<'a>(
        &'a self,
        types: impl Iterator<Item = (&'a str, &'a Statuses)>,
        in_flight: usize,
    ) -> Numbers {
        let all = [("", &self.others)].into_iter().chain(types);
        let requests = all.flat_map(|(name, statuses)| {
            let counted = statuses.counted();
            counted.map(move |(status, count)| (name.to_owned(), status, count))
        });
        Numbers {
            requests: requests.collect(),
            limits: lock(&self.limits).clone(),
            refused: lock(&self.refused).clone(),
            // Relaxed: only the numbers count.
            connections: self.connections.load(Ordering::Relaxed),
            open: self.open.load(Ordering::Relaxed),
            in_flight,
        }
    }
}

fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
