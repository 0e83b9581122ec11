//! The promises of Sophie's scheduler to an actor.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use greenroom::machine::{Machine, Next};
use greenroom::{Address, Context, Fault, Reply, Runtime, actor, spawn};

use super::runtime;
use crate::heap;
use crate::support::{Home, Log, WATCH, counted, drive, on_workers, within};

#[test]
fn two_threads_never_run_one_actor_at_the_same_time() {
    const TELLERS: usize = 4;
    const MESSAGES: usize = 5000;
    let inside = AtomicBool::new(false);
    let total = on_workers(4, async move {
        let actor = spawn!(|mut cx: Context<()>| async move {
            let mut handled = 0;
            while cx.recv().await.is_some() {
                assert!(
                    !inside.swap(true, Ordering::Relaxed),
                    "another thread runs the actor"
                );
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
fn messages_are_handled_in_the_order_of_their_arrival() {
    const TELLERS: usize = 4;
    const MESSAGES: usize = 2000;
    let heard: Vec<(usize, usize)> = on_workers(4, async {
        let actor = spawn!(|mut cx: Context<(usize, usize)>| async move {
            let mut heard = Vec::new();
            while let Some(message) = cx.recv().await {
                heard.push(message);
                // No message overtakes another when the handler suspends in the middle.
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
fn many_sends_to_an_idle_actor_schedule_it_once() {
    Home::watch(
        || Home::workers(1),
        |home| {
            let polls = Arc::new(AtomicUsize::new(0));
            let counter = polls.clone();
            let idle = home.spawn(actor(move |mut cx: Context<u32>| {
                counted(counter, async move { while cx.recv().await.is_some() {} })
            }));
            home.turn();
            assert_eq!(
                polls.swap(0, Ordering::SeqCst),
                1,
                "the actor has had its first turn"
            );
            let held = home.hold();
            (0..20).for_each(|n| idle.tell(n).unwrap());
            drop(held);
            home.turn();
            assert_eq!(polls.load(Ordering::SeqCst), 1);
        },
    );
}

#[test]
fn no_send_is_lost_between_an_empty_mailbox_and_the_sleep() {
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
            // The next message is sent just as the actor goes to sleep after this one.
            while handled.load(Ordering::SeqCst) < round {
                greenroom::yield_now().await;
            }
        }
    });
}

/// The mailboxes never run empty, since each actor sends itself a message per message.
#[test]
fn a_turn_ends_after_a_batch_and_the_actor_goes_to_the_back() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).batch(5).build().unwrap();
        let log = Log::default();
        let talkers: Vec<_> = (0..3)
            .map(|id| {
                let log = log.clone();
                let talker = actor(move |mut cx: Context<()>| async move {
                    let me = cx.downgrade();
                    for _ in 0..100 {
                        cx.recv().await;
                        log.add(id);
                        me.tell(()).unwrap();
                    }
                });
                talker.on(&runtime).spawn()
            })
            .collect();
        // The addresses are kept until all actors have ended: a join drops the address of its
        // handle.
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
fn a_dormant_actor_is_small_and_waking_it_allocates_nothing() {
    // All actors fit into a worker's ring, so each has its turn while the task yields once.
    const ACTORS: usize = 200;
    const BYTES_MAX: usize = 400;
    within(WATCH, || {
        let (bytes, allocations) = drive(runtime(1).spawn(async {
            let quiet =
                || spawn!(|mut cx: Context<u64>| async move { while cx.recv().await.is_some() {} });
            let mut actors = Vec::with_capacity(ACTORS);
            // With one worker, a single thread allocates and frees everything.
            let before = heap::here();
            actors.extend((0..ACTORS).map(|_| quiet()));
            for round in 0..3 {
                actors.iter().for_each(|actor| actor.tell(round).unwrap());
                greenroom::yield_now().await;
            }
            let bytes = (heap::here().live - before.live) / ACTORS.cast_signed();
            let mut before = heap::here();
            for round in 0..2000 {
                if round == 1000 {
                    // By now the mailbox has the block that it reuses for later messages.
                    before = heap::here();
                }
                actors[0].tell(round).unwrap();
                greenroom::yield_now().await;
            }
            (bytes, heap::here().allocations - before.allocations)
        }));
        // Blocks that other threads have freed are not counted.
        assert!(bytes <= BYTES_MAX.cast_signed(), "{bytes} bytes per actor");
        assert!(allocations == 0 || !heap::caches_blocks(), "{allocations}");
    });
}

#[test]
fn a_pinned_actors_wake_up_does_not_pass_through_the_workers() {
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

/// Records on which threads its future is made, polled and dropped.
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
fn a_pinned_actor_is_created_run_and_dropped_on_its_one_thread() {
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
                    drive(pinned.spawn(greenroom::yield_now));
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
        assert_eq!(threads.len(), 3, "each pinned thread is a different thread");
    });
}

#[test]
fn the_main_thread_can_run_one_stage_after_another() {
    within(WATCH, || {
        let main = thread::current().id();
        for _ in 0..3 {
            let runtime = runtime(2);
            let stage = runtime.pinned_here();
            let log = Log::default();
            let window = actor(witness(log.clone())).on(&stage).spawn();
            let pending = actor(witness(log.clone())).on(&stage).spawn();
            let address = window.address();
            let tells =
                runtime.spawn(async move { (0..3).for_each(|_| address.tell(()).unwrap()) });
            stage.block_on(tells);
            stage.block_on(window.join()).unwrap();
            // Tasks left on the stage are dropped on this thread.
            drop(stage);
            assert!(matches!(drive(pending.join()), Err(Fault::Cancelled)));
            assert_eq!(log.take(), [main; 5 + 2]);
        }
    });
}

#[test]
fn a_message_arrives_before_the_messages_that_it_causes() {
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

/// A machine that saves each message and counts them.
struct Saves(Arc<AtomicUsize>);

impl Machine for Saves {
    type State = ();
    type Message = usize;
    type Value = ();

    async fn on(&mut self, (): &(), message: usize, _cx: &mut Context<usize>) -> Next<Self> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Next::Save(message)
    }
}

#[test]
fn a_message_takes_no_memory_beside_its_own_while_it_waits_or_is_saved() {
    // A power of two, since the list of saved messages doubles.
    const MESSAGES: usize = 1 << 13;
    const BYTES: usize = MESSAGES * size_of::<usize>();
    within(WATCH, || {
        let (waiting, saved) = drive(runtime(1).spawn(async {
            // With one worker, a single thread allocates and frees everything.
            let count = Arc::new(AtomicUsize::new(0));
            let saves = Saves(count.clone()).into_builder(()).spawn();
            let before = heap::here().live;
            for number in 0..MESSAGES {
                saves.tell(number).unwrap();
                while count.load(Ordering::SeqCst) <= number {
                    greenroom::yield_now().await;
                }
            }
            let saved = heap::here().live - before;
            let waits = spawn!(|_: Context<usize>| std::future::pending::<()>());
            let before = heap::here().live;
            (0..MESSAGES).for_each(|number| waits.tell(number).unwrap());
            (heap::here().live - before, saved)
        }));
        // Dozens of messages share the header of a block. Each sender, for one, would be half more.
        let most = (BYTES + BYTES / 20).cast_signed();
        assert!(waiting <= most && saved <= most, "{waiting}, {saved} bytes");
    });
}
