//! Observers: their notifications on workers and on pinned threads.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use greenroom::policy::{Sharing, TaskInfo};
use greenroom::{Context, Detached, Observer, Runtime, actor, yield_now};

use crate::support::{Home, Log, WATCH, drive, inside, keep_bombs_quiet, within};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Before,
    After(Duration),
    Completed,
    /// Recorded by a future in its drop.
    Dropped,
}

#[derive(Clone, Default)]
struct Watches(Log<(Told, Option<u64>, ThreadId)>);

impl Watches {
    fn note(&self, told: Told, task: Option<&TaskInfo>) {
        let thread = thread::current().id();
        self.0.add((told, task.map(TaskInfo::id), thread));
    }
}

impl Observer for Watches {
    fn before_run(&self, task: &TaskInfo) {
        self.note(Told::Before, Some(task));
    }

    fn after_run(&self, task: &TaskInfo, took: Duration) {
        self.note(Told::After(took), Some(task));
    }

    fn completed(&self, task: &TaskInfo) {
        self.note(Told::Completed, Some(task));
    }
}

struct Noted(Watches);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.note(Told::Dropped, None);
    }
}

/// Yields once, so that the actor has two turns, and drops its state in the second one.
async fn two_runs(cx: Context<()>, state: Noted) -> (u64, ThreadId) {
    yield_now().await;
    let id = cx.address().id();
    drop(state);
    (id, thread::current().id())
}

impl Told {
    fn kind(self) -> &'static str {
        match self {
            Told::After(_) => "after",
            Told::Before => "before",
            Told::Completed => "completed",
            Told::Dropped => "dropped",
        }
    }
}

/// Asserts the notifications for such an actor, the only task that ran.
fn is_told(watches: &Watches, outcome: (u64, ThreadId)) {
    let (id, thread) = outcome;
    let log = watches.0.take();
    let kinds: Vec<_> = log
        .iter()
        .map(|(told, of, on)| {
            assert_eq!(*on, thread);
            assert!(of.is_none_or(|of| of == id));
            told.kind()
        })
        .collect();
    let first = ["before", "after"];
    // The code of the actor drops its state at its end.
    let second = ["before", "dropped", "completed", "after"];
    assert_eq!(kinds, [first.as_slice(), &second].concat());
}

/// Waits until no thread can write to the log any more.
fn at_rest(runtime: &Runtime) {
    runtime.run_until_quiescent();
}

#[test]
fn an_observer_is_notified_of_each_turn_on_workers_of_any_policy() {
    within(WATCH, || {
        let default = Runtime::builder;
        let sharing = || Runtime::builder().policy(Sharing::default());
        for builder in [default(), sharing()] {
            let watches = Watches::default();
            let home = Home::built(1, builder.observer(watches.clone()));
            let state = Noted(watches.clone());
            let runs = home.spawn(actor(move |cx| two_runs(cx, state)));
            let outcome = drive(runs.join()).unwrap();
            at_rest(&home.runtime);
            is_told(&watches, outcome);
        }
    });
}

#[test]
fn an_observer_is_notified_of_turns_on_pinned_threads_and_detached_actors() {
    within(WATCH, || {
        let watches = Watches::default();
        let builder = Runtime::builder().observer(watches.clone());
        let home = Home::built(1, builder);
        let pinned = home.runtime.spawn_pinned("pinned").unwrap();
        let state = Noted(watches.clone());
        let runs = actor(move |cx| two_runs(cx, state)).on(&pinned).spawn();
        let outcome = drive(runs.join()).unwrap();
        at_rest(&home.runtime);
        is_told(&watches, outcome);
        let state = Noted(watches.clone());
        let runs = inside(&home.runtime, || {
            actor(move |cx| two_runs(cx, state)).on(Detached).spawn()
        });
        let outcome = drive(runs.join()).unwrap();
        at_rest(&home.runtime);
        is_told(&watches, outcome);
    });
}

#[test]
fn an_observer_is_notified_of_plain_tasks() {
    within(WATCH, || {
        let watches = Watches::default();
        let builder = Runtime::builder().observer(watches.clone());
        let home = Home::built(1, builder);
        let pinned = home.runtime.spawn_pinned("pinned").unwrap();
        let tasks = [home.spawn_task(yield_now()), pinned.spawn(yield_now)];
        for task in tasks {
            drive(task);
            at_rest(&home.runtime);
        }
        let waits = home.spawn_task(std::future::pending::<()>());
        at_rest(&home.runtime);
        drop(waits);
        at_rest(&home.runtime);
        let log = watches.0.take();
        let count = |is: fn(&Told) -> bool| log.iter().filter(|(told, ..)| is(told)).count();
        assert_eq!(count(|told| *told == Told::Before), 6);
        assert_eq!(count(|told| matches!(told, Told::After(_))), 6);
        assert_eq!(count(|told| *told == Told::Completed), 3);
    });
}

#[test]
fn the_reported_duration_of_a_turn_is_at_least_that_of_its_work() {
    const BURNS: Duration = Duration::from_millis(3);
    within(WATCH, || {
        let watches = Watches::default();
        let builder = Runtime::builder().observer(watches.clone());
        let home = Home::built(2, builder);
        let pinned = home.runtime.spawn_pinned("pinned").unwrap();
        let burns = || async {
            let begun = Instant::now();
            while begun.elapsed() < BURNS {
                std::hint::spin_loop();
            }
        };
        drive(home.spawn_task(burns()));
        drive(home.spawn(actor(move |_: Context<()>| burns())).join()).unwrap();
        drive(pinned.spawn(burns));
        at_rest(&home.runtime);
        let log = watches.0.take();
        let took = log.iter().filter_map(|(told, ..)| match told {
            Told::After(took) => Some(*took),
            _ => None,
        });
        let took: Vec<_> = took.collect();
        assert_eq!(took.len(), 3);
        assert!(took.iter().all(|took| *took >= BURNS), "{took:?}");
    });
}

#[test]
fn an_observer_is_notified_of_a_panic_before_the_future_is_dropped() {
    within(WATCH, || {
        keep_bombs_quiet();
        for make in [|builder| Home::built(1, builder), Home::pinned_built] {
            let watches = Watches::default();
            let builder = Runtime::builder().on_fault(|_| {});
            let home = make(builder.observer(watches.clone()));
            let panics = || {
                let state = Noted(watches.clone());
                poll_fn(move |_| -> Poll<()> {
                    let _ = &state;
                    panic!("bomb in a poll")
                })
            };
            let (task, state) = (panics(), panics());
            home.spawn_task(task).detach();
            at_rest(&home.runtime);
            drop(home.spawn(actor(move |_: Context<()>| state)));
            at_rest(&home.runtime);
            let kinds: Vec<_> = watches.0.take().iter().map(|told| told.0.kind()).collect();
            let one = ["before", "completed", "dropped", "after"];
            assert_eq!(kinds, [one, one].concat());
        }
    });
}

#[test]
fn an_observer_is_notified_only_of_its_own_runtime() {
    within(WATCH, || {
        let watches = Watches::default();
        let observed = Home::built(1, Runtime::builder().observer(watches.clone()));
        let other = Home::built(1, Runtime::builder());
        drive(other.spawn_task(yield_now()));
        // Even if the other runtime is driven within a turn of this one.
        let inner = other.runtime.clone();
        let drives = async move { inner.block_on(inner.spawn(yield_now())) };
        drive(observed.spawn_task(drives));
        at_rest(&observed.runtime);
        let log = watches.0.take();
        let before = |(told, ..): &&(Told, Option<u64>, ThreadId)| *told == Told::Before;
        let completed = |(told, ..): &&(Told, Option<u64>, ThreadId)| *told == Told::Completed;
        assert_eq!(log.iter().filter(before).count(), 1);
        assert_eq!(log.iter().filter(completed).count(), 1);
    });
}

/// An observer that panics at each notification.
struct Bombs(Arc<Mutex<usize>>);

impl Bombs {
    fn goes_off(&self) {
        *self.0.lock().unwrap() += 1;
        panic!("bomb in an observer");
    }
}

impl Observer for Bombs {
    fn before_run(&self, _task: &TaskInfo) {
        self.goes_off();
    }

    fn after_run(&self, _task: &TaskInfo, _took: Duration) {
        self.goes_off();
    }

    fn completed(&self, _task: &TaskInfo) {
        self.goes_off();
    }
}

#[test]
fn a_panic_of_an_observer_is_contained() {
    within(WATCH, || {
        keep_bombs_quiet();
        let bombs = Arc::new(Mutex::new(0));
        let home = Home::built(1, Runtime::builder().observer(Bombs(bombs.clone())));
        let pinned = home.runtime.spawn_pinned("pinned").unwrap();
        assert_eq!(drive(home.spawn_task(async { 42 })), 42);
        assert_eq!(drive(pinned.spawn(|| async { 42 })), 42);
        drive(home.spawn(actor(|_: Context<()>| async {})).join()).unwrap();
        at_rest(&home.runtime);
        assert_eq!(*bombs.lock().unwrap(), 9);
    });
}
