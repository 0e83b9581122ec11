//! A stage: the calling thread as a pinned thread, driven by a foreign loop.

use std::future::pending;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::ThreadId;
use std::time::Duration;

use greenroom::time::{Instant, sleep};
use greenroom::{Context, Fault, HostFault, Pinned, Runtime, Stage, actor, spawn, yield_now};

use crate::support::{CountingWaker, Drops, Gate, WATCH, drive, panic_of, within};

const HOUR: Duration = Duration::from_secs(3600);

pub fn runtime() -> Runtime {
    let builder = Runtime::builder().workers(1).on_fault(|_| {});
    builder.build().unwrap()
}

fn here() -> ThreadId {
    std::thread::current().id()
}

/// Runs the test on a stage of a runtime, and on a stage without a runtime.
pub fn on_both(test: fn(&Stage)) {
    within(WATCH, move || {
        let runtime = runtime();
        test(&runtime.pinned_here());
        test(&Pinned::here());
    });
}

/// Sets an `on_wake` callback, and returns a closure that returns how often it was called.
pub fn counted(stage: &Stage) -> impl Fn() -> usize + use<> {
    let (calls, waker) = CountingWaker::new();
    stage.on_wake(move || waker.wake_by_ref());
    move || calls.count()
}

async fn reads(mut cx: Context<u32>) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(number) = cx.recv().await {
        all.push(number);
    }
    all
}

#[test]
fn tasks_run_on_this_thread_when_run_ready_is_called() {
    on_both(|stage| {
        let ran = Arc::new(AtomicUsize::new(0));
        let counts = ran.clone();
        let task = stage.spawn(move || {
            let bound = Rc::new(here());
            async move {
                counts.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
                counts.fetch_add(1, Ordering::SeqCst);
                *bound
            }
        });
        assert_eq!(
            ran.load(Ordering::SeqCst),
            0,
            "the task must not run before `run_ready`"
        );
        assert_eq!((stage.run_ready(), ran.load(Ordering::SeqCst)), (1, 1));
        assert_eq!((stage.run_ready(), ran.load(Ordering::SeqCst)), (1, 2));
        assert_eq!(stage.run_ready(), 0);
        assert_eq!(stage.block_on(task), here());
    });
}

#[test]
fn each_run_ready_runs_every_ready_task_once() {
    on_both(|stage| {
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let counts = ran.clone();
            let endless = || async move {
                loop {
                    counts.fetch_add(1, Ordering::SeqCst);
                    yield_now().await;
                }
            };
            stage.spawn(endless).detach();
        }
        for n in 1..=5 {
            assert_eq!((stage.run_ready(), ran.load(Ordering::SeqCst)), (3, 3 * n));
        }
    });
}

#[test]
fn run_ready_for_runs_all_tasks_that_become_ready_within_its_budget() {
    on_both(|stage| {
        let task = stage.spawn(|| async {
            for _ in 0..9 {
                yield_now().await;
            }
        });
        assert_eq!(stage.run_ready_for(Duration::ZERO), 0);
        assert_eq!(stage.run_ready_for(HOUR), 10);
        assert!(task.is_finished());
        let endless = || async {
            loop {
                yield_now().await;
            }
        };
        stage.spawn(endless).detach();
        assert!(
            stage.run_ready_for(Duration::from_millis(100)) > 0,
            "`run_ready_for` returns after its budget"
        );
    });
}

#[test]
fn on_wake_is_called_once_until_the_stage_runs() {
    on_both(|stage| {
        let calls = counted(stage);
        let pinned: Pinned = (**stage).clone();
        for _ in 0..3 {
            stage.spawn(|| async {}).detach();
        }
        assert_eq!(calls(), 1);
        std::thread::scope(|scope| {
            scope.spawn(|| pinned.spawn(|| async {}).detach());
        });
        assert_eq!(calls(), 1);
        assert_eq!((stage.run_ready(), calls()), (4, 1));
        std::thread::scope(|scope| {
            scope.spawn(|| pinned.spawn(|| async {}).detach());
        });
        assert_eq!(calls(), 2);
        stage.run_ready();
    });
}

#[test]
fn on_wake_is_called_for_tasks_that_are_left_ready() {
    on_both(|stage| {
        let calls = counted(stage);
        stage.spawn(yield_now).detach();
        assert_eq!((stage.run_ready(), calls()), (1, 2));
        assert_eq!((stage.run_ready(), calls()), (1, 2));
        stage.spawn(yield_now).detach();
        assert_eq!(stage.run_ready_for(Duration::ZERO), 0);
        assert_eq!(calls(), 4);
        let late = counted(stage);
        assert_eq!(late(), 1, "a task is already ready");
        stage.run_ready_for(HOUR);
    });
}

#[test]
fn a_panic_of_on_wake_is_contained() {
    crate::support::keep_bombs_quiet();
    on_both(|stage| {
        stage.on_wake(|| panic!("bomb in a call"));
        stage.spawn(|| async {}).detach();
        assert_eq!(stage.run_ready(), 1);
    });
}

#[test]
fn next_deadline_is_that_of_the_first_timer_or_now() {
    on_both(|stage| {
        assert_eq!(stage.next_deadline(), None);
        let task = stage.spawn(|| sleep(HOUR));
        assert!(stage.next_deadline().unwrap() <= Instant::now());
        stage.run_ready();
        let due = stage.next_deadline().unwrap();
        assert!(due > Instant::now() && due <= Instant::now() + HOUR);
        drop(task);
        stage.run_ready();
        assert_eq!(stage.next_deadline(), None);
    });
}

#[test]
fn due_timers_fire_before_tasks_run() {
    on_both(|stage| {
        let task = stage.spawn(|| sleep(Duration::from_millis(1)));
        stage.run_ready();
        while let Some(deadline) = stage.next_deadline()
            && deadline > Instant::now()
        {
            std::thread::yield_now();
        }
        stage.run_ready();
        assert!(task.is_finished());
    });
}

#[test]
fn block_on_runs_the_stage_meanwhile() {
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let (there, back) = (spawn!(echo(_), on = &stage), spawn!(echo(_), on = &runtime));
        let rounds = |from: greenroom::Address<Echo>, to: greenroom::Address<Echo>| async move {
            for _ in 0..50 {
                assert_eq!(from.ask(Echo).await.unwrap(), here_is(&from).await);
                assert_ne!(here_is(&from).await, here_is(&to).await);
            }
        };
        runtime.block_on(rounds(there.address(), back.address()));
        stage.block_on(rounds(back.address(), there.address()));
        stage.block_on(async { there.join().await.unwrap() });
        runtime.block_on(stage.spawn(|| sleep(Duration::from_millis(1))));
        drop(stage);
        let none = Pinned::here();
        none.block_on(async {
            sleep(Duration::from_millis(1)).await;
            none.spawn(|| sleep(Duration::from_millis(1))).await;
        });
        back.stop();
    });
}

struct Echo(greenroom::Reply<ThreadId>);

async fn echo(mut cx: Context<Echo>) {
    while let Some(Echo(reply)) = cx.recv().await {
        reply.send(here());
    }
}

async fn here_is(address: &greenroom::Address<Echo>) -> ThreadId {
    address.ask(Echo).await.unwrap()
}

#[test]
fn a_stage_inside_run_belongs_to_that_runtime() {
    within(WATCH, || {
        let sum = greenroom::run(async {
            let stage = Pinned::here();
            let reader = spawn!(reads(_), on = &stage);
            let told = reader.address();
            let tells = spawn(async move { (0..10).for_each(|n| told.tell(n).unwrap()) });
            while !tells.is_finished() {
                stage.run_ready();
                std::thread::yield_now();
            }
            reader.join().await.unwrap().into_iter().sum::<u32>()
        });
        assert_eq!(sum, 45);
    });
}

#[test]
fn the_runtime_of_a_stage_is_current_on_its_thread() {
    within(WATCH, || {
        assert!(Runtime::try_current().is_none());
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let reader = spawn!(reads(_));
        assert_eq!(runtime.stats().actors.len(), 1);
        stage.block_on(stage.spawn(|| async { drop(spawn(async {})) }));
        drop(stage);
        assert!(Runtime::try_current().is_none());
        let none = Pinned::here();
        assert!(Runtime::try_current().is_none());
        let inside = none.block_on(none.spawn(|| async { Runtime::try_current().is_none() }));
        assert!(inside);
        assert!(none.block_on(async { Runtime::try_current().is_none() }));
        drop(reader);
    });
}

#[test]
fn the_runtime_of_a_stage_is_not_quiescent_while_the_stage_lives() {
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let (begun, seen) = (Gate::default(), Gate::default());
        let (begins, sees, waits) = (begun.clone(), seen.clone(), runtime.clone());
        let waiter = std::thread::spawn(move || {
            waits.block_on(async {
                let mut quiescent = Box::pin(waits.quiescent());
                assert!(crate::support::poll_here(&mut quiescent).await.is_pending());
                begins.open();
                quiescent.await;
                sees.open();
            });
        });
        begun.pass();
        stage.run_ready();
        assert!(!seen.is_open());
        drop(stage);
        seen.pass();
        waiter.join().unwrap();
    });
}

#[test]
fn a_thread_has_at_most_one_stage_and_threads_of_a_runtime_have_none() {
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        assert!(panic_of(Pinned::here).0.contains("already has one"));
        assert!(
            panic_of(|| runtime.pinned_here())
                .0
                .contains("already has one")
        );
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let text = || panic_of(Pinned::here).0;
        let texts = [
            stage.block_on(runtime.spawn(async move { text() })),
            stage.block_on(pinned.spawn(move || async move { text() })),
            stage.block_on(stage.spawn(move || async move { text() })),
        ];
        assert!(texts[0].contains("a runtime started") && texts[1] == texts[0]);
        drop(stage);
        let simulated = Runtime::builder().policy(greenroom::policy::Simulated::new(1));
        let simulated = simulated.build().unwrap();
        assert!(
            panic_of(|| simulated.pinned_here())
                .0
                .contains("spawn_pinned")
        );
        Pinned::here();
        Pinned::here();
    });
}

#[test]
fn a_panic_on_a_stage_ends_its_task_and_not_the_loop() {
    crate::support::keep_bombs_quiet();
    on_both(|stage| {
        let dies = actor(|_cx: Context<u32>| async { panic!("bomb on stage") });
        let dies = dies.on(&**stage).spawn();
        assert_eq!(stage.run_ready(), 1);
        assert!(matches!(
            stage.block_on(dies.join()),
            Err(Fault::Panicked(_))
        ));
        assert_eq!(stage.block_on(stage.spawn(|| async { 42 })), 42);
    });
}

#[test]
fn dropping_a_stage_drops_its_tasks_there_and_refuses_new_ones() {
    struct Here(
        ThreadId,
        #[expect(dead_code, reason = "counted by its drop")] crate::support::Dropped,
    );
    impl Drop for Here {
        fn drop(&mut self) {
            assert_eq!(self.0, here());
        }
    }
    within(WATCH, || {
        let runtime = runtime();
        for of_runtime in [true, false] {
            let stage = match of_runtime {
                true => runtime.pinned_here(),
                false => Pinned::here(),
            };
            let drops = Drops::default();
            let (one, other, third) = (drops.one(), drops.one(), drops.one());
            let hosted = stage
                .block_on(stage.host(move || Here(here(), one)))
                .unwrap();
            let waits = stage.spawn(move || {
                let bound = Here(here(), other);
                async move {
                    pending::<()>().await;
                    drop(bound);
                }
            });
            let waiting = actor(reads).on(&*stage).spawn();
            stage.run_ready();
            let never = stage.spawn(move || {
                drop(third);
                async {}
            });
            let pinned: Pinned = (*stage).clone();
            drop(stage);
            assert_eq!(drops.count(), 3);
            assert!(drive(waits.fallible()).is_none() && drive(never.fallible()).is_none());
            assert!(matches!(drive(waiting.join()), Err(Fault::Cancelled)));
            assert!(matches!(drive(hosted.with(|_| ())), Err(HostFault::Gone)));
            assert!(drive(pinned.spawn(|| async {}).fallible()).is_none());
        }
    });
}

#[test]
fn a_shutdown_lets_a_stage_handle_accepted_messages() {
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let reader = actor(reads).on(&*stage).spawn();
        (0..5).for_each(|n| reader.tell(n).unwrap());
        let report = runtime.block_on(runtime.shutdown());
        assert_eq!(
            (report.ended, report.cancelled, report.left_behind),
            (1, 0, 0)
        );
        assert_eq!(runtime.block_on(reader.join()).unwrap(), [0, 1, 2, 3, 4]);
        assert!(
            runtime
                .block_on(stage.spawn(|| async {}).fallible())
                .is_none()
        );
    });
}

/// Spawns a task on the stage that waits forever; counts its drop.
pub fn waits_on(stage: &Stage) -> Drops {
    let drops = Drops::default();
    let one = drops.one();
    let waits = || async move {
        pending::<()>().await;
        drop(one);
    };
    stage.spawn(waits).detach();
    drops
}

#[test]
fn a_runtime_may_be_dropped_before_its_stage() {
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let drops = waits_on(&stage);
        stage.run_ready();
        drop(runtime);
        assert_eq!(drops.count(), 1);
        assert_eq!(stage.run_ready(), 0);
    });
}

#[test]
fn a_shutdown_on_another_thread_is_served_by_the_next_run_ready() {
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let (interrupt, events) = mpsc::channel();
        stage.on_wake(move || interrupt.send(()).unwrap());
        let drops = waits_on(&stage);
        let elsewhere = std::thread::spawn(move || drop(runtime));
        while drops.count() == 0 {
            events.recv().unwrap();
            stage.run_ready();
        }
        elsewhere.join().unwrap();
    });
}

/// A loop that knows no futures: it receives its events from a channel.
#[test]
fn a_foreign_loop_over_a_channel_serves_actors_on_its_thread() {
    enum Event {
        Wake,
        Key(char),
        Close,
    }
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let (event, events) = mpsc::channel();
        let wake = event.clone();
        stage.on_wake(move || wake.send(Event::Wake).unwrap());

        let typed = Rc::new(std::cell::RefCell::new(String::new()));
        let (keys, close) = (event.clone(), event);
        let window = actor(|mut cx: Context<char>| async move {
            let mut text = String::new(); // GUI state never leaves this thread
            while let Some(key) = cx.recv().await {
                text.push(key);
            }
            close.send(Event::Close).unwrap();
            text
        });
        let window = window.on(&*stage).spawn();
        let typist = runtime.spawn(async move {
            for key in "green".chars() {
                keys.send(Event::Key(key)).unwrap();
                yield_now().await;
            }
            drop(keys);
        });
        let mut left = 5;
        loop {
            let wait = stage
                .next_deadline()
                .map(|due| due.duration_since(Instant::now()));
            match events.recv_timeout(wait.unwrap_or(HOUR)) {
                Ok(Event::Key(key)) => {
                    typed.borrow_mut().push(key);
                    window.tell(key).unwrap();
                    left -= 1;
                    if left == 0 {
                        window.stop();
                    }
                }
                Ok(Event::Close) => break,
                Ok(Event::Wake) | Err(_) => {}
            }
            stage.run_ready();
        }
        assert_eq!(stage.block_on(window.join()).unwrap(), *typed.borrow());
        stage.block_on(typist);
    });
}
