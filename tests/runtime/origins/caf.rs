//! The promises of CAF's scheduler.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use greenroom::policy::Stealing;
use greenroom::{Context, Runtime, actor, spawn};

use super::{join, on_each_worker, runtime};
#[cfg(target_os = "linux")]
use crate::child::threads_named;
use crate::support::{Home, Log, WATCH, counted, drive, on_workers, within};

#[test]
fn many_actors_run_on_as_many_threads_as_there_are_workers() {
    let threads: HashSet<ThreadId> = on_workers(3, async {
        let actors: Vec<_> = (0..300)
            .map(|_| spawn!(|_: Context<()>| async { thread::current().id() }))
            .collect();
        let mut threads = HashSet::new();
        for actor in actors {
            threads.insert(actor.join().await.unwrap());
        }
        threads
    });
    assert!((1..=3).contains(&threads.len()), "{threads:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn by_default_there_is_a_worker_for_each_available_core() {
    within(WATCH, || {
        let runtime = Runtime::builder().thread_name("ca1").build().unwrap();
        // All workers have started once a task runs on each of them.
        let cores = thread::available_parallelism().unwrap().get();
        join(on_each_worker(&runtime, cores, |_, _| async {}));
        assert_eq!(threads_named("ca1-"), cores);
    });
}

#[test]
fn an_actor_runs_only_when_a_message_or_its_end_makes_it_ready() {
    Home::watch(
        || Home::workers(1),
        |home| {
            let polls = Arc::new(AtomicUsize::new(0));
            let counter = polls.clone();
            let actor = home.spawn(actor(move |mut cx: Context<()>| {
                counted(counter, async move { while cx.recv().await.is_some() {} })
            }));
            let polls = || polls.load(Ordering::SeqCst);
            home.turn();
            assert_eq!(polls(), 1, "a spawned actor is ready once");
            home.turn();
            assert_eq!(polls(), 1, "a waiting actor does not run");
            actor.tell(()).unwrap();
            home.turn();
            assert_eq!(polls(), 2, "a message makes the actor ready");
            actor.stop();
            home.turn();
            assert_eq!(polls(), 3, "the end of its mailbox makes the actor ready");
            home.block_on(actor.closed());
            assert!(actor.tell(()).is_err());
            home.turn();
            assert_eq!(polls(), 3, "an actor that is done never runs again");
        },
    );
}

#[test]
fn a_handler_is_not_interrupted() {
    Home::watch(
        || Home::workers(1),
        |home| {
            let log = Log::default();
            let held = home.hold();
            let spawn = |id| {
                let log = log.clone();
                home.spawn(actor(move |mut cx: Context<()>| async move {
                    while cx.recv().await.is_some() {
                        log.add(id);
                        // Other actors are ready meanwhile, and there is only one worker.
                        thread::yield_now();
                        log.add(id);
                    }
                }))
            };
            let actors: Vec<_> = (0..4).map(spawn).collect();
            (0..100).for_each(|_| actors.iter().for_each(|actor| actor.tell(()).unwrap()));
            drop(held);
            actors
                .into_iter()
                .for_each(|actor| home.block_on(actor.join()).unwrap());
            let log = log.take();
            assert_eq!(log.len(), 800);
            assert!(log.chunks(2).all(|pair| pair[0] == pair[1]));
        },
    );
}

#[test]
fn an_actor_that_has_used_up_its_batch_is_resumed_later() {
    Home::watch(
        || Home::workers(1),
        |home| {
            let polls = Arc::new(AtomicUsize::new(0));
            let counter = polls.clone();
            let held = home.hold();
            let actor = home.spawn(actor(move |mut cx: Context<()>| {
                counted(counter, async move { while cx.recv().await.is_some() {} })
            }));
            (0..100).for_each(|_| actor.tell(()).unwrap());
            drop(held);
            home.block_on(actor.join()).unwrap();
            // The default batch: 32, 32, 32 and 4 messages. The end of the mailbox is found in the
            // last turn or in an additional one.
            let polls = polls.load(Ordering::SeqCst);
            assert!((4..=5).contains(&polls), "{polls} turns");
        },
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_runtime_has_no_thread_besides_its_workers() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(2)
            .thread_name("ca10")
            .build()
            .unwrap();
        drive(runtime.spawn(greenroom::time::sleep(std::time::Duration::from_millis(1))));
        join(on_each_worker(&runtime, 2, |_, _| async {}));
        assert_eq!(
            threads_named("ca10"),
            2,
            "the runtime has no thread besides its workers"
        );
    });
}

#[test]
fn with_one_worker_nothing_is_stolen() {
    let threads: HashSet<ThreadId> = on_workers(1, async {
        let tasks = (0..300).map(|_| {
            greenroom::spawn(async {
                greenroom::yield_now().await;
                thread::current().id()
            })
        });
        let here = thread::current().id();
        let ids = futures::future::join_all(tasks.collect::<Vec<_>>()).await;
        assert_ne!(
            ids[0], here,
            "the task of `block_on` is on its caller's thread"
        );
        ids.into_iter().collect()
    });
    assert_eq!(threads.len(), 1);
}

#[test]
fn actors_stay_on_their_worker_while_no_worker_idles() {
    const ACTORS: usize = 10;
    const MESSAGES: usize = 2000;
    within(WATCH, || {
        // Without rebalancing, tasks leave a busy worker only when another worker idles and steals
        // them.
        let without_rebalance = Stealing::default().rebalance_interval(None);
        let builder = Runtime::builder().workers(2).policy(without_rebalance);
        let runtime = builder.build().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let migrations = Arc::new(AtomicUsize::new(0));
        let left = Arc::new(AtomicUsize::new(2 * ACTORS));
        let spawners = on_each_worker(&runtime, 2, |_, meeting| {
            let (over, migrations, left) = (over.clone(), migrations.clone(), left.clone());
            async move {
                let spawn = || {
                    let (over, migrations, left) = (over.clone(), migrations.clone(), left.clone());
                    spawn!(|mut cx: Context<()>| async move {
                        let home = thread::current().id();
                        let me = cx.downgrade();
                        let mut handled = 0;
                        me.tell(()).unwrap();
                        // All actors have messages until the last one has handled enough.
                        while !over.load(Ordering::SeqCst) {
                            cx.recv().await;
                            me.tell(()).unwrap();
                            handled += 1;
                            // After that, some actors idle at once.
                            let all_busy = !over.load(Ordering::SeqCst);
                            if all_busy && thread::current().id() != home {
                                migrations.fetch_add(1, Ordering::SeqCst);
                            }
                            if handled == MESSAGES && left.fetch_sub(1, Ordering::SeqCst) == 1 {
                                over.store(true, Ordering::SeqCst);
                            }
                        }
                    })
                };
                let actors: Vec<_> = (0..ACTORS).map(|_| spawn()).collect();
                // From here on, neither worker is without work.
                meeting.wait();
                actors
            }
        });
        let actors: Vec<_> = join(spawners).into_iter().flatten().collect();
        // The addresses are kept until all actors have ended: a join drops the address of its
        // handle.
        let addresses: Vec<_> = actors.iter().map(|actor| actor.address()).collect();
        for actor in actors {
            drive(actor.join()).unwrap();
        }
        drop(addresses);
        assert_eq!(migrations.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_worker_appends_tasks_and_takes_the_oldest() {
    within(WATCH, || {
        let runtime = runtime(1);
        let log = Log::default();
        let writes = log.clone();
        drive(runtime.spawn(async move {
            let tasks: Vec<_> = (0..100)
                .map(|n| {
                    let log = writes.clone();
                    greenroom::spawn(async move { log.add(n) })
                })
                .collect();
            futures::future::join_all(tasks).await;
        }));
        let mut order = log.take();
        // Except for the newest task, which runs first because its data is in the cache.
        let newest = order.iter().position(|n| *n == 99).unwrap();
        order.remove(newest);
        assert!(order.into_iter().eq(0..99));
    });
}
