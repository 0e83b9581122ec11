//! Quiescence: which values and tasks delay it, and that `quiescent` resolves exactly then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use futures::channel::oneshot;
use greenroom::{Context, Reply, Runtime, policy, spawn, time};

use crate::support::{Gate, Home, WATCH, drive, poll_once, within};

/// Runs a scenario under the default policy, under one whose runnables are counted individually,
/// and in a simulation.
fn under_each(workers: usize, scenario: fn(&Runtime)) {
    on_threads(workers, scenario);
    Home::simulate(scenario);
}

/// Does the same as [`under_each`] without the simulation: for scenarios that block a thread until
/// another one continues.
fn on_threads(workers: usize, scenario: fn(&Runtime)) {
    let default = move || Runtime::builder().workers(workers);
    let shared = move || default().policy(policy::Sharing::default());
    for builder in [default(), shared()] {
        within(WATCH, move || scenario(&builder.build().unwrap()));
    }
}

/// Checks that `quiescent` is pending while `keep` exists, and resolves after `let_go`.
fn is_kept_alive_by<K>(runtime: &Runtime, keep: K, let_go: impl FnOnce(K)) {
    let mut end = Box::pin(runtime.quiescent());
    assert!(
        poll_once(&mut end).is_pending(),
        "`quiescent` resolved too early"
    );
    let_go(keep);
    drive(end);
}

#[test]
fn quiescent_resolves_when_no_work_is_left() {
    under_each(2, |runtime| {
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let own = done.clone();
            let fan_out = async move {
                for _ in 0..100 {
                    let own = own.clone();
                    greenroom::spawn(async move {
                        greenroom::yield_now().await;
                        own.fetch_add(1, Ordering::SeqCst);
                    })
                    .detach();
                }
            };
            done.store(0, Ordering::SeqCst);
            runtime.spawn(fan_out).detach();
            runtime.run_until_quiescent();
            assert_eq!(done.load(Ordering::SeqCst), 100);
        }
    });
}

#[test]
fn a_runtime_without_work_is_quiescent_at_once() {
    under_each(2, |runtime| {
        runtime.run_until_quiescent();
        runtime.block_on(runtime.quiescent());
        drive(runtime.spawn({
            let own = Runtime::clone(runtime);
            async move { own.quiescent().await }
        }));
        drive(runtime.quiescent());
    });
}

#[test]
fn quiescence_wakes_all_waiters() {
    under_each(2, |runtime| {
        let keep = runtime.keep_alive();
        let wait = || {
            let own = runtime.clone();
            async move { own.quiescent().await }
        };
        let tasks: Vec<_> = (0..10).map(|_| runtime.spawn(wait())).collect();
        drop(keep);
        tasks.into_iter().for_each(drive);
    });
}

#[test]
fn a_keep_alive_guard_and_its_clones_delay_quiescence() {
    under_each(2, |runtime| {
        let hold = runtime.keep_alive();
        let clone = hold.clone();
        drop(hold);
        is_kept_alive_by(runtime, clone, drop);
    });
}

#[test]
fn a_running_task_delays_quiescence() {
    on_threads(2, |runtime| {
        let (begun, go) = (Gate::default(), Gate::default());
        let (begins, goes) = (begun.clone(), go.clone());
        runtime
            .spawn(async move {
                begins.open();
                goes.pass();
            })
            .detach();
        begun.pass();
        is_kept_alive_by(runtime, go, |go| go.open());
    });
}

#[test]
fn a_blocking_call_delays_quiescence() {
    on_threads(1, |runtime| {
        let go = Gate::default();
        let goes = go.clone();
        let job = runtime.spawn(async { greenroom::unblock(move || goes.pass()).await });
        is_kept_alive_by(runtime, go, |go| go.open());
        drive(job);
    });
}

#[test]
fn a_timer_delays_quiescence_until_it_fires_or_is_dropped() {
    under_each(2, |runtime| {
        let fired = runtime.spawn(async { time::sleep(Duration::from_millis(3)).await });
        runtime.run_until_quiescent();
        assert!(fired.is_finished());

        let (give, given) = oneshot::channel();
        let waits = runtime.spawn(async move {
            let mut long = time::sleep(Duration::from_secs(3600));
            assert!(poll_once(&mut long).is_pending());
            give.send(long).unwrap();
        });
        drive(waits);
        // Dropped by a foreign thread while all threads of the runtime sleep.
        is_kept_alive_by(runtime, drive(given).unwrap(), drop);
    });
}

#[test]
fn a_future_in_block_on_delays_quiescence_while_it_does_not_wait() {
    on_threads(1, |runtime| {
        let (begun, go, over) = (Gate::default(), Gate::default(), Gate::default());
        let (begins, goes, ends) = (begun.clone(), go.clone(), over.clone());
        let own = runtime.clone();
        let (wake, woken) = oneshot::channel::<()>();
        let other = thread::spawn(move || {
            own.block_on(async move {
                begins.open();
                goes.pass();
                woken.await.unwrap();
                ends.pass();
            });
        });
        begun.pass();
        is_kept_alive_by(runtime, go, |go| go.open());
        // The future waits, and does not delay quiescence.
        runtime.run_until_quiescent();
        wake.send(()).unwrap();
        is_kept_alive_by(runtime, over, |over| over.open());
        other.join().unwrap();
    });
}

#[test]
fn a_task_that_waits_in_a_nested_block_on_does_not_delay_quiescence() {
    on_threads(1, |runtime| {
        let (own, (wake, woken)) = (runtime.clone(), oneshot::channel::<()>());
        let task = runtime.spawn(async move { own.block_on(woken).unwrap() });
        runtime.run_until_quiescent();
        assert!(!task.is_finished());
        wake.send(()).unwrap();
        drive(task);
        runtime.run_until_quiescent();
    });
}

#[test]
fn actors_and_tasks_that_wait_do_not_delay_quiescence() {
    under_each(2, |runtime| {
        runtime.block_on(async {
            let actor = spawn!(|mut cx: Context<()>| async move { cx.recv().await });
            let (_sender, receiver) = oneshot::channel::<()>();
            let task = greenroom::spawn(receiver);
            Runtime::current().quiescent().await;
            drop(task);
            actor.stop();
            actor.join().await.unwrap();
        });
    });
}

#[test]
fn a_pinned_thread_delays_quiescence_while_it_is_not_idle() {
    on_threads(1, |runtime| {
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        runtime.run_until_quiescent();
        let (begun, go) = (Gate::default(), Gate::default());
        let (begins, goes) = (begun.clone(), go.clone());
        let task = pinned.spawn(move || async move {
            begins.open();
            goes.pass();
            time::sleep(Duration::from_millis(3)).await;
            greenroom::spawn(async { 42 }).await
        });
        begun.pass();
        is_kept_alive_by(runtime, go, |go| go.open());
        assert!(
            task.is_finished(),
            "its timer and its spawned task delay quiescence"
        );
        assert_eq!(drive(task), 42);
    });
}

#[test]
fn a_deadline_of_a_detached_actor_may_be_dropped_on_another_thread() {
    on_threads(1, |runtime| {
        let (give, given) = oneshot::channel();
        let (own, (wake, woken)) = (runtime.clone(), oneshot::channel::<()>());
        let waits = runtime.block_on(async move {
            spawn!(
                |_: Context<()>| async move {
                    let mut long = time::sleep(Duration::from_secs(3600));
                    assert!(poll_once(&mut long).is_pending());
                    give.send(long).unwrap();
                    own.block_on(woken).unwrap();
                },
                on = greenroom::Detached
            )
        });
        is_kept_alive_by(runtime, drive(given).unwrap(), drop);
        wake.send(()).unwrap();
        drive(waits.join()).unwrap();
    });
}

#[test]
fn quiescent_resolves_when_the_runtime_shuts_down() {
    under_each(1, |runtime| {
        let keep = runtime.keep_alive();
        let mut end = Box::pin(runtime.quiescent());
        assert!(poll_once(&mut end).is_pending());
        drive(runtime.shutdown());
        drive(end);
        drive(runtime.quiescent());
        drop(keep);
    });
}

/// One trial: messages and tasks that cause each other, started by another thread.
struct Trial {
    hold: greenroom::KeepAlive,
    actor: greenroom::Address<Step>,
    done: Arc<AtomicUsize>,
}

enum Step {
    Answer(Reply<()>),
    Hop(usize, Arc<AtomicUsize>),
}

async fn steps(mut cx: Context<Step>) {
    while let Some(step) = cx.recv().await {
        match step {
            Step::Answer(reply) => reply.send(()),
            Step::Hop(0, done) => drop(done.fetch_add(1, Ordering::SeqCst)),
            Step::Hop(left, done) => {
                let own = cx.address();
                greenroom::spawn(async move {
                    let _ = own.tell(Step::Hop(left - 1, done));
                })
                .detach();
            }
        }
    }
}

impl Trial {
    fn run(self, number: usize) {
        let done = self.done;
        self.actor.tell(Step::Hop(number % 3, done)).unwrap();
        if number.is_multiple_of(5) {
            thread::yield_now();
        }
        drop(self.hold);
    }
}

/// Runs enough trials to hit a window of a few instructions. Work started before the guard is
/// dropped is done when `quiescent` resolves, and it resolves each time.
fn trials(trials: usize, policy: impl policy::Policy) {
    let runtime = Runtime::builder()
        .workers(2)
        .policy(policy)
        .build()
        .unwrap();
    let actor = runtime.block_on(async {
        let actor = spawn!(steps(_));
        actor.ask(Step::Answer).await.unwrap();
        actor
    });
    let (send, receive) = std::sync::mpsc::channel::<(usize, Trial)>();
    let bringer = thread::spawn(move || {
        for (number, trial) in receive {
            trial.run(number);
        }
    });
    let done = Arc::new(AtomicUsize::new(0));
    for number in 0..trials {
        let trial = Trial {
            hold: runtime.keep_alive(),
            actor: actor.address(),
            done: done.clone(),
        };
        send.send((number, trial)).unwrap();
        runtime.run_until_quiescent();
        assert_eq!(
            done.load(Ordering::SeqCst),
            number + 1,
            "`quiescent` resolved too early"
        );
    }
    drop(send);
    bringer.join().unwrap();
}

#[test]
fn in_a_million_trials_quiescence_is_never_false_and_never_missed() {
    // Each trial wakes three threads; a debug build runs fewer trials.
    let many = if cfg!(debug_assertions) {
        10_000
    } else {
        1_000_000
    };
    within(WATCH * 4, move || trials(many, policy::Stealing::default()));
}

#[test]
fn with_work_sharing_quiescence_is_never_false_and_never_missed() {
    within(WATCH * 4, || trials(20_000, policy::Sharing::default()));
}
