//! Which actor a message to a key reaches, and how many there are.

use std::sync::{Arc, Weak};

use greenroom::registry::{KeyError, Keyed, KeyedAskError};
use greenroom::{Context, actor};

use super::{Book, Order, hold, options, poll_in_turn, set};
use crate::support::{Gate, Home, Log, in_every_home, keep_bombs_quiet};

in_every_home!(
    a_message_starts_the_actor_of_its_key_and_the_next_ones_find_it,
    each_key_has_an_actor_of_its_own,
    a_message_to_an_actor_that_ends_reaches_the_next_one,
    a_call_waits_for_the_end_of_an_actor_and_is_not_polled_meanwhile,
    messages_stay_in_order_over_the_ends_of_their_actors,
    an_actor_that_returns_or_panics_is_followed_by_another,
    an_address_keeps_its_actor_and_does_not_lead_to_the_next_one,
    a_removed_actor_handles_what_it_has_accepted,
    the_keys_of_a_set_are_those_of_open_actors,
    a_broadcast_reaches_each_open_actor,
    a_stopped_set_starts_no_actor,
    a_stop_waits_for_the_next_actor_of_a_key_with_messages,
    actors_end_with_the_last_handle_of_their_set,
    the_next_actor_of_a_key_ends_though_its_set_was_dropped,
    an_actor_outlives_its_set_while_it_has_an_address,
    a_set_can_be_used_within_its_own_function_and_its_actors,
    each_actor_hands_in_its_result_before_the_next_one_starts,
);

fn a_message_starts_the_actor_of_its_key_and_the_next_ones_find_it(home: &Home) {
    let (set, book) = set(home);
    home.block_on(async {
        assert!(set.is_empty() && !set.contains(&7));
        set.tell(&7, Order::Add(1)).unwrap();
        set.tell(&7, Order::Add(2)).unwrap();
        let actor = set.get_or_spawn(&7).await.unwrap();
        actor.tell(Order::Add(3)).unwrap();
        assert_eq!(set.ask(&7, Order::Look).await.unwrap(), (1, vec![1, 2, 3]));
        assert_eq!((set.len(), book.begun(7)), (1, 1));
    });
}

fn each_key_has_an_actor_of_its_own(home: &Home) {
    let (set, book) = set(home);
    home.block_on(async {
        for key in 0..100 {
            set.tell(&key, Order::Add(key)).unwrap();
        }
        for key in 0..100 {
            let seen = set.ask(&key, Order::Look).await.unwrap();
            assert_eq!(seen, (1, vec![key]));
            assert_eq!(book.begun(key), 1);
        }
    });
}

fn a_message_to_an_actor_that_ends_reaches_the_next_one(home: &Home) {
    let (set, book) = set(home);
    home.block_on(async {
        let end = hold(&set, 7).await;
        assert!(set.remove(&7));
        for number in 0..10 {
            set.tell(&7, Order::Add(number)).unwrap();
        }
        assert_eq!(book.begun(7), 1);
        end.open();
        let seen = set.ask(&7, Order::Look).await.unwrap();
        assert_eq!(seen, (2, (0..10).collect()));
    });
}

fn a_call_waits_for_the_end_of_an_actor_and_is_not_polled_meanwhile(home: &Home) {
    let (set, _book) = set(home);
    home.block_on(async {
        let end = hold(&set, 7).await;
        assert!(set.remove(&7) && !set.remove(&7));
        let calls: Vec<_> = (0..10)
            .map(|_| {
                let set = set.clone();
                home.spawn_task(async move { set.get_or_spawn(&7).await.unwrap() })
            })
            .collect();
        let mut own = Box::pin(set.get_or_spawn(&7));
        assert!(poll_in_turn(&mut own).await.is_pending());
        assert!(!set.contains(&7));
        end.open();
        let next = own.await.unwrap();
        for call in calls {
            assert_eq!(call.await, next);
        }
        assert_eq!(set.ask(&7, Order::Look).await.unwrap(), (2, vec![]));
    });
}

fn messages_stay_in_order_over_the_ends_of_their_actors(home: &Home) {
    let log = Log::default();
    let own = log.clone();
    // Each ends after a few messages, and hands in all that it has.
    let make = move |_key: u32| {
        let log = own.clone();
        actor(async move |mut cx: Context<u32>| {
            for _ in 0..3 {
                let Some(number) = cx.recv().await else {
                    return;
                };
                log.add(number);
            }
            cx.stop();
            while let Some(number) = cx.recv().await {
                log.add(number);
            }
        })
    };
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    let count = home.many(2_000) as u32;
    home.block_on(async {
        for number in 0..count {
            set.tell(&1, number).unwrap();
            if number % 5 == 0 {
                greenroom::yield_now().await;
            }
        }
        set.stop();
        set.ended().await;
    });
    assert_eq!(log.take(), (0..count).collect::<Vec<_>>());
}

fn an_actor_that_returns_or_panics_is_followed_by_another(home: &Home) {
    keep_bombs_quiet();
    let (set, _book) = set(home);
    home.block_on(async {
        for number in 1..=20 {
            let actor = set.get_or_spawn(&7).await.unwrap();
            let seen = actor.ask(Order::Look).await;
            assert_eq!(seen, Ok((number, vec![])));
            match number % 4 {
                0 => actor.tell(Order::Return).unwrap(),
                1 => actor.tell(Order::Panic).unwrap(),
                2 => actor.stop(),
                _ => actor.kill(),
            }
            actor.closed().await;
        }
    });
}

fn an_address_keeps_its_actor_and_does_not_lead_to_the_next_one(home: &Home) {
    let (set, _book) = set(home);
    home.block_on(async {
        let first = set.get_or_spawn(&7).await.unwrap();
        set.remove(&7);
        let second = set.get_or_spawn(&7).await.unwrap();
        assert_ne!(first, second);
        assert!(first.tell(Order::Add(1)).is_err());
        assert_eq!(set.ask(&7, Order::Look).await.unwrap(), (2, vec![]));
    });
}

fn a_removed_actor_handles_what_it_has_accepted(home: &Home) {
    let book = Book::default();
    let log = Log::default();
    let own = log.clone();
    let results = options(home, &book).on_end(move |key, result| own.add((*key, result.unwrap())));
    let set = results.build().unwrap();
    home.block_on(async {
        assert!(!set.remove(&7));
        let end = hold(&set, 7).await;
        set.tell(&7, Order::Add(1)).unwrap();
        assert!(set.remove(&7));
        set.tell(&7, Order::Add(2)).unwrap();
        end.open();
        assert_eq!(set.ask(&7, Order::Look).await.unwrap(), (2, vec![2]));
        set.stop();
        set.ended().await;
    });
    assert_eq!(log.take(), [(7, vec![1]), (7, vec![2])]);
}

fn the_keys_of_a_set_are_those_of_open_actors(home: &Home) {
    let (set, _book) = set(home);
    home.block_on(async {
        for key in [3, 1, 2] {
            set.tell(&key, Order::Add(0)).unwrap();
        }
        let sorted = || {
            let mut keys = set.keys();
            keys.sort();
            keys
        };
        assert_eq!(sorted(), [1, 2, 3]);
        let end = hold(&set, 2).await;
        set.remove(&2);
        assert_eq!((sorted(), set.len()), (vec![1, 3], 2));
        // The next one of the key counts as soon as a message waits for it.
        set.tell(&2, Order::Add(0)).unwrap();
        assert!(set.contains(&2));
        assert_eq!((sorted(), set.len()), (vec![1, 2, 3], 3));
        end.open();
    });
}

fn a_broadcast_reaches_each_open_actor(home: &Home) {
    let log = Log::default();
    let own = log.clone();
    let make = move |key: u32| {
        let log = own.clone();
        actor(async move |mut cx: Context<&'static str>| {
            while let Some(text) = cx.recv().await {
                log.add((key, text));
            }
        })
    };
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    home.block_on(async {
        assert_eq!(set.broadcast("nothing").sent, 0);
        for key in 0..5 {
            set.get_or_spawn(&key).await.unwrap();
        }
        assert_eq!(set.broadcast("all").sent, 5);
        set.stop();
        assert_eq!(set.broadcast("nothing").sent, 0);
        set.ended().await;
    });
    let mut all = log.take();
    all.sort();
    assert_eq!(all, [0, 1, 2, 3, 4].map(|key| (key, "all")));
}

fn a_stopped_set_starts_no_actor(home: &Home) {
    let (set, _book) = set(home);
    home.block_on(async {
        set.tell(&7, Order::Add(1)).unwrap();
        let end = hold(&set, 7).await;
        set.stop();
        for key in [7, 8] {
            let refused = set.tell(&key, Order::Add(2)).unwrap_err();
            assert!(
                matches!(refused.key_error(), Some(KeyError::Stopped)),
                "{refused:?}"
            );
            assert_eq!(refused.to_string(), "the set of keyed actors was stopped");
            assert!(matches!(refused.into_inner(), Order::Add(2)));
            let refused = set.get_or_spawn(&key).await;
            assert!(matches!(refused, Err(KeyError::Stopped)));
            let refused = set.ask(&key, Order::Look).await;
            assert!(matches!(
                refused,
                Err(KeyedAskError::Key(KeyError::Stopped))
            ));
        }
        let mut ended = Box::pin(set.ended());
        assert!(poll_in_turn(&mut ended).await.is_pending());
        end.open();
        ended.await;
        assert!(set.is_empty());
    });
}

fn a_stop_waits_for_the_next_actor_of_a_key_with_messages(home: &Home) {
    let (log, book) = (Log::default(), Book::default());
    let own = log.clone();
    let set = options(home, &book).on_end(move |_, result| own.add(result.unwrap()));
    let set = set.build().unwrap();
    home.block_on(async {
        let end = hold(&set, 7).await;
        set.remove(&7);
        set.tell(&7, Order::Add(1)).unwrap();
        set.stop();
        end.open();
        set.ended().await;
    });
    assert_eq!(log.take(), [vec![], vec![1]]);
}

fn actors_end_with_the_last_handle_of_their_set(home: &Home) {
    let (set, _book) = set(home);
    home.block_on(async {
        let (other, actors) = (set.clone(), [1, 2, 3]);
        let mut weak = Vec::new();
        for key in actors {
            weak.push(set.get_or_spawn(&key).await.unwrap().downgrade());
        }
        drop(set);
        other.tell(&1, Order::Add(1)).unwrap();
        assert!(weak.iter().all(|actor| !actor.is_closed()));
        drop(other);
        for actor in weak {
            actor.closed().await;
        }
    });
}

fn the_next_actor_of_a_key_ends_though_its_set_was_dropped(home: &Home) {
    let (log, ended) = (Log::default(), Gate::default());
    let (own, gate) = (log.clone(), ended.clone());
    let set = options(home, &Book::default()).on_end(move |_, result| {
        own.add(result.unwrap());
        if own.len() == 2 {
            gate.open();
        }
    });
    let set = set.build().unwrap();
    home.block_on(async {
        let end = hold(&set, 7).await;
        set.remove(&7);
        set.tell(&7, Order::Add(1)).unwrap();
        drop(set);
        end.open();
        ended.wait().await;
    });
    assert_eq!(log.take(), [vec![], vec![1]]);
}

fn an_actor_outlives_its_set_while_it_has_an_address(home: &Home) {
    let (set, _book) = set(home);
    home.block_on(async {
        let actor = set.get_or_spawn(&7).await.unwrap();
        drop(set);
        assert_eq!(actor.ask(Order::Look).await, Ok((1, vec![])));
        let weak = actor.downgrade();
        drop(actor);
        weak.closed().await;
    });
}

fn a_set_can_be_used_within_its_own_function_and_its_actors(home: &Home) {
    let set = Arc::new_cyclic(|own: &Weak<Keyed<u32, Gate>>| {
        let own = own.clone();
        let make = move |key: u32| {
            let set = own.upgrade().unwrap();
            assert!(set.contains(&key));
            // A message to the actor that is being made waits for it.
            set.tell(&key, Gate::default()).unwrap();
            if key > 0 {
                set.tell(&(key - 1), Gate::default()).unwrap();
            }
            actor(async move |mut cx: Context<Gate>| {
                while let Some(gate) = cx.recv().await {
                    assert_eq!(set.len(), 4);
                    gate.open();
                }
            })
        };
        Keyed::builder(make).on(&home.runtime).build().unwrap()
    });
    home.block_on(async {
        let gate = Gate::default();
        set.tell(&3, gate.clone()).unwrap();
        gate.wait().await;
        set.stop();
        set.ended().await;
    });
}

fn each_actor_hands_in_its_result_before_the_next_one_starts(home: &Home) {
    keep_bombs_quiet();
    let (log, book) = (Log::default(), Book::default());
    let (own, begun) = (log.clone(), book.clone());
    let on_end = move |key: &u32, result: Result<Vec<u32>, greenroom::Fault>| {
        own.add((begun.begun(*key), result.map_err(|fault| fault.to_string())));
    };
    let set = options(home, &book).on_end(on_end).build().unwrap();
    home.block_on(async {
        for order in [Order::Add(5), Order::Panic, Order::Return] {
            set.ask(&7, Order::Look).await.unwrap();
            set.tell(&7, order).unwrap();
            set.remove(&7);
        }
        set.ask(&7, Order::Look).await.unwrap();
        set.get_or_spawn(&7).await.unwrap().kill();
        set.stop();
        set.ended().await;
    });
    let expected = [
        (1, Ok(vec![5])),
        (2, Err("panicked: bomb".to_owned())),
        (3, Ok(vec![])),
        (4, Err("was killed".to_owned())),
    ];
    assert_eq!(log.take(), expected);
}
