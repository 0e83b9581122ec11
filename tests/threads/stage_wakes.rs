//! `on_wake`: how a stage notifies its foreign loop, at most once, from any thread, and never in
//! vain.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::time::Duration;

use greenroom::time::sleep;
use greenroom::{Pinned, Stage, yield_now};

use crate::stage::{counted, on_both, runtime, waits_on};
use crate::support::{Drops, Gate, WATCH, within};

const HOUR: Duration = Duration::from_secs(3600);

fn endless(stage: &Stage) {
    let turns = || async {
        loop {
            yield_now().await;
        }
    };
    stage.spawn(turns).detach();
}

#[test]
fn a_loop_that_runs_only_on_wake_misses_no_task() {
    const THREADS: usize = 4;
    const EACH: usize = 500;
    on_both(|stage| {
        let (interrupt, events) = mpsc::channel();
        stage.on_wake(move || interrupt.send(()).unwrap());
        let ran = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let (pinned, ran): (Pinned, _) = ((**stage).clone(), ran.clone());
                scope.spawn(move || {
                    for n in 0..EACH {
                        let ran = ran.clone();
                        let task = pinned.spawn(move || async move {
                            if n % 3 == 0 {
                                yield_now().await;
                            }
                            ran.fetch_add(1, Ordering::SeqCst);
                        });
                        task.detach();
                    }
                });
            }
            while ran.load(Ordering::SeqCst) < THREADS * EACH {
                events.recv().unwrap();
                let others = events.try_iter().count();
                assert_eq!(others, 0, "`on_wake` was called more than once");
                stage.run_ready();
            }
        });
    });
}

#[test]
fn on_wake_is_called_once_however_late_it_was_set() {
    on_both(|stage| {
        for _ in 0..300 {
            let (pinned, calls): (Pinned, _) = ((**stage).clone(), AtomicUsize::new(0));
            let calls = Arc::new(calls);
            let elsewhere = std::thread::spawn(move || pinned.spawn(|| async {}).detach());
            let called = calls.clone();
            stage.on_wake(move || {
                called.fetch_add(1, Ordering::SeqCst);
            });
            elsewhere.join().unwrap();
            assert_eq!(calls.load(Ordering::SeqCst), 1);
            stage.run_ready();
        }
    });
}

#[test]
fn block_on_calls_on_wake_once_for_the_tasks_that_it_leaves() {
    on_both(|stage| {
        let calls = counted(stage);
        endless(stage);
        stage.run_ready();
        let before = calls();
        let task = stage.spawn(|| async {
            for _ in 0..100 {
                yield_now().await;
            }
        });
        stage.block_on(task);
        assert!(calls() <= before + 1, "{} calls", calls() - before);
        assert!(
            calls() > before,
            "`on_wake` is called for the tasks that are left"
        );
        stage.run_ready();
        assert_eq!(calls(), before + 2);
    });
}

#[test]
fn on_wake_is_called_again_after_block_on_has_run_the_tasks() {
    on_both(|stage| {
        let calls = counted(stage);
        stage.block_on(stage.spawn(|| async {}));
        let before = calls();
        // The tasks for which `on_wake` was called have run; the next task calls it again.
        stage.block_on(async {});
        stage.spawn(|| async {}).detach();
        assert_eq!(calls(), before + 1);
        stage.run_ready();
    });
}

#[test]
fn on_wake_is_called_for_an_earlier_shutdown() {
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let drops = waits_on(&stage);
        stage.run_ready();
        assert_eq!(stage.next_deadline(), None);
        let elsewhere = std::thread::spawn(move || drop(runtime));
        while stage.next_deadline().is_none() {
            std::thread::yield_now();
        }
        let calls = counted(&stage);
        assert_eq!(calls(), 1);
        stage.run_ready();
        assert_eq!(drops.count(), 1);
        assert_eq!(stage.next_deadline(), None);
        elsewhere.join().unwrap();
    });
}

#[test]
fn an_on_wake_callback_is_dropped_with_the_stage_or_when_replaced() {
    within(WATCH, || {
        let stage = Pinned::here();
        let drops = Drops::default();
        let (pinned, held): (Pinned, _) = ((*stage).clone(), [drops.one(), drops.one()]);
        for held in held {
            // The callback holds its own stage's handle, and would keep itself alive.
            let own = pinned.clone();
            stage.on_wake(move || {
                let _held = (&held, &own);
            });
        }
        assert_eq!(drops.count(), 1);
        drop(stage);
        assert_eq!(drops.count(), 2);
        pinned.spawn(|| async {}).detach();
    });
}

#[test]
fn an_on_wake_callback_may_spawn_on_its_stage() {
    on_both(|stage| {
        let (ran, pinned): (_, Pinned) = (Arc::new(AtomicUsize::new(0)), (**stage).clone());
        let left = AtomicUsize::new(3);
        let counts = ran.clone();
        stage.on_wake(move || {
            let took = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
            if took.is_ok() {
                let counts = counts.clone();
                let task = pinned.spawn(move || async move {
                    counts.fetch_add(1, Ordering::SeqCst);
                });
                task.detach();
            }
        });
        stage.spawn(|| async {}).detach();
        let turns = [stage.run_ready(), stage.run_ready(), stage.run_ready()];
        assert_eq!((turns, ran.load(Ordering::SeqCst)), ([2, 0, 0], 1));
    });
}

#[test]
fn an_on_wake_callback_may_run_its_stage() {
    thread_local!(static HERE: RefCell<Option<Rc<Stage>>> = const { RefCell::new(None) });
    within(WATCH, || {
        let stage = Rc::new(Pinned::here());
        HERE.set(Some(stage.clone()));
        stage.on_wake(|| {
            let here = HERE.with_borrow(Clone::clone);
            here.expect("`on_wake` is called on this thread")
                .run_ready();
        });
        let task = stage.spawn(|| async { 42 });
        assert!(task.is_finished(), "the task ran inside `on_wake`");
        assert_eq!(stage.block_on(task), 42);
        // A task may run the stage too; it does not run itself.
        let nested = stage.spawn(|| async {
            let stage = HERE
                .with_borrow(Clone::clone)
                .expect("the stage is in the thread-local");
            let other = stage.spawn(|| async { 2 });
            let ran = stage.run_ready();
            (ran, other.await)
        });
        assert_eq!(stage.block_on(nested), (1, 2));
        HERE.set(None);
    });
}

#[test]
fn wakes_on_the_thread_of_the_stage_call_on_wake() {
    on_both(|stage| {
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let leaves = waker.clone();
        let mut polls = 0;
        let task = stage.spawn(move || {
            poll_fn(move |cx| {
                *leaves.lock().unwrap() = Some(cx.waker().clone());
                polls += 1;
                if polls > 3 {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
        });
        stage.run_ready();
        let calls = counted(stage);
        for n in 1..=3 {
            let waker = waker.lock().unwrap().take().unwrap();
            waker.wake_by_ref();
            waker.wake();
            assert_eq!((calls(), stage.run_ready()), (n, 1));
        }
        assert!(task.is_finished());
    });
}

#[test]
fn timers_fire_within_the_budget_of_run_ready_for() {
    on_both(|stage| {
        for budget in [HOUR, Duration::MAX] {
            let slept = Gate::default();
            let opens = slept.clone();
            stage
                .spawn(move || async move {
                    sleep(Duration::from_millis(1)).await;
                    opens.open();
                })
                .detach();
            let waits = stage.spawn(move || async move {
                while !slept.is_open() {
                    yield_now().await;
                }
            });
            stage.run_ready_for(budget);
            assert!(waits.is_finished());
        }
    });
}

#[test]
fn run_ready_is_bounded_even_if_tasks_wake_themselves_and_spawn_more() {
    on_both(|stage| {
        let pinned: Pinned = (**stage).clone();
        fn breeds(pinned: Pinned) {
            let own = pinned.clone();
            pinned.spawn(move || async move { breeds(own) }).detach();
        }
        breeds(pinned.clone());
        endless(stage);
        for _ in 0..100 {
            assert_eq!(stage.run_ready(), 2);
        }
        assert_eq!(stage.run_ready_for(Duration::ZERO), 0);
    });
}
