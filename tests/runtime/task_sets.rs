//! Sets of tasks: results as they come, a limit, faults, and what a drop or a shutdown leaves.

mod model;

use std::future::pending;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use greenroom::{Fault, Runtime, TaskSet, spawn_local, yield_now};

use crate::support::{
    Bomb, Drops, Gate, Home, Log, OpenOnDrop, WATCH, drive, in_every_home, inside,
    keep_bombs_quiet, panic_of, poll_here, until, within,
};

in_every_home!(
    results_come_in_the_order_of_the_ends,
    each_task_has_one_result,
    a_panic_is_the_result_of_its_task_and_ends_no_other,
    an_empty_set_has_no_next_result,
    a_set_takes_further_tasks_after_its_last_result,
    a_dropped_set_cancels_its_tasks,
    a_shutdown_waits_until_all_futures_are_dropped,
    a_shutdown_that_is_dropped_cancels_all_tasks,
    a_wait_that_is_dropped_loses_no_result,
    at_most_as_many_tasks_run_as_the_limit_allows,
    tasks_with_a_limit_begin_in_the_order_of_their_spawns,
    a_task_that_ends_in_any_way_lets_the_next_one_begin,
    the_future_is_dropped_before_the_result_comes,
);

fn results_come_in_the_order_of_the_ends(home: &Home) {
    home.block_on(async {
        let gates = [(); 3].map(|()| Gate::default());
        let mut set = TaskSet::new();
        for (index, gate) in gates.iter().cloned().enumerate() {
            let wait = async move {
                gate.wait().await;
                index
            };
            set.spawn_on(&home.runtime, wait);
        }
        assert!(poll_here(&mut Box::pin(set.next())).await.is_pending());
        for index in [1, 0, 2] {
            gates[index].open();
            assert_eq!(set.next().await.unwrap().unwrap(), index);
        }
        assert!(set.next().await.is_none());
    });
}

fn each_task_has_one_result(home: &Home) {
    home.block_on(async {
        let mut set = TaskSet::new();
        let count = home.many(5000);
        for n in 0..count {
            set.spawn_on(&home.runtime, async move {
                if n % 3 == 0 {
                    yield_now().await;
                }
                n
            });
        }
        assert_eq!(set.len(), count);
        let results: Vec<_> = (&mut set).map(Result::unwrap).collect().await;
        let mut seen = vec![false; count];
        for n in results {
            assert!(!std::mem::replace(&mut seen[n], true));
        }
        assert!(seen.into_iter().all(|seen| seen) && set.is_empty());
    });
}

fn a_panic_is_the_result_of_its_task_and_ends_no_other(home: &Home) {
    home.block_on(async {
        let mut set = TaskSet::new();
        for n in 0..10 {
            set.spawn_on(&home.runtime, async move {
                yield_now().await;
                assert_ne!(n, 4, "bomb in a set");
                n
            });
        }
        let (mut sum, mut faults) = (0, Vec::new());
        while let Some(result) = set.next().await {
            match result {
                Ok(n) => sum += n,
                Err(fault) => faults.push(fault),
            }
        }
        assert_eq!(sum, 45 - 4);
        let [Fault::Panicked(panic)] = &faults[..] else {
            panic!("one task has panicked: {faults:?}")
        };
        assert!(panic.text().unwrap().contains("bomb in a set"));
    });
}

fn an_empty_set_has_no_next_result(home: &Home) {
    home.block_on(async {
        let mut set = TaskSet::<u32>::default();
        assert!(set.is_empty() && set.next().await.is_none());
        set.shutdown().await;
        assert!(set.next().await.is_none());
    });
}

fn a_set_takes_further_tasks_after_its_last_result(home: &Home) {
    home.block_on(async {
        let mut set = TaskSet::new();
        for round in 0..3 {
            set.spawn_on(&home.runtime, async move { round });
            set.spawn_on(&home.runtime, async move { round });
            assert_eq!(set.next().await.unwrap().unwrap(), round);
            set.shutdown().await;
        }
    });
}

/// Fills a set with tasks that wait forever, each with a value that counts its drop.
fn endless(home: &Home, set: &mut TaskSet<()>, drops: &Drops) {
    for _ in 0..5 {
        let dropped = drops.one();
        set.spawn_on(&home.runtime, async move {
            let _dropped = dropped;
            pending::<()>().await;
        });
    }
}

fn a_dropped_set_cancels_its_tasks(home: &Home) {
    let drops = Drops::default();
    let mut set = TaskSet::new().limit(3);
    endless(home, &mut set, &drops);
    home.block_on(async {
        assert!(poll_here(&mut Box::pin(set.next())).await.is_pending());
    });
    drop(set);
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), 5);
}

fn a_shutdown_waits_until_all_futures_are_dropped(home: &Home) {
    home.block_on(async {
        let drops = Drops::default();
        for limit in [2, 5] {
            let mut set = TaskSet::new().limit(limit);
            endless(home, &mut set, &drops);
            let before = drops.count();
            set.shutdown().await;
            assert_eq!(drops.count(), before + 5);
            assert!(set.is_empty());
            // The set goes on, with its limit.
            set.spawn_on(&home.runtime, async {});
            assert!(set.next().await.unwrap().is_ok());
        }
    });
}

fn a_shutdown_that_is_dropped_cancels_all_tasks(home: &Home) {
    let drops = Drops::default();
    home.block_on(async {
        let mut set = TaskSet::new();
        endless(home, &mut set, &drops);
        let _ = poll_here(&mut Box::pin(set.shutdown())).await;
        assert!(set.next().await.is_none());
        set.spawn_on(&home.runtime, async {});
        assert!(
            set.next().await.unwrap().is_ok(),
            "no result of an old task"
        );
    });
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), 5);
}

fn a_wait_that_is_dropped_loses_no_result(home: &Home) {
    home.block_on(async {
        let mut set = TaskSet::new();
        for n in 0..20 {
            set.spawn_on(&home.runtime, async move {
                yield_now().await;
                n
            });
        }
        let mut sum = 0;
        while !set.is_empty() {
            // Either it returns the result, or it leaves it to the next one.
            if let std::task::Poll::Ready(result) = poll_here(&mut Box::pin(set.next())).await {
                sum += result.unwrap().unwrap();
            }
            yield_now().await;
        }
        assert_eq!(sum, 190);
    });
}

fn at_most_as_many_tasks_run_as_the_limit_allows(home: &Home) {
    home.block_on(async {
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut set = TaskSet::new().limit(3);
        for _ in 0..home.many(1000) {
            let (running, most) = (running.clone(), most.clone());
            set.spawn_on(&home.runtime, async move {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while let Some(result) = set.next().await {
            result.unwrap();
        }
        assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
    });
}

fn tasks_with_a_limit_begin_in_the_order_of_their_spawns(home: &Home) {
    home.block_on(async {
        let begun = Log::default();
        let mut set = TaskSet::new().limit(1);
        for n in 0..20 {
            let begun = begun.clone();
            set.spawn_on(&home.runtime, async move { begun.add(n) });
        }
        while let Some(result) = set.next().await {
            result.unwrap();
        }
        assert_eq!(begun.take(), (0..20).collect::<Vec<_>>());
    });
}

fn a_task_that_ends_in_any_way_lets_the_next_one_begin(home: &Home) {
    home.block_on(async {
        let mut set = TaskSet::new().limit(1);
        set.spawn_on(&home.runtime, async { panic!("bomb in a set") });
        set.spawn_on(&home.runtime, async {
            yield_now().await;
            panic!("another bomb in a set")
        });
        set.spawn_on(&home.runtime, async { 2 });
        let (mut values, mut faults) = (0, 0);
        while let Some(result) = set.next().await {
            match result {
                Ok(n) => values += n,
                Err(_) => faults += 1,
            }
        }
        assert_eq!((values, faults), (2, 2));
    });
}

fn the_future_is_dropped_before_the_result_comes(home: &Home) {
    home.block_on(async {
        let drops = Drops::default();
        let mut set = TaskSet::new();
        let dropped = drops.one();
        // Ready at once, and keeps its value.
        set.spawn_on(
            &home.runtime,
            std::future::poll_fn(move |_| {
                let _dropped = &dropped;
                std::task::Poll::Ready(())
            }),
        );
        set.next().await.unwrap().unwrap();
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn a_set_whose_runtime_is_shut_down_has_faults() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let mut set = TaskSet::new();
        inside(&runtime, || set.spawn(pending::<()>()));
        drive(runtime.spawn(yield_now()));
        drive(runtime.shutdown());
        set.spawn_on(&runtime, async {});
        let faults = drive(async {
            let (first, second) = (set.next().await, set.next().await);
            (first.unwrap().unwrap_err(), second.unwrap().unwrap_err())
        });
        let (Fault::Cancelled, Fault::NotStarted) = faults else {
            panic!("not these faults: {faults:?}")
        };
        assert!(drive(set.next()).is_none());
    });
}

#[test]
fn a_panic_that_is_not_taken_goes_to_on_fault() {
    within(WATCH, || {
        let faults = Log::default();
        let log = faults.clone();
        let builder = Runtime::builder().on_fault(move |fault| log.add(fault.to_string()));
        let runtime = builder.workers(1).build().unwrap();
        let mut set = TaskSet::new();
        set.spawn_on(&runtime, async { panic!("bomb in a set") });
        runtime.run_until_quiescent();
        drop(set);
        let [fault] = &faults.take()[..] else {
            panic!("one fault is reported")
        };
        assert!(fault.contains("bomb in a set"), "{fault}");
    });
}

#[test]
fn a_value_whose_drop_panics_leaves_an_empty_set() {
    within(WATCH, || {
        keep_bombs_quiet();
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (mut set, drops) = (TaskSet::new(), Drops::default());
        let (bomb, dropped) = (Bomb::new(true, &drops), drops.one());
        set.spawn_on(&runtime, async move { Some(bomb) });
        set.spawn_on(&runtime, async move {
            let _dropped = dropped;
            pending().await
        });
        runtime.run_until_quiescent();
        assert_eq!(panic_of(|| drive(set.shutdown())).0, "bomb in a drop");
        set.spawn_on(&runtime, async { None });
        assert!(matches!(drive(set.next()), Some(Ok(None))));
        assert!(drive(set.next()).is_none());
        runtime.run_until_quiescent();
        assert_eq!(drops.count(), 2);
    });
}

#[test]
fn a_task_that_waits_does_not_begin_while_its_set_is_dropped() {
    within(WATCH, || {
        let (gone, own) = (Gate::default(), Arc::new(Mutex::new(None)));
        let (is_gone, taken) = (gone.clone(), own.clone());
        // It is called in the middle of the drop: the first task is cancelled, and the last is not.
        let builder = Runtime::builder().on_fault(move |_| {
            is_gone.pass();
            let runtime: Runtime = taken.lock().unwrap().take().expect("one task panics");
            // A task that may begin does so meanwhile.
            for _ in 0..100 {
                drive(runtime.spawn(yield_now()));
            }
        });
        let runtime = builder.workers(1).build().unwrap();
        *own.lock().unwrap() = Some(runtime.clone());
        let (mut set, opens) = (TaskSet::new().limit(2), OpenOnDrop(gone));
        set.spawn_on(&runtime, async move {
            let _opens = opens;
            pending().await
        });
        set.spawn_on(&runtime, async { panic!("bomb in a set") });
        set.spawn_on(&runtime, pending());
        let begun = Arc::new(AtomicBool::new(false));
        let begins = begun.clone();
        set.spawn_on(
            &runtime,
            async move { begins.store(true, Ordering::SeqCst) },
        );
        runtime.run_until_quiescent();
        drop(set);
        until(|| Arc::strong_count(&begun) == 1);
        assert!(!begun.load(Ordering::SeqCst));
    });
}

#[test]
fn a_local_set_takes_futures_and_values_that_are_not_send() {
    within(WATCH, || {
        let stage = greenroom::Pinned::here();
        let kept = Rc::new(7);
        let run = async {
            let mut set = TaskSet::new().limit(2);
            for _ in 0..5 {
                let own = kept.clone();
                set.spawn_local(async move {
                    yield_now().await;
                    own
                });
            }
            let mut sum = 0;
            while let Some(value) = set.next().await {
                sum += *value.unwrap();
            }
            let own = kept.clone();
            set.spawn_local(async move {
                pending::<()>().await;
                own
            });
            set.shutdown().await;
            sum
        };
        assert_eq!(stage.block_on(run), 35);
        assert_eq!(Rc::strong_count(&kept), 1);
    });
}

#[test]
fn a_task_of_a_pinned_thread_spawns_others_there() {
    Home::watch(Home::pinned, |home| {
        let pinned = home.runtime.spawn_pinned("local").unwrap();
        let task = pinned.spawn(|| async {
            let here = std::thread::current().id();
            let own = Rc::new(here);
            let other = spawn_local(async move { (*own, std::thread::current().id()) });
            let (own, other) = other.await;
            own == here && other == here
        });
        assert!(drive(task));
    });
}

#[test]
fn a_local_task_elsewhere_is_refused_where_it_is_spawned() {
    within(WATCH, || {
        let refused = "`spawn_local` outside a pinned thread and a stage";
        let here = line!() + 1;
        let (text, file, line) = panic_of(|| drop(spawn_local(async {})));
        assert_eq!((&*text, &*file, line), (refused, file!(), here));
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (text, ..) = panic_of(|| inside(&runtime, || TaskSet::new().spawn_local(async {})));
        assert_eq!(text, refused);
        let here = line!() + 1;
        let (text, file, line) = panic_of(|| TaskSet::new().spawn(async {}));
        assert!(text.contains("no greenroom runtime"), "{text}");
        assert_eq!((&*file, line), (file!(), here));
        let (text, ..) = panic_of(|| drop(TaskSet::<()>::new().limit(0)));
        assert_eq!(text, "the limit is 0, but must be at least 1");
    });
}

#[test]
fn results_that_are_always_there_let_other_tasks_run() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let is_seen = is_over.clone();
        let takes = runtime.spawn(async move {
            let mut set = TaskSet::new();
            while !is_seen.load(Ordering::Relaxed) {
                for _ in 0..100 {
                    set.spawn(async {});
                }
                while let Some(result) = set.next().await {
                    result.unwrap();
                }
            }
        });
        let other = runtime.spawn(async move { is_over.store(true, Ordering::Relaxed) });
        runtime.block_on(other);
        runtime.block_on(takes);
    });
}
