//! When a runtime has run out of work: what keeps it alive, and that it is told of exactly then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use futures::channel::oneshot;
use greenroom::{Context, Reply, Runtime, policy, spawn, time};

use crate::support::{Gate, Home, WATCH, drive, poll_once, within};

/// A scenario under the default policy, under one whose runnables are counted one by one, and in a
/// simulation.
fn under_each(workers: usize, scenario: fn(&Runtime)) {
    on_threads(workers, scenario);
    Home::simulate(scenario);
}

/// As [`under_each`], where somebody blocks a thread until another one goes on.
fn on_threads(workers: usize, scenario: fn(&Runtime)) {
    let default = move || Runtime::builder().workers(workers);
    let shared = move || default().policy(policy::Sharing::default());
    for builder in [default(), shared()] {
        within(WATCH, move || scenario(&builder.build().unwrap()));
    }
}

/// Checks that the end has not come, by what keeps it from coming, and comes when that is gone.
fn is_kept_alive_by<K>(runtime: &Runtime, keep: K, let_go: impl FnOnce(K)) {
    let mut end = Box::pin(runtime.quiescent());
    assert!(poll_once(&mut end).is_pending(), "it is kept alive");
    let_go(keep);
    drive(end);
}

#[test]
fn so10_so12_it_ends_when_there_is_no_work_left() {
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
fn a_runtime_that_has_nothing_to_do_is_at_its_end_at_once() {
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
fn all_who_wait_hear_of_it() {
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
fn so12_a_hold_keeps_it_alive_and_so_does_its_clone() {
    under_each(2, |runtime| {
        let hold = runtime.keep_alive();
        let clone = hold.clone();
        drop(hold);
        is_kept_alive_by(runtime, clone, drop);
    });
}

#[test]
fn a_running_task_keeps_it_alive() {
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
fn a_blocking_job_keeps_it_alive() {
    on_threads(1, |runtime| {
        let go = Gate::default();
        let goes = go.clone();
        let job = runtime.spawn(async { greenroom::unblock(move || goes.pass()).await });
        is_kept_alive_by(runtime, go, |go| go.open());
        drive(job);
    });
}

#[test]
fn a_timer_keeps_it_alive_until_it_fires_or_is_dropped() {
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
        // Dropped by a thread that is none of the runtime's, when all sleep.
        is_kept_alive_by(runtime, drive(given).unwrap(), drop);
    });
}

#[test]
fn the_future_of_a_block_on_counts_while_it_does_not_wait() {
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
        // It waits, and does not keep anything alive.
        runtime.run_until_quiescent();
        wake.send(()).unwrap();
        is_kept_alive_by(runtime, over, |over| over.open());
        other.join().unwrap();
    });
}

#[test]
fn a_task_that_waits_in_a_nested_block_on_does_not_count_while_it_waits() {
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
fn what_waits_for_a_message_or_for_another_thread_does_not_keep_it_alive() {
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
fn a_pinned_thread_keeps_it_alive_while_it_is_not_idle() {
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
        assert!(task.is_finished(), "its timer and what it spawned count");
        assert_eq!(drive(task), 42);
    });
}

#[test]
fn a_deadline_of_an_actor_that_waits_in_block_on_on_its_own_thread_may_be_dropped_elsewhere() {
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
fn it_is_also_told_of_when_the_runtime_shuts_down() {
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

/// What one trial brings to rest: messages and tasks that cause each other, from another thread.
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

/// So many trials that a window of a few instructions is met: what is brought before the hold is
/// given up is done when the end is told of, and the end is told of each time.
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
        assert_eq!(done.load(Ordering::SeqCst), number + 1, "a false end");
    }
    drop(send);
    bringer.join().unwrap();
}

#[test]
fn so13_so14_in_a_million_trials_there_is_no_false_end_and_none_is_missed() {
    // Each is a wake-up of three threads; a debug build does fewer.
    let many = if cfg!(debug_assertions) {
        30_000
    } else {
        1_000_000
    };
    within(WATCH * 4, move || trials(many, policy::Stealing::default()));
}

#[test]
fn so13_nor_is_there_with_another_policy() {
    within(WATCH * 4, || trials(20_000, policy::Sharing::default()));
}
