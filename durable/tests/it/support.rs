//! What the tests share: stores, jobs, seeds.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::sim;
use greenroom::time::RetryIntervals;
use greenroom_durable::{FinalOutcome, JournalState, Queue, Serve, SimFile, Store, Stored};
use serde::{Deserialize, Serialize};

/// A job of the tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note(pub u64);

impl Stored for Note {
    const KIND: &'static str = "note/1";
}

/// The numbers of the events of a journal.
#[derive(Default, Serialize, Deserialize)]
pub struct Numbers(pub Vec<u64>);

impl Stored for Numbers {
    const KIND: &'static str = "numbers/1";
}

impl JournalState for Numbers {
    type Event = Note;

    fn apply(&mut self, event: &Note) {
        self.0.push(event.0);
    }
}

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Returns the first seeds, or as many as `GREENROOM_SEEDS` says.
pub fn seeds(few: u64) -> std::ops::Range<u64> {
    let many = std::env::var("GREENROOM_SEEDS").ok();
    0..many.map_or(few, |many| many.parse().unwrap())
}

/// Runs a test of a store in a simulation, with some seeds.
pub fn simulate<Fut: Future<Output = ()>>(test: impl Fn(SimFile, Store) -> Fut) {
    sim::explore(seeds(20), |_| async {
        let file = SimFile::new();
        let store = Store::simulated(&file).open().await.unwrap();
        test(file, store).await;
    });
}

pub async fn notes(store: &Store) -> Queue<Note> {
    store.queue("notes").open().await.unwrap()
}

/// Returns how most tests serve a queue: one worker, two retries after 1 s, a lease of 10 s.
pub fn one_worker() -> Serve {
    let retries = RetryIntervals::steps([secs(1); 2]).unwrap();
    Serve::workers(1).retries(retries).lease(secs(10))
}

/// A list that handlers write and a test reads.
#[derive(Clone, Default)]
pub struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T: Clone> Log<T> {
    pub fn new() -> Self {
        Log(Arc::new(Mutex::new(Vec::new())))
    }

    pub fn add(&self, value: T) {
        self.0.lock().unwrap().push(value);
    }

    pub fn all(&self) -> Vec<T> {
        self.0.lock().unwrap().clone()
    }
}

/// The error of handlers that fail.
#[derive(Debug)]
pub struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

/// Serves a queue until this job is done, and checks that it was not tried before.
pub async fn is_done_at_its_first_attempt(queue: &Queue<Note>, id: &str) {
    let workers = queue.serve(Serve::workers(1), |job| async move {
        assert_eq!(job.attempt(), 1);
        Ok::<(), Refused>(())
    });
    let workers = workers.await.unwrap();
    assert_eq!(queue.outcome(id).await.unwrap(), FinalOutcome::Done);
    workers.stop().await;
}
