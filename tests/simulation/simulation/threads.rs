//! The single thread of a simulation: which it is, what may run on it, and calls on other threads.

use std::cell::Cell;
use std::rc::Rc;
use std::thread::{self, ThreadId};

use greenroom::policy::Simulated;
use greenroom::{
    Context, Detached, Observer, Runtime, policy::TaskInfo, spawn, unblock, yield_now,
};

use super::{SEEDS, reads, run_of};
use crate::support::{Drops, panic_of};

fn simulated(seed: u64) -> Runtime {
    Runtime::builder()
        .policy(Simulated::new(seed))
        .build()
        .unwrap()
}

fn here() -> ThreadId {
    thread::current().id()
}

async fn says(_cx: Context<u32>) -> ThreadId {
    here()
}

#[test]
fn all_tasks_run_on_the_thread_that_built_the_runtime() {
    for seed in SEEDS {
        let threads = run_of(seed, async {
            let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
            vec![
                here(),
                spawn(async { here() }).await,
                spawn!(says(_)).join().await.unwrap(),
                spawn!(says(_), on = &pinned).join().await.unwrap(),
                spawn!(says(_), on = Detached).join().await.unwrap(),
                pinned.spawn(|| async { here() }).await,
                pinned
                    .host(here)
                    .await
                    .unwrap()
                    .with(|at| *at)
                    .await
                    .unwrap(),
                unblock(here).await,
                spawn(async { Runtime::current().block_on(async { here() }) }).await,
            ]
        });
        assert!(threads.value.iter().all(|&thread| thread == here()));
    }
}

#[test]
fn tasks_spawned_outside_run_when_the_thread_waits_in_the_runtime() {
    let runtime = simulated(1);
    let task = runtime.spawn(async { 42 });
    assert!(!task.is_finished());
    runtime.run_until_quiescent();
    assert!(task.is_finished());
    assert_eq!(runtime.block_on(task), 42);
}

#[test]
fn block_on_panics_on_another_thread() {
    let runtime = simulated(1);
    let (text, ..) = thread::scope(|scope| {
        let elsewhere = scope.spawn(|| panic_of(|| runtime.block_on(async {})));
        elsewhere.join().unwrap()
    });
    assert!(text.contains("the thread that built it"), "{text}");
}

#[test]
fn wakes_and_messages_from_other_threads_are_accepted() {
    let runtime = simulated(1);
    let (send, receive) = futures::channel::oneshot::channel();
    let task = runtime.spawn(receive);
    runtime.run_until_quiescent();
    let reader = greenroom::actor(|mut cx: Context<u32>| async move { cx.recv().await })
        .on(&runtime)
        .spawn();
    thread::scope(|scope| {
        scope.spawn(|| {
            send.send(1).unwrap();
            reader.tell(2).unwrap();
        });
    });
    assert_eq!(runtime.block_on(task), Ok(1));
    assert_eq!(runtime.block_on(reader.join()).unwrap(), Some(2));
}

#[test]
fn a_task_may_wait_in_block_on_while_other_tasks_run() {
    for seed in SEEDS {
        run_of(seed, async {
            let waits = |n: u32| async move {
                let inner = spawn(async move {
                    yield_now().await;
                    n
                });
                Runtime::current().block_on(inner)
            };
            let tasks: Vec<_> = (0..5).map(|n| spawn(waits(n))).collect();
            for (n, task) in (0..5).zip(tasks) {
                assert_eq!(task.await, n);
            }
            assert_eq!(
                unblock(|| Runtime::current().block_on(async { 1 })).await,
                1
            );
        });
    }
}

#[test]
fn inner_calls_of_block_on_return_before_outer_calls() {
    let mut stuck = 0;
    for seed in SEEDS {
        let run = Simulated::new(seed).try_run(async {
            let (go, goes) = futures::channel::oneshot::channel::<()>();
            let first = spawn!(
                |_cx: Context<u32>| async move {
                    Runtime::current().block_on(yield_now());
                    go.send(()).unwrap();
                },
                name = "first"
            );
            let second = spawn!(
                |_cx: Context<u32>| async move { Runtime::current().block_on(goes).unwrap() },
                name = "second"
            );
            first.join().await.unwrap();
            second.join().await.unwrap();
        });
        // If the second wait is nested in the first, the first can't return before it.
        if let Err(failure) = run {
            let text = "deadlock: \"second\" #2 waits, and nothing is left that could wake it; \
                        \"first\" #1 could return, but an inner `block_on` is above it on the \
                        stack";
            assert_eq!(failure.problem().to_string(), text);
            stuck += 1;
        }
    }
    assert!(stuck > 0);
}

#[test]
fn block_on_panics_in_a_task_of_a_pinned_thread() {
    let text = run_of(1, async {
        let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
        let waits = || async { panic_of(|| Runtime::current().block_on(async {})).0 };
        pinned.spawn(waits).await
    });
    assert!(text.value.contains("in a task of a pinned thread"));
}

/// A value that checks in its drop that it is on its own thread.
struct Bound(
    ThreadId,
    Rc<Cell<u32>>,
    #[expect(dead_code, reason = "counted by its drop")] crate::support::Dropped,
);

impl Drop for Bound {
    fn drop(&mut self) {
        assert_eq!(self.0, here(), "dropped on another thread");
        self.1.set(self.1.get() + 1);
    }
}

#[test]
fn pinned_tasks_are_dropped_on_their_thread_or_not_at_all() {
    let (bound, others) = (Drops::default(), Drops::default());
    let begin = |runtime: &Runtime| {
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let (one, other) = (bound.one(), others.one());
        let keeps = pinned.spawn(move || {
            let bound = Bound(here(), Rc::new(Cell::new(0)), one);
            async move {
                std::future::pending::<()>().await;
                drop(bound);
            }
        });
        keeps.detach();
        runtime
            .spawn(async move {
                std::future::pending::<()>().await;
                drop(other);
            })
            .detach();
        runtime.run_until_quiescent();
    };
    let runtime = simulated(1);
    begin(&runtime);
    drop(runtime);
    assert_eq!((bound.count(), others.count()), (1, 1));
    let runtime = simulated(2);
    begin(&runtime);
    thread::spawn(move || drop(runtime)).join().unwrap();
    assert_eq!((bound.count(), others.count()), (1, 2));
}

#[test]
fn an_observer_is_notified_of_every_turn() {
    #[derive(Clone, Default)]
    struct Counts(std::sync::Arc<std::sync::Mutex<Vec<String>>>);
    impl Observer for Counts {
        fn before_run(&self, task: &TaskInfo) {
            self.0
                .lock()
                .unwrap()
                .push(task.name().unwrap_or("task").into());
        }
    }
    let counts = Counts::default();
    let builder = Runtime::builder().policy(Simulated::new(1));
    let runtime = builder.observer(counts.clone()).build().unwrap();
    runtime.block_on(runtime.spawn(async {}));
    let pinned = runtime.spawn_pinned("pinned").unwrap();
    let reader = greenroom::actor(reads).name("reads").on(&pinned).spawn();
    runtime.block_on(reader.join()).unwrap();
    let runs = counts.0.lock().unwrap();
    assert!(
        runs[0] == "task" && runs[1..].iter().all(|name| name == "reads"),
        "{runs:?}"
    );
    assert_eq!(
        runtime.stats().total().runs,
        1,
        "the stats count the turns of the workers only"
    );
}

#[test]
fn a_pinned_thread_serves_calls_in_order() {
    for seed in SEEDS {
        run_of(seed, async {
            let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
            let list = pinned.host(Vec::new).await.unwrap();
            let calls = (0..50).map(|n| list.with_mut(move |list| list.push(n)));
            for called in futures::future::join_all(calls).await {
                called.unwrap();
            }
            let all = list.with(Vec::clone).await.unwrap();
            assert_eq!(all, (0..50).collect::<Vec<_>>());
        });
    }
}

/// None of these four waits, which block threads in a threaded runtime, prevents another one.
#[test]
fn an_inner_block_on_may_wait_for_the_future_of_the_run() {
    for seed in SEEDS {
        run_of(seed, async {
            let echo = spawn!(
                |mut cx: Context<(u32, greenroom::Reply<u32>)>| async move {
                    // A detached actor has its own thread, so `block_on` just waits.
                    while let Some((n, reply)) = Runtime::current().block_on(cx.recv()) {
                        reply.send(n);
                    }
                },
                on = Detached
            );
            for n in 0..3 {
                assert_eq!(echo.ask(|reply| (n, reply)).await, Ok(n));
            }
            let (send, receive) = futures::channel::oneshot::channel();
            let job = unblock(|| Runtime::current().block_on(receive));
            yield_now().await;
            send.send(5).unwrap();
            assert_eq!(job.await, Ok(5));
            let (send, receive) = futures::channel::oneshot::channel();
            let task = spawn(async { Runtime::current().block_on(receive) });
            greenroom::time::sleep(std::time::Duration::from_secs(1)).await;
            send.send(6).unwrap();
            assert_eq!(task.await, Ok(6));
            echo.join().await.unwrap();
        });
    }
}

#[test]
fn a_panic_of_an_outer_future_reaches_its_own_block_on() {
    crate::support::keep_bombs_quiet();
    let runtime = simulated(3);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async {
            let (send, receive) = futures::channel::oneshot::channel::<()>();
            let task = spawn(async { Runtime::current().block_on(receive) });
            yield_now().await;
            drop(send);
            yield_now().await;
            drop(task);
            panic!("bomb in an outer future");
        })
    }));
    let text = caught.unwrap_err();
    assert_eq!(text.downcast_ref(), Some(&"bomb in an outer future"));
    assert_eq!(runtime.block_on(async { 42 }), 42);
}
