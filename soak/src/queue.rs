//! The process `queue`: durable jobs and a journal in a file, killed and started again.
//!
//! What it knows it writes into a ledger outside of that file, a line at a time, before it does more. So
//! the parent reads all of it after a kill.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::time::RetryIntervals;
use greenroom_durable::{Job, JournalState, Queue, Serve, Store, Stored, TakenJob};
use serde::{Deserialize, Serialize};

use crate::life;
use crate::pace::{JOBS, Pace};
use crate::parent::jobs::Fact;
use crate::report::Tallies;

static PUT: AtomicU64 = AtomicU64::new(0);
static NOT_PUT: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);
static EVENTS: AtomicU64 = AtomicU64::new(0);

const WORKERS: usize = 8;

/// The tasks that put jobs. They share the syncs of the disk.
const PUTTERS: u64 = 16;

/// Half of the jobs have one of so many keys.
const KEYS: u64 = 64;

/// How long ids are kept, so the file stays small.
const WINDOW: Duration = Duration::from_secs(5);

/// The jobs of a process that was killed are given away again after this.
const LEASE: Duration = Duration::from_secs(5);

const RETRY: Duration = Duration::from_millis(20);

/// One job of so many fails at first, and another one panics.
const FAILS: u64 = 50;
const PANICS: u64 = 200;

/// One job of so many takes a while.
const LONG: u64 = 10;
const WHILE: Duration = Duration::from_millis(100);

/// Events a second, and between two snapshots.
const PACE_OF_EVENTS: u64 = 20;
const SNAPSHOT: u64 = 100;

/// A process of before may hold the file for a moment, and a stopped one for longer.
const BUSY: Duration = Duration::from_secs(60);

/// A job, whose number no other one has.
#[derive(Clone, Serialize, Deserialize)]
struct Parcel(u64);

impl Stored for Parcel {
    const KIND: &'static str = "parcel/1";
}

/// How many events there were.
#[derive(Default, Serialize, Deserialize)]
struct Steps(u64);

#[derive(Serialize, Deserialize)]
struct StepMade(u64);

impl Stored for Steps {
    const KIND: &'static str = "steps/1";
}

impl Stored for StepMade {
    const KIND: &'static str = "step/1";
}

impl JournalState for Steps {
    type Event = StepMade;

    fn apply(&mut self, step: &StepMade) {
        self.0 = step.0;
    }
}

/// The ledger outside of the file.
#[derive(Clone)]
struct Outside(Arc<File>);

impl Outside {
    fn open(path: &str) -> Outside {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Outside(Arc::new(file.expect("a ledger")))
    }

    /// Writes a line, at once and whole.
    fn note(&self, fact: Fact) {
        let written = (&*self.0).write_all(fact.line().as_bytes());
        written.expect("the ledger can be written");
    }
}

/// Puts and does jobs to the order to end.
pub fn live(file: &str, ledger: &str, life: u64) {
    let outside = Outside::open(ledger);
    let runtime = greenroom::Runtime::builder().workers(2).on_fault(|_| {});
    let runtime = runtime.build().expect("a runtime");
    let sentences = runtime.block_on(async {
        let store = Store::sqlite(file).busy_limit(BUSY).open().await;
        let store = store.expect("the file");
        let queue = store.queue::<Parcel>("parcels").window(WINDOW);
        let queue = queue.open().await.expect("the queue");
        life::begin(tallies);
        let notes = outside.clone();
        let handler = move |job| deliver(job, notes.clone());
        let workers = queue.serve(serve(), handler).await;
        let workers = workers.expect("the store is open");
        let events = greenroom::spawn(append(store.clone(), outside.clone()));
        let putters = (0..PUTTERS).map(|first| {
            let first = (life << 32) + first;
            greenroom::spawn(put(queue.clone(), first, outside.clone()))
        });
        let putters: Vec<_> = putters.collect();
        for putter in putters {
            putter.await;
        }
        events.await;
        // Until all of them are done.
        let mut sentences = Vec::new();
        if let Err(error) = queue.drain().await {
            sentences.push(format!("queue: not drained: {error}"));
        }
        workers.stop().await;
        sentences.extend(left(&queue).await);
        store.close().await;
        sentences.extend(damages(file).await);
        sentences
    });
    life::end(sentences);
}

fn serve() -> Serve {
    let retries = RetryIntervals::every(RETRY);
    Serve::workers(WORKERS).retries(retries).lease(LEASE)
}

/// Does a job, unless it is one that fails at first.
async fn deliver(job: TakenJob<Parcel>, outside: Outside) -> Result<(), &'static str> {
    let is_first = job.attempt() == 1;
    if is_first && job.0.is_multiple_of(FAILS) {
        FAILED.fetch_add(1, Ordering::Relaxed);
        return Err("it fails at first");
    }
    if is_first && job.0 % PANICS == 1 {
        FAILED.fetch_add(1, Ordering::Relaxed);
        life::inject_panic();
    }
    greenroom::yield_now().await;
    outside.note(Fact::Done(job.0));
    DONE.fetch_add(1, Ordering::Relaxed);
    if job.0.is_multiple_of(LONG) {
        // A kill may come before the end is stored: then the job is done again.
        greenroom::time::sleep(WHILE).await;
    }
    Ok(())
}

/// Puts each of so many numbers, from the first one on.
async fn put(queue: Queue<Parcel>, first: u64, outside: Outside) {
    let mut pace = Pace::new(JOBS.div_ceil(PUTTERS));
    for number in (first..).step_by(PUTTERS as usize) {
        if life::ends() {
            return;
        }
        let job = Job::new(Parcel(number)).id(number.to_string());
        let job = match number / PUTTERS % 2 {
            0 => job,
            _ => job.key((number % KEYS).to_string()),
        };
        match queue.put(job).await {
            Ok(_) => {
                outside.note(Fact::Put(number));
                PUT.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => drop(NOT_PUT.fetch_add(1, Ordering::Relaxed)),
        }
        pace.done(1).await;
    }
}

/// Appends events to the journal, each with its number.
async fn append(store: Store, outside: Outside) {
    let mut pace = Pace::new(PACE_OF_EVENTS);
    while !life::ends() {
        let journal = store.journal::<Steps>("steps", "all");
        let Ok(mut journal) = journal.snapshot_every(SNAPSHOT).open().await else {
            pace.done(1).await;
            continue;
        };
        outside.note(Fact::Opened(journal.state().0));
        while !life::ends() {
            let next = journal.state().0 + 1;
            if journal.append([StepMade(next)]).await.is_err() {
                break;
            }
            outside.note(Fact::Event(next));
            EVENTS.fetch_add(1, Ordering::Relaxed);
            pace.done(1).await;
        }
    }
}

/// Returns what a drained queue has left.
async fn left(queue: &Queue<Parcel>) -> Option<String> {
    match queue.status().await {
        Err(error) => Some(format!("queue: no status: {error}")),
        Ok(status) if status.waiting + status.running + status.dead > 0 => {
            Some(format!("queue: drained, and yet {status:?}"))
        }
        Ok(_) => None,
    }
}

/// Returns what is damaged in the file.
async fn damages(file: &str) -> Option<String> {
    match Store::check(file).await {
        Err(error) => Some(format!("queue: the file cannot be checked: {error}")),
        Ok(report) if report.damages.is_empty() => None,
        Ok(report) => Some(format!("queue: the file is damaged: {:?}", report.damages)),
    }
}

fn tallies() -> Tallies {
    let counts = [
        ("put", &PUT),
        ("not put", &NOT_PUT),
        ("done", &DONE),
        ("failed attempts", &FAILED),
        ("events", &EVENTS),
    ];
    let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
    counts
        .map(|(name, count)| (name.to_owned(), get(count)))
        .into()
}
