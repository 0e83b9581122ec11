//! Document 1: Sophie's scheduler.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{self, ThreadId};

use greenroom::{Address, Context, Reply, Runtime, actor, spawn};

use super::{asleep, join, naps, on_each_worker, runtime};
use crate::child::{threads_named, until};
use crate::support::{Gate, Home, Log, WATCH, counted, drive, on_workers, poll_here, within};

#[test]
fn so1_two_threads_never_run_one_actor_at_the_same_time() {
    const TELLERS: usize = 4;
    const MESSAGES: usize = 5000;
    let inside = AtomicBool::new(false);
    let total = on_workers(4, async move {
        let actor = spawn!(|mut cx: Context<()>| async move {
            let mut handled = 0;
            while cx.recv().await.is_some() {
                assert!(!inside.swap(true, Ordering::Relaxed), "somebody is in here");
                handled += 1;
                if handled % 16 == 0 {
                    greenroom::yield_now().await;
                }
                assert!(inside.swap(false, Ordering::Relaxed));
            }
            handled
        });
        let tell = |address: Address<()>| {
            greenroom::spawn(async move {
                for n in 0..MESSAGES {
                    address.tell(()).unwrap();
                    if n % 8 == 0 {
                        greenroom::yield_now().await;
                    }
                }
            })
        };
        let tellers: Vec<_> = (0..TELLERS).map(|_| tell(actor.address())).collect();
        futures::future::join_all(tellers).await;
        actor.join().await.unwrap()
    });
    assert_eq!(total, TELLERS * MESSAGES);
}

#[test]
fn so2_messages_are_handled_in_the_order_of_their_arrival() {
    const TELLERS: usize = 4;
    const MESSAGES: usize = 2000;
    let heard: Vec<(usize, usize)> = on_workers(4, async {
        let actor = spawn!(|mut cx: Context<(usize, usize)>| async move {
            let mut heard = Vec::new();
            while let Some(message) = cx.recv().await {
                heard.push(message);
                // A suspension in the middle lets nobody overtake.
                if heard.len() % 7 == 0 {
                    greenroom::yield_now().await;
                }
            }
            heard
        });
        let tell = |teller, address: Address<(usize, usize)>| {
            greenroom::spawn(async move {
                for n in 0..MESSAGES {
                    if n % 2 == 0 {
                        address.tell((teller, n)).unwrap();
                    } else {
                        address.send((teller, n)).await.unwrap();
                    }
                }
            })
        };
        let tellers: Vec<_> = (0..TELLERS).map(|id| tell(id, actor.address())).collect();
        futures::future::join_all(tellers).await;
        actor.join().await.unwrap()
    });
    for teller in 0..TELLERS {
        let own = heard.iter().filter(|(from, _)| *from == teller);
        assert!(own.map(|(_, n)| *n).eq(0..MESSAGES), "of teller {teller}");
    }
}

#[test]
fn so3_many_sends_to_an_idle_actor_schedule_it_once() {
    Home::watch(
        || Home::workers(1),
        |home| {
            let polls = Arc::new(AtomicUsize::new(0));
            let counter = polls.clone();
            let idle = home.spawn(actor(move |mut cx: Context<u32>| {
                counted(counter, async move { while cx.recv().await.is_some() {} })
            }));
            home.turn();
            assert_eq!(polls.swap(0, Ordering::SeqCst), 1, "its first turn");
            let held = home.hold();
            (0..50).for_each(|n| idle.tell(n).unwrap());
            drop(held);
            home.turn();
            assert_eq!(polls.load(Ordering::SeqCst), 1);
        },
    );
}

#[test]
fn so4_no_send_falls_between_an_empty_mailbox_and_the_sleep() {
    const ROUNDS: usize = 20_000;
    let handled = Arc::new(AtomicUsize::new(0));
    let counter = handled.clone();
    on_workers(2, async move {
        let actor = spawn!(|mut cx: Context<()>| async move {
            while cx.recv().await.is_some() {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        for round in 1..=ROUNDS {
            actor.tell(()).unwrap();
            // The next one is told just as the actor goes to sleep after this one.
            while handled.load(Ordering::SeqCst) < round {
                greenroom::yield_now().await;
            }
        }
    });
}

/// With mailboxes that never run empty, since each actor tells itself.
#[test]
fn so5_a_turn_ends_after_a_batch_and_the_actor_goes_to_the_back() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).batch(5).build().unwrap();
        let log = Log::default();
        let talkers: Vec<_> = (0..3)
            .map(|id| {
                let log = log.clone();
                let talker = actor(move |mut cx: Context<()>| async move {
                    let me = cx.address();
                    for _ in 0..100 {
                        cx.recv().await;
                        log.add(id);
                        me.tell(()).unwrap();
                    }
                });
                talker.on(&runtime).spawn()
            })
            .collect();
        // They are kept until all have ended: a join gives up the handle's own.
        let addresses: Vec<_> = talkers.iter().map(|talker| talker.address()).collect();
        let begin = addresses.clone();
        drive(runtime.spawn(async move { begin.iter().for_each(|to| to.tell(()).unwrap()) }));
        for talker in talkers {
            drive(talker.join()).unwrap();
        }
        drop(addresses);
        let turns = log.take();
        for (round, turns) in turns.chunks(15).enumerate() {
            let ids: Vec<_> = turns.chunks(5).map(|turn| (turn[0], turn)).collect();
            assert!(
                ids.iter().all(|(id, turn)| turn.iter().all(|of| of == id)),
                "{turns:?}"
            );
            let all: HashSet<_> = ids.iter().map(|(id, _)| id).collect();
            assert_eq!(all.len(), 3, "round {round}: {turns:?}");
        }
    });
}

#[test]
fn so7_a_pinned_actors_wake_up_does_not_pass_through_the_workers() {
    within(WATCH, || {
        let home = Home::workers(1);
        let pinned = home.runtime.spawn_pinned("pinned").unwrap();
        let echo = spawn!(
            |mut cx: Context<Reply<u32>>| async move {
                while let Some(reply) = cx.recv().await {
                    reply.send(42);
                }
            },
            on = &pinned
        );
        let held = home.hold();
        for _ in 0..100 {
            assert_eq!(drive(echo.ask(|reply| reply)).unwrap(), 42);
        }
        drop(held);
    });
}

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
        thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(naps("so9a"), before);
    });
}

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
        until(|| threads_named("so11") == 0);
    });
}

/// Tells on which threads its future is made, polled and dropped.
fn witness(
    log: Log<ThreadId>,
) -> impl FnOnce(Context<()>) -> std::pin::Pin<Box<dyn Future<Output = ()>>> + Send {
    struct Witness(Log<ThreadId>, std::marker::PhantomData<*const ()>);
    impl Drop for Witness {
        fn drop(&mut self) {
            self.0.add(thread::current().id());
        }
    }
    move |mut cx| {
        log.add(thread::current().id());
        let witness = Witness(log, std::marker::PhantomData);
        Box::pin(async move {
            while cx.recv().await.is_some() {
                witness.0.add(thread::current().id());
            }
            cx.recv().await;
            drop(witness);
        })
    }
}

#[test]
fn so15_a_pinned_actor_is_made_run_and_dropped_on_its_one_thread() {
    within(WATCH, || {
        let runtime = runtime(2);
        let mut threads = HashSet::new();
        for name in ["first", "second", "third"] {
            let pinned = runtime.spawn_pinned(name).unwrap();
            let home = drive(pinned.spawn(|| async { thread::current().id() }));
            for killed in [false, true] {
                let log = Log::default();
                let actor = actor(witness(log.clone())).on(&pinned).spawn();
                (0..10).for_each(|_| actor.tell(()).unwrap());
                if killed {
                    drive(pinned.spawn(|| greenroom::yield_now()));
                    actor.kill();
                }
                let _ = drive(actor.join());
                let seen = log.take();
                assert!(
                    seen.len() >= 2 && seen.iter().all(|at| *at == home),
                    "{seen:?}"
                );
            }
            threads.insert(home);
        }
        assert_eq!(threads.len(), 3, "each has its own");
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

#[test]
fn so25_what_one_sends_first_arrives_before_what_that_causes() {
    const ROUNDS: u32 = 5000;
    let heard: Vec<(u32, &str)> = on_workers(4, async {
        let b = spawn!(|mut cx: Context<(u32, &'static str)>| async move {
            let mut heard = Vec::new();
            while let Some(message) = cx.recv().await {
                heard.push(message);
            }
            heard
        });
        let to_b = b.address();
        let c = spawn!(|mut cx: Context<u32>| async move {
            while let Some(round) = cx.recv().await {
                to_b.tell((round, "effect")).unwrap();
            }
        });
        for round in 0..ROUNDS {
            b.tell((round, "cause")).unwrap();
            c.tell(round).unwrap();
            if round % 3 == 0 {
                greenroom::yield_now().await;
            }
        }
        c.join().await.unwrap();
        b.join().await.unwrap()
    });
    let mut causes = HashSet::new();
    for (round, what) in heard {
        if what == "cause" {
            causes.insert(round);
        } else {
            assert!(
                causes.contains(&round),
                "the effect of round {round} came first"
            );
        }
    }
    assert_eq!(causes.len(), ROUNDS as usize);
}
