//! The promises of Sophie's scheduler about queues and how workers share tasks.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use greenroom::{Context, Reply, Runtime, actor, spawn};

use super::{join, on_each_worker, runtime};
#[cfg(target_os = "linux")]
use crate::child::threads_named;
#[cfg(target_os = "linux")]
use crate::support::naps::{asleep, naps};
use crate::support::{Gate, Home, Log, WATCH, drive, poll_here, until, within};
#[cfg(target_os = "linux")]
use crate::support::{MANY_HAND_OVERS, hand_over};

#[test]
fn injected_tasks_and_actors_run_in_the_order_of_one_queue() {
    Home::watch(
        || Home::workers(1),
        |home| {
            let log = Log::default();
            let held = home.hold();
            for n in 0..10 {
                let (own, others) = (log.clone(), log.clone());
                home.spawn_task(async move { own.add((n, "task")) })
                    .detach();
                let actor = actor(move |_: Context<()>| async move { others.add((n, "actor")) });
                drop(home.spawn(actor));
            }
            drop(held);
            home.turn();
            let expected: Vec<_> = (0..10).flat_map(|n| [(n, "task"), (n, "actor")]).collect();
            assert_eq!(log.take(), expected);
        },
    );
}

#[cfg(target_os = "linux")]
#[test]
fn workers_without_work_do_not_run() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(3)
            .thread_name("so9a")
            // A look for endless waits would be a wake-up.
            .endless_waits(false)
            .build()
            .unwrap();
        drive(runtime.spawn(async {
            let tasks = (0..100).map(|_| greenroom::spawn(greenroom::yield_now()));
            futures::future::join_all(tasks.collect::<Vec<_>>()).await;
        }));
        // A thread also goes to sleep when its process is stopped.
        until(|| {
            let before = asleep("so9a");
            assert_eq!(before.len(), 3);
            hand_over(4 * MANY_HAND_OVERS);
            naps("so9a") == before
        });
    });
}

#[cfg(target_os = "linux")]
#[test]
fn one_task_wakes_only_the_sleeper_that_parked_last() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(4)
            .thread_name("so9b")
            .endless_waits(false)
            .build()
            .unwrap();
        let mut before = asleep("so9b");
        let mut last_down = None;
        let mut rounds = 0;
        while rounds < 20 {
            drive(runtime.spawn(async {}));
            let after = asleep("so9b");
            let up: Vec<_> = after
                .iter()
                .filter(|(name, naps)| before[*name] != **naps)
                .collect();
            if up.len() == 4 {
                // Perhaps the process was stopped: then all of them go to sleep again.
                before = after;
                continue;
            }
            rounds += 1;
            assert_eq!(up.len(), 1, "woken for one task: {up:?}");
            let name = up[0].0.clone();
            assert_eq!(*last_down.get_or_insert(name.clone()), name);
            before = after;
        }
    });
}

#[test]
fn a_shutdown_ends_every_worker_after_the_queued_tasks_have_run() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(3)
            .thread_name("so11")
            .build()
            .unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let all_held = Gate::default();
        let holders = on_each_worker(&runtime, 3, |_, _| {
            let gate = all_held.clone();
            async move { gate.pass() }
        });
        for _ in 0..500 {
            let ran = ran.clone();
            let count = async move { ran.fetch_add(1, Ordering::SeqCst) };
            runtime.spawn(count).detach();
        }
        drive(async {
            let mut shutdown = Box::pin(runtime.shutdown());
            assert!(poll_here(&mut shutdown).await.is_pending());
            all_held.open();
            shutdown.await;
        });
        assert_eq!(ran.load(Ordering::SeqCst), 500);
        join(holders);
        #[cfg(target_os = "linux")]
        until(|| threads_named("so11") == 0);
    });
}

#[test]
fn a_woken_actor_goes_to_the_queue_of_its_senders_worker() {
    Home::watch(
        || Home::workers(1),
        |home| {
            let log = Log::default();
            let heard = log.clone();
            let woken = home.spawn(actor(|mut cx: Context<()>| async move {
                while cx.recv().await.is_some() {
                    heard.add("woken");
                }
            }));
            home.turn();
            let (begun, go) = (Gate::default(), Gate::default());
            let (begins, goes, address) = (begun.clone(), go.clone(), woken.address());
            let sender = home.spawn_task(async move {
                begins.open();
                goes.pass();
                address.tell(()).unwrap();
            });
            begun.pass();
            for _ in 0..10 {
                let log = log.clone();
                home.spawn_task(async move { log.add("outside") }).detach();
            }
            go.open();
            home.block_on(sender);
            home.turn();
            // The worker checks the injector at every other turn, but runs the task it was just
            // given first.
            let at = log.take().iter().position(|name| *name == "woken").unwrap();
            assert!(at <= 1, "{at} injected tasks ran before the woken actor");
        },
    );
}

#[test]
fn a_worker_steals_only_when_its_local_queue_is_empty() {
    within(WATCH, || {
        let runtime = runtime(2);
        let log = Log::default();
        let all = Gate::default();
        let left = Arc::new(AtomicUsize::new(30));
        let tasks = on_each_worker(&runtime, 2, |number, meeting| {
            let (log, all, left) = (log.clone(), all.clone(), left.clone());
            async move {
                let own = if number == 0 { 20 } else { 10 };
                for _ in 0..own {
                    let (log, all, left) = (log.clone(), all.clone(), left.clone());
                    let task = async move {
                        log.add(number);
                        if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                            all.open();
                        }
                    };
                    greenroom::spawn(task).detach();
                }
                meeting.wait();
                if number == 1 {
                    // The other worker runs the tasks of this one.
                    all.pass();
                }
            }
        });
        join(tasks);
        let order = log.take();
        assert_eq!(order, [[0; 20].as_slice(), [1; 10].as_slice()].concat());
    });
}

#[test]
fn a_thief_begins_at_a_random_victim_and_checks_every_queue() {
    within(WATCH, || {
        let runtime = runtime(4);
        let mut first_victims = HashSet::new();
        for _ in 0..30 {
            let log = Log::default();
            let all = Gate::default();
            let left = Arc::new(AtomicUsize::new(12));
            let tasks = on_each_worker(&runtime, 4, |number, meeting| {
                let (log, all, left) = (log.clone(), all.clone(), left.clone());
                async move {
                    if number < 3 {
                        for _ in 0..4 {
                            let (log, all, left) = (log.clone(), all.clone(), left.clone());
                            let task = async move {
                                log.add(number);
                                if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                                    all.open();
                                }
                            };
                            greenroom::spawn(task).detach();
                        }
                    }
                    meeting.wait();
                    if number < 3 {
                        all.pass();
                    }
                }
            });
            join(tasks);
            let order = log.take();
            first_victims.insert(order[0]);
            assert_eq!(order.len(), 12);
        }
        assert!(first_victims.len() > 1, "always {first_victims:?} first");
    });
}

#[test]
fn a_thief_finishes_stealing_before_it_runs_the_stolen_task() {
    within(WATCH, || {
        let runtime = runtime(3);
        for _ in 0..100 {
            let victim = runtime.spawn(async {
                // Both tasks must be stolen, and the first thief is blocked by the task it runs.
                let meeting = Arc::new(Barrier::new(2));
                let both: Vec<_> = (0..2)
                    .map(|_| {
                        let meeting = meeting.clone();
                        let met = Gate::default();
                        let meets = met.clone();
                        let task = async move {
                            meeting.wait();
                            meets.open();
                        };
                        greenroom::spawn(task).detach();
                        met
                    })
                    .collect();
                both.iter().for_each(Gate::pass);
            });
            drive(victim);
        }
    });
}

#[test]
fn a_push_by_a_foreign_or_pinned_thread_reaches_a_worker_going_idle() {
    const ROUNDS: u32 = 10_000;
    within(WATCH, || {
        let runtime = runtime(1);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let echo = spawn!(
            |mut cx: Context<(u32, Reply<u32>)>| async move {
                while let Some((n, reply)) = cx.recv().await {
                    reply.send(n);
                }
            },
            on = &runtime
        );
        let address = echo.address();
        let from_pinned = pinned.spawn(move || async move {
            for n in 0..ROUNDS {
                assert_eq!(address.ask(|reply| (n, reply)).await.unwrap(), n);
            }
        });
        for n in 0..ROUNDS {
            assert_eq!(drive(echo.ask(|reply| (n, reply))).unwrap(), n);
        }
        drive(from_pinned);
    });
}
