//! Panics of tasks and actors: they are contained, and reported to `on_fault` once if they are not
//! joined.

use greenroom::{Context, Runtime, spawn};

use crate::support::{Drops, Gate, Log, WATCH, drive, keep_bombs_quiet, poll_here, within};

/// Builds a runtime that logs the calls of `on_fault`; each call opens the gate.
fn telling(workers: usize) -> (Runtime, Log<String>, Gate) {
    keep_bombs_quiet();
    let (log, told) = (Log::default(), Gate::default());
    let (entries, opens) = (log.clone(), told.clone());
    let runtime = Runtime::builder()
        .workers(workers)
        .on_fault(move |unhandled| {
            entries.add(unhandled.to_string());
            opens.open();
        })
        .build()
        .unwrap();
    (runtime, log, told)
}

#[test]
fn the_panic_of_a_detached_task_is_reported_once() {
    within(WATCH, || {
        for workers in [1, 2] {
            let (runtime, log, told) = telling(workers);
            runtime.spawn(async { panic!("bomb in a task") }).detach();
            told.pass();
            drop(runtime);
            assert_eq!(
                log.take(),
                ["task the_panic_of_a_detached_task_is_reported_once panicked: bomb in a task"]
            );
        }
    });
}

#[test]
fn the_panic_of_a_task_that_is_dropped_later_is_reported_once() {
    within(WATCH, || {
        let (runtime, log, _) = telling(1);
        let task = runtime.spawn(async { panic!("bomb in a task") });
        crate::support::until(|| task.is_finished());
        assert_eq!(log.take(), [""; 0], "the task may still be awaited");
        drop::<greenroom::Task<()>>(task);
        let name = "task the_panic_of_a_task_that_is_dropped_later_is_reported_once";
        assert_eq!(log.take(), [format!("{name} panicked: bomb in a task")]);
        // Also if the runtime was dropped before.
        let task = runtime.spawn(async { panic!("bomb in another") });
        crate::support::until(|| task.is_finished());
        drop(runtime);
        drop::<greenroom::Task<()>>(task);
        assert_eq!(log.take(), [format!("{name} panicked: bomb in another")]);
    });
}

#[test]
fn a_panic_that_is_awaited_is_not_reported() {
    within(WATCH, || {
        let (runtime, log, _) = telling(1);
        let caught = |future: std::pin::Pin<Box<dyn Future<Output = ()>>>| {
            let drive = std::panic::AssertUnwindSafe(|| drive(future));
            assert!(std::panic::catch_unwind(drive).is_err());
        };
        let panicking = || runtime.spawn(async { panic!("bomb in a task") });
        caught(Box::pin(panicking()));
        let task = panicking().fallible();
        caught(Box::pin(async { task.await.unwrap() }));
        let task = panicking();
        crate::support::until(|| task.is_finished());
        caught(Box::pin(async { task.cancel().await.unwrap() }));
        drop(runtime);
        assert_eq!(log.take(), [""; 0]);
    });
}

#[test]
fn the_panic_of_an_unjoined_actor_is_reported_once_with_name_and_id() {
    within(WATCH, || {
        for workers in [1, 2] {
            let (runtime, log, told) = telling(workers);
            let actor = spawn!(
                |_cx: Context<()>| async { panic!("bomb in an actor") },
                name = "fragile",
                on = &runtime
            );
            let id = actor.id();
            drop(actor);
            told.pass();
            drop(runtime);
            assert_eq!(
                log.take(),
                [format!("\"fragile\" #{id} panicked: bomb in an actor")]
            );
        }
    });
}

#[test]
fn the_panic_of_a_joined_actor_is_not_reported() {
    within(WATCH, || {
        let (runtime, log, _) = telling(1);
        let actor = spawn!(
            |_cx: Context<()>| async { panic!("bomb in an actor") },
            on = &runtime
        );
        let fault: Result<(), _> = drive(actor.join());
        assert_eq!(fault.unwrap_err().to_string(), "panicked: bomb in an actor");
        drop(runtime);
        assert_eq!(log.take(), [""; 0]);
    });
}

#[test]
fn panics_on_pinned_threads_and_in_blocking_calls_are_reported() {
    within(WATCH, || {
        let (runtime, log, _) = telling(1);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        pinned
            .spawn(|| async { panic!("bomb on a pinned thread") })
            .detach();
        drive(pinned.spawn(|| async {}));
        runtime.block_on(async {
            greenroom::unblock(|| panic!("bomb in a job")).detach();
            greenroom::unblock(|| {}).await;
        });
        drop(runtime);
        let mut told = log.take();
        told.sort();
        let name = "task panics_on_pinned_threads_and_in_blocking_calls_are_reported";
        let expected = ["in a job", "on a pinned thread"];
        assert_eq!(
            told,
            expected.map(|at| format!("{name} panicked: bomb {at}"))
        );
    });
}

#[test]
fn tasks_cancelled_by_a_shutdown_are_not_reported() {
    within(WATCH, || {
        let (runtime, log, _) = telling(1);
        runtime.spawn(std::future::pending::<()>()).detach();
        drop(spawn!(
            |_cx: Context<()>| std::future::pending::<()>(),
            on = &runtime
        ));
        drive(runtime.spawn(async {}));
        drop(runtime);
        assert_eq!(log.take(), [""; 0]);
    });
}

#[test]
fn a_panic_of_on_fault_ends_no_worker_and_no_pinned_thread() {
    within(WATCH, || {
        keep_bombs_quiet();
        for workers in [1, 2] {
            let told = Gate::default();
            let opens = told.clone();
            let builder = Runtime::builder().workers(workers).on_fault(move |_| {
                opens.open();
                panic!("bomb in on_fault");
            });
            let runtime = builder.build().unwrap();
            runtime.spawn(async { panic!("bomb in a task") }).detach();
            told.pass();
            let pinned = runtime.spawn_pinned("pinned").unwrap();
            pinned.spawn(|| async { panic!("bomb in a task") }).detach();
            assert_eq!(drive(pinned.spawn(|| async { 42 })), 42);
            assert_eq!(drive(runtime.spawn(async { 42 })), 42);
        }
    });
}

#[test]
fn workers_survive_any_number_of_panics() {
    within(WATCH, || {
        let (runtime, log, _) = telling(2);
        for _ in 0..100 {
            runtime
                .spawn(async { panic!("bomb in its first turn") })
                .detach();
            let later = async {
                greenroom::yield_now().await;
                panic!("bomb in a later turn")
            };
            runtime.spawn(later).detach();
            drop(spawn!(
                |_cx: Context<()>| async { panic!("bomb in an actor") },
                on = &runtime
            ));
        }
        // Both workers still exist: two tasks meet at a barrier.
        let meeting = std::sync::Arc::new(std::sync::Barrier::new(2));
        runtime.block_on(async {
            let meet = || {
                let meeting = meeting.clone();
                greenroom::spawn(async move { meeting.wait().is_leader() })
            };
            futures::join!(meet(), meet());
        });
        crate::support::until(|| log.len() == 300);
    });
}

#[test]
fn pinned_threads_and_threads_for_blocking_calls_survive_panics() {
    within(WATCH, || {
        let (runtime, _, _) = telling(1);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let here = || std::thread::current().id();
        let before = drive(pinned.spawn(move || async move { here() }));
        pinned
            .spawn(|| async { panic!("bomb on a pinned thread") })
            .detach();
        assert_eq!(drive(pinned.spawn(move || async move { here() })), before);
        // More calls than the limit on threads, in case each panic ended a thread.
        runtime.block_on(async {
            for n in 0..600 {
                let call =
                    std::panic::AssertUnwindSafe(greenroom::unblock(|| panic!("bomb in a job")));
                let outcome: Result<(), _> = futures::FutureExt::catch_unwind(call).await;
                assert!(outcome.is_err());
                assert_eq!(greenroom::unblock(move || n).await, n);
            }
        });
    });
}

#[test]
fn a_panic_payload_that_panics_in_its_drop_is_contained() {
    struct Payload(#[expect(dead_code, reason = "counted by its drop")] crate::support::Bomb);
    within(WATCH, || {
        let (runtime, log, _) = telling(1);
        let drops = Drops::default();
        let payload = || Payload(crate::support::Bomb::new(true, &drops));
        let (one, two, three) = (payload(), payload(), payload());
        runtime
            .spawn(async { std::panic::resume_unwind(Box::new(one)) })
            .detach();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        pinned
            .spawn(|| async { std::panic::resume_unwind(Box::new(two)) })
            .detach();
        drop(spawn!(
            |_cx: Context<()>| async { std::panic::resume_unwind(Box::new(three)) },
            on = &runtime
        ));
        crate::support::until(|| drops.count() == 3);
        assert_eq!(drive(runtime.spawn(async { 42 })), 42);
        assert_eq!(drive(pinned.spawn(|| async { 42 })), 42);
        drop(runtime);
        assert_eq!(log.take().len(), 3);
    });
}

#[test]
fn a_panic_in_a_later_turn_drops_the_future_before_the_task_is_finished() {
    within(WATCH, || {
        let (runtime, _, _) = telling(1);
        let drops = Drops::default();
        let (dropped, go) = (drops.one(), Gate::default());
        let waits = go.clone();
        let mut task = runtime.spawn(async move {
            let _dropped = dropped;
            waits.wait().await;
            panic!("bomb in a task")
        });
        runtime.block_on(async { assert!(poll_here(&mut task).await.is_pending()) });
        go.open();
        crate::support::until(|| task.is_finished());
        assert_eq!(drops.count(), 1);
        drop::<greenroom::Task<()>>(task);
    });
}
