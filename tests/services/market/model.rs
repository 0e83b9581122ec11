//! Random histories of markets in simulations, beside a book of all jobs.
//!
//! Producers offer, cancel, await and drop; jobs sleep, fail, panic, offer and stop, at once or not. Some jobs are
//! delayed or tried again; some markets age their jobs, limit keys by a rate or reserve a worker.
//! The book says at each begin which job is next and that it is due, at each refusal why, and at
//! the end what has become of each job.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::time::{Instant, RetryIntervals, sleep, timeout};

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
    /// When it was due first.
    due: Instant,
    /// When it may begin.
    from: Instant,
    /// How often it may still be tried again, each time after so long a pause.
    retries: u64,
    pause: Duration,
    is_running: bool,
    is_cancelled: bool,
}

/// What has become of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Done,
    /// Its last attempt has returned an error.
    Failed,
    Panicked,
    Cancelled,
    /// It has not begun.
    Discarded,
}

struct Book {
    workers: usize,
    room: usize,
    capacity_per_key: usize,
    aging: Option<Duration>,
    rate: Option<(usize, Duration)>,
    reserved: Option<(u32, usize)>,
    jobs: BTreeMap<usize, Entry>,
    /// All starts of keys.
    starts: Vec<(u32, Instant)>,
    retried: u64,
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

    /// Returns what sorts a job: its priority with what it has gained, its priority, its age.
    fn rank(&self, job: &Entry) -> (i128, u32, usize) {
        let gained = self.aging.map_or(0, |step| {
            let waited = job.due.elapsed().as_nanos() as i128;
            waited + i128::from(job.priority) * step.as_nanos() as i128
        });
        (-gained, u32::MAX - job.priority, job.age)
    }

    /// Returns whether no worker is reserved for a job.
    fn is_other(&self, job: &Entry) -> bool {
        self.reserved
            .is_some_and(|(priority, _)| job.priority < priority)
    }

    /// Returns whether a job could begin now: it is due, its key is free and not limited, and a
    /// worker may take it.
    fn may_begin(&self, job: &Entry) -> bool {
        let now = Instant::now();
        let is_limited = self.rate.is_some_and(|(starts, per)| {
            let counts = |it: &&(u32, Instant)| job.key == Some(it.0) && it.1 + per > now;
            self.starts.iter().filter(counts).count() >= starts
        });
        let running = self.jobs.values().filter(|it| it.is_running);
        let others = running.filter(|it| self.is_other(it)).count();
        let reserved = self.reserved.map_or(0, |(_, workers)| workers);
        let has_worker = !self.is_other(job) || others < self.workers - reserved;
        // Those of its key that are due go first even if no worker may take them.
        let is_first = |it: &Entry| {
            let is_rival = it.key == job.key && !it.is_running && it.from <= now;
            !is_rival || self.rank(job) <= self.rank(it)
        };
        let is_first = job.key.is_none() || self.jobs.values().all(is_first);
        let is_due = !job.is_running && job.from <= now;
        is_due && is_first && has_worker && !is_limited && !self.is_served(job.key)
    }

    fn begin(&mut self, id: usize) {
        assert!(!self.is_stopped, "job {id} begins after the stop");
        assert!(self.running() < self.workers, "too many workers");
        let own = &self.jobs[&id];
        assert!(
            !own.is_cancelled && self.may_begin(own),
            "job {id} may not begin"
        );
        let first = self.rank(own);
        for (other, job) in &self.jobs {
            let is_next = !self.may_begin(job) || first <= self.rank(job);
            assert!(is_next, "{other} goes before {id}");
        }
        self.starts.extend(own.key.map(|key| (key, Instant::now())));
        self.jobs.get_mut(&id).expect("just seen").is_running = true;
    }

    /// Ends an attempt, and the job unless it is tried again.
    fn end_attempt(&mut self, id: usize, fate: Fate) {
        let is_stopped = self.is_stopped;
        let job = self.jobs.get_mut(&id).expect("it runs");
        let may_retry = fate != Fate::Done && job.retries > 0;
        if may_retry && (job.is_cancelled || is_stopped) {
            let is_cancelled = job.is_cancelled;
            let fate = if is_cancelled {
                Fate::Cancelled
            } else {
                Fate::Discarded
            };
            return self.end(id, fate);
        }
        if !may_retry {
            return self.end(id, fate);
        }
        job.retries -= 1;
        job.is_running = false;
        job.from = Instant::now() + job.pause;
        self.retried += 1;
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
    fn check(&self, id: usize, outcome: &Result<Result<usize, ()>, JobError>) {
        let fate = match outcome {
            Ok(Ok(result)) => {
                assert_eq!(*result, id);
                Fate::Done
            }
            Ok(Err(())) => Fate::Failed,
            Err(JobError::Panicked(_)) => Fate::Panicked,
            Err(JobError::Cancelled) => Fate::Cancelled,
            Err(JobError::Discarded) => Fate::Discarded,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(self.fates.get(&id), Some(&fate), "job {id}");
    }
}

/// Ends an attempt in the book, also when it panics.
struct Running(Arc<Mutex<Book>>, usize, Fate);

impl Drop for Running {
    fn drop(&mut self) {
        let fate = match std::thread::panicking() {
            true => Fate::Panicked,
            false => self.2,
        };
        self.0.lock().unwrap().end_attempt(self.1, fate);
    }
}

/// A producer, and what its jobs use.
#[derive(Clone)]
struct Producer {
    market: Market<u32>,
    book: Arc<Mutex<Book>>,
    draws: Draws,
}

/// A job that is offered: its number, key and options.
#[derive(Clone, Copy)]
struct Offer {
    id: usize,
    key: Option<u32>,
    priority: u32,
    delay: Duration,
    retries: u64,
    pause: Duration,
}

type Work = Box<dyn FnMut() -> Result<usize, ()> + Send>;
type Handle = JobHandle<Result<usize, ()>>;

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
            delay: self
                .draws
                .millis(8)
                .saturating_sub(Duration::from_millis(4)),
            retries: self.draws.below(4).saturating_sub(1) as u64,
            pause: self.draws.millis(4),
        };
        let mut own = self.clone();
        own.draws = Draws::of(self.draws.below(1 << 30) as u64, id as u64);
        let work: Work = Box::new(move || own.run(id));
        let mut job = Job::new(work).priority(offer.priority).after(offer.delay);
        if offer.retries > 0 {
            let intervals = RetryIntervals::every(offer.pause);
            job = job.retries(intervals.with_step_limit(offer.retries).unwrap());
        }
        let job = match offer.key {
            Some(key) => job.key(key),
            None => job,
        };
        (offer, job)
    }

    /// Does what a job does.
    fn run(&mut self, id: usize) -> Result<usize, ()> {
        self.book.lock().unwrap().begin(id);
        let mut running = Running(self.book.clone(), id, Fate::Done);
        if self.draws.one_in(2) {
            let nap = sleep(self.draws.millis(5));
            Runtime::current().block_on(nap);
        }
        if self.draws.one_in(5) {
            drop(self.try_offer());
        }
        if self.draws.one_in(60) {
            self.stop();
        }
        let is_cancelled = self.book.lock().unwrap().jobs[&id].is_cancelled;
        assert_eq!(market::is_cancelled(), is_cancelled);
        assert!(!self.draws.one_in(6), "bomb");
        if self.draws.one_in(6) {
            running.2 = Fate::Failed;
            return Err(());
        }
        Ok(id)
    }

    /// Stops the market, or cancels the jobs that run as well.
    fn stop(&mut self) {
        let is_now = self.draws.one_in(2);
        let mut book = self.book.lock().unwrap();
        book.stop();
        book.jobs
            .values_mut()
            .for_each(|job| job.is_cancelled |= is_now);
        drop(book);
        match is_now {
            true => self.market.stop_now(),
            false => self.market.stop(),
        }
    }

    /// Enters an answer to an offer in the book.
    fn enter(
        &self,
        offer: Offer,
        answer: Result<Handle, TryOfferError<Job<u32, Work>>>,
    ) -> Option<(usize, Handle)> {
        let mut book = self.book.lock().unwrap();
        let Offer { id, key, .. } = offer;
        match answer {
            Ok(handle) => {
                // A job that is tried again takes room that another one may have been given.
                let has_room = book.waiting() < book.room || book.retried > 0;
                assert!(!book.is_closed && has_room);
                assert!(book.jobs.len() < book.room + book.workers);
                assert!(!book.is_key_busy(key), "a key has too many jobs");
                let entry = Entry {
                    key,
                    priority: offer.priority,
                    age: id,
                    due: Instant::now() + offer.delay,
                    from: Instant::now() + offer.delay,
                    retries: offer.retries,
                    pause: offer.pause,
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
            Err(error) => panic!("{error}"),
        }
        None
    }

    fn try_offer(&mut self) -> Option<(usize, Handle)> {
        let (offer, job) = self.draw();
        let answer = self.market.try_offer(job);
        self.enter(offer, answer)
    }

    /// Offers, and may give up after some time.
    async fn offer(&mut self) -> Option<(usize, Handle)> {
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
            error => panic!("{error}"),
        });
        self.enter(offer, answer)
    }

    fn cancel(&self, id: usize, job: &Handle) {
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
    async fn produce(mut self) -> Vec<(usize, Handle)> {
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

/// Builds a market of drawn options, and the book of its jobs.
fn market_and_book(seed: u64, draws: &mut Draws) -> (Market<u32>, Arc<Mutex<Book>>) {
    let capacity_per_key = draws.below(3).saturating_sub(1);
    let (workers, room) = (1 + draws.below(3), 1 + draws.below(4));
    let mut options = Draws::of(seed, 99);
    let mut draw = |odds| {
        options
            .one_in(odds)
            .then(|| (1 + options.below(2), options.millis(6)))
    };
    let longer = |(most, time): (usize, Duration)| (most, time + Duration::from_millis(1));
    let (aging, rate) = (draw(3).map(|it| longer(it).1), draw(3).map(longer));
    let reserved = draw(2).filter(|_| workers > 1).map(|it| (it.0 as u32, 1));
    let mut market = Market::builder().max_workers(workers).capacity(room);
    market = market.capacity_per_key(capacity_per_key);
    if let Some(step) = aging {
        market = market.aging(step);
    }
    if let Some((starts, per)) = rate {
        market = market.rate(starts, per);
    }
    if let Some((priority, workers)) = reserved {
        market = market.reserved(priority, workers);
    }
    let market = market.build().unwrap();
    let book = Arc::new(Mutex::new(Book {
        workers,
        room,
        capacity_per_key,
        aging,
        rate,
        reserved,
        jobs: BTreeMap::new(),
        starts: Vec::new(),
        retried: 0,
        fates: BTreeMap::new(),
        tries: 0,
        producers: 0,
        is_closed: false,
        is_stopped: false,
    }));
    (market, book)
}

async fn history(seed: u64) {
    let mut draws = Draws::of(seed, 0);
    let (market, book) = market_and_book(seed, &mut draws);
    let producer = |number| Producer {
        market: market.clone(),
        book: book.clone(),
        draws: Draws::of(seed, number),
    };
    let producers: Vec<_> = (1..=PRODUCERS)
        .map(|number| greenroom::spawn(producer(number).produce()))
        .collect();
    let mut own = producer(PRODUCERS + 1);
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
    assert_eq!(
        (status.delayed, status.retried),
        (0, book.lock().unwrap().retried)
    );
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
