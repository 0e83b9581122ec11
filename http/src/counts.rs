//! What a server has done: requests by type and status, their durations, and the limits that were hit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// How often each status was the answer to requests of a type, and how long they took.
#[derive(Debug)]
pub(crate) struct Statuses(Box<[AtomicU64; STATUSES]>, Durations);

/// The upper bounds of durations in microseconds: those that OpenTelemetry advises for requests.
const BOUNDS: [u64; 14] = [
    5_000, 10_000, 25_000, 50_000, 75_000, 100_000, 250_000, 500_000, 750_000, 1_000_000,
    2_500_000, 5_000_000, 7_500_000, 10_000_000,
];

/// How many requests took how long. To count one costs two additions to atomics, and the two looks at
/// the clock that measure it.
#[derive(Debug, Default)]
struct Durations {
    /// Those up to each bound and above the one before. The last ones are longer.
    counts: [AtomicU64; BOUNDS.len() + 1],
    /// The duration of all of them.
    nanos: AtomicU64,
}

/// The durations at some moment: each bound in seconds with its count, and the sum in seconds.
#[derive(Debug, Clone)]
pub(crate) struct DurationNumbers {
    pub(crate) counts: Vec<(f64, u64)>,
    pub(crate) sum: f64,
}

/// The counts at some moment.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    /// Requests by the name of the type and by the status. Those of no type have no name.
    pub(crate) requests: Vec<(String, u16, u64)>,
    /// How long the requests of each type took, of those that had any.
    pub(crate) durations: Vec<(String, DurationNumbers)>,
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
        let counts = Box::new([const { AtomicU64::new(0) }; STATUSES]);
        Statuses(counts, Durations::default())
    }
}

impl Statuses {
    pub(crate) fn count(&self, status: u16) {
        if let Some(count) = self.0.get(usize::from(status)) {
            // Relaxed: only the number counts.
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the time from the head of a request to that of its answer.
    pub(crate) fn took(&self, duration: Duration) {
        let Durations { counts, nanos } = &self.1;
        let index = BOUNDS.partition_point(|bound| Duration::from_micros(*bound) < duration);
        // Relaxed: only the numbers count.
        counts[index].fetch_add(1, Ordering::Relaxed);
        let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        nanos.fetch_add(duration, Ordering::Relaxed);
    }

    fn durations(&self) -> DurationNumbers {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e6);
        // Relaxed: only the numbers count.
        let counts = self.1.counts.iter().map(|it| it.load(Ordering::Relaxed));
        DurationNumbers {
            counts: bounds.chain([f64::INFINITY]).zip(counts).collect(),
            sum: self.1.nanos.load(Ordering::Relaxed) as f64 / 1e9,
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
        let all: Vec<_> = [("", &self.others)].into_iter().chain(types).collect();
        let durations = all
            .iter()
            .map(|(name, of)| ((*name).to_owned(), of.durations()));
        let durations = durations.filter(|(_, of)| of.counts.iter().any(|(_, count)| *count > 0));
        let durations = durations.collect();
        let requests = all.into_iter().flat_map(|(name, statuses)| {
            let counted = statuses.counted();
            counted.map(move |(status, count)| (name.to_owned(), status, count))
        });
        Numbers {
            requests: requests.collect(),
            durations,
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
