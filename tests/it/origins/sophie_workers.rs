//! Document 1, Sophie's scheduler: where tasks go and how workers share them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use greenroom::{Context, Reply, Runtime, actor, spawn};

#[cfg(target_os = "linux")]
use super::{asleep, naps};
use super::{join, on_each_worker, runtime};
#[cfg(target_os = "linux")]
use crate::child::threads_named;
use crate::support::{Gate, Home, Log, WATCH, drive, poll_here, until, within};
#[cfg(target_os = "linux")]
use crate::support::{MANY_HAND_OVERS, hand_over};

#[test]
fn so8_ca5_closures_and_actors_from_outside_run_in_the_order_of_one_queue() {
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
fn so9_workers_without_work_do_not_run() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(3)
            .thread_name("so9a")
            .build()
            .unwrap();
        drive(runtime.spawn(async {
            let tasks = (0..100).map(|_| greenroom::spawn(greenroom::yield_now()));
            futures::future::join_all(tasks.collect::<Vec<_>>()).await;
        }));
        let before = asleep("so9a");
        assert_eq!(before.len(), 3);
        hand_over(4 * MANY_HAND_OVERS);
        assert_eq!(naps("so9a"), before);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn so9_one_sleeper_is_woken_for_one_task_the_last_one_to_lie_down() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(4)
            .thread_name("so9b")
            .build()
            .unwrap();
        let mut before = asleep("so9b");
        let mut last_down = None;
        for _ in 0..20 {
            drive(runtime.spawn(async {}));
            let after = asleep("so9b");
            let up: Vec<_> = after
                .iter()
                .filter(|(name, naps)| before[*name] != **naps)
                .collect();
            assert_eq!(up.len(), 1, "woken for one task: {up:?}");
            let name = up[0].0.clone();
            assert_eq!(*last_down.get_or_insert(name.clone()), name);
            before = after;
        }
    });
}

#[test]
fn so11_at_the_shutdown_every_worker_quits_and_what_was_queued_still_runs() {
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
fn so17_ca5_a_woken_actor_goes_to_the_queue_of_its_senders_worker() {
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
            // The worker looks outside at every other turn, but not first for what it was just given.
            let at = log.take().iter().position(|name| *name == "woken").unwrap();
            assert!(
                at <= 1,
                "after {at} of those that came before it from outside"
            );
        },
    );
}

#[test]
fn so18_ca11_a_worker_steals_only_when_its_own_queue_is_empty() {
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
                    // This one's work is left to the other.
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
fn so19_the_thief_begins_anywhere_and_looks_at_every_queue() {
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
fn so20_a_thief_has_done_with_stealing_before_it_runs_what_it_stole() {
    within(WATCH, || {
        let runtime = runtime(3);
        for _ in 0..100 {
            let victim = runtime.spawn(async {
                // Both must be stolen, and the first thief is held by what it runs.
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
fn so21_what_a_foreign_or_a_pinned_thread_pushes_to_a_worker_going_idle_is_found() {
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
