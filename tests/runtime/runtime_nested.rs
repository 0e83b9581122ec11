//! Several runtimes on one thread: nested, interleaved, and within each other's tasks.

use std::future::Future;
use std::pin::pin;

use greenroom::{Context, Runtime, spawn};

use crate::runtime_current::{current, named};
use crate::support::{Drops, Gate, Log, WATCH, panic_of, poll_here, within};

/// Returns the name of the runtime on which a spawned task runs.
async fn spawned() -> String {
    greenroom::spawn(async { current() }).await
}

#[test]
fn the_outer_runtime_is_current_again_after_the_inner_one() {
    within(WATCH, || {
        let (a, b, c) = (named("a"), named("b"), named("c"));
        a.block_on(async {
            for _ in 0..3 {
                b.block_on(async {
                    assert_eq!((current(), spawned().await), ("b".into(), "b".into()));
                    c.block_on(async {
                        assert_eq!((current(), spawned().await), ("c".into(), "c".into()));
                        // The outermost runtime once more, inside the others.
                        a.block_on(async { assert_eq!(spawned().await, "a") });
                        assert_eq!((current(), spawned().await), ("c".into(), "c".into()));
                    });
                    assert_eq!((current(), spawned().await), ("b".into(), "b".into()));
                });
                assert_eq!((current(), spawned().await), ("a".into(), "a".into()));
            }
        });
        assert!(Runtime::try_current().is_none());
    });
}

#[test]
fn after_a_panic_in_the_inner_runtime_the_outer_one_is_current() {
    within(WATCH, || {
        let (a, b) = (named("a"), named("b"));
        a.block_on(async {
            panic_of(|| b.block_on(async { panic!("bomb in the inner one") }));
            assert_eq!((current(), spawned().await), ("a".into(), "a".into()));
        });
        assert!(Runtime::try_current().is_none());
    });
}

#[test]
fn one_future_can_be_polled_by_two_runtimes_in_turns() {
    within(WATCH, || {
        let (a, b) = (named("a"), named("b"));
        // The future sees the runtime that polls it, and wakes the current waiter.
        let seen = Log::default();
        let mut future = pin!(async {
            for _ in 0..6 {
                seen.add(spawned().await);
                greenroom::yield_now().await;
            }
        });
        let mut done = false;
        while !done {
            for runtime in [&a, &b] {
                done = done || runtime.block_on(poll_here(&mut future)).is_ready();
            }
        }
        let seen = seen.take();
        assert_eq!(seen.len(), 6);
        assert!(
            seen.iter().all(|name| name == "a" || name == "b"),
            "{seen:?}"
        );
    });
}

#[test]
fn an_inner_runtime_can_end_while_the_outer_one_continues() {
    within(WATCH, || {
        let a = named("a");
        a.block_on(async {
            let drops = Drops::default();
            for _ in 0..10 {
                let dropped = drops.one();
                let b = named("b");
                b.spawn(async move {
                    let _dropped = dropped;
                    std::future::pending::<()>().await;
                })
                .detach();
                assert_eq!(b.block_on(spawned()), "b");
                drop(b);
                assert_eq!((current(), spawned().await), ("a".into(), "a".into()));
            }
            assert_eq!(drops.count(), 10);
        });
    });
}

#[test]
fn a_runtime_may_be_built_used_and_dropped_in_a_task_of_another() {
    within(WATCH, || {
        let a = named("a");
        let drops = Drops::default();
        let dropped = drops.one();
        let name = a.block_on(a.spawn(async move {
            let b = named("b");
            let pinned = b.spawn_pinned("pinned").unwrap();
            let name = b.spawn(async { current() }).await;
            pinned
                .spawn(move || async move {
                    let _dropped = dropped;
                    std::future::pending::<()>().await;
                })
                .detach();
            pinned.spawn(|| async {}).await;
            drop(b);
            assert_eq!(current(), "a");
            name
        }));
        assert_eq!(name, "b");
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn tasks_of_two_runtimes_can_await_each_other() {
    within(WATCH, || {
        let (a, b) = (named("a"), named("b"));
        let (to_a, to_b) = (a.clone(), b.clone());
        let depth = a.block_on(bounce(to_a, to_b, 50));
        assert_eq!(depth, 50);
    });
}

/// Spawns a task on `one` that awaits a task on `other` that awaits a task on `one`, and so on.
fn bounce(
    one: Runtime,
    other: Runtime,
    left: u32,
) -> std::pin::Pin<Box<dyn Future<Output = u32> + Send>> {
    Box::pin(async move {
        if left == 0 {
            return 0;
        }
        let next = one.clone();
        one.spawn(async move { bounce(other, next, left - 1).await + 1 })
            .await
    })
}

#[test]
fn actors_of_two_runtimes_exchange_messages() {
    within(WATCH, || {
        let (a, b) = (named("a"), named("b"));
        let done = Gate::default();
        let opener = done.clone();
        let counter = spawn!(
            |mut cx: Context<u32>| async move {
                let mut sum = 0;
                while sum < 100 {
                    sum += cx.recv().await.unwrap();
                }
                opener.open();
                current()
            },
            on = &b
        );
        let address = counter.address();
        let sender = spawn!(
            |_cx: Context<()>| async move { (0..100).for_each(|_| address.tell(1).unwrap()) },
            on = &a
        );
        done.pass();
        a.block_on(async {
            sender.join().await.unwrap();
            assert_eq!(counter.join().await.unwrap(), "b");
        });
    });
}
