//! Random histories of a store that fails, delays, says `Unknown` and crashes, against a ledger.
//!
//! Processes put jobs, serve them, append events and crash. The ledger is outside: it is plain memory that
//! survives. At the end, the faults end, everything runs, and the ledger is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use greenroom::sim;
use greenroom::time::{Instant, RetryIntervals, sleep, timeout};
use greenroom_durable::{Job, Journal, Queue, QueueWorkers, Serve, SimFile, Store, StoreProblem};

use crate::support::{Note, Numbers, Refused, ms, secs, seeds};

const KEYS: [&str; 3] = ["a", "b", "c"];

/// The time of a lease. Handlers that are to keep theirs take less.
const LEASE: std::time::Duration = secs(5);

#[derive(Debug, Default)]
struct Ledger {
    /// By id: whether `put` has said that it is stored.
    acknowledged: BTreeSet<String>,
    /// The ids of a key in the order in which one process has put them, one after another.
    order: BTreeMap<&'static str, Vec<u64>>,
    /// By id: how often a handler has begun, and how often it has returned `Ok`.
    begun: BTreeMap<u64, u32>,
    done: BTreeMap<u64, u32>,
    /// By key: the number that a handler works on, and until when its lease holds.
    busy: BTreeMap<String, (u64, Instant)>,
    /// Numbers by their keys, as they were done first.
    finished: BTreeMap<String, Vec<u64>>,
    /// Crashes, leases that were outlived, commits without a known outcome.
    excuses: u32,
    /// The events of which the append was acknowledged.
    events: Vec<u64>,
    /// The events of which the append may be stored.
    doubtful: BTreeSet<u64>,
    /// By key.
    tokens: BTreeMap<String, i64>,
}

type SharedLedger = Arc<Mutex<Ledger>>;

fn lot(of: u64) -> u64 {
    sim::random() % of
}

/// One process, which can crash.
struct Process {
    store: Store,
    _workers: QueueWorkers,
}

fn serve() -> Serve {
    // A job that is refused now and then has to be done in the end.
    let retries = RetryIntervals::every(ms(200));
    Serve::workers(2).retries(retries).lease(LEASE)
}

impl Process {
    async fn start(file: &SimFile, ledger: &SharedLedger) -> Process {
        loop {
            let store = Store::simulated(file).open().await.unwrap();
            let Ok(queue) = store.queue::<Note>("notes").open().await else {
                continue;
            };
            let own = ledger.clone();
            let workers = queue.serve(serve(), move |job| {
                let ledger = own.clone();
                let key = job.key().unwrap().to_owned();
                ledger.lock().unwrap().begin(job.0, &key, job.token());
                async move {
                    // Sometimes longer than the lease.
                    let is_slow = lot(20) == 0;
                    if is_slow {
                        ledger.lock().unwrap().excuses += 1;
                    }
                    sleep(if is_slow {
                        LEASE + secs(1)
                    } else {
                        ms(lot(50))
                    })
                    .await;
                    let mut ledger = ledger.lock().unwrap();
                    if ledger
                        .busy
                        .get(&key)
                        .is_some_and(|(number, _)| *number == job.0)
                    {
                        ledger.busy.remove(&key);
                    }
                    if lot(8) == 0 {
                        return Err(Refused);
                    }
                    ledger.end(job.0, &key);
                    Ok(())
                }
            });
            if let Ok(workers) = workers.await {
                return Process {
                    store,
                    _workers: workers,
                };
            }
        }
    }
}

impl Ledger {
    fn begin(&mut self, number: u64, key: &str, token: i64) {
        let last = self
            .tokens
            .insert(key.to_owned(), token)
            .unwrap_or_default();
        assert!(token > last, "token {token} after {last}");
        let now = Instant::now();
        let before = self
            .busy
            .insert(key.to_owned(), (number, now + (LEASE - secs(1))));
        if let Some((other, until)) = before {
            // The lease of the one before is over, or its process has crashed and the job is given back.
            assert!(
                now >= until,
                "jobs {other} and {number} of the key {key} run at once"
            );
        }
        *self.begun.entry(number).or_default() += 1;
    }

    fn end(&mut self, number: u64, key: &str) {
        let done = self.done.entry(number).or_default();
        *done += 1;
        if *done == 1 {
            self.finished
                .entry(key.to_owned())
                .or_default()
                .push(number);
        }
    }

    /// Checks what has to hold when nothing waits any more.
    fn check(&self) {
        for id in &self.acknowledged {
            let number = id.parse().unwrap();
            assert!(
                self.done.contains_key(&number),
                "job {id} was acknowledged and not done"
            );
        }
        let again: u32 = self.done.values().map(|done| done - 1).sum();
        assert!(
            again == 0 || self.excuses > 0,
            "{again} jobs were done twice without a reason"
        );
        for (key, order) in &self.order {
            let finished = self.finished.get(*key).cloned().unwrap_or_default();
            let known: Vec<_> = order
                .iter()
                .filter(|it| finished.contains(it))
                .copied()
                .collect();
            assert_eq!(finished, known, "the order of the key {key}");
        }
    }
}

/// Puts jobs, one after another, and puts them again until they are stored.
async fn put_all(file: SimFile, ledger: SharedLedger, key: &'static str, first: u64) {
    let mut queue: Option<Queue<Note>> = None;
    for number in first..first + 2 + lot(6) {
        sleep(ms(lot(300))).await;
        let id = number.to_string();
        loop {
            let open = match queue.take() {
                Some(queue) => queue,
                None => {
                    let store = Store::simulated(&file).open().await.unwrap();
                    match store.queue("notes").open().await {
                        Ok(queue) => queue,
                        Err(_) => continue,
                    }
                }
            };
            match open
                .put(
                    Job::new(Note(number))
                        .id(&id)
                        .key(key)
                        .priority(lot(3) as u8),
                )
                .await
            {
                Ok(_) => {
                    queue = Some(open);
                    break;
                }
                Err(error) if error.why == StoreProblem::Closed => {}
                Err(_) => queue = Some(open),
            }
        }
        let mut ledger = ledger.lock().unwrap();
        ledger.acknowledged.insert(id);
        ledger.order.entry(key).or_default().push(number);
    }
}

async fn open_journal(file: &SimFile) -> Option<Journal<Numbers>> {
    let store = Store::simulated(file).open().await.unwrap();
    store
        .journal("numbers", "all")
        .snapshot_every(lot(4))
        .open()
        .await
        .ok()
}

/// Appends numbers that nobody else appends, against other writers.
async fn append_all(file: SimFile, ledger: SharedLedger, first: u64) {
    let mut journal = None;
    for number in first..first + 2 + lot(8) {
        sleep(ms(lot(200))).await;
        for _ in 0..20 {
            if journal.is_none() {
                journal = open_journal(&file).await;
            }
            let Some(open) = &mut journal else { continue };
            let stored = open.state().0.contains(&number);
            let result = match stored {
                true => Ok(()),
                false => open.append([Note(number)]).await.map_err(|error| error.why),
            };
            match result {
                Ok(()) => {
                    ledger.lock().unwrap().events.push(number);
                    break;
                }
                Err(why) => {
                    if matches!(why, StoreProblem::Unknown(_) | StoreProblem::Closed) {
                        ledger.lock().unwrap().doubtful.insert(number);
                    }
                    journal = None;
                }
            }
        }
    }
}

async fn history() {
    let file = SimFile::new();
    let ledger = SharedLedger::default();
    if lot(2) == 0 {
        file.fails(0.1);
        file.unknown(0.1);
        ledger.lock().unwrap().excuses += 1;
    }
    if lot(4) == 0 {
        file.delay(ms(0)..ms(50));
    }
    let mut tasks = Vec::new();
    for (index, key) in KEYS.into_iter().enumerate() {
        let put = put_all(file.clone(), ledger.clone(), key, 100 * index as u64);
        tasks.push(greenroom::spawn(put));
        let append = append_all(file.clone(), ledger.clone(), 1000 * index as u64);
        tasks.push(greenroom::spawn(append));
    }
    let mut processes = Vec::new();
    for _ in 0..2 {
        processes.push(Process::start(&file, &ledger).await);
    }
    for _ in 0..lot(4) {
        sleep(ms(lot(600))).await;
        let process = processes.swap_remove(lot(2) as usize);
        ledger.lock().unwrap().excuses += 1;
        file.crash(&process.store);
        drop(process);
        processes.push(Process::start(&file, &ledger).await);
    }
    for task in tasks {
        task.await;
    }
    file.fails(0.0);
    file.unknown(0.0);
    let store = Store::simulated(&file).open().await.unwrap();
    let queue = store.queue::<Note>("notes").open().await.unwrap();
    timeout(secs(3600), queue.drain())
        .await
        .expect("jobs stay")
        .unwrap();
    // Handlers that outlive their leases end.
    drop(processes);
    sleep(secs(10)).await;
    let events = open_journal(&file).await.unwrap();
    let ledger = ledger.lock().unwrap();
    ledger.check();
    let events = &events.state().0;
    let unique: BTreeSet<_> = events.iter().collect();
    assert_eq!(
        unique.len(),
        events.len(),
        "an event is there twice: {events:?}"
    );
    let is_known =
        |number: &&u64| ledger.events.contains(number) || ledger.doubtful.contains(number);
    assert!(events.iter().all(|number| is_known(&number)), "{events:?}");
    let missing: Vec<_> = ledger
        .events
        .iter()
        .filter(|it| !unique.contains(it))
        .collect();
    assert_eq!(missing, [&0; 0], "acknowledged events are missing");
    for first in [0, 1000, 2000] {
        let own: Vec<_> = events
            .iter()
            .filter(|it| (first..first + 1000).contains(*it))
            .collect();
        assert!(own.is_sorted(), "{own:?}");
    }
}

#[test]
fn random_histories_keep_what_is_promised() {
    sim::explore(seeds(60), |_| history());
}
