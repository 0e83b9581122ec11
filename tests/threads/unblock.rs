//! `unblock`: calls that block, on threads that may block.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use greenroom::{Context, Runtime, spawn, unblock};

use crate::support::{Drops, Gate, WATCH, drive, inside, keep_bombs_quiet, until, within};

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

#[test]
fn unblock_returns_the_value_and_occupies_no_worker() {
    within(WATCH, || {
        let runtime = runtime(1);
        let on_worker = drive(runtime.spawn(async { std::thread::current().id() }));
        let on_other =
            drive(runtime.spawn(async { unblock(|| std::thread::current().id()).await }));
        assert_ne!(on_worker, on_other);
        // The only worker continues while a call blocks.
        let value = drive(runtime.spawn(async {
            let gate = Gate::default();
            let waits = gate.clone();
            let call = unblock(move || {
                waits.pass();
                42
            });
            greenroom::spawn(async move { gate.open() }).await;
            call.await
        }));
        assert_eq!(value, 42);
    });
}

#[test]
fn unblock_resumes_a_panic() {
    within(WATCH, || {
        keep_bombs_quiet();
        let runtime = runtime(1);
        runtime.block_on(async {
            let call =
                std::panic::AssertUnwindSafe(unblock(|| -> u32 { panic!("bomb in a call") }));
            let payload = futures::FutureExt::catch_unwind(call).await.unwrap_err();
            assert_eq!(payload.downcast_ref::<&str>(), Some(&"bomb in a call"));
            assert_eq!(unblock(|| 42).await, 42);
        });
    });
}

#[test]
fn a_call_begins_without_an_await_and_continues_when_it_is_dropped() {
    within(WATCH, || {
        let runtime = runtime(1);
        let (begun, go, done) = (Gate::default(), Gate::default(), Gate::default());
        let (here, waits, opens) = (begun.clone(), go.clone(), done.clone());
        let call = inside(&runtime, || {
            unblock(move || {
                here.open();
                waits.pass();
                opens.open();
            })
        });
        begun.pass();
        drop(call);
        go.open();
        done.pass();
        // The value of a detached call is dropped.
        let drops = Drops::default();
        let dropped = drops.one();
        runtime.block_on(async { unblock(move || dropped).detach() });
        until(|| drops.count() == 1);
    });
}

#[test]
fn a_hundred_calls_may_wait_for_each_other() {
    within(WATCH, || {
        let runtime = runtime(1);
        for _ in 0..3 {
            let meeting = Arc::new(Barrier::new(100));
            runtime.block_on(async {
                let calls: Vec<_> = (0..100)
                    .map(|_| {
                        let meeting = meeting.clone();
                        unblock(move || meeting.wait().is_leader())
                    })
                    .collect();
                futures::future::join_all(calls).await;
            });
        }
    });
}

#[test]
fn calls_from_many_threads_may_wait_for_each_other() {
    within(WATCH, || {
        let runtime = runtime(2);
        for _ in 0..20 {
            let meeting = Arc::new(Barrier::new(24));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    let (runtime, meeting) = (&runtime, &meeting);
                    scope.spawn(move || {
                        runtime.block_on(async {
                            let calls: Vec<_> = (0..6)
                                .map(|_| {
                                    let meeting = meeting.clone();
                                    unblock(move || meeting.wait().is_leader())
                                })
                                .collect();
                            futures::future::join_all(calls).await;
                        });
                    });
                }
            });
        }
    });
}

#[test]
fn more_calls_than_the_limit_of_threads_are_all_made() {
    within(WATCH, || {
        let runtime = runtime(1);
        let made = Arc::new(AtomicUsize::new(0));
        runtime.block_on(async {
            let calls: Vec<_> = (0..2000)
                .map(|_| {
                    let made = made.clone();
                    unblock(move || made.fetch_add(1, Ordering::SeqCst))
                })
                .collect();
            futures::future::join_all(calls).await;
        });
        assert_eq!(made.load(Ordering::SeqCst), 2000);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn calls_wait_in_a_line_while_512_threads_are_busy() {
    use crate::child::{alone, threads_named};
    alone(
        "unblock::calls_wait_in_a_line_while_512_threads_are_busy",
        || {
            let runtime = runtime(1);
            let (meeting, go) = (Arc::new(Barrier::new(513)), Gate::default());
            let made = Arc::new(AtomicUsize::new(0));
            let taken = |_| {
                let (meeting, go) = (meeting.clone(), go.clone());
                unblock(move || {
                    meeting.wait();
                    go.pass();
                })
            };
            let further = |_| {
                let (made, go) = (made.clone(), go.clone());
                unblock(move || {
                    assert!(go.is_open(), "there were more than 512 threads");
                    made.fetch_add(1, Ordering::SeqCst);
                })
            };
            runtime.block_on(async {
                let taken: Vec<_> = (0..512).map(taken).collect();
                meeting.wait();
                let threads = threads_named("");
                let further: Vec<_> = (0..100).map(further).collect();
                assert_eq!(threads_named(""), threads);
                go.open();
                futures::future::join_all(taken.into_iter().chain(further)).await;
            });
            assert_eq!(made.load(Ordering::SeqCst), 100);
        },
    );
}

#[test]
fn outside_any_runtime_unblock_uses_threads_of_the_process() {
    within(WATCH, || {
        assert_eq!(drive(unblock(|| 42)), 42);
        assert!(drive(unblock(Runtime::try_current)).is_none());
        let meeting = Arc::new(Barrier::new(10));
        let calls: Vec<_> = (0..10)
            .map(|_| {
                let meeting = meeting.clone();
                unblock(move || meeting.wait().is_leader())
            })
            .collect();
        drive(futures::future::join_all(calls));
        keep_bombs_quiet();
        let call = std::panic::AssertUnwindSafe(unblock(|| -> u32 { panic!("bomb in a call") }));
        assert!(drive(futures::FutureExt::catch_unwind(call)).is_err());
        assert_eq!(futures::executor::block_on(unblock(|| 42)), 42);
    });
}

#[test]
fn a_call_may_use_the_runtime_as_a_task_does() {
    within(WATCH, || {
        let runtime = runtime(1);
        let sum = runtime.block_on(unblock_in(|| {
            let runtime = Runtime::current();
            let counter = spawn!(|mut cx: Context<u32>| async move {
                let mut sum = 0;
                while let Some(n) = cx.recv().await {
                    sum += n;
                }
                sum
            });
            (1..=4).for_each(|n| counter.tell(n).unwrap());
            let nested = drive(unblock(|| 10));
            nested + runtime.block_on(counter.join()).unwrap()
        }));
        assert_eq!(sum, 20);
    });
}

async fn unblock_in<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    unblock(call).await
}

#[test]
fn a_call_that_waits_for_a_cancelled_task_returns_at_the_shutdown() {
    within(WATCH, || {
        // The shutdown waits for the call without a limit, so the call must return.
        let runtime = Runtime::builder()
            .workers(1)
            .grace(std::time::Duration::MAX)
            .build()
            .unwrap();
        let (send, receive) = std::sync::mpsc::channel::<()>();
        runtime
            .spawn(async move {
                let _send = send;
                std::future::pending::<()>().await;
            })
            .detach();
        let begun = Gate::default();
        let here = begun.clone();
        let job = inside(&runtime, || {
            unblock(move || {
                here.open();
                receive.recv().is_err()
            })
        });
        begun.pass();
        let report = drive(runtime.shutdown());
        assert_eq!(report.left_behind, 0);
        assert!(drive(job));
    });
}

#[test]
fn at_most_blocking_threads_calls_run_at_the_same_time() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(1)
            .max_blocking_workers(1)
            .build()
            .unwrap();
        let (begun, go) = (Gate::default(), Gate::default());
        let (here, waits) = (begun.clone(), go.clone());
        let made = Arc::new(AtomicUsize::new(0));
        let own = made.clone();
        let calls = inside(&runtime, || {
            let first = unblock(move || {
                here.open();
                waits.pass();
            });
            (first, unblock(move || own.fetch_add(1, Ordering::SeqCst)))
        });
        begun.pass();
        assert_eq!(made.load(Ordering::SeqCst), 0);
        go.open();
        runtime.block_on(calls.0);
        assert_eq!(runtime.block_on(calls.1), 0);
    });
}

#[test]
fn a_pool_without_threads_is_refused() {
    let refused = Runtime::builder()
        .max_blocking_workers(0)
        .build()
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "max_blocking_workers is 0, but must be at least 1"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn idle_threads_of_a_pool_end_except_for_one() {
    use std::time::Duration;

    use crate::child::{alone, threads_named};
    alone("unblock::idle_threads_of_a_pool_end_except_for_one", || {
        let runtime = Runtime::builder()
            .workers(1)
            .thread_name("idle")
            .blocking_idle(Duration::from_millis(1))
            .build()
            .unwrap();
        for _ in 0..3 {
            let meeting = Arc::new(Barrier::new(20));
            runtime.block_on(async {
                let meets = |_| {
                    let meeting = meeting.clone();
                    unblock(move || meeting.wait().is_leader())
                };
                futures::future::join_all((0..20).map(meets)).await;
            });
            until(|| threads_named("idle-blocking") == 1);
        }
        // The one that is left serves.
        assert_eq!(runtime.block_on(async { unblock(|| 42).await }), 42);
        assert_eq!(threads_named("idle-blocking"), 1);
    });
}

#[test]
fn stats_have_the_threads_and_the_calls_that_wait() {
    within(WATCH, || {
        let builder = Runtime::builder().workers(1).max_blocking_workers(1);
        let runtime = builder.build().unwrap();
        let stats = || runtime.stats().blocking;
        assert_eq!(
            (stats().threads, stats().started, stats().longest_wait),
            (0, 0, None)
        );
        let (begun, go) = (Gate::default(), Gate::default());
        let (here, waits) = (begun.clone(), go.clone());
        let first = inside(&runtime, || {
            unblock(move || {
                here.open();
                waits.pass();
            })
        });
        drive(begun.wait());
        let second = inside(&runtime, || unblock(|| 42));
        assert_eq!((stats().threads, stats().idle, stats().queued), (1, 0, 1));
        let waited = stats().longest_wait.unwrap();
        until(|| stats().longest_wait.is_some_and(|now| now > waited));
        go.open();
        drive(first);
        assert_eq!(drive(second), 42);
        until(|| stats().idle == 1);
        assert_eq!((stats().queued, stats().longest_wait), (0, None));
        assert_eq!((stats().started, stats().failed_starts), (1, 0));
    });
}
