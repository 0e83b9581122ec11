//! A shutdown while a task is in `block_on`: its thread counts like any thread in user code.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::{Context, Fault, Handle, HostFault, Runtime, Task, spawn, unblock, yield_now};

use crate::support::{
    Drops, Gate, OpenOnDrop, WATCH, drive, inside, open_when_pending, poll_here, poll_once, until,
    within,
};
use crate::thread_locals::OnDrop;

fn runtime(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .grace(Duration::from_millis(10))
        .on_fault(|_| {})
        .build()
        .unwrap()
}

fn wait<F: Future>(future: F) -> F::Output {
    Runtime::current().block_on(future)
}

/// Spawns an actor that ends when it is stopped.
fn obedient(runtime: &Runtime) -> Handle<(), ()> {
    spawn!(
        |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} },
        on = runtime
    )
}

#[test]
fn a_thread_in_a_block_on_that_the_shutdown_cannot_end_is_left_behind() {
    within(WATCH, || {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let (begun, go, drops) = (Gate::default(), Gate::default(), Drops::default());
            let (here, waits, dropped) = (begun.clone(), go.clone(), drops.one());
            let waiting = spawn!(
                |_cx: Context<()>| async move {
                    let _dropped = dropped;
                    wait(open_when_pending(here, waits.wait()));
                    std::future::pending::<()>().await;
                },
                on = &runtime
            );
            let ends = obedient(&runtime);
            begun.pass();
            let report = drive(runtime.shutdown());
            assert_eq!(
                (report.ended, report.cancelled, report.left_behind),
                (1, 1, 1),
                "the thread in `block_on` is left behind, with {workers} workers"
            );
            drive(ends.join()).unwrap();
            let mut join = waiting.join();
            assert!(
                poll_once(&mut join).is_pending(),
                "the actor is still in its turn"
            );
            // When `block_on` returns, the thread drops the task and ends.
            go.open();
            assert!(matches!(drive(join), Err(Fault::Cancelled)));
            until(|| drops.count() == 1);
        }
    });
}

#[test]
fn a_thread_in_block_on_returns_when_the_awaited_task_is_cancelled() {
    within(WATCH, || {
        let runtime = runtime(1);
        let (begun, opened) = (Gate::default(), Gate::default());
        let (here, opens) = (begun.clone(), OpenOnDrop(opened.clone()));
        let waiting = spawn!(
            |_cx: Context<()>| async move {
                let _opens = opens;
                let task = greenroom::spawn(std::future::pending::<()>());
                wait(open_when_pending(here, task.fallible()))
            },
            on = &runtime
        );
        begun.pass();
        let report = drive(runtime.shutdown());
        // The task ended in that turn, before or after its cancellation was requested.
        assert_eq!(report.ended + report.cancelled, 1);
        assert_eq!(report.left_behind, 0);
        assert!(opened.is_open());
        assert!(matches!(
            drive(waiting.join()),
            Ok(None) | Err(Fault::Cancelled)
        ));
    });
}

#[test]
fn a_turn_may_wait_for_what_it_has_woken_when_the_shutdown_was_not_over() {
    within(WATCH, || {
        let builder = Runtime::builder().workers(1);
        let runtime = builder.grace(Duration::from_secs(1)).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let [begun, wakes, wakes_turn, ends] = [(); 4].map(|()| Gate::default());
        let (over, opens) = (Gate::default(), begun.clone());
        let is_over = OpenOnDrop(over.clone());
        // The thread drops it when the workers were told to end.
        pinned
            .spawn(|| async move {
                let _is_over = is_over;
                opens.open();
                std::future::pending::<()>().await;
            })
            .detach();
        begun.pass();
        let (stops, waits) = (wakes_turn.clone(), ends.clone());
        let _stays = spawn!(
            |mut cx: Context<()>| async move {
                while cx.recv().await.is_some() {}
                stops.open();
                waits.wait().await;
            },
            on = &pinned
        );
        let woken = wakes.clone();
        let mut task = runtime.spawn(async move {
            woken.wait().await;
            std::future::pending::<()>().await;
        });
        runtime.block_on(async { assert!(poll_here(&mut task).await.is_pending()) });
        runtime
            .spawn(async move {
                wakes_turn.wait().await;
                // It is in the queue of the worker that this turn holds.
                wakes.open();
                ends.open();
                over.pass();
                assert_eq!(wait(task.fallible()), None);
            })
            .detach();
        assert_eq!(drive(runtime.shutdown()).left_behind, 0);
    });
}

#[test]
fn a_call_of_a_hosted_value_fails_while_a_task_of_its_thread_awaits_the_shutdown() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let hosted = drive(pinned.host(|| 42)).unwrap();
        let (begun, dropped) = (Gate::default(), Gate::default());
        let (opens, guard) = (begun.clone(), OpenOnDrop(dropped.clone()));
        pinned
            .spawn(|| async move {
                let _guard = guard;
                opens.open();
                std::future::pending::<()>().await;
            })
            .detach();
        begun.pass();
        let job = move || {
            // From now on the thread stays for the task below alone.
            dropped.pass();
            wait(hosted.with(|value| *value))
        };
        let call = inside(&runtime, || unblock(job));
        let awaits = pinned.spawn(|| async { Runtime::current().shutdown().await });
        assert_eq!(drive(awaits).left_behind, 0);
        assert!(matches!(drive(call), Err(HostFault::Gone)));
    });
}

#[test]
fn a_drop_may_wait_for_a_task_that_the_shutdown_cancels_too() {
    within(WATCH, || {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let drops = Drops::default();
            let waits = |uncounted: &Runtime| {
                let (own, begun, dropped) = (uncounted.clone(), Gate::default(), drops.one());
                let opens = begun.clone();
                let task = runtime.spawn(async move {
                    let _dropped = dropped;
                    opens.open();
                    std::future::pending::<()>().await;
                });
                begun.pass();
                let mut task = Some(task);
                OnDrop(move || assert!(own.block_on(task.take().unwrap().cancel()).is_none()))
            };
            let uncounted = runtime.block_on(async { Runtime::current() });
            for _ in 0..4 {
                let (in_task, in_actor) = (waits(&uncounted), waits(&uncounted));
                let begun = Gate::default();
                let opens = begun.clone();
                runtime
                    .spawn(async move {
                        let _waits = in_task;
                        opens.open();
                        std::future::pending::<()>().await;
                    })
                    .detach();
                begun.pass();
                spawn!(
                    |_cx: Context<()>| async move {
                        let _waits = in_actor;
                        std::future::pending::<()>().await;
                    },
                    on = &runtime
                )
                .detach();
            }
            assert_eq!(drive(runtime.shutdown()).left_behind, 0);
            assert_eq!(drops.count(), 8);
        }
    });
}

#[test]
fn the_drop_of_a_blocking_call_may_wait_for_one_that_has_not_begun_either() {
    within(WATCH, || {
        let builder = Runtime::builder().workers(1).max_blocking_workers(1);
        let runtime = builder.grace(Duration::ZERO).build().unwrap();
        let uncounted = runtime.block_on(async { Runtime::current() });
        let (begun, go) = (Gate::default(), Gate::default());
        let call = |job: Box<dyn FnOnce() + Send>| inside(&runtime, || unblock(job));
        let (opens, waits) = (begun.clone(), go.clone());
        let busy = call(Box::new(move || {
            opens.open();
            waits.pass();
        }));
        begun.pass();
        let (second, dropped) = (Arc::new(Mutex::new(None)), Drops::default());
        let awaited = second.clone();
        let in_first = OnDrop(move || {
            let second: Option<Task<()>> = awaited.lock().unwrap().take();
            assert!(uncounted.block_on(second.unwrap().cancel()).is_none());
        });
        let first = call(Box::new(move || drop(in_first)));
        let in_second = dropped.one();
        *second.lock().unwrap() = Some(call(Box::new(move || drop(in_second))));
        assert_eq!(drive(runtime.shutdown()).left_behind, 1);
        assert_eq!(dropped.count(), 1);
        go.open();
        drive(busy);
        drop(first);
    });
}

#[test]
fn a_task_that_awaits_the_shutdown_in_block_on_is_left_behind() {
    within(WATCH, || {
        let runtime = runtime(1);
        let ends = obedient(&runtime);
        let (report, told) = (crate::support::Log::default(), Gate::default());
        let (own, tells) = (report.clone(), told.clone());
        runtime
            .spawn(async move {
                let runtime = Runtime::current();
                own.add(runtime.block_on(runtime.shutdown()));
                tells.open();
            })
            .detach();
        told.pass();
        let report = report.take().remove(0);
        assert_eq!((report.ended, report.left_behind), (1, 1));
        assert_eq!(drive(runtime.shutdown()), report);
        drive(ends.join()).unwrap();
    });
}

#[test]
fn the_last_clone_may_be_dropped_in_or_after_a_nested_block_on() {
    within(WATCH, || {
        for inside in [true, false] {
            let runtime = runtime(1);
            let ended = Gate::default();
            let (opens, clone) = (OpenOnDrop(ended.clone()), runtime.clone());
            let held = Gate::default();
            let here = held.clone();
            runtime
                .spawn(async move {
                    let _opens = opens;
                    here.wait().await;
                    if inside {
                        wait(async move { drop(clone) });
                    } else {
                        wait(yield_now());
                        drop(clone);
                    }
                    std::future::pending::<()>().await;
                })
                .detach();
            drop(runtime);
            held.open();
            ended.pass();
        }
    });
}

#[test]
fn block_on_in_a_task_works_after_the_runtime_has_ended() {
    within(WATCH, || {
        let runtime = runtime(1);
        let (begun, go, done) = (Gate::default(), Gate::default(), Gate::default());
        let (here, waits, tells) = (begun.clone(), go.clone(), done.clone());
        runtime
            .spawn(async move {
                here.open();
                waits.pass();
                wait(async {
                    yield_now().await;
                    assert!(greenroom::spawn(async {}).fallible().await.is_none());
                });
                tells.open();
            })
            .detach();
        begun.pass();
        assert_eq!(drive(runtime.shutdown()).left_behind, 1);
        go.open();
        done.pass();
    });
}

#[test]
fn the_report_is_consistent_while_tasks_enter_and_leave_block_on() {
    within(WATCH, || {
        for _ in 0..20 {
            let runtime = runtime(2);
            let actors: Vec<_> = (0..10).map(|_| obedient(&runtime)).collect();
            let begun = Gate::default();
            for _ in 0..4 {
                let here = begun.clone();
                runtime
                    .spawn(async move {
                        loop {
                            wait(async { yield_now().await });
                            here.open();
                            yield_now().await;
                        }
                    })
                    .detach();
            }
            begun.pass();
            let report = drive(runtime.shutdown());
            assert_eq!(report.ended + report.cancelled, actors.len());
            // Not more than exist; a busy machine may delay any of them.
            assert!(report.left_behind <= 4 + 2, "{report:?}");
            for actor in actors {
                let _ = drive(actor.join());
            }
        }
    });
}
