//! Soak: 10 000 loopers and 1 000 locks that are made and dropped under load, on two workers.
//!
//! The ledger: offered tasks were accepted or refused, and each accepted one has exactly one
//! outcome. Each task and each value is dropped once, and the tasks of a looper run in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::Runtime;
use greenroom::looper::{
    self, Controller, Guarded, LockError, Looper, LooperStatus, PostProblem, Posted, TaskError,
};

use crate::support::{Dropped, Drops, WATCH, keep_bombs_quiet, poll_once, within};

const LOOPERS: usize = 10_000;
const LOCKS: usize = 1_000;
const CLIENTS: usize = 8;
/// The number of loopers that a client has at a time.
const LIVE: usize = 50;
/// The number of tasks that a client posts while it has the same loopers.
const POSTS: usize = 16;

/// A value behind a lock.
struct Account {
    /// The number of tasks that have changed it.
    changes: usize,
    _dropped: Dropped,
}

/// What has become of the tasks, in numbers.
#[derive(Debug, Default)]
struct Ledger {
    offered: AtomicUsize,
    refused: AtomicUsize,
    done: AtomicUsize,
    panicked: AtomicUsize,
    cancelled: AtomicUsize,
    timed_out: AtomicUsize,
    refused_at_the_head: AtomicUsize,
    /// The tasks that have begun.
    begun: AtomicUsize,
    /// The changes of values, counted by the tasks, and found in the values.
    changes: AtomicUsize,
    found: AtomicUsize,
}

fn add(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn get(count: &AtomicUsize) -> usize {
    count.load(Ordering::Relaxed)
}

impl Ledger {
    fn enter(&self, outcome: &Result<(), TaskError>) {
        add(match outcome {
            Ok(()) => &self.done,
            Err(TaskError::Panicked(panic)) => {
                assert_eq!(panic.to_string(), "bomb");
                &self.panicked
            }
            Err(TaskError::Cancelled) => &self.cancelled,
            Err(TaskError::Lock(LockError::TimedOut(_))) => &self.timed_out,
            Err(TaskError::Lock(_) | TaskError::Deadlock(_)) => &self.refused_at_the_head,
            Err(error) => panic!("{error}"),
        });
    }

    /// Checks that nothing was lost.
    fn check(&self) {
        let ended = [&self.done, &self.panicked, &self.cancelled, &self.timed_out];
        let ended: usize = ended.into_iter().map(get).sum();
        let accepted = get(&self.offered) - get(&self.refused);
        assert_eq!(accepted, ended + get(&self.refused_at_the_head), "{self:?}");
        assert_eq!(
            get(&self.begun),
            get(&self.done) + get(&self.panicked),
            "{self:?}"
        );
        assert_eq!(get(&self.changes), get(&self.found), "{self:?}");
    }
}

/// What all clients share.
#[derive(Clone, Default)]
struct Shared {
    ledger: Arc<Ledger>,
    tasks: Drops,
    values: Drops,
    values_made: Arc<AtomicUsize>,
}

/// A looper of a client, and the number of its last task that has run.
struct Own {
    looper: Looper,
    last: Arc<AtomicUsize>,
}

/// Makes and drops loopers and locks, and posts tasks.
struct Client {
    shared: Shared,
    controller: Controller,
    loopers: Vec<Own>,
    locks: Vec<Guarded<Account>>,
    posted: Vec<Posted<()>>,
    random: u64,
    number: usize,
}

impl Client {
    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % limit as u64) as usize
    }

    fn add_looper(&mut self) {
        self.loopers.push(Own {
            looper: self.controller.looper(),
            last: Arc::default(),
        });
    }

    fn add_lock(&mut self) {
        add(&self.shared.values_made);
        self.locks.push(self.controller.guarded(Account {
            changes: 0,
            _dropped: self.shared.values.one(),
        }));
    }

    /// Posts a task, and cancels one now and then.
    fn post(&mut self) {
        add(&self.shared.ledger.offered);
        self.number += 1;
        let posted = self.offer();
        self.posted.push(posted);
        if self.number.is_multiple_of(16) {
            let at = self.below(self.posted.len());
            self.posted[at].cancel();
        }
    }

    /// Posts a task of any kind.
    fn offer(&mut self) -> Posted<()> {
        let (number, kind) = (self.number, self.below(20));
        let at = self.below(self.loopers.len());
        let (left, right) = (self.below(self.locks.len()), self.below(self.locks.len()));
        let (left, right) = (&self.locks[left], &self.locks[right]);
        let Own { looper, last } = &self.loopers[at];
        let (own, ledger) = (self.shared.tasks.one(), self.shared.ledger.clone());
        let last = last.clone();
        let begin = move || {
            let before = last.swap(number, Ordering::Relaxed);
            assert!(before < number, "{number} ran after {before}");
            add(&ledger.begun);
            (own, ledger)
        };
        let change = |account: &mut Account, ledger: &Ledger| {
            account.changes += 1;
            add(&ledger.changes);
        };
        let posting = looper.priority((number % 3) as u8);
        match kind {
            0..5 => posting.post(move || drop(begin())).unwrap(),
            5..9 => posting
                .with(left.shared())
                .post(move |_| drop(begin()))
                .unwrap(),
            9..13 => posting
                .with(left.exclusive())
                .post(move |account| change(account, &begin().1))
                .unwrap(),
            13..15 => posting
                .with((left.exclusive(), right.exclusive()))
                .post(move |(left, right)| {
                    let (_own, ledger) = begin();
                    change(left, &ledger);
                    change(right, &ledger);
                })
                .unwrap(),
            15 => posting
                .lock_timeout(Duration::ZERO)
                .with(left.exclusive())
                .post(move |account| change(account, &begin().1))
                .unwrap(),
            16 => posting
                .with(left.shared())
                .post(move |_| {
                    let _own = begin();
                    panic!("bomb");
                })
                .unwrap(),
            17 => {
                let kept = posting.with(left.exclusive().keep());
                let kept = kept.post(move |account| change(account, &begin().1));
                let lock = left.clone();
                let unlocks = looper.post(move || {
                    let own = looper::current().and_then(|it| it.looper()?.upgrade());
                    own.map_or(Ok(()), |own| own.unlock(&lock)).unwrap_or(());
                });
                drop(unlocks);
                kept.unwrap()
            }
            _ => posting
                .with(left.exclusive())
                .spawn(move |mut account| async move {
                    let (_own, ledger) = begin();
                    greenroom::yield_now().await;
                    change(&mut account, &ledger);
                })
                .unwrap(),
        }
    }

    /// Closes a looper, which refuses the next task.
    fn close_looper(&self, looper: Looper) {
        let own = looper.clone();
        let mut close = Box::pin(async move { own.close().await });
        let is_over = poll_once(&mut close).is_ready();
        add(&self.shared.ledger.offered);
        let task = self.shared.tasks.one();
        let refused = looper.post(move || drop(task)).unwrap_err();
        assert_eq!(refused.problem(), PostProblem::Closed);
        add(&self.shared.ledger.refused);
        if !is_over {
            greenroom::spawn(close).detach();
        }
    }

    /// Closes a lock, whose value is given back when its holders are done.
    fn close_lock(&mut self) {
        let at = self.below(self.locks.len());
        let lock = self.locks.swap_remove(at);
        self.add_lock();
        let ledger = self.shared.ledger.clone();
        let close = async move {
            let account = lock.close().await.expect("it is closed once");
            ledger.found.fetch_add(account.changes, Ordering::Relaxed);
        };
        greenroom::spawn(close).detach();
    }

    async fn settle(&mut self) {
        for posted in std::mem::take(&mut self.posted) {
            self.shared.ledger.enter(&posted.await);
        }
    }

    async fn run(mut self) {
        (0..LIVE).for_each(|_| self.add_looper());
        (0..LOCKS / CLIENTS / 5).for_each(|_| self.add_lock());
        for round in LIVE..LOOPERS / CLIENTS {
            (0..POSTS).for_each(|_| self.post());
            let at = self.below(self.loopers.len());
            let Own { looper, .. } = self.loopers.swap_remove(at);
            self.add_looper();
            match round % 3 {
                0 => drop(looper),
                1 => self.close_looper(looper),
                _ => {
                    let world = self.controller.stop_the_world(|_| ());
                    drop(looper);
                    world.unwrap().await.unwrap();
                }
            }
            if round % 8 == 0 {
                self.close_lock();
            }
            match round % 32 {
                0 => self.settle().await,
                8 | 16 | 24 => greenroom::yield_now().await,
                _ => {}
            }
        }
        // The locks that loopers keep are free when these have ended.
        self.loopers.clear();
        self.settle().await;
        for lock in std::mem::take(&mut self.locks) {
            let account = lock.close().await.expect("it is closed once");
            let found = &self.shared.ledger.found;
            found.fetch_add(account.changes, Ordering::Relaxed);
        }
    }
}

#[test]
fn nothing_is_lost_while_ten_thousand_loopers_come_and_go() {
    within(2 * WATCH, || {
        keep_bombs_quiet();
        let shared = Shared::default();
        let runtime = Runtime::builder()
            .workers(2)
            .on_fault(|_| {})
            .build()
            .unwrap();
        let builder = Controller::builder().priorities(2).aging(8).on(&runtime);
        // Loopers that keep locks wait for each other now and then.
        let controller = builder.detect_deadlocks(true).build().unwrap();
        let clients = (0..CLIENTS).map(|number| Client {
            shared: shared.clone(),
            controller: controller.clone(),
            loopers: Vec::new(),
            locks: Vec::new(),
            posted: Vec::new(),
            random: 0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1),
            number: 0,
        });
        let clients: Vec<_> = clients.map(|client| runtime.spawn(client.run())).collect();
        runtime.block_on(async {
            for client in clients {
                client.await;
            }
            controller.shutdown().await;
        });
        assert_eq!(controller.status(), LooperStatus::default());
        drop(runtime);
        shared.ledger.check();
        assert_eq!(shared.tasks.count(), get(&shared.ledger.offered));
        assert_eq!(shared.values.count(), get(&shared.values_made));
        assert!(shared.values.count() >= LOCKS);
    });
}
