//! How many entries a waiter or a holder costs, and lists without those that have left.
//!
//! The lanes are polled by hand, so this thread does all the work, and counts it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::claim::Shared;
use super::controller::Controller;
use super::handle::Looper;
use super::job::Posted;
use super::lane::Lane;
use super::lock::{Guarded, Lock};
use super::monitor::Monitor;
use super::table::LooperTable;
use crate::sync::LOOKS;

const MANY: [usize; 2] = [2000, 32_000];
const LOOKS_MAX: usize = 3;

fn monitor() -> Arc<Monitor> {
    let builder = Controller::builder().detect_deadlocks(false);
    builder.monitor(1, None)
}

/// Runs what was posted, until it is over.
fn run_until(monitor: &Arc<Monitor>, is_over: impl Fn() -> bool) {
    let number = monitor.change(|table, _| table.lanes.make());
    let mut lane = pin!(Lane::new(monitor.clone(), number));
    while !is_over() {
        assert!(
            poll(&mut lane).is_pending(),
            "a lane ends with its controller"
        );
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Checks that each of many has a few looks for itself, however many there are.
#[track_caller]
fn looks_at_few(all: impl Fn(usize)) {
    for many in MANY {
        let before = LOOKS.get();
        all(many);
        let looks = LOOKS.get() - before;
        // The first holder is found by a look until there is a second one.
        let most = (many + 1) * LOOKS_MAX;
        assert!(looks >= many && looks <= most, "{looks} looks for {many}");
    }
}

fn loopers(monitor: &Arc<Monitor>, many: usize) -> Vec<Looper> {
    (0..many).map(|_| Looper::new(monitor, None)).collect()
}

fn pending<F: Future>(many: usize, wait: impl Fn() -> F) -> Vec<Pin<Box<F>>> {
    let mut waits: Vec<_> = (0..many).map(|_| Box::pin(wait())).collect();
    for wait in &mut waits {
        assert!(poll(wait).is_pending());
    }
    waits
}

#[test]
fn a_close_of_a_looper_looks_at_no_other_close() {
    looks_at_few(|many| {
        let monitor = monitor();
        let looper = Looper::new(&monitor, None);
        drop(looper.post(|| ()));
        drop(pending(many, || looper.close()));
    });
    looks_at_few(|many| {
        let monitor = monitor();
        let looper = Looper::new(&monitor, None);
        drop(looper.post(|| ()));
        let mut waits = pending(many, || looper.close());
        run_until(&monitor, || monitor.look(|table| table.loopers.is_empty()));
        assert!(waits.iter_mut().all(|wait| poll(wait).is_ready()));
    });
}

#[test]
fn a_shared_holder_looks_at_no_other_holder() {
    looks_at_few(|many| {
        let monitor = monitor();
        let (lock, loopers) = (Lock::new(&monitor, None), loopers(&monitor, many));
        for looper in &loopers {
            assert_eq!(looper.attempt(lock.shared()), Ok(true));
        }
        for looper in &loopers {
            assert_eq!(looper.unlock(&lock), Ok(()));
        }
        assert_eq!(loopers[0].attempt(lock.exclusive()), Ok(true));
    });
}

#[test]
fn a_looper_that_keeps_a_shared_lock_ends_without_a_look_at_the_others() {
    looks_at_few(|many| {
        let monitor = monitor();
        let (lock, loopers) = (Lock::new(&monitor, None), loopers(&monitor, many));
        let post = |looper: &Looper| looper.with(lock.shared().keep()).post(|()| ()).unwrap();
        let posted: Vec<_> = loopers.iter().map(post).collect();
        run_until(&monitor, || posted.last().is_some_and(Posted::is_finished));
        assert_eq!(monitor.look(|table| table.status().locks_held), 1);
        drop(loopers);
        assert_eq!(monitor.look(|table| table.status().locks_held), 0);
    });
}

#[test]
fn a_guard_that_outlives_its_task_looks_at_no_other_holder() {
    looks_at_few(|many| {
        let monitor = monitor();
        let (value, loopers) = (Guarded::new(&monitor, None, 7), loopers(&monitor, many));
        let reads = loopers.iter().map(|looper| {
            let read = looper.with(value.shared()).spawn(async |value| value);
            read.unwrap()
        });
        let mut reads: Vec<Posted<Shared<i32>>> = reads.collect();
        run_until(&monitor, || reads.last().is_some_and(Posted::is_finished));
        for read in &mut reads {
            let Poll::Ready(Ok(value)) = poll(read) else {
                panic!("a task has not ended");
            };
            assert_eq!(*value, 7);
        }
        assert_eq!(monitor.look(|table| table.status().locks_held), 0);
    });
}

/// Checks a looper whose guard outlives its task, and which holds the lock once more meanwhile.
#[test]
fn two_holds_of_one_looper_end_one_by_one() {
    let monitor = monitor();
    let value = Guarded::new(&monitor, None, 7);
    let [other, twice] = std::array::from_fn(|_| Looper::new(&monitor, None));
    assert_eq!(other.attempt(value.shared()), Ok(true));
    let mut first = twice
        .with(value.shared())
        .spawn(async |value| value)
        .unwrap();
    run_until(&monitor, || first.is_finished());
    assert_eq!(twice.attempt(value.shared()), Ok(true));
    let guard = poll(&mut first);
    assert!(matches!(guard, Poll::Ready(Ok(_))), "{guard:?}");
    drop(guard);
    assert_eq!(twice.unlock(&value), Ok(()), "the later hold has stayed");
    assert_eq!(other.unlock(&value), Ok(()));
    assert_eq!(twice.attempt(value.exclusive()), Ok(true));
}

#[test]
fn a_close_of_a_controller_looks_at_no_other_close() {
    looks_at_few(|many| {
        let monitor = monitor();
        let looper = Looper::new(&monitor, None);
        drop(looper.post(|| ()));
        monitor.change(LooperTable::close_all);
        let is_over = || monitor.look(|table| table.is_over);
        drop(pending(many, || monitor.waiters.until(is_over)));
    });
}
