//! What callers get when a key has no actor, or when that has no room.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use greenroom::registry::{KeyError, Keyed, KeyedAskError};
use greenroom::time::sleep;
use greenroom::{
    AskError, BuildError, Context, Overflow, RefusalKind, Reply, Runtime, SpawnProblem, actor,
};

use super::{Order, hold, options, poll_in_turn, set};
use crate::support::{Gate, Home, Log, WATCH, drive, in_every_home, keep_bombs_quiet, within};

in_every_home!(
    a_function_that_panics_starts_no_actor_and_the_next_call_tries_again,
    an_actor_with_impossible_options_is_not_started,
    an_ending_actor_that_asks_for_its_own_key_gets_a_deadlock,
    an_actor_without_room_for_what_waits_gets_a_deadlock_for_its_own_key,
    an_ending_actor_may_tell_its_own_key,
    a_full_mailbox_refuses_a_message_of_its_key,
    no_more_messages_wait_for_an_actor_than_it_has_room_for,
    messages_that_wait_for_an_actor_wait_for_its_room_in_order,
    messages_for_an_actor_that_cannot_start_are_dropped,
    messages_for_an_actor_that_lets_none_wait_are_refused,
    an_error_says_what_was_wrong,
);

fn a_function_that_panics_starts_no_actor_and_the_next_call_tries_again(home: &Home) {
    keep_bombs_quiet();
    let fails = Arc::new(AtomicBool::new(true));
    let own = fails.clone();
    let make = move |_key: u32| {
        assert!(!own.load(Ordering::SeqCst), "bomb");
        actor(async |mut cx: Context<u32>| while cx.recv().await.is_some() {})
    };
    let set = Keyed::builder(make).on(&home.runtime).limit(1).build();
    let set = set.unwrap();
    home.block_on(async {
        for _ in 0..3 {
            let refused = set.tell(&7, 1).unwrap_err();
            assert!(matches!(refused.key_error(), Some(KeyError::Panicked(_))));
            let says = "the function that makes the actor panicked: bomb";
            assert_eq!(
                (refused.to_string(), refused.into_inner()),
                (says.to_owned(), 1)
            );
            let refused = set.get_or_spawn(&7).await;
            assert!(matches!(refused, Err(KeyError::Panicked(_))));
            assert!(set.is_empty() && !set.contains(&7));
        }
        fails.store(false, Ordering::SeqCst);
        set.tell(&7, 1).unwrap();
        assert_eq!(set.len(), 1);
    });
}

fn an_actor_with_impossible_options_is_not_started(home: &Home) {
    let make = |key: u32| {
        let actor = actor(async |mut cx: Context<u32>| while cx.recv().await.is_some() {});
        actor.capacity(key as usize)
    };
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    home.block_on(async {
        let refused = set.tell(&0, 1).unwrap_err();
        let zero = SpawnProblem::ZeroCapacity;
        assert!(matches!(refused.key_error(), Some(KeyError::Spawn(why)) if *why == zero));
        assert_eq!(refused.to_string(), zero.to_string());
        set.tell(&1, 1).unwrap();
        assert_eq!(set.keys(), [1]);
    });
}

fn an_ending_actor_that_asks_for_its_own_key_gets_a_deadlock(home: &Home) {
    let log = Log::default();
    let results = log.clone();
    let set = Arc::new_cyclic(|own: &Weak<Keyed<u32, Reply<u32>>>| {
        let own = own.clone();
        let make = move |key: u32| {
            let (set, log) = (own.upgrade().unwrap(), results.clone());
            actor(async move |mut cx: Context<Reply<u32>>| {
                while let Some(reply) = cx.recv().await {
                    reply.send(key);
                }
                let asked = set.ask(&key, |reply| reply).await;
                let Err(KeyedAskError::Key(KeyError::Deadlock(cycle))) = asked else {
                    panic!("{asked:?}");
                };
                let own = greenroom::current_actor().unwrap();
                assert_eq!(cycle.as_str(), format!("{own} → {own} (for its end)"));
                let found = set.get_or_spawn(&key).await;
                assert!(matches!(found, Err(KeyError::Deadlock(_))));
                // Another key is no problem.
                log.add(set.ask(&(key + 1), |reply| reply).await.unwrap());
            })
        };
        Keyed::builder(make).on(&home.runtime).build().unwrap()
    });
    home.block_on(async {
        let first = set.get_or_spawn(&7).await.unwrap();
        first.stop();
        assert_eq!(first.ended().await, greenroom::End::Returned);
    });
    assert_eq!(log.take(), [8]);
}

fn an_actor_without_room_for_what_waits_gets_a_deadlock_for_its_own_key(home: &Home) {
    let (made, log) = (AtomicUsize::new(0), Log::default());
    let found = log.clone();
    let set = Arc::new_cyclic(|own: &Weak<Keyed<u32, Option<Gate>>>| {
        let own = own.clone();
        let make = move |key: u32| {
            let (set, log) = (own.upgrade().unwrap(), log.clone());
            // Two messages wait for the second actor, which has room for one.
            let is_first = made.fetch_add(1, Ordering::SeqCst) == 0;
            let actor = actor(async move |mut cx: Context<Option<Gate>>| {
                if !is_first {
                    let refused = set.get_or_spawn(&key).await;
                    let Err(KeyError::Deadlock(cycle)) = refused else {
                        panic!("{refused:?}");
                    };
                    let own = greenroom::current_actor().unwrap();
                    assert_eq!(cycle.as_str(), format!("{own} → {own}"));
                    log.add(key);
                }
                while let Some(gate) = cx.recv().await {
                    if let Some(gate) = gate {
                        gate.wait().await;
                    }
                }
            });
            actor.capacity(if is_first { 10 } else { 1 })
        };
        Keyed::builder(make).on(&home.runtime).build().unwrap()
    });
    home.block_on(async {
        let gate = Gate::default();
        set.tell(&7, Some(gate.clone())).unwrap();
        set.remove(&7);
        set.tell(&7, None).unwrap();
        set.tell(&7, None).unwrap();
        gate.open();
        set.get_or_spawn(&7).await.unwrap();
    });
    assert_eq!(found.take(), [7]);
}

fn an_ending_actor_may_tell_its_own_key(home: &Home) {
    let log = Log::default();
    let results = log.clone();
    let set = Arc::new_cyclic(|own: &Weak<Keyed<u32, u32>>| {
        let own = own.clone();
        let make = move |key: u32| {
            let (set, log) = (own.upgrade().unwrap(), results.clone());
            actor(async move |mut cx: Context<u32>| {
                let Some(number) = cx.recv().await else {
                    return;
                };
                log.add(number);
                cx.stop();
                if number > 0 {
                    set.tell(&key, number - 1).unwrap();
                }
            })
        };
        Keyed::builder(make).on(&home.runtime).build().unwrap()
    });
    home.block_on(async {
        set.tell(&7, 5).unwrap();
        while log.len() < 6 {
            greenroom::yield_now().await;
        }
    });
    assert_eq!(log.take(), [5, 4, 3, 2, 1, 0]);
}

/// Lets an actor wait in its first message, then logs the others.
async fn log_after(mut cx: Context<(Option<Gate>, u32)>, begun: Gate, log: Log<u32>) {
    while let Some((gate, number)) = cx.recv().await {
        if let Some(gate) = gate {
            begun.open();
            gate.wait().await;
        }
        log.add(number);
    }
}

type Bounded = Keyed<u32, (Option<Gate>, u32)>;

/// A set whose mailboxes have room for two messages, with a gate that is open when the first
/// message was received.
fn bounded(home: &Home) -> (Bounded, Gate, Log<u32>) {
    let (begun, log) = (Gate::default(), Log::default());
    let (gate, own) = (begun.clone(), log.clone());
    let make = move |_| {
        let (begun, log) = (gate.clone(), own.clone());
        actor(move |cx| log_after(cx, begun, log)).capacity(2)
    };
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    (set, begun, log)
}

fn a_full_mailbox_refuses_a_message_of_its_key(home: &Home) {
    let (set, begun, log) = bounded(home);
    home.block_on(async {
        let end = Gate::default();
        set.tell(&7, (Some(end.clone()), 0)).unwrap();
        begun.wait().await;
        set.tell(&7, (None, 1)).unwrap();
        set.tell(&7, (None, 2)).unwrap();
        let refused = set.tell(&7, (None, 3)).unwrap_err();
        assert!(refused.is_full() && refused.key_error().is_none());
        let says = "the mailbox of the actor of this key is full";
        assert_eq!(refused.to_string(), says);
        assert_eq!(refused.into_inner().1, 3);
        end.open();
        set.stop();
        set.ended().await;
    });
    assert_eq!(log.take(), [0, 1, 2]);
}

fn no_more_messages_wait_for_an_actor_than_it_has_room_for(home: &Home) {
    let (set, begun, log) = bounded(home);
    home.block_on(async {
        let end = Gate::default();
        set.tell(&7, (Some(end.clone()), 0)).unwrap();
        begun.wait().await;
        set.remove(&7);
        set.tell(&7, (None, 1)).unwrap();
        set.tell(&7, (None, 2)).unwrap();
        assert!(set.tell(&7, (None, 3)).unwrap_err().is_full());
        end.open();
        set.get_or_spawn(&7)
            .await
            .unwrap()
            .send((None, 4))
            .await
            .unwrap();
        set.stop();
        set.ended().await;
    });
    assert_eq!(log.take(), [0, 1, 2, 4]);
}

fn messages_that_wait_for_an_actor_wait_for_its_room_in_order(home: &Home) {
    // The first actor has more room than the next one.
    let (made, log) = (AtomicUsize::new(0), Log::default());
    let (begun, own) = (Gate::default(), log.clone());
    let gate = begun.clone();
    let make = move |_| {
        let (begun, log) = (gate.clone(), own.clone());
        let actor = actor(move |cx| log_after(cx, begun, log));
        match made.fetch_add(1, Ordering::SeqCst) {
            0 => actor.capacity(100),
            _ => actor.capacity(1),
        }
    };
    let set: Bounded = Keyed::builder(make).on(&home.runtime).build().unwrap();
    home.block_on(async {
        let end = Gate::default();
        set.tell(&7, (Some(end.clone()), 0)).unwrap();
        begun.wait().await;
        set.remove(&7);
        for number in 1..50 {
            set.tell(&7, (None, number)).unwrap();
        }
        end.open();
        set.get_or_spawn(&7)
            .await
            .unwrap()
            .send((None, 50))
            .await
            .unwrap();
        set.stop();
        set.ended().await;
    });
    assert_eq!(log.take(), (0..=50).collect::<Vec<_>>());
}

fn messages_for_an_actor_that_cannot_start_are_dropped(home: &Home) {
    keep_bombs_quiet();
    let made = AtomicUsize::new(0);
    let begun = Gate::default();
    let gate = begun.clone();
    let make = move |_key: u32| {
        assert!(made.fetch_add(1, Ordering::SeqCst) != 1, "bomb");
        let begun = gate.clone();
        actor(async move |mut cx: Context<(Gate, Reply<u32>)>| {
            while let Some((gate, reply)) = cx.recv().await {
                begun.open();
                gate.wait().await;
                reply.send(1);
            }
        })
    };
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    home.block_on(async {
        let end = Gate::default();
        let (first, answer) = Reply::pair();
        set.tell(&7, (end.clone(), first)).unwrap();
        begun.wait().await;
        set.remove(&7);
        let (second, lost) = Reply::pair();
        set.tell(&7, (end.clone(), second)).unwrap();
        end.open();
        assert_eq!(answer.await, Ok(1));
        assert!(matches!(lost.await, Err(AskError::NoReply(_))));
        // The next call starts another one.
        let asked = set.ask(&7, |reply| (end, reply)).await;
        assert_eq!(asked.unwrap(), 1);
    });
}

fn messages_for_an_actor_that_lets_none_wait_are_refused(home: &Home) {
    let (made, begun) = (AtomicUsize::new(0), Gate::default());
    let gate = begun.clone();
    let make = move |_key: u32| {
        let begun = gate.clone();
        let actor = actor(async move |mut cx: Context<(Gate, Reply<u32>)>| {
            while let Some((gate, reply)) = cx.recv().await {
                begun.open();
                gate.wait().await;
                reply.send(1);
            }
        });
        match made.fetch_add(1, Ordering::SeqCst) {
            0 => actor.capacity(100),
            _ => actor.capacity(1).overflow(Overflow::Newest),
        }
    };
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    home.block_on(async {
        let (first, later) = (Gate::default(), Gate::default());
        set.tell(&7, (first.clone(), Reply::pair().0)).unwrap();
        begun.wait().await;
        set.remove(&7);
        let refused = Log::default();
        let answers: Vec<_> = (0..5).map(|_| Reply::pair()).collect();
        let answers = answers.into_iter().map(|(reply, answer)| {
            set.tell(&7, (later.clone(), reply)).unwrap();
            async {
                match answer.await {
                    Ok(answer) => assert_eq!(answer, 1),
                    Err(AskError::Refused(why)) => refused.add(why.kind()),
                    Err(other) => panic!("{other}"),
                }
            }
        });
        let answers = futures::future::join_all(answers.collect::<Vec<_>>());
        first.open();
        // One is in hand, and one in the mailbox.
        let open = async {
            while refused.len() < 3 {
                greenroom::yield_now().await;
            }
            later.open();
        };
        futures::join!(answers, open);
        let kinds = refused.take();
        assert!(kinds.len() < 5 && kinds.iter().all(|kind| *kind == RefusalKind::Overloaded));
        assert_eq!(set.ask(&7, |reply| (later, reply)).await.unwrap(), 1);
    });
}

fn an_error_says_what_was_wrong(home: &Home) {
    let make = |_key: u32| actor(async |mut cx: Context<u32>| cx.recv().await);
    let builder = || Keyed::builder(make).on(&home.runtime);
    let says = |error: BuildError| error.to_string();
    let zero = builder().limit(0).build().unwrap_err();
    assert_eq!(says(zero), "limit is 0, but must be at least 1");
    let zero = builder().idle(Duration::ZERO).build().unwrap_err();
    assert_eq!(says(zero), "idle is 0 s, but must be longer");
    assert_eq!(
        format!("{:?}", builder().build().unwrap()),
        "Keyed { len: 0, .. }"
    );
}

#[test]
fn a_set_needs_a_runtime_that_runs() {
    within(WATCH, || {
        let make = |_key: u32| actor(async |mut cx: Context<u32>| cx.recv().await);
        let none = Keyed::builder(make).build().unwrap_err();
        assert_eq!(none.to_string(), "on is not set, and no runtime is current");
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let over = Keyed::builder(make).on(&runtime);
        drop(runtime);
        let over = over.build().unwrap_err();
        assert_eq!(over.to_string(), "on is a runtime that has shut down");
    });
}

#[test]
fn a_set_can_be_used_outside_its_runtime() {
    within(WATCH, || {
        let (home, other) = (Home::workers(2), Home::workers(1));
        let (set, _book) = set(&home);
        set.tell(&1, Order::Add(1)).unwrap();
        let seen = drive(set.ask(&1, Order::Look)).unwrap();
        assert_eq!(seen, (1, vec![1]));
        let own = set.clone();
        let seen = other.block_on(async move { own.ask(&2, Order::Look).await });
        assert_eq!(seen.unwrap(), (1, vec![]));
        // The actors are on the runtime of the set.
        drop(other);
        assert_eq!(drive(set.ask(&2, Order::Look)).unwrap(), (1, vec![]));
    });
}

#[test]
fn a_call_that_waits_ends_with_the_runtime() {
    within(WATCH, || {
        let home = Home::workers(2);
        let (set, _book) = set(&home);
        let _end = home.block_on(hold(&set, 7));
        set.remove(&7);
        let waits = {
            let set = set.clone();
            std::thread::spawn(move || drive(set.get_or_spawn(&7)))
        };
        set.tell(&7, Order::Add(1)).unwrap();
        home.block_on(sleep(Duration::from_millis(1)));
        home.runtime.block_on(async {});
        let ends = {
            let set = set.clone();
            std::thread::spawn(move || drive(set.ended()))
        };
        // The actor waits for a gate, so it is cancelled after the grace.
        drop(home);
        let over = |error: &KeyError| matches!(error, KeyError::Spawn(SpawnProblem::ShutDown));
        assert!(over(&waits.join().unwrap().unwrap_err()));
        ends.join().unwrap();
        let refused = set.tell(&7, Order::Add(1)).unwrap_err();
        assert!(over(refused.key_error().unwrap()));
        assert!(over(&drive(set.get_or_spawn(&8)).unwrap_err()));
        assert!(set.is_empty());
    });
}

/// Returns a set whose actors wait for each gate that they receive.
fn gated(runtime: &Runtime) -> Keyed<u32, Gate> {
    let make = |_key: u32| {
        actor(async |mut cx: Context<Gate>| {
            while let Some(gate) = cx.recv().await {
                gate.wait().await;
            }
        })
    };
    Keyed::builder(make).on(runtime).build().unwrap()
}

#[test]
fn a_call_in_a_task_that_a_shutdown_cancels_is_dropped() {
    Home::simulate(|runtime| {
        let set = gated(runtime);
        runtime.block_on(async {
            set.tell(&7, Gate::default()).unwrap();
            set.remove(&7);
            let own = set.clone();
            let waits = greenroom::spawn(async move { own.get_or_spawn(&7).await.is_ok() });
            greenroom::yield_now().await;
            runtime.shutdown().await;
            assert_ne!(waits.fallible().await, Some(true));
        });
        assert!(set.tell(&7, Gate::default()).is_err());
    });
}

#[test]
fn a_dropped_call_leaves_the_set_as_it_is() {
    Home::simulate(|runtime| {
        let set = gated(runtime);
        runtime.block_on(async {
            let end = Gate::default();
            set.tell(&7, end.clone()).unwrap();
            set.remove(&7);
            let mut call = Box::pin(set.get_or_spawn(&7));
            assert!(poll_in_turn(&mut call).await.is_pending());
            drop(call);
            end.open();
            set.ended().await;
        });
    });
}

#[test]
fn on_end_may_panic() {
    keep_bombs_quiet();
    let faults = Log::default();
    let own = faults.clone();
    let builder = Runtime::builder().on_fault(move |fault| own.add(fault.to_string()));
    within(WATCH, move || {
        let home = Home::built(1, builder);
        let book = super::Book::default();
        let set = options(&home, &book).on_end(|_, _| panic!("bomb"));
        let set = set.build().unwrap();
        home.block_on(async {
            set.tell(&7, Order::Return).unwrap();
            set.ended().await;
            assert_eq!(set.ask(&7, Order::Look).await.unwrap().0, 2);
        });
    });
    assert_eq!(
        faults.take()[0],
        "a task of a set of keyed actors panicked: bomb"
    );
}

#[test]
fn a_fault_that_no_function_takes_goes_to_on_fault() {
    keep_bombs_quiet();
    let faults = Log::default();
    let own = faults.clone();
    let builder = Runtime::builder().on_fault(move |fault| own.add(fault.to_string()));
    within(WATCH, move || {
        let home = Home::built(1, builder);
        let (set, _book) = set(&home);
        home.block_on(async {
            set.tell(&7, Order::Panic).unwrap();
            set.ended().await;
        });
    });
    let [fault] = &faults.take()[..] else {
        panic!("one fault was expected");
    };
    // The actor is called after its function.
    assert!(
        fault.starts_with("obey #") && fault.ends_with(" panicked: bomb"),
        "{fault}"
    );
}
