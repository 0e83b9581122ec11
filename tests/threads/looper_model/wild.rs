//! Loopers, locks and worlds that come and go, with tasks that do anything at any time.
//!
//! Whatever happens, these rules hold:
//!
//! - each accepted task has one outcome, runs at most once, and its captures are dropped once;
//! - a looper runs one task at a time, in the order of posting;
//! - a lock has readers or one writer, guards and kept locks included;
//! - while the world waits or runs, nothing else begins, and the world sees each value;
//! - no more tasks run at a time than there are lanes;
//! - when nothing moves, only locks that are kept are waited for;
//! - a deadlock is seen only where one may be, and a shutdown ends everything.

mod operations;
mod task;

use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use greenroom::looper::{self, Controller, LooperStatus};
use greenroom::policy::Simulated;
use greenroom::time::sleep;
use greenroom::{Runtime, yield_now};

use super::book::{Book, LockPage, Place, Value};
use super::*;
use crate::support::{Drops, WATCH, keep_bombs_quiet, within};

const SEEDS: Range<u64> = 0..1000;
const CLIENTS: u64 = 3;

#[derive(Debug, Clone, Copy)]
struct Options {
    lanes: usize,
    highest: u8,
    aging: u32,
    /// Loopers keep locks, and any task awaits any other. Otherwise only tasks without locks await
    /// others, of later loopers.
    is_free: bool,
    has_worlds: bool,
    has_awaits: bool,
    detects: bool,
}

impl Options {
    fn draw(draws: &mut Draws) -> Options {
        Options {
            lanes: 1 + draws.below(3),
            highest: draws.below(4) as u8,
            aging: draws.below(4) as u32,
            is_free: !draws.one_in(3),
            has_worlds: !draws.one_in(3),
            has_awaits: !draws.one_in(4),
            detects: draws.one_in(2),
        }
    }

    fn may_deadlock(&self) -> bool {
        self.is_free || self.has_awaits && self.has_worlds
    }

    /// Without detection only a shutdown ends a deadlock, and only one of locks.
    fn is_stuck(&self) -> bool {
        self.is_free && !self.detects && !self.has_awaits
    }
}

/// What all parts of a run share.
#[derive(Clone)]
struct Run {
    options: Options,
    controller: Controller,
    book: Book,
    drops: Drops,
}

/// Does anything, for a while.
async fn client(run: Run, mut draws: Draws) {
    for _ in 0..5 + draws.below(25) {
        run.operate(&mut draws, 0);
        match draws.below(3) {
            0 => sleep(draws.millis(300)).await,
            1 => yield_now().await,
            _ => {}
        }
        let is_none = looper::current().is_none();
        run.book
            .with(|pages| pages.check(is_none, || "a client is a task".into()));
    }
}

/// Waits until nothing moves, then gives up all kept locks, until all tasks have ended.
async fn settle(run: &Run) {
    let mut before = 0;
    loop {
        sleep(Duration::from_secs(100)).await;
        let stats = run.controller.status();
        let unfinished = run.book.with(|pages| pages.unfinished());
        run.book.with(|pages| {
            let is_still = (stats.ready, stats.running) == (0, 0) && !stats.is_world_stopped;
            pages.check(is_still, || format!("{stats:?}"));
            let (now, is_over) = (pages.progress(), unfinished.is_empty());
            pages.check(is_over || now > before, || format!("left: {unfinished:?}"));
            before = now;
            let is_free = stats.waiting == 0 && stats.locks_held == 0;
            let kept = pages.locks.iter().any(|it| !it.kept.is_empty());
            pages.check(is_free || kept, || {
                format!("without a kept lock: {stats:?}")
            });
            let left = pages.left();
            pages.check(left.is_none(), || {
                format!("left beside free locks: {left:?}")
            });
        });
        if unfinished.is_empty() || run.book.with(|pages| !pages.faults.is_empty()) {
            return;
        }
        let kept = run.book.with(|pages| {
            let locks = pages.locks.iter().enumerate();
            let kept = locks.flat_map(|(lock, it)| it.kept.iter().map(move |it| (it.0, lock)));
            kept.map(|(at, lock)| (at, pages.loopers[at].handle.clone(), lock))
                .collect::<Vec<_>>()
        });
        for (at, looper, lock) in kept {
            run.give_up(at, &looper.unwrap(), lock);
        }
    }
}

async fn run(seed: u64) -> Run {
    let mut draws = Draws::of(seed, 0);
    let options = Options::draw(&mut draws);
    let builder = Controller::builder()
        .lanes(options.lanes)
        .aging(options.aging);
    let builder = builder
        .priorities(options.highest)
        .detect_deadlocks(options.detects || options.may_deadlock() && !options.is_stuck());
    let run = Run {
        options,
        controller: builder.build().unwrap(),
        book: Book::default(),
        drops: Drops::default(),
    };
    run.book.with(|pages| {
        pages.lanes = options.lanes;
        for _ in 0..1 + draws.below(5) {
            pages.add_looper(run.controller.looper());
        }
        for _ in 0..1 + draws.below(4) {
            let value = || Value {
                writes: 0,
                _dropped: run.drops.one(),
            };
            pages.add_lock(match draws.one_in(4) {
                true => Place::Plain(run.controller.lock()),
                false => Place::Valued(run.controller.guarded(value())),
            });
        }
    });
    let clients =
        (1..=CLIENTS).map(|part| greenroom::spawn(client(run.clone(), Draws::of(seed, part))));
    for client in clients.collect::<Vec<_>>() {
        client.await;
    }
    if !options.is_stuck() && !draws.one_in(3) {
        settle(&run).await;
    }
    run.book.with(|pages| {
        pages.is_over = true;
        (0..pages.loopers.len()).for_each(|at| pages.close(at));
    });
    if draws.one_in(3) {
        run.book.with(|pages| pages.is_aborted = true);
    } else {
        run.controller.shutdown().await;
        // Guards that were carried out are dropped by then.
        sleep(Duration::from_secs(100)).await;
    }
    run
}

/// Checks what is left when the runtime has ended.
fn check_end(run: &Run) {
    let jobs = run.book.with(|pages| pages.jobs.len());
    for job in 0..jobs {
        let outcome = pin!(run.outcome(job));
        let polled = outcome.poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready(), "{job} has no outcome");
    }
    assert_eq!(run.controller.status(), LooperStatus::default());
    run.book.with(|pages| {
        pages.judge(run.options.may_deadlock());
        assert!(
            pages.faults.is_empty(),
            "{:?}: {:#?}",
            run.options,
            pages.faults
        );
        let is_valued = |it: &&LockPage| matches!(it.place, Place::Valued(_));
        let values = pages.locks.iter().filter(is_valued).count();
        pages.locks.clear();
        pages.loopers.clear();
        assert_eq!(run.drops.count(), values, "each value is dropped once");
    });
}

#[test]
fn loopers_keep_their_rules_whatever_happens() {
    within(2 * WATCH, || {
        keep_bombs_quiet();
        for seed in SEEDS {
            let _named = crate::support::matrix::Named(format!("seed {seed}"));
            let runtime = Runtime::builder().policy(Simulated::new(seed));
            let grace = Duration::from_millis(seed % 3 * 200);
            let runtime = runtime.on_fault(|_| {}).grace(grace).build().unwrap();
            let run = runtime.block_on(run(seed));
            drop(runtime);
            check_end(&run);
        }
    });
}
