//! A shutdown called by a task or actor of the runtime: the caller gets the report, and then ends.

use std::time::Duration;

use greenroom::{Context, Fault, Runtime, ShutdownReport, actor, spawn};

use crate::support::{
    Drops, Gate, Home, Log, OpenOnDrop, WATCH, drive, in_every_home, on_threads, poll_here,
    poll_once, received, until, within,
};

// Uses the threads of another runtime.
on_threads!(
    the_caller_may_hold_the_last_clone,
    a_task_that_gave_its_shutdown_away_ends_when_that_is_dropped,
);

in_every_home!(
    a_task_gets_the_report_and_ends_when_it_next_suspends,
    an_actor_gets_the_report_and_ends_when_it_next_suspends,
    a_task_that_called_shutdown_may_run_to_its_end,
    an_actor_that_called_shutdown_may_run_to_its_end,
    a_caller_of_shutdown_may_end_with_a_panic,
    a_caller_that_is_woken_constantly_gets_the_report,
    an_actor_that_receives_messages_meanwhile_gets_the_report,
    many_callers_get_the_same_report,
    two_calls_in_one_task_get_the_same_report,
    a_caller_that_drops_the_shutdown_is_cancelled_like_any_other_task,
    a_caller_whose_handle_is_dropped_is_cancelled,
    a_task_that_gave_its_shutdown_away_is_cancelled_like_any_other_task,
    tasks_that_the_caller_wakes_in_its_last_turn_are_dropped,
);

/// Records the report and then suspends for good, as a caller does.
async fn tell_and_suspend(report: ShutdownReport, reports: Log<ShutdownReport>) {
    reports.add(report);
    greenroom::yield_now().await;
    unreachable!("the task's worker has ended");
}

/// Returns a guard, and the gate that it opens when its owner is dropped.
fn guard() -> (OpenOnDrop, Gate) {
    let gone = Gate::default();
    (OpenOnDrop(gone.clone()), gone)
}

fn a_task_gets_the_report_and_ends_when_it_next_suspends(home: &Home) {
    let reports = Log::default();
    let (drops, own) = (Drops::default(), reports.clone());
    let (guard, gone) = guard();
    let (mine, others) = (drops.one(), drops.one());
    home.spawn_task(async move {
        let _others = others;
        std::future::pending::<()>().await;
    })
    .detach();
    let obedient = home.spawn(actor(|mut cx: Context<()>| async move {
        while cx.recv().await.is_some() {}
    }));
    home.spawn_task(async move {
        let _guards = (mine, guard);
        tell_and_suspend(Runtime::current().shutdown().await, own).await;
    })
    .detach();
    gone.pass();
    let reports = reports.take();
    assert_eq!(reports.len(), 1);
    assert_eq!(
        (
            reports[0].ended,
            reports[0].cancelled,
            reports[0].left_behind
        ),
        (1, 0, 0)
    );
    drive(obedient.join()).unwrap();
    assert_eq!(drops.count(), 2);
    // A call from outside returns the same.
    assert_eq!(drive(home.runtime.shutdown()), reports[0]);
}

fn an_actor_gets_the_report_and_ends_when_it_next_suspends(home: &Home) {
    let reports = Log::default();
    let own = reports.clone();
    let (guard, gone) = guard();
    let obedient = home.spawn(actor(|mut cx: Context<()>| async move {
        while cx.recv().await.is_some() {}
    }));
    let caller = home.spawn(actor(|mut cx: Context<()>| async move {
        let _guard = guard;
        cx.recv().await.unwrap();
        tell_and_suspend(Runtime::current().shutdown().await, own).await;
    }));
    caller.tell(()).unwrap();
    gone.pass();
    let reports = reports.take();
    assert_eq!(reports.len(), 1);
    // At the time of the report the caller has not ended and was not cancelled.
    assert_eq!(
        (
            reports[0].ended,
            reports[0].cancelled,
            reports[0].left_behind
        ),
        (1, 0, 0)
    );
    drive(obedient.join()).unwrap();
    assert!(caller.is_closed());
    assert!(matches!(drive(caller.join()), Err(Fault::Cancelled)));
}

fn a_task_that_called_shutdown_may_run_to_its_end(home: &Home) {
    let task = home.spawn_task(async { Runtime::current().shutdown().await });
    let report = drive(task);
    assert_eq!(
        (report.ended, report.cancelled, report.left_behind),
        (0, 0, 0)
    );
}

fn an_actor_that_called_shutdown_may_run_to_its_end(home: &Home) {
    let caller = home.spawn(actor(|mut cx: Context<()>| async move {
        let report = Runtime::current().shutdown().await;
        // The caller was stopped like the other actors; a ready future does not suspend it.
        assert!(cx.recv().await.is_none());
        greenroom::time::sleep(Duration::ZERO).await;
        assert!(greenroom::spawn(async {}).fallible().await.is_none());
        report
    }));
    let report = drive(caller.join()).unwrap();
    assert_eq!(
        (report.ended, report.cancelled, report.left_behind),
        (0, 0, 0)
    );
}

fn a_caller_of_shutdown_may_end_with_a_panic(home: &Home) {
    crate::support::keep_bombs_quiet();
    let caller = home.spawn(actor(|_cx: Context<()>| async {
        Runtime::current().shutdown().await;
        panic!("bomb after the report");
    }));
    let fault: Result<(), _> = drive(caller.join());
    assert!(matches!(fault, Err(Fault::Panicked(_))));
}

fn a_caller_that_is_woken_constantly_gets_the_report(home: &Home) {
    let reports = Log::default();
    let own = reports.clone();
    let (guard, gone) = guard();
    home.spawn_task(async move {
        let _guard = guard;
        let runtime = Runtime::current();
        let restless = async {
            loop {
                greenroom::yield_now().await;
            }
        };
        let shutdown = Box::pin(runtime.shutdown());
        match futures::future::select(shutdown, Box::pin(restless)).await {
            futures::future::Either::Left((report, _)) => tell_and_suspend(report, own).await,
            futures::future::Either::Right(((), _)) => unreachable!("the future never ends"),
        }
    })
    .detach();
    gone.pass();
    assert_eq!(reports.take().len(), 1);
}

fn an_actor_that_receives_messages_meanwhile_gets_the_report(home: &Home) {
    let reports = Log::default();
    let own = reports.clone();
    let (guard, gone) = guard();
    let caller = home.spawn(actor(|mut cx: Context<()>| async move {
        let _guard = guard;
        let runtime = Runtime::current();
        let mut shutdown = Box::pin(runtime.shutdown());
        // The caller receives while it waits, also after it was stopped.
        let report = loop {
            let read = Box::pin(cx.recv());
            match futures::future::select(&mut shutdown, read).await {
                futures::future::Either::Left((report, _)) => break report,
                futures::future::Either::Right((Some(()), _)) => {}
                futures::future::Either::Right((None, _)) => greenroom::yield_now().await,
            }
        };
        tell_and_suspend(report, own).await;
    }));
    until(|| caller.tell(()).is_err());
    gone.pass();
    let reports = reports.take();
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].ended, reports[0].cancelled), (0, 0));
}

fn many_callers_get_the_same_report(home: &Home) {
    let reports = Log::default();
    let held = home.hold();
    let mut gates = Vec::new();
    for n in 0..20 {
        let own = reports.clone();
        let (guard, gone) = guard();
        gates.push(gone);
        if n % 2 == 0 {
            home.spawn_task(async move {
                let _guard = guard;
                tell_and_suspend(Runtime::current().shutdown().await, own).await;
            })
            .detach();
        } else {
            let caller = home.spawn(actor(|_cx: Context<()>| async move {
                let _guard = guard;
                tell_and_suspend(Runtime::current().shutdown().await, own).await;
            }));
            drop(caller);
        }
    }
    drop(held);
    let outside = drive(home.runtime.shutdown());
    gates.iter().for_each(Gate::pass);
    let reports = reports.take();
    assert!(
        reports.iter().all(|report| *report == outside),
        "{reports:?}"
    );
    // The callers that had their first turn in time; the first one has called the shutdown.
    assert!(!reports.is_empty());
    assert_eq!(outside.left_behind, 0);
}

fn two_calls_in_one_task_get_the_same_report(home: &Home) {
    let task = home.spawn_task(async {
        let runtime = Runtime::current();
        let (one, two) = futures::join!(runtime.shutdown(), runtime.shutdown());
        (one, two, runtime.shutdown().await)
    });
    let (one, two, three) = drive(task);
    assert_eq!(one, two);
    assert_eq!(one, three);
}

fn a_caller_that_drops_the_shutdown_is_cancelled_like_any_other_task(home: &Home) {
    let (guard, gone) = guard();
    home.spawn_task(async move {
        let _guard = guard;
        let runtime = Runtime::current();
        let mut shutdown = Box::pin(runtime.shutdown());
        assert!(poll_here(&mut shutdown).await.is_pending());
        drop(shutdown);
        std::future::pending::<()>().await;
    })
    .detach();
    gone.pass();
    assert_eq!(drive(home.runtime.shutdown()).left_behind, 0);
}

fn a_caller_whose_handle_is_dropped_is_cancelled(home: &Home) {
    let (guard, gone) = guard();
    let (called, begun) = (Gate::default(), Gate::default());
    let (calls, here) = (called.clone(), begun.clone());
    // The actor delays the shutdown until the caller was dropped.
    let busy = home.spawn(actor(|mut cx: Context<()>| async move {
        here.open();
        while cx.recv().await.is_some() {}
        gone.wait().await;
    }));
    begun.pass();
    let task = home.spawn_task(async move {
        let _guard = guard;
        let runtime = Runtime::current();
        let mut shutdown = Box::pin(runtime.shutdown());
        assert!(poll_here(&mut shutdown).await.is_pending());
        calls.open();
        shutdown.await;
    });
    called.pass();
    drop(task);
    let report = drive(home.runtime.shutdown());
    assert_eq!(
        (report.ended, report.cancelled, report.left_behind),
        (1, 0, 0)
    );
    drive(busy.join()).unwrap();
}

fn a_task_that_gave_its_shutdown_away_is_cancelled_like_any_other_task(home: &Home) {
    let (guard, gone) = guard();
    let (send, receive) = std::sync::mpsc::channel();
    home.spawn_task(async move {
        let _guard = guard;
        let runtime = Runtime::current();
        let mut shutdown = Box::pin(async move { runtime.shutdown().await });
        assert!(poll_here(&mut shutdown).await.is_pending());
        send.send(shutdown).unwrap();
        std::future::pending::<()>().await;
    })
    .detach();
    let report = drive(received(&receive));
    assert_eq!(report.left_behind, 0);
    gone.pass();
}

fn a_task_that_gave_its_shutdown_away_ends_when_that_is_dropped(home: &Home) {
    let (guard, gone) = guard();
    let (send, receive) = std::sync::mpsc::channel();
    home.spawn_task(async move {
        let _guard = guard;
        let runtime = Runtime::current();
        let mut shutdown = Box::pin(async move { runtime.shutdown().await });
        // The report wakes nobody.
        assert!(poll_once(&mut shutdown).is_pending());
        send.send(shutdown).unwrap();
        std::future::pending::<()>().await;
    })
    .detach();
    let shutdown = received(&receive);
    assert_eq!(drive(home.runtime.shutdown()).left_behind, 0);
    drop(shutdown);
    gone.pass();
}

fn the_caller_may_hold_the_last_clone(home: &Home) {
    // The home has another clone, so this is another runtime, dropped by a task of the home.
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let (guard, gone) = guard();
        let (go, waits) = (Gate::default(), Gate::default());
        let go_on = go.clone();
        let own = runtime.clone();
        runtime
            .spawn(async move {
                let _guard = guard;
                go_on.wait().await;
                own.shutdown().await;
                drop(own);
            })
            .detach();
        let opens = waits.clone();
        drive(home.spawn_task(async move {
            drop(runtime);
            opens.open();
        }));
        waits.pass();
        go.open();
        gone.pass();
    }
}

fn tasks_that_the_caller_wakes_in_its_last_turn_are_dropped(home: &Home) {
    let (drops, reports) = (Drops::default(), Log::default());
    let (guard, gone) = guard();
    let (wakes, own) = (Gate::default(), reports.clone());
    for _ in 0..10 {
        let (waits, dropped) = (wakes.clone(), drops.one());
        let mut waiting = home.spawn_task(async move {
            let _dropped = dropped;
            waits.wait().await;
        });
        home.block_on(async { assert!(poll_here(&mut waiting).await.is_pending()) });
        waiting.detach();
    }
    let last = drops.one();
    home.spawn_task(async move {
        let _guards = (last, guard);
        let report = Runtime::current().shutdown().await;
        wakes.open();
        tell_and_suspend(report, own).await;
    })
    .detach();
    gone.pass();
    assert_eq!(reports.take().len(), 1);
    assert_eq!(drops.count(), 11);
}

#[test]
fn a_task_of_another_runtime_may_call_shutdown() {
    within(WATCH, || {
        let caller = Runtime::builder().workers(1).build().unwrap();
        let called = Runtime::builder().workers(1).build().unwrap();
        let obedient = spawn!(
            |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} },
            on = &called
        );
        let report = drive(caller.spawn(async move { called.shutdown().await }));
        assert_eq!((report.ended, report.left_behind), (1, 0));
        drive(obedient.join()).unwrap();
        assert_eq!(drive(caller.spawn(async { 42 })), 42);
    });
}

#[test]
fn two_runtimes_may_shut_each_other_down() {
    within(WATCH, || {
        let one = Runtime::builder().workers(1).build().unwrap();
        let two = Runtime::builder().workers(1).build().unwrap();
        let begun = Gate::default();
        let (to_one, to_two) = (one.clone(), two.clone());
        let (here, there) = (begun.clone(), begun.clone());
        // Each waits for the other runtime, in a task that the other's shutdown drops.
        let of_one = one.spawn(async move {
            here.wait().await;
            to_two.shutdown().await
        });
        let of_two = two.spawn(async move {
            there.wait().await;
            to_one.shutdown().await
        });
        begun.open();
        assert_eq!(drive(one.shutdown()).left_behind, 0);
        assert_eq!(drive(two.shutdown()).left_behind, 0);
        drive(of_one.fallible());
        drive(of_two.fallible());
    });
}

#[test]
fn two_runtimes_that_hold_each_other_end_when_one_is_shut_down() {
    within(WATCH, || {
        let drops = Drops::default();
        let one = Runtime::builder().workers(1).build().unwrap();
        let two = Runtime::builder().workers(1).build().unwrap();
        let begun = [Gate::default(), Gate::default()];
        for (at, (home, held)) in [(&one, two.clone()), (&two, one.clone())]
            .into_iter()
            .enumerate()
        {
            let (dropped, here) = (drops.one(), begun[at].clone());
            home.spawn(async move {
                let _held = (held, dropped);
                here.open();
                std::future::pending::<()>().await;
            })
            .detach();
        }
        begun.iter().for_each(Gate::pass);
        drop(two);
        let mut shutdown = Box::pin(async move { one.shutdown().await });
        // From here on each is held only by a task of the other.
        assert!(crate::support::poll_once(&mut shutdown).is_pending());
        drop(shutdown);
        crate::support::until(|| drops.count() == 2);
    });
}

#[test]
fn a_blocking_call_that_awaits_the_shutdown_is_left_behind() {
    within(WATCH, || {
        let builder = Runtime::builder()
            .workers(1)
            .grace(Duration::from_millis(10));
        let runtime = builder.build().unwrap();
        let report = runtime.block_on(async {
            // A blocking call is no task, so its thread is not exempt and is left behind.
            let job = greenroom::unblock(|| {
                let runtime = Runtime::current();
                runtime.block_on(runtime.shutdown())
            });
            job.await
        });
        assert_eq!(
            (report.ended, report.cancelled, report.left_behind),
            (0, 0, 1)
        );
    });
}

#[test]
fn a_thread_that_continues_late_may_call_shutdown_and_ends() {
    within(WATCH, || {
        for pinned in [false, true] {
            let brief = Runtime::builder().grace(Duration::from_millis(10));
            let home = if pinned {
                Home::pinned_built(brief)
            } else {
                Home::built(1, brief)
            };
            let reports = Log::default();
            let (begun, go) = (Gate::default(), Gate::default());
            let (here, waits, own) = (begun.clone(), go.clone(), reports.clone());
            let (guard, gone) = guard();
            home.spawn_task(async move {
                let _guard = guard;
                here.open();
                waits.pass();
                own.add(Runtime::current().shutdown().await);
                // The task suspends, and no wake follows.
                std::future::pending::<()>().await;
            })
            .detach();
            begun.pass();
            let report = drive(home.runtime.shutdown());
            assert_eq!(report.left_behind, 1);
            assert!(!gone.is_open());
            go.open();
            gone.pass();
            assert_eq!(reports.take(), [report]);
        }
    });
}
