//! Scenarios of the suite: how tasks, actors and runtimes end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::time::sleep;
use greenroom::{Address, AskError, Context, Fault, Reply, actor, spawn, yield_now};

use super::Case;
use crate::support::{Drops, Gate, drive, poll_once, until};

pub fn a_panic_ends_only_its_task_or_actor(case: &Case) {
    let home = case.home();
    for _ in 0..10 {
        let task = home.spawn_task(async { panic!("bomb in a task") });
        let heard = AssertUnwindSafe(|| drive::<greenroom::Task<()>>(task));
        assert!(std::panic::catch_unwind(heard).is_err());
        let actor = home.spawn(actor(|mut cx: Context<()>| async move {
            cx.recv().await;
            panic!("bomb in an actor");
        }));
        actor.tell(()).unwrap();
        let fault = drive::<greenroom::Join<(), ()>>(actor.join()).unwrap_err();
        assert!(matches!(fault, Fault::Panicked(_)), "{fault}");
        assert_eq!(drive(home.spawn_task(async { 42 })), 42);
    }
}

pub fn a_task_whose_handle_is_dropped_is_cancelled(case: &Case) {
    let home = case.home();
    let drops = Drops::default();
    // A task that waits ...
    let (begun, dropped) = (Gate::default(), drops.one());
    let begins = begun.clone();
    let waiting = home.spawn_task(async move {
        let _dropped = dropped;
        begins.open();
        std::future::pending::<()>().await;
    });
    begun.pass();
    drop(waiting);
    until(|| drops.count() == 1);
    // ... a task that is queued ...
    let held = home.hold();
    let dropped = drops.one();
    let queued = home.spawn_task(async move {
        let _dropped = dropped;
        unreachable!("the task was cancelled");
    });
    drop::<greenroom::Task<()>>(queued);
    drop(held);
    until(|| drops.count() == 2);
    // ... and a task that runs.
    let (begun, go, dropped) = (Gate::default(), Gate::default(), drops.one());
    let (begins, goes) = (begun.clone(), go.clone());
    let running = home.spawn_task(async move {
        let _dropped = dropped;
        begins.open();
        goes.pass();
        yield_now().await;
        unreachable!("the task was cancelled");
    });
    begun.pass();
    drop::<greenroom::Task<()>>(running);
    go.open();
    until(|| drops.count() == 3);
}

pub fn a_killed_actor_is_dropped_with_its_messages(case: &Case) {
    let home = case.home();
    let drops = Drops::default();
    for times in 1..10 {
        let (begun, state) = (Gate::default(), drops.one());
        let begins = begun.clone();
        let actor = home.spawn(actor(move |mut cx: Context<_>| async move {
            let _state = state;
            let _first = cx.recv().await;
            begins.open();
            std::future::pending::<()>().await;
        }));
        (0..3).for_each(|_| actor.tell(drops.one()).unwrap());
        begun.pass();
        actor.kill();
        assert!(matches!(drive(actor.join()), Err(Fault::Killed)));
        assert_eq!(drops.count(), times * 4);
    }
}

pub fn tasks_queued_before_a_shutdown_run(case: &Case) {
    let home = case.home();
    let ran = Arc::new(AtomicUsize::new(0));
    let held = home.hold();
    for _ in 0..200 {
        let ran = ran.clone();
        let count = async move { ran.fetch_add(1, Ordering::SeqCst) };
        home.spawn_task(count).detach();
    }
    let sum = home.spawn(actor(|mut cx: Context<usize>| async move {
        let mut sum = 0;
        while let Some(n) = cx.recv().await {
            sum += n;
        }
        sum
    }));
    (0..200).for_each(|n| sum.tell(n).unwrap());
    let mut shutdown = Box::pin(home.runtime.shutdown());
    assert!(poll_once(&mut shutdown).is_pending());
    drop(held);
    let report = drive(shutdown);
    assert_eq!(ran.load(Ordering::SeqCst), 200);
    assert_eq!(drive(sum.join()).unwrap(), 199 * 200 / 2);
    assert_eq!((report.ended, report.cancelled), (1, 0), "{report:?}");
    assert_eq!((report.unhandled, report.left_behind), (0, 0), "{report:?}");
}

pub fn tasks_left_at_the_end_of_a_shutdown_are_cancelled_and_counted(case: &Case) {
    let runtime = case.built(case.builder().grace(Duration::from_millis(20)));
    let drops = Drops::default();
    let stubborn: Vec<_> = (0..3)
        .map(|_| {
            let (begun, state) = (Gate::default(), drops.one());
            let begins = begun.clone();
            let stubborn = spawn!(
                move |mut cx: Context<()>| async move {
                    let _state = state;
                    cx.recv().await;
                    begins.open();
                    std::future::pending::<()>().await;
                },
                on = &runtime
            );
            stubborn.tell(()).unwrap();
            begun.pass();
            stubborn.tell(()).unwrap();
            stubborn
        })
        .collect();
    let state = drops.one();
    let restless = runtime.spawn(async move {
        let _state = state;
        loop {
            yield_now().await;
        }
    });
    let state = drops.one();
    let waits = runtime.spawn(async move {
        let _state = state;
        sleep(Duration::from_secs(1_000_000)).await;
    });
    let report = drive(runtime.shutdown());
    assert_eq!((report.ended, report.cancelled), (0, 3), "{report:?}");
    assert_eq!((report.unhandled, report.left_behind), (3, 0), "{report:?}");
    assert_eq!(drops.count(), 5);
    for actor in stubborn {
        assert!(matches!(drive(actor.join()), Err(Fault::Cancelled)));
    }
    assert!(drive(restless.fallible()).is_none());
    assert!(drive(waits.fallible()).is_none());
}

#[cfg(target_os = "linux")]
fn threads_end(case: &Case) {
    until(|| crate::child::threads_named(&case.threads) == 0);
}

/// Does nothing: threads cannot be listed on this system.
#[cfg(not(target_os = "linux"))]
fn threads_end(_case: &Case) {}

pub fn a_shutdown_ends_all_threads(case: &Case) {
    // Before a worker has run, while the workers idle, and while they are busy.
    drive(case.runtime().shutdown());
    threads_end(case);
    let home = case.home();
    drive(home.spawn_task(yield_now()));
    drop(home);
    threads_end(case);
    let home = case.home();
    for _ in 0..2 * case.workers {
        home.spawn_task(async {
            loop {
                yield_now().await;
            }
        })
        .detach();
    }
    drop::<crate::support::Home>(home);
    threads_end(case);
}

pub fn the_last_clone_may_be_dropped_in_a_task(case: &Case) {
    let runtime = case.runtime();
    let (drops, go) = (Drops::default(), Gate::default());
    let (state, goes, own) = (drops.one(), go.clone(), runtime.clone());
    let waits = drops.one();
    runtime
        .spawn(async move {
            let _waits = waits;
            std::future::pending::<()>().await;
        })
        .detach();
    runtime
        .spawn(async move {
            let _state = state;
            goes.wait().await;
            drop(own);
            yield_now().await;
        })
        .detach();
    drop(runtime);
    go.open();
    until(|| drops.count() == 2);
    threads_end(case);
}

pub fn a_runtime_is_quiescent_once_all_work_is_done(case: &Case) {
    let home = case.home();
    // Also if there was no work at all.
    home.runtime.run_until_quiescent();
    for times in 1..4 {
        let ran = Arc::new(AtomicUsize::new(0));
        let counter = ran.clone();
        home.spawn_task(async move {
            for _ in 0..20 {
                let counter = counter.clone();
                let fans_out = async move {
                    for _ in 0..20 {
                        let counter = counter.clone();
                        let works = async move {
                            (0..times).for_each(|_| std::thread::yield_now());
                            yield_now().await;
                            counter.fetch_add(1, Ordering::SeqCst);
                        };
                        greenroom::spawn(works).detach();
                    }
                };
                greenroom::spawn(fans_out).detach();
            }
        })
        .detach();
        home.runtime.run_until_quiescent();
        assert_eq!(ran.load(Ordering::SeqCst), 400, "in round {times}");
    }
}

pub fn a_runtime_is_quiescent_while_tasks_wait_forever(case: &Case) {
    let home = case.home();
    let handled = Arc::new(AtomicUsize::new(0));
    let counter = handled.clone();
    let reader = home.spawn(actor(move |mut cx: Context<()>| async move {
        while cx.recv().await.is_some() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    }));
    home.spawn_task(std::future::pending::<()>()).detach();
    for times in 1..20 {
        (0..10).for_each(|_| reader.tell(()).unwrap());
        home.runtime.run_until_quiescent();
        assert_eq!(handled.load(Ordering::SeqCst), 10 * times);
        // A queued task that is dropped ends too.
        drop(home.spawn_task(yield_now()));
        home.runtime.run_until_quiescent();
    }
}

pub fn an_ask_that_no_actor_can_answer_gets_a_deadlock_error(case: &Case) {
    let runtime = case.built(case.builder().detect_deadlocks(true));
    for _ in 0..20 {
        let asks = |mut cx: Context<Address<Reply<()>>>| async move {
            let other = cx.recv().await.unwrap();
            other.ask(|reply| reply).await
        };
        let deaf = spawn!(
            |cx: Context<Reply<()>>| async move {
                std::future::pending::<()>().await;
                drop(cx);
            },
            on = &runtime
        );
        let asks = actor(asks).on(&runtime).spawn();
        asks.tell(deaf.address()).unwrap();
        let told = drive(asks.join()).unwrap();
        assert!(matches!(told, Err(AskError::Deadlock(_))), "{told:?}");
        deaf.kill();
    }
    drive(runtime.shutdown());
}

pub fn timers_and_blocking_calls_delay_quiescence(case: &Case) {
    let home = case.home();
    for _ in 0..5 {
        let timer = home.spawn_task(async { sleep(Duration::from_millis(3)).await });
        home.runtime.run_until_quiescent();
        assert!(timer.is_finished());
        let call = home.spawn_task(async {
            greenroom::unblock(|| drive(sleep(Duration::from_millis(1)))).await;
        });
        home.runtime.run_until_quiescent();
        assert!(call.is_finished());
        let nested = home.spawn_task(async {
            greenroom::Runtime::current().block_on(sleep(Duration::from_millis(1)));
        });
        home.runtime.run_until_quiescent();
        assert!(nested.is_finished());
    }
}
