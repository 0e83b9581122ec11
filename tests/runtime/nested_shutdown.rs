//! A shutdown while a task is in `block_on`: its thread counts like any thread in user code.

use std::time::Duration;

use greenroom::{Context, Fault, Handle, HostFault, Runtime, spawn, yield_now};

use crate::support::{
    Drops, Gate, OpenOnDrop, WATCH, drive, open_when_pending, poll_once, until, within,
};

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
        let call = runtime.block_on(async move {
            greenroom::unblock(move || {
                // From now on the thread stays for the task below alone.
                dropped.pass();
                wait(hosted.with(|value| *value))
            })
        });
        let awaits = pinned.spawn(|| async { Runtime::current().shutdown().await });
        assert_eq!(drive(awaits).left_behind, 0);
        assert!(matches!(drive(call), Err(HostFault::Gone)));
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
