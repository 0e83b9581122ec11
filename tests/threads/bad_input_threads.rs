//! A system that refuses to start threads: an error or the documented fallback, and never a hang.
//!
//! Each test is a separate process that can start no threads while its limit forbids it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::time::{Instant, sleep};
use greenroom::{BuildError, Context, Detached, Runtime, SpawnProblem, actor, spawn, unblock};

use crate::child::{ThreadLimit, alone, threads_named};
use crate::support::{Drops, Gate, OpenOnDrop, drive, inside, panic_of, poll_once, until};

fn runtime(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .grace(Duration::from_millis(50))
        .build()
        .unwrap()
}

/// Runs `test` in a separate process with a limit on threads; prints that it is skipped where there
/// is no such limit.
fn limited(name: &'static str, test: impl FnOnce(&ThreadLimit) + Send + 'static) {
    let name = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let own = name.clone();
    alone(&name, move || {
        if let Some(limit) = ThreadLimit::new(&own) {
            test(&limit);
            limit.allow();
        }
    });
}

#[test]
fn a_runtime_without_its_first_worker_is_an_error() {
    limited("a_runtime_without_its_first_worker_is_an_error", |limit| {
        limit.forbid();
        let before = threads_named("");
        let error = Runtime::builder().workers(2).build().unwrap_err();
        let BuildError::Thread {
            workers, started, ..
        } = &error
        else {
            panic!("{error:?}")
        };
        assert_eq!((*workers, *started), (2, 0));
        let text = error.to_string();
        assert!(text.contains("0 of 2 workers"), "{text}");
        assert!(std::error::Error::source(&error).is_none());
        until(|| threads_named("") == before);
        let (text, ..) = panic_of(|| greenroom::run(async {}));
        assert!(text.contains("could not be built"), "{text}");
        limit.allow();
        assert_eq!(
            runtime(2).block_on(async { greenroom::spawn(async { 42 }).await }),
            42
        );
    });
}

#[test]
fn a_runtime_without_its_last_worker_is_an_error_and_leaves_no_thread() {
    limited(
        "a_runtime_without_its_last_worker_is_an_error_and_leaves_no_thread",
        |limit| {
            for more in [1, 2, 3, 7] {
                let drops = Drops::default();
                let dropped = drops.one();
                limit.allow_only(more);
                let builder = Runtime::builder().workers(8).thread_name("partial");
                // Dropped with the last part of the runtime.
                let error = builder
                    .on_fault(move |_| {
                        let _held = &dropped;
                    })
                    .build()
                    .unwrap_err();
                let BuildError::Thread {
                    workers, started, ..
                } = error
                else {
                    panic!("{error:?}")
                };
                assert_eq!((workers, started), (8, more));
                until(|| threads_named("partial") == 0);
                assert_eq!(drops.count(), 1);
            }
        },
    );
}

#[test]
fn spawn_pinned_returns_the_systems_error_if_the_thread_does_not_start() {
    limited(
        "spawn_pinned_returns_the_systems_error_if_the_thread_does_not_start",
        |limit| {
            let runtime = runtime(1);
            limit.forbid();
            let error = runtime.spawn_pinned("pinned").unwrap_err();
            assert!(error.raw_os_error().is_some(), "{error:?}");
            assert_eq!(drive(runtime.spawn(async { 42 })), 42);
            limit.allow();
            let pinned = runtime.spawn_pinned("pinned").unwrap();
            assert_eq!(drive(pinned.spawn(|| async { 42 })), 42);
        },
    );
}

#[test]
fn a_detached_actor_is_returned_if_its_thread_does_not_start() {
    limited(
        "a_detached_actor_is_returned_if_its_thread_does_not_start",
        |limit| {
            let runtime = runtime(1);
            let drops = Drops::default();
            let held = drops.one();
            let make = |_: Context<()>| async move {
                let _held = held;
                42
            };
            let detached = actor(make).on(Detached);
            limit.forbid();
            let error = inside(&runtime, || detached.try_spawn()).unwrap_err();
            assert!(matches!(error.problem(), SpawnProblem::Thread(_)));
            let text = error.to_string();
            assert!(text.contains("the actor's thread did not start"), "{text}");
            assert_eq!(drops.count(), 0);
            let idle = || actor(async |_: Context<()>| ()).name("reader").on(Detached);
            let (text, file, _) = panic_of(|| inside(&runtime, || idle().spawn()));
            assert_eq!(file, file!());
            assert!(
                text.contains("\"reader\": the actor's thread did not"),
                "{text}"
            );
            limit.allow();
            let detached = actor(error.into_inner()).on(Detached);
            let detached = inside(&runtime, || detached.spawn());
            assert_eq!(drive(detached.join()).unwrap(), 42);
            assert_eq!(drops.count(), 1);
            let report = drive(runtime.shutdown());
            assert_eq!((report.cancelled, report.left_behind), (0, 0));
        },
    );
}

#[test]
fn a_blocking_call_runs_on_the_caller_if_no_thread_can_be_started() {
    limited(
        "a_blocking_call_runs_on_the_caller_if_no_thread_can_be_started",
        |limit| {
            let runtime = runtime(1);
            let here = || std::thread::current().id();
            limit.forbid();
            assert_eq!(drive(unblock(here)), here());
            assert_eq!(runtime.block_on(async { unblock(here).await }), here());
            let same = drive(runtime.spawn(async move { (unblock(here).await, here()) }));
            assert_eq!(same.0, same.1);
            crate::support::keep_bombs_quiet();
            let call =
                std::panic::AssertUnwindSafe(unblock(|| -> u32 { panic!("bomb in a call") }));
            assert!(drive(futures::FutureExt::catch_unwind(call)).is_err());
            limit.allow();
            assert_ne!(runtime.block_on(async { unblock(here).await }), here());
        },
    );
}

#[test]
fn no_blocking_call_is_lost_when_no_thread_can_be_started() {
    limited(
        "no_blocking_call_is_lost_when_no_thread_can_be_started",
        |limit| {
            let runtime = runtime(2);
            let made = Arc::new(AtomicUsize::new(0));
            let go = Gate::default();
            let callers: Vec<_> = (0..8)
                .map(|_| {
                    let (runtime, made, go) = (runtime.clone(), made.clone(), go.clone());
                    std::thread::spawn(move || {
                        go.pass();
                        for _ in 0..200 {
                            let made = made.clone();
                            let call = || unblock(move || made.fetch_add(1, Ordering::SeqCst));
                            runtime.block_on(async { call().await });
                        }
                    })
                })
                .collect();
            limit.forbid();
            go.open();
            callers
                .into_iter()
                .for_each(|caller| caller.join().unwrap());
            assert_eq!(made.load(Ordering::SeqCst), 1600);
        },
    );
}

/// Spawns a task that has begun and never ends. The gate opens when the task is dropped.
fn endless(runtime: &Runtime) -> Gate {
    let (begun, gone) = (Gate::default(), Gate::default());
    let (here, opens) = (begun.clone(), OpenOnDrop(gone.clone()));
    let task = async move {
        let _opens = opens;
        here.open();
        std::future::pending::<()>().await;
    };
    runtime.spawn(task).detach();
    begun.pass();
    gone
}

#[test]
fn a_shutdown_needs_no_helper_thread() {
    limited("a_shutdown_needs_no_helper_thread", |limit| {
        for workers in [1, 2] {
            limit.allow();
            let runtime = runtime(workers);
            let gone = endless(&runtime);
            let actor = spawn!(
                |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} },
                on = &runtime
            );
            limit.forbid();
            let report = drive(runtime.shutdown());
            assert_eq!((report.ended, report.left_behind), (1, 0));
            assert!(gone.is_open());
            drive(actor.join()).unwrap();
        }
    });
}

#[test]
fn a_shutdown_from_within_needs_no_helper_thread() {
    limited("a_shutdown_from_within_needs_no_helper_thread", |limit| {
        for workers in [1, 2] {
            limit.allow();
            let runtime = runtime(workers);
            let gone = endless(&runtime);
            limit.forbid();
            let (told, own) = (Gate::default(), Gate::default());
            let (tells, opens) = (told.clone(), OpenOnDrop(own.clone()));
            let task = async move {
                let _opens = opens;
                Runtime::current().shutdown().await;
                tells.open();
                std::future::pending::<()>().await;
            };
            runtime.spawn(task).detach();
            told.pass();
            gone.pass();
            own.pass();
        }
    });
}

#[test]
fn a_shutdown_on_the_thread_of_a_stage_needs_no_helper_thread() {
    let name = "a_shutdown_on_the_thread_of_a_stage_needs_no_helper_thread";
    limited(name, |limit| {
        limit.allow();
        let (runtime, drops) = (runtime(1), Drops::default());
        let (stage, one) = (runtime.pinned_here(), drops.one());
        let waits = stage.spawn(move || async move {
            let _one = one;
            std::future::pending::<()>().await;
        });
        stage.run_ready();
        limit.forbid();
        drop(runtime);
        assert_eq!((drops.count(), stage.run_ready()), (1, 0));
        assert!(drive(waits.fallible()).is_none());
    });
}

#[test]
fn dropping_the_last_clone_in_an_own_task_needs_no_helper_thread() {
    limited(
        "dropping_the_last_clone_in_an_own_task_needs_no_helper_thread",
        |limit| {
            for workers in [1, 2] {
                limit.allow();
                let runtime = runtime(workers);
                let gone = endless(&runtime);
                let (go, own) = (Gate::default(), Gate::default());
                let (waits, opens) = (go.clone(), OpenOnDrop(own.clone()));
                let clone = runtime.clone();
                let task = async move {
                    let _opens = opens;
                    waits.wait().await;
                    drop(clone);
                    std::future::pending::<()>().await;
                };
                runtime.spawn(task).detach();
                drop(runtime);
                limit.forbid();
                go.open();
                gone.pass();
                own.pass();
            }
        },
    );
}

#[test]
fn a_sleep_outside_any_runtime_without_its_thread_panics_and_works_later() {
    limited(
        "a_sleep_outside_any_runtime_without_its_thread_panics_and_works_later",
        |limit| {
            limit.forbid();
            let (text, ..) = panic_of(|| poll_once(&mut sleep(Duration::from_secs(1))));
            assert!(text.contains("cannot start the timer thread"), "{text}");
            // Calls that need no thread still work.
            drive(sleep(Duration::ZERO));
            limit.allow();
            let start = Instant::now();
            drive(sleep(Duration::from_millis(2)));
            assert!(start.elapsed() >= Duration::from_millis(2));
        },
    );
}

#[test]
fn ctrl_c_without_its_thread_returns_the_systems_error_and_works_later() {
    limited(
        "ctrl_c_without_its_thread_returns_the_systems_error_and_works_later",
        |limit| {
            limit.forbid();
            let error = drive(greenroom::ctrl_c()).unwrap_err();
            assert!(error.raw_os_error().is_some(), "{error:?}");
            limit.allow();
            let mut wait = Box::pin(greenroom::ctrl_c());
            assert!(poll_once(&mut wait).is_pending());
            crate::child::interrupt();
            drive(wait).unwrap();
        },
    );
}

#[test]
fn a_call_that_was_dropped_before_it_began_is_not_made() {
    limited(
        "a_call_that_was_dropped_before_it_began_is_not_made",
        |limit| {
            let runtime = runtime(1);
            let (begun, go) = (Gate::default(), Gate::default());
            let (here, waits) = (begun.clone(), go.clone());
            let busy = inside(&runtime, || {
                unblock(move || {
                    here.open();
                    waits.pass();
                })
            });
            begun.pass();
            // Without more threads, the next calls wait for the existing one.
            limit.forbid();
            let (made, drops) = (Arc::new(AtomicUsize::new(0)), Drops::default());
            let call = || {
                let (made, dropped) = (made.clone(), drops.one());
                inside(&runtime, || {
                    unblock(move || {
                        let _dropped = dropped;
                        made.fetch_add(1, Ordering::SeqCst)
                    })
                })
            };
            let (dropped, awaited) = (call(), call());
            drop(dropped);
            go.open();
            drive(awaited);
            drive(busy);
            assert_eq!(made.load(Ordering::SeqCst), 1);
            until(|| drops.count() == 2);
            limit.allow();
        },
    );
}

#[test]
fn calls_that_have_not_begun_when_the_runtime_ends_are_cancelled() {
    limited(
        "calls_that_have_not_begun_when_the_runtime_ends_are_cancelled",
        |limit| {
            let runtime = runtime(1);
            let (begun, go) = (Gate::default(), Gate::default());
            let (here, waits) = (begun.clone(), go.clone());
            let busy = inside(&runtime, || {
                unblock(move || {
                    here.open();
                    waits.pass();
                })
            });
            begun.pass();
            let (end, ends) = std::sync::mpsc::channel();
            let ending = std::thread::spawn(move || drop::<Runtime>(ends.recv().unwrap()));
            // Until the end: a start that is tried again would run the calls.
            limit.forbid();
            let drops = Drops::default();
            let waiting: Vec<_> = (0..10)
                .map(|_| {
                    let dropped = drops.one();
                    inside(&runtime, || unblock(move || drop(dropped)))
                })
                .collect();
            end.send(runtime).unwrap();
            for call in waiting {
                assert!(drive(call.fallible()).is_none());
            }
            assert_eq!(drops.count(), 10);
            go.open();
            drive(busy);
            ending.join().unwrap();
            limit.allow();
        },
    );
}

#[test]
fn block_on_in_a_task_without_a_spare_thread_faults_only_that_task() {
    limited(
        "block_on_in_a_task_without_a_spare_thread_faults_only_that_task",
        |limit| {
            for workers in [1, 2] {
                limit.allow();
                let runtime = runtime(workers);
                let polls = Arc::new(AtomicUsize::new(0));
                let own = polls.clone();
                let wait = move || {
                    let polls = own.clone();
                    Runtime::current().block_on(async move {
                        polls.fetch_add(1, Ordering::SeqCst);
                        greenroom::spawn(async { 42 }).await
                    })
                };
                limit.forbid();
                let (refused, queued) = (wait.clone(), Gate::default());
                let behind = queued.clone();
                let actor = spawn!(
                    |_cx: Context<()>| async move {
                        greenroom::spawn(async move { behind.open() }).detach();
                        let (text, file, _) = panic_of(&refused);
                        assert_eq!(file, file!());
                        assert!(text.contains("`block_on` was called in a task"), "{text}");
                        assert!(text.contains("os error"), "the system's error: {text}");
                        // The thread is still the same worker; this time the panic is not caught.
                        refused()
                    },
                    on = &runtime
                );
                let fault = drive(actor.join()).unwrap_err();
                assert!(
                    fault
                        .to_string()
                        .contains("no spare thread could be started"),
                    "{fault}"
                );
                queued.pass();
                assert_eq!(
                    polls.load(Ordering::SeqCst),
                    0,
                    "the future was polled before the call was refused"
                );
                // An idle thread for blocking calls can be used instead of a new one.
                limit.allow();
                let started = drive(runtime.spawn(async { unblock(|| 42).await }));
                assert_eq!(started, 42);
                limit.forbid();
                // The call ends a moment before its thread is idle.
                let found = || {
                    let wait = wait.clone();
                    let once = async move { catch_unwind(AssertUnwindSafe(wait)).ok() };
                    drive(runtime.spawn(once)) == Some(42)
                };
                until(found);
                let report = drive(runtime.shutdown());
                assert_eq!(report.left_behind, 0);
            }
        },
    );
}

#[test]
fn blocking_calls_run_even_if_they_and_block_on_find_no_thread() {
    limited(
        "blocking_calls_run_even_if_they_and_block_on_find_no_thread",
        |limit| {
            let runtime = runtime(2);
            limit.forbid();
            // Some tasks find no thread for a call while others find none for a wait.
            let tasks: Vec<_> = (0..200)
                .map(|number| {
                    runtime.spawn(async move {
                        if number % 2 == 0 {
                            return unblock(move || number).await;
                        }
                        panic_of(|| Runtime::current().block_on(async {}));
                        number
                    })
                })
                .collect();
            let sum: u32 = tasks.into_iter().map(drive).sum();
            assert_eq!(sum, 199 * 100);
        },
    );
}
