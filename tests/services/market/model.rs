//! Random histories of markets in simulations, beside a book of all jobs.
//!
//! Producers offer, cancel, await and drop; jobs sleep, panic, offer and stop. The book says at
//! each begin which job is next, at each refusal why, and at the end what has become of each job.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::time::{sleep, timeout};

use super::*;
use crate::support::{Draws, keep_bombs_quiet};

const SEEDS: u64 = 600;
const PRODUCERS: u64 = 4;
const OPERATIONS: usize = 25;

/// A job that was accepted and has not ended.
struct Entry {
    key: Option<u32>,
    priority: u32,
    /// The number of its first try.
    age: usize,
    is_running: bool,
    is_cancelled: bool,
}

/// What has become of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Done,
    Panicked,
    Cancelled,
    /// It has not begun.
    Discarded,
}

struct Book {
    workers: usize,
    room: usize,
    capacity_per_key: usize,
    jobs: BTreeMap<usize, Entry>,
    fates: BTreeMap<usize, Fate>,
    tries: usize,
    /// The producers that wait for room, or were given some.
    producers: usize,
    is_closed: bool,
    is_stopped: bool,
}

impl Book {
    fn running(&self) -> usize {
        self.jobs.values().filter(|job| job.is_running).count()
    }

    fn waiting(&self) -> usize {
        self.jobs.len() - self.running()
    }

    fn is_served(&self, key: Option<u32>) -> bool {
        let mut running = self.jobs.values().filter(|job| job.is_running);
        key.is_some() && running.any(|job| job.key == key)
    }

    fn is_key_busy(&self, key: Option<u32>) -> bool {
        let of_key = self.jobs.values().filter(|job| job.key == key).count();
        key.is_some() && of_key > self.capacity_per_key
    }

    fn begin(&mut self, id: usize) {
        assert!(!self.is_stopped, "job {id} begins after the stop");
        assert!(self.running() < self.workers, "too many workers");
        let own = &self.jobs[&id];
        assert!(!own.is_running && !own.is_cancelled);
        assert!(!self.is_served(own.key), "two jobs of a key run");
        let rank = |job: &Entry| (u32::MAX - job.priority, job.age);
        let first = rank(own);
        for (other, job) in &self.jobs {
            let may_run = !job.is_running && !self.is_served(job.key);
            assert!(!may_run || first <= rank(job), "{other} goes before {id}");
        }
        self.jobs.get_mut(&id).expect("just seen").is_running = true;
    }

    fn end(&mut self, id: usize, fate: Fate) {
        assert!(self.jobs.remove(&id).is_some(), "job {id} ends twice");
        assert_eq!(self.fates.insert(id, fate), None);
    }

    /// Notes a stop: jobs that wait will not begin.
    fn stop(&mut self) {
        (self.is_closed, self.is_stopped) = (true, true);
        let waits = |(id, job): (&usize, &Entry)| (!job.is_running).then_some(*id);
        for id in self.jobs.iter().filter_map(waits).collect::<Vec<_>>() {
            self.end(id, Fate::Discarded);
        }
    }

    /// Checks the outcome of an accepted job.
    fn check(&self, id: usize, outcome: &Result<usize, JobError>) {
        let fate = match outcome {
            Ok(result) => {
                assert_eq!(*result, id);
                Fate::Done
            }
            Err(JobError::Panicked(_)) => Fate::Panicked,
            Err(JobError::Cancelled) => Fate::Cancelled,
            Err(JobError::Discarded) => Fate::Discarded,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(self.fates.get(&id), Some(&fate), "job {id}");
    }
}

/// Ends a job in the book, also when it panics.
struct Running(Arc<Mutex<Book>>, usize);

impl Drop for Running {
    fn drop(&mut self) {
        let fate = match std::thread::panicking() {
            true => Fate::Panicked,
            false => Fate::Done,
        };
        self.0.lock().unwrap().end(self.1, fate);
    }
}

/// A producer, and what its jobs use.
#[derive(Clone)]
struct Producer {
    market: Market<u32>,
    book: Arc<Mutex<Book>>,
    draws: Draws,
}

/// A job that is offered: its number, key and priority.
#[derive(Clone, Copy)]
struct Offer {
    id: usize,
    key: Option<u32>,
    priority: u32,
}

type Work = Box<dyn FnOnce() -> usize + Send>;

impl Producer {
    fn draw(&mut self) -> (Offer, Job<u32, Work>) {
        let mut book = self.book.lock().unwrap();
        book.tries += 1;
        let id = book.tries;
        drop(book);
        let offer = Offer {
            id,
            key: (!self.draws.one_in(4)).then(|| self.draws.below(3) as u32),
            priority: self.draws.below(3) as u32,
        };
        let mut own = self.clone();
        own.draws = Draws::of(self.draws.below(1 << 30) as u64, id as u64);
        let work: Work = Box::new(move || own.run(id));
        let job = Job::new(work).priority(offer.priority);
        let job = match offer.key {
            Some(key) => job.key(key),
            None => job,
        };
        (offer, job)
    }

    /// What a job does.
    fn run(mut self, id: usize) -> usize {
        self.book.lock().unwrap().begin(id);
        let _running = Running(self.book.clone(), id);
        if self.draws.one_in(2) {
            let nap = sleep(self.draws.millis(5));
            Runtime::current().block_on(nap);
        }
        let is_cancelled = self.book.lock().unwrap().jobs[&id].is_cancelled;
        assert_eq!(market::is_cancelled(), is_cancelled);
        if self.draws.one_in(5) {
            drop(self.try_offer());
        }
        if self.draws.one_in(60) {
            self.stop();
        }
        assert!(!self.draws.one_in(6), "bomb");
        id
    }

    fn stop(&self) {
        self.book.lock().unwrap().stop();
        self.market.stop();
    }

    /// Enters an answer to an offer in the book.
    fn enter(
        &self,
        offer: Offer,
        answer: Result<JobHandle<usize>, TryOfferError<Job<u32, Work>>>,
    ) -> Option<(usize, JobHandle<usize>)> {
        let mut book = self.book.lock().unwrap();
        let Offer { id, key, priority } = offer;
        match answer {
            Ok(handle) => {
                assert!(!book.is_closed && book.waiting() < book.room);
                assert!(!book.is_key_busy(key), "a key has too many jobs");
                let entry = Entry {
                    key,
                    priority,
                    age: id,
                    is_running: false,
                    is_cancelled: false,
                };
                book.jobs.insert(id, entry);
                return Some((id, handle));
            }
            Err(TryOfferError::KeyBusy(_)) => assert!(book.is_key_busy(key)),
            Err(TryOfferError::Stopping(_)) => assert!(book.is_closed),
            Err(TryOfferError::Full(_)) => {
                let is_full = book.waiting() >= book.room;
                assert!(is_full || book.producers > 0);
            }
        }
        None
    }

    fn try_offer(&mut self) -> Option<(usize, JobHandle<usize>)> {
        let (offer, job) = self.draw();
        let answer = self.market.try_offer(job);
        self.enter(offer, answer)
    }

    /// Offers, and may give up after some time.
    async fn offer(&mut self) -> Option<(usize, JobHandle<usize>)> {
        let (offer, job) = self.draw();
        let patience = match self.draws.one_in(3) {
            true => self.draws.millis(5),
            false => Duration::from_secs(1000),
        };
        self.book.lock().unwrap().producers += 1;
        let answer = timeout(patience, self.market.offer(job)).await;
        self.book.lock().unwrap().producers -= 1;
        let answer = answer.ok()?.map_err(|error| match error {
            OfferError::KeyBusy(job) => TryOfferError::KeyBusy(job),
            OfferError::Stopping(job) => TryOfferError::Stopping(job),
        });
        self.enter(offer, answer)
    }

    fn cancel(&self, id: usize, job: &JobHandle<usize>) {
        let was_waiting = {
            let mut book = self.book.lock().unwrap();
            let entry = book.jobs.get_mut(&id);
            let was_waiting = entry.as_ref().is_some_and(|job| !job.is_running);
            if let Some(entry) = entry {
                entry.is_cancelled = true;
            }
            if was_waiting {
                book.end(id, Fate::Cancelled);
            }
            was_waiting
        };
        assert_eq!(job.cancel(), was_waiting, "job {id}");
    }

    /// Does something, as often as [`OPERATIONS`] says. Returns the handles that are left.
    async fn produce(mut self) -> Vec<(usize, JobHandle<usize>)> {
        let mut handles = Vec::new();
        for _ in 0..OPERATIONS {
            match self.draws.below(8) {
                0..3 => handles.extend(self.offer().await),
                3..5 => handles.extend(self.try_offer()),
                5 => sleep(self.draws.millis(4)).await,
                _ if handles.is_empty() => {}
                6 => {
                    let (id, job) = &handles[self.draws.below(handles.len())];
                    self.cancel(*id, job);
                }
                _ => {
                    let (id, job) = handles.swap_remove(self.draws.below(handles.len()));
                    if self.draws.one_in(3) {
                        drop(job);
                    } else {
                        let outcome = job.await;
                        self.book.lock().unwrap().check(id, &outcome);
                    }
                }
            }
            let book = self.book.lock().unwrap();
            let status = self.market.status();
            assert_eq!(status.waiting, book.waiting());
            assert_eq!(status.running, book.running());
        }
        handles
    }
}

async fn history(seed: u64) {
    let mut draws = Draws::of(seed, 0);
    let capacity_per_key = draws.below(3).saturating_sub(1);
    let (workers, room) = (1 + draws.below(3), 1 + draws.below(4));
    let market = Market::builder().max_workers(workers).capacity(room);
    let market = market.capacity_per_key(capacity_per_key).build().unwrap();
    let book = Arc::new(Mutex::new(Book {
        workers,
        room,
        capacity_per_key,
        jobs: BTreeMap::new(),
        fates: BTreeMap::new(),
        tries: 0,
        producers: 0,
        is_closed: false,
        is_stopped: false,
    }));
    let producer = |number| Producer {
        market: market.clone(),
        book: book.clone(),
        draws: Draws::of(seed, number),
    };
    let producers: Vec<_> = (1..=PRODUCERS)
        .map(|number| greenroom::spawn(producer(number).produce()))
        .collect();
    let own = producer(PRODUCERS + 1);
    let mut handles = Vec::new();
    if draws.one_in(3) {
        sleep(draws.millis(30)).await;
        own.stop();
    }
    for producer in producers {
        handles.extend(producer.await);
    }
    book.lock().unwrap().is_closed = true;
    market.drain().await;
    let status = market.status();
    assert_eq!((status.waiting, status.running, status.idle), (0, 0, 0));
    assert_eq!(status.created, status.died);
    assert!(book.lock().unwrap().jobs.is_empty());
    for (id, job) in handles {
        assert!(job.is_finished());
        let outcome = job.await;
        book.lock().unwrap().check(id, &outcome);
    }
}

#[test]
fn random_histories_agree_with_a_book_of_all_jobs() {
    within(WATCH, || {
        keep_bombs_quiet();
        for seed in 0..SEEDS {
            let _named = crate::support::matrix::Named(format!("seed {seed}"));
            let runtime = Runtime::builder().policy(Simulated::new(seed));
            let runtime = runtime.on_fault(|_| {}).build().unwrap();
            runtime.block_on(history(seed));
        }
    });
}
